//! The public functions, on Burn's `Tensor`.

use super::DEFAULT_BUCKET_BYTES;
use super::exchange::{Input, all_reduce_primitives, pack, sum, unpack};
use super::layout::{Bucket, Piece, Plan};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::shard::shard_ranges;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Shape, Tensor, TensorPrimitive};
use burn_backend::TensorMetadata;
use burn_backend::tensor::FloatTensor;
use std::ops::Range;
use std::sync::Arc;

/// How the members' values become one.
///
/// ```
/// use burn_multigpu::collective::ReduceOp;
///
/// assert_eq!(ReduceOp::Sum.factors(2)?, [1.0, 1.0]);
/// assert_eq!(ReduceOp::Mean.factors(2)?, [0.5, 0.5]);
/// // The mean over items of a member with three and one with one:
/// assert_eq!(ReduceOp::WeightedMean(vec![3.0, 1.0]).factors(2)?, [0.75, 0.25]);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub enum ReduceOp {
    /// The sum.
    #[default]
    Sum,
    /// The sum divided by the number of members.
    Mean,
    /// The mean with one weight per member, of any scale: member `i` counts `w[i] / sum(w)`. With the
    /// sizes of the shards as weights, this is the mean over items.
    WeightedMean(Vec<f64>),
}

impl ReduceOp {
    /// The factor of each member.
    ///
    /// # Errors
    ///
    /// [`Error::Weights`] when there is not one weight per member, or they are negative, not finite
    /// or all zero.
    pub fn factors(&self, members: usize) -> Result<Vec<f64>> {
        match self {
            ReduceOp::Sum => Ok(vec![1.0; members]),
            ReduceOp::Mean => Ok(vec![1.0 / members as f64; members]),
            ReduceOp::WeightedMean(weights) => {
                let refuse = |reason: String| {
                    Err(Error::Weights {
                        weights: weights.clone(),
                        reason,
                    })
                };
                if weights.len() != members {
                    return refuse(format!(
                        "one weight for each of the {members} members is needed"
                    ));
                }
                if weights.iter().any(|w| !w.is_finite() || *w < 0.0) {
                    return refuse("weights are finite and not negative".to_string());
                }
                let total: f64 = weights.iter().sum();
                if total <= 0.0 {
                    return refuse("at least one weight is above zero".to_string());
                }
                Ok(weights.iter().map(|weight| weight / total).collect())
            }
        }
    }
}

/// Reduces one tensor per member, of equal shapes; every member gets the result, bit for bit equal.
///
/// Tensor `i` lies on member `i`'s device, and so does result `i`.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::collective::{ReduceOp, all_reduce};
/// use burn_multigpu::Mesh;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1,2")?;
/// let tensors = [1.0, 2.0, 6.0].map(|x| Tensor::<Flex, 1>::from_floats([x, 1.0], &mesh.devices()[0]));
/// let means = all_reduce(&mesh, tensors.to_vec(), &ReduceOp::Mean)?;
/// assert_eq!(means[2].to_data().to_vec::<f32>().unwrap(), [3.0, 1.0]);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
///
/// # Errors
///
/// When the number of tensors is not that of the members, when shapes or dtypes differ, for wrong
/// weights, and when a member fails.
pub fn all_reduce<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    tensors: Vec<Tensor<B, D>>,
    op: &ReduceOp,
) -> Result<Vec<Tensor<B, D>>> {
    let lists = tensors.into_iter().map(|tensor| vec![tensor]).collect();
    let reduced = all_reduce_bucket(mesh, lists, op)?;
    Ok(reduced.into_iter().flatten().collect())
}

