//! Cases of `partition/rules/reduce.rs`: reductions to one element or along a dimension, cumulative
//! operations; and what Burn makes of them.

use super::case::{Case, Kind, cases, for_kinds, out};
use super::place::Place;
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Float, Int, TensorData};

const DIMS: [usize; 3] = [7, 3, 4];

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    for_kinds!(list: "any, all" any_all);
    list.extend(floats());
    list.extend(ints());
    list
}

fn any_all<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, DIMS).any(),
        K::make(p, DIMS).all(),
        K::make(p, DIMS).any_dim(0),
        K::make(p, DIMS).any_dim(2),
        K::make(p, DIMS).all_dim(0),
        K::make(p, DIMS).all_dim(1),
    ]
}

/// Of a reduction along a dimension: along each of three.
macro_rules! each_dim {
    ($input:expr, $method:ident) => {
        out![$input.$method(0), $input.$method(1), $input.$method(2)]
    };
}

/// The same for reductions that give indices as well.
macro_rules! each_dim_pair {
    ($input:expr, $method:ident) => {
        (0..3)
            .flat_map(|dim| {
                let (values, indices) = $input.$method(dim);
                out![values, indices]
            })
            .collect()
    };
}

fn floats<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "float sum" => out![p.float(DIMS).sum(), p.float([7, 1]).sum(), p.float([7]).sum()],
        "float sum of one dimension" => each_dim!(p.float(DIMS), sum_dim),
        "float mean" => out![p.float(DIMS).mean(), p.float([7, 1]).mean()],
        "float mean of one dimension" => each_dim!(p.float(DIMS), mean_dim),
        "float prod" => out![p.float_in(0.5..=1.5, DIMS).prod()],
        "float prod of one dimension" => each_dim!(p.float_in(0.5..=1.5, DIMS), prod_dim),
        "float max, min" => out![p.float(DIMS).max(), p.float(DIMS).min()],
        "float max of one dimension" => each_dim!(p.float(DIMS), max_dim),
        "float min of one dimension" => each_dim!(p.float(DIMS), min_dim),
        "float max abs" => out![p.float(DIMS).max_abs(), p.float(DIMS).max_abs_dim(0), p.float(DIMS).max_abs_dim(2)],
        "float argmax" => each_dim!(p.float(DIMS), argmax),
        "float argmin" => each_dim!(p.float(DIMS), argmin),
        "float max with indices" => each_dim_pair!(p.float(DIMS), max_dim_with_indices),
        "float min with indices" => each_dim_pair!(p.float(DIMS), min_dim_with_indices),
        "float topk" => out![p.float(DIMS).topk(2, 0), p.float(DIMS).topk(2, 1), p.float(DIMS).topk(2, 2)],
        "float cumsum" => each_dim!(p.float(DIMS), cumsum),
        "float cumprod" => each_dim!(p.float_in(0.5..=1.5, DIMS), cumprod),
        "float cummin" => each_dim!(p.float(DIMS), cummin),
        "float cummax" => each_dim!(p.float(DIMS), cummax),
        "var" => out![p.float(DIMS).var(0), p.float(DIMS).var_bias(2), p.float(DIMS).var_mean(0).1],
        "cov" => out![p.float([7, 4]).cov(0, 1), p.float([7, 4]).cov(1, 0)],
        "one element and none" => out![
            p.float([1, 1, 1]).sum_dim(0),
            p.float([1, 4]).mean_dim(0),
            p.float([7, 4]).slice([0..0, 0..4]).sum_dim(0),
            p.float([7, 4]).slice([6..7, 0..4]).max_dim(0),
        ],
    );
    list
}

fn ints<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "int sum" => out![p.int(-9..=9, DIMS).sum()],
        "int sum of one dimension" => each_dim!(p.int(-9..=9, DIMS), sum_dim),
        "int mean" => out![p.int(-99..=99, DIMS).mean(), p.int(0..=99, DIMS).mean()],
        "int mean of one dimension" => each_dim!(p.int(-99..=99, DIMS), mean_dim),
        "int prod" => out![p.int(-2..=2, [7, 2]).prod()],
        "int prod of one dimension" => each_dim!(p.int(-3..=3, DIMS), prod_dim),
        "int max, min" => out![p.int(-9..=9, DIMS).max(), p.int(-9..=9, DIMS).min()],
        "int max of one dimension" => each_dim!(p.int(-9..=9, DIMS), max_dim),
        "int min of one dimension" => each_dim!(p.int(-9..=9, DIMS), min_dim),
        "int max abs" => out![p.int(-9..=9, DIMS).max_abs()],
        "int max abs of one dimension" => each_dim!(p.int(-9..=9, DIMS), max_abs_dim),
        "int argmax" => each_dim!(p.int(-99..=99, DIMS), argmax),
        "int argmin" => each_dim!(p.int(-99..=99, DIMS), argmin),
        "int max with indices" => each_dim_pair!(p.int(-99..=99, DIMS), max_dim_with_indices),
        "int min with indices" => each_dim_pair!(p.int(-99..=99, DIMS), min_dim_with_indices),
        "int topk" => out![p.int(-99..=99, DIMS).topk(2, 0), p.int(-99..=99, DIMS).topk(2, 2)],
        "int cumsum" => each_dim!(p.int(-9..=9, DIMS), cumsum),
        "int cumprod" => each_dim!(p.int(-2..=2, DIMS), cumprod),
        "int cummin" => each_dim!(p.int(-9..=9, DIMS), cummin),
        "int cummax" => each_dim!(p.int(-9..=9, DIMS), cummax),
    );
    list
}
