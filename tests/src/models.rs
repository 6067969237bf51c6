//! Small models with what makes replicas hard: dropout, batch norm, buffers, frozen, shared and
//! unused parameters.

use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor};

/// Draws the initial values now. Burn leaves that to the first use, and a clone made before it draws
/// values of its own.
fn initialized<B: Backend, M: Module<B>>(module: M) -> M {
    struct Draw;
    impl<B: Backend> ModuleVisitor<B> for Draw {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            param.val();
        }
    }
    module.visit(&mut Draw);
    module
}

/// Two linear layers with dropout between them.
#[derive(Module, Debug)]
pub struct Mlp<B: Backend> {
    first: Linear<B>,
    second: Linear<B>,
    dropout: Dropout,
}

impl<B: Backend> Mlp<B> {
    /// From `inputs` features to `outputs`.
    pub fn new(inputs: usize, outputs: usize, dropout: f64, device: &B::Device) -> Self {
        initialized(Self {
            first: LinearConfig::new(inputs, 16).init(device),
            second: LinearConfig::new(16, outputs).init(device),
            dropout: DropoutConfig::new(dropout).init(),
        })
    }

    /// `[batch, inputs]` to `[batch, outputs]`.
    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        let hidden = self.dropout.forward(relu(self.first.forward(x)));
        self.second.forward(hidden)
    }
}

/// A small convolutional network, with batch norm if wanted.
#[derive(Module, Debug)]
pub struct Cnn<B: Backend> {
    conv: Conv2d<B>,
    norm: Option<BatchNorm<B>>,
    pool: MaxPool2d,
    head: Linear<B>,
}

impl<B: Backend> Cnn<B> {
    /// For images of one channel and `side` pixels, `side` even.
    pub fn new(side: usize, outputs: usize, norm: bool, device: &B::Device) -> Self {
        let half = (side - 2) / 2;
        initialized(Self {
            conv: Conv2dConfig::new([1, 4], [3, 3]).init(device),
            norm: norm.then(|| BatchNormConfig::new(4).init(device)),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            head: LinearConfig::new(4 * half * half, outputs).init(device),
        })
    }

    /// `[batch, side * side]` to `[batch, outputs]`.
    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        let [batch, pixels] = x.dims();
        let side = pixels.isqrt();
        let mut x = self.conv.forward(x.reshape([batch, 1, side, side]));
        if let Some(norm) = &self.norm {
            x = norm.forward(x);
        }
        let x = self.pool.forward(relu(x));
        self.head.forward(x.flatten(1, 3))
    }

    /// The running mean and variance.
    pub fn running(&self) -> Option<(Tensor<B, 1>, Tensor<B, 1>)> {
        let norm = self.norm.as_ref()?;
        Some((
            norm.running_mean.value_sync(),
            norm.running_var.value_sync(),
        ))
    }
}

/// Parameters that do not all behave alike.
#[derive(Module, Debug)]
pub struct Odd<B: Backend> {
    /// Always used.
    pub used: Linear<B>,
    /// Used for items whose first feature is positive only.
    pub sometimes: Linear<B>,
    /// Never used.
    pub never: Linear<B>,
    /// Takes part, but does not learn.
    pub frozen: Linear<B>,
    /// An integer buffer, added to the output.
    pub offset: Param<Tensor<B, 1, Int>>,
    /// The same parameter as in `tied_again`.
    pub tied: Linear<B>,
    /// The same parameter as in `tied`.
    pub tied_again: Linear<B>,
}

impl<B: Backend> Odd<B> {
    /// From 4 features to 4.
    pub fn new(device: &B::Device) -> Self {
        let linear = || LinearConfig::new(4, 4).init(device);
        // The two places hold one tensor only once it is there.
        let tied: Linear<B> = initialized(linear());
        initialized(Self {
            used: linear(),
            sometimes: linear(),
            never: linear(),
            frozen: linear().no_grad(),
            offset: Param::initialized(
                burn::module::ParamId::new(),
                Tensor::from_ints([1, 2, 3, 4], device),
            ),
            tied_again: tied.clone(),
            tied,
        })
    }

    /// `[batch, 4]` to `[batch, 4]`; `sometimes` decides whether that layer takes part.
    pub fn forward(&self, x: Tensor<B, 2>, sometimes: bool) -> Tensor<B, 2> {
        let mut y = self.used.forward(x.clone()) + self.frozen.forward(x.clone());
        if sometimes {
            y = y + self.sometimes.forward(x);
        }
        let y = self.tied_again.forward(relu(self.tied.forward(y)));
        y + self.offset.val().float().unsqueeze::<2>()
    }
}
