//! Operations on quantized tensors. The router's runner has none, so a member keeps these tensors
//! itself; they are always whole.

use super::super::InnerBackend;
use super::Primitive;
use super::worker::{Stop, Worker};
use burn::tensor::backend::ExecutionError;
use burn::tensor::{TensorData, read_sync};
use burn_backend::quantization::QuantizationParametersPrimitive;
use burn_backend::tensor::{IntTensor, QuantizedTensor};
use burn_ir::{BaseOperationIr, FloatOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};
use std::collections::HashMap;

/// A member's quantized tensors.
pub(in super::super) struct Quantized<B: InnerBackend>(HashMap<TensorId, QuantizedTensor<B>>);

impl<B: InnerBackend> Default for Quantized<B> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<B: InnerBackend> Quantized<B> {
    pub(super) fn insert(&mut self, id: TensorId, tensor: QuantizedTensor<B>) {
        self.0.insert(id, tensor);
    }

    pub(super) fn remove(&mut self, id: TensorId) {
        self.0.remove(&id);
    }

    fn get(&mut self, tensor: &TensorIr) -> Result<QuantizedTensor<B>, Stop> {
        let found = match tensor.status {
            TensorStatus::ReadWrite => self.0.remove(&tensor.id),
            _ => self.0.get(&tensor.id).cloned(),
        };
        found.ok_or_else(|| Stop::Device(format!("quantized tensor {} is unknown", tensor.id)))
    }
}

impl<B: InnerBackend> Worker<B> {
    pub(super) fn run_quantized(&mut self, op: &OperationIr) -> Result<(), Stop> {
        match op {
            OperationIr::Float(_, FloatOperationIr::Quantize(desc)) => {
                let tensor = self.float_input(&desc.tensor)?;
                let scales = self.float_input(&desc.qparams.scales)?;
                let qparams = QuantizationParametersPrimitive { scales };
                let out = B::quantize(tensor, &desc.scheme, qparams);
                self.quantized.insert(desc.out.id, out);
            }
            OperationIr::Float(_, FloatOperationIr::Dequantize(desc)) => {
                let tensor = self.quantized.get(&desc.input)?;
                let out = B::dequantize(tensor, desc.out.dtype.into());
                let shape = desc.out.shape.clone();
                self.register(desc.out.id, Primitive::Float(out), shape, desc.out.dtype);
            }
            OperationIr::BaseFloat(op) => self.run_quantized_view(op)?,
            other => return Err(unsupported(other)),
        }
        Ok(())
    }

    fn run_quantized_view(&mut self, op: &BaseOperationIr) -> Result<(), Stop> {
        let (id, out) = match op {
            BaseOperationIr::Reshape(desc) => {
                let tensor = self.quantized.get(&desc.input)?;
                (desc.out.id, B::q_reshape(tensor, desc.out.shape.clone()))
            }
            BaseOperationIr::Expand(desc) => {
                let tensor = self.quantized.get(&desc.input)?;
                (desc.out.id, B::q_expand(tensor, desc.out.shape.clone()))
            }
            BaseOperationIr::SwapDims(desc) => {
                let tensor = self.quantized.get(&desc.input)?;
                (desc.out.id, B::q_swap_dims(tensor, desc.dim1, desc.dim2))
            }
            BaseOperationIr::Permute(desc) => {
                let tensor = self.quantized.get(&desc.input)?;
                (desc.out.id, B::q_permute(tensor, &desc.axes))
            }
            BaseOperationIr::Flip(desc) => {
                let tensor = self.quantized.get(&desc.input)?;
                (desc.out.id, B::q_flip(tensor, &desc.axes))
            }
            BaseOperationIr::Slice(desc) => {
                let tensor = self.quantized.get(&desc.tensor)?;
                (desc.out.id, B::q_slice(tensor, &desc.ranges))
            }
            BaseOperationIr::Gather(desc) => {
                let tensor = self.quantized.get(&desc.tensor)?;
                let indices = self.int_input(&desc.indices)?;
                (desc.out.id, B::q_gather(desc.dim, tensor, indices))
            }
            BaseOperationIr::Select(desc) => {
                let tensor = self.quantized.get(&desc.tensor)?;
                let indices = self.int_input(&desc.indices)?;
                (desc.out.id, B::q_select(tensor, desc.dim, indices))
            }
            other => return Err(unsupported(&OperationIr::BaseFloat(other.clone()))),
        };
        self.quantized.insert(id, out);
        Ok(())
    }

    pub(super) fn read_quantized(
        &mut self,
        tensor: &TensorIr,
    ) -> Result<TensorData, ExecutionError> {
        let read = TensorIr {
            status: TensorStatus::ReadOnly,
            ..tensor.clone()
        };
        match self.quantized.get(&read) {
            Ok(tensor) => read_sync(B::q_into_data(tensor)),
            Err(_) => Err(ExecutionError::WithContext {
                reason: format!("quantized tensor {} is unknown", tensor.id),
            }),
        }
    }

    fn float_input(&self, tensor: &TensorIr) -> Result<burn_backend::tensor::FloatTensor<B>, Stop> {
        match self.input(tensor) {
            Primitive::Float(tensor) => Ok(tensor),
            _ => Err(Stop::Device(format!(
                "tensor {} is not of floats",
                tensor.id
            ))),
        }
    }

    fn int_input(&self, tensor: &TensorIr) -> Result<IntTensor<B>, Stop> {
        match self.input(tensor) {
            Primitive::Int(tensor) => Ok(tensor),
            _ => Err(Stop::Device(format!(
                "tensor {} is not of integers",
                tensor.id
            ))),
        }
    }
}

fn unsupported(op: &OperationIr) -> Stop {
    Stop::Device(format!(
        "{} takes no quantized tensors; dequantize them first",
        crate::partition::ir::name(op)
    ))
}
