//! [`MultiGpuStrategy`]: its options, and how a training is started with it.

use super::fit::fit;
use super::placement::OptimizerPlacement;
use super::records::{RecordOps, StatePerParameter};
use super::{MemberBackend, TrainInput, TrainOutput, ValidInput, ValidOutput};
use crate::collective::DEFAULT_BUCKET_BYTES;
use crate::data_parallel::{Batch, Compression, Gather, Reduction, RunningStats};
use crate::error::{Error, Result};
use crate::mesh::{Mesh, MeshBackend};
use burn::train::{
    Learner, LearnerOptimizerRecord, LearningComponentsTypes, LearningResult,
    SupervisedLearningStrategy, SupervisedTraining, SupervisedTrainingEventProcessor, TrainLoader,
    TrainingComponents, TrainingModel, TrainingStrategy, ValidLoader,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a batch of the data loader is to the mesh.
///
/// ```
/// use burn::train::LearningComponentsTypes;
/// use burn_multigpu::MultiGpuStrategy;
/// use burn_multigpu::train::LoaderBatch;
///
/// // A loader with batches of 64 and four devices: steps of 256 items.
/// fn larger<LC: LearningComponentsTypes>(strategy: MultiGpuStrategy<LC>) -> MultiGpuStrategy<LC> {
///     strategy.loader_batch(LoaderBatch::PerMember)
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoaderBatch {
    /// The batch of a step, which is cut into a part for each member: the batch size means what it
    /// does on one device, and so do the results.
    #[default]
    Global,
    /// The part of one member: a step takes a batch of the loader for each, so that it has as many
    /// times the items and there are as many times fewer steps.
    PerMember,
}

/// What [`MultiGpuStrategy`] is told.
pub(super) struct Settings<LC: LearningComponentsTypes> {
    pub(super) batch: LoaderBatch,
    pub(super) reduction: Reduction,
    pub(super) running_stats: RunningStats,
    pub(super) compression: Compression,
    pub(super) bucket_bytes: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) placement: OptimizerPlacement,
    pub(super) records: Option<RecordOps<LC>>,
}

impl<LC: LearningComponentsTypes> Clone for Settings<LC> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

/// Trains burn-train's `Learner` on all members of a mesh.
///
/// It takes the place of the single-device strategy and does all that that does, with the same
/// results up to rounding: learning-rate schedulers, gradient accumulation (the gradients are reduced
/// once for each update) and clipping (of the reduced gradients), checkpoints and resuming, early
/// stopping, interruption, metrics (computed from the whole batch), validation (over the mesh), the
/// summary. The data loader stays as it is: its batches are cut into a part for each member, loaded
/// and uploaded ahead of the step.
///
/// The model's inputs implement [`Batch`] ([`impl_batch!`](crate::impl_batch) does it for a struct of
/// tensors) and its outputs [`Gather`], which burn-train's own do.
///
/// A resumed training goes on with the order in which an uninterrupted one would have seen the data,
/// if the loader has no workers (several threads give their batches in an order of their own).
///
/// ```
/// use burn_multigpu::{MultiGpuStrategy, OptimizerPlacement};
///
/// # use burn::backend::{Autodiff, Flex};
/// # use burn::data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher};
/// # use burn::data::dataset::InMemDataset;
/// # use burn::module::Module;
/// # use burn::nn::{Linear, LinearConfig};
/// # use burn::optim::AdamConfig;
/// # use burn::tensor::backend::{AutodiffBackend, Backend};
/// # use burn::tensor::{Tensor, TensorData};
/// # use burn::train::{
/// #     InferenceStep, Learner, RegressionOutput, SupervisedTraining, TrainOutput, TrainStep,
/// # };
/// # #[derive(Clone)]
/// # struct Stack;
/// # impl<B: Backend> Batcher<B, f32, Tensor<B, 2>> for Stack {
/// #     fn batch(&self, items: Vec<f32>, device: &B::Device) -> Tensor<B, 2> {
/// #         let count = items.len();
/// #         Tensor::from_data(TensorData::new(items, [count, 1]), device)
/// #     }
/// # }
/// # #[derive(Module, Debug)]
/// # struct Model<B: Backend> {
/// #     linear: Linear<B>,
/// # }
/// # impl<B: Backend> Model<B> {
/// #     fn regress(&self, x: Tensor<B, 2>) -> RegressionOutput<B> {
/// #         let y = self.linear.forward(x.clone());
/// #         let loss = (y.clone() - x.clone()).powf_scalar(2.0).mean();
/// #         RegressionOutput::new(loss, y, x)
/// #     }
/// # }
/// # impl<B: AutodiffBackend> TrainStep for Model<B> {
/// #     type Input = Tensor<B, 2>;
/// #     type Output = RegressionOutput<B>;
/// #     fn step(&self, x: Tensor<B, 2>) -> TrainOutput<RegressionOutput<B>> {
/// #         let output = self.regress(x);
/// #         TrainOutput::new(self, output.loss.backward(), output)
/// #     }
/// # }
/// # impl<B: Backend> InferenceStep for Model<B> {
/// #     type Input = Tensor<B, 2>;
/// #     type Output = RegressionOutput<B>;
/// #     fn step(&self, x: Tensor<B, 2>) -> RegressionOutput<B> {
/// #         self.regress(x)
/// #     }
/// # }
/// # fn loader<B: Backend>() -> std::sync::Arc<dyn DataLoader<B, Tensor<B, 2>>> {
/// #     let data = InMemDataset::new((0..10).map(|number| number as f32).collect());
/// #     DataLoaderBuilder::new(Stack).batch_size(4).build(data)
/// # }
/// # type B = Autodiff<Flex>;
/// # let dir = std::env::temp_dir().join(format!("multigpu-strategy-{}", std::process::id()));
/// # let (train, valid) = (loader::<B>(), loader::<Flex>());
/// # let model = Model { linear: LinearConfig::new(1, 1).init::<B>(&Default::default()) };
/// let training = SupervisedTraining::new(&dir, train, valid) // loaders as on one device
///     .num_epochs(2);
/// let learner = Learner::new(model, AdamConfig::new().init(), 1e-2);
/// let result = MultiGpuStrategy::open("flex:0,1")?
///     .optimizer_placement(OptimizerPlacement::Sharded) // optional
///     .launch(training, learner)?;
/// let trained = result.model; // a plain model, on the first device
/// # let _: Model<Flex> = trained;
/// # let _ = std::fs::remove_dir_all(dir);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
///
/// # Panics
///
/// Training ends with a panic that carries the message of the [`Error`] when a member or the data
/// loader fails, since burn-train's `launch` returns no result;
/// [`launch`](MultiGpuStrategy::launch) returns it instead.
pub struct MultiGpuStrategy<LC: LearningComponentsTypes> {
    mesh: Mesh<MemberBackend<LC>>,
    settings: Settings<LC>,
    /// The error that a training ended with, for `launch`.
    failure: Arc<Mutex<Option<Error>>>,
    /// Whether somebody waits for the error.
    caught: bool,
}

