//! The operations of the decorator.
//!
//! [`MultiGpu`] takes them from [`burn_router::BackendRouter`], which turns each into an
//! [`OperationIr`](burn_ir::OperationIr) and hands it to the tensor's client, here the one of the
//! mesh. It is a type of its own because a few operations of the router are not those of the
//! backend inside: data read back is converted to the default element type (an `f64` tensor
//! arrives as `f32`), clients come from a table of the process that keeps them for ever, some
//! index types do not fit, and quantized tensors and Fourier transforms are missing. Those are
//! written here; the rest is forwarded.
//!
//! Operations that are in neither list keep the default of Burn's trait, which is made of the
//! ones that are.
//!
//! | file | what it holds |
//! |---|---|
//! | `backend.rs` | [`MultiGpu`] and the traits without operations of their own |
//! | `forward.rs` | the macro that forwards a list of signatures to the router |
//! | `create.rs` | how tensors come to be on a mesh |
//! | `transfer.rs` | how they leave it: reads and moves to another mesh |
//! | `float.rs`, `int.rs`, `bool.rs` | the operations of each kind of tensor |
//! | `inner.rs` | operations that travel under a name of their own: activations |
//! | `module.rs` | layers: convolutions, pooling, attention, Fourier transforms |
//! | `quantized.rs` | quantized tensors |

mod backend;
mod bool;
mod create;
mod float;
mod forward;
mod inner;
mod int;
mod module;
mod quantized;
mod transfer;

pub use backend::MultiGpu;
