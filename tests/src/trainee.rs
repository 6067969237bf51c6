//! A model for burn-train's `Learner`, its data, and what is kept of a training.
#![allow(clippy::unwrap_used)]

use crate::compare;
use crate::models::Cnn;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::Dataset;
use burn::lr_scheduler::LrScheduler;
use burn::module::{AutodiffModule, Module};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{GradientsParams, Optimizer};
use burn::record::{DoublePrecisionSettings, NamedMpkFileRecorder};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Int, Tensor, TensorData};
use burn::train::logger::{InMemoryMetricLogger, MetricLogger};
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{
    AccuracyMetric, ClassReduction, LearningRateMetric, LossMetric, MetricDefinition, NumericEntry,
    RecallMetric,
};
use burn::train::renderer::{
    EvaluationName, EvaluationProgress, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining, ProgressType, TrainingProgress,
};
use burn::train::{
    ClassificationOutput, InferenceStep, LearningComponentsMarker, SupervisedTraining, TrainOutput,
    TrainStep,
};
use std::path::Path;
use std::sync::{Arc, Mutex};

const SIDE: usize = 6;
const CLASSES: usize = 3;

/// The components of a learner of this model.
pub type Components<B, LR, O> = LearningComponentsMarker<B, LR, Trainee<B>, O>;

/// A convolutional classifier that notes its parameters after each update.
#[derive(Module, Debug)]
pub struct Trainee<B: Backend> {
    net: Cnn<B>,
    #[module(skip)]
    updates: Updates,
}

/// All float parameters after each update, in the order of the updates.
#[derive(Clone, Debug, Default)]
pub struct Updates(Arc<Mutex<Vec<Vec<Vec<f64>>>>>);

impl Updates {
    /// Takes what has been noted so far.
    pub fn take(&self) -> Vec<Vec<Vec<f64>>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Images as `[batch, pixels]` and their classes.
#[derive(Clone, Debug)]
pub struct ImageBatch<B: Backend> {
    images: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
}

burn_multigpu::impl_batch!(ImageBatch { images, targets });

impl<B: Backend> Trainee<B> {
    /// With batch norm or without.
    pub fn new(norm: bool, device: &B::Device) -> Self {
        Self {
            net: Cnn::new(SIDE, CLASSES, norm, device),
            updates: Updates::default(),
        }
    }

    /// A copy with a list of updates of its own, and what it will hold.
    pub fn watched(mut self) -> (Self, Updates) {
        self.updates = Updates::default();
        let updates = self.updates.clone();
        (self, updates)
    }

    fn classify(&self, batch: ImageBatch<B>) -> ClassificationOutput<B> {
        let broken = batch.images.clone().greater_elem(1e6).any();
        let broken = broken.into_data().iter::<bool>().any(|any| any);
        assert!(!broken, "an image is broken");
        let output = self.net.forward(batch.images);
        let loss = CrossEntropyLossConfig::new()
            .init(&output.device())
            .forward(output.clone(), batch.targets.clone());
        ClassificationOutput::new(loss, output, batch.targets)
    }
}

impl<B: AutodiffBackend> TrainStep for Trainee<B> {
    type Input = ImageBatch<B>;
    type Output = ClassificationOutput<B>;

    fn step(&self, batch: ImageBatch<B>) -> TrainOutput<ClassificationOutput<B>> {
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }

    fn optimize<B1, O>(self, optim: &mut O, lr: f64, grads: GradientsParams) -> Self
    where
        B1: AutodiffBackend,
        O: Optimizer<Self, B1>,
        Self: AutodiffModule<B1>,
    {
        let updated = optim.step(lr, self, grads);
        let values = compare::params::<B1, _>(&updated).into_iter();
        let values = values.map(|(_, values)| values).collect();
        updated.updates.0.lock().unwrap().push(values);
        updated
    }
}

impl<B: Backend> InferenceStep for Trainee<B> {
    type Input = ImageBatch<B>;
    type Output = ClassificationOutput<B>;

    fn step(&self, batch: ImageBatch<B>) -> ClassificationOutput<B> {
        self.classify(batch)
    }
}

/// An image and its class.
#[derive(Clone, Debug)]
pub struct Item {
    /// Row by row.
    pub pixels: Vec<f64>,
    /// From 0 on.
    pub class: i64,
}

/// Random images, one of which cannot be read, if so wanted.
#[derive(Clone, Debug)]
pub struct Images {
    /// The images.
    pub items: Vec<Item>,
    /// The one whose reading panics.
    pub unreadable: Option<usize>,
}

impl Images {
    /// As many, drawn from this seed.
    pub fn new(items: usize, seed: u64) -> Self {
        // SplitMix64; the images of a class have a stripe in common.
        let mut state = seed;
        let mut next = move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        };
        let item = |index: usize, next: &mut dyn FnMut() -> f64| {
            let class = index % CLASSES;
            let stripe = |pixel: usize| f64::from(u8::from(pixel % CLASSES == class));
            let pixels = (0..SIDE * SIDE).map(|pixel| stripe(pixel) + next() - 0.5);
            Item {
                pixels: pixels.collect(),
                class: class as i64,
            }
        };
        Self {
            items: (0..items).map(|index| item(index, &mut next)).collect(),
            unreadable: None,
        }
    }
}

impl Dataset<Item> for Images {
    fn get(&self, index: usize) -> Option<Item> {
        assert!(Some(index) != self.unreadable, "cannot read item {index}");
        self.items.get(index).cloned()
    }

