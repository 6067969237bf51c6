//! The rules, one file per family of operations.
//!
//! | file | operations |
//! |---|---|
//! | `elementwise.rs` | unary, binary and with scalars, comparisons, masks, conversions |
//! | `matmul.rs` | matrix products, `linear` and its gradients, `cross` |
//! | `reduce.rs` | reductions to one element or along a dimension, cumulative operations |
//! | `shape.rs` | what moves elements without looking at them |
//! | `index.rs` | what reads or writes where indices say, `embedding` and its gradient |
//! | `module.rs` | convolutions, pools, interpolation, attention, Fourier transforms, CTC loss |
//!
//! The matches have no default, so that an operation that a later version of Burn adds gets a rule
//! by decision. A dimension of one element or none is never cut: a factor over it is no way to
//! share work, and its only element would be a broadcast one.

mod elementwise;
mod index;
mod matmul;
mod module;
mod reduce;
mod shape;
#[cfg(test)]
pub(super) mod testing;

pub(super) use elementwise::broadcast;

use super::inner::InnerOp;
use super::rule::{Factor, Linear, Rule, along, onto};
use burn_backend::DType;
use burn_ir::{
    BaseOperationIr, BoolOperationIr, FloatOperationIr, IntOperationIr, ModuleOperationIr,
    NumericOperationIr, OperationIr, TensorIr,
};

/// The rule of an operation.
pub(crate) fn rule(op: &OperationIr) -> Rule {
    // A quantized tensor cannot be cut: its blocks and its scales are laid out as one.
    let quantized = |tensor: &TensorIr| matches!(tensor.dtype, DType::QFloat(_));
    if op.inputs().chain(op.outputs()).any(quantized) {
        return Rule::none();
    }
    match op {
        OperationIr::BaseFloat(op) | OperationIr::BaseInt(op) | OperationIr::BaseBool(op) => {
            base(op)
        }
        OperationIr::NumericFloat(_, op) | OperationIr::NumericInt(_, op) => numeric(op),
        OperationIr::Bool(op) => bool(op),
        OperationIr::Int(op) => int(op),
        OperationIr::Float(_, op) => float(op),
        OperationIr::Module(op) => module(op),
        OperationIr::Custom(op) => InnerOp::of(op).map_or_else(Rule::none, |inner| inner.rule(op)),
        OperationIr::Init(_) | OperationIr::Drop(_) => Rule::none(),
    }
}

fn base(op: &BaseOperationIr) -> Rule {
    use BaseOperationIr::*;
    match op {
        Reshape(op) => shape::reshape(op),
        SwapDims(op) => shape::swap_dims(op),
        Permute(op) => shape::permute(op),
        Flip(op) => shape::flip(op),
        Expand(op) => shape::expand(op),
        Unfold(op) => shape::unfold(op),
        Slice(op) => shape::slice(op),
        RepeatDim(op) => shape::repeat_dim(op),
        Cat(op) => shape::cat(op),
        SliceAssign(op) => index::slice_assign(op),
        Select(op) => index::select(op),
        SelectAssign(op) => index::select_assign(op),
        Gather(op) => index::gather(op),
        Scatter(op) => index::scatter(op),
        GatherNd(op) => index::gather_nd(op),
        ScatterNd(op) => index::scatter_nd(op),
        MaskWhere(op) => elementwise::mask_where(op),
        MaskFill(op) => elementwise::mask_fill(op),
        Equal(op) => elementwise::binary(op),
        EqualElem(op) => elementwise::scalar(op),
        Cast(op) => elementwise::unary(&op.input, &op.out),
        Empty(_) | Ones(_) | Zeros(_) => Rule::none(),
    }
}

