//! Programs on a backend, and what they give.

use super::create::{create, upload};
use super::rng::floats;
use super::value::ranked;
use super::{
    Hint, Id, Kind, Op, Program, Statement, Term, Value, When, conv, float, index, int, layer,
    reduce, shape,
};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor};
use std::collections::{HashMap, HashSet};

/// What a program gives.
#[derive(Debug)]
pub struct Outcome {
    /// The outputs, in the order in which they are read.
    pub outputs: Vec<(Id, Read)>,
    /// The loss.
    pub loss: f64,
    /// The parameters' gradients.
    pub grads: Vec<(Id, Option<Read>)>,
    /// The parameters after a step.
    pub updates: Vec<(Id, Read)>,
}

/// A tensor that has been read.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Read {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// Runs a program with its backward pass. `hint` is told what the program says to a mesh.
///
/// # Panics
///
/// Where the backend does, or a result has another shape than the program says.
pub fn run<B: AutodiffBackend>(
    program: &Program,
    device: &B::Device,
    hint: impl FnMut(&Value<B>, Hint),
) -> Outcome {
    let mut ran = forward(program, device, hint);
    let loss = loss::<B>(program, &ran.tensors, device);
    let gradients = loss.backward();
    let mut grads = Vec::new();
    for id in program.params() {
        let grad: Option<Value<B::InnerBackend>> = ranked!(program.infos[id].shape.len(), D => {
            ran.tensors[&id].clone().float::<D>().grad(&gradients).map(Into::into)
        });
        grads.push((id, grad));
    }
    let updates = if program.step {
        step(&ran, &grads)
    } else {
        Vec::new()
    };
    let grads = grads
        .into_iter()
        .map(|(id, grad)| (id, grad.as_ref().map(read)))
        .collect();
    ran.read(program, When::Last);
    Outcome {
        outputs: ran.outputs,
        loss: scalar(loss),
        grads,
        updates,
    }
}

/// Runs a program up to its loss.
///
/// # Panics
///
/// As [`run`].
pub fn infer<B: Backend>(
    program: &Program,
    device: &B::Device,
    hint: impl FnMut(&Value<B>, Hint),
) -> Outcome {
    let mut ran = forward(program, device, hint);
    let loss = loss::<B>(program, &ran.tensors, device);
    ran.read(program, When::Last);
    Outcome {
        outputs: ran.outputs,
        loss: scalar(loss),
        grads: Vec::new(),
        updates: Vec::new(),
    }
}

/// The tensors that are left of a program's statements, and what has been read of them.
struct Ran<B: Backend> {
    tensors: HashMap<Id, Value<B>>,
    outputs: Vec<(Id, Read)>,
}

impl<B: Backend> Ran<B> {
    fn read(&mut self, program: &Program, now: When) {
        for (id, _) in program.outputs.iter().filter(|(_, when)| *when == now) {
            self.outputs.push((*id, read(&self.tensors[id])));
        }
    }
}

fn forward<B: Backend>(
    program: &Program,
    device: &B::Device,
    mut hint: impl FnMut(&Value<B>, Hint),
) -> Ran<B> {
    let mut ran = Ran {
        tensors: HashMap::new(),
        outputs: Vec::new(),
    };
    let tensors = &mut ran.tensors;
    let (mut uses, kept) = uses(program);
    for statement in &program.statements {
        let mut args = Vec::with_capacity(statement.args.len());
        for id in &statement.args {
            // The last use takes the tensor, so that the backend may do so as well.
            let left = uses.get_mut(id).expect("a use was counted");
            *left -= 1;
            let value = if *left == 0 && !kept.contains(id) {
                tensors.remove(id)
            } else {
                tensors.get(id).cloned()
            };
            args.push(value.expect("operands come before their use"));
        }
        let outs = apply::<B>(program, statement, args, device);
        assert_eq!(
            outs.len(),
            statement.outs.len(),
            "another number of results"
        );
        for (id, value) in statement.outs.iter().zip(outs) {
            let info = &program.infos[*id];
            assert_eq!(value.shape().as_slice(), info.shape, "the shape of t{id}");
            assert_eq!(value.kind(), info.kind, "the kind of t{id}");
            if kept.contains(id) || uses.contains_key(id) {
                tensors.insert(*id, value);
            }
        }
        if let Some((id, what)) = statement.hint
            && let Some(value) = tensors.get(&id)
        {
            hint(value, what);
        }
        for (id, when) in &program.outputs {
            if *when == When::AtOnce && statement.outs.contains(id) {
                ran.outputs.push((*id, read(&tensors[id])));
            }
        }
    }
    ran.read(program, When::BeforeBackward);
    ran
}

/// What an optimizer does: new parameters, and last the norm of all gradients.
fn step<B: AutodiffBackend>(
    ran: &Ran<B>,
    grads: &[(Id, Option<Value<B::InnerBackend>>)],
) -> Vec<(Id, Read)> {
    let mut norm: Option<Tensor<B::InnerBackend, 1>> = None;
    let mut updates = Vec::new();
    for (id, grad) in grads {
        let Some(grad) = grad else { continue };
        updates.push(ranked!(grad.rank(), D => {
            let grad = grad.clone().float::<D>();
            let squares = grad.clone().square().sum();
            norm = Some(match norm.take() {
                Some(norm) => norm.add(squares),
                None => squares,
            });
            let scale = grad.clone().square().sqrt().add_scalar(0.1);
            let param = ran.tensors[id].clone().float::<D>().inner().mul_scalar(0.9);
            (*id, param.sub(grad.div(scale).mul_scalar(0.1)).into())
        }));
    }
    if let Some(norm) = norm {
        updates.push((usize::MAX, norm.sqrt().into()));
    }
    updates
        .iter()
        .map(|(id, value)| (*id, read(value)))
        .collect()
}

