//! The steps of a collective, run on the members' threads.
//!
//! Each step is one job per member and none waits for another: the caller's thread hands the
//! buffers on between steps. A member that fails ends the collective with its error, and no other
//! member is left waiting.

use super::layout::{Bucket, Plan};
use super::ops::device_error;
use crate::error::{Error, Result};
use crate::mesh::MeshCore;
use crate::worker::WorkerPool;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Shape};
use burn_backend::{TensorMetadata, tensor::FloatTensor};
use std::sync::Arc;

/// What one member adds to a reduction.
#[derive(Debug)]
pub(crate) struct Input<B: Backend> {
    pub(crate) weight: f64,
    pub(crate) tensors: Vec<FloatTensor<B>>,
}

/// A buffer and the position of the member that holds it.
pub(crate) type Held<B> = (usize, FloatTensor<B>);

/// Reduces lists of tensors, one list per member, to their weighted sum on every member in `to`.
///
/// A member without an input adds nothing and moves nothing. All lists have equal shapes.
pub(crate) fn all_reduce_primitives<B: Backend>(
    core: &Arc<MeshCore<B>>,
    pool: &WorkerPool,
    inputs: Vec<Option<Input<B>>>,
    bucket_bytes: usize,
    to: &[usize],
) -> Result<Vec<Option<Vec<FloatTensor<B>>>>> {
    let members = core.devices.len();
    let Some(first) = inputs.iter().flatten().next() else {
        return Ok((0..members).map(|_| None).collect());
    };
    let shapes: Arc<Vec<Shape>> = Arc::new(first.tensors.iter().map(|t| t.shape()).collect());
    let kinds: Vec<(DType, usize)> = first
        .tensors
        .iter()
        .map(|t| (t.dtype(), t.shape().num_elements()))
        .collect();
    check_equal(&inputs, &shapes, &kinds)?;

    let plan = Arc::new(Plan::new(&kinds, members, bucket_bytes));
    core.counters.all_reduce(plan.buckets.len());
    let weights: Arc<Vec<f64>> = Arc::new(inputs.iter().flatten().map(|i| i.weight).collect());
    let lists = inputs
        .into_iter()
        .map(|input| input.map(|i| i.tensors))
        .collect();

    let packed = pack(core, pool, &plan, lists)?;
    let sums = sum(core, pool, &plan, packed, &weights)?;
    unpack(core, pool, &plan, &sums, &shapes, to)
}

pub(super) fn check_equal<B: Backend>(
    inputs: &[Option<Input<B>>],
    shapes: &[Shape],
    kinds: &[(DType, usize)],
) -> Result<()> {
    for (member, input) in inputs.iter().enumerate() {
        let Some(input) = input else { continue };
        if input.tensors.len() != shapes.len() {
            return Err(Error::TensorCount {
                member,
                expected: shapes.len(),
                found: input.tensors.len(),
            });
        }
        for (index, tensor) in input.tensors.iter().enumerate() {
            if tensor.shape() != shapes[index] || tensor.dtype() != kinds[index].0 {
                return Err(Error::TensorMismatch {
                    member,
                    index,
                    expected: format!("{:?} of {:?}", shapes[index].as_slice(), kinds[index].0),
                    found: format!("{:?} of {:?}", tensor.shape().as_slice(), tensor.dtype()),
                });
            }
        }
    }
    Ok(())
}

/// Step 1, on each member that has an input: a buffer per bucket and chunk.
/// Returned by bucket, chunk and then member.
pub(super) fn pack<B: Backend>(
    core: &Arc<MeshCore<B>>,
    pool: &WorkerPool,
    plan: &Arc<Plan>,
    inputs: Vec<Option<Vec<FloatTensor<B>>>>,
) -> Result<Vec<Vec<Vec<Held<B>>>>> {
    let jobs = inputs.into_iter().enumerate().map(|(member, input)| {
        let (core, plan) = (core.clone(), plan.clone());
        move || {
            input
                .map(|tensors| pack_member(&core, member, &plan, tensors))
                .transpose()
        }
    });

    let mut packed: Vec<Vec<Vec<Held<B>>>> = plan
        .buckets
        .iter()
        .map(|bucket| bucket.chunks.iter().map(|_| Vec::new()).collect())
        .collect();
    for (member, buckets) in pool.run(jobs)?.into_iter().enumerate() {
        for (bucket, chunks) in buckets.into_iter().flatten().enumerate() {
            for (chunk, buffer) in chunks.into_iter().enumerate() {
                packed[bucket][chunk].push((member, buffer));
            }
        }
    }
    Ok(packed)
}

