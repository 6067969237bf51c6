//! The judge: the same program on one device, in plain Burn.

use crate::compare;
use burn::module::AutodiffModule;
use burn::optim::{GradientsParams, Optimizer};
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Distribution, Int, Tensor, TensorData};

/// What one step gave.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The loss before the update.
    pub loss: f64,
    /// The gradients, in visiting order.
    pub grads: Vec<Option<Vec<f64>>>,
}

/// One step of a plain Burn training loop.
pub fn step<B, M, O>(
    model: M,
    optimizer: &mut O,
    lr: f64,
    loss: impl FnOnce(&M) -> Tensor<B, 1>,
) -> (M, Outcome)
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    O: Optimizer<M, B>,
{
    let loss = loss(&model);
    let value = compare::values(loss.clone())[0];
    let grads = GradientsParams::from_grads(loss.backward(), &model);
    let outcome = Outcome {
        loss: value,
        grads: compare::grads(&model, &grads),
    };
    (optimizer.step(lr, model, grads), outcome)
}

/// Classification data: `[items, features]` and classes below `classes`.
pub fn batch<B: AutodiffBackend>(
    items: usize,
    features: usize,
    classes: i64,
    device: &B::Device,
) -> (Tensor<B, 2>, Tensor<B, 1, Int>) {
    let x = Tensor::random([items, features], Distribution::Normal(0.0, 1.0), device);
    let targets: Vec<i64> = (0..items as i64).map(|i| (i * 7 + 3) % classes).collect();
    (
        x,
        Tensor::from_data(TensorData::new(targets, [items]), device),
    )
}
