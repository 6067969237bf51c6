//! Tensors on their way off a mesh: to the host, or through it to another mesh.
//!
//! Two meshes share no client, and possibly no device. A tensor that moves between them does so by
//! its data, as data that comes from the host does, and its layout is decided anew.

use burn_backend::{ExecutionError, TensorData, try_read_sync};
use burn_router::{RouterTensor, RunnerClient};

use crate::backend::{InnerBackend, MeshClient, MeshDevice};

/// The tensor primitive of [`MultiGpu`](super::MultiGpu), of every kind.
pub(super) type MeshTensor<B> = RouterTensor<MeshClient<B>>;

/// Reads a tensor, in the element type that it has. The read is queued at once, so that several
/// can be under way before the first is awaited.
pub(super) fn read<B: InnerBackend>(
    tensor: MeshTensor<B>,
) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send + use<B> {
    let client = tensor.client.clone();

    client.read_tensor_async(tensor.into_ir())
}

/// The tensor on another mesh, where `place` puts its data. Waits for the data.
///
/// # Panics
///
/// When the tensor cannot be read: Burn's signature has no room for an error.
pub(super) fn to_device<B: InnerBackend>(
    tensor: MeshTensor<B>,
    device: &MeshDevice<B>,
    place: impl FnOnce(&MeshClient<B>, TensorData) -> MeshTensor<B>,
) -> MeshTensor<B> {
    let source = tensor.client.device();
    if source == *device {
        return tensor;
    }

    match try_read_sync(read(tensor)) {
        Some(Ok(data)) => place(&device.client(), data),
        Some(Err(error)) => panic!(
            "cannot move a tensor from {source:?} to {device:?}, its data cannot be read: {error}"
        ),
        None => panic!(
            "cannot move a tensor from {source:?} to {device:?}, this platform cannot wait for its \
             data: read it with `into_data_async` and create the tensor from the data"
        ),
    }
}
