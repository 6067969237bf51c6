//! Operations of the inner backend for which Burn's intermediate representation has no word.
//!
//! Burn's traits make activations, layer norm and sorting out of other operations unless a backend
//! has its own, and the router takes what they make: a sigmoid in `f32` whatever the type, the
//! derivative of an approximate gelu, a sort on the host. The backend inside may have better ones,
//! and a mesh must give what it gives. So they travel as custom operations, whose id holds what else
//! there is to say.

use super::rule::{Rule, along, onto};
use super::rules::{broadcast, passing};
use burn_ir::CustomOpIr;
use std::fmt;
use std::str::FromStr;

/// An operation of the inner backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum InnerOp {
    Relu,
    ReluBackward,
    LeakyRelu {
        slope: f64,
    },
    Gelu,
    GeluBackward,
    Prelu,
    Sigmoid,
    SigmoidBackward,
    HardSigmoid {
        alpha: f64,
        beta: f64,
    },
    LogSigmoid,
    LogSigmoidBackward,
    Softmax {
        dim: usize,
    },
    LogSoftmax {
        dim: usize,
    },
    Softmin {
        dim: usize,
    },
    /// Over the last dimension; inputs: the tensor, gamma, and beta where there is one.
    LayerNorm {
        epsilon: f64,
    },
    Sort {
        dim: usize,
        descending: bool,
    },
    SortWithIndices {
        dim: usize,
        descending: bool,
    },
    Argsort {
        dim: usize,
        descending: bool,
    },
}

/// The names of all, as [`InnerOp::name`] gives them.
pub(crate) const NAMES: &[&str] = &[
    "Inner::Relu",
    "Inner::ReluBackward",
    "Inner::LeakyRelu",
    "Inner::Gelu",
    "Inner::GeluBackward",
    "Inner::Prelu",
    "Inner::Sigmoid",
    "Inner::SigmoidBackward",
    "Inner::HardSigmoid",
    "Inner::LogSigmoid",
    "Inner::LogSigmoidBackward",
    "Inner::Softmax",
    "Inner::LogSoftmax",
    "Inner::Softmin",
    "Inner::LayerNorm",
    "Inner::Sort",
    "Inner::SortWithIndices",
    "Inner::Argsort",
];

impl InnerOp {
    /// The operation that a custom one stands for.
    pub(crate) fn of(op: &CustomOpIr) -> Option<Self> {
        op.id.parse().ok()
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES[self.code()]
    }

    fn code(self) -> usize {
        match self {
            Self::Relu => 0,
            Self::ReluBackward => 1,
            Self::LeakyRelu { .. } => 2,
            Self::Gelu => 3,
            Self::GeluBackward => 4,
            Self::Prelu => 5,
            Self::Sigmoid => 6,
            Self::SigmoidBackward => 7,
            Self::HardSigmoid { .. } => 8,
            Self::LogSigmoid => 9,
            Self::LogSigmoidBackward => 10,
            Self::Softmax { .. } => 11,
            Self::LogSoftmax { .. } => 12,
            Self::Softmin { .. } => 13,
            Self::LayerNorm { .. } => 14,
            Self::Sort { .. } => 15,
            Self::SortWithIndices { .. } => 16,
            Self::Argsort { .. } => 17,
        }
    }

    /// What is to be said besides the name. Floats go as their bits, so that they stay what they
    /// are.
    fn arguments(self) -> [u64; 2] {
        match self {
            Self::LeakyRelu { slope } => [slope.to_bits(), 0],
            Self::HardSigmoid { alpha, beta } => [alpha.to_bits(), beta.to_bits()],
            Self::LayerNorm { epsilon } => [epsilon.to_bits(), 0],
            Self::Softmax { dim } | Self::LogSoftmax { dim } | Self::Softmin { dim } => {
                [dim as u64, 0]
            }
            Self::Sort { dim, descending }
            | Self::SortWithIndices { dim, descending }
            | Self::Argsort { dim, descending } => [dim as u64, u64::from(descending)],
            _ => [0, 0],
        }
    }

