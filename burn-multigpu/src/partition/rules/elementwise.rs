//! Operations that work element by element, with broadcasting.
//!
//! Each dimension of the result can be cut: the inputs that have it are cut with it, and those that
//! are broadcast along it are needed whole.

use super::super::rule::{Factor, Linear, Operand, Rule, along, onto};
use super::size;
use burn_ir::{BinaryOpIr, MaskFillOpIr, MaskWhereOpIr, ScalarOpIr, TensorIr};

/// One input, the shape of which is the output's.
pub(super) fn unary(input: &TensorIr, out: &TensorIr) -> Rule {
    Rule::new(broadcast(&[input], out))
}

pub(super) fn binary(op: &BinaryOpIr) -> Rule {
    Rule::new(broadcast(&[&op.lhs, &op.rhs], &op.out))
}

pub(super) fn scalar(op: &ScalarOpIr) -> Rule {
    unary(&op.lhs, &op.out)
}

/// Scaling, which is linear where adding a number is not: it would be added once for each part.
pub(super) fn scaled(op: &ScalarOpIr) -> Rule {
    scalar(op).linear(Linear::Jointly)
}

pub(super) fn mask_where(op: &MaskWhereOpIr) -> Rule {
    Rule::new(broadcast(&[&op.tensor, &op.mask, &op.value], &op.out))
}

pub(super) fn mask_fill(op: &MaskFillOpIr) -> Rule {
    Rule::new(broadcast(&[&op.tensor, &op.mask], &op.out))
}

/// A factor for each dimension of the output.
pub(in super::super) fn broadcast(inputs: &[&TensorIr], out: &TensorIr) -> Vec<Factor> {
    (0..out.shape.num_dims())
        .filter(|&dim| size(out, dim) > 1)
        .map(|dim| {
            let operands = inputs
                .iter()
                .map(|input| broadcast_operand(input, out, dim));
            Factor::new(operands, [onto(dim)])
        })
        .collect()
}

/// What a cut of the output along `dim` needs of an input that is aligned with it from the right.
pub(super) fn broadcast_operand(input: &TensorIr, out: &TensorIr, dim: usize) -> Operand {
    match (dim + input.shape.num_dims()).checked_sub(out.shape.num_dims()) {
        Some(own) if size(input, own) == size(out, dim) => along(own),
        _ => Operand::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{boolean, factors, float, float_op, id, int, linear};
    use super::*;
    use burn_backend::DType;
    use burn_ir::{
        BaseOperationIr, BoolOperationIr, CastOpIr, FloatOperationIr, NumericOperationIr,
        OperationIr, ScalarIr, UnaryOpIr,
    };

    fn add(lhs: TensorIr, rhs: TensorIr) -> OperationIr {
        float_op(NumericOperationIr::Add(BinaryOpIr::create(lhs, rhs, id)))
    }

    #[test]
    fn each_dimension_can_be_cut() {
        let exp = FloatOperationIr::Exp(UnaryOpIr::create(float([2, 1, 3]), id));
        let exp = OperationIr::Float(DType::F32, exp);
        assert_eq!(factors(&exp), ["0 -> 0", "2 -> 2"]);
        assert_eq!(linear(&exp), Linear::No);

        let op = add(float([2, 3]), float([2, 3]));
        assert_eq!(factors(&op), ["0 0 -> 0", "1 1 -> 1"]);
        assert_eq!(linear(&op), Linear::Jointly);
        assert!(factors(&add(float([1]), float([1]))).is_empty());
        assert_eq!(factors(&add(float([0, 2]), float([0, 2]))), ["1 1 -> 1"]);
    }

    #[test]
    fn what_is_broadcast_stays_whole() {
        let op = add(float([4, 1, 3]), float([1, 5, 3]));
        assert_eq!(factors(&op), ["0 _ -> 0", "_ 1 -> 1", "2 2 -> 2"]);

        // Operations that broadcast by themselves may have inputs of fewer dimensions.
        let op = MaskWhereOpIr {
            tensor: float([4, 3]),
            mask: boolean([3]),
            value: float([1]),
            out: float([4, 3]),
        };
        let op = OperationIr::BaseFloat(BaseOperationIr::MaskWhere(op));
        assert_eq!(factors(&op), ["0 _ _ -> 0", "1 0 _ -> 1"]);

        let fill = MaskFillOpIr::create(int([4, 1]), boolean([4, 3]), ScalarIr::Int(1), id);
        let fill = OperationIr::BaseInt(BaseOperationIr::MaskFill(fill));
        assert_eq!(factors(&fill), ["0 0 -> 0", "_ 1 -> 1"]);
        assert_eq!(linear(&fill), Linear::No);
    }

    #[test]
    fn sums_pass_through_what_is_linear() {
        let binary = || BinaryOpIr::create(float([2, 3]), float([2, 3]), id);
        let scalar = || ScalarOpIr::create(float([2, 3]), ScalarIr::Float(2.0), id);
        for (op, want) in [
            (NumericOperationIr::Sub(binary()), Linear::Jointly),
            (NumericOperationIr::Mul(binary()), Linear::Each),
            (NumericOperationIr::Div(binary()), Linear::First),
            (NumericOperationIr::Rem(binary()), Linear::No),
            (NumericOperationIr::MulScalar(scalar()), Linear::Jointly),
            (NumericOperationIr::DivScalar(scalar()), Linear::Jointly),
            (NumericOperationIr::AddScalar(scalar()), Linear::No),
            (NumericOperationIr::SubScalar(scalar()), Linear::No),
            (NumericOperationIr::PowiScalar(scalar()), Linear::No),
        ] {
            assert_eq!(linear(&float_op(op.clone())), want);
            assert_eq!(linear(&OperationIr::NumericInt(DType::I64, op)), want);
        }
    }

    #[test]
    fn conversions_and_comparisons_are_cut_too() {
        let cast = CastOpIr::create(float([2, 3]), DType::BF16, id);
        let cast = OperationIr::BaseFloat(BaseOperationIr::Cast(cast));
        assert_eq!(factors(&cast), ["0 -> 0", "1 -> 1"]);
        assert_eq!(linear(&cast), Linear::No);

        let into = CastOpIr::create(boolean([2]), DType::F32, id);
        let into = OperationIr::Bool(BoolOperationIr::IntoFloat(into));
        assert_eq!(factors(&into), ["0 -> 0"]);

        let bool = DType::Bool(burn_backend::BoolStore::Native);
        let equal = BinaryOpIr::create_comparison(int([1, 3]), int([2, 3]), bool, id);
        let equal = OperationIr::BaseInt(BaseOperationIr::Equal(equal));
        assert_eq!(factors(&equal), ["_ 0 -> 0", "1 1 -> 1"]);
    }
}
