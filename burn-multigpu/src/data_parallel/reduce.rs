//! What the replicas exchange: gradients and running statistics.

use super::engine::Inner;
use super::grads::GradList;
use super::run::PerMember;
use super::step::{Compression, RunningStats};
use crate::collective::{Input, all_reduce_primitives, own_reduce, share_owned};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::worker::WorkerPool;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, FloatDType, Shape};
use burn_backend::TensorMetadata;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;

/// Tensors of every member, in the order of the members.
pub(crate) type States<B> = Vec<FloatTensor<Inner<B>>>;

/// Reduces over the replicas on the members of a mesh.
#[derive(Debug)]
pub(crate) struct Reducer<'a, B: AutodiffBackend> {
    pub(crate) mesh: &'a Mesh<Inner<B>>,
    pub(crate) pool: &'a WorkerPool,
    pub(crate) bucket_bytes: usize,
    pub(crate) compression: Compression,
}

/// Where reduced gradients go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To<'a> {
    /// All of them, to each of these members.
    Members(&'a [usize]),
    /// Each to the one member that this list names for its parameter.
    Owners(&'a [usize]),
}

impl<B: AutodiffBackend> Reducer<'_, B> {
    /// The gradients of the whole batch. A parameter without a gradient counts as zero where
    /// another replica has one, and has none where none has.
    ///
    /// `factors` holds one factor for each list that is there.
    pub(crate) fn grads(
        &self,
        lists: PerMember<GradList<B>>,
        factors: &[f64],
        to: To<'_>,
    ) -> Result<PerMember<GradList<B>>> {
        let slots = lists.iter().flatten().map(Vec::len).max().unwrap_or(0);
        if self.mesh.len() == 1 && factors.iter().all(|factor| *factor == 1.0) {
            return Ok(lists);
        }
        // For each parameter that has a gradient somewhere, one of them as the pattern for zeros.
        let patterns: Vec<_> = (0..slots)
            .filter_map(|slot| {
                let grad = lists
                    .iter()
                    .flatten()
                    .find_map(|list| list.get(slot)?.as_ref())?;
                Some((slot, grad.shape(), grad.dtype()))
            })
            .collect();
        let inputs = self.inputs(lists, factors, &patterns);
        let dtypes: Vec<DType> = patterns.iter().map(|(.., dtype)| *dtype).collect();
        let inputs = self.compress(inputs, &dtypes)?;
        let core = self.mesh.core();
        let reduced: PerMember<GradList<B>> = match to {
            To::Members(members) => {
                let all =
                    all_reduce_primitives(core, self.pool, inputs, self.bucket_bytes, members)?;
                let some = |list: Vec<_>| list.into_iter().map(Some).collect();
                all.into_iter().map(|list| list.map(some)).collect()
            }
            To::Owners(owners) => {
                let owners: Vec<usize> = patterns.iter().map(|(slot, ..)| owners[*slot]).collect();
                own_reduce(core, self.pool, inputs, self.bucket_bytes, &owners)?
            }
        };
        let reduced = self.expand(reduced, &dtypes)?;
        Ok(reduced
            .into_iter()
            .map(|tensors| {
                let mut list: GradList<B> = (0..slots).map(|_| None).collect();
                for ((slot, ..), tensor) in patterns.iter().zip(tensors?) {
                    list[*slot] = tensor;
                }
                Some(list)
            })
            .collect())
    }

    fn inputs(
        &self,
        lists: PerMember<GradList<B>>,
        factors: &[f64],
        patterns: &[(usize, Shape, DType)],
    ) -> PerMember<Input<Inner<B>>> {
        let mut factors = factors.iter();
        lists
            .into_iter()
            .enumerate()
            .map(|(member, list)| {
                let mut list = list?;
                let weight = *factors.next()?;
                if weight == 0.0 {
                    // Counts for nothing, also where it is NaN, as a mean over no token is.
                    return None;
                }
                let device = &self.mesh.devices()[member];
                let tensors = patterns
                    .iter()
                    .map(|(slot, shape, dtype)| {
                        list.get_mut(*slot)
                            .and_then(Option::take)
                            .unwrap_or_else(|| {
                                Inner::<B>::float_zeros(shape.clone(), device, (*dtype).into())
                            })
                    })
                    .collect();
                Some(Input { weight, tensors })
            })
            .collect()
    }

    /// Casts what travels to the narrower type, on each member's thread.
    fn compress(
        &self,
        inputs: PerMember<Input<Inner<B>>>,
        dtypes: &[DType],
    ) -> Result<PerMember<Input<Inner<B>>>> {
        let Some(narrow) = self.compression.dtype() else {
            return Ok(inputs);
        };
        for device in self.mesh.devices() {
            if !Inner::<B>::supports_dtype(device, narrow.into()) {
                return Err(Error::Compression {
                    compression: self.compression,
                    device: format!("{device:?}"),
                });
            }
        }
        let wide: Vec<bool> = dtypes
            .iter()
            .map(|dtype| dtype.size() > DType::from(narrow).size())
            .collect();
        let jobs = inputs.into_iter().map(|input| {
            let wide = wide.clone();
            move || {
                Ok(input.map(|Input { weight, tensors }| {
                    let cast = |(tensor, wide)| match wide {
                        true => Inner::<B>::float_cast(tensor, narrow),
                        false => tensor,
                    };
                    let tensors = tensors.into_iter().zip(wide).map(cast).collect();
                    Input { weight, tensors }
                }))
            }
        });
        self.pool.run(jobs)
    }

    /// Casts what arrived back to the gradients' own types.
    fn expand(
        &self,
        lists: PerMember<GradList<B>>,
        dtypes: &[DType],
    ) -> Result<PerMember<GradList<B>>> {
        if self.compression == Compression::None {
            return Ok(lists);
        }
        let jobs = lists.into_iter().map(|list| {
            let dtypes: Vec<FloatDType> = dtypes.iter().map(|dtype| (*dtype).into()).collect();
            move || {
                let cast = |(tensor, dtype): (Option<FloatTensor<Inner<B>>>, FloatDType)| {
                    let tensor = tensor?;
                    Some(match tensor.dtype() == DType::from(dtype) {
                        true => tensor,
                        false => Inner::<B>::float_cast(tensor, dtype),
                    })
                };
                Ok(list.map(|list| list.into_iter().zip(dtypes).map(cast).collect()))
            }
        });
        self.pool.run(jobs)
    }

    /// The running statistics that the replicas go on with, `None` where each keeps its own.
    ///
    /// `items` holds the number of items for each list that is there.
    pub(crate) fn states(
        &self,
        lists: PerMember<States<B>>,
        items: &[usize],
        rule: RunningStats,
    ) -> Result<PerMember<States<B>>> {
        let members = self.mesh.len();
        let none = lists.iter().flatten().all(Vec::is_empty);
        if none || members == 1 || rule == RunningStats::Local {
            return Ok((0..members).map(|_| None).collect());
        }
        let total: usize = items.iter().sum();
        let mut items = items.iter();
        let mut first = true;
        let inputs = lists
            .into_iter()
            .map(|list| {
                let tensors = list?;
                let items = *items.next()?;
                let is_first = std::mem::take(&mut first);
                let weight = match rule {
                    RunningStats::Mean => items as f64 / total as f64,
                    RunningStats::First if is_first => 1.0,
                    RunningStats::First | RunningStats::Local => return None,
                };
                Some(Input { weight, tensors })
            })
            .collect();
        let all: Vec<usize> = (0..members).collect();
        let core = self.mesh.core();
        all_reduce_primitives(core, self.pool, inputs, self.bucket_bytes, &all)
    }

    /// Gives every member the tensors that each has from its owner; `lists[i]` holds those that
    /// member `i` owns, at their places.
    pub(crate) fn share(
        &self,
        lists: Vec<GradList<B>>,
        owners: &[usize],
    ) -> Result<Vec<States<B>>> {
        share_owned(
            self.mesh.core(),
            self.pool,
            lists,
            self.bucket_bytes,
            owners,
        )
    }
}
