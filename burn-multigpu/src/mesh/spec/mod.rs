//! What people type to name devices, read without touching a device.
//!
//! `base.rs` holds [`MeshSpec`], `parse.rs` the reading.

mod base;
mod parse;
#[cfg(test)]
mod tests;

pub(crate) use base::compiled;
pub(super) use base::in_variable;
pub use base::{MEMBERS_MAX, Members, MeshSpec, VARIABLE};
