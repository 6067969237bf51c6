//! Convolutions, pools and what else works on images.

use super::reduce::distinct;
use super::{Builder, Id, Info, Kind, Op, Value};
use burn::tensor::ops::{
    ConvOptions, ConvTransposeOptions, DeformConvOptions, GridSampleOptions, InterpolateMode,
    InterpolateOptions, UnfoldOptions,
};
use burn::tensor::{Tensor, backend::Backend, module};

/// Settings of a convolution, the same along all of its dimensions.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Window {
    pub kernel: usize,
    pub stride: usize,
    pub padding: usize,
    pub groups: usize,
}

/// An operation on sequences `[batch, channels, length]` or images `[batch, channels, height, width]`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Conv {
    Conv1d(Window),
    Conv2d(Window),
    /// Of an image with a third dimension of 1.
    Conv3d(Window),
    Transpose1d(Window),
    Transpose2d(Window),
    /// Of an image with a third dimension of 1.
    Transpose3d(Window),
    Deform(Window),
    Max1d(Window),
    Max2d(Window),
    MaxPair2d(Window),
    Avg1d(Window, bool),
    Avg2d(Window, bool),
    Adaptive1d(usize),
    Adaptive2d(usize),
    Interpolate(usize, Mode),
    Unfold4d(Window),
    GridSample,
}

/// How to interpolate.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Mode {
    Nearest,
    Bilinear,
    Bicubic,
}

impl Conv {
    /// Whether Flex does it in f32.
    pub(super) fn is_rough(&self) -> bool {
        matches!(self, Self::Deform(_))
    }
}

impl Window {
    fn random(b: &mut Builder, size: usize) -> Self {
        let kernel = b.rng.within(1, size.min(3));
        Self {
            kernel,
            stride: b.rng.within(1, 2),
            padding: b.rng.below(kernel / 2 + 1),
            groups: 1,
        }
    }

    fn out(&self, size: usize) -> usize {
        (size + 2 * self.padding - self.kernel) / self.stride + 1
    }

    fn transposed(&self, size: usize) -> usize {
        (size - 1) * self.stride + self.kernel - 2 * self.padding
    }
}

pub(super) fn generate(b: &mut Builder) {
    let rank = b.rng.pick(&[3, 4, 4]);
    let id = b.ranked(Kind::Float, rank, rank);
    let info = b.info(id);
    let smallest = info.shape[2..].iter().copied().min().unwrap_or(1);
    let window = Window::random(b, smallest);
    match b.rng.below(14) {
        0..5 => conv(b, id, window),
        5 if rank == 4 && b.rng.chance(20) => deform(b, id, window),
        5..10 => pool(b, id, window),
        10 => {
            let len = b.rng.within(1, 4);
            let mut out = info;
            out.shape[2..].fill(len);
            let op = if rank == 3 {
                Conv::Adaptive1d(len)
            } else {
                Conv::Adaptive2d(len)
            };
            push(b, op, &[id], vec![out]);
        }
        11 if rank == 4 => {
            let len = b.rng.within(1, 6);
            let mode = b.rng.pick(&[Mode::Nearest, Mode::Bilinear, Mode::Bicubic]);
            let mut out = info;
            out.shape[2..].fill(len);
            out.max *= 2.0;
            push(b, Conv::Interpolate(len, mode), &[id], vec![out]);
        }
        12 if rank == 4 => {
            let window = Window {
                groups: 1,
                ..window
            };
            let blocks: usize = info.shape[2..]
                .iter()
                .map(|size| window.out(*size))
                .product();
            let rows = info.shape[1] * window.kernel * window.kernel;
            let out = Info::float([info.shape[0], rows, blocks], info.max);
            push(b, Conv::Unfold4d(window), &[id], vec![out]);
        }
        _ if rank == 4 => {
            let grid = [info.shape[0], b.rng.within(1, 3), b.rng.within(1, 3), 2];
            let points = b.shaped(Kind::Float, &grid);
            let out = Info::float([info.shape[0], info.shape[1], grid[1], grid[2]], info.max);
            push(b, Conv::GridSample, &[id, points], vec![out]);
        }
        _ => conv(b, id, window),
    }
}

fn push(b: &mut Builder, op: Conv, args: &[Id], outs: Vec<Info>) {
    if outs.iter().all(|info| b.fits(&info.shape)) {
        b.push(Op::Conv(op), args, outs);
    }
}

