//! What a notebook uses, in one line: Burn's prelude, the backends, the optimizers, and this crate.
//!
//! It brings `burn` itself as well, which is what Burn's derives write, so that a notebook names one
//! dependency.
//!
//! ```
//! use burn_multigpu::notebook::prelude::*;
//!
//! #[derive(Module, Debug)]
//! struct Model<B: Backend> {
//!     linear: nn::Linear<B>,
//! }
//!
//! let mesh = Mesh::<Flex>::open("flex:0,1")?;
//! let device = mesh.device();
//! let model = Model::<Autodiff<MultiGpu<Flex>>> {
//!     linear: nn::LinearConfig::new(4, 2).init(&device),
//! };
//! assert_eq!(model.num_params(), 10);
//! # Ok::<(), burn_multigpu::Error>(())
//! ```

pub use super::{Chart, ConfusionMatrix, Explanation, ImageGrid, LayoutPicture, classes};
pub use crate::layout::Layout;
pub use crate::{DataParallel, Error, Mesh, MeshDevice, MultiGpu, Step};
pub use burn;
pub use burn::backend::Autodiff;
#[cfg(feature = "cuda")]
pub use burn::backend::Cuda;
#[cfg(feature = "flex")]
pub use burn::backend::Flex;
#[cfg(feature = "wgpu")]
pub use burn::backend::Wgpu;
pub use burn::module::AutodiffModule;
pub use burn::nn::loss::CrossEntropyLossConfig;
pub use burn::optim::{AdamConfig, GradientsParams, Optimizer, SgdConfig};
pub use burn::prelude::*;
pub use burn::tensor::activation::relu;
pub use burn::tensor::backend::AutodiffBackend;

#[cfg(feature = "train")]
pub use super::History;
#[cfg(feature = "train")]
pub use crate::MultiGpuStrategy;
