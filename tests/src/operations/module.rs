//! Cases of `partition/rules/module.rs`: convolutions, pools, interpolation, attention, Fourier
//! transforms, CTC loss.

use super::case::{Case, cases, out};
use super::devices::{primitive, read};
use super::place::Place;
use burn::tensor::backend::Backend;
use burn::tensor::module::{
    adaptive_avg_pool1d, adaptive_avg_pool2d, attention, avg_pool1d, avg_pool2d, conv_transpose1d,
    conv_transpose2d, conv_transpose3d, conv1d, conv2d, conv3d, ctc_loss, deform_conv2d,
    interpolate, max_pool1d, max_pool1d_with_indices, max_pool2d, max_pool2d_with_indices,
    unfold4d,
};
use burn::tensor::ops::{
    AttentionModuleOptions, ConvOptions, ConvTransposeOptions, DeformConvOptions, InterpolateMode,
    InterpolateOptions, UnfoldOptions,
};
use burn::tensor::signal::{irfft, rfft};
use burn::tensor::{Bool, Tensor, TensorData};

/// The cases.
pub(super) fn list<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = convolutions();
    list.extend(transposed());
    list.extend(pools());
    list.extend(others());
    list
}

/// A convolution with padding, in one group or two.
fn conv<const N: usize>(groups: usize) -> ConvOptions<N> {
    ConvOptions::new([1; N], [1; N], [1; N], groups)
}

fn convolutions<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "conv1d" => out![
            conv1d(p.float([7, 2, 6]), p.float([4, 2, 3]), None, conv(1)),
            conv1d(p.float([7, 2, 6]), p.float([4, 1, 3]), Some(p.float([4])), conv(2)),
        ],
        "conv2d" => out![
            conv2d(p.float([7, 2, 5, 6]), p.float([4, 2, 3, 3]), None, conv(1)),
            conv2d(
                p.float([7, 2, 5, 6]),
                p.float([4, 1, 3, 3]),
                Some(p.float([4])),
                ConvOptions::new([2, 1], [0, 1], [1, 2], 2),
            ),
        ],
        "conv3d" => out![
            conv3d(p.float([7, 2, 4, 4, 4]), p.float([3, 2, 3, 3, 3]), None, conv(1)),
            conv3d(p.float([7, 2, 4, 4, 4]), p.float([2, 1, 3, 3, 3]), Some(p.float([2])), conv(2)),
        ],
        "conv1d backward" => {
            let (x, w, grad) = (p.float([7, 2, 6]), p.float([4, 2, 3]), p.float([7, 4, 6]));
            let (x, w, grad) = (primitive(x), primitive(w), primitive(grad));
            vec![
                read::<B, 3>(B::conv1d_x_backward(x.clone(), w.clone(), grad.clone(), conv(1))),
                read::<B, 3>(B::conv1d_weight_backward(x.clone(), w, grad.clone(), conv(1))),
                read::<B, 1>(B::conv1d_bias_backward(x, primitive(p.float([4])), grad)),
            ]
        },
        "conv2d backward" => {
            let x = || primitive(p.float([7, 2, 5, 6]));
            let w = |channels| primitive(p.float([4, channels, 3, 3]));
            let grad = || primitive(p.float([7, 4, 5, 6]));
            vec![
                read::<B, 4>(B::conv2d_x_backward(x(), w(2), grad(), conv(1))),
                read::<B, 4>(B::conv2d_weight_backward(x(), w(2), grad(), conv(1))),
                read::<B, 1>(B::conv2d_bias_backward(x(), primitive(p.float([4])), grad())),
                read::<B, 4>(B::conv2d_x_backward(x(), w(1), grad(), conv(2))),
                read::<B, 4>(B::conv2d_weight_backward(x(), w(1), grad(), conv(2))),
            ]
        },
        "conv3d backward" => {
            let x = || primitive(p.float([7, 2, 4, 4, 4]));
            let w = || primitive(p.float([3, 2, 3, 3, 3]));
            let grad = || primitive(p.float([7, 3, 4, 4, 4]));
            vec![
                read::<B, 5>(B::conv3d_x_backward(x(), w(), grad(), conv(1))),
                read::<B, 5>(B::conv3d_weight_backward(x(), w(), grad(), conv(1))),
                read::<B, 1>(B::conv3d_bias_backward(x(), primitive(p.float([3])), grad())),
            ]
        },
        "deformable conv2d" => out![
            deform_conv2d(
                p.float([7, 2, 5, 5]),
                p.float_in(-1.0..=1.0, [7, 18, 5, 5]),
                p.float([4, 2, 3, 3]),
                Some(p.float([7, 9, 5, 5])),
                Some(p.float([4])),
                deform(),
            ),
            deform_conv2d(
                p.float([7, 2, 5, 5]),
                p.float_in(-1.0..=1.0, [7, 18, 5, 5]),
                p.float([4, 2, 3, 3]),
                None,
                None,
                deform(),
            ),
        ],
        "unfold4d" => out![unfold4d(
            p.float([7, 2, 5, 5]),
            [3, 3],
            UnfoldOptions::new([1, 1], [1, 1], [1, 1]),
        )],
    );
    // Flex computes these gradients in `f32` whatever their type.
    let backward = |p: &P| [deform_backward(p, true), deform_backward(p, false)].concat();
    list.push(Case::new("deformable conv2d backward", backward).default_float());
    list
}