fn numeric(op: &NumericOperationIr) -> Rule {
    use NumericOperationIr::*;
    match op {
        Add(op) | Sub(op) => elementwise::binary(op).linear(Linear::Jointly),
        Mul(op) => elementwise::binary(op).linear(Linear::Each),
        Div(op) => elementwise::binary(op).linear(Linear::First),
        MulScalar(op) | DivScalar(op) => elementwise::scaled(op),
        Rem(op) | Powi(op) | Greater(op) | GreaterEqual(op) | Lower(op) | LowerEqual(op) => {
            elementwise::binary(op)
        }
        AddScalar(op) | SubScalar(op) | RemScalar(op) | PowiScalar(op) | GreaterElem(op)
        | GreaterEqualElem(op) | LowerElem(op) | LowerEqualElem(op) => elementwise::scalar(op),
        Abs(op) => elementwise::unary(&op.input, &op.out),
        Clamp(op) => elementwise::unary(&op.tensor, &op.out),
        Sum(op) => reduce::sum(op),
        Mean(_) => reduce::mean(),
        Prod(op) | Max(op) | Min(op) | MaxAbs(op) => reduce::again(op),
        SumDim(op) => reduce::sum_dim(op),
        MeanDim(op) => reduce::mean_dim(op),
        ProdDim(op) | MaxDim(op) | MinDim(op) | MaxAbsDim(op) => reduce::again_dim(op),
        ArgMax(op) | ArgMin(op) | TopK(op) | ArgTopK(op) => reduce::whole_dim(op),
        MaxDimWithIndices(op) | MinDimWithIndices(op) => reduce::with_indices(op),
        CumSum(op) | CumProd(op) | CumMin(op) | CumMax(op) => reduce::cumulative(op),
        Full(_) | IntRandom(_) => Rule::none(),
    }
}

fn bool(op: &BoolOperationIr) -> Rule {
    use BoolOperationIr::*;
    match op {
        IntoFloat(op) | IntoInt(op) => elementwise::unary(&op.input, &op.out),
        Not(op) => elementwise::unary(&op.input, &op.out),
        And(op) | Or(op) => elementwise::binary(op),
    }
}

fn int(op: &IntOperationIr) -> Rule {
    use IntOperationIr::*;
    match op {
        IntoFloat(op) => elementwise::unary(&op.input, &op.out),
        BitwiseNot(op) => elementwise::unary(&op.input, &op.out),
        BitwiseAnd(op)
        | BitwiseOr(op)
        | BitwiseXor(op)
        | BitwiseLeftShift(op)
        | BitwiseRightShift(op) => elementwise::binary(op),
        BitwiseAndScalar(op)
        | BitwiseOrScalar(op)
        | BitwiseXorScalar(op)
        | BitwiseLeftShiftScalar(op)
        | BitwiseRightShiftScalar(op) => elementwise::scalar(op),
        Matmul(op) => matmul::matmul(op),
    }
}

fn float(op: &FloatOperationIr) -> Rule {
    use FloatOperationIr::*;
    match op {
        Exp(op) | Log(op) | Log1p(op) | Erf(op) | Sqrt(op) | Cos(op) | Cosh(op) | Sin(op)
        | Sinh(op) | Tan(op) | Tanh(op) | ArcCos(op) | ArcCosh(op) | ArcSin(op) | ArcSinh(op)
        | ArcTan(op) | ArcTanh(op) | Round(op) | Floor(op) | Ceil(op) | Trunc(op) | Recip(op)
        | IsNan(op) | IsInf(op) => elementwise::unary(&op.input, &op.out),
        PowfScalar(op) => elementwise::scalar(op),
        ArcTan2(op) | Powf(op) => elementwise::binary(op),
        IntoInt(op) => elementwise::unary(&op.input, &op.out),
        Matmul(op) => matmul::matmul(op),
        Cross(op) => matmul::cross(op),
        GridSample2d(op) => module::grid_sample(op),
        Random(_) | Quantize(_) | Dequantize(_) => Rule::none(),
    }
}

