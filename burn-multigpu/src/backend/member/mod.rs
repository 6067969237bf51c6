//! A member's thread: it runs the commands of the session on one device, in their order.
//!
//! | file | what lives there |
//! |---|---|
//! | `worker.rs` | the loop, and what happens when something panics |
//! | `run.rs` | operations, uploads, random numbers, reads |
//! | `exchange.rs` | what members do together: moving parts, adding up sums |
//! | `primitive.rs` | tensors of any kind, and moving them between devices |
//! | `inner.rs` | operations that the router's runner has no name for |
//! | `quantized.rs` | operations on quantized tensors, which the router's runner lacks |
//! | `host.rs` | parts of data in host memory |

mod exchange;
pub(super) mod host;
mod inner;
mod primitive;
mod quantized;
mod run;
mod worker;

pub(super) use primitive::Primitive;
pub(super) use worker::Worker;
