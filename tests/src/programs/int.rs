//! Elementwise int and bool operations, comparisons, masks, conversions.

use super::compare::{COMPARE, Compare, float_elem, floats, int_elem, ints};
use super::float::OFF;
use super::value::{kinded, ranked};
use super::{Builder, Id, Info, Kind, Op, Value};
use burn::tensor::{DType, Int as BurnInt, Tensor, backend::Backend};

/// An operation on or to ints or bools.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Int {
    /// The remainder by this number.
    Small(i64),
    Neg,
    Abs,
    Sign,
    Not,
    /// To a narrower type and back.
    Narrow,
    Scalar(IntScalar, i64),
    Binary(IntBinary),
    FloatCompare(Compare),
    FloatCompareElem(Compare, f64),
    IntCompare(Compare),
    IntCompareElem(Compare, i64),
    BoolEqual,
    BoolNotEqual,
    BoolEqualElem(bool),
    IsNan,
    IsInf,
    IsFinite,
    IsClose,
    BoolNot,
    BoolAnd,
    BoolOr,
    BoolXor,
    FloatToInt,
    FloatToBool,
    IntToFloat,
    IntToBool,
    BoolToInt,
    BoolToFloat,
    MaskFill(f64),
    MaskWhere,
}

/// Of ints and a number.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum IntScalar {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Power,
    And,
    Or,
    Xor,
    Left,
    Right,
    Clamp,
}

const SCALARS: &[IntScalar] = &[
    IntScalar::Add,
    IntScalar::Sub,
    IntScalar::Mul,
    IntScalar::Div,
    IntScalar::Rem,
    IntScalar::Power,
    IntScalar::And,
    IntScalar::Or,
    IntScalar::Xor,
    IntScalar::Left,
    IntScalar::Right,
    IntScalar::Clamp,
];

/// Of two int tensors.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum IntBinary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Power,
    And,
    Or,
    Xor,
    Left,
    Right,
    MaxPair,
    MinPair,
}

const BINARIES: &[IntBinary] = &[
    IntBinary::Add,
    IntBinary::Sub,
    IntBinary::Mul,
    IntBinary::Div,
    IntBinary::Rem,
    IntBinary::Power,
    IntBinary::And,
    IntBinary::Or,
    IntBinary::Xor,
    IntBinary::Left,
    IntBinary::Right,
    IntBinary::MaxPair,
    IntBinary::MinPair,
];

/// A bool tensor that a float one makes.
pub(super) fn condition(b: &mut Builder, id: Id) -> Id {
    let op = Int::FloatCompareElem(b.rng.pick(COMPARE), b.rng.pick(&[0.0, 0.3, -0.2]));
    let shape = b.info(id).shape;
    b.push(Op::Int(op), &[id], vec![Info::bool(shape)])
}

pub(super) fn generate(b: &mut Builder) {
    match b.rng.below(16) {
        0..3 => mask(b),
        3..5 => {
            let op = b.rng.pick(COMPARE);
            binary(b, Kind::Float, Int::FloatCompare(op));
        }
        5 => {
            let id = b.any(Kind::Float);
            condition(b, id);
        }
        6 => {
            let op = b.rng.pick(COMPARE);
            binary(b, Kind::Int, Int::IntCompare(op));
        }
        7..10 => {
            let op = b.rng.pick(BINARIES);
            binary(b, Kind::Int, Int::Binary(op));
        }
        10 => {
            let ops = [
                Int::BoolEqual,
                Int::BoolNotEqual,
                Int::BoolAnd,
                Int::BoolOr,
                Int::BoolXor,
            ];
            let op = ops[b.rng.below(5)].clone();
            binary(b, Kind::Bool, op);
        }
        11 => match b.rng.below(2) {
            0 => binary(b, Kind::Float, Int::IsClose),
            _ => unary(b),
        },
        _ => unary(b),
    }
}

