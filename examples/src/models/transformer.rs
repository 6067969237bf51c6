//! Attention over the patches of an image.

use burn::config::Config;
use burn::module::Module;
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::Backend;
use burn::tensor::{Int, Tensor};

use crate::data::{CLASSES, SIDE};

/// Pixels on a side of a patch.
const PATCH: usize = 4;
/// Patches of an image.
const PATCHES: usize = (SIDE / PATCH) * (SIDE / PATCH);
/// How many levels of brightness a patch can have.
const LEVELS: usize = 16;

/// Configuration of [`Transformer`].
#[derive(Config, Debug)]
pub struct TransformerConfig {
    /// Width of the model.
    #[config(default = 64)]
    pub width: usize,
    /// Width of the layers between the attentions.
    #[config(default = 128)]
    pub hidden: usize,
    /// Heads of each attention.
    #[config(default = 4)]
    pub heads: usize,
    /// Layers.
    #[config(default = 2)]
    pub layers: usize,
    /// Probability with which an activation is dropped in training.
    #[config(default = 0.0)]
    pub dropout: f64,
}

/// The patches of an image as words of a small language: each patch's brightness is a token, its
/// place another, and both are embedded and go through a transformer encoder.
#[derive(Module, Debug)]
pub struct Transformer<B: Backend> {
    tokens: Embedding<B>,
    places: Embedding<B>,
    encoder: TransformerEncoder<B>,
    norm: LayerNorm<B>,
    pub(super) output: Linear<B>,
}

impl TransformerConfig {
    /// The network with Burn's own initial parameters.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Transformer<B> {
        let encoder =
            TransformerEncoderConfig::new(self.width, self.hidden, self.heads, self.layers)
                .with_dropout(self.dropout)
                .with_norm_first(true);
        Transformer {
            tokens: EmbeddingConfig::new(LEVELS, self.width).init(device),
            places: EmbeddingConfig::new(PATCHES, self.width).init(device),
            encoder: encoder.init(device),
            norm: LayerNormConfig::new(self.width).init(device),
            output: LinearConfig::new(self.width, CLASSES).init(device),
        }
    }
}

impl<B: Backend> Transformer<B> {
    /// The logits, `[items, 10]`, of images, `[items, 28, 28]`.
    pub fn forward(&self, images: Tensor<B, 3>) -> Tensor<B, 2> {
        let device = images.device();
        let places = Tensor::<B, 1, Int>::arange(0..PATCHES as i64, &device).unsqueeze::<2>();
        let x = self.tokens.forward(levels(images)) + self.places.forward(places);
        let x = self.encoder.forward(TransformerEncoderInput::new(x));
        let x = self.norm.forward(x).mean_dim(1).squeeze_dim::<2>(1);
        self.output.forward(x)
    }
}

/// The brightness of each patch, `[items, patches]`, as a number below [`LEVELS`].
fn levels<B: Backend>(images: Tensor<B, 3>) -> Tensor<B, 2, Int> {
    let [items, ..] = images.dims();
    let side = SIDE / PATCH;
    let patches = images
        .reshape([items, side, PATCH, side, PATCH])
        .swap_dims(2, 3)
        .reshape([items, PATCHES, PATCH * PATCH]);
    // Pixels are about 0 and at most a few units away from it, however they were normalized.
    let mean = patches.mean_dim(2).squeeze_dim::<2>(2);
    let level = (mean.detach() + 0.5) * (LEVELS as f64 / 3.5);
    level.int().clamp(0, LEVELS as i64 - 1)
}
