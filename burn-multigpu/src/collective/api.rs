//! The public functions, on Burn's `Tensor`.

use super::DEFAULT_BUCKET_BYTES;
use super::exchange::{Input, all_reduce_primitives, pack, sum, unpack};
use super::layout::{Bucket, Plan};
use crate::error::{Error, Result};
use crate::mesh::{Mesh, MeshCore};
use crate::shard::{ranges, shard_sizes};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Shape, Tensor, TensorPrimitive};
use burn_backend::tensor::FloatTensor;
use std::sync::Arc;

/// How the members' values become one.
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
/// the first dimension, cut as by [`shard_sizes`].
///
/// # Errors
///
/// As [`all_reduce`].
pub fn reduce_scatter<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    tensors: Vec<Tensor<B, D>>,
    op: &ReduceOp,
) -> Result<Vec<Tensor<B, D>>> {
    let members = mesh.len();
    one_per_member(tensors.len(), members)?;
    let first = &tensors[0];
    let (shape, dtype) = (first.shape(), first.dtype());
    for (member, tensor) in tensors.iter().enumerate() {
        if tensor.shape() != shape || tensor.dtype() != dtype {
            return Err(Error::TensorMismatch {
                member,
                index: 0,
                expected: format!("{:?} of {dtype:?}", shape.as_slice()),
                found: format!("{:?} of {:?}", tensor.shape().as_slice(), tensor.dtype()),
            });
        }
    }
    let rows = shard_sizes(shape[0], members);
    let cuts = cuts(&rows, &shape);
    let plan = Arc::new(Plan {
        buckets: vec![Bucket::new(dtype, vec![0], &[shape.num_elements()], &cuts)],
    });
    let inputs = tensors
        .into_iter()
        .map(|tensor| Ok(Some(vec![primitive(tensor)?])))
        .collect::<Result<_>>()?;

    let core = mesh.core();
    let packed = pack(core, core.pool()?, &plan, inputs)?;
    let sums = sum(
        core,
        core.pool()?,
        &plan,
        packed,
        &Arc::new(op.factors(members)?),
    )?;
    Ok(sums
        .into_iter()
        .flatten()
        .zip(rows)
        .map(|((_, buffer), rows)| reshape(buffer, part(&shape, rows)))
        .collect())
}

/// Joins one tensor per member along the first dimension, in member order; every member gets the
/// whole. The first dimensions may differ, also be 0; the others are equal.
///
/// # Errors
///
/// As [`all_reduce`].
pub fn all_gather<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    tensors: Vec<Tensor<B, D>>,
) -> Result<Vec<Tensor<B, D>>> {
    let members = mesh.len();
    one_per_member(tensors.len(), members)?;
    let (shape, dtype) = (tensors[0].shape(), tensors[0].dtype());
    for (member, tensor) in tensors.iter().enumerate() {
        if tensor.shape()[1..] != shape[1..] || tensor.dtype() != dtype {
            return Err(Error::TensorMismatch {
                member,
                index: 0,
                expected: format!("[any, {:?}] of {dtype:?}", &shape[1..]),
                found: format!("{:?} of {:?}", tensor.shape().as_slice(), tensor.dtype()),
            });
        }
    }
    let rows: Vec<usize> = tensors.iter().map(|tensor| tensor.shape()[0]).collect();
    let whole = part(&shape, rows.iter().sum());
    let chunks = tensors
        .into_iter()
        .enumerate()
        .map(|(member, tensor)| Ok((member, flat::<B>(primitive(tensor)?))))
        .collect::<Result<Vec<_>>>()?;
    distribute(mesh.core(), dtype, &rows, &whole, chunks)
}

/// Gives every member a copy of one member's tensor.
///
/// # Errors
///
/// [`Error::MemberCount`] when `from` is not in the mesh, and when a member fails.
pub fn broadcast<B: Backend, const D: usize>(
    mesh: &Mesh<B>,
    tensor: Tensor<B, D>,
    from: usize,
) -> Result<Vec<Tensor<B, D>>> {
    one_per_member(from.max(mesh.len() - 1) + 1, mesh.len())?;
    let (shape, dtype) = (tensor.shape(), tensor.dtype());
    let rows = vec![shape[0]];
    distribute(
        mesh.core(),
        dtype,
        &rows,
        &shape,
        vec![(from, flat::<B>(primitive(tensor)?))],
    )
}

/// Takes chunks of rows from those who hold them to all members.
fn distribute<B: Backend, const D: usize>(
    core: &Arc<MeshCore<B>>,
    dtype: DType,
    rows: &[usize],
    whole: &Shape,
    chunks: Vec<(usize, FloatTensor<B>)>,
) -> Result<Vec<Tensor<B, D>>> {
    let cuts = cuts(rows, whole);
    let plan = Arc::new(Plan {
        buckets: vec![Bucket::new(dtype, vec![0], &[whole.num_elements()], &cuts)],
    });
    let to: Vec<usize> = (0..core.devices.len()).collect();
    let shapes = Arc::new(vec![whole.clone()]);
    let gathered = unpack(core, core.pool()?, &plan, &[chunks], &shapes, &to)?;
    Ok(gathered
        .into_iter()
        .flatten()
        .flatten()
        .map(tensor)
        .collect())
}

fn cuts(rows: &[usize], shape: &Shape) -> Vec<std::ops::Range<usize>> {
    let row: usize = shape[1..].iter().product();
    let sizes: Vec<usize> = rows.iter().map(|rows| rows * row).collect();
    ranges(&sizes)
}

/// `shape` with another number of rows.
fn part(shape: &Shape, rows: usize) -> Shape {
    let mut part = shape.clone();
    part[0] = rows;
    part
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

fn flat<B: Backend>(primitive: FloatTensor<B>) -> FloatTensor<B> {
    use burn_backend::TensorMetadata;
    let len = primitive.shape().num_elements();
    B::float_reshape(primitive, Shape::new([len]))
}

fn reshape<B: Backend, const D: usize>(buffer: FloatTensor<B>, shape: Shape) -> Tensor<B, D> {
    tensor(B::float_reshape(buffer, shape))
}
