//! Cases of `partition/rules/index.rs`: what reads or writes where indices say, and `embedding`.

use super::case::{Case, Kind, cases, for_kinds, out};
use super::devices::{primitive, read};
use super::place::Place;
use burn::tensor::backend::Backend;
use burn::tensor::ops::{GridSampleOptions, GridSamplePaddingMode, InterpolateMode};
use burn::tensor::{Bool, Float, IndexingUpdateOp, Int, Tensor, TensorData, module, s};

const ADD: IndexingUpdateOp = IndexingUpdateOp::Add;

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    for_kinds!(list:
        "select" select,
        "select assign" select_assign,
        "gather" gather,
        "scatter" scatter,
        "slice assign" slice_assign,
    );
    cases!(list, p:
        "select add onto zeros" => {
            let zeros = || Tensor::<B, 2>::zeros([5, 4], (&p.device(), p.dtype()));
            out![
                zeros().select_assign(0, p.int(0..=4, [7]), p.float([7, 4]), ADD),
                zeros().select_assign(1, p.int(0..=3, [7]), p.float([5, 7]), ADD),
            ]
        },
        "scatter add onto zeros" => {
            let zeros = || Tensor::<B, 2>::zeros([7, 4], (&p.device(), p.dtype()));
            out![
                zeros().scatter(0, p.int(0..=6, [7, 4]), p.float([7, 4]), ADD),
                zeros().scatter(1, p.int(0..=3, [7, 3]), p.float([7, 3]), ADD),
            ]
        },
        "float gather nd" => {
            let rows: Tensor<B, 2> = p.float([7, 4]).gather_nd(p.int(0..=6, [5, 1]));
            let elements: Tensor<B, 1> = p.float([7, 4]).gather_nd(p.int(0..=3, [9, 2]));
            let blocks: Tensor<B, 3> = p.float([7, 4]).gather_nd(p.int(0..=6, [7, 2, 1]));
            out![rows, elements, blocks]
        },
        "int gather nd" => {
            let rows: Tensor<B, 2, Int> = p.int(-9..=9, [7, 4]).gather_nd(p.int(0..=6, [5, 1]));
            let elements: Tensor<B, 1, Int> = p.int(-9..=9, [7, 4]).gather_nd(p.int(0..=3, [9, 2]));
            out![rows, elements]
        },
        "float scatter nd" => {
            let zeros = Tensor::<B, 2>::zeros([7, 4], (&p.device(), p.dtype()));
            out![
                p.float([7, 4]).scatter_nd(p.int(0..=6, [9, 1]), p.float([9, 4]), ADD),
                zeros.scatter_nd(p.int(0..=3, [7, 2]), p.float([7]), ADD),
            ]
        },
        "float scatter nd by the last and the largest" => {
            let rows = || p.ints(&[3, 0, 5], [3, 1]);
            out![
                p.float([7, 4]).scatter_nd(rows(), p.float([3, 4]), IndexingUpdateOp::Assign),
                p.float([7, 4]).scatter_nd(rows(), p.float([3, 4]), IndexingUpdateOp::Mul),
                p.float([7, 4]).scatter_nd(rows(), p.float([3, 4]), IndexingUpdateOp::Max),
                p.float([7, 4]).scatter_nd(rows(), p.float([3, 4]), IndexingUpdateOp::Min),
            ]
        },
        "int scatter nd" => out![
            p.int(-9..=9, [7, 4]).scatter_nd(p.int(0..=6, [9, 1]), p.int(-9..=9, [9, 4]), ADD),
            p.int(-9..=9, [7, 4]).scatter_nd(
                p.ints(&[3, 0, 5], [3, 1]),
                p.int(-9..=9, [3, 4]),
                IndexingUpdateOp::Assign,
            ),
        ],
        "take, fill" => out![
            p.float([7, 4]).take::<2, 3>(0, p.int(0..=6, [2, 3])),
            p.float([7, 4]).slice_fill(s![2..5, 1..], 3.0),
        ],
        "embedding" => out![
            module::embedding(p.float([10, 4]), p.int(0..=9, [7, 3])),
            module::embedding(p.float([10, 4]), p.int(0..=9, [1, 7])),
        ],
        "embedding backward" => vec![
            read::<B, 2>(B::embedding_backward(
                primitive(p.float([10, 4])),
                primitive(p.float([7, 3, 4])),
                p.int(0..=9, [7, 3]).into_primitive(),
            )),
        ],
        "grid sample" => {
            let options = |padding| {
                GridSampleOptions::new(InterpolateMode::Bilinear).with_padding_mode(padding)
            };
            out![
                p.float([7, 2, 4, 5]).grid_sample_2d(
                    p.float_in(-1.5..=1.5, [7, 3, 3, 2]),
                    options(GridSamplePaddingMode::Zeros),
                ),
                p.float([7, 2, 4, 5]).grid_sample_2d(
                    p.float_in(-1.5..=1.5, [7, 3, 3, 2]),
                    options(GridSamplePaddingMode::Border).with_align_corners(true),
                ),
            ]
        },
    );
    list
}

fn select<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, [7, 3, 4]).select(0, p.int(0..=6, [5])),
        K::make(p, [7, 3, 4]).select(1, p.int(0..=2, [7])),
        K::make(p, [7, 3, 4]).select(2, p.int(0..=3, [1])),
    ]
}

fn select_assign<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, [7, 4]).select_assign(0, p.int(0..=6, [9]), K::make(p, [9, 4]), ADD),
        K::make(p, [7, 4]).select_assign(1, p.int(0..=3, [3]), K::make(p, [7, 3]), ADD),
    ]
}

fn gather<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, [7, 4]).gather(1, p.int(0..=3, [7, 2])),
        K::make(p, [7, 4]).gather(0, p.int(0..=6, [5, 4])),
        K::make(p, [7, 3, 4]).gather(1, p.int(0..=2, [7, 5, 4])),
    ]
}

fn scatter<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, [7, 4]).scatter(1, p.int(0..=3, [7, 3]), K::make(p, [7, 3]), ADD),
        K::make(p, [7, 4]).scatter(0, p.int(0..=6, [9, 4]), K::make(p, [9, 4]), ADD),
    ]
}

fn slice_assign<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    out![
        K::make(p, [7, 4]).slice_assign([0..7, 1..3], K::make(p, [7, 2])),
        K::make(p, [7, 4]).slice_assign([2..5, 0..4], K::make(p, [3, 4])),
        K::make(p, [7, 4]).slice_assign([0..7, 0..4], K::make(p, [7, 4])),
        K::make(p, [7, 4]).slice_assign(s![..;2, 1..2], K::make(p, [4, 1])),
    ]
}
