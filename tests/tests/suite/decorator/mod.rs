//! The backend decorator: a mesh as one Burn device.
//!
//! | file | what is tested |
//! |---|---|
//! | `layouts.rs` | where tensors lie, and what moves |
//! | `lifetime.rs` | handles, threads, several meshes, tensors that outlive theirs |
//! | `dropout.rs` | masks over a mesh |
//! | `failures.rs` | what a program sees when a member fails |
//! | `backends.rs` | every inner backend, devices, records, the conventions of Burn's backends |
//!
//! Whole programs against one device are in the `f64` tests, single operations in `tests/operations`.

mod backends;
mod dropout;
mod failures;
mod layouts;
mod lifetime;

use burn::backend::{Autodiff, Flex};
use burn_multigpu::{Mesh, MultiGpu};

type M = MultiGpu<Flex>;
type A = Autodiff<M>;

fn open(spec: &str) -> Mesh<Flex> {
    Mesh::open(spec).unwrap()
}
