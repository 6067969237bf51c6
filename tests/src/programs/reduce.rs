//! Reductions, sorting, cumulative operations, softmax.

use super::rng::ramp;
use super::value::ranked;
use super::{Builder, Id, Info, Kind, Op, Value, create::upload};
use burn::tensor::{Bool, Int, Tensor, activation, backend::Backend};

/// Reduces or runs along a dimension. Floats that are ordered are made different from each other
/// before.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Reduce {
    Full(Full),
    Dim(Dim, usize),
    /// Several dimensions at once.
    SumDims(Vec<usize>),
    MeanDims(Vec<usize>),
    /// Values and positions.
    Pair(Pair, usize),
    /// Positions.
    Arg(Arg, usize),
    TopK {
        k: usize,
        dim: usize,
    },
    TopKPair {
        k: usize,
        dim: usize,
    },
    Any,
    All,
    AnyDim(usize),
    AllDim(usize),
}

/// To one element.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Full {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
    MaxAbs,
}

const FULL: &[Full] = &[
    Full::Sum,
    Full::Sum,
    Full::Mean,
    Full::Mean,
    Full::Prod,
    Full::Max,
    Full::Min,
    Full::MaxAbs,
];

/// Along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Dim {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
    MaxAbs,
    CumSum,
    CumProd,
    CumMin,
    CumMax,
    Sort,
    SortDescending,
    // Of floats only.
    Var,
    VarBias,
    Median,
    Softmax,
    LogSoftmax,
    Softmin,
    QuietSoftmax,
}

const DIM: &[Dim] = &[
    Dim::Sum,
    Dim::Mean,
    Dim::Prod,
    Dim::Max,
    Dim::Min,
    Dim::MaxAbs,
    Dim::CumSum,
    Dim::CumProd,
    Dim::CumMin,
    Dim::CumMax,
    Dim::Sort,
    Dim::SortDescending,
    Dim::Sum,
    Dim::Mean,
    Dim::Var,
    Dim::VarBias,
    Dim::Median,
    Dim::Softmax,
    Dim::LogSoftmax,
    Dim::Softmin,
    Dim::QuietSoftmax,
];

/// How many of [`DIM`] are for ints as well.
const INT_DIM: usize = 14;

/// Two results.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Pair {
    Max,
    Min,
    Sort,
    SortDescending,
}

/// Positions.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Arg {
    Max,
    Min,
    Sort,
    SortDescending,
}

pub(super) fn generate(b: &mut Builder) {
    if b.rng.chance(8) {
        return logic(b);
    }
    let kind = b
        .rng
        .pick(&[Kind::Float, Kind::Float, Kind::Float, Kind::Int]);
    let id = b.any(kind);
    let info = b.info(id);
    let dim = b.rng.below(info.rank());
    match b.rng.below(20) {
        0..5 => full(b, id),
        5..14 => along(b, id, dim),
        14 => {
            let dims: Vec<usize> = (0..info.rank())
                .filter(|d| *d == dim || b.rng.chance(50))
                .collect();
            let mut out = info.clone();
            dims.iter().for_each(|dim| out.shape[*dim] = 1);
            let count = info.elements() / out.elements();
            if kind == Kind::Float && b.rng.chance(50) {
                b.push(Op::Reduce(Reduce::MeanDims(dims)), &[id], vec![out]);
            } else {
                out.max *= count as f64;
                b.push(Op::Reduce(Reduce::SumDims(dims)), &[id], vec![out]);
            }
        }
        15 | 16 => {
            let op = b
                .rng
                .pick(&[Pair::Max, Pair::Min, Pair::Sort, Pair::SortDescending]);
            let mut shape = info.shape.clone();
            let len = shape[dim] as f64;
            if matches!(op, Pair::Max | Pair::Min) {
                shape[dim] = 1;
            }
            let outs = vec![
                Info::new(kind, shape.clone(), info.max + 1.0),
                Info::int(shape, len),
            ];
            b.push(Op::Reduce(Reduce::Pair(op, dim)), &[id], outs);
        }
        17 => {
            let op = b
                .rng
                .pick(&[Arg::Max, Arg::Min, Arg::Sort, Arg::SortDescending]);
            let mut shape = info.shape.clone();
            let len = shape[dim] as f64;
            if matches!(op, Arg::Max | Arg::Min) {
                shape[dim] = 1;
            }
            b.push(
                Op::Reduce(Reduce::Arg(op, dim)),
                &[id],
                vec![Info::int(shape, len)],
            );
        }
        _ => top(b, id, dim),
    }
}

