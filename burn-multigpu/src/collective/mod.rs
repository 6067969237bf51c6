//! Reductions over the members of a mesh, on the tensors of any Burn backend.
//!
//! | file | what lives there |
//! |---|---|
//! | `api` | the public functions, on Burn's `Tensor` |
//! | `layout` | buckets, chunks and pieces: pure arithmetic |
//! | `exchange` | the steps of a collective on the members' threads |
//! | `owned` | reductions to one owner for each tensor, and back |
//! | `ops` | what a backend contributes, and how tensors move between devices |
//! | `cube`, `fused`, `host` | that contribution with CubeCL kernels, below Burn's fusion, and in plain Rust |
//! | `stats` | counters |
//!
//! An all-reduce is a reduce-scatter followed by an all-gather over chunks: member `j` takes chunk
//! `j` from every other member, sums the parts in member order, and every other member takes the
//! sum. Each member sends and receives 2(N-1)/N of the data (R. Rabenseifner, "Optimization of
//! collective reduction operations", 2004), and since every chunk is summed once, in one order, all
//! members hold the same bits, from run to run as well.

mod api;
#[cfg(feature = "cubecl")]
mod cube;
mod exchange;
#[cfg(all(feature = "cubecl", feature = "fusion"))]
mod fused;
mod host;
mod layout;
mod ops;
mod owned;
#[cfg(feature = "cubecl")]
mod peer;
mod stats;
mod transfers;

pub use api::{
    ReduceOp, all_gather, all_gather_bucket, all_reduce, all_reduce_bucket, broadcast,
    broadcast_bucket, reduce_scatter, reduce_scatter_bucket,
};
pub use ops::Transfer;
pub use stats::CollectiveStats;
pub use transfers::Transfers;

pub(crate) use exchange::{
    Held, Input, all_reduce_primitives, pack_member, sum_member, unpack_member,
};
pub(crate) use layout::Plan as BucketPlan;
pub(crate) use ops::{CollectiveOps, device_error, read, select};
pub(crate) use owned::{own_reduce, share_owned};
pub(crate) use stats::Counters;

/// The size that a bucket is filled to unless another is asked for: 25 MB, as in PyTorch's
/// `DistributedDataParallel`.
pub const DEFAULT_BUCKET_BYTES: usize = 25 * 1024 * 1024;
