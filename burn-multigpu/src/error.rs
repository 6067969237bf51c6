//! Every refusal of this crate, one variant each, with the values that it is about.
//!
//! Messages say what was asked for, what there is, and what would work. Those that need more than a
//! line of text are written in `mesh/messages.rs`.

use crate::mesh::messages;

/// The result of what this crate does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What this crate refuses, or could not do.
///
/// ```
/// use burn::backend::Flex;
/// use burn_multigpu::{Error, Mesh};
///
/// match Mesh::<Flex>::open("flex:0-") {
///     Err(Error::MalformedSpec { position, .. }) => assert_eq!(position, 6),
///     other => panic!("{other:?}"),
/// }
/// let error = Mesh::<Flex>::open("cpux").unwrap_err();
/// assert!(error.to_string().starts_with("unknown backend `cpux`; known are cuda,"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // --- Opening a mesh: specs, backends, devices -------------------------------------------
    /// A device spec that cannot be read. The message points at the character.
    #[error("{}", messages::malformed(spec, *position, reason))]
    MalformedSpec {
        /// The spec as it was given.
        spec: String,
        /// Where in the spec, counted in characters from 0; always one of its characters.
        position: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A device spec without a word in it.
    #[error("{}", messages::empty_spec(variable.as_deref()))]
    EmptySpec {
        /// The environment variable that holds it, if it came from one.
        variable: Option<String>,
    },
    /// The device spec in an environment variable is refused.
    #[error("{variable}: {error}")]
    Environment {
        /// The variable.
        variable: String,
        /// Why.
        error: Box<Error>,
    },
    /// A backend that no spec can name.
    #[error(
        "unknown backend `{name}`; known are {} (also `cpu` for flex and `hip` for rocm)",
        known.join(", ")
    )]
    UnknownBackend {
        /// The name as it was given.
        name: String,
        /// The names that are known.
        known: &'static [&'static str],
    },
    /// A backend that this program was built without.
    #[error(
        "this program was built without the `{backend}` backend; rebuild it with --features {feature}"
    )]
    BackendNotCompiled {
        /// The backend that was asked for.
        backend: String,
        /// The cargo feature that brings it.
        feature: String,
    },
    /// A spec for one backend, given to a mesh of another.
    #[error("{}", messages::wrong_backend(asked, backend))]
    WrongBackend {
        /// The backend that the spec names.
        asked: String,
        /// The backend of the mesh.
        backend: String,
    },
    /// A spec that names devices of two backends.
    #[error(
        "a mesh has devices of one backend, and this spec names `{first}` and `{second}`; \
         open one mesh for each"
    )]
    MixedBackends {
        /// The backend that came first.
        first: String,
        /// The one that differs.
        second: String,
    },
    /// The driver of a backend is missing or does not start.
    #[error("the {backend} driver cannot be used: {reason}")]
    NoDriver {
        /// The backend.
        backend: String,
        /// What is missing, or what the driver answered.
        reason: String,
    },
    /// A device number that is not there.
    #[error("{}", messages::no_such_device(backend, *index, *count, visible.as_deref()))]
    NoSuchDevice {
        /// The backend.
        backend: String,
        /// The number that was asked for.
        index: usize,
        /// How many devices this process sees.
        count: usize,
        /// The value of `CUDA_VISIBLE_DEVICES` (ROCm: `HIP_VISIBLE_DEVICES`), when it is set.
        visible: Option<String>,
    },
    /// A device of Burn's that is not among those which the backend lists.
    #[error(
        "`{device}` is not among the {count} {backend} devices that are visible; \
         `multigpu devices` lists them"
    )]
    NotVisible {
        /// The backend.
        backend: String,
        /// The device as Burn prints it.
        device: String,
        /// How many devices this process sees.
        count: usize,
    },
    /// A backend whose driver works and shows no device.
    #[error("{}", messages::no_devices(backend, visible.as_deref()))]
    NoDevices {
        /// The backend.
        backend: String,
        /// The value of `CUDA_VISIBLE_DEVICES` (ROCm: `HIP_VISIBLE_DEVICES`), when it is set.
        visible: Option<String>,
    },
    /// A mesh of no devices.
    #[error("a mesh has at least one device, and the list of devices is empty")]
    EmptyMesh,
    // --- Workers, steps, collectives --------------------------------------------------------
    /// A member failed or panicked in its part of the work.
    #[error("member {member} ({device}) failed: {cause}")]
    Worker {
        /// Its position in the mesh.
        member: usize,
        /// Its label, as `cuda:1`.
        device: String,
        /// What it reported.
        cause: String,
    },
    /// A member did not answer in the time that the engine was given.
    #[error(
        "member {member} ({device}) has not answered for {seconds} s; its device may hang, or the timeout is too short for this step"
    )]
    Timeout {
        /// Its position in the mesh.
        member: usize,
        /// Its label, as `cuda:1`.
        device: String,
        /// The time that it was given.
        seconds: f64,
    },
    /// An earlier update failed after some replicas had made it: they are not equal any more.
    #[error(
        "the replicas are not equal since an earlier update failed ({cause}); give the engine a model with set_model to go on"
    )]
    Diverged {
        /// How the update failed.
        cause: String,
    },
    /// A device reported an error, when its memory was read or its queue was flushed.
    #[error("{device} reported an error: {cause}")]
    Device {
        /// The device as Burn prints it.
        device: String,
        /// What it reported.
        cause: String,
    },
    /// Collectives move float tensors of 16 to 64 bits.
    #[error("{dtype} cannot be reduced; collectives take f64, f32, f16 and bf16")]
    UnsupportedDType {
        /// What was given.
        dtype: String,
    },
    /// Not one value for each member, or a position that is not in the mesh.
    #[error("the mesh has {expected} members, and {found} were given")]
    MemberCount {
        /// Number of members.
        expected: usize,
        /// Number of values given, or the position asked for plus one.
        found: usize,
    },
    /// The members' lists of tensors differ in length.
    #[error("member {member} has {found} tensors where the first has {expected}")]
    TensorCount {
        /// The member that differs.
        member: usize,
        /// Number of tensors of the first.
        expected: usize,
        /// Number of tensors of this one.
        found: usize,
    },
    /// A tensor differs in shape or dtype from the first member's.
    #[error("tensor {index} of member {member} is {found} where the first member's is {expected}")]
    TensorMismatch {
        /// The member that differs.
        member: usize,
        /// The place of the tensor in its list.
        index: usize,
        /// Shape and dtype of the first member's.
        expected: String,
        /// Shape and dtype of this one.
        found: String,
    },
    /// Weights of which no mean can be made.
    #[error("the weights {weights:?} make no mean: {reason}")]
    Weights {
        /// The weights as given.
        weights: Vec<f64>,
        /// What is wrong with them.
        reason: String,
    },
    /// A step without an item.
    #[error("the batch is empty; a step needs at least one item")]
    EmptyBatch,
    /// The parts of a batch, such as inputs and targets, differ in their number of items.
    #[error("the parts of the batch have {lengths:?} items; all need the same number")]
    UnevenBatch {
        /// The numbers of items, in the order of the parts.
        lengths: Vec<usize>,
    },
    /// A step's loss is not one number.
    #[error("the loss has {elements} elements and needs one: take its mean or its sum")]
    LossShape {
        /// Number of elements.
        elements: usize,
    },
    /// A batch did not split as asked: a mistake in its `Batch` implementation.
    #[error("the batch was to be cut into parts of {expected:?} items, and gave {found:?}")]
    BatchSplit {
        /// The sizes asked for.
        expected: Vec<usize>,
        /// The sizes of the parts.
        found: Vec<usize>,
    },
    /// A device without the type that gradients are to travel in.
    #[error(
        "{device} does not compute in the type of {compression:?}; choose another compression or none"
    )]
    Compression {
        /// What was asked for.
        compression: crate::data_parallel::Compression,
        /// The device as Burn prints it.
        device: String,
    },
    // --- Training with burn-train's Learner -------------------------------------------------
    /// The data loader or its data set failed.
    #[cfg(feature = "train")]
    #[error("the {split} data could not be loaded (batch {batch} of epoch {epoch}): {cause}")]
    DataLoader {
        /// `training` or `validation`.
        split: &'static str,
        /// The epoch, from 1 on.
        epoch: usize,
        /// The batch in the epoch, from 1 on.
        batch: usize,
        /// What the data loader's panic said.
        cause: String,
    },
    /// A placement of optimizer states that this mesh or model does not allow.
    #[cfg(feature = "train")]
    #[error("the optimizer's state cannot be sharded: {reason}")]
    Placement {
        /// Why, and what to do.
        reason: String,
    },
    // --- Pictures in a notebook -------------------------------------------------------------
    /// Not one prediction for each label.
    #[cfg(feature = "evcxr")]
    #[error(
        "there are {labels} labels and {predictions} predictions; a confusion matrix needs one for each"
    )]
    Unequal {
        /// How many labels were given.
        labels: usize,
        /// How many predictions.
        predictions: usize,
    },
    /// A label or a prediction that is not among the classes.
    #[cfg(feature = "evcxr")]
    #[error("item {item} is of class {class}, and there are {classes} classes, from 0 on")]
    Class {
        /// The class.
        class: usize,
        /// How many there are.
        classes: usize,
        /// Where it was found.
        item: usize,
    },
    /// An image of another size than the others.
    #[cfg(feature = "evcxr")]
    #[error("an image of {found} pixels, in a grid of images of {rows}x{columns}")]
    Pixels {
        /// Height of the grid's images.
        rows: usize,
        /// Their width.
        columns: usize,
        /// How many pixels the image has.
        found: usize,
    },
    /// A metric that the training does not have.
    #[cfg(all(feature = "evcxr", feature = "train"))]
    #[error("{}", messages::no_such_metric(name, known))]
    Metric {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A kernel could not be launched.
    #[cfg(feature = "cubecl")]
    #[error(transparent)]
    Kernel(#[from] burn_multigpu_kernels::KernelError),
}
