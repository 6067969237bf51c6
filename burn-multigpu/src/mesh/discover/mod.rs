//! Which devices a backend has.
//!
//! | file | what lives there |
//! |---|---|
//! | `base.rs` | [`MeshBackend`], [`DeviceInfo`], choosing from what is there |
//! | `flex.rs` | the CPU |
//! | `cube.rs` | all CubeCL backends, by their runtime: [`MeshRuntime`] |
//! | `cuda/`, `wgpu.rs`, `hip.rs` | one CubeCL runtime each |
//! | `wrappers.rs` | `Fusion` and `Autodiff`, which have the devices of the backend inside |

mod base;
#[cfg(feature = "cubecl")]
mod cube;
#[cfg(feature = "cuda")]
pub(super) mod cuda;
#[cfg(feature = "flex")]
pub(super) mod flex;
#[cfg(feature = "rocm")]
mod hip;
#[cfg(feature = "wgpu")]
pub(super) mod wgpu;
mod wrappers;

pub use base::{DeviceInfo, MeshBackend};
#[cfg(feature = "cuda")]
pub(super) use base::{choose, visible_devices};
#[cfg(feature = "cubecl")]
pub use cube::MeshRuntime;
#[cfg(feature = "cuda")]
pub use cuda::{CudaLibraries, cuda_libraries};
