//! What one replica does in a step, on its member's thread.

use super::batch::Batch;
use super::grads::{self, GradList};
use super::replica::{self, Model};
use super::step::Step;
use crate::collective::Transfer;
use crate::error::{Error, Result};
use burn::module::{AutodiffModule, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Distribution, Tensor};
use burn_backend::tensor::FloatTensor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A replica: the model, which is gone only while an update that failed had it.
#[derive(Debug)]
pub(crate) struct Replica<M> {
    model: Arc<Mutex<Option<M>>>,
}

impl<M> Clone for Replica<M> {
    fn clone(&self) -> Self {
        Self {
            model: self.model.clone(),
        }
    }
}

impl<M> Replica<M> {
    pub(crate) fn new(model: M) -> Self {
        Self {
            model: Arc::new(Mutex::new(Some(model))),
        }
    }

    /// The model. A panic of an earlier job does not matter here: what it may have left behind is
    /// either the model as it was or none.
    fn lock(&self) -> MutexGuard<'_, Option<M>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, model: M) {
        *self.lock() = Some(model);
    }

    /// Runs a function on the model.
    pub(crate) fn with<T>(&self, function: impl FnOnce(&M) -> Result<T>) -> Result<T> {
        function(self.lock().as_ref().ok_or_else(lost)?)
    }

    /// Replaces the model by what the function makes of it. After a panic the model is lost.
    pub(crate) fn update<T>(&self, function: impl FnOnce(M) -> (M, T)) -> Result<T> {
        let mut slot = self.lock();
        let (model, result) = function(slot.take().ok_or_else(lost)?);
        *slot = Some(model);
        Ok(result)
    }
}

fn lost() -> Error {
    Error::Diverged {
        cause: "the update of a replica failed halfway".to_string(),
    }
}

/// The random stream of one replica in one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) seed: u64,
    /// Whether to find out if the forward pass draws random numbers at all.
    pub(crate) probe: bool,
}

/// A forward pass that waits for its backward pass.
#[derive(Debug)]
pub(crate) struct Forward<B: AutodiffBackend, T> {
    step: Step<B, T>,
    items: usize,
    weight: f64,
    /// Whether the forward pass drew random numbers, if that was asked.
    pub(crate) drew: Option<bool>,
}

/// What a replica computed.
#[derive(Debug)]
pub(crate) struct Local<B: AutodiffBackend, T> {
    pub(crate) loss: Tensor<B::InnerBackend, 1>,
    pub(crate) output: T,
    pub(crate) weight: f64,
    pub(crate) items: usize,
    pub(crate) grads: GradList<B>,
    pub(crate) states: Vec<FloatTensor<B::InnerBackend>>,
}

pub(crate) fn forward<B, M, I, T>(
    replica: &Replica<Model<M>>,
    device: &B::Device,
    transfer: Transfer,
    batch: I,
    function: &(impl Fn(&M, I) -> Step<B, T> + ?Sized),
    draws: Option<Draws>,
) -> Result<Forward<B, T>>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    I: Batch<B>,
{
    replica.update(|model| (replica::fresh_leaves(model), ()))?;
    let (items, weight) = (batch.items(), batch.weight());
    let batch = batch.to_device(device, transfer);
    // Burn's generators are global to the process, so seeding sets the stream of whoever draws
    // next; the engine lets only one replica draw at a time.
    let untouched = draws.and_then(|draws| {
        let first = draws.probe.then(|| {
            B::seed(device, draws.seed);
            first_draw::<B>(device)
        });
        B::seed(device, draws.seed);
        first
    });
    let step = replica.with(|model| Ok(function(&model.module, batch)))?;
    let elements = step.loss.dims()[0];
    if elements != 1 {
        return Err(Error::LossShape { elements });
    }
    let drew = untouched.map(|untouched| first_draw::<B>(device) != untouched);
    Ok(Forward {
        step,
        items,
        weight,
        drew,
    })
}

/// The next numbers of the backend's generator.
fn first_draw<B: Backend>(device: &B::Device) -> Vec<f32> {
    Tensor::<B, 1>::random([4], Distribution::Default, device)
        .into_data()
        .iter::<f32>()
        .collect()
}

pub(crate) fn backward<B, M, T>(
    replica: &Replica<Model<M>>,
    forward: Forward<B, T>,
    states: &[ParamId],
) -> Result<Local<B, T>>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
{
    let Forward {
        step,
        items,
        weight,
        ..
    } = forward;
    let loss = step.loss.clone().inner();
    let gradients = step.loss.backward();
    replica.with(|Model { module: model, .. }| {
        let grads = grads::take(model, GradientsParams::from_grads(gradients, model))?;
        let states = replica::take_states(model, states);
        Ok(Local {
            loss,
            output: step.output,
            weight: step.weight.unwrap_or(weight),
            items,
            grads,
            states,
        })
    })
}
