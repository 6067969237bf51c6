//! What the router asks of a client: operations in, data out.

use super::device::MeshDevice;
use super::session::{Session, next_id};
use super::state::Creation;
use super::{InnerBackend, command::Command};
use crate::layout::Layout;
use burn::tensor::backend::{DTypeUsageSet, ExecutionError};
use burn::tensor::{DType, TensorData};
use burn_ir::{OperationIr, TensorId, TensorIr};
use burn_router::{RouterTensor, RunnerClient};
use burn_std::future::DynFut;
use std::sync::Arc;

/// A handle of an open mesh, held by each of its tensors.
pub struct MeshClient<B: InnerBackend> {
    pub(super) session: Arc<Session<B>>,
}

impl<B: InnerBackend> MeshClient<B> {
    /// Data from the host that is not a batch: every member gets all of it, unless an operation
    /// asks for parts.
    pub(crate) fn register_constant(&self, data: TensorData) -> RouterTensor<Self> {
        self.register_data(data, false)
    }

    /// Gives memory that is free back to the devices.
    pub(crate) fn memory_cleanup(&self) {
        self.session.cleanup();
    }

    fn register_data(&self, data: TensorData, batch: bool) -> RouterTensor<Self> {
        let (id, shape, dtype) = (next_id(), data.shape.clone(), data.dtype);
        let session = &self.session;
        let out = TensorIr::uninit(id, shape.clone(), dtype);
        if session.health.fault().is_none() {
            let mut state = session.state();
            let whole = session.members() == 1 || matches!(dtype, DType::QFloat(_));
            let data = Arc::new(data);
            if whole {
                let layout = Layout::Replicated;
                if session.members() > 1 {
                    let place = super::state::Place::Laid(layout.clone());
                    state.insert(&out, place, true, None);
                }
                let upload = Command::Upload {
                    out: id,
                    data,
                    layout,
                };
                session.send(&mut state, upload);
            } else {
                state.defer(&out, Creation::Data { data, batch });
            }
        }
        RouterTensor::new(id, shape, dtype, self.clone())
    }
}

impl<B: InnerBackend> RunnerClient for MeshClient<B> {
    type Device = MeshDevice<B>;

    fn register_op(&self, op: OperationIr) {
        self.session.register(op);
    }

    fn read_tensor_async(&self, tensor: TensorIr) -> DynFut<Result<TensorData, ExecutionError>> {
        let session = self.session.clone();
        // Queued now, in the order of the program, whenever the future is awaited.
        let pending = session.start_read(tensor);
        Box::pin(async move { session.finish_read(pending) })
    }

    fn sync(&self) -> Result<(), ExecutionError> {
        self.session.sync()
    }

    fn create_empty_handle(&self) -> TensorId {
        next_id()
    }

    fn register_tensor_data(&self, data: TensorData) -> RouterTensor<Self> {
        self.register_data(data, true)
    }

    fn device(&self) -> MeshDevice<B> {
        MeshDevice::open(self.session.clone())
    }

    fn seed(&self, seed: u64) {
        self.session.seed(seed);
    }

    fn dtype_usage(&self, dtype: DType) -> DTypeUsageSet {
        B::dtype_usage(&self.session.core.devices[0], dtype)
    }
}

impl<B: InnerBackend> Clone for MeshClient<B> {
    fn clone(&self) -> Self {
        Self {
            session: self.session.clone(),
        }
    }
}

impl<B: InnerBackend> std::fmt::Debug for MeshClient<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MeshClient").field(&self.session).finish()
    }
}
