//! Operations on bool tensors.

use burn_backend::ops::BoolTensorOps;
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IntTensor};
use burn_backend::{
    BoolDType, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};
use burn_ir::{BaseOperationIr, OperationIr};
use burn_router::RunnerClient;

use super::MultiGpu;
use super::create::create;
use super::forward::{Router, forward};
use super::transfer::{read, to_device};
use crate::backend::{InnerBackend, MeshClient};

impl<B: InnerBackend> BoolTensorOps<Self> for MultiGpu<B> {
    fn bool_from_data(data: TensorData, device: &Device<Self>) -> BoolTensor<Self> {
        device.client().register_tensor_data(data)
    }

    fn bool_into_data(
        tensor: BoolTensor<Self>,
    ) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        read(tensor)
    }

    fn bool_device(tensor: &BoolTensor<Self>) -> Device<Self> {
        tensor.client.device()
    }

    fn bool_to_device(tensor: BoolTensor<Self>, device: &Device<Self>) -> BoolTensor<Self> {
        to_device(tensor, device, MeshClient::register_tensor_data)
    }

    fn bool_empty(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self> {
        create(
            shape,
            device,
            dtype.into(),
            BaseOperationIr::Empty,
            OperationIr::BaseBool,
        )
    }

    fn bool_zeros(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self> {
        create(
            shape,
            device,
            dtype.into(),
            BaseOperationIr::Zeros,
            OperationIr::BaseBool,
        )
    }

    fn bool_ones(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self> {
        create(
            shape,
            device,
            dtype.into(),
            BaseOperationIr::Ones,
            OperationIr::BaseBool,
        )
    }

    forward! { BoolTensorOps:
        fn bool_into_int(tensor: BoolTensor<Self>, out_dtype: IntDType) -> IntTensor<Self>;
        fn bool_into_float(tensor: BoolTensor<Self>, out_dtype: FloatDType) -> FloatTensor<Self>;
        fn bool_reshape(tensor: BoolTensor<Self>, shape: Shape) -> BoolTensor<Self>;
        fn bool_slice(tensor: BoolTensor<Self>, slices: &[Slice]) -> BoolTensor<Self>;
        fn bool_slice_assign(
            tensor: BoolTensor<Self>,
            slices: &[Slice],
            value: BoolTensor<Self>,
        ) -> BoolTensor<Self>;
        fn bool_equal(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_not(tensor: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_and(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_or(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_swap_dims(tensor: BoolTensor<Self>, dim1: usize, dim2: usize) -> BoolTensor<Self>;
        fn bool_permute(tensor: BoolTensor<Self>, axes: &[usize]) -> BoolTensor<Self>;
        fn bool_flip(tensor: BoolTensor<Self>, axes: &[usize]) -> BoolTensor<Self>;
        fn bool_expand(tensor: BoolTensor<Self>, shape: Shape) -> BoolTensor<Self>;
        fn bool_cat(tensors: Vec<BoolTensor<Self>>, dim: usize) -> BoolTensor<Self>;
        fn bool_repeat_dim(tensor: BoolTensor<Self>, dim: usize, times: usize) -> BoolTensor<Self>;
        fn bool_unfold(
            tensor: BoolTensor<Self>,
            dim: usize,
            size: usize,
            step: usize,
        ) -> BoolTensor<Self>;
        fn bool_mask_where(
            tensor: BoolTensor<Self>,
            mask: BoolTensor<Self>,
            value: BoolTensor<Self>,
        ) -> BoolTensor<Self>;
        fn bool_mask_fill(
            tensor: BoolTensor<Self>,
            mask: BoolTensor<Self>,
            value: Scalar,
        ) -> BoolTensor<Self>;
        fn bool_gather(
            dim: usize,
            tensor: BoolTensor<Self>,
            indices: IntTensor<Self>,
        ) -> BoolTensor<Self>;
        fn bool_scatter_or(
            dim: usize,
            tensor: BoolTensor<Self>,
            indices: IntTensor<Self>,
            value: BoolTensor<Self>,
        ) -> BoolTensor<Self>;
        fn bool_equal_elem(lhs: BoolTensor<Self>, rhs: Scalar) -> BoolTensor<Self>;
        fn bool_select(
            tensor: BoolTensor<Self>,
            dim: usize,
            indices: IntTensor<Self>,
        ) -> BoolTensor<Self>;
        fn bool_select_or(
            tensor: BoolTensor<Self>,
            dim: usize,
            indices: IntTensor<Self>,
            value: BoolTensor<Self>,
        ) -> BoolTensor<Self>;
    }
}
