//! Elementwise float operations.

use super::reduce::{Dim, Reduce};
use super::{Builder, Info, Kind, Op, Value, value::ranked};
use burn::tensor::{DType, Tensor, activation, backend::Backend};

/// Moves structural values, 0 above all, off kinks and away from where a comparison turns.
pub(super) const OFF: f64 = 0.017_1;

/// An elementwise float operation. What is undefined or steep somewhere is applied to `t * t + 0.5`
/// or to `tanh(t)`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Float {
    Unary(Unary),
    Scalar(WithScalar, f64),
    Binary(Binary),
    /// `tanh(t * factor)`
    Squash(f64),
    /// To a narrower type and back.
    Narrow,
    Detach,
}

/// Of one tensor.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Abs,
    Square,
    Exp,
    Log,
    Log1p,
    Sqrt,
    Recip,
    Erf,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    Asin,
    Acos,
    Atan,
    Asinh,
    Acosh,
    Atanh,
    Sign,
    Round,
    Floor,
    Ceil,
    Trunc,
    Relu,
    LeakyRelu,
    Gelu,
    GeluApproximate,
    Sigmoid,
    LogSigmoid,
    Silu,
    Mish,
    Softplus,
    HardSwish,
    HardSigmoid,
    Elu,
    Celu,
    Selu,
    Softsign,
    HardShrink,
    SoftShrink,
    Degrees,
}

use Unary::*;

const UNARY: &[Unary] = &[
    Neg,
    Abs,
    Square,
    Exp,
    Log,
    Log1p,
    Sqrt,
    Recip,
    Erf,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    Asin,
    Acos,
    Atan,
    Asinh,
    Acosh,
    Atanh,
    Sign,
    Round,
    Floor,
    Ceil,
    Trunc,
    Relu,
    LeakyRelu,
    Gelu,
    GeluApproximate,
    Sigmoid,
    LogSigmoid,
    Silu,
    Mish,
    Softplus,
    HardSwish,
    HardSigmoid,
    Elu,
    Celu,
    Selu,
    Softsign,
    HardShrink,
    SoftShrink,
    Degrees,
];

/// Of a tensor and a number.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum WithScalar {
    Add,
    Sub,
    ReverseSub,
    Mul,
    Div,
    Rem,
    Powf,
    Powi,
    Clamp,
    ClampMin,
    ClampMax,
}

const WITH_SCALAR: &[WithScalar] = &[
    WithScalar::Add,
    WithScalar::Sub,
    WithScalar::ReverseSub,
    WithScalar::Mul,
    WithScalar::Div,
    WithScalar::Rem,
    WithScalar::Powf,
    WithScalar::Powi,
    WithScalar::Clamp,
    WithScalar::ClampMin,
    WithScalar::ClampMax,
];

/// Of two tensors.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Powf,
    Powi,
    Atan2,
    MaxPair,
    MinPair,
}

const BINARY: &[Binary] = &[
    Binary::Add,
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Mul,
    Binary::Div,
    Binary::Rem,
    Binary::Powf,
    Binary::Powi,
    Binary::Atan2,
    Binary::MaxPair,
    Binary::MinPair,
];

pub(super) fn generate(b: &mut Builder) {
    let id = b.any(Kind::Float);
    let info = b.info(id);
    let (op, max) = match b.rng.below(20) {
        0..9 => {
            let op = b.rng.pick(UNARY);
            let max = match op {
                Square => info.max * info.max,
                Exp | Sinh | Cosh | Tan | Asin | Acos | Atanh | Acosh => 3.0,
                Log | Log1p | Sqrt | Recip | Softplus | Degrees => info.max + 3.0,
                Selu => info.max * 1.1 + 2.0,
                _ => info.max + 1.0,
            };
            (Float::Unary(op), max)
        }
        9..12 => {
            let op = b.rng.pick(WITH_SCALAR);
            let value = match op {
                WithScalar::Powi => b.rng.pick(&[2.0, 3.0]),
                _ => b.rng.pick(&[0.7, 1.3, 2.0, 0.4]),
            };
            let max = match op {
                WithScalar::Powi => info.max.powf(value).max(1.0),
                WithScalar::Powf => info.max * info.max * 2.0 + 1.0,
                _ => info.max * 2.5 + 2.0,
            };
            (Float::Scalar(op, value), max)
        }
        12 => (Float::Narrow, info.max),
        13 if b.rng.chance(30) => (Float::Detach, info.max),
        _ => return binary(b, id),
    };
    b.push(Op::Float(op), &[id], vec![Info::float(info.shape, max)]);
}

fn binary(b: &mut Builder, id: usize) {
    let shape = b.info(id).shape;
    let other = match b.rng.below(10) {
        0 => id,
        // A summary of itself.
        1 => {
            let dim = b.rng.below(shape.len());
            let op = b.rng.pick(&[Dim::Mean, Dim::Max, Dim::Softmax]);
            let mut out = b.info(id);
            out.max += 1.0;
            if op != Dim::Softmax {
                out.shape[dim] = 1;
            }
            b.push(Op::Reduce(Reduce::Dim(op, dim)), &[id], vec![out])
        }
        _ => b.companion(Kind::Float, &shape),
    };
    let (left, right) = match b.rng.below(2) {
        0 => (id, other),
        _ => (other, id),
    };
    let op = b.rng.pick(BINARY);
    let (l, r) = (b.info(left).max, b.info(right).max);
    let max = match op {
        Binary::Mul => l * r,
        Binary::Div => l * 2.0,
        Binary::Powf => l * l + 2.0,
        Binary::Powi => l * l * l + 2.0,
        _ => l + r + 1.0,
    };
    let op = Op::Float(Float::Binary(op));
    b.push(op, &[left, right], vec![Info::float(shape, max)]);
}

