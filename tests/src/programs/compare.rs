//! Comparisons. Floats are compared with an offset, or in steps, so that rounding turns none.

use super::float::OFF;
use super::int::Ints;
use burn::tensor::{Bool, Tensor, backend::Backend};

/// A comparison.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Compare {
    Greater,
    GreaterEqual,
    Lower,
    LowerEqual,
    Equal,
    NotEqual,
}

/// All of them.
pub(super) const COMPARE: &[Compare] = &[
    Compare::Greater,
    Compare::GreaterEqual,
    Compare::Lower,
    Compare::LowerEqual,
    Compare::Equal,
    Compare::NotEqual,
];

pub(super) fn floats<B: Backend, const D: usize>(
    op: Compare,
    l: Tensor<B, D>,
    r: Tensor<B, D>,
) -> Tensor<B, D, Bool> {
    let steps = |t: Tensor<B, D>| t.add_scalar(OFF).round();
    match op {
        Compare::Greater => l.greater(r.add_scalar(OFF)),
        Compare::GreaterEqual => l.greater_equal(r.add_scalar(OFF)),
        Compare::Lower => l.lower(r.add_scalar(OFF)),
        Compare::LowerEqual => l.lower_equal(r.add_scalar(OFF)),
        Compare::Equal => steps(l).equal(steps(r)),
        Compare::NotEqual => steps(l).not_equal(steps(r)),
    }
}

pub(super) fn float_elem<B: Backend, const D: usize>(
    op: Compare,
    t: Tensor<B, D>,
    value: f64,
) -> Tensor<B, D, Bool> {
    let value = value + OFF;
    match op {
        Compare::Greater => t.greater_elem(value),
        Compare::GreaterEqual => t.greater_equal_elem(value),
        Compare::Lower => t.lower_elem(value),
        Compare::LowerEqual => t.lower_equal_elem(value),
        Compare::Equal => t.add_scalar(OFF).round().equal_elem(value.round()),
        Compare::NotEqual => t.add_scalar(OFF).round().not_equal_elem(value.round()),
    }
}

pub(super) fn ints<B: Backend, const D: usize>(
    op: Compare,
    l: Ints<B, D>,
    r: Ints<B, D>,
) -> Tensor<B, D, Bool> {
    match op {
        Compare::Greater => l.greater(r),
        Compare::GreaterEqual => l.greater_equal(r),
        Compare::Lower => l.lower(r),
        Compare::LowerEqual => l.lower_equal(r),
        Compare::Equal => l.equal(r),
        Compare::NotEqual => l.not_equal(r),
    }
}

pub(super) fn int_elem<B: Backend, const D: usize>(
    op: Compare,
    t: Ints<B, D>,
    value: i64,
) -> Tensor<B, D, Bool> {
    match op {
        Compare::Greater => t.greater_elem(value),
        Compare::GreaterEqual => t.greater_equal_elem(value),
        Compare::Lower => t.lower_elem(value),
        Compare::LowerEqual => t.lower_equal_elem(value),
        Compare::Equal => t.equal_elem(value),
        Compare::NotEqual => t.not_equal_elem(value),
    }
}
