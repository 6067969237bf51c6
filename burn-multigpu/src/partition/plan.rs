//! From a rule and the layouts at hand to what is moved and what each member runs.

use super::rule::{Axis, Factor, Linear, Operand, Outcome, Rule};
use crate::layout::{Bounds, Layout};
use burn::tensor::Shape;
use burn_ir::{BaseOperationIr, OperationIr, SliceOpIr, TensorIr, TensorStatus};

/// What is known of an input.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// It lies on the members.
    Placed(Layout),
    /// It is not there yet, and can be made in any layout at no cost.
    Free {
        /// It comes from the host, so that its first dimension may well be a batch.
        host: bool,
        /// It is zero everywhere.
        zero: bool,
    },
}

/// How an operation runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The layout that each input must be brought to.
    pub(crate) inputs: Vec<Layout>,
    /// The layouts that the outputs then have.
    pub(crate) outputs: Vec<Layout>,
    /// Whether the outputs are one result for each part, to which the operation is applied again.
    pub(crate) again: bool,
    /// Whether the parts of the outputs have become uneven by cutting, and should be dealt anew.
    pub(crate) rebalance: bool,
    /// Set where something that was sharded cannot stay so.
    pub(crate) gathered: Option<Gathered>,
}

/// Why an operation needs whole what is sharded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Gathered {
    /// It has no rule for the dimension that is cut: it runs whole on every member.
    NoRule,
    /// Its inputs are cut differently.
    Differently,
    /// One of its inputs is needed whole by every member.
    NeededWhole,
}

impl Gathered {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::NoRule => {
                "it has no rule for the dimension that is cut, and ran whole on every member"
            }
            Self::Differently => "its inputs are cut differently",
            Self::NeededWhole => "every member needs this input whole",
        }
    }
}

impl Plan {
    /// Everything whole on every member.
    pub(crate) fn replicated(op: &OperationIr) -> Self {
        Self {
            inputs: op.inputs().map(|_| Layout::Replicated).collect(),
            outputs: op.outputs().map(|_| Layout::Replicated).collect(),
            again: false,
            rebalance: false,
            gathered: None,
        }
    }
}

/// Decides how an operation runs on a mesh of several members.
pub(crate) fn plan(op: &OperationIr, rule: &Rule, given: &[Given], members: usize) -> Plan {
    let inputs: Vec<&TensorIr> = op.inputs().collect();
    if let Some(plan) = pass_partial(op, rule.linear, &inputs, given) {
        return plan;
    }
    if let Some(plan) = slice_plan(op, given) {
        return plan;
    }
    let any_sharded = given.iter().any(|given| sharded(given).is_some());
    if any_sharded {
        let whole: usize = inputs
            .iter()
            .zip(given)
            .filter(|(_, given)| sharded(given).is_some())
            .map(|(tensor, _)| bytes(tensor))
            .sum();
        let best = rule
            .factors
            .iter()
            .filter_map(|factor| Choice::new(factor, &inputs, given))
            // Moving nothing beats a reduction, which beats moving more than it saves.
            .min_by_key(|choice| choice.moved);
        return match best {
            Some(choice) if choice.moved <= whole => choice.plan(),
            _ => Plan {
                gathered: Some(Gathered::NoRule),
                ..Plan::replicated(op)
            },
        };
    }
    let guess = rule
        .factors
        .iter()
        .find_map(|factor| guess_batch(factor, &inputs, given, members));
    match guess {
        Some((factor, bounds)) => Choice::with(factor, bounds).plan(),
        None => Plan::replicated(op),
    }
}

fn sharded(given: &Given) -> Option<(usize, &Bounds)> {
    match given {
        Given::Placed(Layout::Sharded { dim, bounds }) => Some((*dim, bounds)),
        _ => None,
    }
}

fn bytes(tensor: &TensorIr) -> usize {
    tensor.shape.num_elements() * tensor.dtype.size()
}

