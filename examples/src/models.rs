//! The two networks that the program trains, as ordinary Burn modules: nothing in them knows of a
//! mesh.

use burn::config::Config;
use burn::module::{Module, ModuleMapper, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::prelude::Backend;
use burn::tensor::activation::relu;
use burn::tensor::{DType, Int, Tensor, TensorData};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::data::{CLASSES, SIDE};

/// Which network.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// Two linear layers.
    Mlp,
    /// Two convolutions and two linear layers.
    #[default]
    Cnn,
}

impl std::fmt::Display for ModelKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Mlp => "mlp",
            Self::Cnn => "cnn",
        })
    }
}

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
    output: Linear<B>,
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
}

/// Two convolutions of 3x3, each with a ReLU and a pooling of 2x2, then two linear layers. There is no batch
/// norm in it: its statistics would be those of a replica's part of the batch.
#[derive(Module, Debug)]
pub struct Cnn<B: Backend> {
    conv1: Conv2d<B>,
    conv2: Conv2d<B>,
    pool: MaxPool2d,
    hidden: Linear<B>,
    output: Linear<B>,
    dropout: Dropout,
}

impl CnnConfig {
    /// The network with Burn's own initial parameters.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Cnn<B> {
        let conv = |channels| {
            Conv2dConfig::new(channels, [3, 3])
                .with_padding(PaddingConfig2d::Same)
                .init(device)
        };
        let pooled = SIDE / 4;
        Cnn {
            conv1: conv([1, self.channels1]),
            conv2: conv([self.channels1, self.channels2]),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            hidden: LinearConfig::new(self.channels2 * pooled * pooled, self.hidden).init(device),
            output: LinearConfig::new(self.hidden, CLASSES).init(device),
            dropout: DropoutConfig::new(self.dropout).init(),
        }
    }
}

impl<B: Backend> Cnn<B> {
    /// The logits, `[items, 10]`, of images, `[items, 28, 28]`.
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
        let x = images.unsqueeze_dim::<4>(1);
        let x = self.pool.forward(relu(self.conv1.forward(x)));
        let x = self.pool.forward(relu(self.conv2.forward(x)));
        let x = relu(self.hidden.forward(x.flatten::<2>(1, 3)));
        self.output.forward(self.dropout.forward(x))
    }
}

/// Either network behind one type, so that commands are written once. Checkpoints hold the network
/// inside, and so a program that knows only [`Cnn`] loads them.
// There is one of it per device, and Burn's `Module` is not for boxes.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum Classifier<B: Backend> {
    /// Two linear layers.
    Mlp(Mlp<B>),
    /// Two convolutions and two linear layers.
    Cnn(Cnn<B>),
}

impl<B: Backend> Classifier<B> {
    /// A network whose initial parameters the seed decides.
    ///
    /// They are drawn from the distribution that Burn draws from, but on the host: the seed of a Burn backend
    /// belongs to the whole process (Flex) or device, and its draws differ from backend to backend.
    /// So the same seed is the same network everywhere, whatever other threads draw.
    pub fn seeded(
        kind: ModelKind,
        dropout: f64,
        seed: u64,
        device: &B::Device,
        dtype: DType,
    ) -> Self {
        let model = match kind {
            ModelKind::Mlp => Self::Mlp(MlpConfig::new().with_dropout(dropout).init(device)),
            ModelKind::Cnn => Self::Cnn(CnnConfig::new().with_dropout(dropout).init(device)),
        };
        model.map(&mut Seeded {
            rng: StdRng::seed_from_u64(seed),
            bound: 0.0,
            dtype,
        })
    }

    /// The logits, `[items, 10]`, of images, `[items, 28, 28]`.
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
        match self {
            Self::Mlp(model) => model.forward(images),
            Self::Cnn(model) => model.forward(images),
        }
    }

    /// The mean cross entropy of the batch.
    pub fn loss(&self, images: Tensor<B, 3>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1> {
        let loss = CrossEntropyLossConfig::new().init(&images.device());
        loss.forward(self.forward(images), targets)
    }

    /// The device of the parameters.
    pub fn device(&self) -> B::Device {
        self.weight().lazy_device()
    }

    /// The element type of the parameters.
    pub fn dtype(&self) -> DType {
        self.weight().val().dtype()
    }

    fn weight(&self) -> &Param<Tensor<B, 2>> {
        match self {
            Self::Mlp(model) => &model.output.weight,
            Self::Cnn(model) => &model.output.weight,
        }
    }

    /// Which of the two it is.
    pub fn kind(&self) -> ModelKind {
        match self {
            Self::Mlp(_) => ModelKind::Mlp,
            Self::Cnn(_) => ModelKind::Cnn,
        }
    }
}

/// Replaces parameters by uniform numbers in `±1/sqrt(inputs)`.
struct Seeded {
    rng: StdRng,
    /// Of the weight seen last: the bias that follows it has the same.
    bound: f32,
    dtype: DType,
}

impl<B: Backend> ModuleMapper<B> for Seeded {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        // Neither the shape nor the device needs Burn's own value, which is never drawn.
        let (dims, device) = (param.lazy_shape().dims::<D>(), param.lazy_device());
        let inputs = match D {
            // Linear layers of Burn hold [inputs, outputs].
            2 => Some(dims[0]),
            4 => Some(dims[1..].iter().product()),
            _ => None,
        };
        if let Some(inputs) = inputs {
            self.bound = 1.0 / (inputs as f32).sqrt();
        }
        let values: Vec<f32> = (0..dims.iter().product())
            .map(|_| self.rng.random_range(-self.bound..=self.bound))
            .collect();
        let value = Tensor::from_data(TensorData::new(values, dims), (&device, self.dtype));
        Param::initialized(param.id, value.require_grad())
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::numeric::parameters;
    use burn::backend::{Autodiff, Flex};
    use burn::module::AutodiffModule;
    use burn::optim::GradientsParams;

    type B = Autodiff<Flex>;

    fn seeded(kind: ModelKind, seed: u64, dtype: DType) -> Classifier<B> {
        Classifier::seeded(kind, 0.25, seed, &Default::default(), dtype)
    }

    #[test]
    fn a_seed_is_a_network() {
        for kind in [ModelKind::Mlp, ModelKind::Cnn] {
            let model = seeded(kind, 7, DType::F32);
            assert_eq!(model.kind(), kind);
            let values = parameters(&model.valid());
            assert_eq!(values, parameters(&seeded(kind, 7, DType::F32).valid()));
            assert_ne!(values, parameters(&seeded(kind, 8, DType::F32).valid()));
            // Biases are as Burn draws them, and not zero.
            assert!(
                values
                    .iter()
                    .all(|(_, tensor)| tensor.iter().any(|&x| x != 0.0))
            );
        }
    }

    #[test]
    fn every_parameter_gets_a_gradient_of_its_own_dtype() {
        let device = Default::default();
        for (kind, dtype) in [(ModelKind::Mlp, DType::F64), (ModelKind::Cnn, DType::F32)] {
            let model = seeded(kind, 7, dtype);
            let images = Tensor::<B, 3>::ones([3, SIDE, SIDE], (&device, dtype));
            let targets = Tensor::from_data([1, 0, 9], &device);
            assert_eq!(model.forward(images.clone()).dims(), [3, CLASSES]);
            let loss = model.loss(images, targets);
            assert_eq!(loss.dtype(), dtype);
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            assert_eq!(grads.len(), parameters(&model.valid()).len());
        }
    }
}
