//! The code blocks of the book and of the READMEs, as tests of the documentation, and what several of
//! them share.

use burn::data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::InMemDataset;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Int, Tensor, TensorData};
use burn::train::{ClassificationOutput, InferenceStep, TrainOutput, TrainStep};
use std::sync::Arc;

/// A number and what it is: 0 for a small one, 1 for a large one.
pub type Numbers<B> = (Tensor<B, 2>, Tensor<B, 1, Int>);

/// Tells small numbers from large ones.
#[derive(Module, Debug)]
pub struct Model<B: Backend> {
    linear: Linear<B>,
}

impl<B: Backend> Model<B> {
    /// The model of the Learner's examples.
    pub fn new(device: &B::Device) -> Self {
        let linear = LinearConfig::new(1, 2).init(device);
        Self { linear }
    }

    fn classify(&self, (numbers, targets): Numbers<B>) -> ClassificationOutput<B> {
        let output = self.linear.forward(numbers);
        let loss = CrossEntropyLossConfig::new().init(&output.device());
        let loss = loss.forward(output.clone(), targets.clone());
        ClassificationOutput::new(loss, output, targets)
    }
}

impl<B: AutodiffBackend> TrainStep for Model<B> {
    type Input = Numbers<B>;
    type Output = ClassificationOutput<B>;

    fn step(&self, batch: Numbers<B>) -> TrainOutput<ClassificationOutput<B>> {
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl<B: Backend> InferenceStep for Model<B> {
    type Input = Numbers<B>;
    type Output = ClassificationOutput<B>;

    fn step(&self, batch: Numbers<B>) -> ClassificationOutput<B> {
        self.classify(batch)
    }
}

/// Makes a batch of numbers.
#[derive(Clone, Debug)]
pub struct NumberBatcher;

impl<B: Backend> Batcher<B, f32, Numbers<B>> for NumberBatcher {
    fn batch(&self, items: Vec<f32>, device: &B::Device) -> Numbers<B> {
        let count = items.len();
        let targets: Vec<i64> = items.iter().map(|x| i64::from(*x > 0.5)).collect();
        (
            Tensor::from_data(TensorData::new(items, [count, 1]), device),
            Tensor::from_data(TensorData::new(targets, [count]), device),
        )
    }
}

/// Ten numbers in batches of four, on a device.
pub fn loader<B: Backend>(device: &B::Device) -> Arc<dyn DataLoader<B, Numbers<B>>> {
    let numbers = (0..10).map(|number| number as f32 / 10.0).collect();
    DataLoaderBuilder::new(NumberBatcher)
        .batch_size(4)
        .set_device(device.clone())
        .build(InMemDataset::new(numbers))
}

/// Each page's blocks are tests; rustdoc compiles all of them at once.
#[cfg(doctest)]
mod pages {
    macro_rules! pages {
        ($($name:ident $path:literal,)*) => {
            $(#[doc = include_str!(concat!("../../", $path))] mod $name {})*
        };
    }

    pages! {
        readme "README.md",
        library_readme "burn-multigpu/README.md",
        architecture "docs/src/architecture.md",
        benchmarks "docs/src/benchmarks.md",
        burn_versions "docs/src/burn-versions.md",
        cli "docs/src/cli.md",
        collectives "docs/src/collectives.md",
        custom_loops "docs/src/custom-loops.md",
        devices "docs/src/devices.md",
        introduction "docs/src/introduction.md",
        learner "docs/src/learner.md",
        one_device "docs/src/one-device.md",
        operations "docs/src/operations.md",
        partitioning "docs/src/partitioning.md",
        pytorch "docs/src/pytorch.md",
        quick_start "docs/src/quick-start.md",
        troubleshooting "docs/src/troubleshooting.md",
    }
}
