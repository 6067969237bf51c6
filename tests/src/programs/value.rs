//! Tensors of any kind and rank, which a program's are.

use burn::tensor::ops::{BoolTensor, FloatTensor, IntTensor};
use burn::tensor::{
    BasicOps, Bool, Float, Int, Shape, Tensor, TensorMetadata, TensorPrimitive, backend::Backend,
};

/// What a tensor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Float,
    Int,
    Bool,
}

/// A tensor.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Value<B: Backend> {
    Float(FloatTensor<B>),
    Int(IntTensor<B>),
    Bool(BoolTensor<B>),
}

/// A kind of tensor, as Burn marks it by type.
pub(super) trait Of<B: Backend>: BasicOps<B> {
    fn unwrap(value: Value<B>) -> Self::Primitive;
    fn wrap(primitive: Self::Primitive) -> Value<B>;
}

impl<B: Backend> Of<B> for Float {
    fn unwrap(value: Value<B>) -> TensorPrimitive<B> {
        match value {
            Value::Float(tensor) => TensorPrimitive::Float(tensor),
            _ => panic!("not a float tensor"),
        }
    }

    fn wrap(primitive: TensorPrimitive<B>) -> Value<B> {
        Value::Float(primitive.tensor())
    }
}

impl<B: Backend> Of<B> for Int {
    fn unwrap(value: Value<B>) -> IntTensor<B> {
        match value {
            Value::Int(tensor) => tensor,
            _ => panic!("not an int tensor"),
        }
    }

    fn wrap(primitive: IntTensor<B>) -> Value<B> {
        Value::Int(primitive)
    }
}

impl<B: Backend> Of<B> for Bool {
    fn unwrap(value: Value<B>) -> BoolTensor<B> {
        match value {
            Value::Bool(tensor) => tensor,
            _ => panic!("not a bool tensor"),
        }
    }

    fn wrap(primitive: BoolTensor<B>) -> Value<B> {
        Value::Bool(primitive)
    }
}

impl<B: Backend> Value<B> {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Float(_) => Kind::Float,
            Self::Int(_) => Kind::Int,
            Self::Bool(_) => Kind::Bool,
        }
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self {
            Self::Float(tensor) => tensor.shape(),
            Self::Int(tensor) => tensor.shape(),
            Self::Bool(tensor) => tensor.shape(),
        }
    }

    pub(super) fn rank(&self) -> usize {
        self.shape().num_dims()
    }

    pub(super) fn of<const D: usize, K: Of<B>>(self) -> Tensor<B, D, K> {
        assert_eq!(self.rank(), D, "a tensor of another rank");
        Tensor::from_primitive(K::unwrap(self))
    }

    /// It as a float tensor of this rank.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[must_use]
    pub fn float<const D: usize>(self) -> Tensor<B, D> {
        self.of()
    }

    /// It as an int tensor of this rank.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[must_use]
    pub fn int<const D: usize>(self) -> Tensor<B, D, Int> {
        self.of()
    }

    /// It as a bool tensor of this rank.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[must_use]
    pub fn bool<const D: usize>(self) -> Tensor<B, D, Bool> {
        self.of()
    }
}

impl<B: Backend, const D: usize, K: Of<B>> From<Tensor<B, D, K>> for Value<B> {
    fn from(tensor: Tensor<B, D, K>) -> Self {
        K::wrap(tensor.into_primitive())
    }
}

/// Runs something with a rank as a constant.
macro_rules! ranked {
    ($rank:expr, $D:ident => $body:expr) => {
        match $rank {
            1 => {
                const $D: usize = 1;
                $body
            }
            2 => {
                const $D: usize = 2;
                $body
            }
            3 => {
                const $D: usize = 3;
                $body
            }
            4 => {
                const $D: usize = 4;
                $body
            }
            rank => panic!("programs have no tensors of rank {rank}"),
        }
    };
}

/// Runs something with a kind as a type.
macro_rules! kinded {
    ($kind:expr, $K:ident => $body:expr) => {
        match $kind {
            Kind::Float => {
                type $K = burn::tensor::Float;
                $body
            }
            Kind::Int => {
                type $K = burn::tensor::Int;
                $body
            }
            Kind::Bool => {
                type $K = burn::tensor::Bool;
                $body
            }
        }
    };
}

pub(super) use kinded;
pub(super) use ranked;
