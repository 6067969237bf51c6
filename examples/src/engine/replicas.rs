//! The replica engine: what a program that uses `DataParallel` looks like.

use burn::module::AutodiffModule;
use burn_multigpu::{DataParallel, Mesh, Step};

use super::{Engine, Loss, Observed, Setup, items_loss, predict};
use crate::backend::TrainBackend;
use crate::checkpoint::Snapshot;
use crate::data::DigitItems;
use crate::models::Classifier;
use crate::numeric::{gradients, parameters};
use crate::optimizer::AnyOptimizer;

/// A replica of the model and its optimizer on each member of a mesh.
pub(super) struct Replicas<B: TrainBackend> {
    engine: DataParallel<B, Classifier<B>, AnyOptimizer<B, Classifier<B>>>,
}

impl<B: TrainBackend> Replicas<B> {
    pub(super) fn new(mesh: &Mesh<B::InnerBackend>, setup: &Setup<'_>) -> anyhow::Result<Self> {
        let device = &mesh.devices()[0];
        let mut engine = DataParallel::new(setup.model(device)?, mesh)?;
        if let Some(seed) = setup.drawn() {
            engine = engine.seed(seed);
        }
        let mut engine = engine.with_optimizer(setup.optimizer.init());
        if let Some(resume) = setup.resume {
            engine.load_optimizer_record(resume.snapshot.optimizer::<B, _>(device)?)?;
            engine.set_steps(resume.steps);
        }
        Ok(Self { engine })
    }
}

/// A function and not a closure: the engine is compiled once for each function that it is given.
fn forward<B: TrainBackend>(model: &Classifier<B>, items: DigitItems) -> Step<B> {
    Step::new(items_loss(model, &items))
}

impl<B: TrainBackend> Engine for Replicas<B> {
    fn train_step(&mut self, lr: f64, items: DigitItems) -> anyhow::Result<Loss> {
        let output = self.engine.train_step(lr, items, forward::<B>)?;
        Ok(Box::new(move || Ok(output.loss()?)))
    }

    /// Both ways through the engine: `step` for the gradients, which it hands back, then `train_step`
    /// on the same items, which updates every replica. Without dropout both compute the same, but
    /// that running statistics move twice.
    fn observed_step(&mut self, lr: f64, items: DigitItems) -> anyhow::Result<Observed> {
        let (_, grads) = self.engine.step(items.clone(), forward::<B>)?;
        let gradients = gradients(&self.engine.model()?, &grads);
        let output = self.engine.train_step(lr, items, forward::<B>)?;
        Ok(Observed {
            loss: output.loss()?,
            gradients,
            parameters: parameters(&self.engine.model()?.valid()),
        })
    }

    fn predict(&self, items: DigitItems) -> anyhow::Result<Vec<u8>> {
        Ok(self.engine.forward(items, |model, items| {
            // A replica has no other way to fail, and the engine makes an error of it.
            predict(model, &items).unwrap_or_else(|error| panic!("{error}"))
        })?)
    }

    fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let model = self.engine.model()?.valid();
        Ok(Snapshot::new::<B, _>(
            model,
            self.engine.optimizer_record()?,
        )?)
    }

    fn replicas_equal(&self) -> anyhow::Result<Option<bool>> {
        let first = parameters(&self.engine.model_of(0)?.valid());
        for member in 1..self.engine.mesh().len() {
            if parameters(&self.engine.model_of(member)?.valid()) != first {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}
