//! The replicas, their threads and the order of a step.

use super::batch::{Batch, Gather};
use super::grads;
use super::local::Replica;
use super::replica::{self, Model};
use super::step::{Compression, Reduction, RunningStats, Step, StepOutput};
use crate::collective::{DEFAULT_BUCKET_BYTES, Transfer};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::shard::shard_sizes;
use crate::worker::WorkerPool;
use burn::module::{AutodiffModule, ParamId};
use burn::optim::{GradientsParams, Optimizer};
use burn::tensor::backend::{AutodiffBackend, Backend};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Inner<B> = <B as AutodiffBackend>::InnerBackend;

/// The optimizer of an engine that has none: gradients are handed back instead.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOptimizer;

/// Trains a model on all members of a mesh, one replica each.
///
/// A step cuts a global batch into one part per member, runs forward and backward of all parts at
/// the same time, each on its own device, thread and autodiff graph, and reduces the gradients. Then
/// either the optimizer runs on every replica ([`train_step`](Self::train_step), after
/// [`with_optimizer`](Self::with_optimizer)), so that parameters are never sent, or the gradients
/// are handed back for any Burn optimizer ([`step`](Self::step)). Both give the result of a single
/// device that sees the whole batch, up to rounding.
///
/// What happens to
///
/// - **an uneven or small batch**: parts differ by one item at most and count by their size; members
///   without an item only take part in the update.
/// - **parameters without a gradient**: where some replicas have one, the others count as zero; where
///   none has, there is none. Frozen parameters stay as they are.
/// - **shared parameters** (one `Param` cloned into two places): as in Burn, the optimizer updates
///   the first place; gradients are reduced once.
/// - **integer and boolean parameters**: copied to each replica, and not touched by training.
/// - **batch norm**: each part is normalised by its own statistics; the running statistics are
///   exchanged as [`RunningStats`] says.
/// - **dropout**: each replica draws its own numbers; see [`seed`](Self::seed).
///
/// A replica that fails or panics ends the step with an error that names its device. The parameters
/// are then those from before the step, unless the failure came in the update itself: the engine
/// then answers [`Error::Diverged`] until [`set_model`](Self::set_model).
///
/// ```
/// use burn::backend::{Autodiff, Flex};
/// use burn::nn::{Linear, LinearConfig};
/// use burn::optim::AdamConfig;
/// use burn::tensor::{Distribution, Tensor};
/// use burn_multigpu::{DataParallel, Mesh, Step};
///
/// type B = Autodiff<Flex>;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let device = &mesh.devices()[0];
/// let model: Linear<B> = LinearConfig::new(4, 1).init(device);
/// let mut engine = DataParallel::<B, _>::new(model, &mesh)?
///     .seed(42)
///     .with_optimizer(AdamConfig::new().init());
///
/// let batch = Tensor::<B, 2>::random([5, 4], Distribution::Default, device); // parts of 3 and 2
/// let out = engine.train_step(1e-3, batch, |model: &Linear<B>, part| {
///     Step::new(model.forward(part).powf_scalar(2.0).mean())
/// })?;
/// assert_eq!((out.items(), engine.steps()), (5, 1));
/// let model = engine.model()?; // on the first device, as any Burn model
/// # let _: Linear<B> = model;
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Debug)]
pub struct DataParallel<B: AutodiffBackend, M, O = NoOptimizer> {
    pub(super) mesh: Mesh<Inner<B>>,
    pub(super) pool: WorkerPool,
    pub(super) replicas: Vec<Replica<Model<M>>>,
    pub(super) optimizers: Vec<Replica<O>>,
    /// The optimizer as it was given, to start again after a failed update.
    pub(super) fresh: O,
    /// Ids of the running statistics in the model.
    pub(super) states: Arc<Vec<ParamId>>,
    pub(super) reduction: Reduction,
    pub(super) running_stats: RunningStats,
    pub(super) bucket_bytes: usize,
    pub(super) compression: Compression,
    pub(super) seed: Option<u64>,
    /// Whether the model draws random numbers, once known.
    pub(super) draws: Option<bool>,
    pub(super) steps: u64,
    pub(super) diverged: Option<String>,
}