/// Step 2, on member `j`: takes chunk `j` of every bucket from all and sums it.
/// Returned by bucket and chunk.
pub(super) fn sum<B: Backend>(
    core: &Arc<MeshCore<B>>,
    pool: &WorkerPool,
    plan: &Arc<Plan>,
    packed: Vec<Vec<Vec<Held<B>>>>,
    weights: &Arc<Vec<f64>>,
) -> Result<Vec<Vec<Held<B>>>> {
    let mut by_owner: Vec<Vec<Vec<Held<B>>>> = core.devices.iter().map(|_| Vec::new()).collect();
    for chunks in packed {
        for (owner, parts) in chunks.into_iter().enumerate() {
            by_owner[owner].push(parts);
        }
    }
    let jobs = by_owner.into_iter().enumerate().map(|(owner, buckets)| {
        let (core, plan, weights) = (core.clone(), plan.clone(), weights.clone());
        move || sum_member(&core, owner, &plan, buckets, &weights)
    });

    let mut sums: Vec<Vec<Held<B>>> = plan.buckets.iter().map(|_| Vec::new()).collect();
    for (owner, buckets) in pool.run(jobs)?.into_iter().enumerate() {
        for (bucket, buffer) in buckets.into_iter().enumerate() {
            sums[bucket].push((owner, buffer));
        }
    }
    Ok(sums)
}

/// Step 3, on each member in `to`: takes all chunks and cuts the tensors out of them.
///
/// The caller's `sums` outlive the jobs, so that no member finds itself the last user of a buffer
/// that others still read: CubeCL and Burn's fusion would let it overwrite or free it.
pub(super) fn unpack<B: Backend>(
    core: &Arc<MeshCore<B>>,
    pool: &WorkerPool,
    plan: &Arc<Plan>,
    sums: &[Vec<Held<B>>],
    shapes: &Arc<Vec<Shape>>,
    to: &[usize],
) -> Result<Vec<Option<Vec<FloatTensor<B>>>>> {
    let jobs = (0..core.devices.len()).map(|member| {
        let (core, plan, shapes) = (core.clone(), plan.clone(), shapes.clone());
        let sums = to.contains(&member).then(|| sums.to_vec());
        move || {
            sums.map(|sums| unpack_member(&core, member, &plan, sums, &shapes))
                .transpose()
        }
    });
    pool.run(jobs)
}

/// A member's tensors as one buffer per chunk, by bucket.
pub(crate) fn pack_member<B: Backend>(
    core: &MeshCore<B>,
    member: usize,
    plan: &Plan,
    tensors: Vec<FloatTensor<B>>,
) -> Result<Vec<Vec<FloatTensor<B>>>> {
    let mut tensors: Vec<Option<FloatTensor<B>>> = tensors.into_iter().map(Some).collect();
    let pack = |bucket: &Bucket| {
        let own = bucket
            .tensors
            .iter()
            .filter_map(|i| tensors[*i].take())
            .collect();
        core.ops
            .pack(&core.devices[member], bucket.dtype, own, &bucket.chunks)
    };
    plan.buckets.iter().map(pack).collect()
}

/// The sums of the buffers that a member takes from all, by bucket.
pub(crate) fn sum_member<B: Backend>(
    core: &MeshCore<B>,
    owner: usize,
    plan: &Plan,
    buckets: Vec<Vec<Held<B>>>,
    weights: &[f64],
) -> Result<Vec<FloatTensor<B>>> {
    let sum = |(bucket, parts): (&Bucket, Vec<Held<B>>)| {
        let buffers = parts
            .into_iter()
            .map(|part| take(core, part, owner))
            .collect::<Result<Vec<_>>>()?;
        core.ops
            .sum(&core.devices[owner], bucket.dtype, buffers, weights)
    };
    plan.buckets.iter().zip(buckets).map(sum).collect()
}

/// A member's tensors, cut out of the chunks that it takes from all, given by bucket.
pub(crate) fn unpack_member<B: Backend>(
    core: &MeshCore<B>,
    member: usize,
    plan: &Plan,
    sums: Vec<Vec<Held<B>>>,
    shapes: &[Shape],
) -> Result<Vec<FloatTensor<B>>> {
    let mut tensors: Vec<Option<FloatTensor<B>>> = shapes.iter().map(|_| None).collect();
    for (bucket, chunks) in plan.buckets.iter().zip(sums) {
        let buffers = chunks
            .into_iter()
            .map(|chunk| take(core, chunk, member))
            .collect::<Result<Vec<_>>>()?;
        let own: Vec<Shape> = bucket.tensors.iter().map(|i| shapes[*i].clone()).collect();
        let parts = core.ops.unpack(
            &core.devices[member],
            bucket.dtype,
            buffers,
            &bucket.chunks,
            &own,
        )?;
        for (index, tensor) in bucket.tensors.iter().zip(parts) {
            tensors[*index] = Some(tensor);
        }
    }
    // Every tensor is in exactly one bucket.
    Ok(tensors.into_iter().flatten().collect())
}

/// Takes a buffer to a member, and counts the bytes.
fn take<B: Backend>(
    core: &MeshCore<B>,
    (from, buffer): Held<B>,
    to: usize,
) -> Result<FloatTensor<B>> {
    core.counters.moved(
        from,
        to,
        buffer.shape().num_elements() * buffer.dtype().size(),
    );
    core.transfers
        .path(from, to)
        .float::<B>(buffer, &core.devices[to])
        .map_err(device_error(&core.devices[from]))
}