impl<LC: LearningComponentsTypes> std::fmt::Debug for MultiGpuStrategy<LC> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MultiGpuStrategy")
            .field("mesh", &self.mesh)
            .field("batch", &self.settings.batch)
            .field("placement", &self.settings.placement)
            .finish_non_exhaustive()
    }
}

impl<LC: LearningComponentsTypes> MultiGpuStrategy<LC>
where
    MemberBackend<LC>: MeshBackend,
{
    /// Trains on the devices that a spec names, such as `"cuda:0,1"`.
    ///
    /// # Errors
    ///
    /// Those of [`Mesh::open`].
    pub fn open(spec: &str) -> Result<Self> {
        Ok(Self::new(&Mesh::open(spec)?))
    }
}

impl<LC: LearningComponentsTypes> MultiGpuStrategy<LC> {
    /// Trains on the members of a mesh.
    pub fn new(mesh: &Mesh<MemberBackend<LC>>) -> Self {
        Self {
            mesh: mesh.clone(),
            settings: Settings {
                batch: LoaderBatch::default(),
                reduction: Reduction::default(),
                running_stats: RunningStats::default(),
                compression: Compression::default(),
                bucket_bytes: DEFAULT_BUCKET_BYTES,
                timeout: None,
                placement: OptimizerPlacement::default(),
                records: None,
            },
            failure: Arc::default(),
            caught: false,
        }
    }

    /// What a batch of the data loader is to the mesh.
    #[must_use]
    pub fn loader_batch(mut self, batch: LoaderBatch) -> Self {
        self.settings.batch = batch;
        self
    }

    /// How gradients of the parts become those of the batch: as for losses that are means unless set.
    #[must_use]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.settings.reduction = reduction;
        self
    }

    /// Which running statistics the replicas go on with.
    #[must_use]
    pub fn running_stats(mut self, running_stats: RunningStats) -> Self {
        self.settings.running_stats = running_stats;
        self
    }

    /// In which type gradients travel; as they are unless set.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.settings.compression = compression;
        self
    }

    /// The size that gradient buckets are filled to, in bytes.
    #[must_use]
    pub fn bucket_bytes(mut self, bytes: usize) -> Self {
        self.settings.bucket_bytes = bytes;
        self
    }

    /// Ends the training with [`Error::Timeout`] when a member takes longer than this for one of the
    /// phases of a step. Without it, a device that hangs is waited for.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Where optimizer states are kept.
    #[must_use]
    pub fn optimizer_placement(mut self, placement: OptimizerPlacement) -> Self
    where
        LearnerOptimizerRecord<LC>: StatePerParameter,
    {
        self.settings.placement = placement;
        self.settings.records = Some(RecordOps::new());
        self
    }

    /// The mesh that is trained on.
    #[must_use]
    pub fn mesh(&self) -> &Mesh<MemberBackend<LC>> {
        &self.mesh
    }

    pub(super) fn settings(&self) -> &Settings<LC> {
        &self.settings
    }
}