fn unary(b: &mut Builder) {
    let ops = [
        Int::Neg,
        Int::Abs,
        Int::Sign,
        Int::Not,
        Int::Narrow,
        Int::IntToFloat,
        Int::IntToFloat,
        Int::IntToBool,
        Int::BoolNot,
        Int::BoolEqualElem(true),
        Int::BoolToInt,
        Int::BoolToInt,
        Int::BoolToFloat,
        Int::IsNan,
        Int::IsInf,
        Int::IsFinite,
        Int::FloatToInt,
        Int::FloatToInt,
        Int::FloatToBool,
    ];
    let op = match b.rng.below(25) {
        0..4 => Int::Scalar(b.rng.pick(SCALARS), b.rng.pick(&[1, 2, 3])),
        4..6 => Int::IntCompareElem(b.rng.pick(COMPARE), b.rng.pick(&[0, 1, 2, -1])),
        index => ops[index - 6].clone(),
    };
    let kind = match &op {
        Int::BoolNot | Int::BoolEqualElem(_) | Int::BoolToInt | Int::BoolToFloat => Kind::Bool,
        Int::IsNan | Int::IsInf | Int::IsFinite | Int::FloatToInt | Int::FloatToBool => Kind::Float,
        _ => Kind::Int,
    };
    let id = b.any(kind);
    let Info { shape, max, .. } = b.info(id);
    let out = match &op {
        Int::IntToFloat | Int::BoolToFloat => Info::float(shape, max),
        Int::FloatToInt | Int::BoolToInt => Info::int(shape, max * 3.0 + 1.0),
        Int::Scalar(IntScalar::Power, value) => Info::int(shape, max.powi(*value as i32 + 2) + 1.0),
        Int::Scalar(..) => Info::int(shape, max * 8.0 + 8.0),
        Int::Neg | Int::Abs | Int::Sign | Int::Not | Int::Narrow => Info::int(shape, max + 1.0),
        _ => Info::bool(shape),
    };
    b.push(Op::Int(op), &[id], vec![out]);
}

fn binary(b: &mut Builder, kind: Kind, op: Int) {
    let id = b.any(kind);
    let shape = b.info(id).shape;
    let other = match b.rng.below(10) {
        // The same twice: rounding must not tell a float from itself.
        0 if kind != Kind::Float => id,
        _ => b.companion(kind, &shape),
    };
    let (left, right) = match b.rng.below(2) {
        0 => (id, other),
        _ => (other, id),
    };
    let (l, r) = (b.info(left).max, b.info(right).max);
    let out = match &op {
        Int::Binary(IntBinary::Mul) => Info::int(shape, l * r),
        Int::Binary(IntBinary::Power) => Info::int(shape, l * l + 1.0),
        Int::Binary(IntBinary::Left) => Info::int(shape, l * 8.0 + 1.0),
        Int::Binary(_) => Info::int(shape, 2.0 * (l + r) + 2.0),
        _ => Info::bool(shape),
    };
    b.push(Op::Int(op), &[left, right], vec![out]);
}

fn mask(b: &mut Builder) {
    let kind = b
        .rng
        .pick(&[Kind::Float, Kind::Float, Kind::Float, Kind::Int, Kind::Bool]);
    let id = b.any(kind);
    let Info { shape, max, .. } = b.info(id);
    let mask = b.companion(Kind::Bool, &shape);
    if b.rng.chance(40) {
        let op = Op::Int(Int::MaskFill(b.rng.pick(&[0.0, 1.0, -2.0])));
        b.push(op, &[id, mask], vec![Info::new(kind, shape, max + 2.0)]);
    } else {
        let value = b.companion(kind, &shape);
        let max = max.max(b.info(value).max);
        b.push(
            Op::Int(Int::MaskWhere),
            &[id, mask, value],
            vec![Info::new(kind, shape, max)],
        );
    }
}

pub(super) fn run<B: Backend>(op: &Int, args: Vec<Value<B>>) -> Value<B> {
    ranked!(args[0].rank(), D => apply::<B, D>(op, args))
}

