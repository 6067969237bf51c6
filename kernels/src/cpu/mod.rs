//! The operations in plain Rust, with the semantics of the kernels.
//!
//! CPU backends run these, and the kernels are tested against them. The order of operations is the
//! kernels' too: a device that does not contract to FMA gives the same bits.
//!
//! `float` holds the element types, `bits` the 16-bit conversions, `ops` the operations.

mod bits;
mod float;
mod ops;

pub use float::Float;
pub use ops::{cast, compress16, decompress16, pack, squared_norm, unpack, weighted_sum};
