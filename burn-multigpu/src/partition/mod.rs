//! How each of Burn's operations is done in parts: pure functions of the operation and the layouts
//! of its inputs, with no device and no thread.
//!
//! | file | what lives there |
//! |---|---|
//! | `ir.rs` | the table of all operations: their names, and their tensors for rewriting |
//! | `inner.rs` | operations of the inner backend that the representation lacks |
//! | `rule.rs` | what a rule says: factors along which an operation can be cut, and linearity |
//! | `rules/` | the rules, one file per family of operations |
//! | `plan.rs` | from a rule and the layouts at hand to what is moved and what each member runs |
//! | `local.rs` | an operation as one member runs it |

pub(crate) mod inner;
pub(crate) mod ir;
pub(crate) mod local;
pub(crate) mod plan;
pub(crate) mod rule;
mod rules;
