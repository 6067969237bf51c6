//! Convolutions, pools and what else works on whole samples.
//!
//! These are cut along the batch, and along channels or heads where these do not meet: parts of an
//! image would need their neighbours' rims. The gradients of parameters are sums over the batch.

use super::super::rule::{Factor, Operand, Outcome, Rule, along, onto};
use super::{dims, passing, size};
use burn_ir::{
    AttentionOpIr, CtcLossBackwardOpIr, CtcLossOpIr, DeformConv2dBackwardOpIr, DeformConv2dOpIr,
    GridSample2dOpIr, IRfftOpIr, RfftOpIr, TensorIr,
};

use Operand::Whole;

/// One factor, along the batch of `x`.
fn batch(
    x: &TensorIr,
    inputs: impl IntoIterator<Item = Operand>,
    outputs: impl IntoIterator<Item = Outcome>,
) -> Rule {
    if size(x, 0) > 1 {
        Rule::new(vec![Factor::new(inputs, outputs)])
    } else {
        Rule::none()
    }
}

/// Inputs: `x`, weight and perhaps a bias. Transposed ones, too.
pub(super) fn conv(x: &TensorIr, bias: bool) -> Rule {
    let parameters = if bias { 2 } else { 1 };
    let inputs = std::iter::once(along(0)).chain(vec![Whole; parameters]);
    batch(x, inputs, [onto(0)])
}

/// Inputs: `x`, weight, gradient.
pub(super) fn conv_x_backward(x: &TensorIr) -> Rule {
    batch(x, [along(0), Whole, along(0)], [onto(0)])
}

/// Inputs: `x`, weight or bias, gradient.
pub(super) fn conv_parameter_backward(x: &TensorIr) -> Rule {
    batch(x, [along(0), Whole, along(0)], [Outcome::Sum])
}

pub(super) fn deform_conv(op: &DeformConv2dOpIr) -> Rule {
    let inputs = [along(0), along(0), Whole].into_iter();
    let mask = op.mask.iter().map(|_| along(0));
    let bias = op.bias.iter().map(|_| Whole);
    batch(&op.x, inputs.chain(mask).chain(bias), [onto(0)])
}

pub(super) fn deform_conv_backward(op: &DeformConv2dBackwardOpIr) -> Rule {
    let inputs = [along(0), along(0), Whole, along(0)].into_iter();
    let mask = op.mask.iter().map(|_| along(0));
    let bias = op.bias.iter().map(|_| Whole);
    let outputs = [onto(0), onto(0), Outcome::Sum].into_iter();
    let mask_grad = op.mask_grad.iter().map(|_| onto(0));
    let bias_grad = op.bias_grad.iter().map(|_| Outcome::Sum);
    batch(
        &op.x,
        inputs.chain(mask).chain(bias),
        outputs.chain(mask_grad).chain(bias_grad),
    )
}

/// What treats each channel of each sample by itself: pools and interpolation. A pool's indices
/// count within one plane, so that they are the same in a part.
pub(super) fn planes(x: &TensorIr, inputs: usize, outputs: usize) -> Rule {
    Rule::new(passing(x, 0..2, inputs, outputs))
}

pub(super) fn grid_sample(op: &GridSample2dOpIr) -> Rule {
    batch(&op.tensor, [along(0); 2], [onto(0)])
}

/// Samples and heads. A mask or a bias that is the same for all of them has one element there.
pub(super) fn attention(op: &AttentionOpIr) -> Rule {
    let factors = (0..2)
        .filter(|&dim| {
            let heads = size(&op.query, dim);
            heads > 1 && size(&op.key, dim) == heads && size(&op.value, dim) == heads
        })
        .map(|dim| {
            let scores = op.mask.iter().chain(&op.attn_bias).map(|tensor| {
                if size(tensor, dim) == size(&op.query, dim) {
                    along(dim)
                } else {
                    Whole
                }
            });
            Factor::new([along(dim); 3].into_iter().chain(scores), [onto(dim)])
        })
        .collect();
    Rule::new(factors)
}

