//! Cases of what leaves a device: moves to another one, and reads of several tensors at once; and
//! of gradients, which go through everything else.

use super::case::{Case, Kind, cases, for_kinds, out};
use super::place::Place;
use burn::backend::Autodiff;
use burn::tensor::activation::{gelu, log_softmax, relu, softmax};
use burn::tensor::backend::Backend;
use burn::tensor::module::{conv2d, ctc_loss, max_pool2d};
use burn::tensor::ops::ConvOptions;
use burn::tensor::quantization::QuantScheme;
use burn::tensor::{Bool, Float, Int, Tensor, TensorData, Transaction};

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    for_kinds!(list: "to another device" to_device);
    list.push(
        Case::new("quantized to another device", to_device_quantized::<B, P>).default_float(),
    );
    cases!(list, p:
        "transaction" => Transaction::default()
            .register(p.float([7, 4]))
            .register(p.int(-9..=9, [7, 4]) * 2)
            .register(p.bool([7, 4]))
            .register(p.float([7, 4]).transpose().matmul(p.float([7, 3])))
            .execute(),
        "to data while in use" => {
            let x = p.float([7, 4]);
            let y = x.clone().exp();
            vec![x.to_data(), y.to_data(), (x.clone() + y.clone()).into_data(), x.into_data(), y.into_data()]
        },
        "gradients of a perceptron" => {
            let leaf = |tensor| Tensor::<Autodiff<B>, 2>::from_inner(tensor).require_grad();
            let (x, w, v) = (leaf(p.float([7, 4])), leaf(p.float([4, 6])), leaf(p.float([6, 3])));
            let hidden = gelu(relu(x.clone().matmul(w.clone())) + 0.5);
            let loss = (softmax(hidden.matmul(v.clone()), 1).log() * -1.0).mean();
            let mut grads = loss.backward();
            let mut all = vec![loss.into_data()];
            for leaf in [x, w, v] {
                all.extend(leaf.grad_remove(&mut grads).map(Tensor::into_data));
            }
            all
        },
        "gradients of the ctc loss" => {
            let logits = Tensor::<Autodiff<B>, 3>::from_inner(p.float([6, 7, 4])).require_grad();
            let ints = |tensor| Tensor::<Autodiff<B>, 1, Int>::from_inner(tensor);
            let loss = ctc_loss(
                log_softmax(logits.clone(), 2),
                Tensor::from_inner(p.int(1..=3, [7, 2])),
                ints(p.ints(&[6, 6, 5, 6, 4, 6, 5], [7])),
                ints(p.ints(&[2, 1, 2, 2, 1, 2, 1], [7])),
                0,
            );
            let mut grads = loss.clone().sum().backward();
            let mut all = vec![loss.into_data()];
            all.extend(logits.grad_remove(&mut grads).map(Tensor::into_data));
            all
        },
        "gradients of a convolution" => {
            let leaf = |tensor| Tensor::<Autodiff<B>, 4>::from_inner(tensor).require_grad();
            let (x, w) = (leaf(p.float([7, 2, 6, 6])), leaf(p.float([3, 2, 3, 3])));
            let bias = Tensor::<Autodiff<B>, 1>::from_inner(p.float([3])).require_grad();
            let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
            let y = conv2d(x.clone(), w.clone(), Some(bias.clone()), options);
            let loss = max_pool2d(y, [2, 2], [2, 2], [0, 0], [1, 1], false).powf_scalar(2.0).sum();
            let mut grads = loss.backward();
            let mut all = vec![loss.into_data()];
            for leaf in [x, w] {
                all.extend(leaf.grad_remove(&mut grads).map(Tensor::into_data));
            }
            all.extend(bias.grad_remove(&mut grads).map(Tensor::into_data));
            all
        },
    );
    list
}

fn to_device<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let there = K::make(p, [7, 4]).to_device(&p.other_device());
    let back = there.clone().flip([0]).to_device(&p.device());
    let same = K::make(p, [7, 4]).to_device(&p.device());
    out![there, back.equal(same)]
}

fn to_device_quantized<B: Backend, P: Place<B>>(p: &P) -> Vec<TensorData> {
    let quantized = p.float([7, 4]).quantize_dynamic(&QuantScheme::default());
    let there = quantized.to_device(&p.other_device());
    out![there.clone(), there.dequantize()]
}