/// Reduces many tensors per member at once, packed into buckets of
/// [`DEFAULT_BUCKET_BYTES`].
///
/// `lists[i]` lies on member `i`; the lists have equal lengths, shapes and dtypes, position by
/// position.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::Mesh;
/// use burn_multigpu::collective::{ReduceOp, all_reduce_bucket};
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let lists = mesh.devices().iter().map(|device| {
///     vec![Tensor::<Flex, 1>::ones([3], device), Tensor::ones([5], device)]
/// });
/// let sums = all_reduce_bucket(&mesh, lists.collect(), &ReduceOp::Sum)?;
/// assert_eq!(sums[1][1].to_data().to_vec::<f32>().unwrap(), [2.0; 5]);
/// assert_eq!(mesh.stats().collectives.all_reduces, 1);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
///
/// # Errors
///
/// As [`all_reduce`].
pub fn all_reduce_bucket<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    lists: Vec<Vec<Tensor<B, D>>>,
    op: &ReduceOp,
) -> Result<Vec<Vec<Tensor<B, D>>>> {
    let members = mesh.len();
    one_per_member(lists.len(), members)?;
    let inputs = lists
        .into_iter()
        .zip(op.factors(members)?)
        .map(|(list, weight)| {
            let tensors = list.into_iter().map(primitive).collect::<Result<_>>()?;
            Ok(Some(Input { weight, tensors }))
        })
        .collect::<Result<_>>()?;
    let to: Vec<usize> = (0..members).collect();
    let core = mesh.core();
    let reduced = all_reduce_primitives(core, core.pool()?, inputs, DEFAULT_BUCKET_BYTES, &to)?;
    Ok(reduced
        .into_iter()
        .map(|list| list.into_iter().flatten().map(tensor).collect())
        .collect())
}

/// Reduces one tensor per member, of equal shapes, and gives member `i` part `i` of the result along
/// the first dimension, cut as by [`shard_sizes`](crate::shard::shard_sizes).
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::Mesh;
/// use burn_multigpu::collective::{ReduceOp, reduce_scatter};
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let tensors = mesh.devices().iter().map(|device| Tensor::<Flex, 1>::from_floats([1.0, 2.0, 3.0], device));
/// let parts = reduce_scatter(&mesh, tensors.collect(), &ReduceOp::Sum)?;
/// assert_eq!(parts[0].to_data().to_vec::<f32>().unwrap(), [2.0, 4.0]);
/// assert_eq!(parts[1].to_data().to_vec::<f32>().unwrap(), [6.0]);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
///
/// # Errors
///
/// As [`all_reduce`].
pub fn reduce_scatter<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    tensors: Vec<Tensor<B, D>>,
    op: &ReduceOp,
) -> Result<Vec<Tensor<B, D>>> {
    let parts = reduce_scatter_bucket(mesh, singles(tensors), op)?;
    Ok(parts.into_iter().flatten().collect())
}

/// As [`reduce_scatter`] for many tensors per member at once: each is cut along its first dimension.
///
/// # Errors
///
/// As [`all_reduce`].
pub fn reduce_scatter_bucket<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    lists: Vec<Vec<Tensor<B, D>>>,
    op: &ReduceOp,
) -> Result<Vec<Vec<Tensor<B, D>>>> {
    let members = mesh.len();
    one_per_member(lists.len(), members)?;
    let factors = Arc::new(op.factors(members)?);
    let lists = primitives(lists)?;
    let (shapes, dtypes) = check_lists::<B>(&lists, 0)?;
    let cut: Vec<Vec<Range<usize>>> = shapes.iter().map(|s| shard_ranges(s[0], members)).collect();
    let part = |tensor: usize, member: usize| {
        let rows = &cut[tensor][member];
        let row = row_len(&shapes[tensor]);
        (rows.start * row, rows.len() * row)
    };
    let plan = Arc::new(Plan {
        buckets: buckets(&dtypes, members, part),
    });

    let core = mesh.core();
    let packed = pack(
        core,
        core.pool()?,
        &plan,
        lists.into_iter().map(Some).collect(),
    )?;
    let sums = sum(core, core.pool()?, &plan, packed, &factors)?;
    // Member `i` holds chunk `i` of every bucket: only cutting is left.
    let mut own: Vec<Vec<FloatTensor<B>>> = (0..members).map(|_| Vec::new()).collect();
    for chunks in sums {
        for (member, buffer) in chunks {
            own[member].push(buffer);
        }
    }
    let jobs = own.into_iter().enumerate().map(|(member, buffers)| {
        let (core, plan) = (core.clone(), plan.clone());
        let shapes: Vec<Shape> = shapes
            .iter()
            .zip(&cut)
            .map(|(shape, cut)| with_rows(shape, cut[member].len()))
            .collect();
        move || {
            let mut parts: Vec<Option<FloatTensor<B>>> = shapes.iter().map(|_| None).collect();
            for (bucket, buffer) in plan.buckets.iter().zip(buffers) {
                let pieces = bucket.chunks[member]
                    .iter()
                    .map(|p| Piece { offset: 0, ..*p });
                let own: Vec<Shape> = bucket.tensors.iter().map(|t| shapes[*t].clone()).collect();
                let cut = core.ops.unpack(
                    &core.devices[member],
                    bucket.dtype,
                    vec![buffer],
                    &[pieces.collect()],
                    &own,
                )?;
                for (index, tensor) in bucket.tensors.iter().zip(cut) {
                    parts[*index] = Some(tensor);
                }
            }
            Ok(parts.into_iter().flatten().collect::<Vec<_>>())
        }
    });
    Ok(core
        .pool()?
        .run(jobs)?
        .into_iter()
        .map(tensors_of)
        .collect())
}

