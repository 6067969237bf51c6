//! Cases of `partition/inner.rs`: activations, layer norm and sorting, which the inner backend does
//! in its own way; and what Burn makes of sorting.

use super::case::{Case, cases, out};
use super::devices::{primitive, read};
use super::place::Place;
use burn::tensor::activation::{
    gelu, hard_sigmoid, leaky_relu, log_sigmoid, log_softmax, mish, prelu, relu, sigmoid, silu,
    softmax, softmin, softplus,
};
use burn::tensor::backend::Backend;

const DIMS: [usize; 3] = [7, 3, 4];

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = activations();
    list.extend(sorted());
    list
}

fn activations<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "relu" => out![relu(p.float(DIMS))],
        "leaky relu" => out![leaky_relu(p.float(DIMS), 0.1)],
        "prelu" => out![
            prelu(p.float([7, 4]), p.float([4])),
            prelu(p.float([7, 4, 3]), p.float([4])),
            prelu(p.float([7, 4]), p.float([1])),
        ],
        "gelu" => out![gelu(p.float(DIMS))],
        "sigmoid" => out![sigmoid(p.float(DIMS))],
        "hard sigmoid" => out![hard_sigmoid(p.float(DIMS), 0.2, 0.5)],
        "log sigmoid" => out![log_sigmoid(p.float(DIMS))],
        "softplus, silu, mish" => out![softplus(p.float(DIMS), 1.0), silu(p.float(DIMS)), mish(p.float(DIMS))],
        "softmax" => out![softmax(p.float(DIMS), 0), softmax(p.float(DIMS), 1), softmax(p.float(DIMS), 2)],
        "log softmax" => out![log_softmax(p.float(DIMS), 0), log_softmax(p.float(DIMS), 2)],
        "softmin" => out![softmin(p.float(DIMS), 0), softmin(p.float(DIMS), 2)],
        "layer norm" => {
            let norm = |beta| read::<B, 3>(B::layer_norm(
                primitive(p.float(DIMS)),
                primitive(p.float([4])),
                beta,
                1e-5,
            ));
            vec![norm(None), norm(Some(primitive(p.float([4]))))]
        },
        "relu backward" => vec![read::<B, 3>(B::relu_backward(
            primitive(p.float(DIMS)),
            primitive(p.float(DIMS)),
        ))],
        "gelu backward" => vec![read::<B, 3>(B::gelu_backward(
            primitive(p.float(DIMS)),
            primitive(p.float(DIMS)),
        ))],
        "sigmoid backward" => vec![read::<B, 3>(B::sigmoid_backward(
            primitive(p.float_in(0.0..=1.0, DIMS)),
            primitive(p.float(DIMS)),
        ))],
        "log sigmoid backward" => vec![read::<B, 3>(B::log_sigmoid_backward(
            primitive(p.float(DIMS)),
            primitive(p.float(DIMS)),
        ))],
    );
    list
}

fn sorted<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "sort" => out![
            p.float(DIMS).sort(0),
            p.float(DIMS).sort_descending(2),
            p.int(-99..=99, DIMS).sort(1),
        ],
        "sort with indices" => {
            let (values, indices) = p.floats(&distinct(), [7, 4]).sort_with_indices(0);
            let (ints, of_ints) = p.ints(&distinct_ints(), [7, 4]).sort_descending_with_indices(1);
            out![values, indices, ints, of_ints]
        },
        "argsort" => out![
            p.floats(&distinct(), [7, 4]).argsort_descending(1),
            p.ints(&distinct_ints(), [7, 4]).argsort(0),
        ],
        "topk with indices" => {
            let (values, indices) = p.floats(&distinct(), [7, 4]).topk_with_indices(2, 0);
            out![values, indices]
        },
        "median" => out![p.float([7, 3]).median(0), p.float([7, 3]).median(1)],
        "argwhere" => {
            let mut all = out![p.bool(DIMS).argwhere(), p.float(DIMS).greater_elem(0.0).argwhere()];
            all.extend(p.bool([7]).nonzero().into_iter().map(|indices| indices.into_data()));
            all
        },
    );
    list
}

/// Which of two equal elements comes first is not said.
fn distinct_ints() -> Vec<i64> {
    (0..28).map(|i| i * 11 % 28).collect()
}

fn distinct() -> Vec<f64> {
    distinct_ints()
        .into_iter()
        .map(|value| value as f64)
        .collect()
}