impl<B, M> DataParallel<B, M>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + 'static,
{
    /// Copies the model to every member of the mesh and starts a thread for each.
    ///
    /// # Errors
    ///
    /// When a member cannot hold the model or a thread cannot be started.
    pub fn new(model: M, mesh: &Mesh<Inner<B>>) -> Result<Self> {
        let pool = WorkerPool::spawn(mesh.members().iter().map(|member| member.label.clone()))?;
        let models = copies::<B, M>(mesh, &pool, model)?;
        let states = Arc::new(replica::running_states::<B, M>(&models[0].module));
        Ok(Self {
            mesh: mesh.clone(),
            pool,
            replicas: models.into_iter().map(Replica::new).collect(),
            optimizers: Vec::new(),
            fresh: NoOptimizer,
            states,
            reduction: Reduction::default(),
            running_stats: RunningStats::default(),
            bucket_bytes: DEFAULT_BUCKET_BYTES,
            compression: Compression::default(),
            seed: None,
            draws: None,
            steps: 0,
            diverged: None,
        })
    }

    /// Gives every replica its own copy of an optimizer, whose states stay equal since the reduced
    /// gradients are. Fresh ones: a state is loaded with
    /// [`load_optimizer_record`](DataParallel::load_optimizer_record).
    #[must_use]
    pub fn with_optimizer<O: Optimizer<M, B> + 'static>(
        self,
        optimizer: O,
    ) -> DataParallel<B, M, O> {
        DataParallel {
            optimizers: self
                .replicas
                .iter()
                .map(|_| Replica::new(optimizer.clone()))
                .collect(),
            fresh: optimizer,
            mesh: self.mesh,
            pool: self.pool,
            replicas: self.replicas,
            states: self.states,
            reduction: self.reduction,
            running_stats: self.running_stats,
            bucket_bytes: self.bucket_bytes,
            compression: self.compression,
            seed: self.seed,
            draws: self.draws,
            steps: self.steps,
            diverged: self.diverged,
        }
    }
}

