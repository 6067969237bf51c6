//! Operations that the inner backend may have a better version of than Burn's defaults, which are
//! made of other operations: see [`InnerOp`].

use super::MultiGpu;
use super::transfer::MeshTensor;
use crate::backend::InnerBackend;
use crate::partition::inner::InnerOp;
use burn_backend::ops::ActivationOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{DType, Scalar, TensorMetadata};
use burn_ir::{CustomOpIr, OperationIr, TensorIr};
use burn_router::RunnerClient;
use burn_std::Shape;

/// Registers an operation of the inner backend; `outputs` are the shapes and types of its results.
pub(super) fn register<B: InnerBackend>(
    op: InnerOp,
    inputs: Vec<MeshTensor<B>>,
    outputs: impl IntoIterator<Item = (Shape, DType)>,
) -> Vec<MeshTensor<B>> {
    let client = inputs[0].client.clone();
    let outputs = outputs
        .into_iter()
        .map(|(shape, dtype)| TensorIr::uninit(client.create_empty_handle(), shape, dtype))
        .collect();
    let op = CustomOpIr {
        id: op.to_string(),
        inputs: inputs.into_iter().map(MeshTensor::<B>::into_ir).collect(),
        outputs,
    };
    client.register(OperationIr::Custom(op))
}

/// An operation with one result, of the shape and type of its first input.
pub(super) fn like_first<B: InnerBackend>(
    op: InnerOp,
    inputs: Vec<MeshTensor<B>>,
) -> MeshTensor<B> {
    let like = (inputs[0].shape(), inputs[0].dtype());
    register(op, inputs, [like]).remove(0)
}

impl<B: InnerBackend> ActivationOps<Self> for MultiGpu<B> {
    fn leaky_relu(tensor: FloatTensor<Self>, negative_slope: Scalar) -> FloatTensor<Self> {
        let slope = negative_slope.elem();
        like_first(InnerOp::LeakyRelu { slope }, vec![tensor])
    }

    fn relu(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::Relu, vec![tensor])
    }

    fn relu_backward(output: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::ReluBackward, vec![output, grad])
    }

    fn gelu(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::Gelu, vec![tensor])
    }

    fn prelu(tensor: FloatTensor<Self>, alpha: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::Prelu, vec![tensor, alpha])
    }

    fn gelu_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::GeluBackward, vec![x, grad])
    }

    fn sigmoid(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::Sigmoid, vec![tensor])
    }

    fn sigmoid_backward(output: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::SigmoidBackward, vec![output, grad])
    }

    fn hard_sigmoid(tensor: FloatTensor<Self>, alpha: Scalar, beta: Scalar) -> FloatTensor<Self> {
        let op = InnerOp::HardSigmoid {
            alpha: alpha.elem(),
            beta: beta.elem(),
        };
        like_first(op, vec![tensor])
    }

    fn log_sigmoid(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::LogSigmoid, vec![tensor])
    }

    fn log_sigmoid_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        like_first(InnerOp::LogSigmoidBackward, vec![x, grad])
    }

    fn softmax(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        like_first(InnerOp::Softmax { dim }, vec![tensor])
    }

    fn log_softmax(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        like_first(InnerOp::LogSoftmax { dim }, vec![tensor])
    }

    fn softmin(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        like_first(InnerOp::Softmin { dim }, vec![tensor])
    }
}

/// Values sorted along a dimension.
pub(super) fn sort<B: InnerBackend>(
    tensor: MeshTensor<B>,
    dim: usize,
    descending: bool,
) -> MeshTensor<B> {
    like_first(InnerOp::Sort { dim, descending }, vec![tensor])
}

/// Values sorted along a dimension, and where each came from.
pub(super) fn sort_with_indices<B: InnerBackend>(
    tensor: MeshTensor<B>,
    dim: usize,
    descending: bool,
    indices: DType,
) -> (MeshTensor<B>, MeshTensor<B>) {
    let op = InnerOp::SortWithIndices { dim, descending };
    let (shape, dtype) = (tensor.shape(), tensor.dtype());
    let mut results = register(op, vec![tensor], [(shape.clone(), dtype), (shape, indices)]);
    let indices = results.remove(1);
    (results.remove(0), indices)
}

/// Where the values sorted along a dimension come from.
pub(super) fn argsort<B: InnerBackend>(
    tensor: MeshTensor<B>,
    dim: usize,
    descending: bool,
    indices: DType,
) -> MeshTensor<B> {
    let op = InnerOp::Argsort { dim, descending };
    let shape = tensor.shape();
    register(op, vec![tensor], [(shape, indices)]).remove(0)
}
