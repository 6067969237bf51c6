//! The table of all operations: their names, and their tensors for rewriting.
//!
//! `burn_ir` lends the tensors of an operation for reading only, while a member's share of an
//! operation has other tensors than the whole. The table says which fields they are, in the order
//! of [`OperationIr::inputs`] and [`OperationIr::outputs`], and it has no default: an operation
//! that a later version of Burn adds is a compile error here and not a silent fallback.

use super::inner::InnerOp;
use burn_ir::{
    BaseOperationIr, BoolOperationIr, FloatOperationIr, IntOperationIr, ModuleOperationIr,
    NumericOperationIr, OperationIr, TensorIr,
};

/// Mutable inputs and outputs.
type Tensors<'a> = (Vec<&'a mut TensorIr>, Vec<&'a mut TensorIr>);

/// A field of an operation: one tensor, an optional one or a list, so that the table need not say.
trait Field {
    fn lend<'a>(&'a mut self, tensors: &mut Vec<&'a mut TensorIr>);
}

impl Field for TensorIr {
    fn lend<'a>(&'a mut self, tensors: &mut Vec<&'a mut TensorIr>) {
        tensors.push(self);
    }
}

impl Field for Option<TensorIr> {
    fn lend<'a>(&'a mut self, tensors: &mut Vec<&'a mut TensorIr>) {
        tensors.extend(self);
    }
}

impl Field for Vec<TensorIr> {
    fn lend<'a>(&'a mut self, tensors: &mut Vec<&'a mut TensorIr>) {
        tensors.extend(self);
    }
}

/// One of `burn_ir`'s enums of operations.
trait Family {
    fn tensors_mut(&mut self) -> Tensors<'_>;
}

macro_rules! family {
    ($ir:ident { $($op:ident
        { $($($input:ident).+),* } -> { $($($output:ident).+),* },
    )+ }) => {
        impl Family for $ir {
            fn tensors_mut(&mut self) -> Tensors<'_> {
                let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
                match self {
                    $(Self::$op(desc) => {
                        $(desc.$($input).+.lend(&mut inputs);)*
                        $(desc.$($output).+.lend(&mut outputs);)*
                    })+
                }
                (inputs, outputs)
            }
        }
    };
}

macro_rules! kind {
    ($kind:ident $ir:ident { $($op:ident $inputs:tt -> $outputs:tt,)+ }) => {
        struct $kind;

        impl $kind {
            const NAMES: &'static [&'static str] =
                &[$(concat!(stringify!($kind), "::", stringify!($op))),+];

            fn name(op: &$ir) -> &'static str {
                match op {
                    $($ir::$op(..) => concat!(stringify!($kind), "::", stringify!($op)),)+
                }
            }
        }
    };
}

macro_rules! operations {
    ($($ir:ident as [$($kind:ident),+] $table:tt)+) => {
        $(
            family!($ir $table);
            $(kind!($kind $ir $table);)+
        )+

        const FAMILIES: &[&[&str]] = &[$($($kind::NAMES,)+)+ &["Init", "Custom", "Drop"]];
    };
}

