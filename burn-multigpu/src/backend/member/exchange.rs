//! What members do together: moving parts, adding up sums, sharing random numbers.

use super::super::InnerBackend;
use super::super::command::Reduction;
use super::super::meeting::{Meeting, Turns};
use super::Primitive;
use super::worker::{Stop, Worker};
use crate::collective::{Held, pack_member, sum_member, unpack_member};
use crate::layout::{Layout, overlap};
use crate::partition::local::localize;
use burn::tensor::{Shape, Slice};
use burn_backend::TensorMetadata;
use burn_backend::tensor::FloatTensor;
use burn_ir::{OperationIr, TensorIr};
use burn_router::RunnerClient;
use std::ops::Range;
use std::sync::Arc;

impl<B: InnerBackend> Worker<B> {
    /// Random numbers: parts are drawn in turn, which gives those of a single device; whole ones by
    /// the first member, and the others take a copy.
    pub(super) fn draw(
        &self,
        op: &OperationIr,
        layout: &Layout,
        turns: &Turns,
        drawn: &Meeting<Primitive<B>>,
    ) -> Result<(), Stop> {
        let turn = turns.wait(self.member);
        let Some(out) = op.outputs().next() else {
            return Ok(());
        };
        if let Layout::Sharded { .. } = layout {
            if !layout.is_empty_at(self.member) {
                let outputs = std::slice::from_ref(layout);
                self.runner
                    .register_op(localize(op, &[], outputs, self.member));
            }
            return Ok(());
        }
        if self.member == 0 {
            self.runner.register_op(op.clone());
            drop(turn);
            drawn.bring(0, Ok(self.part(out, out.shape.clone())));
            return Ok(());
        }
        drop(turn);
        let tensor = drawn.from(0)?;
        let own = self.fetch(tensor, 0, &out.shape, out)?.own();
        self.register(out.id, own, out.shape.clone(), out.dtype);
        Ok(())
    }

    /// Brings this member the part that it needs of a tensor that is cut otherwise.
    pub(super) fn exchange(
        &self,
        tensor: &TensorIr,
        from: &Layout,
        to: &Layout,
        parts: &Meeting<Option<Primitive<B>>>,
    ) -> Result<(), Stop> {
        let Layout::Sharded { dim, bounds } = from else {
            return Ok(());
        };
        let held = !from.is_empty_at(self.member);
        let own = held.then(|| {
            let shape = from.local_shape(&tensor.shape, self.member);
            self.part(tensor, shape)
        });
        parts.bring(self.member, Ok(own));
        let parts = parts.all()?;

        let mut pieces = Vec::new();
        for (member, part) in parts.into_iter().enumerate() {
            let Some(part) = part else { continue };
            let part_shape = from.local_shape(&tensor.shape, member);
            let cut = wanted(&part_shape, *dim, &bounds.range(member), to, self.member);
            let Some(cut) = cut else { continue };
            let shape = Shape::from(cut.iter().map(Range::len).collect::<Vec<_>>());
            let piece = if shape == part_shape {
                part
            } else {
                let slices: Vec<Slice> = cut.into_iter().map(Slice::from).collect();
                part.slice(&slices)
            };
            pieces.push(self.fetch(piece, member, &shape, tensor)?);
        }
        if held {
            self.drop_tensor(tensor);
        }
        if to.is_empty_at(self.member) {
            return Ok(());
        }
        let shape = to.local_shape(&tensor.shape, self.member);
        let joined = match pieces.len() {
            // A single piece may be another member's buffer.
            1 => pieces.pop().map(Primitive::own),
            _ => Primitive::cat(pieces, *dim),
        };
        if let Some(joined) = joined {
            self.register(tensor.id, joined, shape, tensor.dtype);
        }
        Ok(())
    }

    /// Takes a tensor from another member, and counts its bytes.
    fn fetch(
        &self,
        tensor: Primitive<B>,
        from: usize,
        shape: &Shape,
        ir: &TensorIr,
    ) -> Result<Primitive<B>, Stop> {
        let bytes = shape.num_elements() * ir.dtype.size();
        self.core.counters.moved(from, self.member, bytes);
        let path = self.core.transfers.path(from, self.member);
        Ok(tensor.transfer(path, &self.device)?)
    }

    /// Adds up partial sums: each member sums one chunk and takes the others from their owners. All
    /// add in member order, so that all have the same bits.
    pub(super) fn reduce(&self, reduction: &Reduction<B>) -> Result<(), Stop> {
        let members = self.core.devices.len();
        let (core, plan) = (&*self.core, &reduction.plan);
        let mut own = Vec::with_capacity(reduction.tensors.len());
        for tensor in &reduction.tensors {
            match self.take(tensor) {
                Primitive::Float(tensor) => own.push(tensor),
                _ => return Err(Stop::Device("only float sums can be in parts".to_string())),
            }
        }
        let shapes: Vec<Shape> = own.iter().map(TensorMetadata::shape).collect();
        let packed = pack_member(core, self.member, plan, own)?;
        reduction.packed.bring(self.member, Ok(Arc::new(packed)));
        let packed = reduction.packed.all()?;

        // Without a second meeting, everything is in one chunk that every member sums.
        let chunk = reduction.summed.as_ref().map_or(0, |_| self.member);
        let mine: Vec<Vec<Held<B>>> = (0..plan.buckets.len())
            .map(|bucket| {
                let buffer = |member: usize| (member, packed[member][bucket][chunk].clone());
                (0..members).map(buffer).collect()
            })
            .collect();
        let weights = vec![1.0; members];
        let sums = sum_member(core, self.member, plan, mine, &weights)?;

        let by_bucket: Vec<Vec<Held<B>>> = match &reduction.summed {
            None => sums
                .into_iter()
                .map(|sum| vec![(self.member, sum)])
                .collect(),
            Some(summed) => {
                summed.bring(self.member, Ok(sums));
                let all: Vec<Vec<FloatTensor<B>>> = summed.all()?;
                (0..plan.buckets.len())
                    .map(|bucket| {
                        let chunk = |owner: usize| (owner, all[owner][bucket].clone());
                        (0..members).map(chunk).collect()
                    })
                    .collect()
            }
        };
        let tensors = unpack_member(core, self.member, plan, by_bucket, &shapes)?;
        for (tensor, sum) in reduction.tensors.iter().zip(tensors) {
            self.register(
                tensor.id,
                Primitive::Float(sum),
                tensor.shape.clone(),
                tensor.dtype,
            );
        }
        if self.member == 0 {
            core.counters.all_reduce(plan.buckets.len());
        }
        Ok(())
    }
}

/// What a member wants, in a new layout, of the part that covers `owned` of dimension `dim`: a
/// range of each of its dimensions, or `None` for nothing.
fn wanted(
    part: &Shape,
    dim: usize,
    owned: &Range<usize>,
    to: &Layout,
    member: usize,
) -> Option<Vec<Range<usize>>> {
    let mut cut: Vec<Range<usize>> = part.iter().map(|size| 0..*size).collect();
    if let Layout::Sharded { dim: other, bounds } = to {
        let range = bounds.range(member);
        cut[*other] = if *other == dim {
            overlap(&range, owned)
        } else {
            range
        };
    }
    cut.iter().all(|range| !range.is_empty()).then_some(cut)
}
