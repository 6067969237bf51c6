//! Matrix products.
//!
//! A product has three kinds of dimension: those of the batch, the free ones of either side, and
//! the contracted one, over which the parts' products are sums in parts. Such sums exist for floats
//! only, since the members' results are added by a collective of floats.

use super::super::rule::{Factor, Linear, Operand, Outcome, Rule, along, onto};
use super::elementwise::broadcast_operand;
use super::{dims, size};
use burn_ir::{
    CrossOpIr, LinearBiasBackwardOpIr, LinearOpIr, LinearWeightBackwardOpIr, LinearXBackwardOpIr,
    MatmulOpIr, TensorIr,
};
use std::ops::Range;

use Operand::Whole;

/// `[.., m, k]` by `[.., k, n]`.
pub(super) fn matmul(op: &MatmulOpIr) -> Rule {
    let (lhs, rhs, out) = (&op.lhs, &op.rhs, &op.out);
    let (Some(row), Some(column), Some(inner)) = (last(out, 2), last(out, 1), last(lhs, 1)) else {
        return Rule::none();
    };
    let (Some(lhs_row), Some(rhs_row), Some(rhs_column)) =
        (last(lhs, 2), last(rhs, 2), last(rhs, 1))
    else {
        return Rule::none();
    };
    let mut factors = Vec::new();
    for dim in (0..row).filter(|&dim| size(out, dim) > 1) {
        let operands = [lhs, rhs].map(|side| broadcast_operand(side, out, dim));
        factors.push(Factor::new(operands, [onto(dim)]));
    }
    if size(out, row) > 1 {
        factors.push(Factor::new([along(lhs_row), Whole], [onto(row)]));
    }
    if size(out, column) > 1 {
        factors.push(Factor::new([Whole, along(rhs_column)], [onto(column)]));
    }
    if size(lhs, inner) > 1 && out.dtype.is_float() {
        let operands = [along(inner), along(rhs_row)];
        factors.push(Factor::new(operands, [Outcome::Sum]));
    }
    Rule::new(factors).linear(Linear::Each)
}

/// Every dimension but that of the three components.
pub(super) fn cross(op: &CrossOpIr) -> Rule {
    let factors = dims(&op.out)
        .filter(|&dim| dim != op.dim && size(&op.out, dim) > 1)
        .map(|dim| {
            let operands = [&op.lhs, &op.rhs].map(|side| broadcast_operand(side, &op.out, dim));
            Factor::new(operands, [onto(dim)])
        })
        .collect();
    Rule::new(factors).linear(Linear::Each)
}

/// `[.., in]` by `[in, out]`, and a bias `[out]`. A bias that is added to sums in parts would be
/// added once for each of them.
pub(super) fn linear(op: &LinearOpIr) -> Rule {
    let Some(features) = last(&op.x, 1) else {
        return Rule::none();
    };
    let bias = |operand| op.bias.iter().map(move |_| operand);
    let mut factors = Vec::new();
    for dim in cut(&op.x, 0..features) {
        let operands = [along(dim), Whole].into_iter().chain(bias(Whole));
        factors.push(Factor::new(operands, [onto(dim)]));
    }
    if size(&op.weight, 1) > 1 {
        let operands = [Whole, along(1)].into_iter().chain(bias(along(0)));
        factors.push(Factor::new(operands, [onto(features)]));
    }
    if op.bias.is_some() {
        return Rule::new(factors);
    }
    if size(&op.weight, 0) > 1 {
        factors.push(Factor::new([along(features), along(0)], [Outcome::Sum]));
    }
    Rule::new(factors).linear(Linear::Each)
}

/// `[in, out]` and `[.., out]` to `[.., in]`.
pub(super) fn linear_x_backward(op: &LinearXBackwardOpIr) -> Rule {
    let Some(features) = last(&op.output_grad, 1) else {
        return Rule::none();
    };
    let mut factors: Vec<_> = cut(&op.output_grad, 0..features)
        .map(|dim| Factor::new([Whole, along(dim)], [onto(dim)]))
        .collect();
    if size(&op.weight, 0) > 1 {
        factors.push(Factor::new([along(0), Whole], [onto(features)]));
    }
    if size(&op.weight, 1) > 1 {
        factors.push(Factor::new([along(1), along(features)], [Outcome::Sum]));
    }
    Rule::new(factors).linear(Linear::Each)
}

/// `[.., in]` and `[.., out]` to `[in, out]`.
pub(super) fn linear_weight_backward(op: &LinearWeightBackwardOpIr) -> Rule {
    let Some(features) = last(&op.x, 1) else {
        return Rule::none();
    };
    let mut factors = Vec::new();
    if size(&op.out, 0) > 1 {
        factors.push(Factor::new([along(features), Whole], [onto(0)]));
    }
    if size(&op.out, 1) > 1 {
        factors.push(Factor::new([Whole, along(features)], [onto(1)]));
    }
    let sums = cut(&op.x, 0..features);
    factors.extend(sums.map(|dim| Factor::new([along(dim); 2], [Outcome::Sum])));
    Rule::new(factors).linear(Linear::Each)
}

