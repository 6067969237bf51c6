//! The networks that the program trains, as ordinary Burn modules: nothing in them knows of a mesh.

mod cnn;
mod mlp;
mod transformer;

pub use cnn::{Cnn, CnnConfig};
pub use mlp::{Mlp, MlpConfig};
pub use transformer::{Transformer, TransformerConfig};

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::prelude::Backend;
use burn::tensor::{DType, Int, Tensor, TensorData};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Which network.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, Default,
)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Two linear layers.
    Mlp,
    /// Two convolutions and two linear layers.
    #[default]
    Cnn,
    /// The same with a batch norm after each convolution.
    CnnNorm,
    /// Attention over the patches of an image.
    Transformer,
}

impl std::fmt::Display for ModelKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Mlp => "mlp",
            Self::Cnn => "cnn",
            Self::CnnNorm => "cnn-norm",
            Self::Transformer => "transformer",
        })
    }
}

/// Any of the networks behind one type, so that commands are written once. Checkpoints hold the network
/// inside, and so a program that knows only [`Cnn`] loads them.
// There is one of it per device, and Burn's `Module` is not for boxes.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum Classifier<B: Backend> {
    /// Two linear layers.
    Mlp(Mlp<B>),
    /// Two convolutions and two linear layers.
    Cnn(Cnn<B>),
    /// Attention over the patches of an image.
    Transformer(Transformer<B>),
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
            ModelKind::Cnn | ModelKind::CnnNorm => {
                let config = CnnConfig::new()
                    .with_dropout(dropout)
                    .with_batch_norm(kind == ModelKind::CnnNorm);
                Self::Cnn(config.init(device))
            }
            ModelKind::Transformer => {
                let config = TransformerConfig::new().with_dropout(dropout);
                Self::Transformer(config.init(device))
            }
        };
        model.map(&mut Seeded {
            rng: StdRng::seed_from_u64(seed),
            bound: 0.0,
            dtype,
            within: Vec::new(),
        })
    }

    /// The logits, `[items, 10]`, of images, `[items, 28, 28]`.
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
        match self {
            Self::Mlp(model) => model.forward(images),
            Self::Cnn(model) => model.forward(images),
            Self::Transformer(model) => model.forward(images),
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
            Self::Transformer(model) => &model.output.weight,
        }
    }

    /// Which of them it is.
    pub fn kind(&self) -> ModelKind {
        match self {
            Self::Mlp(_) => ModelKind::Mlp,
            Self::Cnn(model) if model.has_batch_norm() => ModelKind::CnnNorm,
            Self::Cnn(_) => ModelKind::Cnn,
            Self::Transformer(_) => ModelKind::Transformer,
        }
    }
}

/// Replaces parameters by uniform numbers in `±1/sqrt(inputs)`; norms keep their ones and zeros.
struct Seeded {
    rng: StdRng,
    /// Of the weight seen last: the bias that follows it has the same.
    bound: f32,
    dtype: DType,
    /// The modules that the parameter is in, from the outside in.
    within: Vec<String>,
}

impl<B: Backend> ModuleMapper<B> for Seeded {
    fn enter_module(&mut self, _name: &str, container_type: &str) {
        self.within.push(container_type.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.within.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        if self
            .within
            .last()
            .is_some_and(|name| name.ends_with("Norm"))
        {
            return param.map(|value| {
                // By way of the data: a cast parameter would be a result, and no leaf that gets a
                // gradient.
                let (data, device) = (value.to_data(), value.device());
                Tensor::from_data(data, (&device, self.dtype))
                    .set_require_grad(value.is_require_grad())
            });
        }
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
    use crate::data::{CLASSES, SIDE};
    use crate::numeric::parameters;
    use burn::backend::{Autodiff, Flex};
    use burn::module::AutodiffModule;
    use burn::optim::GradientsParams;

    type B = Autodiff<Flex>;

    const KINDS: [ModelKind; 4] = [
        ModelKind::Mlp,
        ModelKind::Cnn,
        ModelKind::CnnNorm,
        ModelKind::Transformer,
    ];

    fn seeded(kind: ModelKind, seed: u64, dtype: DType) -> Classifier<B> {
        Classifier::seeded(kind, 0.25, seed, &Default::default(), dtype)
    }

    #[test]
    fn a_seed_is_a_network() {
        for kind in KINDS {
            let model = seeded(kind, 7, DType::F32);
            assert_eq!(model.kind(), kind);
            let values = parameters(&model.valid());
            assert_eq!(values, parameters(&seeded(kind, 7, DType::F32).valid()));
            assert_ne!(values, parameters(&seeded(kind, 8, DType::F32).valid()));
            // Biases are as Burn draws them, and not zero; those of norms are.
            let zeros = values
                .iter()
                .filter(|(_, tensor)| tensor.iter().all(|&x| x == 0.0));
            let norms = match kind {
                ModelKind::Mlp | ModelKind::Cnn => 0,
                // The shift and the running mean of each.
                ModelKind::CnnNorm => 4,
                ModelKind::Transformer => 5,
            };
            assert_eq!(zeros.count(), norms, "{kind}");
        }
    }

    #[test]
    fn every_parameter_gets_a_gradient_of_its_own_dtype() {
        let device = Default::default();
        for (kind, dtype) in [
            (ModelKind::Mlp, DType::F64),
            (ModelKind::Cnn, DType::F32),
            (ModelKind::Transformer, DType::F64),
        ] {
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
