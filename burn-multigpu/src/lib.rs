//! Several devices that act as one Burn device.
//!
//! A [`Mesh`] is a list of devices, opened from what people type (`"cuda:0,1"`). There are three ways
//! to use one, and each gives the results of one device:
//!
//! - [`MultiGpu`] is a backend for any Burn program: every operation is done in parts, and the program
//!   stays as it is but for two lines.
//! - [`DataParallel`] keeps one replica of a model per member of the mesh, runs the forward and
//!   backward pass of each part of the batch on its own device and thread, reduces the gradients with
//!   CubeCL kernels and hands them to any Burn optimizer.
//! - `MultiGpuStrategy` (feature `train`) does the same for burn-train's `Learner`.
//!
//! [`collective`] holds the reductions themselves, for tensors of any Burn backend.
//!
//! Programs that train on one device only do not need this crate.
//!
//! # Examples
//!
//! A mesh as one device:
//!
//! ```
//! use burn::backend::{Autodiff, Flex};
//! use burn::nn::{Linear, LinearConfig};
//! use burn::optim::{GradientsParams, Optimizer, SgdConfig};
//! use burn::tensor::Tensor;
//! use burn_multigpu::{Mesh, MultiGpu};
//!
//! type B = Autodiff<MultiGpu<Flex>>; // was: Autodiff<Flex>
//! let device = Mesh::<Flex>::open("flex:0,1")?.device(); // was: Default::default()
//!
//! let mut model: Linear<B> = LinearConfig::new(2, 1).init(&device);
//! let batch = Tensor::<B, 2>::from_floats([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], &device);
//! let gradients = model.forward(batch).powf_scalar(2.0).mean().backward();
//! let gradients = GradientsParams::from_grads(gradients, &model);
//! model = SgdConfig::new().init().step(0.1, model, gradients);
//! assert_eq!(model.weight.dims(), [2, 1]);
//! # Ok::<(), burn_multigpu::Error>(())
//! ```
//!
//! A replica on each device:
//!
//! ```
//! use burn::backend::{Autodiff, Flex};
//! use burn::nn::{Linear, LinearConfig, loss::{MseLoss, Reduction}};
//! use burn::optim::SgdConfig;
//! use burn::tensor::{Distribution, Tensor};
//! use burn_multigpu::{DataParallel, Mesh, Step};
//!
//! type B = Autodiff<Flex>;
//!
//! let mesh = Mesh::<Flex>::open("flex:0,1")?; // on two GPUs: Mesh::<Cuda>::open("cuda:0,1")
//! let device = &mesh.devices()[0];
//! let model: Linear<B> = LinearConfig::new(4, 1).init(device);
//! let mut engine = DataParallel::<B, _>::new(model, &mesh)?.with_optimizer(SgdConfig::new().init());
//!
//! let x = Tensor::<B, 2>::random([10, 4], Distribution::Default, device);
//! let y = x.clone().sum_dim(1);
//! let mut losses = Vec::new();
//! for _ in 0..20 {
//!     let out = engine.train_step(0.1, (x.clone(), y.clone()), |model: &Linear<B>, (x, y)| {
//!         Step::new(MseLoss::new().forward(model.forward(x), y, Reduction::Mean))
//!     })?;
//!     losses.push(out.loss()?);
//! }
//! assert!(losses[19] < losses[0]);
//! # Ok::<(), burn_multigpu::Error>(())
//! ```
//!
//! # Feature flags
//!
//! | feature | what it adds |
//! |---|---|
//! | `flex` (default) | Burn's CPU backend; its devices are logical ones, for tests and machines without a GPU |
//! | `cuda` | NVIDIA; driver, NVRTC and NCCL are loaded at run time |
//! | `wgpu`, `vulkan`, `metal` | any GPU through wgpu |
//! | `rocm` | AMD |
//! | `train` | [`MultiGpuStrategy`] for burn-train's `Learner` |
//! | `evcxr` | the module `notebook`: pictures and tables in Rust notebooks |
//! | `fusion`, `autotune` (default) | as in Burn, which has both by default; without `fusion` here, a Burn with it has backends that this crate does not know |

pub mod backend;
pub mod collective;
pub mod data_parallel;
mod error;
pub mod layout;
pub mod mesh;
#[cfg(feature = "evcxr")]
pub mod notebook;
mod partition;
pub mod shard;
mod table;
#[cfg(feature = "train")]
pub mod train;
mod worker;

pub use backend::{MeshDevice, MultiGpu};
pub use data_parallel::{
    Batch, Compression, DataParallel, Gather, Reduction, RunningStats, Step, StepOutput, join_means,
};
pub use error::{Error, Result};
pub use mesh::{Mesh, MeshBackend, MeshSpec, MeshStats};
#[cfg(feature = "train")]
pub use train::{MultiGpuStrategy, OptimizerPlacement};

/// What the macros of this crate refer to.
#[doc(hidden)]
pub mod __private {
    pub use burn::tensor::backend::Backend;
}
