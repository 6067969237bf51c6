//! Several devices that act as one Burn device.
//!
//! A [`Mesh`] is a list of devices, opened from what people type (`"cuda:0,1"`). [`DataParallel`]
//! keeps one replica of a model per member of the mesh, runs the forward and backward pass of each
//! part of the batch on its own device and thread, reduces the gradients with CubeCL kernels and
//! hands them to any Burn optimizer: the results are those of one device. [`collective`] holds the
//! reductions themselves, for tensors of any Burn backend.
//!
//! Programs that train on one device only do not need this crate.
//!
//! # Example
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
//! | `evcxr` | [`notebook`]: pictures and tables in Rust notebooks |
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
