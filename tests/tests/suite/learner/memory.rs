//! How much optimizer state each member keeps: counted, and shown in a table of the book.

use burn::backend::{Autodiff, Flex};
use burn::data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::InMemDataset;
use burn::lr_scheduler::constant::ConstantLr;
use burn::module::{AutodiffModule, Module};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::record::{BinBytesRecorder, FullPrecisionSettings, Recorder};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn::train::renderer::CliMetricsRenderer;
use burn::train::{
    ClassificationOutput, InferenceStep, Learner, SupervisedTraining, TrainOutput, TrainStep,
};
use burn_multigpu::{Mesh, MultiGpuStrategy, OptimizerPlacement};
use burn_multigpu_examples::models::{Classifier, ModelKind};
use burn_multigpu_tests::draws;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

type B = Autodiff<Flex>;
type Digits<B> = (Tensor<B, 3>, Tensor<B, 1, Int>);

/// A classifier that notes the size of the optimizer's state after each update, in bytes.
#[derive(Module, Debug)]
struct Weighed<B: Backend> {
    classifier: Classifier<B>,
    #[module(skip)]
    sizes: Arc<Mutex<Vec<usize>>>,
}

impl<B: Backend> Weighed<B> {
    fn classify(&self, (images, targets): Digits<B>) -> ClassificationOutput<B> {
        let loss = self.classifier.loss(images.clone(), targets.clone());
        ClassificationOutput::new(loss, self.classifier.forward(images), targets)
    }
}

impl<B: AutodiffBackend> TrainStep for Weighed<B> {
    type Input = Digits<B>;
    type Output = ClassificationOutput<B>;

    fn step(&self, batch: Digits<B>) -> TrainOutput<ClassificationOutput<B>> {
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
        let recorder = BinBytesRecorder::<FullPrecisionSettings>::new();
        let record = Recorder::<B1>::record(&recorder, optim.to_record(), ()).unwrap();
        updated.sizes.lock().unwrap().push(record.len());
        updated
    }
}

impl<B: Backend> InferenceStep for Weighed<B> {
    type Input = Digits<B>;
    type Output = ClassificationOutput<B>;

    fn step(&self, batch: Digits<B>) -> ClassificationOutput<B> {
        self.classify(batch)
    }
}

#[derive(Clone)]
struct Blank;

impl<B: Backend> Batcher<B, i64, Digits<B>> for Blank {
    fn batch(&self, classes: Vec<i64>, device: &B::Device) -> Digits<B> {
        let count = classes.len();
        let classes = TensorData::new(classes, [count]);
        (
            Tensor::ones([count, 28, 28], device),
            Tensor::from_data(classes, device),
        )
    }
}

fn loader<B: Backend>() -> Arc<dyn DataLoader<B, Digits<B>>> {
    let classes = InMemDataset::new((0..16).map(|item| item % 10).collect());
    DataLoaderBuilder::new(Blank).batch_size(8).build(classes)
}

/// The state of each member that has one, after two updates.
fn sizes(kind: ModelKind, members: usize, placement: OptimizerPlacement) -> Vec<usize> {
    let device = Default::default();
    let dir = tempfile::tempdir().unwrap();
    let training = SupervisedTraining::new(dir.path(), loader::<B>(), loader::<Flex>())
        .renderer(CliMetricsRenderer::new())
        .with_application_logger(None);
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let model = Weighed {
        classifier: Classifier::<B>::seeded(kind, 0.0, 1, &device, DType::F32),
        sizes: sizes.clone(),
    };
    let learner = Learner::new(model, AdamConfig::new().init(), ConstantLr::new(1e-3));
    let mesh = Mesh::<Flex>::from_devices(vec![device; members]).unwrap();
    let strategy = MultiGpuStrategy::new(&mesh).optimizer_placement(placement);
    strategy.launch(training, learner).unwrap();
    let sizes = sizes.lock().unwrap();
    // All make as many updates.
    sizes[sizes.len() / 2..].to_vec()
}

/// The table in the book is what is counted here. `MULTIGPU_BLESS=1` writes it.
#[test]
fn sharded_states_take_a_share_of_the_memory() {
    let _random = draws();
    let mut table = String::from(
        "| model | replicated | sharded over 2 | over 4 | over 8 |\n|---|---|---|---|---|\n",
    );
    for kind in [ModelKind::Mlp, ModelKind::Cnn, ModelKind::Transformer] {
        let replicated = sizes(kind, 2, OptimizerPlacement::Replicated);
        let whole = replicated[0];
        assert_eq!(replicated, [whole, whole]);
        write!(table, "| `{kind}` | {} KiB", whole / 1024).unwrap();
        for members in [2, 4, 8] {
            let sharded = sizes(kind, members, OptimizerPlacement::Sharded);
            // Together they are the state of one device (but for the headers of the records).
            let sum: usize = sharded.iter().sum();
            assert!(
                sum.abs_diff(whole) < 256 * members,
                "{kind}: {sharded:?} of {whole}"
            );
            let fullest = sharded.iter().max().unwrap();
            let percent = 100 * fullest / whole;
            write!(table, " | {} KiB ({percent} %)", fullest / 1024).unwrap();
        }
        table.push_str(" |\n");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/learner.md");
    let book = std::fs::read_to_string(path).unwrap();
    let (start, end) = ("<!-- generated: optimizer memory -->\n", "<!-- end -->");
    let (before, rest) = book.split_once(start).unwrap();
    let (saved, after) = rest.split_once(end).unwrap();
    if std::env::var_os("MULTIGPU_BLESS").is_some() {
        std::fs::write(path, format!("{before}{start}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(saved, table, "MULTIGPU_BLESS=1 writes the table anew");
    }
}