fn logic(b: &mut Builder) {
    let id = b.any(Kind::Bool);
    let mut shape = b.info(id).shape;
    let dim = b.rng.below(shape.len());
    let op = match b.rng.below(4) {
        0 => Reduce::AnyDim(dim),
        1 => Reduce::AllDim(dim),
        2 => Reduce::Any,
        _ => Reduce::All,
    };
    if matches!(op, Reduce::Any | Reduce::All) {
        shape = vec![1];
    } else {
        shape[dim] = 1;
    }
    b.push(Op::Reduce(op), &[id], vec![Info::bool(shape)]);
}

fn full(b: &mut Builder, id: Id) {
    let info = b.info(id);
    let op = b.rng.pick(FULL);
    let max = match op {
        Full::Sum => info.max * info.elements() as f64,
        // The factors are small; see `factors`.
        Full::Prod => 100.0,
        _ => info.max + 1.0,
    };
    b.push(
        Op::Reduce(Reduce::Full(op)),
        &[id],
        vec![Info::new(info.kind, [1], max)],
    );
}

fn along(b: &mut Builder, id: Id, dim: usize) {
    let mut info = b.info(id);
    let len = info.shape[dim] as f64;
    let op = match info.kind {
        Kind::Float => b.rng.pick(DIM),
        _ => b.rng.pick(&DIM[..INT_DIM]),
    };
    // An unbiased variance of one value is 0 by 0.
    if op == Dim::Var && info.shape[dim] == 1 {
        return;
    }
    info.max = match op {
        Dim::Sum | Dim::CumSum => info.max * len,
        Dim::Prod | Dim::CumProd => 100.0,
        Dim::Var | Dim::VarBias => info.max * info.max * 4.0,
        Dim::Softmax | Dim::Softmin | Dim::QuietSoftmax => 1.0,
        Dim::LogSoftmax => info.max * 2.0 + 5.0,
        _ => info.max + 1.0,
    };
    use Dim::*;
    if matches!(
        op,
        Sum | Mean | Prod | Max | Min | MaxAbs | Var | VarBias | Median
    ) {
        info.shape[dim] = 1;
    }
    b.push(Op::Reduce(Reduce::Dim(op, dim)), &[id], vec![info]);
}

/// Flex has no `argtopk`, the autodiff backend no `topk` of floats, and there must be more elements
/// than are asked for.
fn top(b: &mut Builder, id: Id, dim: usize) {
    let mut info = b.info(id);
    let len = info.shape[dim];
    let k = b.rng.within(1, len);
    info.shape[dim] = k;
    info.max += 1.0;
    let can = info.kind == Kind::Int || !b.autodiff;
    if can && k < len && b.rng.chance(70) {
        b.push(Op::Reduce(Reduce::TopK { k, dim }), &[id], vec![info]);
    } else {
        let positions = Info::int(info.shape.clone(), len as f64);
        b.push(
            Op::Reduce(Reduce::TopKPair { k, dim }),
            &[id],
            vec![info, positions],
        );
    }
}

pub(super) fn run<B: Backend>(op: &Reduce, value: Value<B>) -> Vec<Value<B>> {
    ranked!(value.rank(), D => match value.kind() {
        Kind::Float => float::<B, D>(op, value.float()),
        Kind::Int => int::<B, D>(op, value.int()),
        Kind::Bool => bool::<B, D>(op, value.bool()),
    })
}

/// No two elements alike, whatever they were.
pub(super) fn distinct<B: Backend, const D: usize>(t: Tensor<B, D>) -> Tensor<B, D> {
    let shape = t.dims();
    let len = shape.iter().product();
    let ramp = upload(ramp(len), &shape, &t.device());
    t.add(ramp)
}

/// From 0.8 to 1.2.
fn factors<B: Backend, const D: usize>(t: Tensor<B, D>) -> Tensor<B, D> {
    t.tanh().mul_scalar(0.2).add_scalar(1.0)
}