/// A sum in parts passes where the operation is linear in it and nobody else needs the sum:
/// an input that is used again would have to be reduced all the same, and its result as well.
fn pass_partial(
    op: &OperationIr,
    linear: Linear,
    inputs: &[&TensorIr],
    given: &[Given],
) -> Option<Plan> {
    let partial: Vec<bool> = given
        .iter()
        .map(|given| matches!(given, Given::Placed(Layout::Partial)))
        .collect();
    let count = partial.iter().filter(|partial| **partial).count();
    let others_whole = given.iter().all(|given| sharded(given).is_none());
    let passes = match linear {
        Linear::No => false,
        Linear::Jointly => count == partial.len(),
        Linear::Each => count == 1 && partial[..2].contains(&true) && others_whole,
        Linear::First => count == 1 && partial[0] && others_whole,
    };
    let consumed = inputs
        .iter()
        .zip(&partial)
        .all(|(tensor, partial)| !partial || tensor.status == TensorStatus::ReadWrite);
    if count == 0 || !passes || !consumed {
        return None;
    }
    let layout = |partial: &bool| match partial {
        true => Layout::Partial,
        false => Layout::Replicated,
    };
    Some(Plan {
        inputs: partial.iter().map(layout).collect(),
        outputs: op.outputs().map(|_| Layout::Partial).collect(),
        again: false,
        rebalance: false,
        gathered: None,
    })
}

/// A slice along the dimension that is cut: every member takes what it has of the range.
fn slice_plan(op: &OperationIr, given: &[Given]) -> Option<Plan> {
    let desc = slice_of(op)?;
    let (dim, bounds) = sharded(&given[0])?;
    let range = contiguous(desc, dim)?;
    if range.len() == bounds.len() {
        return None;
    }
    Some(Plan {
        inputs: vec![Layout::Sharded {
            dim,
            bounds: bounds.clone(),
        }],
        outputs: vec![Layout::Sharded {
            dim,
            bounds: bounds.within(&range),
        }],
        again: false,
        rebalance: true,
        gathered: None,
    })
}

/// The slice that an operation is.
pub(super) fn slice_of(op: &OperationIr) -> Option<&SliceOpIr> {
    match op {
        OperationIr::BaseFloat(BaseOperationIr::Slice(desc))
        | OperationIr::BaseInt(BaseOperationIr::Slice(desc))
        | OperationIr::BaseBool(BaseOperationIr::Slice(desc)) => Some(desc),
        _ => None,
    }
}

/// The range that a slice takes of a dimension, where it takes every element of it.
fn contiguous(desc: &SliceOpIr, dim: usize) -> Option<std::ops::Range<usize>> {
    let size = desc.tensor.shape[dim];
    let Some(slice) = desc.ranges.get(dim) else {
        return Some(0..size);
    };
    (slice.step == 1).then(|| slice.to_range(size))
}

/// A factor with the cuts that it is given, and what that moves.
struct Choice<'a> {
    factor: &'a Factor,
    bounds: Bounds,
    moved: usize,
    gathered: Option<Gathered>,
}

impl<'a> Choice<'a> {
    fn with(factor: &'a Factor, bounds: Bounds) -> Self {
        Self {
            factor,
            bounds,
            moved: 0,
            gathered: None,
        }
    }

    /// The cuts of the largest input that is cut along the factor; `None` where none is.
    fn new(factor: &'a Factor, inputs: &[&TensorIr], given: &[Given]) -> Option<Self> {
        if !zeros_hold(factor, given) {
            return None;
        }
        let cut_along = |index: usize| -> Option<Bounds> {
            let (dim, bounds) = sharded(&given[index])?;
            match factor.inputs[index] {
                Operand::Along(axis) if axis.dim == dim => bounds.divided(axis.unit),
                _ => None,
            }
        };
        let bounds = (0..inputs.len())
            .filter_map(|index| Some((bytes(inputs[index]), cut_along(index)?)))
            .max_by_key(|(bytes, _)| *bytes)?
            .1;
        let mut moved = 0;
        let mut gathered = None;
        for (index, tensor) in inputs.iter().enumerate() {
            if sharded(&given[index]).is_some() && cut_along(index).as_ref() != Some(&bounds) {
                moved += bytes(tensor);
                gathered = Some(match factor.inputs[index] {
                    Operand::Along(_) => Gathered::Differently,
                    _ => Gathered::NeededWhole,
                });
            }
        }
        Some(Self {
            factor,
            bounds,
            moved,
            gathered,
        })
    }