operations! {
    BaseOperationIr as [BaseFloat, BaseInt, BaseBool] {
        Reshape { input } -> { out },
        SwapDims { input } -> { out },
        Permute { input } -> { out },
        Flip { input } -> { out },
        Expand { input } -> { out },
        Unfold { input } -> { out },
        Slice { tensor } -> { out },
        SliceAssign { tensor, value } -> { out },
        Select { tensor, indices } -> { out },
        SelectAssign { tensor, indices, value } -> { out },
        MaskWhere { tensor, mask, value } -> { out },
        MaskFill { tensor, mask } -> { out },
        Gather { tensor, indices } -> { out },
        Scatter { tensor, indices, value } -> { out },
        ScatterNd { data, indices, values } -> { out },
        GatherNd { data, indices } -> { out },
        Equal { lhs, rhs } -> { out },
        EqualElem { lhs } -> { out },
        RepeatDim { tensor } -> { out },
        Cat { tensors } -> { out },
        Cast { input } -> { out },
        Empty {} -> { out },
        Ones {} -> { out },
        Zeros {} -> { out },
    }
    NumericOperationIr as [NumericFloat, NumericInt] {
        Add { lhs, rhs } -> { out },
        AddScalar { lhs } -> { out },
        Sub { lhs, rhs } -> { out },
        SubScalar { lhs } -> { out },
        Div { lhs, rhs } -> { out },
        DivScalar { lhs } -> { out },
        Rem { lhs, rhs } -> { out },
        RemScalar { lhs } -> { out },
        Mul { lhs, rhs } -> { out },
        MulScalar { lhs } -> { out },
        Abs { input } -> { out },
        Full {} -> { out },
        MeanDim { input } -> { out },
        Mean { input } -> { out },
        Sum { input } -> { out },
        SumDim { input } -> { out },
        Prod { input } -> { out },
        ProdDim { input } -> { out },
        Greater { lhs, rhs } -> { out },
        GreaterElem { lhs } -> { out },
        GreaterEqual { lhs, rhs } -> { out },
        GreaterEqualElem { lhs } -> { out },
        Lower { lhs, rhs } -> { out },
        LowerElem { lhs } -> { out },
        LowerEqual { lhs, rhs } -> { out },
        LowerEqualElem { lhs } -> { out },
        ArgMax { input } -> { out },
        ArgTopK { input } -> { out },
        TopK { input } -> { out },
        ArgMin { input } -> { out },
        Max { input } -> { out },
        MaxDimWithIndices { tensor } -> { out, out_indices },
        MinDimWithIndices { tensor } -> { out, out_indices },
        Min { input } -> { out },
        MaxDim { input } -> { out },
        MinDim { input } -> { out },
        MaxAbs { input } -> { out },
        MaxAbsDim { input } -> { out },
        Clamp { tensor } -> { out },
        IntRandom {} -> { out },
        Powi { lhs, rhs } -> { out },
        PowiScalar { lhs } -> { out },
        CumSum { input } -> { out },
        CumProd { input } -> { out },
        CumMin { input } -> { out },
        CumMax { input } -> { out },
    }
    BoolOperationIr as [Bool] {
        IntoFloat { input } -> { out },
        IntoInt { input } -> { out },
        Not { input } -> { out },
        And { lhs, rhs } -> { out },
        Or { lhs, rhs } -> { out },
    }
    IntOperationIr as [Int] {
        IntoFloat { input } -> { out },
        BitwiseAnd { lhs, rhs } -> { out },
        BitwiseAndScalar { lhs } -> { out },
        BitwiseOr { lhs, rhs } -> { out },
        BitwiseOrScalar { lhs } -> { out },
        BitwiseXor { lhs, rhs } -> { out },
        BitwiseXorScalar { lhs } -> { out },
        BitwiseNot { input } -> { out },
        BitwiseLeftShift { lhs, rhs } -> { out },
        BitwiseLeftShiftScalar { lhs } -> { out },
        BitwiseRightShift { lhs, rhs } -> { out },
        BitwiseRightShiftScalar { lhs } -> { out },
        Matmul { lhs, rhs } -> { out },
    }
    FloatOperationIr as [Float] {
        Exp { input } -> { out },
        Log { input } -> { out },
        Log1p { input } -> { out },
        Erf { input } -> { out },
        PowfScalar { lhs } -> { out },
        Sqrt { input } -> { out },
        Cos { input } -> { out },
        Cosh { input } -> { out },
        Sin { input } -> { out },
        Sinh { input } -> { out },
        Tan { input } -> { out },
        Tanh { input } -> { out },
        ArcCos { input } -> { out },
        ArcCosh { input } -> { out },
        ArcSin { input } -> { out },
        ArcSinh { input } -> { out },
        ArcTan { input } -> { out },
        ArcTanh { input } -> { out },
        ArcTan2 { lhs, rhs } -> { out },
        Round { input } -> { out },
        Floor { input } -> { out },
        Ceil { input } -> { out },
        Trunc { input } -> { out },
        IntoInt { input } -> { out },
        Matmul { lhs, rhs } -> { out },
        Cross { lhs, rhs } -> { out },
        Random {} -> { out },
        Recip { input } -> { out },
        IsNan { input } -> { out },
        IsInf { input } -> { out },
        Quantize { tensor, qparams.scales } -> { out },
        Dequantize { input } -> { out },
        GridSample2d { tensor, grid } -> { out },
        Powf { lhs, rhs } -> { out },
    }
    ModuleOperationIr as [Module] {
        Embedding { weights, indices } -> { out },
        EmbeddingBackward { weights, out_grad, indices } -> { out },
        Linear { x, weight, bias } -> { out },
        LinearXBackward { weight, output_grad } -> { out },
        LinearWeightBackward { x, output_grad } -> { out },
        LinearBiasBackward { output_grad } -> { out },
        Conv1d { x, weight, bias } -> { out },
        Conv1dXBackward { x, weight, output_grad } -> { out },
        Conv1dWeightBackward { x, weight, output_grad } -> { out },
        Conv1dBiasBackward { x, bias, output_grad } -> { out },
        Conv2d { x, weight, bias } -> { out },
        Conv2dXBackward { x, weight, output_grad } -> { out },
        Conv2dWeightBackward { x, weight, output_grad } -> { out },
        Conv2dBiasBackward { x, bias, output_grad } -> { out },
        Conv3d { x, weight, bias } -> { out },
        Conv3dXBackward { x, weight, output_grad } -> { out },
        Conv3dWeightBackward { x, weight, output_grad } -> { out },
        Conv3dBiasBackward { x, bias, output_grad } -> { out },
        DeformableConv2d { x, offset, weight, mask, bias } -> { out },
        DeformableConv2dBackward { x, offset, weight, out_grad, mask, bias } -> { input_grad, offset_grad, weight_grad, mask_grad, bias_grad },
        ConvTranspose1d { x, weight, bias } -> { out },
        ConvTranspose2d { x, weight, bias } -> { out },
        ConvTranspose3d { x, weight, bias } -> { out },
        AvgPool1d { x } -> { out },
        AvgPool2d { x } -> { out },
        AvgPool1dBackward { x, grad } -> { out },
        AvgPool2dBackward { x, grad } -> { out },
        AdaptiveAvgPool1d { x } -> { out },
        AdaptiveAvgPool2d { x } -> { out },
        AdaptiveAvgPool1dBackward { x, grad } -> { out },
        AdaptiveAvgPool2dBackward { x, grad } -> { out },
        MaxPool1d { x } -> { out },
        MaxPool1dWithIndices { x } -> { out, out_indices },
        MaxPool1dWithIndicesBackward { x, indices, grad } -> { out },
        MaxPool2d { x } -> { out },
        MaxPool2dWithIndices { x } -> { out, out_indices },
        MaxPool2dWithIndicesBackward { x, indices, grad } -> { out },
        Interpolate { x } -> { out },
        InterpolateBackward { x, grad } -> { out },
        Rfft { signal } -> { out_re, out_im },
        IRfft { input_re, input_im } -> { out_signal },
        Attention { query, key, value, mask, attn_bias } -> { out },
        CtcLoss { log_probs, targets, input_lengths, target_lengths } -> { out },
        CtcLossBackward { log_probs, targets, input_lengths, target_lengths, grad_loss } -> { out },
    }
}

