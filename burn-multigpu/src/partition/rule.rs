//! What a rule says of an operation.

use burn_ir::OperationIr;

/// In how many ways an operation can be done in parts.
///
/// The vocabulary is that of sharding rules by factors (as in OpenXLA's Shardy): an operation has
/// factors, dimensions of the space that it iterates over, and a factor names the dimension of each
/// operand and result that it runs along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The ways to cut it, the preferred one first.
    pub(crate) factors: Vec<Factor>,
    /// How sums that are still in parts pass through it.
    pub(crate) linear: Linear,
}

/// One way to cut an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    /// For each input, in the order of [`OperationIr::inputs`].
    pub(crate) inputs: Vec<Operand>,
    /// For each output, in the order of [`OperationIr::outputs`].
    pub(crate) outputs: Vec<Outcome>,
}

/// What each member needs of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// All of it.
    Whole,
    /// Its part along an axis.
    Along(Axis),
    /// All of it, and it is zero everywhere: adding it once for each member does no harm.
    Zero,
}

/// What the members' results are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Parts along an axis.
    Along(Axis),
    /// Tensors of the full shape whose sum is the result.
    Sum,
    /// One result for each part, along this dimension, to which the same operation is applied again
    /// (the maximum of maxima).
    Again(usize),
}

/// A dimension that is cut, counted in steps of `unit` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) dim: usize,
    pub(crate) unit: usize,
}

/// How partial sums pass: with `f` the operation and `x = a + b` in parts, `f(x) = f(a) + f(b)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Linear {
    /// They have to be added up first.
    #[default]
    No,
    /// Linear in all inputs at once: all are partial sums (`a + b`, `cat`), or its only one is.
    Jointly,
    /// Linear in each of its first two inputs while the other is whole (`a * b`, `matmul`).
    Each,
    /// Linear in its first input while the others are whole (`a / b`, `gather`).
    First,
}

impl Axis {
    pub(crate) fn new(dim: usize) -> Self {
        Self { dim, unit: 1 }
    }
}

/// The part along a dimension.
pub(crate) fn along(dim: usize) -> Operand {
    Operand::Along(Axis::new(dim))
}

/// Parts along a dimension.
pub(crate) fn onto(dim: usize) -> Outcome {
    Outcome::Along(Axis::new(dim))
}

impl Factor {
    pub(crate) fn new(
        inputs: impl IntoIterator<Item = Operand>,
        outputs: impl IntoIterator<Item = Outcome>,
    ) -> Self {
        Self {
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
        }
    }
}

impl Rule {
    /// A rule with these factors, through which no partial sum passes.
    pub(crate) fn new(factors: Vec<Factor>) -> Self {
        Self {
            factors,
            linear: Linear::No,
        }
    }

    pub(crate) fn linear(mut self, linear: Linear) -> Self {
        self.linear = linear;
        self
    }

    /// No way at all: the operation runs whole on every member.
    pub(crate) fn none() -> Self {
        Self::default()
    }
}

/// The rule of an operation; one without factors is done whole by every member.
pub(crate) fn rule(op: &OperationIr) -> Rule {
    let rule = super::rules::rule(op);
    debug_assert!(rule.factors.iter().all(|factor| {
        factor.inputs.len() == op.inputs().count() && factor.outputs.len() == op.outputs().count()
    }));
    rule
}
