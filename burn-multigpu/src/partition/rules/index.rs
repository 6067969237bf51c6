//! What reads or writes where indices say.
//!
//! Indices may point anywhere, so the dimension they point into is needed whole; the indices
//! themselves can be cut. What is written through parts of the indices adds up, if adding is what
//! the operation does: the members start from zero, or the tensor that is written to would be
//! counted once for each of them.

use super::super::rule::{Factor, Linear, Operand, Outcome, Rule, along, onto};
use super::shape::is_full;
use super::{dims, passing, size};
use burn_backend::tensor::IndexingUpdateOp;
use burn_ir::{
    EmbeddingBackwardOpIr, EmbeddingOpIr, GatherNdOpIr, GatherOpIr, ScatterNdOpIr, ScatterOpIr,
    SelectAssignOpIr, SelectOpIr, SliceAssignOpIr, TensorIr,
};

use Operand::{Whole, Zero};

/// Whether the results of writing different values add up.
fn adds_up(update: &IndexingUpdateOp, out: &TensorIr) -> bool {
    matches!(update, IndexingUpdateOp::Add) && out.dtype.is_float()
}

/// The same index in every dimension but `dim`, where the sizes agree: elsewhere the indices cover
/// the start of a longer dimension, and their parts are not its parts.
pub(super) fn gather(op: &GatherOpIr) -> Rule {
    let factors = dims(&op.out)
        .filter(|&dim| size(&op.indices, dim) > 1)
        .filter_map(|dim| {
            let operands = if dim == op.dim {
                [Whole, along(dim)]
            } else if size(&op.tensor, dim) == size(&op.indices, dim) {
                [along(dim); 2]
            } else {
                return None;
            };
            Some(Factor::new(operands, [onto(dim)]))
        })
        .collect();
    Rule::new(factors).linear(Linear::First)
}

pub(super) fn scatter(op: &ScatterOpIr) -> Rule {
    let agree = |&dim: &usize| {
        let own = size(&op.tensor, dim);
        dim != op.dim && size(&op.indices, dim) == own && size(&op.value, dim) == own
    };
    let mut factors = passing(&op.tensor, dims(&op.tensor).filter(agree), 3, 1);
    if adds_up(&op.update, &op.out) && size(&op.indices, op.dim) > 1 {
        let operands = [Zero, along(op.dim), along(op.dim)];
        factors.push(Factor::new(operands, [Outcome::Sum]));
    }
    Rule::new(factors)
}

pub(super) fn select(op: &SelectOpIr) -> Rule {
    let factors = dims(&op.out)
        .filter(|&dim| size(&op.out, dim) > 1)
        .map(|dim| {
            let operands = if dim == op.dim {
                [Whole, along(0)]
            } else {
                [along(dim), Whole]
            };
            Factor::new(operands, [onto(dim)])
        })
        .collect();
    Rule::new(factors).linear(Linear::First)
}

pub(super) fn select_assign(op: &SelectAssignOpIr) -> Rule {
    let mut factors: Vec<_> = dims(&op.tensor)
        .filter(|&dim| dim != op.dim && size(&op.tensor, dim) > 1)
        .map(|dim| Factor::new([along(dim), Whole, along(dim)], [onto(dim)]))
        .collect();
    if adds_up(&op.update, &op.out) && size(&op.indices, 0) > 1 {
        let operands = [Zero, along(0), along(op.dim)];
        factors.push(Factor::new(operands, [Outcome::Sum]));
    }
    Rule::new(factors)
}

/// Indices `[.., k]` point into the first `k` dimensions of the tensor.
pub(super) fn gather_nd(op: &GatherNdOpIr) -> Rule {
    let factors = listed(&op.indices)
        .map(|dim| Factor::new([Whole, along(dim)], [onto(dim)]))
        .collect();
    Rule::new(factors).linear(Linear::First)
}

pub(super) fn scatter_nd(op: &ScatterNdOpIr) -> Rule {
    if !adds_up(&op.reduction, &op.out) {
        return Rule::none();
    }
    let factors = listed(&op.indices)
        .map(|dim| Factor::new([Zero, along(dim), along(dim)], [Outcome::Sum]))
        .collect();
    Rule::new(factors)
}

/// The dimensions of several elements that list indices: all but the last, which is an index.
fn listed(indices: &TensorIr) -> impl Iterator<Item = usize> + '_ {
    let list = indices.shape.num_dims().saturating_sub(1);
    (0..list).filter(|&dim| size(indices, dim) > 1)
}

pub(super) fn slice_assign(op: &SliceAssignOpIr) -> Rule {
    let full = dims(&op.tensor).filter(|&dim| is_full(&op.ranges, dim, &op.tensor));
    Rule::new(passing(&op.tensor, full, 2, 1))
}

/// Rows of a table: indices `[..]`, a table `[n, features]`, a result `[.., features]`.
pub(super) fn embedding(op: &EmbeddingOpIr) -> Rule {
    let mut factors: Vec<_> = dims(&op.indices)
        .filter(|&dim| size(&op.indices, dim) > 1)
        .map(|dim| Factor::new([Whole, along(dim)], [onto(dim)]))
        .collect();
    if size(&op.weights, 1) > 1 {
        let features = op.indices.shape.num_dims();
        factors.push(Factor::new([along(1), Whole], [onto(features)]));
    }
    Rule::new(factors).linear(Linear::First)
}