    fn plan(self) -> Plan {
        let cut = |axis: Axis| Layout::Sharded {
            dim: axis.dim,
            bounds: self.bounds.times(axis.unit),
        };
        let input = |operand: &Operand| match operand {
            Operand::Along(axis) => cut(*axis),
            Operand::Whole | Operand::Zero => Layout::Replicated,
        };
        let output = |outcome: &Outcome| match outcome {
            Outcome::Along(axis) => cut(*axis),
            Outcome::Sum => Layout::Partial,
            Outcome::Again(dim) => Layout::Sharded {
                dim: *dim,
                bounds: self.bounds.one_each(),
            },
        };
        Plan {
            inputs: self.factor.inputs.iter().map(input).collect(),
            outputs: self.factor.outputs.iter().map(output).collect(),
            again: self
                .factor
                .outputs
                .iter()
                .any(|outcome| matches!(outcome, Outcome::Again(_))),
            rebalance: false,
            gathered: self.gathered,
        }
    }
}

fn zeros_hold(factor: &Factor, given: &[Given]) -> bool {
    factor.inputs.iter().zip(given).all(|(operand, given)| {
        *operand != Operand::Zero || matches!(given, Given::Free { zero: true, .. })
    })
}

/// Data from the host is cut along its first dimension where the operation allows it.
fn guess_batch<'a>(
    factor: &'a Factor,
    inputs: &[&TensorIr],
    given: &[Given],
    members: usize,
) -> Option<(&'a Factor, Bounds)> {
    let in_parts = factor
        .outputs
        .iter()
        .all(|outcome| matches!(outcome, Outcome::Along(_)));
    if !in_parts || !zeros_hold(factor, given) {
        return None;
    }
    let from_host = |index: usize| {
        matches!(given[index], Given::Free { host: true, .. })
            && matches!(factor.inputs[index], Operand::Along(Axis { dim: 0, .. }))
    };
    let index = (0..inputs.len()).find(|index| from_host(*index))?;
    let Operand::Along(axis) = factor.inputs[index] else {
        return None;
    };
    let rows = batch_len(&inputs[index].shape)? / axis.unit;
    (rows > 1).then(|| (factor, Bounds::even(rows, members)))
}