pub(super) fn run<B: Backend>(op: &Float, mut args: Vec<Value<B>>) -> Value<B> {
    let last = args.pop().expect("an operand");
    ranked!(last.rank(), D => {
        let last = last.float::<D>();
        match op {
            Float::Unary(op) => unary(*op, last),
            Float::Scalar(op, value) => with_scalar(*op, last, *value),
            Float::Binary(op) => two(*op, args.pop().expect("two operands").float(), last),
            Float::Squash(factor) => last.mul_scalar(*factor).tanh(),
            Float::Narrow => last.cast(DType::F32).cast(DType::F64),
            Float::Detach => last.detach(),
        }
        .into()
    })
}

/// `t * t + 0.5`
pub(super) fn positive<B: Backend, const D: usize>(t: Tensor<B, D>) -> Tensor<B, D> {
    t.clone().mul(t).add_scalar(0.5)
}

fn unary<B: Backend, const D: usize>(op: Unary, t: Tensor<B, D>) -> Tensor<B, D> {
    match op {
        Neg => t.neg(),
        Abs => t.add_scalar(OFF).abs(),
        Square => t.square(),
        Exp => t.tanh().exp(),
        Log => positive(t).log(),
        Log1p => positive(t).log1p(),
        Sqrt => positive(t).sqrt(),
        Recip => positive(t).recip(),
        Erf => t.erf(),
        Sin => t.sin(),
        Cos => t.cos(),
        Tan => t.tanh().tan(),
        Sinh => t.tanh().sinh(),
        Cosh => t.tanh().cosh(),
        Tanh => t.tanh(),
        Asin => t.tanh().mul_scalar(0.9).asin(),
        Acos => t.tanh().mul_scalar(0.9).acos(),
        Atan => t.atan(),
        Asinh => t.asinh(),
        Acosh => positive(t).add_scalar(1.0).acosh(),
        Atanh => t.tanh().mul_scalar(0.9).atanh(),
        Sign => t.add_scalar(OFF).sign(),
        Round => t.mul_scalar(3.0).add_scalar(OFF).round().div_scalar(3.0),
        Floor => t.mul_scalar(3.0).add_scalar(OFF).floor().div_scalar(3.0),
        Ceil => t.mul_scalar(3.0).add_scalar(OFF).ceil().div_scalar(3.0),
        Trunc => t.mul_scalar(3.0).add_scalar(OFF).trunc().div_scalar(3.0),
        Relu => activation::relu(t.add_scalar(OFF)),
        LeakyRelu => activation::leaky_relu(t.add_scalar(OFF), 0.1),
        Gelu => activation::gelu(t),
        GeluApproximate => activation::gelu_approximate(t),
        Sigmoid => activation::sigmoid(t),
        LogSigmoid => activation::log_sigmoid(t),
        Silu => activation::silu(t),
        Mish => activation::mish(t),
        Softplus => activation::softplus(t, 1.0),
        HardSwish => activation::hard_swish(t.add_scalar(OFF)),
        HardSigmoid => activation::hard_sigmoid(t.add_scalar(OFF), 0.2, 0.5),
        Elu => activation::elu(t.add_scalar(OFF), 0.7),
        Celu => activation::celu(t.add_scalar(OFF), 0.7),
        Selu => activation::selu(t.add_scalar(OFF)),
        Softsign => activation::softsign(t.add_scalar(OFF)),
        HardShrink => activation::hard_shrink(t.add_scalar(OFF), 0.3),
        SoftShrink => activation::soft_shrink(t.add_scalar(OFF), 0.3),
        Degrees => t.rad2deg().deg2rad(),
    }
}

fn with_scalar<B: Backend, const D: usize>(
    op: WithScalar,
    t: Tensor<B, D>,
    value: f64,
) -> Tensor<B, D> {
    match op {
        WithScalar::Add => t.add_scalar(value),
        WithScalar::Sub => t.sub_scalar(value),
        WithScalar::ReverseSub => t.neg().add_scalar(value),
        WithScalar::Mul => t.mul_scalar(value),
        WithScalar::Div => t.div_scalar(value),
        WithScalar::Rem => t.add_scalar(OFF).remainder_scalar(value),
        WithScalar::Powf => positive(t).powf_scalar(value),
        WithScalar::Powi => t.powi_scalar(value as i32),
        WithScalar::Clamp => t.add_scalar(OFF).clamp(-value, value),
        WithScalar::ClampMin => t.add_scalar(OFF).clamp_min(-value),
        WithScalar::ClampMax => t.add_scalar(OFF).clamp_max(value),
    }
}

fn two<B: Backend, const D: usize>(
    op: Binary,
    left: Tensor<B, D>,
    right: Tensor<B, D>,
) -> Tensor<B, D> {
    match op {
        Binary::Add => left.add(right),
        Binary::Sub => left.sub(right),
        Binary::Mul => left.mul(right),
        Binary::Div => left.div(positive(right)),
        Binary::Rem => left.add_scalar(OFF).remainder(positive(right)),
        Binary::Powf => positive(left).powf(right.tanh()),
        Binary::Powi => {
            let power = right.tanh().add_scalar(1.0 + OFF).mul_scalar(1.5).floor();
            positive(left).powi(power)
        }
        Binary::Atan2 => left.atan2(positive(right)),
        Binary::MaxPair => left.max_pair(right.add_scalar(OFF)),
        Binary::MinPair => left.min_pair(right.add_scalar(OFF)),
    }
}
