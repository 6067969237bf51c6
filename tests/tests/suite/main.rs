//! The integration tests in f32: one binary, since each links Burn again.
#![allow(clippy::unwrap_used, missing_docs)]

mod collectives;
#[cfg(feature = "gpu")]
mod cuda;
mod decorator;
mod device;
mod engine;
mod failures;
mod learner;
mod messages;
mod mixed;
mod randomness;
mod verify;
mod vulkan;