/// What floats and ints have alike.
macro_rules! numeric {
    ($op:expr, $t:expr, $distinct:expr, $factors:expr) => {
        match $op {
            Reduce::Full(Full::Sum) => vec![$t.sum().into()],
            Reduce::Full(Full::Mean) => vec![$t.mean().into()],
            Reduce::Full(Full::Prod) => vec![$factors($t).prod().into()],
            Reduce::Full(Full::Max) => vec![$distinct($t).max().into()],
            Reduce::Full(Full::Min) => vec![$distinct($t).min().into()],
            Reduce::Full(Full::MaxAbs) => vec![$distinct($t).max_abs().into()],
            Reduce::SumDims(dims) => vec![$t.sum_dims(dims).into()],
            Reduce::MeanDims(dims) => vec![$t.mean_dims(dims).into()],
            Reduce::Pair(op, dim) => {
                let t = $distinct($t);
                let (values, positions) = match op {
                    Pair::Max => t.max_dim_with_indices(*dim),
                    Pair::Min => t.min_dim_with_indices(*dim),
                    Pair::Sort => t.sort_with_indices(*dim),
                    Pair::SortDescending => t.sort_descending_with_indices(*dim),
                };
                vec![values.into(), positions.into()]
            }
            Reduce::Arg(op, dim) => {
                let t = $distinct($t);
                let positions = match op {
                    Arg::Max => t.argmax(*dim),
                    Arg::Min => t.argmin(*dim),
                    Arg::Sort => t.argsort(*dim),
                    Arg::SortDescending => t.argsort_descending(*dim),
                };
                vec![positions.into()]
            }
            Reduce::TopK { k, dim } => vec![$distinct($t).topk(*k, *dim).into()],
            Reduce::TopKPair { k, dim } => {
                let (values, positions) = $distinct($t).topk_with_indices(*k, *dim);
                vec![values.into(), positions.into()]
            }
            Reduce::Dim(op, dim) => {
                let dim = *dim;
                let one = match op {
                    Dim::Sum => $t.sum_dim(dim),
                    Dim::Mean => $t.mean_dim(dim),
                    Dim::Prod => $factors($t).prod_dim(dim),
                    Dim::Max => $distinct($t).max_dim(dim),
                    Dim::Min => $distinct($t).min_dim(dim),
                    Dim::MaxAbs => $distinct($t).max_abs_dim(dim),
                    Dim::CumSum => $t.cumsum(dim),
                    Dim::CumProd => $factors($t).cumprod(dim),
                    Dim::CumMin => $distinct($t).cummin(dim),
                    Dim::CumMax => $distinct($t).cummax(dim),
                    Dim::Sort => $distinct($t).sort(dim),
                    Dim::SortDescending => $distinct($t).sort_descending(dim),
                    op => panic!("{op:?} is for floats"),
                };
                vec![one.into()]
            }
            op => panic!("{op:?} is for bools"),
        }
    };
}

fn float<B: Backend, const D: usize>(op: &Reduce, t: Tensor<B, D>) -> Vec<Value<B>> {
    let one = match op {
        Reduce::Dim(Dim::Var, dim) => t.var(*dim),
        Reduce::Dim(Dim::VarBias, dim) => t.var_bias(*dim),
        Reduce::Dim(Dim::Median, dim) => distinct(t).median(*dim),
        Reduce::Dim(Dim::Softmax, dim) => activation::softmax(t, *dim),
        Reduce::Dim(Dim::LogSoftmax, dim) => activation::log_softmax(t, *dim),
        Reduce::Dim(Dim::Softmin, dim) => activation::softmin(t, *dim),
        Reduce::Dim(Dim::QuietSoftmax, dim) => activation::quiet_softmax(t, *dim),
        op => return numeric!(op, t, distinct, factors),
    };
    vec![one.into()]
}

fn int<B: Backend, const D: usize>(op: &Reduce, t: Tensor<B, D, Int>) -> Vec<Value<B>> {
    let as_is = |t: Tensor<B, D, Int>| t;
    // 1 or -1.
    let signs = |t: Tensor<B, D, Int>| t.abs().remainder_scalar(2).mul_scalar(2).sub_scalar(1);
    numeric!(op, t, as_is, signs)
}

fn bool<B: Backend, const D: usize>(op: &Reduce, t: Tensor<B, D, Bool>) -> Vec<Value<B>> {
    vec![match op {
        Reduce::Any => t.any().into(),
        Reduce::All => t.all().into(),
        Reduce::AnyDim(dim) => t.any_dim(*dim).into(),
        Reduce::AllDim(dim) => t.all_dim(*dim).into(),
        op => panic!("{op:?} is not for bools"),
    }]
}
