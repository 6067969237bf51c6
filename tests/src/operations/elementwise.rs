//! Cases of `partition/rules/elementwise.rs`: unary, binary and with scalars, comparisons, masks,
//! conversions.

use super::case::{Case, Kind, cases, for_kinds, out};
use super::devices::{primitive, read};
use super::place::Place;
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, DType, Float, FloatDType, Int, IntDType, TensorData};

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    for_kinds!(list:
        "equal" equal,
        "mask where" mask_where,
    );
    list.extend(unary());
    list.extend(binary());
    list.extend(scalars());
    list.extend(ints());
    list.extend(bools());
    list.extend(conversions());
    list
}

/// The shape of most inputs: a batch of seven, which no mesh here divides evenly.
const DIMS: [usize; 3] = [7, 3, 4];

fn equal<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let row = K::make(p, [1, 3, 1]);
    out![
        K::make(p, DIMS).equal(K::make(p, DIMS)),
        K::make(p, DIMS).equal(row.clone()),
        row.not_equal(K::make(p, DIMS)),
    ]
}

fn mask_where<B: Backend, P: Place<B>, K: Kind<B>>(p: &P) -> Vec<TensorData> {
    let (x, value) = (K::make(p, DIMS), K::make(p, DIMS));
    out![
        x.clone().mask_where(p.bool(DIMS), value.clone()),
        x.mask_where(p.bool([1, 3, 1]), value),
    ]
}

fn unary<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "exp" => out![p.float(DIMS).exp()],
        "log" => out![p.float_in(0.25..=4.0, DIMS).log()],
        "log1p" => out![p.float_in(-0.5..=4.0, DIMS).log1p()],
        "erf" => out![p.float(DIMS).erf()],
        "sqrt" => out![p.float_in(0.0..=4.0, DIMS).sqrt()],
        "recip" => out![p.float_in(0.25..=4.0, DIMS).recip()],
        "float abs" => out![p.float(DIMS).abs()],
        "neg, sign, square" => out![p.float(DIMS).neg(), p.float(DIMS).sign(), p.float(DIMS).square()],
        "cos, sin, tan" => out![p.float(DIMS).cos(), p.float(DIMS).sin(), p.float_in(-1.0..=1.0, DIMS).tan()],
        "cosh, sinh, tanh" => out![p.float(DIMS).cosh(), p.float(DIMS).sinh(), p.float(DIMS).tanh()],
        "acos, asin, atan" => out![
            p.float_in(-1.0..=1.0, DIMS).acos(),
            p.float_in(-1.0..=1.0, DIMS).asin(),
            p.float(DIMS).atan(),
        ],
        "acosh, asinh, atanh" => out![
            p.float_in(1.0..=4.0, DIMS).acosh(),
            p.float(DIMS).asinh(),
            p.float_in(-0.875..=0.875, DIMS).atanh(),
        ],
        "round, floor, ceil, trunc" => out![
            p.float(DIMS).round(),
            p.float(DIMS).floor(),
            p.float(DIMS).ceil(),
            p.float(DIMS).trunc(),
        ],
        "float clamp" => out![
            p.float(DIMS).clamp(-1.0, 0.5),
            p.float(DIMS).clamp_min(-1.0),
            p.float(DIMS).clamp_max(0.5),
        ],
        "is nan, is inf" => {
            let special = [f64::NAN, 1.0, f64::INFINITY, -1.0, f64::NEG_INFINITY, 0.0, 2.0];
            out![
                p.floats(&special, [7]).is_nan(),
                p.floats(&special, [7]).is_inf(),
                p.floats(&special, [7]).is_finite(),
                p.floats(&special, [7]).contains_nan(),
            ]
        },
    );
    list
}

