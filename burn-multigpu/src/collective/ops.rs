//! What a backend contributes to a collective: moving elements between tensors and buckets, summing
//! them, and taking a tensor from one device to another.

use super::layout::Piece;
use super::stats::Counters;
use crate::error::{Error, Result};
use burn::tensor::backend::{Backend, ExecutionError};
use burn::tensor::{BasicOps, DType, Shape, Tensor, TensorData};
use burn_backend::tensor::FloatTensor;
use serde::Serialize;
use std::fmt::Debug;

/// The device-side half of the collectives. Buffers are tensors of rank 1.
///
/// Implemented with CubeCL kernels where the backend's tensors are CubeCL's
/// ([`cube`](super::cube)) and in plain Rust for every other backend ([`host`](super::host)).
pub(crate) trait CollectiveOps<B: Backend>: Send + Sync + Debug {
    /// Copies the pieces of each chunk into a buffer of its own.
    fn pack(
        &self,
        device: &B::Device,
        dtype: DType,
        tensors: Vec<FloatTensor<B>>,
        chunks: &[Vec<Piece>],
    ) -> Result<Vec<FloatTensor<B>>>;

    /// The weighted sum of equally long buffers, in their order, accumulated in f32 or more.
    fn sum(
        &self,
        device: &B::Device,
        dtype: DType,
        buffers: Vec<FloatTensor<B>>,
        weights: &[f64],
    ) -> Result<FloatTensor<B>>;

    /// The inverse of [`pack`](Self::pack): tensors of the given shapes from the chunks.
    fn unpack(
        &self,
        device: &B::Device,
        dtype: DType,
        buffers: Vec<FloatTensor<B>>,
        chunks: &[Vec<Piece>],
        shapes: &[Shape],
    ) -> Result<Vec<FloatTensor<B>>>;

    /// Whether the runtime can copy from one device to another by itself; tried, not assumed.
    fn peer(&self, from: &B::Device, to: &B::Device) -> bool;
}

/// The fastest implementation for the tensors of `B`.
pub(crate) fn select<B: Backend>(counters: std::sync::Arc<Counters>) -> Box<dyn CollectiveOps<B>> {
    #[cfg(feature = "cubecl")]
    if let Some(ops) = super::cube::select::<B>(&counters) {
        return ops;
    }
    Box::new(super::host::HostOps::new(counters))
}

/// How tensors get from one member to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transfer {
    /// Both members are the same physical device: the memory is shared and nothing is copied.
    Same,
    /// The runtime copies from device to device (CUDA with NCCL).
    Peer,
    /// Through host memory.
    Host,
}

impl Transfer {
    /// Takes a float tensor to a device.
    ///
    /// # Errors
    ///
    /// What the source device reports when its memory is read.
    pub(crate) fn float<B: Backend>(
        self,
        tensor: FloatTensor<B>,
        device: &B::Device,
    ) -> std::result::Result<FloatTensor<B>, ExecutionError> {
        match self {
            Transfer::Same => Ok(tensor),
            Transfer::Peer => Ok(B::float_to_device(tensor, device)),
            Transfer::Host => Ok(B::float_from_data(read::<B>(tensor)?, device)),
        }
    }

    /// Takes a tensor of any kind to a device; one that is there already stays as it is.
    ///
    /// # Panics
    ///
    /// When the source device reports an error as its memory is read. Batches and models move on a
    /// worker's thread, where a panic becomes the error of that member.
    pub(crate) fn tensor<B: Backend, const D: usize, K: BasicOps<B>>(
        self,
        tensor: Tensor<B, D, K>,
        device: &B::Device,
    ) -> Tensor<B, D, K> {
        if &tensor.device() == device {
            return tensor;
        }
        match self {
            Transfer::Peer => tensor.to_device(device),
            // The members share a device, but this tensor comes from outside the mesh.
            Transfer::Same | Transfer::Host => {
                let dtype = tensor.dtype();
                Tensor::from_data(tensor.into_data(), (device, dtype))
            }
        }
    }
}

/// Reads a float primitive of any rank into host memory.
pub(crate) fn read<B: Backend>(
    tensor: FloatTensor<B>,
) -> std::result::Result<TensorData, ExecutionError> {
    burn::tensor::read_sync(B::float_into_data(tensor))
}

/// What a device reported, as the library's error.
pub(crate) fn device_error(device: impl Debug) -> impl FnOnce(ExecutionError) -> Error {
    move |error| Error::Device {
        device: format!("{device:?}"),
        cause: error.to_string(),
    }
}

/// A value as the type that it is under another name (`FloatTensor<B>` as `CubeTensor<R>`), or the
/// value itself where it is of another type.
#[cfg(any(feature = "cubecl", feature = "flex"))]
pub(crate) fn cast<From: 'static, To: 'static>(value: From) -> std::result::Result<To, From> {
    let mut slot = Some(value);
    if let Some(found) = (&mut slot as &mut dyn std::any::Any)
        .downcast_mut::<Option<To>>()
        .and_then(Option::take)
    {
        return Ok(found);
    }
    match slot {
        Some(value) => Err(value),
        None => unreachable!("only taken where it is returned"),
    }
}
