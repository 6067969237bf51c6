//! Two linear layers.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig};
use burn::prelude::Backend;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;

use crate::data::{CLASSES, SIDE};

/// Configuration of [`Mlp`].
#[derive(Config, Debug)]
pub struct MlpConfig {
    /// Width of the hidden layer.
    #[config(default = 256)]
    pub hidden: usize,
    /// Probability with which a hidden activation is dropped in training.
    #[config(default = 0.0)]
    pub dropout: f64,
}

/// 784 pixels, a hidden layer, ten digits.
#[derive(Module, Debug)]
pub struct Mlp<B: Backend> {
    hidden: Linear<B>,
    pub(super) output: Linear<B>,
    dropout: Dropout,
}

impl MlpConfig {
    /// The network with Burn's own initial parameters.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Mlp<B> {
        Mlp {
            hidden: LinearConfig::new(SIDE * SIDE, self.hidden).init(device),
            output: LinearConfig::new(self.hidden, CLASSES).init(device),
            dropout: DropoutConfig::new(self.dropout).init(),
        }
    }
}

impl<B: Backend> Mlp<B> {
    /// The logits, `[items, 10]`, of images, `[items, 28, 28]`.
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
        let x = relu(self.hidden.forward(images.flatten::<2>(1, 2)));
        self.output.forward(self.dropout.forward(x))
    }
}
