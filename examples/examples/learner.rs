//! Trains on the bundled digits with burn-train's `Learner`, over several devices.
//!
//! ```sh
//! cargo run --release --example learner -- --devices flex:0,1
//! cargo run --release --example learner -- --devices flex:0,1 --resume
//! cargo run --release --example learner -- --devices cuda:0,1 --model transformer
//! ```
//!
//! The program is an ordinary one of burn-train but for three lines: `impl_batch!` below, and the
//! strategy in `Task::run`.

#![allow(clippy::print_stdout)] // a program with a console

use anyhow::{Context, Result, anyhow};
use burn::data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::Dataset;
use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::cosine::{CosineAnnealingLrScheduler, CosineAnnealingLrSchedulerConfig};
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::{Adam, AdamConfig};
use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder};
use burn::tensor::backend::{AutodiffBackend, Backend, BackendTypes, DeviceOps};
use burn::tensor::{DType, Int, Tensor};
use burn::train::metric::store::{Aggregate, Direction, Split};
use burn::train::metric::{AccuracyMetric, LearningRateMetric, LossMetric};
use burn::train::{
    ClassificationOutput, EvaluatorBuilder, InferenceStep, Learner, LearningComponentsMarker,
    LearningResult, MetricEarlyStoppingStrategy, StoppingCondition, SupervisedTraining,
    TrainOutput, TrainStep,
};
use burn_multigpu::train::last_checkpoint;
use burn_multigpu::{Mesh, MeshSpec, MultiGpuStrategy, OptimizerPlacement};
use burn_multigpu_examples::backend::{Task, TrainBackend, default_spec, dispatch};
use burn_multigpu_examples::data::{DataSet, DigitItems, Digits, bundled_dir};
use burn_multigpu_examples::models::{Classifier, ModelKind};
use clap::Parser;
use std::path::PathBuf;
use std::sync::Arc;

/// Train on the bundled digits with burn-train's Learner, over several devices.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// The devices, such as cuda:0,1 or flex:0,1 [default: $MULTIGPU_DEVICES, or what there is]
    #[arg(long)]
    devices: Option<MeshSpec>,
    /// The network
    #[arg(long, value_enum, default_value_t)]
    model: ModelKind,
    /// Passes over the training digits
    #[arg(long, default_value_t = 4)]
    epochs: usize,
    /// Items in a batch, over all devices
    #[arg(long, default_value_t = 64)]
    batch_size: usize,
    /// Batches whose gradients make one update
    #[arg(long, default_value_t = 1)]
    accumulate: usize,
    /// Keep each optimizer state on one device
    #[arg(long)]
    shard_optimizer: bool,
    /// Stop after so many epochs without a lower validation loss
    #[arg(long, default_value_t = 2)]
    patience: usize,
    /// Use the first digits only
    #[arg(long)]
    limit: Option<usize>,
    /// Where metrics, checkpoints and the model go
    #[arg(long, default_value = "runs/learner")]
    out: PathBuf,
    /// Go on from the last checkpoint in --out
    #[arg(long)]
    resume: bool,
}

#[derive(Clone, Debug)]
struct DigitBatch<B: Backend> {
    images: Tensor<B, 3>,
    targets: Tensor<B, 1, Int>,
}

// What the mesh needs to know of a batch.
burn_multigpu::impl_batch!(DigitBatch { images, targets });

#[derive(Module, Debug)]
struct DigitModel<B: Backend> {
    classifier: Classifier<B>,
}

impl<B: Backend> DigitModel<B> {
    fn classify(&self, batch: DigitBatch<B>) -> ClassificationOutput<B> {
        let output = self.classifier.forward(batch.images);
        let loss = CrossEntropyLossConfig::new()
            .init(&output.device())
            .forward(output.clone(), batch.targets.clone());
        ClassificationOutput::new(loss, output, batch.targets)
    }
}

impl<B: AutodiffBackend> TrainStep for DigitModel<B> {
    type Input = DigitBatch<B>;
    type Output = ClassificationOutput<B>;

