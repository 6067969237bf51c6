//! Reductions, to one element or along a dimension, and cumulative operations.
//!
//! Over the reduced dimension the parts' results have to be combined: float sums by adding them
//! up, which may wait until their total is needed, and everything else that combines with itself
//! (integer sums, products, extrema) by the same operation once more. A mean does neither, since
//! the parts may differ in size: over the cut dimension the planner makes a sum and a division of
//! it before it asks for a rule. Positions and ranks (`argmax`, `topk`) and running totals need the
//! dimension whole.

use super::super::rule::{Factor, Linear, Outcome, Rule, along};
use super::{dims, passing, size};
use burn_ir::{DimOpIr, ReduceDimOpIr, ReduceDimWithIndicesOpIr, ReduceOpIr, TensorIr};

/// The sum of all elements.
pub(super) fn sum(op: &ReduceOpIr) -> Rule {
    let outcome = if op.out.dtype.is_float() {
        Outcome::Sum
    } else {
        Outcome::Again(0)
    };
    Rule::new(full(&op.input, outcome)).linear(Linear::Jointly)
}

/// The mean of all elements, of which every dimension is a reduced one.
pub(super) fn mean() -> Rule {
    Rule::none().linear(Linear::Jointly)
}

/// Whatever reduces all elements and may be applied to its own results.
pub(super) fn again(op: &ReduceOpIr) -> Rule {
    Rule::new(full(&op.input, Outcome::Again(0)))
}

pub(super) fn sum_dim(op: &ReduceDimOpIr) -> Rule {
    let outcome = if op.out.dtype.is_float() {
        Outcome::Sum
    } else {
        Outcome::Again(op.axis)
    };
    over_axis(op, outcome).linear(Linear::Jointly)
}

pub(super) fn mean_dim(op: &ReduceDimOpIr) -> Rule {
    whole_dim(op).linear(Linear::Jointly)
}

/// Whatever reduces a dimension and may be applied to its own results.
pub(super) fn again_dim(op: &ReduceDimOpIr) -> Rule {
    over_axis(op, Outcome::Again(op.axis))
}

/// Whatever needs its dimension whole.
pub(super) fn whole_dim(op: &ReduceDimOpIr) -> Rule {
    Rule::new(others(&op.input, op.axis, 1))
}

pub(super) fn with_indices(op: &ReduceDimWithIndicesOpIr) -> Rule {
    Rule::new(others(&op.tensor, op.dim, 2))
}

pub(super) fn cumulative(op: &DimOpIr) -> Rule {
    Rule::new(others(&op.input, op.axis, 1))
}

fn full(input: &TensorIr, outcome: Outcome) -> Vec<Factor> {
    dims(input)
        .filter(|&dim| size(input, dim) > 1)
        .map(|dim| Factor::new([along(dim)], [outcome]))
        .collect()
}

fn over_axis(op: &ReduceDimOpIr, outcome: Outcome) -> Rule {
    let mut rule = whole_dim(op);
    if size(&op.input, op.axis) > 1 {
        rule.factors.push(Factor::new([along(op.axis)], [outcome]));
    }
    rule
}

fn others(input: &TensorIr, axis: usize, outputs: usize) -> Vec<Factor> {
    passing(input, dims(input).filter(|&dim| dim != axis), 1, outputs)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{factors, float, float_op, id, int, linear};
    use super::*;
    use burn_backend::DType;
    use burn_ir::{NumericOperationIr, OperationIr};

    fn int_op(op: NumericOperationIr) -> OperationIr {
        OperationIr::NumericInt(DType::I64, op)
    }

    #[test]
    fn all_elements() {
        let floats = || ReduceOpIr::create(float([4, 1, 3]), id);
        let ints = ReduceOpIr::create(int([4, 1, 3]), id);
        let sum = float_op(NumericOperationIr::Sum(floats()));
        assert_eq!(factors(&sum), ["0 -> +", "2 -> +"]);
        assert_eq!(linear(&sum), Linear::Jointly);
        let sum = int_op(NumericOperationIr::Sum(ints));
        assert_eq!(factors(&sum), ["0 -> again 0", "2 -> again 0"]);

        for op in [
            NumericOperationIr::Prod(floats()),
            NumericOperationIr::Max(floats()),
            NumericOperationIr::Min(floats()),
            NumericOperationIr::MaxAbs(floats()),
        ] {
            let op = float_op(op);
            assert_eq!(factors(&op), ["0 -> again 0", "2 -> again 0"]);
            assert_eq!(linear(&op), Linear::No);
        }

        let mean = float_op(NumericOperationIr::Mean(floats()));
        assert!(factors(&mean).is_empty());
        assert_eq!(linear(&mean), Linear::Jointly);
    }

    #[test]
    fn along_a_dimension() {
        let floats = |axis| ReduceDimOpIr::create(float([4, 3, 2]), axis, 1, id);
        let sum = float_op(NumericOperationIr::SumDim(floats(1)));
        assert_eq!(factors(&sum), ["0 -> 0", "2 -> 2", "1 -> +"]);
        assert_eq!(linear(&sum), Linear::Jointly);
        let ints = ReduceDimOpIr::create(int([4, 3, 2]), 0, 1, id);
        let sum = int_op(NumericOperationIr::SumDim(ints));
        assert_eq!(factors(&sum), ["1 -> 1", "2 -> 2", "0 -> again 0"]);

        for op in [
            NumericOperationIr::ProdDim(floats(2)),
            NumericOperationIr::MaxDim(floats(2)),
            NumericOperationIr::MinDim(floats(2)),
            NumericOperationIr::MaxAbsDim(floats(2)),
        ] {
            assert_eq!(factors(&float_op(op)), ["0 -> 0", "1 -> 1", "2 -> again 2"]);
        }

        let mean = float_op(NumericOperationIr::MeanDim(floats(0)));
        assert_eq!(factors(&mean), ["1 -> 1", "2 -> 2"]);
        assert_eq!(linear(&mean), Linear::Jointly);
    }

    #[test]
    fn what_needs_its_dimension_whole() {
        let arg = || ReduceDimOpIr::create_arg(float([4, 3, 1]), 1, 1, DType::I64, id);
        let top = || ReduceDimOpIr::create(float([4, 3, 1]), 1, 2, id);
        let cumulative = || DimOpIr::create(float([4, 3, 1]), 1, id);
        for op in [
            NumericOperationIr::ArgMax(arg()),
            NumericOperationIr::ArgMin(arg()),
            NumericOperationIr::ArgTopK(arg()),
            NumericOperationIr::TopK(top()),
            NumericOperationIr::CumSum(cumulative()),
            NumericOperationIr::CumProd(cumulative()),
            NumericOperationIr::CumMin(cumulative()),
            NumericOperationIr::CumMax(cumulative()),
        ] {
            let op = float_op(op);
            assert_eq!(factors(&op), ["0 -> 0"]);
            assert_eq!(linear(&op), Linear::No);
        }

        let desc = ReduceDimWithIndicesOpIr::create(float([4, 3]), 0, DType::I64, id);
        let op = float_op(NumericOperationIr::MaxDimWithIndices(desc));
        assert_eq!(factors(&op), ["1 -> 1 1"]);
    }
}
