//! Collectives with CubeCL kernels, for backends whose tensors are CubeCL's.

use super::layout::Piece;
use super::ops::{CollectiveOps, cast};
use super::stats::Counters;
use crate::error::{Error, Result};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Shape};
use burn_backend::TensorMetadata;
use burn_backend::tensor::{Device, FloatTensor};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::{CubeRuntime, tensor::CubeTensor};
use burn_multigpu_kernels::{FloatDtype, KernelError, Region, pack, unpack, weighted_sum};
use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

/// What runs on a device: from input tensors to output tensors.
pub(super) type DeviceFn<R> = Arc<
    dyn Fn(Vec<CubeTensor<R>>) -> std::result::Result<Vec<CubeTensor<R>>, KernelError>
        + Send
        + Sync,
>;

/// The shape and dtype of an output.
pub(super) type Output = (Shape, DType);

/// The implementation for `B`, if its float tensors are those of a CubeCL runtime compiled in.
pub(super) fn select<B: Backend>(counters: &Arc<Counters>) -> Option<Box<dyn CollectiveOps<B>>> {
    let found: Option<Box<dyn CollectiveOps<B>>> = None;
    #[cfg(feature = "cuda")]
    let found = found
        .or_else(|| CubeOps::<B, cubecl::cuda::CudaRuntime>::of(counters, super::peer::nccl::<B>));
    #[cfg(feature = "wgpu")]
    let found = found
        .or_else(|| CubeOps::<B, cubecl::wgpu::WgpuRuntime>::of(counters, super::peer::none::<B>));
    #[cfg(feature = "rocm")]
    let found = found
        .or_else(|| CubeOps::<B, cubecl::hip::HipRuntime>::of(counters, super::peer::none::<B>));
    found
}

type Peer<B> = fn(&Device<B>, &Device<B>) -> bool;
type Run<B, R> =
    fn(&'static str, Vec<FloatTensor<B>>, Vec<Output>, DeviceFn<R>) -> Result<Vec<FloatTensor<B>>>;

struct CubeOps<B: Backend, R: CubeRuntime> {
    /// Directly, or as an operation of Burn's fusion.
    run: Run<B, R>,
    peer: Peer<B>,
    counters: Arc<Counters>,
}

impl<B: Backend, R: CubeRuntime> fmt::Debug for CubeOps<B, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CubeOps<{}>", std::any::type_name::<R>())
    }
}

impl<B: Backend, R: CubeRuntime> CubeOps<B, R> {
    fn of(counters: &Arc<Counters>, peer: Peer<B>) -> Option<Box<dyn CollectiveOps<B>>> {
        let tensor = TypeId::of::<FloatTensor<B>>();
        let run: Run<B, R> = if tensor == TypeId::of::<CubeTensor<R>>() {
            direct::<B, R>
        } else {
            #[cfg(not(feature = "fusion"))]
            return None;
            #[cfg(feature = "fusion")]
            if super::fused::is_fused::<B, R>() {
                super::fused::run::<B, R>
            } else {
                return None;
            }
        };
        Some(Box::new(Self {
            run,
            peer,
            counters: counters.clone(),
        }))
    }
}

/// Runs on CubeCL tensors at once.
fn direct<B: Backend, R: CubeRuntime>(
    name: &'static str,
    inputs: Vec<FloatTensor<B>>,
    _outputs: Vec<Output>,
    function: DeviceFn<R>,
) -> Result<Vec<FloatTensor<B>>> {
    let wrong = |_| foreign_tensor(name);
    let inputs = inputs
        .into_iter()
        .map(|tensor| cast::<_, CubeTensor<R>>(tensor).map_err(wrong))
        .collect::<Result<_>>()?;
    let outputs = function(inputs)?;
    // A launch that failed is not seen by later reads on wgpu, which would return stale memory.
    if let Some(output) = outputs.first() {
        output.client.flush().map_err(|error| Error::Device {
            device: format!("{:?}", output.device),
            cause: format!("{name}: {error}"),
        })?;
    }
    outputs
        .into_iter()
        .map(|tensor| cast::<CubeTensor<R>, _>(tensor).map_err(|_| foreign_tensor(name)))
        .collect()
}

/// Cannot happen after [`select`]; an error all the same, so that nothing panics on a worker.
pub(super) fn foreign_tensor(name: &str) -> Error {
    Error::UnsupportedDType {
        dtype: format!("a tensor of another runtime ({name})"),
    }
}