impl<B, M, O> DataParallel<B, M, O>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + 'static,
    O: Clone + Send + 'static,
{
    /// Makes runs repeatable: in step `s` replica `i` draws from the stream of (`seed`, `s`, `i`).
    ///
    /// Burn's generators are global to the process. If the forward pass draws (which the first step
    /// finds out), replicas therefore run it one after the other; each backward pass overlaps with
    /// the forward passes that follow. Models that draw nothing are not slowed down. Without a seed
    /// all run at once, and draw different numbers in an order that varies from run to run.
    ///
    /// A model that starts to draw later than in its first step is not repeatable from there on.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self.draws = None;
        self
    }

    /// How gradients and losses of the parts become those of the batch.
    #[must_use]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }

    /// Which running statistics the replicas go on with.
    #[must_use]
    pub fn running_stats(mut self, running_stats: RunningStats) -> Self {
        self.running_stats = running_stats;
        self
    }

    /// The size that gradient buckets are filled to, in bytes;
    /// [`DEFAULT_BUCKET_BYTES`] unless set.
    #[must_use]
    pub fn bucket_bytes(mut self, bytes: usize) -> Self {
        self.bucket_bytes = bytes;
        self
    }

    /// In which type gradients travel; as they are unless set.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Ends a step with [`Error::Timeout`] when a member takes longer than this for one of its
    /// phases. Without it, a device that hangs is waited for.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.pool.set_timeout(Some(timeout));
        self
    }

    /// The mesh that the engine runs on.
    #[must_use]
    pub fn mesh(&self) -> &Mesh<Inner<B>> {
        &self.mesh
    }

    /// Number of steps taken; with the [`seed`](Self::seed) it decides what dropout draws.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Continues to count from here, to resume a run.
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// A copy of the model, on the first member's device, independent of the engine.
    ///
    /// # Errors
    ///
    /// When the first member fails or its replica is lost ([`Error::Diverged`]).
    pub fn model(&self) -> Result<M> {
        self.model_of(0)
    }

    /// A copy of one member's replica, on its device. Replicas are equal bit for bit, but for running
    /// statistics under [`RunningStats::Local`].
    ///
    /// # Errors
    ///
    /// [`Error::MemberCount`] if there is no such member, and as [`model`](Self::model).
    pub fn model_of(&self, member: usize) -> Result<M> {
        let Some(device) = self.mesh.devices().get(member).cloned() else {
            return Err(Error::MemberCount {
                expected: self.mesh.len(),
                found: member + 1,
            });
        };
        let own = self.replicas[member].clone();
        self.pool
            .submit(member, move || {
                own.with(|model| {
                    let copy = replica::replicate::<B, M>(&model.module, &device, Transfer::Same);
                    Ok(copy.module)
                })
            })
            .wait()
    }

    /// Replaces the model on every member.
    ///
    /// After [`Error::Diverged`] this makes the engine work again, with the optimizer as it was first
    /// given: the failed update may have left the members' optimizers in different states. A saved
    /// state is loaded with
    /// [`load_optimizer_record`](DataParallel::load_optimizer_record).
    ///
    /// # Errors
    ///
    /// When a member cannot hold the model.
    pub fn set_model(&mut self, model: M) -> Result<()> {
        let models = copies::<B, M>(&self.mesh, &self.pool, model)?;
        self.states = Arc::new(replica::running_states::<B, M>(&models[0].module));
        for (replica, model) in self.replicas.iter().zip(models) {
            replica.set(model);
        }
        if self.diverged.take().is_some() {
            for optimizer in &self.optimizers {
                optimizer.set(self.fresh.clone());
            }
        }
        Ok(())
    }

    /// Forward, backward and reduction over a global batch; hands back the gradients, which lie on
    /// the first member's device, for any Burn optimizer.
    ///
    /// The parameters stay as they are: give the updated model back with
    /// [`set_model`](Self::set_model). Running statistics move in the replicas: where the model has
    /// any, update a copy from [`model`](Self::model) and not one of your own, whose statistics stand
    /// still.
    ///
    /// ```
    /// use burn::optim::{AdamConfig, Optimizer};
    /// use burn_multigpu::{DataParallel, Step};
    ///
    /// # use burn::backend::{Autodiff, Flex};
    /// # use burn::nn::{Linear, LinearConfig};
    /// # use burn::tensor::{Distribution, Tensor};
    /// # type B = Autodiff<Flex>;
    /// # let mesh = burn_multigpu::Mesh::<Flex>::open("flex:0,1")?;
    /// # let device = &mesh.devices()[0];
    /// # let model: Linear<B> = LinearConfig::new(4, 1).init(device);
    /// # let batch = Tensor::<B, 2>::random([5, 4], Distribution::Default, device);
    /// let mut optimizer = AdamConfig::new().init::<B, Linear<B>>();
    /// let mut engine = DataParallel::<B, _>::new(model, &mesh)?;
    /// let (out, grads) = engine.step(batch, |model: &Linear<B>, part| Step::new(model.forward(part).mean()))?;
    /// engine.set_model(optimizer.step(1e-3, engine.model()?, grads))?;
    /// # assert_eq!(out.items(), 5);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EmptyBatch`], and [`Error::Worker`] with the device and the cause when a replica
    /// fails.
    pub fn step<I, T, F>(
        &mut self,
        batch: I,
        function: F,
    ) -> Result<(StepOutput<B, T>, GradientsParams)>
    where
        I: Batch<B>,
        T: Send + 'static,
        F: Fn(&M, I) -> Step<B, T> + Send + Sync + 'static,
    {
        let parts = cut::<B, I>(batch, self.mesh.len())?;
        self.gradients(parts, function)
    }

    /// As [`step`](Self::step), with one batch per member instead of a global one to cut; batches
    /// may differ in size and be empty.
    ///
    /// ```
    /// use burn_multigpu::{DataParallel, Step};
    ///
    /// # use burn::backend::{Autodiff, Flex};
    /// # use burn::nn::{Linear, LinearConfig};
    /// # use burn::tensor::{Distribution, Tensor};
    /// # type B = Autodiff<Flex>;
    /// # let mesh = burn_multigpu::Mesh::<Flex>::open("flex:0,1")?;
    /// # let device = &mesh.devices()[0];
    /// # let model: Linear<B> = LinearConfig::new(4, 1).init(device);
    /// # let batch = Tensor::<B, 2>::random([5, 4], Distribution::Default, device);
    /// let mut engine = DataParallel::<B, _>::new(model, &mesh)?;
    /// let batches = batch.split_with_sizes(vec![1, 4], 0); // the member with one item counts a fifth
    /// let (out, _) = engine.step_shards(batches, |model: &Linear<B>, part| Step::new(model.forward(part).mean()))?;
    /// assert_eq!(out.items(), 5);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step), and [`Error::MemberCount`] if there is not one batch per member.
    pub fn step_shards<I, T, F>(
        &mut self,
        batches: Vec<I>,
        function: F,
    ) -> Result<(StepOutput<B, T>, GradientsParams)>
    where
        I: Batch<B>,
        T: Send + 'static,
        F: Fn(&M, I) -> Step<B, T> + Send + Sync + 'static,
    {
        let parts = self.one_per_member(batches)?;
        self.gradients(parts, function)
    }

    /// Runs a function of the model without autodiff on all members, and joins its outputs in the
    /// order of the items, on the first member's device.
    ///
    /// ```
    /// use burn_multigpu::DataParallel;
    ///
    /// # use burn::backend::{Autodiff, Flex};
    /// # use burn::nn::{Linear, LinearConfig};
    /// # use burn::tensor::{Distribution, Tensor};
    /// # type B = Autodiff<Flex>;
    /// # let mesh = burn_multigpu::Mesh::<Flex>::open("flex:0,1")?;
    /// # let device = &mesh.devices()[0];
    /// # let model: Linear<B> = LinearConfig::new(4, 1).init(device);
    /// # let batch = Tensor::<B, 2>::random([5, 4], Distribution::Default, device);
    /// let engine = DataParallel::<B, _>::new(model, &mesh)?;
    /// let outputs = engine.forward(batch.inner(), |model, part| model.forward(part))?;
    /// assert_eq!(outputs.dims(), [5, 1]);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn forward<I, T, F>(&self, batch: I, function: F) -> Result<T>
    where
        I: Batch<Inner<B>>,
        T: Gather<Inner<B>>,
        F: Fn(&M::InnerModule, I) -> T + Send + Sync + 'static,
    {
        let parts = cut::<Inner<B>, I>(batch, self.mesh.len())?;
        let function = Arc::new(function);
        let weights: Vec<f64> = parts.iter().flatten().map(Batch::weight).collect();
        let jobs = parts.into_iter().enumerate().map(|(member, part)| {
            let (core, own, function) = (
                self.mesh.core().clone(),
                self.replicas[member].clone(),
                function.clone(),
            );
            move || {
                let Some(part) = part else { return Ok(None) };
                let device = &core.devices[member];
                let part = part.to_device(device, core.transfers.path(0, member));
                let output = own.with(|model| Ok(function(&model.module.valid(), part)))?;
                Ok(Some((member, output)))
            }
        });
        let outputs = self.pool.run(jobs)?.into_iter().flatten().collect();
        join::<_, Inner<B>, T>(&self.mesh, &self.pool, outputs, weights)
    }

    pub(super) fn one_per_member<I: Batch<B>>(&self, batches: Vec<I>) -> Result<Vec<Option<I>>> {
        if batches.len() != self.mesh.len() {
            return Err(Error::MemberCount {
                expected: self.mesh.len(),
                found: batches.len(),
            });
        }
        one_each::<B, I>(batches)
    }

    fn gradients<I, T, F>(
        &mut self,
        parts: Vec<Option<I>>,
        function: F,
    ) -> Result<(StepOutput<B, T>, GradientsParams)>
    where
        I: Batch<B>,
        T: Send + 'static,
        F: Fn(&M, I) -> Step<B, T> + Send + Sync + 'static,
    {
        let (output, mut grads, states) = self.compute(parts, function, &[0])?;
        self.apply_states(states)?;
        let own = self.replicas[0].clone();
        let first = grads.swap_remove(0).unwrap_or_default();
        let grads = self
            .pool
            .submit(0, move || {
                own.with(|model| Ok(grads::put::<B, M>(&model.module, first).0))
            })
            .wait()?;
        self.steps += 1;
        Ok((output, grads))
    }
}

