//! Operations of layers.
//!
//! The router says that the positions of a maximum pool are of the backend's element type; those of
//! Flex are not, and an int of a declared type that it has not can meet no other.

use burn_backend::TensorMetadata;
use burn_backend::ops::{
    AttentionModuleOptions, ConvOptions, ConvTransposeOptions, DeformConv2dBackward,
    DeformConvOptions, InterpolateOptions, MaxPool1dBackward, MaxPool1dWithIndices,
    MaxPool2dBackward, MaxPool2dWithIndices, ModuleOps,
};
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_ir::{
    CtcLossBackwardOpIr, CtcLossOpIr, EmbeddingBackwardOpIr, EmbeddingOpIr, IRfftOpIr,
    MaxPool1dWithIndicesOpIr, MaxPool2dWithIndicesOpIr, ModuleOperationIr, OperationIr,
    OperationOutput, RfftOpIr, TensorIr,
};
use burn_router::RunnerClient;

use super::forward::{Router, forward};
use super::transfer::MeshTensor;
use super::{MultiGpu, inner};
use crate::backend::{InnerBackend, MeshClient};
use crate::partition::inner::InnerOp;

impl<B: InnerBackend> ModuleOps<Self> for MultiGpu<B> {
    fn rfft(
        signal: FloatTensor<Self>,
        dim: usize,
        n: Option<usize>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let client = signal.client.clone();
        let desc = RfftOpIr::create(signal.into_ir(), dim, n, || client.create_empty_handle());

        client
            .register(OperationIr::Module(ModuleOperationIr::Rfft(desc)))
            .outputs()
            .into()
    }

    fn irfft(
        spectrum_re: FloatTensor<Self>,
        spectrum_im: FloatTensor<Self>,
        dim: usize,
        n: Option<usize>,
    ) -> FloatTensor<Self> {
        let client = spectrum_re.client.clone();
        let desc = IRfftOpIr::create(spectrum_re.into_ir(), spectrum_im.into_ir(), dim, n, || {
            client.create_empty_handle()
        });

        client
            .register(OperationIr::Module(ModuleOperationIr::IRfft(desc)))
            .output()
    }

    fn max_pool1d_with_indices(
        x: FloatTensor<Self>,
        kernel_size: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
        ceil_mode: bool,
    ) -> MaxPool1dWithIndices<Self> {
        let client = x.client.clone();
        let desc = MaxPool1dWithIndicesOpIr::create(
            x.into_ir(),
            kernel_size,
            stride,
            padding,
            dilation,
            ceil_mode,
            B::pool_index_dtype(),
            || client.create_empty_handle(),
        );
        let op = ModuleOperationIr::MaxPool1dWithIndices(desc);
        let [out, indices] = client.register(OperationIr::Module(op)).outputs();

        MaxPool1dWithIndices::new(out, indices)
    }

    fn max_pool2d_with_indices(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
    ) -> MaxPool2dWithIndices<Self> {
        let client = x.client.clone();
        let desc = MaxPool2dWithIndicesOpIr::create(
            x.into_ir(),
            kernel_size,
            stride,
            padding,
            dilation,
            ceil_mode,
            B::pool_index_dtype(),
            || client.create_empty_handle(),
        );
        let op = ModuleOperationIr::MaxPool2dWithIndices(desc);
        let [out, indices] = client.register(OperationIr::Module(op)).outputs();

        MaxPool2dWithIndices::new(out, indices)
    }

    fn max_pool1d_with_indices_backward(
        x: FloatTensor<Self>,
        kernel_size: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
        ceil_mode: bool,
        output_grad: FloatTensor<Self>,
        indices: IntTensor<Self>,
    ) -> MaxPool1dBackward<Self> {
        let out = Router::<B>::max_pool1d_with_indices_backward(
            x,
            kernel_size,
            stride,
            padding,
            dilation,
            ceil_mode,
            output_grad,
            indices,
        );

        MaxPool1dBackward::new(out.x_grad)
    }

    fn max_pool2d_with_indices_backward(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
        output_grad: FloatTensor<Self>,
        indices: IntTensor<Self>,
    ) -> MaxPool2dBackward<Self> {
        let out = Router::<B>::max_pool2d_with_indices_backward(
            x,
            kernel_size,
            stride,
            padding,
            dilation,
            ceil_mode,
            output_grad,
            indices,
        );

        MaxPool2dBackward::new(out.x_grad)
    }

    fn deform_conv2d_backward(
        x: FloatTensor<Self>,
        offset: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        mask: Option<FloatTensor<Self>>,
        bias: Option<FloatTensor<Self>>,
        output_grad: FloatTensor<Self>,
        options: DeformConvOptions<2>,
    ) -> DeformConv2dBackward<Self> {
        let out = Router::<B>::deform_conv2d_backward(
            x,
            offset,
            weight,
            mask,
            bias,
            output_grad,
            options,
        );

        DeformConv2dBackward::new(
            out.x_grad,
            out.offset_grad,
            out.weight_grad,
            out.mask_grad,
            out.bias_grad,
        )
    }

    fn layer_norm(
        tensor: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: Option<FloatTensor<Self>>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let inputs = [tensor, gamma].into_iter().chain(beta).collect();
        inner::like_first(InnerOp::LayerNorm { epsilon }, inputs)
    }

    fn embedding(weights: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        let client = weights.client.clone();
        let mut shape = indices.shape();
        shape.push(weights.shape()[1]);
        let out = TensorIr::uninit(client.create_empty_handle(), shape, weights.dtype());
        let desc = EmbeddingOpIr {
            weights: weights.into_ir(),
            indices: indices.into_ir(),
            out,
        };
        register(&client, ModuleOperationIr::Embedding(desc))
    }