fn deform() -> DeformConvOptions<2> {
    DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, 1)
}

fn deform_backward<B: Backend, P: Place<B>>(p: &P, mask_and_bias: bool) -> Vec<TensorData> {
    let out = B::deform_conv2d_backward(
        primitive(p.float([7, 2, 5, 5])),
        primitive(p.float_in(-1.0..=1.0, [7, 18, 5, 5])),
        primitive(p.float([4, 2, 3, 3])),
        mask_and_bias.then(|| primitive(p.float([7, 9, 5, 5]))),
        mask_and_bias.then(|| primitive(p.float([4]))),
        primitive(p.float([7, 4, 5, 5])),
        deform(),
    );
    let four = [
        Some(out.x_grad),
        Some(out.offset_grad),
        Some(out.weight_grad),
        out.mask_grad,
    ];
    let mut all: Vec<_> = four.into_iter().flatten().map(read::<B, 4>).collect();
    all.extend(out.bias_grad.map(read::<B, 1>));
    all
}

fn transposed<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    fn options<const N: usize>() -> ConvTransposeOptions<N> {
        ConvTransposeOptions::new([2; N], [1; N], [1; N], [1; N], 1)
    }
    let mut list = Vec::new();
    cases!(list, p:
        "conv transpose1d" => out![
            conv_transpose1d(p.float([7, 2, 5]), p.float([2, 4, 3]), None, options()),
            conv_transpose1d(p.float([7, 2, 5]), p.float([2, 4, 3]), Some(p.float([4])), options()),
        ],
        "conv transpose2d" => out![
            conv_transpose2d(p.float([7, 2, 4, 5]), p.float([2, 4, 3, 3]), None, options()),
            conv_transpose2d(p.float([7, 2, 4, 5]), p.float([2, 4, 3, 3]), Some(p.float([4])), options()),
        ],
        "conv transpose3d" => out![
            conv_transpose3d(p.float([7, 2, 3, 3, 3]), p.float([2, 3, 3, 3, 3]), Some(p.float([3])), options()),
        ],
        "conv transpose2d backward" => {
            let (w, grad) = (|| primitive(p.float([2, 4, 3, 3])), || primitive(p.float([7, 4, 8, 10])));
            let x = || primitive(p.float([7, 2, 4, 5]));
            vec![
                read::<B, 4>(B::conv_transpose2d_x_backward(w(), grad(), options())),
                read::<B, 4>(B::conv_transpose2d_weight_backward(x(), w(), grad(), options())),
                read::<B, 1>(B::conv_transpose2d_bias_backward(x(), primitive(p.float([4])), grad())),
            ]
        },
    );
    list
}

