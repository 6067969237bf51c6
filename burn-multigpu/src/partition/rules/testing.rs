//! What the tests of the rules share: tensors, operations, and rules as short text.

use super::super::ir;
use super::super::rule::{Axis, Factor, Linear, Operand, Outcome, rule};
use burn_backend::{BoolStore, DType};
use burn_ir::{
    AttentionOpIr, AttentionOptionsIr, BaseOperationIr, Conv2dOpIr, Conv2dOptionsIr,
    DeformConv2dBackwardOpIr, DeformConv2dOpIr, DeformableConv2dOptionsIr, ModuleOperationIr,
    NumericOperationIr, OperationIr, TensorId, TensorIr, TensorStatus,
};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) fn id() -> TensorId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    TensorId::new(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn tensor<const D: usize>(shape: [usize; D], dtype: DType) -> TensorIr {
    TensorIr {
        id: id(),
        shape: shape.into(),
        status: TensorStatus::ReadOnly,
        dtype,
    }
}

pub(crate) fn float<const D: usize>(shape: [usize; D]) -> TensorIr {
    tensor(shape, DType::F32)
}

pub(crate) fn int<const D: usize>(shape: [usize; D]) -> TensorIr {
    tensor(shape, DType::I64)
}

pub(crate) fn boolean<const D: usize>(shape: [usize; D]) -> TensorIr {
    tensor(shape, DType::Bool(BoolStore::Native))
}

pub(crate) fn float_op(op: NumericOperationIr) -> OperationIr {
    OperationIr::NumericFloat(DType::F32, op)
}

pub(crate) fn base(op: BaseOperationIr) -> OperationIr {
    OperationIr::BaseFloat(op)
}

pub(crate) fn conv2d(bias: Option<TensorIr>) -> OperationIr {
    let (x, weight) = (float([2, 3, 5, 5]), float([4, 3, 3, 3]));
    let options = Conv2dOptionsIr {
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
        groups: 1,
    };
    let desc = Conv2dOpIr::create(x, weight, bias, options, id);
    OperationIr::Module(ModuleOperationIr::Conv2d(desc))
}

fn deform_options() -> DeformableConv2dOptionsIr {
    DeformableConv2dOptionsIr {
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
        weight_groups: 1,
        offset_groups: 1,
    }
}

pub(crate) fn deform(mask: Option<TensorIr>, bias: Option<TensorIr>) -> OperationIr {
    let (x, offset, weight) = (
        float([2, 3, 5, 5]),
        float([2, 18, 5, 5]),
        float([4, 3, 3, 3]),
    );
    let desc = DeformConv2dOpIr::create(x, offset, weight, mask, bias, deform_options(), id);
    OperationIr::Module(ModuleOperationIr::DeformableConv2d(Box::new(desc)))
}

pub(crate) fn deform_backward(mask: Option<TensorIr>, bias: Option<TensorIr>) -> OperationIr {
    let (x, offset, weight) = (
        float([2, 3, 5, 5]),
        float([2, 18, 5, 5]),
        float([4, 3, 3, 3]),
    );
    let (grad, options) = (float([2, 4, 5, 5]), deform_options());
    let desc = DeformConv2dBackwardOpIr::create(x, offset, weight, mask, bias, grad, options, id);
    OperationIr::Module(ModuleOperationIr::DeformableConv2dBackward(Box::new(desc)))
}

pub(crate) fn attention(mask: Option<TensorIr>, bias: Option<TensorIr>) -> OperationIr {
    let options = AttentionOptionsIr {
        scale: None,
        softcap: None,
        is_causal: false,
    };
    let [query, key, value] = [(); 3].map(|()| float([2, 4, 5, 8]));
    let desc = AttentionOpIr::create(query, key, value, mask, bias, options, id);
    OperationIr::Module(ModuleOperationIr::Attention(desc))
}

/// That the table's tensors are those of `burn_ir`, in its order.
pub(crate) fn check_tensors(op: &OperationIr) {
    let mut copy = op.clone();
    let (inputs, outputs) = ir::tensors_mut(&mut copy);
    let name = ir::name(op);
    let own: Vec<_> = inputs.iter().map(|tensor| tensor.id).collect();
    let want: Vec<_> = op.inputs().map(|tensor| tensor.id).collect();
    assert_eq!(own, want, "inputs of {name}");
    let own: Vec<_> = outputs.iter().map(|tensor| tensor.id).collect();
    let want: Vec<_> = op.outputs().map(|tensor| tensor.id).collect();
    assert_eq!(own, want, "outputs of {name}");
    assert!(ir::NAMES.contains(&name), "{name} is not listed");
}

pub(crate) fn linear(op: &OperationIr) -> Linear {
    rule(op).linear
}

/// The factors as text: `0 _ z -> 0 +` is the part along 0, all, and zero, which give parts along
/// 0 and a sum; `2*3` counts dimension 2 in threes, and `again 1` repeats the operation along 1.
pub(crate) fn factors(op: &OperationIr) -> Vec<String> {
    check_tensors(op);
    let factors = rule(op).factors;
    for factor in &factors {
        assert_eq!(factor.inputs.len(), op.inputs().count());
        assert_eq!(factor.outputs.len(), op.outputs().count());
    }
    factors.iter().map(show).collect()
}

fn show(factor: &Factor) -> String {
    let axis = |axis: &Axis| match axis.unit {
        1 => axis.dim.to_string(),
        unit => format!("{}*{unit}", axis.dim),
    };
    let inputs = factor.inputs.iter().map(|operand| match operand {
        Operand::Whole => "_".to_owned(),
        Operand::Zero => "z".to_owned(),
        Operand::Along(along) => axis(along),
    });
    let outputs = factor.outputs.iter().map(|outcome| match outcome {
        Outcome::Along(along) => axis(along),
        Outcome::Sum => "+".to_owned(),
        Outcome::Again(dim) => format!("again {dim}"),
    });
    let arrow = std::iter::once("->".to_owned());
    let words: Vec<_> = inputs.chain(arrow).chain(outputs).collect();
    words.join(" ")
}
