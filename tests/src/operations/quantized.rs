//! Cases of quantized tensors, which are whole on every member.

use super::case::{Case, cases, out};
use super::place::Place;
use burn::tensor::backend::Backend;
use burn::tensor::quantization::{
    Calibration, QuantLevel, QuantScheme, compute_q_params, compute_range,
};
use burn::tensor::{Tensor, TensorData};

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "quantize" => {
            let x = p.float([7, 4]);
            let scheme = QuantScheme::default();
            let range = compute_range(&scheme, &x, &Calibration::MinMax);
            let qparams = compute_q_params(&scheme, range);
            let quantized = x.quantize(&scheme, qparams);
            out![quantized.clone(), quantized.dequantize()]
        },
        "quantize dynamic" => {
            let quantized = p.float([7, 4]).quantize_dynamic(&QuantScheme::default());
            out![quantized.clone(), quantized.dequantize()]
        },
        "quantize in blocks" => {
            let scheme = QuantScheme::default().with_level(QuantLevel::block([4]));
            let quantized = p.float([7, 8]).quantize_dynamic(&scheme);
            out![quantized.clone(), quantized.dequantize()]
        },
        "quantized from data" => {
            let data = quantized::<B, P>(p).into_data();
            let again = Tensor::<B, 2>::from_data(data, &p.device());
            out![again.clone(), again.dequantize()]
        },
        "quantized views" => out![
            quantized::<B, P>(p).reshape([4, 7]).dequantize(),
            quantized::<B, P>(p).reshape([7, 2, 2]).dequantize(),
            quantized::<B, P>(p).transpose().dequantize(),
            quantized::<B, P>(p).permute([1, 0]).dequantize(),
            quantized::<B, P>(p).flip([0]).dequantize(),
            quantized::<B, P>(p).slice([1..6, 0..2]).dequantize(),
            quantized::<B, P>(p).slice([0..1, 0..4]).expand([3, 4]).dequantize(),
            quantized::<B, P>(p).select(0, p.int(0..=6, [5])).dequantize(),
            quantized::<B, P>(p).gather(1, p.int(0..=3, [7, 2])).dequantize(),
        ],
        "quantized matmul" => {
            let weights = p.float([4, 3]).quantize_dynamic(&QuantScheme::default());
            let mut all = matmul(p.float([7, 4]), weights.clone());
            all.extend(matmul(quantized::<B, P>(p), weights));
            all
        },
        "quantized arithmetic" => out![
            dequantized(quantized::<B, P>(p) + quantized::<B, P>(p)),
            dequantized(quantized::<B, P>(p) * 2.0),
            dequantized(quantized::<B, P>(p).sum_dim(0)),
            dequantized(quantized::<B, P>(p).exp()),
            dequantized(quantized::<B, P>(p).max()),
            quantized::<B, P>(p).argmax(1),
        ],
    );
    list.into_iter().map(Case::default_float).collect()
}

fn quantized<B: Backend, P: Place<B>>(p: &P) -> Tensor<B, 2> {
    p.float([7, 4]).quantize_dynamic(&QuantScheme::default())
}

fn matmul<B: Backend>(lhs: Tensor<B, 2>, rhs: Tensor<B, 2>) -> Vec<TensorData> {
    out![dequantized(lhs.matmul(rhs))]
}

/// Whether a result is quantized again is the backend's choice.
fn dequantized<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Tensor<B, D> {
    tensor.dequantize()
}
