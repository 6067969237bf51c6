//! Meshes: devices that act as one, opened from what people type.
//!
//! | file | what lives there |
//! |---|---|
//! | `spec/` | [`MeshSpec`]: reading `cuda:0,1`, with no device touched |
//! | `discover/` | [`MeshBackend`]: which devices a backend has, one file per family |
//! | `member.rs` | [`Member`]: what a mesh knows of each device, and the table of them |
//! | `describe.rs` | what can be told of a device that the caller made |
//! | `base.rs` | [`Mesh`] itself |
//! | `messages.rs` | the texts of this module's errors |
//!
//! A spec knows no devices, discovery knows no meshes, and nothing here touches CubeCL before the
//! driver was asked: a CUDA call without a driver panics on one of CubeCL's threads.

mod base;
mod describe;
mod discover;
pub(crate) mod member;
pub(crate) mod messages;
mod spec;
#[cfg(all(test, feature = "flex"))]
mod tests;

pub(crate) use base::{DecoratorInfo, MeshCore};
pub use base::{Mesh, MeshStats};
#[cfg(feature = "cubecl")]
pub use discover::MeshRuntime;
#[cfg(feature = "cuda")]
pub use discover::{CudaLibraries, cuda_libraries};
pub use discover::{DeviceInfo, MeshBackend};
pub use member::Member;
pub use spec::{MEMBERS_MAX, Members, MeshSpec, VARIABLE};
