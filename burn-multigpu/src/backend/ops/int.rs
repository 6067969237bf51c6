//! Operations on int tensors.

use core::ops::Range;

use burn_backend::ops::IntTensorOps;
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{
    BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice,
    TensorData, TensorMetadata,
};
use burn_ir::{
    BaseOperationIr, NumericOperationIr, OperationIr, OperationOutput, ReduceDimWithIndicesOpIr,
};
use burn_router::RunnerClient;

use super::create::{create, full, random};
use super::forward::{Router, forward};
use super::transfer::{MeshTensor, read, to_device};
use super::{MultiGpu, inner};
use crate::backend::{InnerBackend, MeshClient};

/// Registers a reduction that gives values and their indices.
///
/// The indices of an int tensor are of its own type, as those of `int_argmax` are. The router
/// declares the default int type, which is wrong for any other tensor.
fn reduce_with_indices<B: InnerBackend>(
    tensor: MeshTensor<B>,
    dim: usize,
    op: impl FnOnce(ReduceDimWithIndicesOpIr) -> NumericOperationIr,
) -> (MeshTensor<B>, MeshTensor<B>) {
    let client = tensor.client.clone();
    let dtype = tensor.dtype();
    let desc = ReduceDimWithIndicesOpIr::create(tensor.into_ir(), dim, dtype, || {
        client.create_empty_handle()
    });

    client
        .register(OperationIr::NumericInt(dtype, op(desc)))
        .outputs()
        .into()
}

impl<B: InnerBackend> IntTensorOps<Self> for MultiGpu<B> {
    fn int_from_data(data: TensorData, device: &Device<Self>) -> IntTensor<Self> {
        device.client().register_tensor_data(data)
    }