fn apply<B: Backend, const D: usize>(op: &Int, args: Vec<Value<B>>) -> Value<B> {
    let kind = args[0].kind();
    let mut args = args.into_iter();
    let mut next = || args.next().expect("an operand");
    let first = next();
    match op {
        Int::Small(value) => first.int::<D>().remainder_scalar(*value).into(),
        Int::Neg => first.int::<D>().neg().into(),
        Int::Abs => first.int::<D>().abs().into(),
        Int::Sign => first.int::<D>().sign().into(),
        Int::Not => first.int::<D>().bitwise_not().into(),
        Int::Narrow => first.int::<D>().cast(DType::I32).cast(DType::I64).into(),
        Int::Scalar(op, value) => with_scalar(*op, first.int::<D>(), *value).into(),
        Int::Binary(op) => two(*op, first.int::<D>(), next().int()).into(),
        Int::FloatCompare(op) => floats(*op, first.float::<D>(), next().float()).into(),
        Int::FloatCompareElem(op, value) => float_elem(*op, first.float::<D>(), *value).into(),
        Int::IntCompare(op) => ints(*op, first.int::<D>(), next().int()).into(),
        Int::IntCompareElem(op, value) => int_elem(*op, first.int::<D>(), *value).into(),
        Int::BoolEqual => first.bool::<D>().equal(next().bool()).into(),
        Int::BoolNotEqual => first.bool::<D>().not_equal(next().bool()).into(),
        Int::BoolEqualElem(value) => first.bool::<D>().equal_elem(*value).into(),
        Int::IsNan => first.float::<D>().is_nan().into(),
        Int::IsInf => first.float::<D>().is_inf().into(),
        Int::IsFinite => first.float::<D>().is_finite().into(),
        Int::IsClose => {
            let (left, right) = (first.float::<D>(), next().float().add_scalar(OFF));
            left.is_close(right, Some(0.1), Some(0.1)).into()
        }
        Int::BoolNot => first.bool::<D>().bool_not().into(),
        Int::BoolAnd => first.bool::<D>().bool_and(next().bool()).into(),
        Int::BoolOr => first.bool::<D>().bool_or(next().bool()).into(),
        Int::BoolXor => first.bool::<D>().bool_xor(next().bool()).into(),
        Int::FloatToInt => first
            .float::<D>()
            .mul_scalar(3.0)
            .add_scalar(OFF)
            .int()
            .into(),
        Int::FloatToBool => first.float::<D>().add_scalar(OFF).floor().bool().into(),
        Int::IntToFloat => first.int::<D>().float().into(),
        Int::IntToBool => first.int::<D>().bool().into(),
        Int::BoolToInt => first.bool::<D>().int().into(),
        Int::BoolToFloat => first.bool::<D>().float().into(),
        Int::MaskFill(value) => {
            let mask = next().bool::<D>();
            match kind {
                Kind::Float => first.float::<D>().mask_fill(mask, *value).into(),
                Kind::Int => first.int::<D>().mask_fill(mask, *value as i64).into(),
                Kind::Bool => first.bool::<D>().mask_fill(mask, *value > 0.0).into(),
            }
        }
        Int::MaskWhere => {
            let mask = next().bool::<D>();
            kinded!(kind, K => first.of::<D, K>().mask_where(mask, next().of::<D, K>()).into())
        }
    }
}

pub(super) type Ints<B, const D: usize> = Tensor<B, D, BurnInt>;

fn with_scalar<B: Backend, const D: usize>(op: IntScalar, t: Ints<B, D>, value: i64) -> Ints<B, D> {
    use burn::tensor::ElementConversion;
    match op {
        IntScalar::Add => t.add_scalar(value),
        IntScalar::Sub => t.sub_scalar(value),
        IntScalar::Mul => t.mul_scalar(value),
        IntScalar::Div => t.div_scalar(value + 1),
        IntScalar::Rem => t.remainder_scalar(value + 1),
        // Lower powers are products.
        IntScalar::Power => t.powi_scalar(value + 2),
        IntScalar::And => t.bitwise_and_scalar(value.elem()),
        IntScalar::Or => t.bitwise_or_scalar(value.elem()),
        IntScalar::Xor => t.bitwise_xor_scalar(value.elem()),
        IntScalar::Left => t.bitwise_left_shift_scalar(value.elem()),
        IntScalar::Right => t.bitwise_right_shift_scalar(value.elem()),
        IntScalar::Clamp => t.clamp(-value, value),
    }
}

fn two<B: Backend, const D: usize>(op: IntBinary, l: Ints<B, D>, r: Ints<B, D>) -> Ints<B, D> {
    // From 0 to 2.
    let few = |t: Ints<B, D>| t.abs().remainder_scalar(3);
    match op {
        IntBinary::Add => l.add(r),
        IntBinary::Sub => l.sub(r),
        IntBinary::Mul => l.mul(r),
        IntBinary::Div => l.div(r.abs().add_scalar(1)),
        IntBinary::Rem => l.remainder(r.abs().add_scalar(1)),
        IntBinary::Power => l.powi(few(r)),
        IntBinary::And => l.bitwise_and(r),
        IntBinary::Or => l.bitwise_or(r),
        IntBinary::Xor => l.bitwise_xor(r),
        IntBinary::Left => l.bitwise_left_shift(few(r)),
        IntBinary::Right => l.bitwise_right_shift(few(r)),
        IntBinary::MaxPair => l.max_pair(r),
        IntBinary::MinPair => l.min_pair(r),
    }
}
