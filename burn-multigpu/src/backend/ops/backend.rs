//! The backend type, and its traits that hold no operations on tensors.

use core::fmt;
use core::marker::PhantomData;

use burn_backend::ops::TransactionOps;
use burn_backend::tensor::Device;
use burn_backend::{Backend, BackendTypes, DType, DTypeUsageSet, ExecutionError};
use burn_router::{RouterTensor, RunnerClient};

use crate::backend::{InnerBackend, MeshClient, MeshDevice};

/// A Burn backend whose device is a mesh: several devices of the backend `B` that act as one.
///
/// Each operation is partitioned over the devices of the mesh that its tensors are on, so that a
/// program written for `B` runs on all of them with the results that one of them gives. Around it,
/// `Autodiff` works as around any other backend.
pub struct MultiGpu<B>(PhantomData<B>);

impl<B> Clone for MultiGpu<B> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<B> Default for MultiGpu<B> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<B> fmt::Debug for MultiGpu<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MultiGpu")
    }
}

impl<B: InnerBackend> BackendTypes for MultiGpu<B> {
    type Device = MeshDevice<B>;

    type FloatTensorPrimitive = RouterTensor<MeshClient<B>>;
    type FloatElem = B::FloatElem;

    type IntTensorPrimitive = RouterTensor<MeshClient<B>>;
    type IntElem = B::IntElem;

    type BoolTensorPrimitive = RouterTensor<MeshClient<B>>;
    type BoolElem = B::BoolElem;

    type QuantizedTensorPrimitive = RouterTensor<MeshClient<B>>;
}

impl<B: InnerBackend> Backend for MultiGpu<B> {
    fn name(device: &Device<Self>) -> String {
        // Names are for people: asking for one of a mesh that is not open must not open it.
        match device.inner_device() {
            Some(inner) => format!("multigpu<{}>", B::name(&inner)),
            None => format!("multigpu<{}>", B::spec_name()),
        }
    }

    fn seed(device: &Device<Self>, seed: u64) {
        device.client().seed(seed);
    }

    fn sync(device: &Device<Self>) -> Result<(), ExecutionError> {
        device.client().sync()
    }

    fn dtype_usage(device: &Device<Self>, dtype: DType) -> DTypeUsageSet {
        device.client().dtype_usage(dtype)
    }

    fn device_count(type_id: u16) -> usize {
        B::device_count(type_id)
    }

    fn memory_cleanup(device: &Device<Self>) {
        device.client().memory_cleanup();
    }
}

// The defaults are made of the other operations, activations by the rules that partition those.
impl<B: InnerBackend> TransactionOps<Self> for MultiGpu<B> {}