/// The names of all operations, in the order of the table.
pub(crate) const NAMES: &[&str] = &flat::<{ total(FAMILIES) }>(FAMILIES);

const fn total(lists: &[&[&str]]) -> usize {
    let (mut list, mut len) = (0, 0);
    while list < lists.len() {
        len += lists[list].len();
        list += 1;
    }
    len
}

const fn flat<const N: usize>(lists: &[&[&'static str]]) -> [&'static str; N] {
    let mut names = [""; N];
    let (mut list, mut len) = (0, 0);
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            names[len] = lists[list][i];
            i += 1;
            len += 1;
        }
        list += 1;
    }
    names
}

/// The name of an operation, as in [`NAMES`].
pub(crate) fn name(op: &OperationIr) -> &'static str {
    match op {
        OperationIr::BaseFloat(op) => BaseFloat::name(op),
        OperationIr::BaseInt(op) => BaseInt::name(op),
        OperationIr::BaseBool(op) => BaseBool::name(op),
        OperationIr::NumericFloat(_, op) => NumericFloat::name(op),
        OperationIr::NumericInt(_, op) => NumericInt::name(op),
        OperationIr::Bool(op) => Bool::name(op),
        OperationIr::Int(op) => Int::name(op),
        OperationIr::Float(_, op) => Float::name(op),
        OperationIr::Module(op) => Module::name(op),
        OperationIr::Init(_) => "Init",
        OperationIr::Custom(op) => InnerOp::of(op).map_or("Custom", InnerOp::name),
        OperationIr::Drop(_) => "Drop",
    }
}