fn binary<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "float add" => out![
            p.float(DIMS) + p.float(DIMS),
            p.float(DIMS) + p.float([1, 3, 1]),
            p.float([7, 1, 1]) + p.float([1, 3, 4]),
        ],
        "float sub" => out![p.float(DIMS) - p.float(DIMS), p.float([7, 1, 4]) - p.float([1, 3, 4])],
        "float mul" => out![
            p.float(DIMS) * p.float(DIMS),
            p.float(DIMS) * p.float([1, 3, 1]),
            p.float([1, 1, 4]) * p.float(DIMS),
        ],
        "float div" => out![
            p.float(DIMS) / p.float_in(0.5..=2.0, DIMS),
            p.float(DIMS) / p.float_in(0.5..=2.0, [1, 3, 1]),
        ],
        "a tensor with itself" => {
            let x = p.float(DIMS);
            let y = p.float(DIMS);
            out![x.clone() + x.clone(), x.clone() * x, y.clone() - y]
        },
        "float remainder" => out![p.float(DIMS).remainder(p.float_in(0.5..=2.0, DIMS))],
        "powf" => out![
            p.float_in(0.25..=2.0, DIMS).powf(p.float(DIMS)),
            p.float_in(0.25..=2.0, DIMS).powf(p.float([7, 1, 1])),
        ],
        "float powi" => {
            let exponents = p.int(0..=3, DIMS).into_primitive();
            let powers = B::float_powi(primitive(p.float(DIMS)), exponents);
            vec![read::<B, 3>(powers), p.float_in(0.25..=2.0, DIMS).powi(p.float(DIMS)).into_data()]
        },
        "atan2" => out![p.float(DIMS).atan2(p.float(DIMS)), p.float(DIMS).atan2(p.float([1, 3, 4]))],
        "float greater" => out![p.float(DIMS).greater(p.float(DIMS)), p.float(DIMS).greater(p.float([1, 3, 1]))],
        "float greater equal" => out![p.float(DIMS).greater_equal(p.float(DIMS))],
        "float lower" => out![p.float(DIMS).lower(p.float(DIMS))],
        "float lower equal" => out![p.float(DIMS).lower_equal(p.float(DIMS))],
        "max pair, min pair" => out![p.float(DIMS).max_pair(p.float(DIMS)), p.float(DIMS).min_pair(p.float(DIMS))],
    );
    list
}

fn scalars<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "float add scalar" => out![p.float(DIMS) + 1.5],
        "float sub scalar" => out![p.float(DIMS) - 1.5],
        "float mul scalar" => out![p.float(DIMS) * 1.5],
        "float div scalar" => out![p.float(DIMS) / 1.5],
        "float remainder scalar" => out![p.float(DIMS).remainder_scalar(0.75)],
        "powf scalar" => out![p.float_in(0.25..=2.0, DIMS).powf_scalar(1.5), p.float(DIMS).powf_scalar(3.0)],
        "float powi scalar" => out![p.float(DIMS).powi_scalar(3), p.float(DIMS).powi_scalar(5)],
        "float comparisons with a scalar" => out![
            p.float(DIMS).greater_elem(0.5),
            p.float(DIMS).greater_equal_elem(0.5),
            p.float(DIMS).lower_elem(0.5),
            p.float(DIMS).lower_equal_elem(0.5),
            p.float(DIMS).equal_elem(0.5),
            p.float(DIMS).not_equal_elem(0.5),
        ],
        "mask fill" => out![
            p.float(DIMS).mask_fill(p.bool(DIMS), 9.0),
            p.float(DIMS).mask_fill(p.bool([1, 3, 1]), 9.0),
            p.int(-9..=9, DIMS).mask_fill(p.bool(DIMS), 99),
            p.bool(DIMS).mask_fill(p.bool(DIMS), true),
        ],
    );
    list
}

