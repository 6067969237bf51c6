//! Collectives in which every tensor has one owner among the members: gradients go to the owner
//! alone, and what it makes of them comes back from there.

use super::exchange::{Held, Input, check_equal, pack, sum, unpack};
use super::layout::{Bucket, Piece, Plan};
use crate::error::Result;
use crate::mesh::MeshCore;
use crate::worker::WorkerPool;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Shape};
use burn_backend::{TensorMetadata, tensor::FloatTensor};
use std::sync::Arc;

/// Tensors at their places in a list, for each member; `None` where a member has none.
type Sparse<B> = Vec<Option<FloatTensor<B>>>;

/// Reduces lists of tensors, one list per member, and gives tensor `i` of the sum to member
/// `owners[i]` alone.
pub(crate) fn own_reduce<B: Backend>(
    core: &Arc<MeshCore<B>>,
    pool: &WorkerPool,
    inputs: Vec<Option<Input<B>>>,
    bucket_bytes: usize,
    owners: &[usize],
) -> Result<Vec<Option<Sparse<B>>>> {
    let members = core.devices.len();
    let Some(first) = inputs.iter().flatten().next() else {
        return Ok((0..members).map(|_| None).collect());
    };
    let shapes: Vec<Shape> = first.tensors.iter().map(|t| t.shape()).collect();
    let kinds = kinds::<B>(&first.tensors);
    check_equal(&inputs, &shapes, &kinds)?;

    let plan = Arc::new(Plan::owned(&kinds, members, owners, bucket_bytes));
    core.counters.all_reduce(plan.buckets.len());
    let weights = Arc::new(inputs.iter().flatten().map(|i| i.weight).collect());
    let lists = inputs.into_iter().map(|input| input.map(|i| i.tensors));
    let packed = pack(core, pool, &plan, lists.collect())?;
    let sums = sum(core, pool, &plan, packed, &weights)?;

    let mut own: Vec<Vec<FloatTensor<B>>> = (0..members).map(|_| Vec::new()).collect();
    for chunks in sums {
        for (member, buffer) in chunks {
            own[member].push(buffer);
        }
    }
    let shapes = Arc::new(shapes);
    let jobs = own.into_iter().enumerate().map(|(member, buffers)| {
        let (core, plan, shapes) = (core.clone(), plan.clone(), shapes.clone());
        move || {
            let mut list: Sparse<B> = shapes.iter().map(|_| None).collect();
            for (bucket, buffer) in plan.buckets.iter().zip(buffers) {
                let (tensors, pieces) = owned_by(bucket, member);
                let own: Vec<Shape> = tensors.iter().map(|t| shapes[*t].clone()).collect();
                let device = &core.devices[member];
                let parts = core
                    .ops
                    .unpack(device, bucket.dtype, vec![buffer], &[pieces], &own)?;
                for (tensor, part) in tensors.into_iter().zip(parts) {
                    list[tensor] = Some(part);
                }
            }
            Ok(Some(list))
        }
    });
    pool.run(jobs)
}

/// Gives every member all tensors, each from its owner: `lists[m]` holds those that member `m` owns.
///
/// The lists are equally long, and every place is filled by its owner.
pub(crate) fn share_owned<B: Backend>(
    core: &Arc<MeshCore<B>>,
    pool: &WorkerPool,
    lists: Vec<Sparse<B>>,
    bucket_bytes: usize,
    owners: &[usize],
) -> Result<Vec<Vec<FloatTensor<B>>>> {
    let members = core.devices.len();
    let whole: Vec<&FloatTensor<B>> = owners
        .iter()
        .enumerate()
        .filter_map(|(tensor, owner)| lists[*owner].get(tensor)?.as_ref())
        .collect();
    debug_assert_eq!(whole.len(), owners.len());
    let shapes = Arc::new(whole.iter().map(|t| t.shape()).collect());
    let plan = Plan::owned(&kinds::<B>(whole), members, owners, bucket_bytes);
    let plan = Arc::new(plan);

    let jobs = lists.into_iter().enumerate().map(|(member, mut list)| {
        let (core, plan) = (core.clone(), plan.clone());
        move || {
            let pack = |bucket: &Bucket| {
                let (tensors, pieces) = owned_by(bucket, member);
                let own = tensors.iter().filter_map(|t| list[*t].take()).collect();
                let device = &core.devices[member];
                core.ops.pack(device, bucket.dtype, own, &[pieces])
            };
            plan.buckets.iter().map(pack).collect::<Result<Vec<_>>>()
        }
    });
    let mut chunks: Vec<Vec<Held<B>>> = plan.buckets.iter().map(|_| Vec::new()).collect();
    for (member, packed) in pool.run(jobs)?.into_iter().enumerate() {
        for (bucket, buffers) in packed.into_iter().enumerate() {
            chunks[bucket].extend(buffers.into_iter().map(|buffer| (member, buffer)));
        }
    }
    let all: Vec<usize> = (0..members).collect();
    let shared = unpack(core, pool, &plan, &chunks, &shapes, &all)?;
    Ok(shared.into_iter().flatten().collect())
}

fn kinds<'a, B: Backend>(
    tensors: impl IntoIterator<Item = &'a FloatTensor<B>>,
) -> Vec<(DType, usize)>
where
    FloatTensor<B>: 'a,
{
    tensors
        .into_iter()
        .map(|t| (t.dtype(), t.shape().num_elements()))
        .collect()
}

/// A member's tensors in a bucket, by their positions in the whole list, and its chunk's pieces in
/// terms of these tensors alone.
fn owned_by(bucket: &Bucket, member: usize) -> (Vec<usize>, Vec<Piece>) {
    bucket.chunks[member]
        .iter()
        .enumerate()
        .map(|(tensor, piece)| (bucket.tensors[piece.tensor], Piece { tensor, ..*piece }))
        .unzip()
}