fn conv(b: &mut Builder, id: Id, mut window: Window) {
    let info = b.info(id);
    let (rank, channels) = (info.rank(), info.shape[1]);
    let groups: Vec<usize> = (1..=channels)
        .filter(|groups| channels.is_multiple_of(*groups))
        .collect();
    window.groups = b.rng.pick(&groups);
    let each = b.rng.within(1, 3);
    let features = each * window.groups;
    let transposed = b.rng.chance(35);
    let three = rank == 4 && b.rng.chance(15);

    let mut weight = vec![window.kernel; rank];
    (weight[0], weight[1]) = match transposed {
        true => (channels, each),
        false => (features, channels / window.groups),
    };
    let mut out = info.shape.clone();
    out[1] = features;
    for size in &mut out[2..] {
        *size = if transposed {
            window.transposed(*size)
        } else {
            window.out(*size)
        };
    }
    if !b.fits(&out) || !b.fits(&weight) {
        return;
    }
    let weights = b.param(&weight);
    let mut args = vec![id, weights];
    let terms: usize =
        weight[1..].iter().product::<usize>() * if transposed { channels } else { 1 };
    let mut max = info.max * b.info(weights).max * terms as f64;
    if b.rng.chance(50) {
        let bias = b.param(&[features]);
        max += b.info(bias).max;
        args.push(bias);
    }
    let op = match (rank, transposed) {
        (3, false) => Conv::Conv1d(window),
        (3, true) => Conv::Transpose1d(window),
        (_, true) if three => Conv::Transpose3d(window),
        (_, true) => Conv::Transpose2d(window),
        _ if three => Conv::Conv3d(window),
        _ => Conv::Conv2d(window),
    };
    b.push(Op::Conv(op), &args, vec![Info::float(out, max)]);
}

/// Flex does it in f32, so that its results are for the loss alone: where other operations see them
/// a bound of infinity keeps them from being found.
fn deform(b: &mut Builder, id: Id, window: Window) {
    let info = b.info(id);
    let channels = info.shape[1];
    let features = b.rng.within(1, 3);
    let [height, width] = [window.out(info.shape[2]), window.out(info.shape[3])];
    let points = window.kernel * window.kernel;
    let offsets = [info.shape[0], 2 * points, height, width];
    let out = vec![info.shape[0], features, height, width];
    if !b.fits(&offsets) || !b.fits(&out) {
        return;
    }
    let offset = b.shaped(Kind::Float, &offsets);
    let weight = b.param(&[features, channels, window.kernel, window.kernel]);
    let mut args = vec![id, offset, weight];
    if b.rng.chance(50) {
        args.push(b.shaped(Kind::Float, &[info.shape[0], points, height, width]));
    }
    let out = Info::float(out, f64::INFINITY);
    b.push(Op::Conv(Conv::Deform(window)), &args, vec![out]);
}

fn pool(b: &mut Builder, id: Id, window: Window) {
    let mut info = b.info(id);
    let rank = info.rank();
    for size in &mut info.shape[2..] {
        *size = window.out(*size);
    }
    let positions = Info::int(info.shape.clone(), 3000.0);
    let padded = b.rng.chance(50);
    info.max += 1.0;
    let (op, outs) = match (rank, b.rng.below(5)) {
        (3, 0..3) => (Conv::Max1d(window), vec![info]),
        (3, _) => (Conv::Avg1d(window, padded), vec![info]),
        (_, 0) => (Conv::MaxPair2d(window), vec![info, positions]),
        (_, 1 | 2) => (Conv::Max2d(window), vec![info]),
        _ => (Conv::Avg2d(window, padded), vec![info]),
    };
    push(b, op, &[id], outs);
}

fn options<const N: usize>(w: &Window) -> ConvOptions<N> {
    ConvOptions::new([w.stride; N], [w.padding; N], [1; N], w.groups)
}

fn transpose_options<const N: usize>(w: &Window) -> ConvTransposeOptions<N> {
    ConvTransposeOptions::new([w.stride; N], [w.padding; N], [0; N], [1; N], w.groups)
}