impl<LC> MultiGpuStrategy<LC>
where
    LC: LearningComponentsTypes + Send + 'static,
    TrainInput<LC>: Batch<LC::Backend>,
    TrainOutput<LC>: Gather<LC::Backend>,
    ValidInput<LC>: Batch<MemberBackend<LC>>,
    ValidOutput<LC>: Gather<MemberBackend<LC>>,
{
    /// Launches a training with this strategy. As `training.launch(learner)`, but a failure is
    /// returned.
    ///
    /// # Errors
    ///
    /// [`Error::Worker`] when a member fails, [`Error::DataLoader`] when the data does, and those of
    /// opening and reducing.
    ///
    /// # Panics
    ///
    /// As burn-train's `launch` does, when a checkpoint cannot be written or loaded, for one.
    pub fn launch(
        mut self,
        training: SupervisedTraining<LC>,
        learner: Learner<LC>,
    ) -> Result<LearningResult<LC::InferenceModel>> {
        self.caught = true;
        let failure = self.failure.clone();
        let training = training.with_training_strategy(self.into());
        catch_unwind(AssertUnwindSafe(|| training.launch(learner))).or_else(|panic| {
            let error = failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            match error {
                Some(error) => Err(error),
                None => resume_unwind(panic),
            }
        })
    }

    /// Ends the training with an error, which the trait's signature has no place for.
    fn fail(&self, error: Error) -> ! {
        let message = error.to_string();
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        if self.caught {
            // Without the message of a panic: the error is returned.
            resume_unwind(Box::new(message))
        }
        panic!("{message}")
    }
}

impl<LC> From<MultiGpuStrategy<LC>> for TrainingStrategy<LC>
where
    LC: LearningComponentsTypes + Send + 'static,
    TrainInput<LC>: Batch<LC::Backend>,
    TrainOutput<LC>: Gather<LC::Backend>,
    ValidInput<LC>: Batch<MemberBackend<LC>>,
    ValidOutput<LC>: Gather<MemberBackend<LC>>,
{
    fn from(strategy: MultiGpuStrategy<LC>) -> Self {
        TrainingStrategy::Custom(Arc::new(strategy))
    }
}

impl<LC> SupervisedLearningStrategy<LC> for MultiGpuStrategy<LC>
where
    LC: LearningComponentsTypes + Send + 'static,
    TrainInput<LC>: Batch<LC::Backend>,
    TrainOutput<LC>: Gather<LC::Backend>,
    ValidInput<LC>: Batch<MemberBackend<LC>>,
    ValidOutput<LC>: Gather<MemberBackend<LC>>,
{
    /// As the trait has it, but for where a checkpoint is loaded to: the first member, and not the
    /// backend's default device, which may not be of this mesh.
    fn train(
        &self,
        mut learner: Learner<LC>,
        dataloader_train: TrainLoader<LC>,
        dataloader_valid: ValidLoader<LC>,
        mut training_components: TrainingComponents<LC>,
    ) -> LearningResult<LC::InferenceModel> {
        let mut starting_epoch = 1;
        if let Some(checkpoint) = training_components.checkpoint {
            if let Some(checkpointer) = &training_components.checkpointer {
                let device = &self.mesh.devices()[0];
                learner = checkpointer.load_checkpoint(learner, device, checkpoint);
            }
            starting_epoch = checkpoint + 1;
        }
        training_components.checkpoint = None;
        let started = Started {
            strategy: self,
            starting_epoch,
        };
        started.train(
            learner,
            dataloader_train,
            dataloader_valid,
            training_components,
        )
    }

    fn fit(
        &self,
        training_components: TrainingComponents<LC>,
        learner: Learner<LC>,
        dataloader_train: TrainLoader<LC>,
        dataloader_valid: ValidLoader<LC>,
        starting_epoch: usize,
    ) -> (TrainingModel<LC>, SupervisedTrainingEventProcessor<LC>) {
        fit(
            self,
            training_components,
            learner,
            dataloader_train,
            dataloader_valid,
            starting_epoch,
        )
        .unwrap_or_else(|error| self.fail(error))
    }
}

/// A training whose checkpoint is loaded: the rest of `train` is as the trait has it.
struct Started<'a, LC: LearningComponentsTypes> {
    strategy: &'a MultiGpuStrategy<LC>,
    starting_epoch: usize,
}

impl<LC> SupervisedLearningStrategy<LC> for Started<'_, LC>
where
    LC: LearningComponentsTypes + Send + 'static,
    TrainInput<LC>: Batch<LC::Backend>,
    TrainOutput<LC>: Gather<LC::Backend>,
    ValidInput<LC>: Batch<MemberBackend<LC>>,
    ValidOutput<LC>: Gather<MemberBackend<LC>>,
{
    fn fit(
        &self,
        training_components: TrainingComponents<LC>,
        learner: Learner<LC>,
        dataloader_train: TrainLoader<LC>,
        dataloader_valid: ValidLoader<LC>,
        _: usize,
    ) -> (TrainingModel<LC>, SupervisedTrainingEventProcessor<LC>) {
        self.strategy.fit(
            training_components,
            learner,
            dataloader_train,
            dataloader_valid,
            self.starting_epoch,
        )
    }
}
