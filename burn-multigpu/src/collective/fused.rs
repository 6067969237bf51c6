//! Collectives below Burn's fusion: kernels run as custom operations of its streams, so that they
//! are ordered with the operations that the user's program queued.

use super::cube::{DeviceFn, Output, foreign_tensor};
use super::ops::cast;
use crate::error::Result;
use burn::backend::ir::{CustomOpIr, HandleContainer, OperationIr, TensorIr};
use burn::tensor::backend::Backend;
use burn_backend::tensor::FloatTensor;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl::{CubeBackend, CubeRuntime};
use burn_fusion::stream::{Operation, OperationStreams};
use burn_fusion::{FusionRuntime, FusionTensor};
use std::any::TypeId;
use std::fmt;

/// Whether the float tensors of `B` are those of fusion over the runtime `R`.
pub(super) fn is_fused<B: Backend, R: CubeRuntime>() -> bool {
    TypeId::of::<FloatTensor<B>>() == TypeId::of::<FusionTensor<FusionCubeRuntime<R>>>()
}

/// The backend below the fusion; its element types play no part in moving handles.
type Inner<R> = CubeBackend<R, f32, i32, u8>;

struct Custom<R: CubeRuntime> {
    desc: CustomOpIr,
    function: DeviceFn<R>,
}

impl<R: CubeRuntime> fmt::Debug for Custom<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").field("desc", &self.desc).finish()
    }
}

impl<R: CubeRuntime> Operation<FusionCubeRuntime<R>> for Custom<R> {
    fn execute(
        &self,
        handles: &mut HandleContainer<<FusionCubeRuntime<R> as FusionRuntime>::FusionHandle>,
    ) {
        let inputs = self
            .desc
            .inputs
            .iter()
            .map(|input| handles.get_float_tensor::<Inner<R>>(input))
            .collect();
        // The stream has no way to return an error: a panic here reaches the member's worker as a
        // failed operation.
        let outputs = (self.function)(inputs).unwrap_or_else(|error| panic!("{error}"));
        for (ir, tensor) in self.desc.outputs.iter().zip(outputs) {
            handles.register_float_tensor::<Inner<R>>(&ir.id, tensor);
        }
    }
}

/// Queues the function on the stream of its inputs.
pub(super) fn run<B: Backend, R: CubeRuntime>(
    name: &'static str,
    inputs: Vec<FloatTensor<B>>,
    outputs: Vec<Output>,
    function: DeviceFn<R>,
) -> Result<Vec<FloatTensor<B>>> {
    let inputs: Vec<FusionTensor<FusionCubeRuntime<R>>> = inputs
        .into_iter()
        .map(|tensor| cast(tensor).map_err(|_| foreign_tensor(name)))
        .collect::<Result<_>>()?;
    let client = inputs
        .first()
        .ok_or_else(|| foreign_tensor(name))?
        .client
        .clone();
    let streams = OperationStreams::with_inputs(inputs.iter());
    let outputs: Vec<TensorIr> = outputs
        .into_iter()
        .map(|(shape, dtype)| TensorIr::uninit(client.create_empty_handle(), shape, dtype))
        .collect();
    let inputs: Vec<TensorIr> = inputs.into_iter().map(FusionTensor::into_ir).collect();
    let desc = CustomOpIr::new(name, &inputs, &outputs);
    client
        .register(
            streams,
            OperationIr::Custom(desc.clone()),
            Custom { desc, function },
        )
        .into_iter()
        .map(|tensor| cast(tensor).map_err(|_| foreign_tensor(name)))
        .collect()
}