fn module(op: &ModuleOperationIr) -> Rule {
    use ModuleOperationIr::*;
    match op {
        Embedding(op) => index::embedding(op),
        EmbeddingBackward(op) => index::embedding_backward(op),
        Linear(op) => matmul::linear(op),
        LinearXBackward(op) => matmul::linear_x_backward(op),
        LinearWeightBackward(op) => matmul::linear_weight_backward(op),
        LinearBiasBackward(op) => matmul::linear_bias_backward(op),
        Conv1d(op) => module::conv(&op.x, op.bias.is_some()),
        Conv2d(op) => module::conv(&op.x, op.bias.is_some()),
        Conv3d(op) => module::conv(&op.x, op.bias.is_some()),
        ConvTranspose1d(op) => module::conv(&op.x, op.bias.is_some()),
        ConvTranspose2d(op) => module::conv(&op.x, op.bias.is_some()),
        ConvTranspose3d(op) => module::conv(&op.x, op.bias.is_some()),
        Conv1dXBackward(op) => module::conv_x_backward(&op.x),
        Conv2dXBackward(op) => module::conv_x_backward(&op.x),
        Conv3dXBackward(op) => module::conv_x_backward(&op.x),
        Conv1dWeightBackward(op) => module::conv_parameter_backward(&op.x),
        Conv2dWeightBackward(op) => module::conv_parameter_backward(&op.x),
        Conv3dWeightBackward(op) => module::conv_parameter_backward(&op.x),
        Conv1dBiasBackward(op) => module::conv_parameter_backward(&op.x),
        Conv2dBiasBackward(op) => module::conv_parameter_backward(&op.x),
        Conv3dBiasBackward(op) => module::conv_parameter_backward(&op.x),
        DeformableConv2d(op) => module::deform_conv(op),
        DeformableConv2dBackward(op) => module::deform_conv_backward(op),
        AvgPool1d(op) => module::planes(&op.x, 1, 1),
        AvgPool2d(op) => module::planes(&op.x, 1, 1),
        AdaptiveAvgPool1d(op) => module::planes(&op.x, 1, 1),
        AdaptiveAvgPool2d(op) => module::planes(&op.x, 1, 1),
        MaxPool1d(op) => module::planes(&op.x, 1, 1),
        MaxPool2d(op) => module::planes(&op.x, 1, 1),
        Interpolate(op) => module::planes(&op.x, 1, 1),
        MaxPool1dWithIndices(op) => module::planes(&op.x, 1, 2),
        MaxPool2dWithIndices(op) => module::planes(&op.x, 1, 2),
        AvgPool1dBackward(op) => module::planes(&op.x, 2, 1),
        AvgPool2dBackward(op) => module::planes(&op.x, 2, 1),
        AdaptiveAvgPool1dBackward(op) => module::planes(&op.x, 2, 1),
        AdaptiveAvgPool2dBackward(op) => module::planes(&op.x, 2, 1),
        InterpolateBackward(op) => module::planes(&op.x, 2, 1),
        MaxPool1dWithIndicesBackward(op) => module::planes(&op.x, 3, 1),
        MaxPool2dWithIndicesBackward(op) => module::planes(&op.x, 3, 1),
        Rfft(op) => module::rfft(op),
        IRfft(op) => module::irfft(op),
        Attention(op) => module::attention(op),
        CtcLoss(op) => module::ctc_loss(op),
        CtcLossBackward(op) => module::ctc_loss_backward(op),
    }
}

/// The size of a dimension, 0 if the tensor does not have it.
fn size(tensor: &TensorIr, dim: usize) -> usize {
    tensor.shape.as_slice().get(dim).copied().unwrap_or(0)
}

/// The dimensions of a tensor.
fn dims(tensor: &TensorIr) -> std::ops::Range<usize> {
    0..tensor.shape.num_dims()
}

/// A factor for each of these dimensions of `like` that has several elements, along which all
/// inputs are cut and all outputs come in parts.
pub(super) fn passing(
    like: &TensorIr,
    dims: impl IntoIterator<Item = usize>,
    inputs: usize,
    outputs: usize,
) -> Vec<Factor> {
    dims.into_iter()
        .filter(|&dim| size(like, dim) > 1)
        .map(|dim| Factor::new(vec![along(dim); inputs], vec![onto(dim); outputs]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::testing::{factors, float, id};
    use super::*;
    use burn_backend::quantization::QuantScheme;
    use burn_ir::{CreationOpIr, DequantizeOpIr, MatmulOpIr};

    #[test]
    fn quantized_tensors_stay_whole() {
        let quantized = DType::QFloat(QuantScheme::default());
        let weight = TensorIr {
            dtype: quantized,
            ..float([8, 4])
        };
        let dequantize = DequantizeOpIr::create(weight.clone(), DType::F32, id);
        let matmul = MatmulOpIr::create_mixed(float([2, 8]), weight, DType::F32, id);
        for op in [
            FloatOperationIr::Dequantize(dequantize),
            FloatOperationIr::Matmul(matmul),
        ] {
            let op = OperationIr::Float(DType::F32, op);
            assert_eq!(super::rule(&op), Rule::none());
            assert!(factors(&op).is_empty());
        }
    }

    #[test]
    fn creation_has_no_factor() {
        let zeros = BaseOperationIr::Zeros(CreationOpIr { out: float([4]) });
        assert!(factors(&OperationIr::BaseFloat(zeros)).is_empty());
        assert!(factors(&OperationIr::Drop(float([4]))).is_empty());
    }
}
