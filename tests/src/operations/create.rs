//! Cases of what makes tensors out of nothing, and of random numbers.

use super::case::{Case, Kind, cases, for_kinds, out};
use super::place::Place;
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Distribution, Float, Int, Tensor, TensorData};
use std::sync::RwLockWriteGuard;

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    for_kinds!(list:
        "zeros, ones" zeros_ones,
        "empty" empty,
    );
    cases!(list, p:
        "float full" => {
            let full = || Tensor::<B, 2>::full([7, 4], 2.5, (&p.device(), p.dtype()));
            out![full(), full() + p.float([7, 4]), full().matmul(p.float([4, 3]))]
        },
        "int full" => {
            let full = || Tensor::<B, 2, Int>::full([7, 4], -3, &p.device());
            out![full(), full() + p.int(0..=9, [7, 4]), full() * p.int(0..=9, [1, 4])]
        },
        "arange" => {
            let arange = Tensor::<B, 1, Int>::arange(0..7, &p.device());
            out![
                arange.clone() + p.int(0..=9, [7]),
                Tensor::<B, 1, Int>::arange_step(0..20, 3, &p.device()),
                p.float([7, 4]).select(0, arange.flip([0])),
            ]
        },
        "eye, diagonal masks" => out![
            p.float([7, 7]).matmul(Tensor::<B, 2>::eye(7, &p.device()).cast(p.dtype())),
            p.float([7, 5]).mask_fill(Tensor::tril_mask([7, 5], 0, &p.device()), 0.0),
        ],
        // The same numbers as one device draws, whole and dealt along a batch.
        "float random" => {
            let _random = seeded::<B, P>(p);
            let random = |distribution| {
                Tensor::<B, 2>::random([7, 4], distribution, (&p.device(), p.dtype()))
            };
            let whole = random(Distribution::Default);
            let normal = random(Distribution::Normal(1.0, 2.0));
            let uniform = random(Distribution::Uniform(-3.0, 5.0)) + p.float([7, 4]);
            let coins = p.float([7, 4]) * random(Distribution::Bernoulli(0.5));
            drop(random(Distribution::Default));
            let before = random(Distribution::Default);
            B::seed(&p.device(), 19);
            let last = random(Distribution::Default);
            out![uniform, coins, normal.sum_dim(1), whole, last, before]
        },
        "int random" => {
            let _random = seeded::<B, P>(p);
            let random = || {
                Tensor::<B, 2, Int>::random([7, 4], Distribution::Uniform(0.0, 100.0), &p.device())
            };
            let (whole, other) = (random(), random());
            out![random() + p.int(0..=9, [7, 4]), other.sum_dim(0), whole]
        },
    );
    list
}

/// Seeds the generator of the process, and keeps others from drawing.
fn seeded<B: Backend, P: Place<B>>(p: &P) -> RwLockWriteGuard<'static, ()> {
    let random = crate::owns_random();
    B::seed(&p.device(), 17);
    random
}

fn zeros_ones<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let (zeros, ones) = (
        || K::make(p, [7, 4]).zeros_like(),
        || K::make(p, [7, 4]).ones_like(),
    );
    let whole = Tensor::cat(vec![zeros(), ones()], 1);
    out![
        zeros(),
        ones(),
        whole,
        zeros().mask_where(p.bool([7, 4]), ones()),
        zeros().slice_assign([0..7, 1..3], K::make(p, [7, 2])),
        ones().equal(K::make(p, [7, 4])),
    ]
}

/// What is in an empty tensor is not said, so it is written to before it is read.
fn empty<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let like = K::make(p, [7, 4]);
    let empty = || Tensor::<B, 2, K>::empty([7, 4], (&p.device(), like.dtype()));
    out![
        empty().slice_assign([0..7, 0..4], K::make(p, [7, 4])),
        K::make(p, [7, 4]).mask_where(Tensor::zeros([7, 4], &p.device()), empty()),
    ]
}