fn ints<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "int add, sub" => out![
            p.int(-9..=9, DIMS) + p.int(-9..=9, DIMS),
            p.int(-9..=9, DIMS) - p.int(-9..=9, [1, 3, 1]),
        ],
        "int mul, div" => out![
            p.int(-9..=9, DIMS) * p.int(-9..=9, DIMS),
            p.int(-99..=99, DIMS) / p.int(1..=9, [7, 1, 1]),
        ],
        "int remainder, abs" => out![
            p.int(-99..=99, DIMS).remainder(p.int(1..=9, DIMS)),
            p.int(-9..=9, DIMS).abs(),
            p.int(-9..=9, DIMS).neg(),
            p.int(-9..=9, DIMS).sign(),
        ],
        "int powi" => out![p.int(-3..=3, DIMS).powi(p.int(0..=3, DIMS)), p.int(-3..=3, DIMS).powi_scalar(3)],
        "int powi scalar of five" => out![p.int(-3..=3, DIMS).powi_scalar(5)],
        "int with a scalar" => out![
            p.int(-9..=9, DIMS) + 5,
            p.int(-9..=9, DIMS) - 5,
            p.int(-9..=9, DIMS) * 5,
            p.int(-99..=99, DIMS) / 5,
            p.int(-99..=99, DIMS).remainder_scalar(5),
        ],
        "int comparisons" => out![
            p.int(0..=3, DIMS).greater(p.int(0..=3, DIMS)),
            p.int(0..=3, DIMS).greater_equal(p.int(0..=3, DIMS)),
            p.int(0..=3, DIMS).lower(p.int(0..=3, [1, 3, 1])),
            p.int(0..=3, DIMS).lower_equal(p.int(0..=3, DIMS)),
        ],
        "int comparisons with a scalar" => out![
            p.int(0..=3, DIMS).greater_elem(1),
            p.int(0..=3, DIMS).greater_equal_elem(1),
            p.int(0..=3, DIMS).lower_elem(1),
            p.int(0..=3, DIMS).lower_equal_elem(1),
            p.int(0..=3, DIMS).equal_elem(1),
            p.int(0..=3, DIMS).not_equal_elem(1),
        ],
        "int clamp" => out![p.int(-9..=9, DIMS).clamp(-4, 5), p.int(-9..=9, DIMS).clamp_min(0)],
        "bitwise" => out![
            p.int(0..=63, DIMS).bitwise_and(p.int(0..=63, DIMS)),
            p.int(0..=63, DIMS).bitwise_or(p.int(0..=63, [1, 3, 1])),
            p.int(0..=63, DIMS).bitwise_xor(p.int(0..=63, DIMS)),
            p.int(0..=63, DIMS).bitwise_not(),
        ],
        "bitwise shifts" => out![
            p.int(0..=63, DIMS).bitwise_left_shift(p.int(0..=5, DIMS)),
            p.int(0..=63, DIMS).bitwise_right_shift(p.int(0..=5, DIMS)),
        ],
        "bitwise with a scalar" => {
            use burn::tensor::ElementConversion;
            out![
                p.int(0..=63, DIMS).bitwise_and_scalar(21.elem()),
                p.int(0..=63, DIMS).bitwise_or_scalar(21.elem()),
                p.int(0..=63, DIMS).bitwise_xor_scalar(21.elem()),
                p.int(0..=63, DIMS).bitwise_left_shift_scalar(2.elem()),
                p.int(0..=63, DIMS).bitwise_right_shift_scalar(2.elem()),
            ]
        },
    );
    list
}

fn bools<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "bool not" => out![p.bool(DIMS).bool_not()],
        "bool and" => out![p.bool(DIMS).bool_and(p.bool(DIMS)), p.bool(DIMS).bool_and(p.bool(DIMS).bool_not())],
        "bool or" => out![p.bool(DIMS).bool_or(p.bool(DIMS))],
        "bool xor" => out![p.bool(DIMS).bool_xor(p.bool(DIMS))],
        "bool with a scalar" => out![p.bool(DIMS).equal_elem(true), p.bool(DIMS).not_equal_elem(true)],
    );
    list
}

fn conversions<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "float into int" => out![p.float(DIMS).int(), p.float(DIMS).cast(IntDType::I32)],
        "float cast" => out![
            p.float(DIMS).cast(FloatDType::F64),
            p.float(DIMS).cast(FloatDType::F32),
            p.float(DIMS).cast(FloatDType::F16),
            p.float(DIMS).cast(DType::BF16),
        ],
        "int into float" => out![p.int(-9..=9, DIMS).float(), p.int(-9..=9, DIMS).cast(FloatDType::F64)],
        "int cast" => out![
            p.int(-9..=9, DIMS).cast(IntDType::I32),
            p.int(-9..=9, DIMS).cast(IntDType::I64),
            p.int(0..=9, DIMS).cast(IntDType::U8),
        ],
        "int into bool" => out![p.int(0..=2, DIMS).bool()],
        "bool into float" => out![p.bool(DIMS).float(), p.bool(DIMS).cast(FloatDType::F64)],
        "bool into int" => out![p.bool(DIMS).int(), p.bool(DIMS).cast(IntDType::I32)],
    );
    list
}
