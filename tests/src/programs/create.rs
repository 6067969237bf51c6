//! Tensors that are made of no others.

use super::rng::floats;
use super::{Builder, Info, Kind, Value, value::ranked};
use burn::tensor::{Bool, Int, Shape, Tensor, TensorData, backend::Backend};

/// Makes a tensor.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Create {
    /// Data from the host.
    Data {
        seed: u64,
    },
    /// A parameter, from the host.
    Param {
        seed: u64,
    },
    /// A parameter of one value.
    ParamFull(f64),
    Zeros,
    Ones,
    Full(f64),
    Arange {
        start: i64,
        step: usize,
    },
    Triangle {
        upper: bool,
        offset: i64,
    },
    Diagonal {
        offset: i64,
    },
}

use Create::*;

impl Create {
    pub(super) fn is_param(&self) -> bool {
        matches!(self, Param { .. } | ParamFull(_))
    }

    /// A bound on the values.
    pub(super) fn max(&self, kind: Kind, shape: &[usize]) -> f64 {
        match self {
            Full(value) | ParamFull(value) => value.abs(),
            Arange { start, step } => start.abs() as f64 + (shape[0] * step) as f64,
            Data { .. } if kind == Kind::Int => 9.0,
            _ => 1.0,
        }
    }
}

/// A way to make a tensor of this kind and shape.
pub(super) fn choose(b: &mut Builder, kind: Kind, shape: &[usize]) -> Create {
    let seed = b.rng.bits() % 1000;
    let value = b.rng.pick(&[0.3, -0.7, 1.3, 2.0]);
    match (kind, b.rng.below(20)) {
        (Kind::Float, 0..8) => Data { seed },
        (Kind::Float, 8..15) => Param { seed },
        (Kind::Float, 15) => ParamFull(value),
        (Kind::Float, 16) => Zeros,
        (Kind::Float, 17) => Ones,
        (Kind::Float, _) => Full(value),
        (Kind::Int, 0..3) if shape.len() == 1 => Arange {
            start: b.rng.below(5) as i64 - 2,
            step: b.rng.within(1, 3),
        },
        (Kind::Int, 0..16) => Data { seed },
        (Kind::Int, 16) => Zeros,
        (Kind::Int, 17) => Ones,
        (Kind::Int, _) => Full(3.0),
        (Kind::Bool, 0..3) if shape.len() == 2 => Triangle {
            upper: b.rng.chance(50),
            offset: b.rng.below(4) as i64 - 2,
        },
        (Kind::Bool, 3) if shape.len() == 2 => Diagonal {
            offset: b.rng.below(3) as i64 - 1,
        },
        (Kind::Bool, 18) => Zeros,
        (Kind::Bool, 19) => Ones,
        (Kind::Bool, _) => Data { seed },
    }
}

pub(super) fn generate(b: &mut Builder) {
    let kind = b
        .rng
        .pick(&[Kind::Float, Kind::Float, Kind::Int, Kind::Bool]);
    let rank = b.rng.within(1, 4);
    b.data(kind, rank);
}

pub(super) fn create<B: Backend>(op: &Create, out: &Info, device: &B::Device) -> Value<B> {
    ranked!(out.rank(), D => match out.kind {
        Kind::Float => float::<B, D>(op, out, device).into(),
        Kind::Int => int::<B, D>(op, out, device).into(),
        Kind::Bool => bool::<B, D>(op, out, device).into(),
    })
}

/// Float data from the host.
pub(super) fn upload<B: Backend, const D: usize>(
    values: Vec<f64>,
    shape: &[usize],
    device: &B::Device,
) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(values, shape.to_vec()), device)
}

fn float<B: Backend, const D: usize>(op: &Create, out: &Info, device: &B::Device) -> Tensor<B, D> {
    let shape = Shape::from(out.shape.clone());
    match op {
        Data { seed } => upload(floats(*seed, out.elements()), &out.shape, device),
        Param { seed } => upload(floats(*seed, out.elements()), &out.shape, device).require_grad(),
        ParamFull(1.0) => Tensor::ones(shape, device).require_grad(),
        ParamFull(value) => Tensor::full(shape, *value, device).require_grad(),
        Zeros => Tensor::zeros(shape, device),
        Ones => Tensor::ones(shape, device),
        Full(value) => Tensor::full(shape, *value, device),
        op => panic!("{op:?} is no float"),
    }
}

fn int<B: Backend, const D: usize>(
    op: &Create,
    out: &Info,
    device: &B::Device,
) -> Tensor<B, D, Int> {
    let shape = Shape::from(out.shape.clone());
    match op {
        Data { seed } => {
            let values = floats(*seed, out.elements());
            let values: Vec<i64> = values.iter().map(|value| (value * 9.0) as i64).collect();
            Tensor::from_data(TensorData::new(values, out.shape.clone()), device)
        }
        Arange { start, step } => {
            let end = start + (out.shape[0] * step) as i64;
            Tensor::<B, 1, Int>::arange_step(*start..end, *step, device).reshape(shape)
        }
        Zeros => Tensor::zeros(shape, device),
        Ones => Tensor::ones(shape, device),
        Full(value) => Tensor::full(shape, *value as i64, device),
        op => panic!("{op:?} is no int"),
    }
}

fn bool<B: Backend, const D: usize>(
    op: &Create,
    out: &Info,
    device: &B::Device,
) -> Tensor<B, D, Bool> {
    let shape = Shape::from(out.shape.clone());
    match op {
        Data { seed } => {
            let values = floats(*seed, out.elements());
            let values: Vec<bool> = values.iter().map(|value| *value > 0.1).collect();
            Tensor::from_data(TensorData::new(values, out.shape.clone()), device)
        }
        Triangle {
            upper: true,
            offset,
        } => Tensor::triu_mask(shape, *offset, device),
        Triangle {
            upper: false,
            offset,
        } => Tensor::tril_mask(shape, *offset, device),
        Diagonal { offset } => Tensor::diag_mask(shape, *offset, device),
        Zeros => Tensor::zeros(shape, device),
        Ones => Tensor::ones(shape, device),
        op => panic!("{op:?} is no bool"),
    }
}