fn pools<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "avg pool1d" => out![
            avg_pool1d(p.float([7, 3, 8]), 3, 2, 1, true, false),
            avg_pool1d(p.float([7, 3, 8]), 3, 2, 1, false, true),
        ],
        "avg pool2d" => out![
            avg_pool2d(p.float([7, 3, 6, 8]), [2, 3], [2, 2], [1, 1], true, false),
            avg_pool2d(p.float([7, 3, 6, 8]), [3, 3], [2, 2], [0, 1], false, true),
        ],
        "adaptive avg pool1d" => out![adaptive_avg_pool1d(p.float([7, 3, 8]), 3)],
        "adaptive avg pool2d" => out![adaptive_avg_pool2d(p.float([7, 3, 6, 8]), [2, 3])],
        "avg pool backward" => vec![
            read::<B, 3>(B::avg_pool1d_backward(
                primitive(p.float([7, 3, 8])), primitive(p.float([7, 3, 4])), 3, 2, 1, true, false,
            )),
            read::<B, 4>(B::avg_pool2d_backward(
                primitive(p.float([7, 3, 6, 8])),
                primitive(p.float([7, 3, 3, 4])),
                [2, 2], [2, 2], [0, 0], true, false,
            )),
        ],
        "adaptive avg pool backward" => vec![
            read::<B, 3>(B::adaptive_avg_pool1d_backward(
                primitive(p.float([7, 3, 8])), primitive(p.float([7, 3, 3])),
            )),
            read::<B, 4>(B::adaptive_avg_pool2d_backward(
                primitive(p.float([7, 3, 6, 8])), primitive(p.float([7, 3, 2, 3])),
            )),
        ],
        "max pool1d" => out![max_pool1d(p.float([7, 3, 8]), 3, 2, 1, 1, false)],
        "max pool2d" => out![max_pool2d(p.float([7, 3, 6, 8]), [2, 3], [2, 2], [0, 1], [1, 1], true)],
        "max pool1d with indices" => {
            let x = p.float([7, 3, 8]);
            let (values, indices) = max_pool1d_with_indices(x.clone(), 3, 2, 1, 1, false);
            let grad = B::max_pool1d_with_indices_backward(
                primitive(x), 3, 2, 1, 1, false,
                primitive(p.float([7, 3, 4])), indices.clone().into_primitive(),
            );
            vec![values.into_data(), indices.into_data(), read::<B, 3>(grad.x_grad)]
        },
        "max pool2d with indices" => {
            let x = p.float([7, 3, 6, 8]);
            let (kernel, none, one) = ([2, 2], [0, 0], [1, 1]);
            let (values, indices) =
                max_pool2d_with_indices(x.clone(), kernel, kernel, none, one, false);
            let grad = B::max_pool2d_with_indices_backward(
                primitive(x), kernel, kernel, none, one, false,
                primitive(p.float([7, 3, 3, 4])), indices.clone().into_primitive(),
            );
            vec![values.into_data(), indices.into_data(), read::<B, 4>(grad.x_grad)]
        },
    );
    list
}

fn others<B: Backend, P: Place<B>>() -> Vec<Case<P>> {
    let mut list = Vec::new();
    cases!(list, p:
        "interpolate" => [InterpolateMode::Nearest, InterpolateMode::Bilinear, InterpolateMode::Bicubic]
            .into_iter()
            .map(|mode| {
                let options = InterpolateOptions::new(mode);
                interpolate(p.float([7, 2, 4, 5]), [6, 3], options).into_data()
            })
            .collect(),
        "interpolate backward" => vec![read::<B, 4>(B::interpolate_backward(
            primitive(p.float([7, 2, 4, 5])),
            primitive(p.float([7, 2, 6, 3])),
            [6, 3],
            InterpolateOptions::new(InterpolateMode::Nearest),
        ))],
        "attention" => {
            let x = || p.float([7, 2, 5, 4]);
            let causal = AttentionModuleOptions { is_causal: true, ..Default::default() };
            let options = AttentionModuleOptions::default();
            out![
                attention(x(), x(), x(), None, None, options),
                attention(x(), x(), x(), None, None, causal),
                attention(x(), p.float([7, 2, 3, 4]), p.float([7, 2, 3, 4]), None, None, options),
            ]
        },
        "attention with a mask and a bias" => {
            let x = || p.float([7, 2, 5, 4]);
            let options = AttentionModuleOptions::default();
            // A row of nothing but masked places has no result.
            let mask = || p.bool([7, 1, 5, 5]).bool_and(p.bool([1, 1, 5, 5]))
                .bool_and(Tensor::<B, 2, Bool>::diag_mask([5, 5], 0, &p.device()).unsqueeze());
            out![
                attention(x(), x(), x(), Some(mask()), None, options),
                attention(x(), x(), x(), None, Some(p.float([7, 2, 5, 5])), options),
                attention(x(), x(), x(), Some(mask()), Some(p.float([1, 2, 5, 5])), options),
            ]
        },
        "rfft" => {
            let (re, im) = rfft(p.float([7, 8]), 1, None);
            let (along_re, along_im) = rfft(p.float([8, 3, 2]), 0, None);
            let (padded, _) = rfft(p.float([7, 5]), 1, Some(8));
            out![re, im, along_re, along_im, padded]
        },
        "irfft" => out![
            irfft(p.float([7, 5]), p.float([7, 5]), 1, None),
            irfft(p.float([5, 7]), p.float([5, 7]), 0, None),
        ],
        "ctc loss" => out![ctc_loss(
            p.float_in(-4.0..=-0.5, [6, 7, 4]),
            p.int(1..=3, [7, 2]),
            p.ints(&[6, 6, 5, 6, 4, 6, 5], [7]),
            p.ints(&[2, 1, 2, 2, 1, 2, 1], [7]),
            0,
        )],
    );
    list
}