pub(super) fn rfft(op: &RfftOpIr) -> Rule {
    let others = dims(&op.signal).filter(|&dim| dim != op.dim);
    Rule::new(passing(&op.signal, others, 1, 2))
}

pub(super) fn irfft(op: &IRfftOpIr) -> Rule {
    let others = dims(&op.input_re).filter(|&dim| dim != op.dim);
    Rule::new(passing(&op.input_re, others, 2, 1))
}

/// Log-probabilities `[time, batch, classes]`; targets, lengths and losses start with the batch.
pub(super) fn ctc_loss(op: &CtcLossOpIr) -> Rule {
    let inputs = [along(1), along(0), along(0), along(0)];
    batch(&op.targets, inputs, [onto(0)])
}

pub(super) fn ctc_loss_backward(op: &CtcLossBackwardOpIr) -> Rule {
    let inputs = [along(1), along(0), along(0), along(0), along(0)];
    batch(&op.targets, inputs, [onto(1)])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        attention, boolean, conv2d, deform, deform_backward, factors, float, id, int,
    };
    use super::*;
    use burn_backend::DType;
    use burn_ir::{
        AvgPool1dBackwardOpIr, Conv1dBiasBackwardOpIr, Conv1dOptionsIr, Conv1dWeightBackwardOpIr,
        Conv1dXBackwardOpIr, FloatOperationIr, GridSampleOptionsIr, GridSamplePaddingModeIr,
        InterpolateModeIr, MaxPool2dWithIndicesBackwardOpIr, MaxPool2dWithIndicesOpIr,
        ModuleOperationIr, OperationIr,
    };

    fn module(op: ModuleOperationIr) -> Vec<String> {
        factors(&OperationIr::Module(op))
    }

    #[test]
    fn a_convolution_is_cut_along_the_batch() {
        assert_eq!(factors(&conv2d(None)), ["0 _ -> 0"]);
        assert_eq!(factors(&conv2d(Some(float([4])))), ["0 _ _ -> 0"]);
    }

    #[test]
    fn the_gradients_of_a_convolution() {
        let options = || Conv1dOptionsIr {
            stride: [1],
            padding: [0],
            dilation: [1],
            groups: 1,
        };
        let (w, grad) = (|| float([4, 3, 3]), || float([2, 4, 5]));
        let x = |batch| float([batch, 3, 7]);
        let desc = Conv1dXBackwardOpIr::create(x(2), w(), grad(), options(), id);
        let op = ModuleOperationIr::Conv1dXBackward(desc);
        assert_eq!(module(op), ["0 _ 0 -> 0"]);
        let desc = Conv1dWeightBackwardOpIr::create(x(2), w(), grad(), options(), id);
        let op = ModuleOperationIr::Conv1dWeightBackward(desc);
        assert_eq!(module(op), ["0 _ 0 -> +"]);
        let desc = Conv1dBiasBackwardOpIr::create(x(2), float([4]), grad(), id);
        let op = ModuleOperationIr::Conv1dBiasBackward(desc);
        assert_eq!(module(op), ["0 _ 0 -> +"]);
        let desc = Conv1dBiasBackwardOpIr::create(x(1), float([4]), float([1, 4, 5]), id);
        assert!(module(ModuleOperationIr::Conv1dBiasBackward(desc)).is_empty());
    }

    #[test]
    fn deformable_convolutions() {
        let (mask, bias) = (|| Some(float([2, 9, 5, 5])), || Some(float([4])));
        assert_eq!(factors(&deform(None, None)), ["0 0 _ -> 0"]);
        assert_eq!(factors(&deform(mask(), bias())), ["0 0 _ 0 _ -> 0"]);
        let op = deform_backward(None, bias());
        assert_eq!(factors(&op), ["0 0 _ 0 _ -> 0 0 + +"]);
        let op = deform_backward(mask(), bias());
        assert_eq!(factors(&op), ["0 0 _ 0 0 _ -> 0 0 + 0 +"]);
    }

    #[test]
    fn pools_are_cut_along_batch_and_channels() {
        let x = || float([2, 3, 4, 4]);
        let (two, none, one) = ([2, 2], [0, 0], [1, 1]);
        let dtype = DType::I64;
        let desc = MaxPool2dWithIndicesOpIr::create(x(), two, two, none, one, false, dtype, id);
        let op = ModuleOperationIr::MaxPool2dWithIndices(desc);
        assert_eq!(module(op), ["0 -> 0 0", "1 -> 1 1"]);

        let (grad, indices) = (float([2, 3, 2, 2]), int([2, 3, 2, 2]));
        let desc = MaxPool2dWithIndicesBackwardOpIr::create(
            x(),
            grad,
            indices,
            two,
            two,
            none,
            one,
            false,
            id,
        );
        let op = ModuleOperationIr::MaxPool2dWithIndicesBackward(desc);
        assert_eq!(module(op), ["0 0 0 -> 0", "1 1 1 -> 1"]);

        let (x, grad) = (float([1, 3, 4]), float([1, 3, 2]));
        let desc = AvgPool1dBackwardOpIr::create(x, grad, 2, 2, 0, true, false, id);
        assert_eq!(
            module(ModuleOperationIr::AvgPool1dBackward(desc)),
            ["1 1 -> 1"]
        );
    }

    #[test]
    fn a_grid_belongs_to_its_sample() {
        let options = GridSampleOptionsIr {
            mode: InterpolateModeIr::Bilinear,
            padding_mode: GridSamplePaddingModeIr::Zeros,
            align_corners: false,
        };
        let (tensor, grid) = (float([2, 3, 4, 4]), float([2, 5, 5, 2]));
        let desc = GridSample2dOpIr::create(tensor, grid, options, id);
        let op = OperationIr::Float(DType::F32, FloatOperationIr::GridSample2d(desc));
        assert_eq!(factors(&op), ["0 0 -> 0"]);
    }

    #[test]
    fn attention_is_cut_along_samples_and_heads() {
        assert_eq!(
            factors(&attention(None, None)),
            ["0 0 0 -> 0", "1 1 1 -> 1"]
        );
        let (mask, bias) = (boolean([2, 1, 5, 5]), float([1, 4, 5, 5]));
        let op = attention(Some(mask), Some(bias));
        assert_eq!(factors(&op), ["0 0 0 0 _ -> 0", "1 1 1 _ 1 -> 1"]);
    }

    #[test]
    fn a_spectrum_is_not_cut() {
        let desc = RfftOpIr::create(float([2, 8, 3]), 1, None, id);
        let op = ModuleOperationIr::Rfft(desc);
        assert_eq!(module(op), ["0 -> 0 0", "2 -> 2 2"]);
        let desc = IRfftOpIr::create(float([2, 5, 3]), float([2, 5, 3]), 1, None, id);
        let op = ModuleOperationIr::IRfft(desc);
        assert_eq!(module(op), ["0 0 -> 0", "2 2 -> 2"]);
    }

    #[test]
    fn a_ctc_loss_has_its_batch_second() {
        let (probs, targets) = (|| float([9, 2, 5]), || int([2, 4]));
        let desc = CtcLossOpIr::create(probs(), targets(), int([2]), int([2]), 0, id);
        assert_eq!(module(ModuleOperationIr::CtcLoss(desc)), ["1 0 0 0 -> 0"]);
        let (input, target, grad) = (int([2]), int([2]), float([2]));
        let desc = CtcLossBackwardOpIr::create(probs(), targets(), input, target, grad, 0, id);
        let op = ModuleOperationIr::CtcLossBackward(desc);
        assert_eq!(module(op), ["1 0 0 0 0 -> 1"]);
    }
}