/// Joins one tensor per member along the first dimension, in member order; every member gets the
/// whole. The first dimensions may differ, also be 0; the others are equal.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::Mesh;
/// use burn_multigpu::collective::all_gather;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let parts = vec![
///     Tensor::<Flex, 1>::from_floats([1.0, 2.0], &mesh.devices()[0]),
///     Tensor::from_floats([3.0], &mesh.devices()[1]),
/// ];
/// let whole = all_gather(&mesh, parts)?;
/// assert_eq!(whole[1].to_data().to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
///
/// # Errors
///
/// As [`all_reduce`].
pub fn all_gather<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    tensors: Vec<Tensor<B, D>>,
) -> Result<Vec<Tensor<B, D>>> {
    let whole = all_gather_bucket(mesh, singles(tensors))?;
    Ok(whole.into_iter().flatten().collect())
}

/// As [`all_gather`] for many tensors per member at once.
///
/// # Errors
///
/// As [`all_reduce`].
pub fn all_gather_bucket<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    lists: Vec<Vec<Tensor<B, D>>>,
) -> Result<Vec<Vec<Tensor<B, D>>>> {
    one_per_member(lists.len(), mesh.len())?;
    let lists = primitives(lists)?;
    check_lists::<B>(&lists, 1)?;
    distribute(mesh, lists.into_iter().map(Some).collect())
}

/// Gives every member a copy of one member's tensor.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::Mesh;
/// use burn_multigpu::collective::broadcast;
///
/// let mesh = Mesh::<Flex>::open("flex:0-2")?;
/// let tensor = Tensor::<Flex, 1>::from_floats([1.0, 2.0], &mesh.devices()[1]);
/// let copies = broadcast(&mesh, tensor, 1)?;
/// assert_eq!(copies.len(), 3);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::MemberCount`] when `from` is not in the mesh, and when a member fails.
pub fn broadcast<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    tensor: Tensor<B, D>,
    from: usize,
) -> Result<Vec<Tensor<B, D>>> {
    let copies = broadcast_bucket(mesh, vec![tensor], from)?;
    Ok(copies.into_iter().flatten().collect())
}

/// Gives every member copies of one member's tensors.
///
/// # Errors
///
/// As [`broadcast`].
pub fn broadcast_bucket<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    tensors: Vec<Tensor<B, D>>,
    from: usize,
) -> Result<Vec<Vec<Tensor<B, D>>>> {
    let members = mesh.len();
    one_per_member(from.max(members - 1) + 1, members)?;
    let mut list = primitives(vec![tensors])?.pop();
    let held = (0..members).map(|member| if member == from { list.take() } else { None });
    distribute(mesh, held.collect())
}

/// Joins the members' lists along the first dimension, on every member.
fn distribute<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    lists: Vec<Option<Vec<FloatTensor<B>>>>,
) -> Result<Vec<Vec<Tensor<B, D>>>> {
    let core = mesh.core();
    let held: Vec<Vec<Shape>> = lists
        .iter()
        .flatten()
        .map(|list| list.iter().map(TensorMetadata::shape).collect())
        .collect();
    let dtypes: Vec<DType> = lists
        .iter()
        .flatten()
        .next()
        .map(|list| list.iter().map(TensorMetadata::dtype).collect())
        .unwrap_or_default();
    // Where each holder's rows start in the whole, in elements.
    let part = |tensor: usize, holder: usize| {
        let before: usize = held[..holder]
            .iter()
            .map(|shapes| shapes[tensor].num_elements())
            .sum();
        (before, held[holder][tensor].num_elements())
    };
    let plan = Arc::new(Plan {
        buckets: buckets(&dtypes, held.len(), part),
    });
    let whole: Vec<Shape> = (0..dtypes.len())
        .map(|tensor| {
            let rows = held.iter().map(|shapes| shapes[tensor][0]).sum();
            with_rows(&held[0][tensor], rows)
        })
        .collect();

    let mut holder = 0;
    let jobs = lists.into_iter().enumerate().map(|(member, list)| {
        let (core, plan) = (core.clone(), plan.clone());
        let own = holder;
        holder += usize::from(list.is_some());
        move || {
            let Some(list) = list else { return Ok(None) };
            let mut list: Vec<Option<FloatTensor<B>>> = list.into_iter().map(Some).collect();
            let pack = |bucket: &Bucket| {
                let tensors = bucket
                    .tensors
                    .iter()
                    .filter_map(|t| list[*t].take())
                    .collect();
                let pieces = bucket.chunks[own].iter().map(|p| Piece { offset: 0, ..*p });
                let chunks = [pieces.collect()];
                core.ops
                    .pack(&core.devices[member], bucket.dtype, tensors, &chunks)
            };
            plan.buckets
                .iter()
                .map(pack)
                .collect::<Result<Vec<_>>>()
                .map(Some)
        }
    });
    let mut chunks: Vec<Vec<(usize, FloatTensor<B>)>> =
        plan.buckets.iter().map(|_| Vec::new()).collect();
    for (member, packed) in core.pool()?.run(jobs)?.into_iter().enumerate() {
        for (bucket, buffer) in packed.into_iter().flatten().enumerate() {
            chunks[bucket].extend(buffer.into_iter().map(|buffer| (member, buffer)));
        }
    }
    let to: Vec<usize> = (0..mesh.len()).collect();
    let gathered = unpack(core, core.pool()?, &plan, &chunks, &Arc::new(whole), &to)?;
    Ok(gathered.into_iter().flatten().map(tensors_of).collect())
}

