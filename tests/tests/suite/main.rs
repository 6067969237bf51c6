//! The integration tests in f32: one binary, since each links Burn again.
#![allow(clippy::unwrap_used, missing_docs)]

mod collectives;
mod engine;
mod failures;
mod randomness;
mod vulkan;