impl<B: Backend, R: CubeRuntime> CollectiveOps<B> for CubeOps<B, R> {
    fn pack(
        &self,
        _device: &B::Device,
        dtype: DType,
        tensors: Vec<FloatTensor<B>>,
        chunks: &[Vec<Piece>],
    ) -> Result<Vec<FloatTensor<B>>> {
        let kind = float_dtype(dtype)?;
        self.counters.kernel_pack();
        let outputs = chunks
            .iter()
            .map(|pieces| (flat(len(pieces)), dtype))
            .collect();
        let chunks = chunks.to_vec();
        let function = move |tensors: Vec<CubeTensor<R>>| {
            let tensors: Vec<_> = tensors.into_iter().map(into_contiguous).collect();
            let pack = |pieces: &Vec<Piece>| {
                let output = empty(&tensors[0], flat(len(pieces)));
                let inputs: Vec<Region> = pieces
                    .iter()
                    .map(|piece| region(&tensors[piece.tensor], piece.offset, piece.len))
                    .collect();
                pack(&output.client, kind, &inputs, &whole(&output))?;
                Ok(output)
            };
            chunks.iter().map(pack).collect()
        };
        (self.run)("multigpu_pack", tensors, outputs, Arc::new(function))
    }

    fn sum(
        &self,
        _device: &B::Device,
        dtype: DType,
        buffers: Vec<FloatTensor<B>>,
        weights: &[f64],
    ) -> Result<FloatTensor<B>> {
        let kind = float_dtype(dtype)?;
        self.counters.kernel_sum();
        let shape = buffers
            .first()
            .map_or_else(|| flat(0), TensorMetadata::shape);
        let weights = weights.to_vec();
        let function = move |buffers: Vec<CubeTensor<R>>| {
            let buffers: Vec<_> = buffers.into_iter().map(into_contiguous).collect();
            let output = empty(&buffers[0], buffers[0].shape());
            let inputs: Vec<Region> = buffers.iter().map(whole).collect();
            weighted_sum(&output.client, kind, &inputs, &weights, &whole(&output))?;
            Ok(vec![output])
        };
        (self.run)(
            "multigpu_sum",
            buffers,
            vec![(shape, dtype)],
            Arc::new(function),
        )?
        .pop()
        .ok_or_else(|| foreign_tensor("multigpu_sum"))
    }

    fn unpack(
        &self,
        _device: &B::Device,
        dtype: DType,
        buffers: Vec<FloatTensor<B>>,
        chunks: &[Vec<Piece>],
        shapes: &[Shape],
    ) -> Result<Vec<FloatTensor<B>>> {
        let kind = float_dtype(dtype)?;
        self.counters.kernel_pack();
        let outputs = shapes.iter().map(|shape| (shape.clone(), dtype)).collect();
        let (chunks, shapes) = (chunks.to_vec(), shapes.to_vec());
        let function = move |buffers: Vec<CubeTensor<R>>| {
            let buffers: Vec<_> = buffers.into_iter().map(into_contiguous).collect();
            let outputs: Vec<_> = shapes
                .iter()
                .map(|shape| empty(&buffers[0], shape.clone()))
                .collect();
            for (buffer, pieces) in buffers.iter().zip(&chunks) {
                let targets: Vec<Region> = pieces
                    .iter()
                    .map(|piece| region(&outputs[piece.tensor], piece.offset, piece.len))
                    .collect();
                unpack(&buffer.client, kind, &whole(buffer), &targets)?;
            }
            Ok(outputs)
        };
        (self.run)("multigpu_unpack", buffers, outputs, Arc::new(function))
    }

    fn peer(&self, from: &B::Device, to: &B::Device) -> bool {
        (self.peer)(from, to)
    }
}

fn float_dtype(dtype: DType) -> Result<FloatDtype> {
    match dtype {
        DType::F64 => Ok(FloatDtype::F64),
        DType::F32 | DType::Flex32 => Ok(FloatDtype::F32),
        DType::F16 => Ok(FloatDtype::F16),
        DType::BF16 => Ok(FloatDtype::BF16),
        dtype => Err(Error::UnsupportedDType {
            dtype: format!("{dtype:?}"),
        }),
    }
}

fn len(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.len).sum()
}

fn flat(len: usize) -> Shape {
    Shape::new([len])
}

/// Uninitialised memory beside another tensor.
fn empty<R: CubeRuntime>(like: &CubeTensor<R>, shape: Shape) -> CubeTensor<R> {
    let bytes = shape.num_elements().max(1) * like.elem_size();
    let handle = like.client.empty(bytes);
    CubeTensor::new_contiguous(
        like.client.clone(),
        like.device.clone(),
        shape,
        handle,
        like.dtype,
    )
}

fn region<R: CubeRuntime>(tensor: &CubeTensor<R>, offset: usize, len: usize) -> Region {
    Region {
        handle: tensor.handle.clone(),
        offset,
        len,
    }
}

fn whole<R: CubeRuntime>(tensor: &CubeTensor<R>) -> Region {
    region(tensor, 0, tensor.shape().num_elements())
}
