//! Collectives in plain Rust, for every backend without CubeCL.
//!
//! Flex keeps its tensors in host memory, so its buffers are read in place. Of other backends
//! (NdArray, LibTorch, Router, ...) the data is read out and given back.

use super::layout::Piece;
use super::ops::{CollectiveOps, device_error, read};
use super::stats::Counters;
use crate::error::{Error, Result};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Element, Shape, TensorData, bf16, f16};
use burn_backend::{TensorMetadata, tensor::FloatTensor};
use burn_multigpu_kernels::cpu;
use bytemuck::Pod;
use std::sync::Arc;

/// Runs `$body` with `$T` as the Rust type of a float dtype.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::F32 | DType::Flex32 => {
                type $T = f32;
                $body
            }
            DType::F16 => {
                type $T = f16;
                $body
            }
            DType::BF16 => {
                type $T = bf16;
                $body
            }
            dtype => Err(Error::UnsupportedDType {
                dtype: format!("{dtype:?}"),
            }),
        }
    };
}

#[derive(Debug)]
pub(super) struct HostOps {
    counters: Arc<Counters>,
}

impl HostOps {
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self { counters }
    }
}

impl<B: Backend> CollectiveOps<B> for HostOps {
    fn pack(
        &self,
        device: &B::Device,
        dtype: DType,
        tensors: Vec<FloatTensor<B>>,
        chunks: &[Vec<Piece>],
    ) -> Result<Vec<FloatTensor<B>>> {
        let sources = views::<B>(tensors, device)?;
        with_float!(dtype, T => chunks
            .iter()
            .map(|pieces| {
                let mut buffer = Vec::<T>::with_capacity(pieces.iter().map(|piece| piece.len).sum());
                for piece in pieces {
                    let source = sources[piece.tensor].as_slice::<T>()?;
                    buffer.extend_from_slice(&source[piece.offset..piece.offset + piece.len]);
                }
                Ok(upload::<B, T>(buffer, None, device))
            })
            .collect())
    }

    fn sum(
        &self,
        device: &B::Device,
        dtype: DType,
        buffers: Vec<FloatTensor<B>>,
        weights: &[f64],
    ) -> Result<FloatTensor<B>> {
        let views = views::<B>(buffers, device)?;
        with_float!(dtype, T => {
            let inputs = views.iter().map(HostView::as_slice::<T>).collect::<Result<Vec<_>>>()?;
            let mut output = vec![<T as bytemuck::Zeroable>::zeroed(); inputs.first().map_or(0, |first| first.len())];
            cpu::weighted_sum(&inputs, weights, &mut output);
            self.counters.host_sum();
            Ok(upload::<B, T>(output, None, device))
        })
    }

    fn unpack(
        &self,
        device: &B::Device,
        dtype: DType,
        buffers: Vec<FloatTensor<B>>,
        chunks: &[Vec<Piece>],
        shapes: &[Shape],
    ) -> Result<Vec<FloatTensor<B>>> {
        let views = views::<B>(buffers, device)?;
        with_float!(dtype, T => {
            let mut outputs: Vec<Vec<T>> = shapes
                .iter()
                .map(|shape| Vec::with_capacity(shape.num_elements()))
                .collect();
            // Chunks and the pieces in them are in the order of the elements of each tensor.
            for (view, pieces) in views.iter().zip(chunks) {
                let mut rest = view.as_slice::<T>()?;
                for piece in pieces {
                    let (part, after) = rest.split_at(piece.len);
                    outputs[piece.tensor].extend_from_slice(part);
                    rest = after;
                }
            }
            Ok(outputs
                .into_iter()
                .zip(shapes)
                .map(|(output, shape)| upload::<B, T>(output, Some(shape), device))
                .collect())
        })
    }

    fn peer(&self, _from: &B::Device, _to: &B::Device) -> bool {
        false
    }
}

/// A tensor's elements in host memory, in order.
enum HostView {
    #[cfg(feature = "flex")]
    Flex(burn_flex::FlexTensor),
    Data(TensorData),
}

impl HostView {
    fn as_slice<T: Element + Pod>(&self) -> Result<&[T]> {
        let bytes = match self {
            #[cfg(feature = "flex")]
            HostView::Flex(tensor) => {
                let start = tensor.layout().start_offset() * size_of::<T>();
                let len = tensor.layout().num_elements() * size_of::<T>();
                &tensor.bytes()[start..start + len]
            }
            HostView::Data(data) => data.as_bytes(),
        };
        if bytes.is_empty() {
            // An empty buffer points nowhere in particular and need not be aligned.
            return Ok(&[]);
        }
        bytemuck::try_cast_slice(bytes).map_err(|error| Error::UnsupportedDType {
            dtype: format!("{:?} in host memory ({error})", T::dtype()),
        })
    }
}

fn views<B: Backend>(tensors: Vec<FloatTensor<B>>, device: &B::Device) -> Result<Vec<HostView>> {
    tensors
        .into_iter()
        .map(|tensor| {
            #[cfg(feature = "flex")]
            let tensor = match super::ops::cast::<_, burn_flex::FlexTensor>(tensor) {
                Ok(flex) => return Ok(HostView::Flex(flex.to_contiguous())),
                Err(tensor) => tensor,
            };
            read::<B>(tensor)
                .map(HostView::Data)
                .map_err(device_error(device))
        })
        .collect()
}

fn upload<B: Backend, T: Element + Pod>(
    elements: Vec<T>,
    shape: Option<&Shape>,
    device: &B::Device,
) -> FloatTensor<B> {
    let shape = shape
        .cloned()
        .unwrap_or_else(|| Shape::new([elements.len()]));
    let tensor = B::float_from_data(TensorData::new(elements, shape), device);
    debug_assert_eq!(tensor.dtype().size(), size_of::<T>());
    tensor
}
