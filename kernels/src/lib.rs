//! CubeCL kernels for collectives: the arithmetic of an all-reduce on one device.
//!
//! Who trains with `burn-multigpu` does not need this crate: its collectives call it. It knows
//! nothing of Burn, of devices in the plural, or of transport. It takes a client and regions of
//! that client's buffers.
//!
//! # Example
//!
//! ```
//! use burn_multigpu_kernels::cpu;
//!
//! // The mean of two gradients, as a CPU backend takes it.
//! let (a, b) = ([1.0f32, 2.0, 3.0], [3.0f32, 4.0, 5.0]);
//! let mut mean = [0.0; 3];
//! cpu::weighted_sum(&[&a, &b], &[0.5, 0.5], &mut mean);
//! assert_eq!(mean, [2.0, 3.0, 4.0]);
//! ```
//!
//! # What lives where
//!
//! | module | holds |
//! |---|---|
//! | `sum` | [`weighted_sum`]: the sum of k inputs |
//! | `copy` | [`pack`] and [`unpack`]: many tensors in one flat buffer |
//! | `norm` | [`squared_norm`], in the order that `blocks` sets |
//! | `cast` | [`cast()`] between element types |
//! | `compress` | [`compress16`] and [`decompress16`]: 16 bits by integer operations |
//! | `region` | [`Region`], what the device supports, and the sizing of launches |
//! | `dtype`, `error` | [`FloatDtype`], [`Half`], [`KernelError`] |
//! | [`cpu`] | the same in plain Rust: what CPU backends run and what the kernels are tested against |
//!
//! Each entry point validates its arguments and returns a [`KernelError`]; the launch behind it
//! assumes. A launch that fails later surfaces at the client's next `flush` or `sync`.
//!
//! # Feature flags
//!
//! - `cubecl` (default): the device side. Without it only [`cpu`], [`FloatDtype`] and [`Half`]
//!   remain.

// Without the device side, the links to it in the text above have nowhere to go.
#![cfg_attr(not(feature = "cubecl"), allow(rustdoc::broken_intra_doc_links))]

mod blocks;
pub mod cpu;
mod dtype;

#[cfg(feature = "cubecl")]
mod cast;
#[cfg(feature = "cubecl")]
mod compress;
#[cfg(feature = "cubecl")]
mod copy;
#[cfg(feature = "cubecl")]
mod error;
#[cfg(feature = "cubecl")]
mod norm;
#[cfg(feature = "cubecl")]
mod region;
#[cfg(feature = "cubecl")]
mod sum;

pub use dtype::{FloatDtype, Half};

#[cfg(feature = "cubecl")]
pub use {
    cast::cast,
    compress::{compress16, decompress16},
    copy::{pack, unpack},
    error::KernelError,
    norm::squared_norm,
    region::{Region, supports},
    sum::weighted_sum,
};

#[cfg(all(test, feature = "cubecl"))]
mod tests;
