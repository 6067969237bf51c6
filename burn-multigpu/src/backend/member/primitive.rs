//! Tensors of any kind, and moving them between devices.

use super::super::InnerBackend;
use crate::collective::Transfer;
use burn::tensor::backend::ExecutionError;
use burn::tensor::{DType, Shape, Slice, TensorData, read_sync};
use burn_backend::Scalar;
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_ir::TensorHandle;

/// A tensor of the inner backend.
#[derive(Clone, Debug)]
pub(in super::super) enum Primitive<B: InnerBackend> {
    Float(FloatTensor<B>),
    Int(IntTensor<B>),
    Bool(BoolTensor<B>),
}

/// Calls the same operation of the three kinds.
macro_rules! each {
    ($value:expr, $tensor:ident => $float:expr, $int:expr, $bool:expr) => {
        match $value {
            Primitive::Float($tensor) => Primitive::Float($float),
            Primitive::Int($tensor) => Primitive::Int($int),
            Primitive::Bool($tensor) => Primitive::Bool($bool),
        }
    };
}

impl<B: InnerBackend> Primitive<B> {
    pub(super) fn from_handle(handle: B::Handle, shape: Shape, dtype: DType) -> Self {
        let handle = TensorHandle { handle, shape };
        if dtype.is_float() {
            Self::Float(B::float_tensor(handle))
        } else if dtype.is_bool() {
            Self::Bool(B::bool_tensor(handle))
        } else {
            Self::Int(B::int_tensor(handle))
        }
    }

    pub(super) fn into_handle(self) -> B::Handle {
        match self {
            Self::Float(tensor) => B::float_tensor_handle(tensor),
            Self::Int(tensor) => B::int_tensor_handle(tensor),
            Self::Bool(tensor) => B::bool_tensor_handle(tensor),
        }
    }

    pub(super) fn slice(self, slices: &[Slice]) -> Self {
        each!(self, tensor => B::float_slice(tensor, slices), B::int_slice(tensor, slices), B::bool_slice(tensor, slices))
    }

    /// A copy in memory of its own. Members on one device would otherwise share a buffer, and
    /// CubeCL lets the last of two handles overwrite it while the other thread's work is queued.
    pub(super) fn own(self) -> Self {
        let one = || Scalar::Int(1);
        each!(self, tensor => B::float_mul_scalar(tensor, Scalar::Float(1.0)), B::int_mul_scalar(tensor, one()), tensor)
    }

    /// Joins parts along a dimension.
    pub(super) fn cat(parts: Vec<Self>, dim: usize) -> Option<Self> {
        let (mut floats, mut ints, mut bools) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            match part {
                Self::Float(tensor) => floats.push(tensor),
                Self::Int(tensor) => ints.push(tensor),
                Self::Bool(tensor) => bools.push(tensor),
            }
        }
        if !floats.is_empty() {
            Some(Self::Float(B::float_cat(floats, dim)))
        } else if !ints.is_empty() {
            Some(Self::Int(B::int_cat(ints, dim)))
        } else if !bools.is_empty() {
            Some(Self::Bool(B::bool_cat(bools, dim)))
        } else {
            None
        }
    }

    /// Takes it to a device by the path that leads there.
    pub(super) fn transfer(
        self,
        path: Transfer,
        device: &B::Device,
    ) -> Result<Self, ExecutionError> {
        Ok(match (path, self) {
            (Transfer::Same, tensor) => tensor,
            (_, Self::Float(tensor)) => Self::Float(path.float::<B>(tensor, device)?),
            (Transfer::Peer, Self::Int(tensor)) => Self::Int(B::int_to_device(tensor, device)),
            (Transfer::Peer, Self::Bool(tensor)) => Self::Bool(B::bool_to_device(tensor, device)),
            (Transfer::Host, Self::Int(tensor)) => Self::Int(B::int_from_data(
                read_sync(B::int_into_data(tensor))?,
                device,
            )),
            (Transfer::Host, Self::Bool(tensor)) => Self::Bool(B::bool_from_data(
                read_sync(B::bool_into_data(tensor))?,
                device,
            )),
        })
    }

    pub(super) fn read(self) -> Result<TensorData, ExecutionError> {
        match self {
            Self::Float(tensor) => read_sync(B::float_into_data(tensor)),
            Self::Int(tensor) => read_sync(B::int_into_data(tensor)),
            Self::Bool(tensor) => read_sync(B::bool_into_data(tensor)),
        }
    }
}
