//! Operations of the inner backend that Burn's intermediate representation has no word for.

use super::super::InnerBackend;
use super::Primitive;
use super::worker::{Stop, Worker};
use crate::partition::inner::InnerOp;
use burn_backend::Scalar;
use burn_backend::tensor::FloatTensor;
use burn_ir::{CastOpIr, CustomOpIr};

impl<B: InnerBackend> Worker<B> {
    pub(super) fn run_inner(&self, op: &CustomOpIr) -> Result<(), Stop> {
        let Some(inner) = InnerOp::of(op) else {
            let text = format!(
                "`{}` is a custom operation, which the mesh cannot run",
                op.id
            );
            return Err(Stop::Device(text));
        };
        let inputs = op.inputs.iter().map(|tensor| self.input(tensor)).collect();
        let results = run::<B>(inner, inputs, op).ok_or_else(|| {
            Stop::Device("its inputs are not of the kind that it takes".to_string())
        })?;
        for (out, tensor) in op.outputs.iter().zip(results) {
            self.register(out.id, tensor, out.shape.clone(), out.dtype);
        }
        Ok(())
    }
}

impl<B: InnerBackend> Worker<B> {
    /// A conversion between types of integers, which the router sends and its runner cannot run.
    pub(super) fn cast_int(&self, op: &CastOpIr) -> Result<(), Stop> {
        let Primitive::Int(tensor) = self.input(&op.input) else {
            return Err(Stop::Device("its input is not of integers".to_string()));
        };
        let cast = Primitive::Int(B::int_cast(tensor, op.out.dtype.into()));
        self.register(op.out.id, cast, op.out.shape.clone(), op.out.dtype);
        Ok(())
    }
}

/// The results of an operation, or `None` for inputs of the wrong kind.
fn run<B: InnerBackend>(
    op: InnerOp,
    inputs: Vec<Primitive<B>>,
    ir: &CustomOpIr,
) -> Option<Vec<Primitive<B>>> {
    let mut inputs = inputs.into_iter();
    let mut next = || inputs.next();
    let dtype = |output: usize| ir.outputs.get(output).map(|out| out.dtype);
    let out = match op {
        InnerOp::Sort { dim, descending } => match next()? {
            Primitive::Float(tensor) => Primitive::Float(B::float_sort(tensor, dim, descending)),
            Primitive::Int(tensor) => Primitive::Int(B::int_sort(tensor, dim, descending)),
            Primitive::Bool(_) => return None,
        },
        InnerOp::SortWithIndices { dim, descending } => {
            let (values, indices) = match next()? {
                Primitive::Float(tensor) => {
                    let indices = dtype(1)?.into();
                    let (values, indices) =
                        B::float_sort_with_indices(tensor, dim, descending, indices);
                    (Primitive::Float(values), indices)
                }
                Primitive::Int(tensor) => {
                    let (values, indices) = B::int_sort_with_indices(tensor, dim, descending);
                    (Primitive::Int(values), indices)
                }
                Primitive::Bool(_) => return None,
            };
            return Some(vec![values, Primitive::Int(indices)]);
        }
        InnerOp::Argsort { dim, descending } => Primitive::Int(match next()? {
            Primitive::Float(tensor) => B::float_argsort(tensor, dim, descending, dtype(0)?.into()),
            Primitive::Int(tensor) => B::int_argsort(tensor, dim, descending),
            Primitive::Bool(_) => return None,
        }),
        _ => {
            let float = |primitive: Option<Primitive<B>>| match primitive {
                Some(Primitive::Float(tensor)) => Some(tensor),
                _ => None,
            };
            let tensor = float(next())?;
            Primitive::Float(activation::<B>(op, tensor, || float(next()))?)
        }
    };
    Some(vec![out])
}

fn activation<B: InnerBackend>(
    op: InnerOp,
    tensor: FloatTensor<B>,
    mut next: impl FnMut() -> Option<FloatTensor<B>>,
) -> Option<FloatTensor<B>> {
    Some(match op {
        InnerOp::Relu => B::relu(tensor),
        InnerOp::ReluBackward => B::relu_backward(tensor, next()?),
        InnerOp::LeakyRelu { slope } => B::leaky_relu(tensor, Scalar::Float(slope)),
        InnerOp::Gelu => B::gelu(tensor),
        InnerOp::GeluBackward => B::gelu_backward(tensor, next()?),
        InnerOp::Prelu => B::prelu(tensor, next()?),
        InnerOp::Sigmoid => B::sigmoid(tensor),
        InnerOp::SigmoidBackward => B::sigmoid_backward(tensor, next()?),
        InnerOp::HardSigmoid { alpha, beta } => {
            B::hard_sigmoid(tensor, Scalar::Float(alpha), Scalar::Float(beta))
        }
        InnerOp::LogSigmoid => B::log_sigmoid(tensor),
        InnerOp::LogSigmoidBackward => B::log_sigmoid_backward(tensor, next()?),
        InnerOp::Softmax { dim } => B::softmax(tensor, dim),
        InnerOp::LogSoftmax { dim } => B::log_softmax(tensor, dim),
        InnerOp::Softmin { dim } => B::softmin(tensor, dim),
        InnerOp::LayerNorm { epsilon } => {
            let gamma = next()?;
            B::layer_norm(tensor, gamma, next(), epsilon)
        }
        InnerOp::Sort { .. } | InnerOp::SortWithIndices { .. } | InnerOp::Argsort { .. } => {
            return None;
        }
    })
}
