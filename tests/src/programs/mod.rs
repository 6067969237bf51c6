//! Random programs, to compare a mesh with one device.
//!
//! A [`Program`] is a list of statements over tensors of any kind, of rank 1 to 4. It is made from
//! a seed ([`Program::random`]), runs on any backend ([`run`]) and prints as pseudo code. One that
//! fails is made smaller ([`shrink`](shrink::shrink)): every statement may go, with those that need
//! it.
//!
//! Programs are made such that rounding stays rounding: values are kept small, what could be tied
//! or lie on a kink is moved off it (the operation `Max`, for example, is a maximum of the operand
//! plus different numbers), logarithms are those of positive numbers.
//!
//! | file | what lives there |
//! |---|---|
//! | `rng.rs` | random choices and data |
//! | `value.rs` | [`Value`]: a tensor of any kind and rank |
//! | `builder.rs` | [`Builder`]: a program that is being made, and finding operands |
//! | `create.rs` | data from the host, parameters, constants |
//! | `float.rs` | elementwise float operations |
//! | `int.rs`, `compare.rs` | elementwise int and bool operations, masks, conversions; comparisons |
//! | `shape.rs`, `parts.rs` | what moves elements: reshape, slice, cat, .. |
//! | `reduce.rs` | reductions, sorting, cumulative operations, softmax |
//! | `index.rs` | gather, scatter, select, one-hot, embedding |
//! | `layer.rs`, `conv.rs` | matrix products, attention, norms, losses; convolutions and pools |
//! | `interpret.rs` | [`run`], [`infer`]: a program on a backend, and what it gives |
//! | `shrink.rs` | smaller programs that still fail |

pub mod builder;
mod compare;
pub mod conv;
pub mod create;
pub mod float;
pub mod index;
pub mod int;
pub mod interpret;
pub mod layer;
mod parts;
pub mod reduce;
pub mod rng;
pub mod shape;
pub mod shrink;
pub mod value;

pub use builder::Builder;
pub use compare::Compare;
pub use interpret::{Outcome, infer, run};
pub use value::{Kind, Value};

use std::fmt;

/// Names a tensor of a program.
pub type Id = usize;

/// What is known of a tensor before the program runs.
#[derive(Clone, Debug)]
pub struct Info {
    /// What it holds.
    pub kind: Kind,
    /// Its shape.
    pub shape: Vec<usize>,
    /// A bound on its absolute values.
    pub max: f64,
}

/// An operation.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Op {
    Create(create::Create),
    Float(float::Float),
    Int(int::Int),
    Shape(shape::Shape),
    Reduce(reduce::Reduce),
    Index(index::Index),
    Layer(layer::Layer),
    Conv(conv::Conv),
}

/// What a user may tell a mesh about a tensor, which has no effect on its values.
#[derive(Clone, Copy, Debug)]
pub enum Hint {
    /// Cut it along a dimension.
    Shard(usize),
    /// Give all of it to every member.
    Replicate,
}

/// One operation, its operands and its results.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Statement {
    pub outs: Vec<Id>,
    pub op: Op,
    pub args: Vec<Id>,
    pub hint: Option<(Id, Hint)>,
}

/// When an output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As soon as it is there.
    AtOnce,
    /// After the last statement, before the backward pass.
    BeforeBackward,
    /// After the gradients.
    Last,
}

/// How a float tensor enters the loss.
#[derive(Clone, Copy, Debug)]
pub enum Term {
    /// Its sum, with weights of its own for each element.
    Weighted,
    /// Its mean.
    Mean,
    /// The sum of its squares.
    Squares,
}

/// A random program.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Program {
    pub statements: Vec<Statement>,
    /// By [`Id`].
    pub infos: Vec<Info>,
    pub outputs: Vec<(Id, When)>,
    pub loss: Vec<(Id, Term)>,
    /// Whether there is a backward pass.
    pub autodiff: bool,
    /// Whether an optimizer takes a step with the gradients.
    pub step: bool,
}

impl Program {
    /// The program of a seed.
    #[must_use]
    pub fn random(seed: u64) -> Self {
        Builder::new(seed).finish()
    }

    /// How far results may be apart, relative to the largest value of a tensor: rounding in f64,
    /// or where a single device rounds to f32.
    #[must_use]
    pub fn bound(&self) -> f64 {
        let rough = |statement: &Statement| matches!(&statement.op, Op::Conv(op) if op.is_rough());
        if self.statements.iter().any(rough) {
            1e-5
        } else {
            1e-9
        }
    }

    /// The parameters, in their order.
    pub fn params(&self) -> impl Iterator<Item = Id> + '_ {
        self.statements
            .iter()
            .filter(|statement| matches!(&statement.op, Op::Create(op) if op.is_param()))
            .flat_map(|statement| statement.outs.iter().copied())
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |ids: &[Id]| {
            let names: Vec<String> = ids.iter().map(|id| format!("t{id}")).collect();
            names.join(", ")
        };
        for statement in &self.statements {
            let op = match &statement.op {
                Op::Create(op) => format!("{op:?}"),
                Op::Float(op) => format!("{op:?}"),
                Op::Int(op) => format!("{op:?}"),
                Op::Shape(op) => format!("{op:?}"),
                Op::Reduce(op) => format!("{op:?}"),
                Op::Index(op) => format!("{op:?}"),
                Op::Layer(op) => format!("{op:?}"),
                Op::Conv(op) => format!("{op:?}"),
            };
            write!(
                f,
                "{} = {op} of ({})",
                names(&statement.outs),
                names(&statement.args)
            )?;
            for id in &statement.outs {
                let info = &self.infos[*id];
                write!(f, "  # {:?}{:?}", info.kind, info.shape)?;
            }
            if let Some((id, hint)) = statement.hint {
                write!(f, "  mesh: {hint:?} of t{id}")?;
            }
            writeln!(f)?;
        }
        for (id, when) in &self.outputs {
            writeln!(f, "read t{id} {when:?}")?;
        }
        for (id, term) in &self.loss {
            writeln!(f, "loss += {term:?}(t{id})")?;
        }
        if self.autodiff {
            writeln!(
                f,
                "backward{}",
                if self.step { ", optimizer step" } else { "" }
            )?;
        }
        Ok(())
    }
}