    fn embedding_backward(
        weights: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
        indices: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        let client = weights.client.clone();
        let id = client.create_empty_handle();
        let out = TensorIr::uninit(id, weights.shape(), output_grad.dtype());
        let desc = EmbeddingBackwardOpIr {
            weights: weights.into_ir(),
            out_grad: output_grad.into_ir(),
            indices: indices.into_ir(),
            out,
        };
        register(&client, ModuleOperationIr::EmbeddingBackward(desc))
    }

    fn ctc_loss(
        log_probs: FloatTensor<Self>,
        targets: IntTensor<Self>,
        input_lengths: IntTensor<Self>,
        target_lengths: IntTensor<Self>,
        blank: usize,
    ) -> FloatTensor<Self> {
        let client = log_probs.client.clone();
        let desc = CtcLossOpIr::create(
            log_probs.into_ir(),
            targets.into_ir(),
            input_lengths.into_ir(),
            target_lengths.into_ir(),
            blank,
            || client.create_empty_handle(),
        );
        register(&client, ModuleOperationIr::CtcLoss(desc))
    }

    fn has_ctc_loss_backward() -> bool {
        B::has_ctc_loss_backward()
    }

    fn ctc_loss_backward(
        log_probs: FloatTensor<Self>,
        targets: IntTensor<Self>,
        input_lengths: IntTensor<Self>,
        target_lengths: IntTensor<Self>,
        grad_loss: FloatTensor<Self>,
        blank: usize,
    ) -> FloatTensor<Self> {
        let client = log_probs.client.clone();
        let desc = CtcLossBackwardOpIr::create(
            log_probs.into_ir(),
            targets.into_ir(),
            input_lengths.into_ir(),
            target_lengths.into_ir(),
            grad_loss.into_ir(),
            blank,
            || client.create_empty_handle(),
        );
        register(&client, ModuleOperationIr::CtcLossBackward(desc))
    }

    forward! { ModuleOps:
        fn linear(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
        ) -> FloatTensor<Self>;
        fn linear_x_backward(
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn linear_weight_backward(
            x: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn linear_bias_backward(output_grad: FloatTensor<Self>) -> FloatTensor<Self>;
        fn conv1d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv1d_x_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv1d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv1d_bias_backward(
            x: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn conv2d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv2d_x_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv2d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv2d_bias_backward(
            x: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn conv3d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvOptions<3>,
        ) -> FloatTensor<Self>;
        fn conv3d_x_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<3>,
        ) -> FloatTensor<Self>;
        fn conv3d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<3>,
        ) -> FloatTensor<Self>;
        fn conv3d_bias_backward(
            x: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn conv_transpose1d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvTransposeOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv_transpose2d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvTransposeOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv_transpose3d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvTransposeOptions<3>,
        ) -> FloatTensor<Self>;
        fn avg_pool1d(
            x: FloatTensor<Self>,
            kernel_size: usize,
            stride: usize,
            padding: usize,
            count_include_pad: bool,
            ceil_mode: bool,
        ) -> FloatTensor<Self>;
        fn avg_pool2d(
            x: FloatTensor<Self>,
            kernel_size: [usize; 2],
            stride: [usize; 2],
            padding: [usize; 2],
            count_include_pad: bool,
            ceil_mode: bool,
        ) -> FloatTensor<Self>;
        fn avg_pool1d_backward(
            x: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            kernel_size: usize,
            stride: usize,
            padding: usize,
            count_include_pad: bool,
            ceil_mode: bool,
        ) -> FloatTensor<Self>;
        fn avg_pool2d_backward(
            x: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            kernel_size: [usize; 2],
            stride: [usize; 2],
            padding: [usize; 2],
            count_include_pad: bool,
            ceil_mode: bool,
        ) -> FloatTensor<Self>;
        fn max_pool1d(
            x: FloatTensor<Self>,
            kernel_size: usize,
            stride: usize,
            padding: usize,
            dilation: usize,
            ceil_mode: bool,
        ) -> FloatTensor<Self>;
        fn max_pool2d(
            x: FloatTensor<Self>,
            kernel_size: [usize; 2],
            stride: [usize; 2],
            padding: [usize; 2],
            dilation: [usize; 2],
            ceil_mode: bool,
        ) -> FloatTensor<Self>;
        fn adaptive_avg_pool1d(x: FloatTensor<Self>, output_size: usize) -> FloatTensor<Self>;
        fn adaptive_avg_pool2d(x: FloatTensor<Self>, output_size: [usize; 2]) -> FloatTensor<Self>;
        fn adaptive_avg_pool1d_backward(
            x: FloatTensor<Self>,
            grad: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn adaptive_avg_pool2d_backward(
            x: FloatTensor<Self>,
            grad: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn interpolate(
            x: FloatTensor<Self>,
            output_size: [usize; 2],
            options: InterpolateOptions,
        ) -> FloatTensor<Self>;
        fn interpolate_backward(
            x: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            output_size: [usize; 2],
            options: InterpolateOptions,
        ) -> FloatTensor<Self>;
        fn deform_conv2d(
            x: FloatTensor<Self>,
            offset: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            mask: Option<FloatTensor<Self>>,
            bias: Option<FloatTensor<Self>>,
            options: DeformConvOptions<2>,
        ) -> FloatTensor<Self>;
        fn attention(
            query: FloatTensor<Self>,
            key: FloatTensor<Self>,
            value: FloatTensor<Self>,
            mask: Option<BoolTensor<Self>>,
            attn_bias: Option<FloatTensor<Self>>,
            options: AttentionModuleOptions,
        ) -> FloatTensor<Self>;
    }
}

fn register<B: InnerBackend>(client: &MeshClient<B>, op: ModuleOperationIr) -> MeshTensor<B> {
    client.register(OperationIr::Module(op)).output()
}