fn scalar<B: Backend>(tensor: Tensor<B, 1>) -> f64 {
    tensor.into_data().iter::<f64>().next().unwrap_or(f64::NAN)
}

/// How often each tensor is an operand, and which are needed after the statements.
fn uses(program: &Program) -> (HashMap<Id, usize>, HashSet<Id>) {
    let mut uses = HashMap::new();
    for id in program
        .statements
        .iter()
        .flat_map(|statement| &statement.args)
    {
        *uses.entry(*id).or_insert(0) += 1;
    }
    let outputs = program.outputs.iter().map(|(id, _)| *id);
    let terms = program.loss.iter().map(|(id, _)| *id);
    (uses, outputs.chain(terms).chain(program.params()).collect())
}

fn apply<B: Backend>(
    program: &Program,
    statement: &Statement,
    args: Vec<Value<B>>,
    device: &B::Device,
) -> Vec<Value<B>> {
    let infos: Vec<_> = statement
        .outs
        .iter()
        .map(|id| program.infos[*id].clone())
        .collect();
    match &statement.op {
        Op::Create(op) => vec![create::<B>(op, &infos[0], device)],
        Op::Float(op) => vec![float::run(op, args)],
        Op::Int(op) => vec![int::run(op, args)],
        Op::Shape(op) => shape::run(op, args, &infos),
        Op::Reduce(op) => {
            let [value] = <[_; 1]>::try_from(args).expect("one operand");
            reduce::run(op, value)
        }
        Op::Index(op) => vec![index::run(op, args, &infos[0])],
        Op::Layer(op) => vec![layer::run(op, args)],
        Op::Conv(op) => conv::run(op, args),
    }
}

fn loss<B: Backend>(
    program: &Program,
    tensors: &HashMap<Id, Value<B>>,
    device: &B::Device,
) -> Tensor<B, 1> {
    let terms = program.loss.iter().map(|(id, term)| {
        let value = tensors[id].clone();
        ranked!(value.rank(), D => {
            let t = value.float::<D>();
            match term {
                Term::Weighted => {
                    let shape = t.dims();
                    let weights = floats(*id as u64, shape.iter().product());
                    t.mul(upload(weights, &shape, device)).sum()
                }
                Term::Mean => t.mean().mul_scalar(1.7),
                Term::Squares => t.square().sum(),
            }
        })
    });
    terms.reduce(Tensor::add).expect("a loss has a term")
}

fn read<B: Backend>(value: &Value<B>) -> Read {
    let data = ranked!(value.rank(), D => match value.clone() {
        value @ Value::Float(_) => value.float::<D>().into_data(),
        value @ Value::Int(_) => value.int::<D>().into_data(),
        value @ Value::Bool(_) => value.bool::<D>().into_data(),
    });
    Read {
        dtype: data.dtype,
        shape: data.shape.as_slice().to_vec(),
        values: match value.kind() {
            Kind::Bool => data
                .iter::<bool>()
                .map(|value| f64::from(u8::from(value)))
                .collect(),
            _ => data.iter::<f64>().collect(),
        },
    }
}

impl Outcome {
    /// Where it differs from another outcome of the same program, beyond rounding of size `bound`
    /// relative to the largest value of a tensor.
    #[must_use]
    pub fn difference(&self, other: &Self, bound: f64) -> Option<String> {
        let loss = |outcome: &Self| Read {
            dtype: DType::F64,
            shape: vec![1],
            values: vec![outcome.loss],
        };
        for ((id, own), (_, other)) in self.outputs.iter().zip(&other.outputs) {
            if let Some(text) = own.difference(other, bound) {
                return Some(format!("t{id}: {text}"));
            }
        }
        if let Some(text) = loss(self).difference(&loss(other), bound) {
            return Some(format!("the loss: {text}"));
        }
        for ((id, own), (_, other)) in self.grads.iter().zip(&other.grads) {
            let text = match (own, other) {
                (Some(own), Some(other)) => own.difference(other, bound),
                (None, None) => None,
                (own, _) => Some(format!("there is a gradient: {}", own.is_some())),
            };
            if let Some(text) = text {
                return Some(format!("the gradient of t{id}: {text}"));
            }
        }
        for ((id, own), (_, other)) in self.updates.iter().zip(&other.updates) {
            if let Some(text) = own.difference(other, bound) {
                return Some(format!("the optimizer's step of t{id}: {text}"));
            }
        }
        None
    }
}

/// Smaller tensors than this are compared as if they were as large: what should be zero is
/// rounding and nothing else.
const FLOOR: f64 = 1e-3;

impl Read {
    fn difference(&self, other: &Self, bound: f64) -> Option<String> {
        if (self.dtype, &self.shape) != (other.dtype, &other.shape) {
            return Some(format!(
                "{:?}{:?} is {:?}{:?}",
                self.dtype, self.shape, other.dtype, other.shape
            ));
        }
        let exact = !self.dtype.is_float();
        let scale = self
            .values
            .iter()
            .fold(FLOOR, |scale, value| value.abs().max(scale));
        let differ = |a: f64, b: f64| {
            let apart = (a - b).abs();
            apart.is_nan() || apart > if exact { 0.0 } else { bound * scale }
        };
        let mut pairs = self.values.iter().zip(&other.values).enumerate();
        let (at, (own, other)) = pairs.find(|(_, (a, b))| differ(**a, **b))?;
        Some(format!(
            "element {at} of {:?} is {other:e}, not {own:e}",
            self.shape
        ))
    }
}