/// The table is there for its shape, so it is cut only where its gradient is.
pub(super) fn embedding_backward(op: &EmbeddingBackwardOpIr) -> Rule {
    let mut factors = Vec::new();
    if size(&op.weights, 1) > 1 {
        let features = along(op.indices.shape.num_dims());
        factors.push(Factor::new([along(1), features, Whole], [onto(1)]));
    }
    let sums = dims(&op.indices).filter(|&dim| size(&op.indices, dim) > 1);
    let sum = |dim| Factor::new([Whole, along(dim), along(dim)], [Outcome::Sum]);
    factors.extend(sums.map(sum));
    Rule::new(factors)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{base, boolean, factors, float, id, int, linear};
    use super::*;
    use burn_backend::Slice;
    use burn_ir::{BaseOperationIr, ModuleOperationIr, OperationIr};

    const ADD: IndexingUpdateOp = IndexingUpdateOp::Add;

    #[test]
    fn gather_and_scatter() {
        let desc = GatherOpIr::create(float([4, 5, 3]), 1, int([4, 2, 2]), id);
        let op = base(BaseOperationIr::Gather(desc));
        assert_eq!(factors(&op), ["0 0 -> 0", "_ 1 -> 1"]);
        assert_eq!(linear(&op), Linear::First);

        let scatter = |tensor, value| {
            let indices = int([4, 2, 2]);
            BaseOperationIr::Scatter(ScatterOpIr::create(tensor, 1, indices, value, ADD, id))
        };
        let op = base(scatter(float([4, 5, 3]), float([4, 2, 2])));
        assert_eq!(factors(&op), ["0 0 0 -> 0", "z 1 1 -> +"]);
        assert_eq!(linear(&op), Linear::No);
        let op = OperationIr::BaseInt(scatter(int([4, 5, 3]), int([4, 2, 2])));
        assert_eq!(factors(&op), ["0 0 0 -> 0"]);
        // For bools, `Add` is an `or`.
        let op = OperationIr::BaseBool(scatter(boolean([4, 5, 3]), boolean([4, 2, 2])));
        assert_eq!(factors(&op), ["0 0 0 -> 0"]);
    }

    #[test]
    fn select_and_select_assign() {
        let desc = SelectOpIr::create(float([4, 5, 1]), 1, int([3]), id);
        let op = base(BaseOperationIr::Select(desc));
        assert_eq!(factors(&op), ["0 _ -> 0", "_ 0 -> 1"]);
        assert_eq!(linear(&op), Linear::First);

        let (tensor, value) = (float([4, 5, 1]), float([4, 3, 1]));
        let desc = SelectAssignOpIr::create(tensor, 1, int([3]), value, ADD, id);
        let op = base(BaseOperationIr::SelectAssign(desc));
        assert_eq!(factors(&op), ["0 _ 0 -> 0", "z 0 1 -> +"]);
        let (tensor, value) = (int([4, 5]), int([4, 3]));
        let desc = SelectAssignOpIr::create(tensor, 1, int([3]), value, ADD, id);
        let op = OperationIr::BaseInt(BaseOperationIr::SelectAssign(desc));
        assert_eq!(factors(&op), ["0 _ 0 -> 0"]);
    }

    #[test]
    fn lists_of_positions() {
        let desc = GatherNdOpIr::create(float([4, 5, 6]), int([3, 1, 7, 2]), id);
        let op = base(BaseOperationIr::GatherNd(desc));
        assert_eq!(factors(&op), ["_ 0 -> 0", "_ 2 -> 2"]);
        assert_eq!(linear(&op), Linear::First);

        let scatter = |update| {
            let (data, indices, values) = (float([4, 5, 6]), int([3, 2]), float([3, 6]));
            let desc = ScatterNdOpIr::create(data, indices, values, update, id);
            factors(&base(BaseOperationIr::ScatterNd(desc)))
        };
        assert_eq!(scatter(ADD), ["z 0 0 -> +"]);
        assert!(scatter(IndexingUpdateOp::Assign).is_empty());
        assert!(scatter(IndexingUpdateOp::Max).is_empty());
    }

    #[test]
    fn a_slice_that_is_written_to() {
        let ranges = vec![Slice::full(), Slice::new(1, Some(3), 1)];
        let desc = SliceAssignOpIr::create(float([4, 5, 6]), ranges, float([4, 2, 6]), id);
        let op = base(BaseOperationIr::SliceAssign(desc));
        assert_eq!(factors(&op), ["0 0 -> 0", "2 2 -> 2"]);
        assert_eq!(linear(&op), Linear::No);
    }

    #[test]
    fn an_embedding_and_its_gradient() {
        let (weights, indices) = (float([10, 4]), int([3, 5]));
        let desc = EmbeddingOpIr {
            weights,
            indices,
            out: float([3, 5, 4]),
        };
        let op = OperationIr::Module(ModuleOperationIr::Embedding(desc));
        assert_eq!(factors(&op), ["_ 0 -> 0", "_ 1 -> 1", "1 _ -> 2"]);
        assert_eq!(linear(&op), Linear::First);

        let desc = EmbeddingBackwardOpIr {
            weights: float([10, 4]),
            out_grad: float([3, 5, 4]),
            indices: int([3, 5]),
            out: float([10, 4]),
        };
        let op = OperationIr::Module(ModuleOperationIr::EmbeddingBackward(desc));
        assert_eq!(factors(&op), ["1 2 _ -> 1", "_ 0 0 -> +", "_ 1 1 -> +"]);
    }
}
