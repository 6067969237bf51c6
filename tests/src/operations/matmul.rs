//! Cases of `partition/rules/matmul.rs`: matrix products, `linear` and its gradients, `cross`.

use super::case::{Case, cases, out};
use super::devices::{primitive, read};
use super::place::Place;
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn::tensor::module::linear;

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "float matmul" => out![
            p.float([7, 6]).matmul(p.float([6, 5])),
            p.float([5, 7]).matmul(p.float([7, 3])),
        ],
        "batched matmul" => out![
            p.float([7, 3, 6]).matmul(p.float([7, 6, 5])),
            p.float([7, 3, 6]).matmul(p.float([1, 6, 5])),
            p.float([1, 3, 6]).matmul(p.float([7, 6, 5])),
            p.float([2, 7, 3, 6]).matmul(p.float([1, 7, 6, 5])),
        ],
        "matmul of a tensor with itself" => {
            let x = p.float([6, 6]);
            out![x.clone().matmul(x.clone()), x.clone().transpose().matmul(x)]
        },
        "matrix and vector" => out![
            p.float([7, 6]).matmul(p.float([6, 1])),
            p.float([1, 7]).matmul(p.float([7, 5])),
            p.float([1, 7]).matmul(p.float([7, 1])),
        ],
        "int matmul" => out![
            p.int(-9..=9, [7, 6]).matmul(p.int(-9..=9, [6, 5])),
            p.int(-9..=9, [7, 3, 6]).matmul(p.int(-9..=9, [1, 6, 5])),
        ],
        "dot" => out![p.float([7]).dot(p.float([7]))],
        "cross" => out![
            p.float([7, 4, 3]).cross(p.float([7, 4, 3]), 2),
            p.float([7, 3, 4]).cross(p.float([7, 3, 4]), 1),
            p.float([7, 4, 3]).cross(p.float([1, 4, 3]), 2),
        ],
        "linear" => out![
            linear(p.float([7, 6]), p.float([6, 5]), None),
            linear(p.float([7, 3, 6]), p.float([6, 5]), None),
            linear(p.float([6]), p.float([6, 5]), None),
        ],
        "linear with a bias" => out![
            linear(p.float([7, 6]), p.float([6, 5]), Some(p.float([5]))),
            linear(p.float([7, 3, 6]), p.float([6, 5]), Some(p.float([5]))),
        ],
        "linear x backward" => vec![
            read::<B, 2>(B::linear_x_backward(
                primitive(p.float([6, 5])),
                primitive(p.float([7, 5])),
            )),
            read::<B, 3>(B::linear_x_backward(
                primitive(p.float([6, 5])),
                primitive(p.float([7, 3, 5])),
            )),
        ],
        "linear weight backward" => vec![
            read::<B, 2>(B::linear_weight_backward(
                primitive(p.float([7, 6])),
                primitive(p.float([7, 5])),
            )),
            read::<B, 2>(B::linear_weight_backward(
                primitive(p.float([7, 3, 6])),
                primitive(p.float([7, 3, 5])),
            )),
        ],
        "linear bias backward" => vec![
            read::<B, 1>(B::linear_bias_backward(primitive(p.float([7, 5])))),
            read::<B, 1>(B::linear_bias_backward(primitive(p.float([7, 3, 5])))),
        ],
        "a chain of sums in parts" => {
            // What gradients are: contractions over a batch, scaled, added and used again.
            let sum = |rows: Tensor<B, 2>, other| rows.transpose().matmul(other);
            let first = sum(p.float([7, 4]), p.float([7, 3]));
            let second = sum(p.float([7, 4]), p.float([7, 3]));
            let total = first * 0.5 + second;
            let scaled = total.clone() / 2.0 + total.clone();
            let vector = total.sum_dim(0);
            out![scaled.clone(), scaled.reshape([2, 6]).transpose(), vector.exp()]
        },
    );
    list
}