    fn int_into_data(
        tensor: IntTensor<Self>,
    ) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        read(tensor)
    }

    fn int_device(tensor: &IntTensor<Self>) -> Device<Self> {
        tensor.client.device()
    }

    fn int_to_device(tensor: IntTensor<Self>, device: &Device<Self>) -> IntTensor<Self> {
        to_device(tensor, device, MeshClient::register_tensor_data)
    }

    fn int_empty(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self> {
        create(
            shape,
            device,
            dtype.into(),
            BaseOperationIr::Empty,
            OperationIr::BaseInt,
        )
    }

    fn int_zeros(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self> {
        create(
            shape,
            device,
            dtype.into(),
            BaseOperationIr::Zeros,
            OperationIr::BaseInt,
        )
    }

    fn int_ones(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self> {
        create(
            shape,
            device,
            dtype.into(),
            BaseOperationIr::Ones,
            OperationIr::BaseInt,
        )
    }

    fn int_full(
        shape: Shape,
        fill_value: Scalar,
        device: &Device<Self>,
        dtype: IntDType,
    ) -> IntTensor<Self> {
        full(shape, fill_value, device, dtype.into(), |desc| {
            OperationIr::NumericInt(desc.out.dtype, NumericOperationIr::Full(desc))
        })
    }

    fn int_random(
        shape: Shape,
        distribution: Distribution,
        device: &Device<Self>,
        dtype: IntDType,
    ) -> IntTensor<Self> {
        random(shape, distribution, device, dtype.into(), |desc| {
            OperationIr::NumericInt(desc.out.dtype, NumericOperationIr::IntRandom(desc))
        })
    }

    fn int_arange_step(
        range: Range<i64>,
        step: usize,
        device: &Device<Self>,
        dtype: IntDType,
    ) -> IntTensor<Self> {
        // As the default, but for two things. Data from the host could be a batch to divide, while a
        // range is most often a table of positions that every part of a batch needs whole. And the
        // default goes through the default int type, which cuts off what an `i64` tensor can hold.
        let values: Vec<i64> = range.step_by(step).collect();
        let shape = Shape::new([values.len()]);
        let data = TensorData::new(values, shape).convert_dtype(dtype.into());

        device.client().register_constant(data)
    }

    fn int_max_dim_with_indices(
        tensor: IntTensor<Self>,
        dim: usize,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        reduce_with_indices(tensor, dim, NumericOperationIr::MaxDimWithIndices)
    }

    fn int_min_dim_with_indices(
        tensor: IntTensor<Self>,
        dim: usize,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        reduce_with_indices(tensor, dim, NumericOperationIr::MinDimWithIndices)
    }

    fn int_sort(tensor: IntTensor<Self>, dim: usize, descending: bool) -> IntTensor<Self> {
        inner::sort(tensor, dim, descending)
    }

    fn int_sort_with_indices(
        tensor: IntTensor<Self>,
        dim: usize,
        descending: bool,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        let dtype = tensor.dtype();
        inner::sort_with_indices(tensor, dim, descending, dtype)
    }

    fn int_argsort(tensor: IntTensor<Self>, dim: usize, descending: bool) -> IntTensor<Self> {
        let dtype = tensor.dtype();
        inner::argsort(tensor, dim, descending, dtype)
    }

    forward! { IntTensorOps:
        fn int_reshape(tensor: IntTensor<Self>, shape: Shape) -> IntTensor<Self>;
        fn int_slice(tensor: IntTensor<Self>, slices: &[Slice]) -> IntTensor<Self>;
        fn int_slice_assign(
            tensor: IntTensor<Self>,
            slices: &[Slice],
            value: IntTensor<Self>,
        ) -> IntTensor<Self>;
        fn int_matmul(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_mask_where(
            tensor: IntTensor<Self>,
            mask: BoolTensor<Self>,
            value: IntTensor<Self>,
        ) -> IntTensor<Self>;
        fn int_mask_fill(
            tensor: IntTensor<Self>,
            mask: BoolTensor<Self>,
            value: Scalar,
        ) -> IntTensor<Self>;
        fn int_gather(
            dim: usize,
            tensor: IntTensor<Self>,
            indices: IntTensor<Self>,
        ) -> IntTensor<Self>;
        fn int_scatter_add(
            dim: usize,
            tensor: IntTensor<Self>,
            indices: IntTensor<Self>,
            value: IntTensor<Self>,
        ) -> IntTensor<Self>;
        fn int_scatter_nd(
            data: IntTensor<Self>,
            indices: IntTensor<Self>,
            values: IntTensor<Self>,
            reduction: IndexingUpdateOp,
        ) -> IntTensor<Self>;
        fn int_gather_nd(data: IntTensor<Self>, indices: IntTensor<Self>) -> IntTensor<Self>;
        fn int_select(
            tensor: IntTensor<Self>,
            dim: usize,
            indices: IntTensor<Self>,
        ) -> IntTensor<Self>;
        fn int_select_add(
            tensor: IntTensor<Self>,
            dim: usize,
            indices: IntTensor<Self>,
            value: IntTensor<Self>,
        ) -> IntTensor<Self>;
        fn int_cat(tensors: Vec<IntTensor<Self>>, dim: usize) -> IntTensor<Self>;
        fn int_equal(
            lhs: IntTensor<Self>,
            rhs: IntTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_equal_elem(
            lhs: IntTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_greater(
            lhs: IntTensor<Self>,
            rhs: IntTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_greater_elem(
            lhs: IntTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_greater_equal(
            lhs: IntTensor<Self>,
            rhs: IntTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_greater_equal_elem(
            lhs: IntTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_lower(
            lhs: IntTensor<Self>,
            rhs: IntTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_lower_elem(
            lhs: IntTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_lower_equal(
            lhs: IntTensor<Self>,
            rhs: IntTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_lower_equal_elem(
            lhs: IntTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn int_add(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_add_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_sub(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_sub_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_mul(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_mul_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_div(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_div_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_remainder(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_remainder_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_sum(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_sum_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_prod(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_prod_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_mean(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_mean_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_cumsum(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_cumprod(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_cummin(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_cummax(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_argmax(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_argtopk(tensor: IntTensor<Self>, dim: usize, k: usize) -> IntTensor<Self>;
        fn int_topk(tensor: IntTensor<Self>, dim: usize, k: usize) -> IntTensor<Self>;
        fn int_argmin(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_clamp(tensor: IntTensor<Self>, min: Scalar, max: Scalar) -> IntTensor<Self>;
        fn int_abs(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_into_float(tensor: IntTensor<Self>, out_dtype: FloatDType) -> FloatTensor<Self>;
        fn int_swap_dims(tensor: IntTensor<Self>, dim1: usize, dim2: usize) -> IntTensor<Self>;
        fn int_max(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_max_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_max_abs(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_max_abs_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_min(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_min_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self>;
        fn int_permute(tensor: IntTensor<Self>, axes: &[usize]) -> IntTensor<Self>;
        fn int_expand(tensor: IntTensor<Self>, shape: Shape) -> IntTensor<Self>;
        fn int_flip(tensor: IntTensor<Self>, axes: &[usize]) -> IntTensor<Self>;
        fn int_repeat_dim(tensor: IntTensor<Self>, dim: usize, times: usize) -> IntTensor<Self>;
        fn bitwise_and(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_or(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_xor(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_not(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_and_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_or_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_xor_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_left_shift(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_left_shift_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_right_shift(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_right_shift_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_cast(tensor: IntTensor<Self>, dtype: IntDType) -> IntTensor<Self>;
        fn int_unfold(
            tensor: IntTensor<Self>,
            dim: usize,
            size: usize,
            step: usize,
        ) -> IntTensor<Self>;
        fn int_powi(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_powi_scalar_impl(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
    }
}