/// Joins outputs, given with the members that they come from, on the first member.
pub(crate) fn join<B, G, T>(
    mesh: &Mesh<B>,
    pool: &WorkerPool,
    outputs: Vec<(usize, T)>,
    weights: Vec<f64>,
) -> Result<T>
where
    B: Backend,
    G: Backend<Device = B::Device>,
    T: Gather<G>,
{
    let core = mesh.core().clone();
    pool.submit(0, move || {
        let moved = outputs.into_iter().map(|(member, output)| {
            output.to_device(&core.devices[0], core.transfers.path(member, 0))
        });
        Ok(T::join(moved.collect(), &weights))
    })
    .wait()
}

/// Inputs and targets, and whatever else a batch consists of, have equally many items.
fn check_lengths<B: Backend, I: Batch<B>>(batch: &I) -> Result<()> {
    let lengths = batch.lengths();
    if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(Error::UnevenBatch { lengths });
    }
    Ok(())
}

/// Batches as the parts of members, of which those without items are none.
pub(crate) fn one_each<B: Backend, I: Batch<B>>(batches: Vec<I>) -> Result<Vec<Option<I>>> {
    batches.iter().try_for_each(check_lengths::<B, I>)?;
    let parts: Vec<_> = batches
        .into_iter()
        .map(|batch| (batch.items() > 0).then_some(batch))
        .collect();
    if parts.iter().all(Option::is_none) {
        return Err(Error::EmptyBatch);
    }
    Ok(parts)
}