/// A bucket per dtype; `part(tensor, chunk)` says where a chunk's part of a tensor starts and how
/// long it is, in elements.
fn buckets(
    dtypes: &[DType],
    chunks: usize,
    part: impl Fn(usize, usize) -> (usize, usize),
) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    for (tensor, dtype) in dtypes.iter().enumerate() {
        let index = buckets.iter().position(|bucket| bucket.dtype == *dtype);
        let index = index.unwrap_or_else(|| {
            buckets.push(Bucket {
                dtype: *dtype,
                tensors: Vec::new(),
                chunks: (0..chunks).map(|_| Vec::new()).collect(),
            });
            buckets.len() - 1
        });
        let bucket = &mut buckets[index];
        for (chunk, pieces) in bucket.chunks.iter_mut().enumerate() {
            let (offset, len) = part(tensor, chunk);
            if len > 0 {
                let tensor = bucket.tensors.len();
                pieces.push(Piece {
                    tensor,
                    offset,
                    len,
                });
            }
        }
        bucket.tensors.push(tensor);
    }
    buckets
}

/// The first list's shapes and dtypes, which the others must have; dimensions before `from` may
/// differ.
fn check_lists<B: Backend>(
    lists: &[Vec<FloatTensor<B>>],
    from: usize,
) -> Result<(Vec<Shape>, Vec<DType>)> {
    let first = &lists[0];
    for (member, list) in lists.iter().enumerate() {
        if list.len() != first.len() {
            return Err(Error::TensorCount {
                member,
                expected: first.len(),
                found: list.len(),
            });
        }
        for (index, (tensor, like)) in list.iter().zip(first).enumerate() {
            let (shape, wanted) = (tensor.shape(), like.shape());
            if shape[from..] != wanted[from..] || tensor.dtype() != like.dtype() {
                return Err(Error::TensorMismatch {
                    member,
                    index,
                    expected: format!("{:?} of {:?}", wanted.as_slice(), like.dtype()),
                    found: format!("{:?} of {:?}", shape.as_slice(), tensor.dtype()),
                });
            }
        }
    }
    let shapes = first.iter().map(TensorMetadata::shape).collect();
    Ok((shapes, first.iter().map(TensorMetadata::dtype).collect()))
}

/// Number of elements in a row.
fn row_len(shape: &Shape) -> usize {
    shape[1..].iter().product()
}

/// `shape` with another number of rows.
fn with_rows(shape: &Shape, rows: usize) -> Shape {
    let mut shape = shape.clone();
    shape[0] = rows;
    shape
}

fn singles<B: Backend, const D: usize>(tensors: Vec<Tensor<B, D>>) -> Vec<Vec<Tensor<B, D>>> {
    tensors.into_iter().map(|tensor| vec![tensor]).collect()
}

fn primitives<B: Backend, const D: usize>(
    lists: Vec<Vec<Tensor<B, D>>>,
) -> Result<Vec<Vec<FloatTensor<B>>>> {
    lists
        .into_iter()
        .map(|list| list.into_iter().map(primitive).collect())
        .collect()
}

fn tensors_of<B: Backend, const D: usize>(list: Vec<FloatTensor<B>>) -> Vec<Tensor<B, D>> {
    list.into_iter().map(tensor).collect()
}

fn one_per_member(found: usize, members: usize) -> Result<()> {
    if found == members {
        return Ok(());
    }
    Err(Error::MemberCount {
        expected: members,
        found,
    })
}

fn primitive<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Result<FloatTensor<B>> {
    match tensor.into_primitive() {
        TensorPrimitive::Float(primitive) => Ok(primitive),
        TensorPrimitive::QFloat(_) => Err(Error::UnsupportedDType {
            dtype: "a quantized type".to_string(),
        }),
    }
}

fn tensor<B: Backend, const D: usize>(primitive: FloatTensor<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}
