//! What makes the steps of a run: the replica engine, or a plain Burn loop on one device, which may
//! be a mesh.
//!
//! Everything behind [`Engine`] depends on the type of the backend, and nothing before it does: so
//! an epoch, a comparison and a benchmark are compiled once, and not once for each backend.

mod plain;
mod replicas;
#[cfg(all(test, feature = "flex"))]
mod tests;

use anyhow::{anyhow, bail};
use burn::backend::Autodiff;
use burn::prelude::Backend;
use burn::tensor::Tensor;
use burn::tensor::backend::AutodiffBackend;
use burn_multigpu::{Mesh, MultiGpu};
use serde::{Deserialize, Serialize};

use crate::backend::TrainBackend;
use crate::checkpoint::Snapshot;
use crate::config::FloatKind;
use crate::data::DigitItems;
use crate::models::{Classifier, ModelKind};
use crate::numeric::Values;
use crate::optimizer::OptimizerKind;

use plain::Plain;
use replicas::Replicas;

/// How a run uses a mesh. It decides nothing of what the run computes, but for what dropout draws
/// and for batch norm: a checkpoint of one engine is gone on with by the other.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// `DataParallel`: a replica of the model on each member.
    #[default]
    Replica,
    /// `MultiGpu`: a plain Burn loop on the mesh as a device.
    Decorator,
}

impl EngineKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Replica, Self::Decorator];
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Replica => "replica",
            Self::Decorator => "decorator",
        })
    }
}

/// What a run begins with.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The network.
    pub model: ModelKind,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// Probability with which a hidden activation is dropped.
    pub dropout: f64,
    /// Decides the initial parameters and what dropout draws.
    pub seed: u64,
    /// Element type.
    pub dtype: FloatKind,
    /// What an earlier run came to.
    pub resume: Option<Resume<'a>>,
}

/// What a run goes on from.
#[derive(Debug, Clone, Copy)]
pub struct Resume<'a> {
    /// Parameters, and the state of the optimizer.
    pub snapshot: &'a Snapshot,
    /// Steps done, by which dropout goes on where it was.
    pub steps: u64,
}

impl Setup<'_> {
    fn model<B: Backend>(&self, device: &B::Device) -> anyhow::Result<Classifier<B>> {
        Ok(match self.resume {
            Some(resume) => resume.snapshot.model(self.model, self.dropout, device)?,
            None => {
                let dtype = self.dtype.dtype();
                Classifier::seeded(self.model, self.dropout, self.seed, device, dtype)
            }
        })
    }

    /// The seed of what is drawn, where something is: seeding waits for what was queued before.
    fn drawn(&self) -> Option<u64> {
        (self.dropout > 0.0).then_some(self.seed)
    }

    fn steps(&self) -> u64 {
        self.resume.map_or(0, |resume| resume.steps)
    }
}

/// The loss of a step, to be read: reading waits for the devices.
pub type Loss = Box<dyn FnOnce() -> anyhow::Result<f64>>;

/// What a step came to.
#[derive(Debug)]
pub struct Observed {
    /// The loss of the batch.
    pub loss: f64,
    /// The gradients of the batch.
    pub gradients: Values,
    /// The parameters after the update.
    pub parameters: Values,
}

/// A model and its optimizer, wherever they are.
pub trait Engine {
    /// Forward, backward and update on a batch.
    ///
    /// # Errors
    ///
    /// When a device fails. A failure may also be reported by a later call, or by the loss.
    fn train_step(&mut self, lr: f64, items: DigitItems) -> anyhow::Result<Loss>;

    /// As [`train_step`](Self::train_step), with everything that comes of it.
    ///
    /// # Errors
    ///
    /// When a device fails.
    fn observed_step(&mut self, lr: f64, items: DigitItems) -> anyhow::Result<Observed>;

    /// The digits that the model sees in items, without dropout.
    ///
    /// # Errors
    ///
    /// When a device fails.
    fn predict(&self, items: DigitItems) -> anyhow::Result<Vec<u8>>;

    /// Parameters and optimizer state as they are now, in `f32`.
    ///
    /// # Errors
    ///
    /// When a device fails.
    fn snapshot(&self) -> anyhow::Result<Snapshot>;

    /// Whether all replicas hold the same parameters, bit for bit; `None` where there are none,
    /// and one model is all there is.
    ///
    /// # Errors
    ///
    /// When a device fails.
    fn replicas_equal(&self) -> anyhow::Result<Option<bool>>;
}

impl std::fmt::Debug for dyn Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

/// The backend whose device is a mesh of `B`'s devices.
pub type OnMesh<B> = Autodiff<MultiGpu<<B as AutodiffBackend>::InnerBackend>>;

/// An engine over all members of a mesh.
///
/// # Errors
///
/// When the backend lacks the element type, a device fails, or what is gone on from cannot be read.
pub fn over_mesh<B: TrainBackend>(
    kind: EngineKind,
    mesh: &Mesh<B::InnerBackend>,
    setup: &Setup<'_>,
) -> anyhow::Result<Box<dyn Engine>> {
    check_dtype::<B>(setup.dtype, &mesh.devices()[0])?;
    Ok(match kind {
        EngineKind::Replica => Box::new(Replicas::<B>::new(mesh, setup)?),
        // All that the loop gets of the mesh is a device.
        EngineKind::Decorator => Box::new(Plain::<OnMesh<B>>::new(mesh.try_device()?, setup)?),
    })
}

/// The plain loop on one device.
///
/// # Errors
///
/// As [`over_mesh`].
pub fn on_device<B: TrainBackend>(
    device: &B::Device,
    setup: &Setup<'_>,
) -> anyhow::Result<Box<dyn Engine>> {
    check_dtype::<B>(setup.dtype, device)?;
    Ok(Box::new(Plain::<B>::new(device.clone(), setup)?))
}

/// Refuses an element type that the backend cannot compute with.
fn check_dtype<B: Backend>(dtype: FloatKind, device: &B::Device) -> anyhow::Result<()> {
    let name = B::name(device);
    // Burn's fusion has no f64 (its server panics at the first fused operation), and passes on that
    // the backend inside has it.
    let fused = dtype == FloatKind::F64 && name.contains("fusion");
    if fused || !B::supports_dtype(device, dtype.dtype()) {
        bail!("{name} does not compute in {dtype}: leave --dtype away, or use --devices flex:0,1");
    }
    Ok(())
}

/// The mean loss of a model over items, whose tensors are made on the model's device.
pub fn items_loss<B: Backend>(model: &Classifier<B>, items: &DigitItems) -> Tensor<B, 1> {
    let batch = items.to_batch(&model.device(), model.dtype());
    model.loss(batch.images, batch.targets)
}

/// The digits that a model sees in items, whose tensors are made on the model's device.
///
/// # Errors
///
/// When the device fails.
pub fn predict<B: Backend>(model: &Classifier<B>, items: &DigitItems) -> anyhow::Result<Vec<u8>> {
    let logits = model.forward(items.to_images(&model.device(), model.dtype()));
    let digits = logits.argmax(1).try_into_data().map_err(reading)?;
    Ok(digits.iter::<i64>().map(|digit| digit as u8).collect())
}

/// What a device reports when it is read from. A mesh says which member failed in what.
fn reading(error: burn::tensor::backend::ExecutionError) -> anyhow::Error {
    anyhow!("{error}")
}