/// A part for each member; the last members get none when there are fewer items than members.
pub(crate) fn cut<B: Backend, I: Batch<B>>(batch: I, members: usize) -> Result<Vec<Option<I>>> {
    check_lengths(&batch)?;
    let items = batch.items();
    if items == 0 {
        return Err(Error::EmptyBatch);
    }
    let mut sizes = shard_sizes(items, members);
    sizes.retain(|size| *size > 0);
    let parts = batch.split(&sizes);
    let found: Vec<usize> = parts.iter().map(Batch::items).collect();
    if found != sizes {
        return Err(Error::BatchSplit {
            expected: sizes,
            found,
        });
    }
    let mut parts: Vec<Option<I>> = parts.into_iter().map(Some).collect();
    parts.resize_with(members, || None);
    Ok(parts)
}

/// A copy of the model for each member, made on the members' threads.
pub(crate) fn copies<B, M>(
    mesh: &Mesh<Inner<B>>,
    pool: &WorkerPool,
    model: M,
) -> Result<Vec<Model<M>>>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + 'static,
{
    replica::initialize::<B, M>(&model);
    let clones: Vec<M> = mesh.devices().iter().map(|_| model.clone()).collect();
    let jobs = clones.into_iter().enumerate().map(|(member, model)| {
        let core = mesh.core().clone();
        move || {
            let device = &core.devices[member];
            let on_first = model
                .devices()
                .iter()
                .all(|device| device == &core.devices[0]);
            let transfer = if on_first {
                core.transfers.path(0, member)
            } else {
                Transfer::Host
            };
            Ok(replica::replicate::<B, M>(&model, device, transfer))
        }
    });
    let copies = pool.run(jobs);
    // Until here, so that no copy finds itself the last user of a tensor that others still read.
    drop(model);
    copies
}