    fn len(&self) -> usize {
        self.items.len()
    }
}

#[derive(Clone)]
struct Stack;

impl<B: Backend> Batcher<B, Item, ImageBatch<B>> for Stack {
    fn batch(&self, items: Vec<Item>, device: &B::Device) -> ImageBatch<B> {
        let count = items.len();
        let classes: Vec<i64> = items.iter().map(|item| item.class).collect();
        let pixels: Vec<f64> = items.into_iter().flat_map(|item| item.pixels).collect();
        ImageBatch {
            images: Tensor::from_data(TensorData::new(pixels, [count, SIDE * SIDE]), device),
            targets: Tensor::from_data(TensorData::new(classes, [count]), device),
        }
    }
}

/// A data loader, shuffled as the training data are if there is a seed.
pub fn loader<B: Backend>(
    images: Images,
    batch: usize,
    shuffle: Option<u64>,
    workers: usize,
    device: &B::Device,
) -> Arc<dyn DataLoader<B, ImageBatch<B>>> {
    let mut builder = DataLoaderBuilder::new(Stack)
        .batch_size(batch)
        .num_workers(workers)
        .set_device(device.clone());
    if let Some(seed) = shuffle {
        builder = builder.shuffle(seed);
    }
    builder.build(images)
}

/// A training of 53 images in batches of 10, the last of 3, with validation on 17 in batches of 7.
pub fn training<B, LR, O>(
    dir: &Path,
    epochs: usize,
    device: &B::Device,
) -> (SupervisedTraining<Components<B, LR, O>>, Metrics)
where
    B: AutodiffBackend,
    LR: LrScheduler + 'static,
    O: Optimizer<Trainee<B>, B> + 'static,
{
    let train = loader::<B>(Images::new(53, 1), 10, Some(5), 0, device);
    let inner = &valid_device::<B>(device);
    let valid = loader::<B::InnerBackend>(Images::new(17, 2), 7, None, 0, inner);
    training_on(dir, epochs, train, valid)
}

/// A training with metrics and checkpoints, and what its metrics will be.
pub fn training_on<B, LR, O>(
    dir: &Path,
    epochs: usize,
    train: Arc<dyn DataLoader<B, ImageBatch<B>>>,
    valid: Arc<dyn DataLoader<B::InnerBackend, ImageBatch<B::InnerBackend>>>,
) -> (SupervisedTraining<Components<B, LR, O>>, Metrics)
where
    B: AutodiffBackend,
    LR: LrScheduler + 'static,
    O: Optimizer<Trainee<B>, B> + 'static,
{
    let metrics = Metrics::default();
    let training = SupervisedTraining::new(dir, train, valid)
        .metrics((
            AccuracyMetric::new(),
            LossMetric::new(),
            RecallMetric::multiclass(1, ClassReduction::Macro),
        ))
        .metric_train_numeric(LearningRateMetric::new())
        .with_file_checkpointer(NamedMpkFileRecorder::<DoublePrecisionSettings>::new())
        .with_metric_logger(Recording {
            metrics: metrics.clone(),
            inner: InMemoryMetricLogger::new(),
        })
        .renderer(Silent)
        .with_application_logger(None)
        .num_epochs(epochs);
    (training, metrics)
}

/// The device of the inner backend, which is the same type.
fn valid_device<B: AutodiffBackend>(
    device: &B::Device,
) -> <B::InnerBackend as burn::tensor::backend::BackendTypes>::Device {
    use burn::tensor::backend::DeviceOps;
    device.inner().clone()
}

/// Every metric value with its place: split, epoch, name and the place in the epoch.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Vec<(String, f64)>>>);

impl Metrics {
    /// Takes what has been noted so far.
    pub fn take(&self) -> Vec<(String, f64)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Notes all numeric values on their way into burn-train's own logger.
struct Recording {
    metrics: Metrics,
    inner: InMemoryMetricLogger,
}

impl MetricLogger for Recording {
    fn log(&mut self, update: MetricsUpdate, epoch: usize, split: &Split) {
        for entry in &update.entries_numeric {
            let name = format!("{split} epoch {epoch}: {:?}", entry.entry.metric_id);
            let mut metrics = self.metrics.0.lock().unwrap();
            metrics.push((name, entry.numeric_entry.current()));
        }
        self.inner.log(update, epoch, split);
    }

    fn read_numeric(
        &mut self,
        name: &str,
        epoch: usize,
        split: &Split,
    ) -> Result<Vec<NumericEntry>, String> {
        self.inner.read_numeric(name, epoch, split)
    }

    fn log_metric_definition(&mut self, definition: MetricDefinition) {
        self.inner.log_metric_definition(definition);
    }

    fn log_epoch_summary(&mut self, summary: EpochSummary) {
        self.inner.log_epoch_summary(summary);
    }
}

/// Shows nothing.
struct Silent;

impl MetricsRendererTraining for Silent {
    fn update_train(&mut self, _: MetricState) {}
    fn update_valid(&mut self, _: MetricState) {}
    fn render_train(&mut self, _: TrainingProgress, _: Vec<ProgressType>) {}
    fn render_valid(&mut self, _: TrainingProgress, _: Vec<ProgressType>) {}
}

impl MetricsRendererEvaluation for Silent {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
    fn render_test(&mut self, _: EvaluationProgress, _: Vec<ProgressType>) {}
}

impl MetricsRenderer for Silent {
    fn manual_close(&mut self) {}
    fn register_metric(&mut self, _: MetricDefinition) {}
}