pub(super) fn run<B: Backend>(op: &Conv, args: Vec<Value<B>>) -> Vec<Value<B>> {
    let mut args = args.into_iter();
    let mut next = || args.next().expect("an operand");
    let x = next();
    let one: Value<B> = match op {
        Conv::Conv1d(w) => {
            let weight = next().float();
            let bias = args.next().map(Value::float);
            module::conv1d(x.float(), weight, bias, options(w)).into()
        }
        Conv::Conv2d(w) => {
            let weight = next().float();
            let bias = args.next().map(Value::float);
            module::conv2d(x.float(), weight, bias, options(w)).into()
        }
        Conv::Conv3d(w) => {
            let weight = next().float::<4>().unsqueeze_dim::<5>(4);
            let bias = args.next().map(Value::float);
            let mut options: ConvOptions<3> = options(w);
            options.padding[2] = 0;
            options.stride[2] = 1;
            let x = x.float::<4>().unsqueeze_dim::<5>(4);
            module::conv3d(x, weight, bias, options)
                .squeeze_dim::<4>(4)
                .into()
        }
        Conv::Transpose1d(w) => {
            let weight = next().float();
            let bias = args.next().map(Value::float);
            module::conv_transpose1d(x.float(), weight, bias, transpose_options(w)).into()
        }
        Conv::Transpose2d(w) => {
            let weight = next().float();
            let bias = args.next().map(Value::float);
            module::conv_transpose2d(x.float(), weight, bias, transpose_options(w)).into()
        }
        Conv::Transpose3d(w) => {
            let weight = next().float::<4>().unsqueeze_dim::<5>(4);
            let bias = args.next().map(Value::float);
            let mut options: ConvTransposeOptions<3> = transpose_options(w);
            options.padding[2] = 0;
            options.stride[2] = 1;
            let x = x.float::<4>().unsqueeze_dim::<5>(4);
            module::conv_transpose3d(x, weight, bias, options)
                .squeeze_dim::<4>(4)
                .into()
        }
        Conv::Deform(w) => {
            let (offset, weight) = (next().float::<4>(), next().float());
            let mask = args.next().map(Value::float);
            // Whole offsets lie on kinks.
            let offset = distinct(offset.tanh()).mul_scalar(0.3).add_scalar(0.05);
            let options = DeformConvOptions::new([w.stride; 2], [w.padding; 2], [1; 2], 1, 1);
            module::deform_conv2d(x.float(), offset, weight, mask, None, options).into()
        }
        Conv::Max1d(w) => {
            let x = distinct(x.float());
            module::max_pool1d(x, w.kernel, w.stride, w.padding, 1, false).into()
        }
        Conv::Max2d(w) => {
            let (x, [kernel, stride, padding]) = (distinct(x.float()), sizes(w));
            module::max_pool2d(x, kernel, stride, padding, [1; 2], false).into()
        }
        Conv::MaxPair2d(w) => {
            let (x, [kernel, stride, padding]) = (distinct(x.float()), sizes(w));
            let (values, positions) =
                module::max_pool2d_with_indices(x, kernel, stride, padding, [1; 2], false);
            return vec![values.into(), positions.into()];
        }
        Conv::Avg1d(w, padded) => {
            module::avg_pool1d(x.float(), w.kernel, w.stride, w.padding, *padded, false).into()
        }
        Conv::Avg2d(w, padded) => {
            let [kernel, stride, padding] = sizes(w);
            module::avg_pool2d(x.float(), kernel, stride, padding, *padded, false).into()
        }
        Conv::Adaptive1d(len) => module::adaptive_avg_pool1d(x.float(), *len).into(),
        Conv::Adaptive2d(len) => module::adaptive_avg_pool2d(x.float(), [*len; 2]).into(),
        Conv::Interpolate(len, mode) => {
            let mode = match mode {
                Mode::Nearest => InterpolateMode::Nearest,
                Mode::Bilinear => InterpolateMode::Bilinear,
                Mode::Bicubic => InterpolateMode::Bicubic,
            };
            module::interpolate(x.float(), [*len; 2], InterpolateOptions::new(mode)).into()
        }
        Conv::Unfold4d(w) => {
            let [kernel, stride, padding] = sizes(w);
            let options = UnfoldOptions::new(stride, padding, [1; 2]);
            module::unfold4d(x.float(), kernel, options).into()
        }
        Conv::GridSample => {
            let grid: Tensor<B, 4> = distinct(next().float::<4>().tanh()).mul_scalar(0.6);
            x.float::<4>()
                .grid_sample_2d(grid, GridSampleOptions::default())
                .into()
        }
    };
    vec![one]
}

fn sizes(w: &Window) -> [[usize; 2]; 3] {
    [[w.kernel; 2], [w.stride; 2], [w.padding; 2]]
}
