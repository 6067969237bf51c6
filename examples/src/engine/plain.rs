//! Training as any Burn program does it. Nothing in this file knows of a mesh: `B` may be a backend
//! whose device is one, and that is all the difference.

use burn::module::AutodiffModule;
use burn::optim::{GradientsParams, Optimizer};
use burn::tensor::Tensor;
use burn::tensor::backend::AutodiffBackend;

use super::{Engine, Loss, Observed, Setup, items_loss, predict, reading};
use crate::checkpoint::Snapshot;
use crate::data::DigitItems;
use crate::models::Classifier;
use crate::numeric::{Values, gradients, parameters};
use crate::optimizer::AnyOptimizer;

/// A model and its optimizer on one device.
pub(super) struct Plain<B: AutodiffBackend> {
    /// Absent only while a step is being made.
    model: Option<Classifier<B>>,
    optimizer: AnyOptimizer<B, Classifier<B>>,
    device: B::Device,
    /// Of what is drawn, where something is.
    seed: Option<u64>,
    steps: u64,
}

impl<B: AutodiffBackend> Plain<B> {
    pub(super) fn new(device: B::Device, setup: &Setup<'_>) -> anyhow::Result<Self> {
        let mut optimizer: AnyOptimizer<B, Classifier<B>> = setup.optimizer.init();
        if let Some(resume) = setup.resume {
            optimizer = optimizer.load_record(resume.snapshot.optimizer::<B, _>(&device)?);
        }
        Ok(Self {
            model: Some(setup.model(&device)?),
            optimizer,
            device,
            seed: setup.drawn(),
            steps: setup.steps(),
        })
    }

    fn model(&self) -> &Classifier<B> {
        self.model.as_ref().expect("every step puts the model back")
    }

    /// The loss; the gradients go where somebody asks for them.
    fn step(
        &mut self,
        lr: f64,
        items: &DigitItems,
        observed: Option<&mut Values>,
    ) -> Tensor<B::InnerBackend, 1> {
        if let Some(seed) = self.seed {
            // Every step has a stream of its own, so that a resumed run draws as if it had not
            // been stopped. The factor keeps the streams of neighbouring seeds apart.
            let stream = self.steps.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            B::seed(&self.device, seed.wrapping_add(stream));
        }
        let model = self.model.take().expect("every step puts the model back");
        let loss = items_loss(&model, items);
        let value = loss.clone().inner();
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        if let Some(values) = observed {
            *values = gradients(&model, &grads);
        }
        self.model = Some(self.optimizer.step(lr, model, grads));
        self.steps += 1;
        value
    }
}

impl<B: AutodiffBackend> Engine for Plain<B> {
    fn train_step(&mut self, lr: f64, items: DigitItems) -> anyhow::Result<Loss> {
        let loss = self.step(lr, &items, None);
        Ok(Box::new(move || read(loss)))
    }

    fn observed_step(&mut self, lr: f64, items: DigitItems) -> anyhow::Result<Observed> {
        let mut gradients = Values::new();
        let loss = self.step(lr, &items, Some(&mut gradients));
        Ok(Observed {
            loss: read(loss)?,
            gradients,
            parameters: parameters(&self.model().valid()),
        })
    }

    fn predict(&self, items: DigitItems) -> anyhow::Result<Vec<u8>> {
        predict(&self.model().valid(), &items)
    }

    fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let model = self.model().valid();
        Ok(Snapshot::new::<B, _>(model, self.optimizer.to_record())?)
    }

    fn replicas_equal(&self) -> anyhow::Result<Option<bool>> {
        Ok(None)
    }
}

fn read<B: burn::prelude::Backend>(loss: Tensor<B, 1>) -> anyhow::Result<f64> {
    let data = loss.try_into_data().map_err(reading)?;
    data.iter::<f64>()
        .next()
        .ok_or_else(|| anyhow::anyhow!("the loss has no element"))
}
