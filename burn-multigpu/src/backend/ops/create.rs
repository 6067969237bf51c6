//! Creation of tensors on a mesh.
//!
//! The router asks its own table for the client of a device; here the device knows its client,
//! which is gone when the mesh is. The operations are the router's.

use burn_backend::{DType, Distribution, Scalar, Shape};
use burn_ir::{BaseOperationIr, CreationOpIr, FullOpIr, OperationIr, OperationOutput, RandomOpIr};
use burn_router::RunnerClient;

use super::transfer::MeshTensor;
use crate::backend::{InnerBackend, MeshDevice};

/// Registers one of the creation operations that need no value. `op` and `kind` wrap it:
/// `BaseOperationIr::Zeros` and `OperationIr::BaseFloat` for zeros that are floats.
pub(super) fn create<B: InnerBackend>(
    shape: Shape,
    device: &MeshDevice<B>,
    dtype: DType,
    op: impl FnOnce(CreationOpIr) -> BaseOperationIr,
    kind: impl FnOnce(BaseOperationIr) -> OperationIr,
) -> MeshTensor<B> {
    let client = device.client();
    let desc = CreationOpIr::create(shape, dtype, || client.create_empty_handle());

    client.register(kind(op(desc))).output()
}

/// Registers a tensor of one value.
pub(super) fn full<B: InnerBackend>(
    shape: Shape,
    value: Scalar,
    device: &MeshDevice<B>,
    dtype: DType,
    op: impl FnOnce(FullOpIr) -> OperationIr,
) -> MeshTensor<B> {
    let client = device.client();
    let desc = FullOpIr::create(shape, dtype, value.into(), || client.create_empty_handle());

    client.register(op(desc)).output()
}

/// Registers a tensor of random numbers.
pub(super) fn random<B: InnerBackend>(
    shape: Shape,
    distribution: Distribution,
    device: &MeshDevice<B>,
    dtype: DType,
    op: impl FnOnce(RandomOpIr) -> OperationIr,
) -> MeshTensor<B> {
    let client = device.client();
    let desc = RandomOpIr::create(shape, dtype, distribution, || client.create_empty_handle());

    client.register(op(desc)).output()
}