    fn step(&self, batch: DigitBatch<B>) -> TrainOutput<ClassificationOutput<B>> {
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl<B: Backend> InferenceStep for DigitModel<B> {
    type Input = DigitBatch<B>;
    type Output = ClassificationOutput<B>;

    fn step(&self, batch: DigitBatch<B>) -> ClassificationOutput<B> {
        self.classify(batch)
    }
}

/// Some of the digits, by their places in the files.
struct DigitDataset {
    digits: Arc<Digits>,
    places: std::ops::Range<u32>,
}

impl Dataset<u32> for DigitDataset {
    fn get(&self, index: usize) -> Option<u32> {
        self.places.clone().nth(index)
    }

    fn len(&self) -> usize {
        self.places.len()
    }
}

#[derive(Clone)]
struct DigitBatcher(Arc<Digits>);

impl<B: Backend> Batcher<B, u32, DigitBatch<B>> for DigitBatcher {
    fn batch(&self, places: Vec<u32>, device: &B::Device) -> DigitBatch<B> {
        let items = DigitItems::new(self.0.clone(), places);
        let batch = items.to_batch::<B>(device, DType::F32);
        DigitBatch {
            images: batch.images,
            targets: batch.targets,
        }
    }
}

fn loader<B: Backend>(
    data: DigitDataset,
    args: &Args,
    shuffle: bool,
    device: &B::Device,
) -> Arc<dyn DataLoader<B, DigitBatch<B>>> {
    let builder = DataLoaderBuilder::new(DigitBatcher(data.digits.clone()))
        .batch_size(args.batch_size)
        .set_device(device.clone());
    match shuffle {
        true => builder.shuffle(42).build(data),
        false => builder.build(data),
    }
}

/// The components of the learner: its optimizer and its scheduler.
type Components<B> = LearningComponentsMarker<
    B,
    CosineAnnealingLrScheduler,
    DigitModel<B>,
    OptimizerAdaptor<Adam, DigitModel<B>, B>,
>;
type Trained<B> = LearningResult<DigitModel<<B as AutodiffBackend>::InnerBackend>>;

impl Task for Args {
    type Output = ();

    fn run<B: TrainBackend>(self, spec: &MeshSpec) -> Result<()> {
        let mesh = Mesh::<B::InnerBackend>::open_spec(spec)?;
        println!("{mesh}");
        let mut strategy = MultiGpuStrategy::new(&mesh);
        if self.shard_optimizer {
            strategy = strategy.optimizer_placement(OptimizerPlacement::Sharded);
        }
        train::<B>(&self, &mesh.devices()[0], |training, learner| {
            Ok(strategy.launch(training, learner)?)
        })
    }
}

/// An ordinary training with burn-train, on any device.
fn train<B: AutodiffBackend>(
    args: &Args,
    device: &B::Device,
    launch: impl FnOnce(SupervisedTraining<Components<B>>, Learner<Components<B>>) -> Result<Trained<B>>,
) -> Result<()> {
    let data = DataSet::read(&bundled_dir(), args.limit)?;
    let count = data.train.len() as u32;
    let held_out = count / 8;
    let part = |places| DigitDataset {
        digits: data.train.clone(),
        places,
    };
    let inner: &<B::InnerBackend as BackendTypes>::Device = device.inner();
    let train = loader::<B>(part(held_out..count), args, true, device);
    let valid = loader::<B::InnerBackend>(part(0..held_out), args, false, inner);

    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let mut training = SupervisedTraining::new(&args.out, train, valid)
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .metric_train_numeric(LearningRateMetric::new())
        .with_file_checkpointer(recorder.clone())
        .early_stopping(MetricEarlyStoppingStrategy::new(
            &LossMetric::<B>::new(),
            Aggregate::Mean,
            Direction::Lowest,
            Split::Valid,
            StoppingCondition::NoImprovementSince {
                n_epochs: args.patience,
            },
        ))
        .grads_accumulation(args.accumulate)
        .num_epochs(args.epochs)
        .summary();
    if args.resume {
        let epoch = last_checkpoint::<Components<B>, _>(&args.out, &recorder, device);
        let epoch = epoch
            .with_context(|| format!("{} holds no checkpoint to resume", args.out.display()))?;
        println!("resuming after epoch {epoch}");
        training = training.checkpoint(epoch);
    }

    let classifier = Classifier::seeded(args.model, 0.0, 42, device, DType::F32);
    let steps = (count as usize).div_ceil(args.batch_size) * args.epochs;
    let scheduler = CosineAnnealingLrSchedulerConfig::new(2e-3, steps.max(1));
    let scheduler = scheduler.init().map_err(|error| anyhow!(error))?;
    let optimizer = AdamConfig::new().with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)));
    let learner = Learner::new(DigitModel { classifier }, optimizer.init(), scheduler);
    let trained = launch(training, learner)?;

    let path = args.out.join("model");
    trained.model.clone().save_file(&path, &recorder)?;
    let test = DigitDataset {
        digits: data.test.clone(),
        places: 0..data.test.len() as u32,
    };
    let test = loader::<B::InnerBackend>(test, args, false, inner);
    let evaluator = EvaluatorBuilder::new(&args.out)
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .renderer(trained.renderer)
        .summary()
        .build(trained.model);
    evaluator.eval("test", test);
    println!("the model is {}", path.with_extension("mpk").display());
    Ok(())
}

fn main() -> Result<()> {
    let args = Args::parse();
    let spec = match &args.devices {
        Some(spec) => spec.clone(),
        None => default_spec()?,
    };
    dispatch(&spec, args)
}