    fn new(code: usize, [first, second]: [u64; 2]) -> Option<Self> {
        let (dim, descending) = (first as usize, second != 0);
        Some(match code {
            0 => Self::Relu,
            1 => Self::ReluBackward,
            2 => Self::LeakyRelu {
                slope: f64::from_bits(first),
            },
            3 => Self::Gelu,
            4 => Self::GeluBackward,
            5 => Self::Prelu,
            6 => Self::Sigmoid,
            7 => Self::SigmoidBackward,
            8 => Self::HardSigmoid {
                alpha: f64::from_bits(first),
                beta: f64::from_bits(second),
            },
            9 => Self::LogSigmoid,
            10 => Self::LogSigmoidBackward,
            11 => Self::Softmax { dim },
            12 => Self::LogSoftmax { dim },
            13 => Self::Softmin { dim },
            14 => Self::LayerNorm {
                epsilon: f64::from_bits(first),
            },
            15 => Self::Sort { dim, descending },
            16 => Self::SortWithIndices { dim, descending },
            17 => Self::Argsort { dim, descending },
            _ => return None,
        })
    }

    /// How it is done in parts.
    pub(crate) fn rule(self, op: &CustomOpIr) -> Rule {
        let Some(tensor) = op.inputs.first() else {
            return Rule::none();
        };
        let other_dims = |dim: usize| {
            let dims = (0..tensor.shape.num_dims()).filter(|d| *d != dim);
            Rule::new(passing(tensor, dims, op.inputs.len(), op.outputs.len()))
        };
        match self {
            Self::Softmax { dim }
            | Self::LogSoftmax { dim }
            | Self::Softmin { dim }
            | Self::Sort { dim, .. }
            | Self::SortWithIndices { dim, .. }
            | Self::Argsort { dim, .. } => other_dims(dim),
            Self::LayerNorm { .. } => {
                let rows = 0..tensor.shape.num_dims().saturating_sub(1);
                let factors = rows
                    .filter(|dim| tensor.shape[*dim] > 1)
                    .map(|dim| {
                        let whole = op.inputs[1..].iter().map(|_| super::rule::Operand::Whole);
                        let inputs = std::iter::once(along(dim)).chain(whole);
                        super::rule::Factor::new(inputs, [onto(dim)])
                    })
                    .collect();
                Rule::new(factors)
            }
            _ => {
                let inputs: Vec<_> = op.inputs.iter().collect();
                Rule::new(broadcast(&inputs, &op.outputs[0]))
            }
        }
    }
}

impl fmt::Display for InnerOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.arguments();
        write!(f, "{} {first} {second}", self.code())
    }
}

impl FromStr for InnerOp {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let mut next = || {
            words
                .next()
                .and_then(|word| word.parse::<u64>().ok())
                .ok_or(())
        };
        let (code, first, second) = (next()?, next()?, next()?);
        Self::new(code as usize, [first, second]).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_survives_its_text() {
        let all = [
            InnerOp::Relu,
            InnerOp::ReluBackward,
            InnerOp::LeakyRelu { slope: 0.1 },
            InnerOp::Gelu,
            InnerOp::GeluBackward,
            InnerOp::Prelu,
            InnerOp::Sigmoid,
            InnerOp::SigmoidBackward,
            InnerOp::HardSigmoid {
                alpha: 0.2,
                beta: -0.5,
            },
            InnerOp::LogSigmoid,
            InnerOp::LogSigmoidBackward,
            InnerOp::Softmax { dim: 2 },
            InnerOp::LogSoftmax { dim: 1 },
            InnerOp::Softmin { dim: 0 },
            InnerOp::LayerNorm { epsilon: 1e-5 },
            InnerOp::Sort {
                dim: 1,
                descending: true,
            },
            InnerOp::SortWithIndices {
                dim: 0,
                descending: false,
            },
            InnerOp::Argsort {
                dim: 3,
                descending: true,
            },
        ];
        assert_eq!(all.len(), NAMES.len());
        for (code, op) in all.into_iter().enumerate() {
            assert_eq!(op.code(), code);
            assert_eq!(op.to_string().parse(), Ok(op));
        }
        assert_eq!("gelu".parse::<InnerOp>(), Err(()));
    }
}