/// The length of a first dimension that can be cut.
pub(crate) fn batch_len(shape: &Shape) -> Option<usize> {
    shape.as_slice().first().copied().filter(|len| *len > 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::rule::rule;
    use super::*;
    use burn::tensor::{DType, Slice};
    use burn_ir::{
        BinaryOpIr, EmbeddingOpIr, MatmulOpIr, ModuleOperationIr, NumericOperationIr, ReduceOpIr,
        TensorId,
    };
    use std::sync::atomic::{AtomicU64, Ordering};

    static IDS: AtomicU64 = AtomicU64::new(0);

    fn id() -> TensorId {
        TensorId::new(IDS.fetch_add(1, Ordering::Relaxed))
    }

    fn tensor<const D: usize>(dims: [usize; D], status: TensorStatus) -> TensorIr {
        TensorIr {
            id: id(),
            shape: Shape::new(dims),
            status,
            dtype: DType::F32,
        }
    }

    fn used<const D: usize>(dims: [usize; D]) -> TensorIr {
        tensor(dims, TensorStatus::ReadOnly)
    }

    fn last_use<const D: usize>(dims: [usize; D]) -> TensorIr {
        tensor(dims, TensorStatus::ReadWrite)
    }

    fn cut(dim: usize, sizes: &[usize]) -> Layout {
        Layout::Sharded {
            dim,
            bounds: Bounds::from_sizes(sizes.iter().copied()),
        }
    }

    fn decide(op: &OperationIr, given: &[Given]) -> Plan {
        plan(op, &rule(op), given, 2)
    }

    fn placed(layouts: &[Layout]) -> Vec<Given> {
        layouts.iter().cloned().map(Given::Placed).collect()
    }

    fn add(lhs: TensorIr, rhs: TensorIr) -> OperationIr {
        OperationIr::NumericFloat(
            DType::F32,
            NumericOperationIr::Add(BinaryOpIr::create(lhs, rhs, id)),
        )
    }

    fn matmul(lhs: TensorIr, rhs: TensorIr) -> OperationIr {
        OperationIr::Float(
            DType::F32,
            burn_ir::FloatOperationIr::Matmul(MatmulOpIr::create(lhs, rhs, id)),
        )
    }

    #[test]
    fn a_whole_operand_is_cut_to_match() {
        let op = add(used([5, 3]), used([5, 3]));
        let plan = decide(&op, &placed(&[cut(0, &[3, 2]), Layout::Replicated]));
        assert_eq!(plan.inputs, [cut(0, &[3, 2]), cut(0, &[3, 2])]);
        assert_eq!(plan.outputs, [cut(0, &[3, 2])]);
        assert_eq!(plan.gathered, None);
    }

    #[test]
    fn a_broadcast_operand_stays_whole() {
        let op = add(used([5, 3]), used([1, 3]));
        let plan = decide(&op, &placed(&[cut(0, &[3, 2]), Layout::Replicated]));
        assert_eq!(plan.inputs, [cut(0, &[3, 2]), Layout::Replicated]);
    }

    #[test]
    fn operands_cut_differently_follow_the_larger() {
        let op = add(used([4, 6]), used([1, 6]));
        let plan = decide(&op, &placed(&[cut(0, &[2, 2]), cut(1, &[3, 3])]));
        assert_eq!(plan.inputs, [cut(0, &[2, 2]), Layout::Replicated]);
        assert_eq!(plan.gathered, Some(Gathered::NeededWhole));
    }

    #[test]
    fn a_contraction_over_the_cut_leaves_a_sum() {
        let op = matmul(used([7, 4]), used([4, 2]));
        let plan = decide(&op, &placed(&[cut(1, &[2, 2]), cut(0, &[2, 2])]));
        assert_eq!(plan.outputs, [Layout::Partial]);
    }

    #[test]
    fn sums_pass_only_at_their_last_use() {
        let layouts = placed(&[Layout::Partial, Layout::Partial]);
        let passes = decide(&add(last_use([3]), last_use([3])), &layouts);
        assert_eq!(passes.outputs, [Layout::Partial]);
        let reduced = decide(&add(used([3]), last_use([3])), &layouts);
        assert_eq!(reduced.inputs, [Layout::Replicated, Layout::Replicated]);
        let mixed = placed(&[Layout::Partial, Layout::Replicated]);
        let added = decide(&add(last_use([3]), last_use([3])), &mixed);
        assert_eq!(added.outputs, [Layout::Replicated]);
    }

    #[test]
    fn data_from_the_host_is_a_batch_where_the_operation_allows_it() {
        let op = OperationIr::Module(ModuleOperationIr::Embedding(EmbeddingOpIr {
            weights: used([10, 4]),
            indices: TensorIr {
                dtype: DType::I32,
                ..used([5, 3])
            },
            out: TensorIr::uninit(id(), Shape::new([5, 3, 4]), DType::F32),
        }));
        let free = Given::Free {
            host: true,
            zero: false,
        };
        let plan = decide(&op, &[free.clone(), free]);
        assert_eq!(plan.inputs, [Layout::Replicated, cut(0, &[3, 2])]);
        assert_eq!(plan.outputs, [cut(0, &[3, 2])]);
    }

    #[test]
    fn a_slice_along_the_cut_is_taken_from_its_owners() {
        let ranges = vec![Slice::new(1, Some(4), 1)];
        let desc = SliceOpIr::create(used([6, 2]), ranges, id);
        let op = OperationIr::BaseFloat(BaseOperationIr::Slice(desc));
        let plan = decide(&op, &placed(&[cut(0, &[3, 3])]));
        assert_eq!(plan.outputs, [cut(0, &[2, 1])]);
        assert!(plan.rebalance);
    }

    #[test]
    fn what_has_no_rule_is_gathered() {
        let desc = burn_ir::FlipOpIr {
            input: used([4]),
            out: TensorIr::uninit(id(), Shape::new([4]), DType::F32),
            axes: vec![0],
        };
        let op = OperationIr::BaseFloat(BaseOperationIr::Flip(desc));
        let plan = decide(&op, &placed(&[cut(0, &[2, 2])]));
        assert_eq!(plan.inputs, [Layout::Replicated]);
        assert_eq!(plan.gathered, Some(Gathered::NoRule));
    }

    #[test]
    fn a_maximum_over_the_cut_is_the_maximum_of_maxima() {
        let op = OperationIr::NumericFloat(
            DType::F32,
            NumericOperationIr::Max(ReduceOpIr::create(used([5, 2]), id)),
        );
        let plan = decide(&op, &placed(&[cut(0, &[5, 0])]));
        assert!(plan.again);
        assert_eq!(plan.outputs, [cut(0, &[1, 0])]);
    }
}
