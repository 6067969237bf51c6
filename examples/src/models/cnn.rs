//! Two convolutions and two linear layers.

use burn::config::Config;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{
    BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig, PaddingConfig2d,
};
use burn::prelude::Backend;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;

use crate::data::{CLASSES, SIDE};

/// Configuration of [`Cnn`].
#[derive(Config, Debug)]
pub struct CnnConfig {
    /// Channels after the first convolution.
    #[config(default = 16)]
    pub channels1: usize,
    /// Channels after the second convolution.
    #[config(default = 32)]
    pub channels2: usize,
    /// Width of the hidden linear layer.
    #[config(default = 128)]
    pub hidden: usize,
    /// Probability with which a hidden activation is dropped in training.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether each convolution is followed by a batch norm.
    #[config(default = false)]
    pub batch_norm: bool,
}

/// Two convolutions of 3x3, each with a ReLU and a pooling of 2x2, then two linear layers.
#[derive(Module, Debug)]
pub struct Cnn<B: Backend> {
    conv1: Conv2d<B>,
    norm1: Option<BatchNorm<B>>,
    conv2: Conv2d<B>,
    norm2: Option<BatchNorm<B>>,
    pool: MaxPool2d,
    hidden: Linear<B>,
    pub(super) output: Linear<B>,
    dropout: Dropout,
}

impl CnnConfig {
    /// The network with Burn's own initial parameters.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Cnn<B> {
        let conv = |channels| {
            Conv2dConfig::new(channels, [3, 3])
                .with_padding(PaddingConfig2d::Same)
                // The norm takes away what a bias adds, and its gradient would be rounding alone.
                .with_bias(!self.batch_norm)
                .init(device)
        };
        let norm = |channels| {
            self.batch_norm
                .then(|| BatchNormConfig::new(channels).init(device))
        };
        let pooled = SIDE / 4;
        Cnn {
            conv1: conv([1, self.channels1]),
            norm1: norm(self.channels1),
            conv2: conv([self.channels1, self.channels2]),
            norm2: norm(self.channels2),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            hidden: LinearConfig::new(self.channels2 * pooled * pooled, self.hidden).init(device),
            output: LinearConfig::new(self.hidden, CLASSES).init(device),
            dropout: DropoutConfig::new(self.dropout).init(),
        }
    }
}

impl<B: Backend> Cnn<B> {
    /// Whether each convolution is followed by a batch norm.
    pub fn has_batch_norm(&self) -> bool {
        self.norm1.is_some()
    }

    /// The logits, `[items, 10]`, of images, `[items, 28, 28]`.
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
        let x = images.unsqueeze_dim::<4>(1);
        let x = normed(&self.norm1, self.conv1.forward(x));
        let x = self.pool.forward(relu(x));
        let x = normed(&self.norm2, self.conv2.forward(x));
        let x = self.pool.forward(relu(x));
        let x = relu(self.hidden.forward(x.flatten::<2>(1, 3)));
        self.output.forward(self.dropout.forward(x))
    }
}

fn normed<B: Backend>(norm: &Option<BatchNorm<B>>, x: Tensor<B, 4>) -> Tensor<B, 4> {
    match norm {
        Some(norm) => norm.forward(x),
        None => x,
    }
}
