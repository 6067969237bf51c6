//! What the router asks of a channel.
//!
//! [`MultiGpu`](super::MultiGpu) makes tensors and moves them between devices itself, so that of a
//! channel the router uses little more than its types.

use super::InnerBackend;
use super::client::MeshClient;
use super::device::MeshDevice;
use burn::tensor::{DType, Shape, TensorData, read_sync};
use burn_ir::TensorIr;
use burn_router::{MultiBackendBridge, RouterTensor, RunnerChannel, RunnerClient};
use std::marker::PhantomData;

/// The way from [`MultiGpu`](super::MultiGpu)'s operations to the members of a mesh.
pub struct MeshChannel<B>(PhantomData<fn() -> B>);

impl<B> Clone for MeshChannel<B> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<B> std::fmt::Debug for MeshChannel<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeshChannel")
    }
}

/// The way between meshes: through the host.
pub struct MeshBridge<B>(PhantomData<fn() -> B>);

impl<B> std::fmt::Debug for MeshBridge<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeshBridge")
    }
}

impl<B: InnerBackend> MultiBackendBridge for MeshBridge<B> {
    type TensorHandle = TensorData;
    type Device = MeshDevice<B>;

    fn change_backend_float(tensor: TensorData, _: Shape, _: &MeshDevice<B>) -> TensorData {
        tensor
    }

    fn change_backend_int(tensor: TensorData, _: Shape, _: &MeshDevice<B>) -> TensorData {
        tensor
    }

    fn change_backend_bool(tensor: TensorData, _: Shape, _: &MeshDevice<B>) -> TensorData {
        tensor
    }
}

impl<B: InnerBackend> RunnerChannel for MeshChannel<B> {
    type Device = MeshDevice<B>;
    type Bridge = MeshBridge<B>;
    type Client = MeshClient<B>;
    type FloatElem = B::FloatElem;
    type IntElem = B::IntElem;
    type BoolElem = B::BoolElem;

    fn name(device: &MeshDevice<B>) -> String {
        format!("{device:?}")
    }

    fn init_client(device: &MeshDevice<B>) -> MeshClient<B> {
        device.client()
    }

    fn get_tensor_handle(tensor: &TensorIr, client: &MeshClient<B>) -> TensorData {
        match read_sync(client.read_tensor_async(tensor.clone())) {
            Ok(data) => data,
            Err(error) => panic!("{} cannot be read: {error}", tensor.id),
        }
    }

    fn register_tensor(
        client: &MeshClient<B>,
        handle: TensorData,
        _: Shape,
        _: DType,
    ) -> RouterTensor<MeshClient<B>> {
        client.register_tensor_data(handle)
    }
}
