//! Operations on quantized tensors, none of which the router has.
//!
//! A quantized tensor is a tensor of the type `QFloat`, which holds the scheme. Moving its
//! elements about is described, as under Burn's fusion, by the operations on floats, with that
//! type on both sides: the router's float operations build just this from a quantized tensor.
//! The rest of [`QTensorOps`] keeps its defaults, which go through floats.

use burn_backend::ops::{FloatTensorOps, QTensorOps};
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::tensor::{Device, FloatTensor, IntTensor, QuantizedTensor};
use burn_backend::{DType, ExecutionError, FloatDType, Shape, Slice, TensorData, TensorMetadata};
use burn_ir::{
    DequantizeOpIr, FloatOperationIr, OperationIr, OperationOutput, QuantizationParametersIr,
    QuantizeOpIr,
};
use burn_router::RunnerClient;

use super::MultiGpu;
use super::forward::Router;
use super::transfer::{read, to_device};
use crate::backend::{InnerBackend, MeshClient};

impl<B: InnerBackend> QTensorOps<Self> for MultiGpu<B> {
    fn q_from_data(data: TensorData, device: &Device<Self>) -> QuantizedTensor<Self> {
        // Values are packed with their scales behind them: such data cannot be divided.
        device.client().register_constant(data)
    }

    fn quantize(
        tensor: FloatTensor<Self>,
        scheme: &QuantScheme,
        qparams: QuantizationParametersPrimitive<Self>,
    ) -> QuantizedTensor<Self> {
        let client = tensor.client.clone();
        let qparams = QuantizationParametersIr {
            scales: qparams.scales.into_ir(),
        };
        let desc = QuantizeOpIr::create(tensor.into_ir(), qparams, *scheme, || {
            client.create_empty_handle()
        });

        client
            .register(OperationIr::Float(
                desc.tensor.dtype,
                FloatOperationIr::Quantize(desc),
            ))
            .output()
    }

    fn dequantize(tensor: QuantizedTensor<Self>, dtype: FloatDType) -> FloatTensor<Self> {
        let client = tensor.client.clone();
        let dtype = DType::from(dtype);
        let desc = DequantizeOpIr::create(tensor.into_ir(), dtype, || client.create_empty_handle());

        client
            .register(OperationIr::Float(
                dtype,
                FloatOperationIr::Dequantize(desc),
            ))
            .output()
    }

    fn q_device(tensor: &QuantizedTensor<Self>) -> Device<Self> {
        tensor.client.device()
    }

    fn q_to_device(tensor: QuantizedTensor<Self>, device: &Device<Self>) -> QuantizedTensor<Self> {
        to_device(tensor, device, MeshClient::register_constant)
    }

    fn q_into_data(
        tensor: QuantizedTensor<Self>,
    ) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        read(tensor)
    }

    fn q_reshape(tensor: QuantizedTensor<Self>, shape: Shape) -> QuantizedTensor<Self> {
        // Backends dequantize to reshape where values are quantized in blocks.
        if tensor.shape() == shape {
            return tensor;
        }

        Router::<B>::float_reshape(tensor, shape)
    }

    fn q_expand(tensor: QuantizedTensor<Self>, shape: Shape) -> QuantizedTensor<Self> {
        Router::<B>::float_expand(tensor, shape)
    }

    fn q_swap_dims(
        tensor: QuantizedTensor<Self>,
        dim1: usize,
        dim2: usize,
    ) -> QuantizedTensor<Self> {
        Router::<B>::float_swap_dims(tensor, dim1, dim2)
    }

    fn q_permute(tensor: QuantizedTensor<Self>, axes: &[usize]) -> QuantizedTensor<Self> {
        Router::<B>::float_permute(tensor, axes)
    }

    fn q_flip(tensor: QuantizedTensor<Self>, axes: &[usize]) -> QuantizedTensor<Self> {
        Router::<B>::float_flip(tensor, axes)
    }

    fn q_gather(
        dim: usize,
        tensor: QuantizedTensor<Self>,
        indices: IntTensor<Self>,
    ) -> QuantizedTensor<Self> {
        Router::<B>::float_gather(dim, tensor, indices)
    }

    fn q_select(
        tensor: QuantizedTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
    ) -> QuantizedTensor<Self> {
        Router::<B>::float_select(tensor, dim, indices)
    }

    fn q_slice(tensor: QuantizedTensor<Self>, slices: &[Slice]) -> QuantizedTensor<Self> {
        Router::<B>::float_slice(tensor, slices)
    }
}
