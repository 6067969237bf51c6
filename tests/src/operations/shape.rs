//! Cases of `partition/rules/shape.rs`: what moves elements without looking at them.

use super::case::{Case, Kind, cases, for_kinds, out};
use super::place::Place;
use burn::tensor::backend::Backend;
use burn::tensor::ops::PadMode;
use burn::tensor::{Bool, Float, Int, Tensor, TensorData, s};

const DIMS: [usize; 3] = [7, 3, 4];

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    for_kinds!(list:
        "reshape" reshape,
        "reshape across the cut" reshape_across,
        "swap dims" swap_dims,
        "permute" permute,
        "flip" flip,
        "expand" expand,
        "unfold" unfold,
        "slice" slice,
        "slice by steps" slice_by_steps,
        "slices of a slice" slices_of_a_slice,
        "repeat" repeat,
        "cat" cat,
        "stack, split, chunk" stack,
        "roll" roll,
    );
    // Burn pads with its default type of floats.
    list.push(Case::new("pad", pad::<B, P>).default_float());
    cases!(list, p:
        "triangles" => out![
            p.float([7, 7]).triu(0),
            p.float([7, 5]).tril(1),
            p.float([2, 7, 4]).triu(-1),
        ],
        "one hot" => out![p.int(0..=4, [7]).one_hot::<2>(5), p.int(0..=4, [7, 3]).one_hot::<3>(5)],
    );
    list
}

fn pad<B: Backend, P: Place<B>>(p: &P) -> Vec<TensorData> {
    let x = || p.float([7, 1, 3, 4]);
    out![
        x().pad((1, 2, 0, 1), 0.5),
        x().pad((1, 2, 1, 1), PadMode::Reflect),
        x().pad((1, 2, 1, 1), PadMode::Edge),
        p.float([7, 4])
            .pad([(1, 1), (0, 2)], PadMode::Constant(1.0)),
    ]
}

fn reshape<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, DIMS).reshape([21, 4]),
        K::make(p, DIMS).reshape([7, 12]),
        K::make(p, DIMS).reshape([7, 3, 2, 2]),
        K::make(p, DIMS).reshape([1, 7, 12]),
        K::make(p, DIMS).flatten::<1>(0, 2),
        K::make(p, [21, 4]).reshape([7, 3, 4]),
        K::make(p, [7, 1, 4]).squeeze::<2>(),
        K::make(p, [7, 4]).unsqueeze::<3>(),
        K::make(p, [7]).reshape([7, 1]),
        K::make(p, [1]).reshape([1, 1, 1]),
    ]
}

fn reshape_across<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, [6, 4]).reshape([4, 6]),
        K::make(p, [7, 6]).reshape([6, 7]),
        K::make(p, [4, 6]).reshape([2, 12]),
        K::make(p, [4, 6]).reshape([12, 2]),
        K::make(p, [2, 7, 3]).reshape([3, 14]),
    ]
}

fn swap_dims<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, DIMS).swap_dims(0, 2),
        K::make(p, DIMS).swap_dims(1, 2),
        K::make(p, [7, 4]).transpose(),
        // What is laid out in another order in memory, and used again.
        K::make(p, [7, 4]).transpose().reshape([2, 14]),
    ]
}

fn permute<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, DIMS).permute([2, 0, 1]),
        K::make(p, DIMS).permute([1, 2, 0]),
        K::make(p, DIMS).movedim(0, 2),
    ]
}

fn flip<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, DIMS).flip([0]),
        K::make(p, DIMS).flip([1, 2]),
        K::make(p, DIMS).flip([0, 2]),
    ]
}

fn expand<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, [7, 1, 4]).expand([7, 3, 4]),
        K::make(p, [1, 3, 4]).expand([7, 3, 4]),
        K::make(p, [3, 4]).expand([7, 3, 4]),
        K::make(p, [1]).expand([7, 2]),
        K::make(p, [7, 1]).expand([2, 7, 5]),
    ]
}

fn unfold<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let along: Tensor<B, 4, K> = K::make(p, DIMS).unfold(0, 3, 2);
    let across: Tensor<B, 4, K> = K::make(p, DIMS).unfold(2, 2, 1);
    out![along, across]
}

fn slice<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, DIMS).slice(1..6),
        K::make(p, DIMS).slice([0..7, 1..2]),
        K::make(p, DIMS).slice([6..7, 0..3, 1..3]),
        K::make(p, DIMS).slice(s![-2.., .., ..-1]),
        K::make(p, DIMS).narrow(2, 0, 2),
        K::make(p, DIMS).slice(0..1),
    ]
}

fn slice_by_steps<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, DIMS).slice(s![..;2, .., ..]),
        K::make(p, DIMS).slice(s![.., .., ..;-1]),
        K::make(p, DIMS).slice(s![1..6;-2, 0..2, ..]),
    ]
}

fn slices_of_a_slice<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let rows = K::make(p, [14, 4]).slice(3..9);
    let few = rows.clone().slice(1..3);
    let empty = rows.clone().slice(2..2);
    out![
        few.clone(),
        Tensor::cat(vec![few, empty, rows.clone()], 0),
        rows.slice([4..6, 1..3])
    ]
}

fn repeat<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, DIMS).repeat_dim(0, 2),
        K::make(p, DIMS).repeat_dim(2, 3),
        K::make(p, [7, 1]).repeat(&[1, 4]),
        K::make(p, [1, 4]).repeat(&[7, 1]),
    ]
}

fn cat<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let x = K::make(p, [3, 4]);
    out![
        Tensor::cat(vec![K::make(p, [7, 4]), K::make(p, [2, 4])], 0),
        Tensor::cat(
            vec![K::make(p, [7, 4]), K::make(p, [7, 1]), K::make(p, [7, 2])],
            1
        ),
        Tensor::cat(vec![x.clone(), x.clone(), x], 0),
        Tensor::cat(vec![K::make(p, [7, 4])], 0),
    ]
}

fn stack<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let items: Vec<Tensor<B, 1, K>> = (0..5).map(|_| K::make(p, [4])).collect();
    let mut all = out![
        Tensor::stack::<2>(items.clone(), 0),
        Tensor::stack::<2>(items, 1)
    ];
    all.extend(
        K::make(p, [7, 4])
            .split(3, 0)
            .into_iter()
            .map(Tensor::into_data),
    );
    all.extend(
        K::make(p, [7, 4])
            .chunk(2, 1)
            .into_iter()
            .map(Tensor::into_data),
    );
    all
}

fn roll<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, [7, 4]).roll_dim(2, 0),
        K::make(p, [7, 4]).roll(&[1, -1], &[0, 1])
    ]
}
