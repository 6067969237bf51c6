//! Every operation of Burn's intermediate representation, on a mesh and on one device.
//!
//! Each case is a small program that is generic over the backend. [`run`](run::run) runs it on one
//! device and on meshes of several members, with its inputs laid out in all ways that the decorator
//! knows, and compares the results. The table in the book, of what is done in parts and how, is
//! made from the same cases.
//!
//! | file | what lives there |
//! |---|---|
//! | `place.rs` | where inputs come from, and the modes in which they are laid out |
//! | `devices.rs` | the two places: one device, and a mesh |
//! | `case.rs` | what a case is |
//! | `compare.rs` | when two results are the same |
//! | `run.rs` | running all cases in all modes |
//! | `exceptions.rs` | operations that no case meets, and why |
//! | `table.rs` | the table in the book |
//! | `elementwise.rs`, `matmul.rs`, `reduce.rs`, `shape.rs`, `index.rs`, `module.rs`, `inner.rs` | the cases, grouped as the rules are |
//! | `create.rs`, `quantized.rs`, `transfer.rs` | the cases of operations that have no rule, and of moves |

mod case;
mod compare;
mod create;
mod devices;
mod elementwise;
mod exceptions;
mod index;
mod inner;
mod matmul;
mod module;
mod place;
mod quantized;
mod reduce;
pub mod run;
mod shape;
mod table;
mod transfer;

pub use exceptions::EXCEPTIONS;
pub use table::{MARKER, contradictions, render};

use burn::tensor::backend::Backend;
use case::Case;
use place::Place;

/// All cases.
fn all<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut cases = elementwise::list();
    cases.extend(matmul::list());
    cases.extend(reduce::list());
    cases.extend(shape::list());
    cases.extend(index::list());
    cases.extend(module::list());
    cases.extend(inner::list());
    cases.extend(create::list());
    cases.extend(quantized::list());
    cases.extend(transfer::list());
    cases
}