/// The inputs and the outputs of an operation, in the order of [`OperationIr::inputs`] and
/// [`OperationIr::outputs`].
pub(crate) fn tensors_mut(op: &mut OperationIr) -> Tensors<'_> {
    match op {
        OperationIr::BaseFloat(op) | OperationIr::BaseInt(op) | OperationIr::BaseBool(op) => {
            op.tensors_mut()
        }
        OperationIr::NumericFloat(_, op) | OperationIr::NumericInt(_, op) => op.tensors_mut(),
        OperationIr::Bool(op) => op.tensors_mut(),
        OperationIr::Int(op) => op.tensors_mut(),
        OperationIr::Float(_, op) => op.tensors_mut(),
        OperationIr::Module(op) => op.tensors_mut(),
        OperationIr::Init(desc) => (Vec::new(), vec![&mut desc.out]),
        OperationIr::Custom(desc) => (
            desc.inputs.iter_mut().collect(),
            desc.outputs.iter_mut().collect(),
        ),
        OperationIr::Drop(tensor) => (vec![tensor], Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::rules::testing::{
        attention, base, boolean, check_tensors, conv2d, deform, deform_backward, float, id, int,
    };
    use burn_backend::DType;
    use burn_ir::{
        CatOpIr, CreationOpIr, CustomOpIr, InitOperationIr, MaxPool2dWithIndicesBackwardOpIr,
        MaxPool2dWithIndicesOpIr,
    };
    use std::collections::HashSet;

    #[test]
    fn names_are_listed_once_and_in_order() {
        let set: HashSet<_> = NAMES.iter().collect();
        assert_eq!(set.len(), NAMES.len());
        assert_eq!(NAMES[0], "BaseFloat::Reshape");
        assert_eq!(NAMES[NAMES.len() - 3..], ["Init", "Custom", "Drop"]);

        let zeros = || BaseOperationIr::Zeros(CreationOpIr { out: float([2]) });
        assert_eq!(name(&OperationIr::BaseFloat(zeros())), "BaseFloat::Zeros");
        assert_eq!(name(&OperationIr::BaseInt(zeros())), "BaseInt::Zeros");
        assert_eq!(name(&conv2d(None)), "Module::Conv2d");
        assert_eq!(name(&OperationIr::Drop(float([2]))), "Drop");
    }

    #[test]
    fn optional_tensors_are_in_the_order_of_burn_ir() {
        let bias = || Some(float([4]));
        check_tensors(&conv2d(None));
        check_tensors(&conv2d(bias()));
        let (mask, scores) = (|| Some(boolean([2, 4, 5, 5])), || Some(float([2, 1, 5, 5])));
        check_tensors(&attention(None, None));
        check_tensors(&attention(mask(), None));
        check_tensors(&attention(None, scores()));
        check_tensors(&attention(mask(), scores()));
        let mask = || Some(float([2, 9, 5, 5]));
        check_tensors(&deform(None, bias()));
        check_tensors(&deform(mask(), bias()));
        check_tensors(&deform_backward(None, None));
        check_tensors(&deform_backward(mask(), None));
        check_tensors(&deform_backward(None, bias()));
        check_tensors(&deform_backward(mask(), bias()));
    }

    #[test]
    fn several_tensors_are_in_the_order_of_burn_ir() {
        let (x, two, none, one) = (|| float([2, 3, 4, 4]), [2, 2], [0, 0], [1, 1]);
        let dtype = DType::I64;
        let desc = MaxPool2dWithIndicesOpIr::create(x(), two, two, none, one, false, dtype, id);
        let op = ModuleOperationIr::MaxPool2dWithIndices(desc);
        check_tensors(&OperationIr::Module(op));
        let (grad, at) = (float([2, 3, 2, 2]), int([2, 3, 2, 2]));
        let desc =
            MaxPool2dWithIndicesBackwardOpIr::create(x(), grad, at, two, two, none, one, false, id);
        let op = ModuleOperationIr::MaxPool2dWithIndicesBackward(desc);
        check_tensors(&OperationIr::Module(op));

        let desc = CatOpIr::create(vec![float([2, 3]), float([4, 3]), float([1, 3])], 0, id);
        check_tensors(&base(BaseOperationIr::Cat(desc)));
        check_tensors(&OperationIr::Init(InitOperationIr { out: float([1]) }));
        check_tensors(&OperationIr::Drop(float([1])));
        let desc = CustomOpIr::new("own", &[float([1]), float([2])], &[float([3])]);
        check_tensors(&OperationIr::Custom(desc));
    }
}