/// `[.., out]` to `[out]`.
pub(super) fn linear_bias_backward(op: &LinearBiasBackwardOpIr) -> Rule {
    let Some(features) = last(&op.output_grad, 1) else {
        return Rule::none();
    };
    let mut factors = Vec::new();
    if size(&op.output_grad, features) > 1 {
        factors.push(Factor::new([along(features)], [onto(0)]));
    }
    let sums = cut(&op.output_grad, 0..features);
    factors.extend(sums.map(|dim| Factor::new([along(dim)], [Outcome::Sum])));
    Rule::new(factors).linear(Linear::Jointly)
}

/// The dimensions of several elements among these.
fn cut(tensor: &TensorIr, dims: Range<usize>) -> impl Iterator<Item = usize> + '_ {
    dims.filter(|&dim| size(tensor, dim) > 1)
}

/// The `n`-th dimension from the end, from 1.
fn last(tensor: &TensorIr, n: usize) -> Option<usize> {
    tensor.shape.num_dims().checked_sub(n)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{factors, float, id, int, linear};
    use super::*;
    use burn_backend::DType;
    use burn_ir::{FloatOperationIr, IntOperationIr, ModuleOperationIr, OperationIr};

    fn float_matmul(lhs: TensorIr, rhs: TensorIr) -> OperationIr {
        let desc = MatmulOpIr::create(lhs, rhs, id);
        OperationIr::Float(DType::F32, FloatOperationIr::Matmul(desc))
    }

    #[test]
    fn a_product_is_cut_along_rows_columns_and_sums() {
        let op = float_matmul(float([4, 5]), float([5, 6]));
        assert_eq!(factors(&op), ["0 _ -> 0", "_ 1 -> 1", "1 0 -> +"]);
        assert_eq!(linear(&op), Linear::Each);

        let op = float_matmul(float([1, 5]), float([5, 1]));
        assert_eq!(factors(&op), ["1 0 -> +"]);
        let op = float_matmul(float([4, 1]), float([1, 6]));
        assert_eq!(factors(&op), ["0 _ -> 0", "_ 1 -> 1"]);
    }

    #[test]
    fn batches_are_broadcast() {
        let op = float_matmul(float([2, 1, 4, 5]), float([1, 3, 5, 6]));
        let want = ["0 _ -> 0", "_ 1 -> 1", "2 _ -> 2", "_ 3 -> 3", "3 2 -> +"];
        assert_eq!(factors(&op), want);
        let op = float_matmul(float([2, 1, 5]), float([2, 5, 1]));
        assert_eq!(factors(&op), ["0 0 -> 0", "2 1 -> +"]);
    }

    #[test]
    fn integers_have_no_sums_in_parts() {
        let desc = MatmulOpIr::create(int([4, 5]), int([5, 6]), id);
        let op = OperationIr::Int(IntOperationIr::Matmul(desc));
        assert_eq!(factors(&op), ["0 _ -> 0", "_ 1 -> 1"]);
    }

    #[test]
    fn cross_keeps_its_components() {
        let desc = CrossOpIr::create(float([4, 3, 2]), float([1, 3, 2]), 1, id);
        let op = OperationIr::Float(DType::F32, FloatOperationIr::Cross(desc));
        assert_eq!(factors(&op), ["0 _ -> 0", "2 2 -> 2"]);
    }

    #[test]
    fn a_linear_layer() {
        let op = |bias| {
            let desc = LinearOpIr::create(float([2, 1, 5]), float([5, 6]), bias, id);
            OperationIr::Module(ModuleOperationIr::Linear(desc))
        };
        assert_eq!(factors(&op(None)), ["0 _ -> 0", "_ 1 -> 2", "2 0 -> +"]);
        assert_eq!(linear(&op(None)), Linear::Each);
        let biased = op(Some(float([6])));
        assert_eq!(factors(&biased), ["0 _ _ -> 0", "_ 1 0 -> 2"]);
        assert_eq!(linear(&biased), Linear::No);
    }

    #[test]
    fn the_gradients_of_a_linear_layer() {
        let grad = || float([2, 4, 6]);
        let op = |op| OperationIr::Module(op);
        let x = LinearXBackwardOpIr::create(float([5, 6]), grad(), id);
        let x = op(ModuleOperationIr::LinearXBackward(x));
        let want = ["_ 0 -> 0", "_ 1 -> 1", "0 _ -> 2", "1 2 -> +"];
        assert_eq!(factors(&x), want);

        let weight = LinearWeightBackwardOpIr::create(float([2, 4, 5]), grad(), id);
        let weight = op(ModuleOperationIr::LinearWeightBackward(weight));
        let want = ["2 _ -> 0", "_ 2 -> 1", "0 0 -> +", "1 1 -> +"];
        assert_eq!(factors(&weight), want);

        let bias = LinearBiasBackwardOpIr::create(grad(), id);
        let bias = op(ModuleOperationIr::LinearBiasBackward(bias));
        assert_eq!(factors(&bias), ["2 -> 0", "0 -> +", "1 -> +"]);
        assert_eq!(linear(&bias), Linear::Jointly);
    }
}
