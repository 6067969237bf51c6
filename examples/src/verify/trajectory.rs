//! A run step by step: on one device with plain Burn, and on a mesh.

use burn::module::AutodiffModule;
use burn::optim::{GradientsParams, Optimizer};
use burn_multigpu::{DataParallel, Mesh, Step};

use crate::backend::TrainBackend;
use crate::data::DigitItems;
use crate::models::Classifier;
use crate::numeric::{Values, gradients, numbers, parameters};
use crate::optimizer::AnyOptimizer;
use crate::training::items_loss;

/// What a step came to.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) loss: f64,
    /// The gradients of the batch.
    pub(super) gradients: Values,
    /// The parameters after the update.
    pub(super) parameters: Values,
}

/// Training as any Burn program does it.
#[derive(Debug, Clone)]
pub(super) struct PlainRun<B: TrainBackend> {
    /// Absent only while a step is being made.
    model: Option<Classifier<B>>,
    optimizer: AnyOptimizer<B, Classifier<B>>,
    lr: f64,
}

impl<B: TrainBackend> PlainRun<B> {
    pub(super) fn new(
        model: Classifier<B>,
        optimizer: AnyOptimizer<B, Classifier<B>>,
        lr: f64,
    ) -> Self {
        Self {
            model: Some(model),
            optimizer,
            lr,
        }
    }

    pub(super) fn step(&mut self, items: DigitItems) -> Outcome {
        let model = self.model.take().expect("every step puts the model back");
        let loss = items_loss(&model, &items);
        let value = numbers(loss.clone())[0];
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        let gradients = gradients(&model, &grads);
        let model = self.optimizer.step(self.lr, model, grads);
        let parameters = parameters(&model.valid());
        self.model = Some(model);
        Outcome {
            loss: value,
            gradients,
            parameters,
        }
    }
}

/// Training with the replica engine.
#[derive(Debug)]
pub(super) struct MeshRun<B: TrainBackend> {
    engine: DataParallel<B, Classifier<B>, AnyOptimizer<B, Classifier<B>>>,
    /// As it is before the first step.
    optimizer: AnyOptimizer<B, Classifier<B>>,
    lr: f64,
}

impl<B: TrainBackend> MeshRun<B> {
    pub(super) fn new(
        model: Classifier<B>,
        optimizer: AnyOptimizer<B, Classifier<B>>,
        lr: f64,
        mesh: &Mesh<B::InnerBackend>,
    ) -> anyhow::Result<Self> {
        let engine = DataParallel::new(model, mesh)?.with_optimizer(optimizer.clone());
        Ok(Self {
            engine,
            optimizer,
            lr,
        })
    }

    /// A copy of the run, to be gone on with on the first member alone.
    pub(super) fn on_one_device(&self) -> anyhow::Result<PlainRun<B>> {
        let state = self.engine.optimizer_record()?;
        let optimizer = self.optimizer.clone().load_record(state);
        Ok(PlainRun::new(self.engine.model()?, optimizer, self.lr))
    }

    /// Both ways through the engine: `step` for the gradients, which it hands back, then `train_step` on
    /// the same items, which updates every replica. Without dropout both compute the same.
    pub(super) fn step(&mut self, items: DigitItems) -> anyhow::Result<Outcome> {
        let forward =
            |model: &Classifier<B>, items: DigitItems| Step::new(items_loss(model, &items));
        let (_, grads) = self.engine.step(items.clone(), forward)?;
        let gradients = gradients(&self.engine.model()?, &grads);
        let output = self.engine.train_step(self.lr, items, forward)?;
        Ok(Outcome {
            loss: output.loss()?,
            gradients,
            parameters: parameters(&self.engine.model()?.valid()),
        })
    }

    /// Whether all replicas hold the same parameters, bit for bit.
    pub(super) fn replicas_equal(&self) -> anyhow::Result<bool> {
        let first = parameters(&self.engine.model_of(0)?.valid());
        for member in 1..self.engine.mesh().len() {
            if parameters(&self.engine.model_of(member)?.valid()) != first {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
