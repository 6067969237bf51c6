//! Matrix products, attention, norms, losses, Fourier transforms.

use super::float::OFF;
use super::shape::Shape;
use super::value::ranked;
use super::{Builder, Info, Kind, Op, Value};
use burn::nn::loss::{CrossEntropyLossConfig, MseLoss, Reduction};
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Tensor, activation, backend::Backend, module, signal};

/// An operation of a model.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Layer {
    Matmul,
    IntMatmul,
    Cross(usize),
    Linear,
    Attention {
        mask: bool,
        bias: bool,
        causal: bool,
    },
    /// Over the last dimension.
    LayerNorm,
    /// Over all but the second dimension.
    BatchNorm,
    GroupNorm(usize),
    Prelu,
    Glu(usize),
    CrossEntropy,
    /// Against probabilities.
    SoftCrossEntropy,
    Mse(bool),
    Ctc,
    /// There and back. Burn's autodiff has none.
    Fourier(usize),
}

pub(super) fn generate(b: &mut Builder) {
    match b.rng.below(22) {
        0..5 => matmul(b, Kind::Float),
        5 => matmul(b, Kind::Int),
        6..9 => linear(b),
        9 | 10 => attention(b),
        11..14 => norm(b),
        14 => {
            let shape = [b.rng.within(1, 6), b.rng.within(1, 5), 3];
            // Nothing is broadcast: Burn's autodiff would not add up such a gradient.
            let (left, right) = (b.shaped(Kind::Float, &shape), b.shaped(Kind::Float, &shape));
            let max = 2.0 * b.info(left).max * b.info(right).max;
            b.push(
                Op::Layer(Layer::Cross(2)),
                &[left, right],
                vec![Info::float(shape, max)],
            );
        }
        15 => {
            let id = b.ranked(Kind::Float, 2, 4);
            let info = b.info(id);
            let slopes = b.param(&[info.shape[1]]);
            b.push(Op::Layer(Layer::Prelu), &[id, slopes], vec![info]);
        }
        16 => {
            let even = b.find(|info| {
                info.kind == Kind::Float && info.shape.iter().any(|size| size % 2 == 0)
            });
            if let Some(id) = even {
                let mut info = b.info(id);
                let dim = info
                    .shape
                    .iter()
                    .position(|size| size % 2 == 0)
                    .unwrap_or_default();
                info.shape[dim] /= 2;
                b.push(Op::Layer(Layer::Glu(dim)), &[id], vec![info]);
            }
        }
        17..20 => loss(b),
        20 if !b.autodiff => {
            let rank = b.rng.within(1, 3);
            let mut shape = b.shape(rank);
            let dim = b.rng.below(rank);
            shape[dim] = b.rng.pick(&[2, 4, 8]);
            let id = b.shaped(Kind::Float, &shape);
            let out = Info::float(shape, b.info(id).max * 16.0);
            b.push(Op::Layer(Layer::Fourier(dim)), &[id], vec![out]);
        }
        _ => ctc(b),
    }
}

fn matmul(b: &mut Builder, kind: Kind) {
    let left = b.ranked(kind, 2, 4);
    let info = b.info(left);
    let rank = info.rank();
    let inner = info.shape[rank - 1];
    let mut right = info.shape.clone();
    right[rank - 2] = inner;
    right[rank - 1] = b.len(5);
    for dim in &mut right[..rank - 2] {
        if b.rng.chance(40) {
            *dim = 1;
        }
    }
    // By itself, as it is or transposed.
    let same = info.shape[rank - 1] == info.shape[rank - 2] && b.rng.chance(30);
    let other = if same {
        left
    } else if b.rng.chance(15) {
        let mut transposed = info.clone();
        transposed.shape.swap(rank - 1, rank - 2);
        b.push(
            Op::Shape(Shape::SwapDims(rank - 2, rank - 1)),
            &[left],
            vec![transposed],
        )
    } else {
        b.shaped(kind, &right)
    };
    let other_info = b.info(other);
    let mut out = info.clone();
    out.shape[rank - 1] = other_info.shape[rank - 1];
    out.max *= other_info.max * inner as f64;
    if b.fits(&out.shape) {
        let op = if kind == Kind::Float {
            Layer::Matmul
        } else {
            Layer::IntMatmul
        };
        b.push(Op::Layer(op), &[left, other], vec![out]);
    }
}

fn linear(b: &mut Builder) {
    let id = b.ranked(Kind::Float, 1, 4);
    let mut info = b.info(id);
    let inner = info.shape[info.rank() - 1];
    let features = b.len(6);
    let weight = b.param(&[inner, features]);
    let mut args = vec![id, weight];
    let mut max = info.max * b.info(weight).max * inner as f64;
    if b.rng.chance(60) {
        let bias = b.param(&[features]);
        max += b.info(bias).max;
        args.push(bias);
    }
    let last = info.rank() - 1;
    info.shape[last] = features;
    info.max = max;
    if b.fits(&info.shape) {
        b.push(Op::Layer(Layer::Linear), &args, vec![info]);
    }
}

fn attention(b: &mut Builder) {
    let id = b.ranked(Kind::Float, 4, 4);
    let query = b.info(id).shape;
    let mut key = query.clone();
    key[2] = b.rng.within(1, 5);
    let mut value = key.clone();
    value[3] = b.rng.within(1, 4);
    let causal = key[2] == query[2] && b.rng.chance(30);
    let scores = [query[0], query[1], query[2], key[2]];
    let mut out = query.clone();
    out[3] = value[3];
    if ![&key[..], &value, &scores, &out]
        .into_iter()
        .all(|shape| b.fits(shape))
    {
        return;
    }
    let (key, value) = (b.shaped(Kind::Float, &key), b.shaped(Kind::Float, &value));
    let mut args = vec![id, key, value];
    let (mask, bias) = (b.rng.chance(40), b.rng.chance(40));
    if mask {
        args.push(b.shaped(Kind::Bool, &scores));
    }
    if bias {
        args.push(b.shaped(Kind::Float, &scores));
    }
    let op = Layer::Attention { mask, bias, causal };
    let max = b.info(value).max;
    b.push(Op::Layer(op), &args, vec![Info::float(out, max)]);
}

fn norm(b: &mut Builder) {
    let id = b.ranked(Kind::Float, 2, 4);
    let mut info = b.info(id);
    let channels = info.shape[1];
    let (op, features) = match b.rng.below(3) {
        0 => (Layer::LayerNorm, info.shape[info.rank() - 1]),
        1 => (Layer::BatchNorm, channels),
        _ => {
            let groups: Vec<usize> = (1..=channels)
                .filter(|g| channels.is_multiple_of(*g))
                .collect();
            (Layer::GroupNorm(b.rng.pick(&groups)), channels)
        }
    };
    let (gamma, beta) = (b.param(&[features]), b.param(&[features]));
    info.max = 4.0 * b.info(gamma).max + b.info(beta).max;
    b.push(Op::Layer(op), &[id, gamma, beta], vec![info]);
}

fn loss(b: &mut Builder) {
    let id = b.ranked(Kind::Float, 2, 2);
    let Info { shape, max, .. } = b.info(id);
    let (op, other) = match b.rng.below(4) {
        0 | 1 => (Layer::CrossEntropy, b.shaped(Kind::Int, &shape[..1])),
        2 => (Layer::SoftCrossEntropy, b.shaped(Kind::Float, &shape)),
        _ => (Layer::Mse(b.rng.chance(50)), b.shaped(Kind::Float, &shape)),
    };
    let elements = (shape[0] * shape[1]) as f64;
    let max = max * max * elements * 4.0 + 5.0;
    b.push(Op::Layer(op), &[id, other], vec![Info::float([1], max)]);
}

fn ctc(b: &mut Builder) {
    let mut shape = b.shape(2);
    shape = vec![b.rng.within(4, 6), shape[0], b.rng.within(3, 4)];
    let id = b.shaped(Kind::Float, &shape);
    let targets = b.shaped(Kind::Int, &[shape[1], 2]);
    let out = Info::float([shape[1]], 30.0);
    b.push(Op::Layer(Layer::Ctc), &[id, targets], vec![out]);
}

pub(super) fn run<B: Backend>(op: &Layer, args: Vec<Value<B>>) -> Value<B> {
    let rank = args[0].rank();
    let mut args = args.into_iter();
    let mut next = || args.next().expect("an operand");
    let first = next();
    match op {
        Layer::Matmul => ranked!(rank, D => first.float::<D>().matmul(next().float()).into()),
        Layer::IntMatmul => ranked!(rank, D => first.int::<D>().matmul(next().int()).into()),
        Layer::Cross(dim) => first
            .float::<3>()
            .cross(next().float(), *dim as isize)
            .into(),
        Layer::Linear => {
            let weight = next().float();
            let bias = args.next().map(Value::float);
            ranked!(rank, D => module::linear(first.float::<D>(), weight, bias).into())
        }
        Layer::Attention { mask, bias, causal } => {
            let (key, value) = (next().float(), next().float());
            let options = AttentionModuleOptions {
                is_causal: *causal,
                ..Default::default()
            };
            // A row without anything to attend to would be 0 by 0.
            let mask = mask.then(|| {
                let mask = next().bool::<4>();
                let all = mask.clone().all_dim(3);
                mask.bool_and(all.bool_not())
            });
            let bias = bias.then(|| next().float());
            // Both together may forbid everything.
            let mask = mask.filter(|_| !causal);
            module::attention(first.float(), key, value, mask, bias, options).into()
        }
        Layer::LayerNorm => match (first, next(), next()) {
            (Value::Float(x), Value::Float(gamma), Value::Float(beta)) => {
                Value::Float(B::layer_norm(x, gamma, Some(beta), 1e-2))
            }
            _ => panic!("a norm is of floats"),
        },
        Layer::BatchNorm => ranked!(rank, D => {
            let dims: Vec<usize> = (0..D).filter(|dim| *dim != 1).collect();
            affine(normal(first.float::<D>(), &dims), next(), next(), 1).into()
        }),
        Layer::GroupNorm(groups) => ranked!(rank, D => {
            let x = first.float::<D>();
            let shape = x.shape();
            let rows = x.reshape([shape[0] as i64, *groups as i64, -1]);
            let rows = normal(rows, &[2]);
            affine(rows.reshape(shape) as Tensor<B, D>, next(), next(), 1).into()
        }),
        Layer::Prelu => ranked!(rank, D => {
            let x = first.float::<D>().add_scalar(OFF);
            activation::prelu(x, next().float()).into()
        }),
        Layer::Glu(dim) => ranked!(rank, D => activation::glu(first.float::<D>(), *dim).into()),
        Layer::CrossEntropy => {
            let logits = first.float::<2>();
            let classes = logits.dims()[1] as i64;
            let targets = next().int::<1>().abs().remainder_scalar(classes);
            let loss = CrossEntropyLossConfig::new().init(&logits.device());
            loss.forward(logits, targets).into()
        }
        Layer::SoftCrossEntropy => {
            let targets = activation::softmax(next().float::<2>(), 1);
            burn::tensor::loss::cross_entropy_with_logits(first.float(), targets).into()
        }
        Layer::Mse(mean) => {
            let reduction = if *mean {
                Reduction::Mean
            } else {
                Reduction::Sum
            };
            MseLoss::new()
                .forward(first.float::<2>(), next().float(), reduction)
                .into()
        }
        Layer::Ctc => {
            let probabilities = activation::log_softmax(first.float::<3>(), 2);
            let [time, batch, classes] = probabilities.dims();
            let targets = next().int::<2>().abs().remainder_scalar(classes as i64 - 1);
            let device = probabilities.device();
            let lengths = |len: usize| Tensor::full([batch], len as i64, &device);
            let (times, labels) = (lengths(time), lengths(2));
            module::ctc_loss(probabilities, targets.add_scalar(1), times, labels, 0).into()
        }
        Layer::Fourier(dim) => ranked!(rank, D => {
            let (real, imaginary) = signal::rfft(first.float::<D>(), *dim, None);
            signal::irfft(real.mul_scalar(2.0), imaginary.add_scalar(0.3), *dim, None).into()
        }),
    }
}

/// Mean 0 and variance 1 over some dimensions.
fn normal<B: Backend, const D: usize>(x: Tensor<B, D>, dims: &[usize]) -> Tensor<B, D> {
    let centered = x.clone().sub(x.mean_dims(dims));
    let variance = centered.clone().square().mean_dims(dims);
    centered.div(variance.add_scalar(1e-2).sqrt())
}

/// A factor and an offset for each position of a dimension.
fn affine<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    gamma: Value<B>,
    beta: Value<B>,
    dim: usize,
) -> Tensor<B, D> {
    let mut shape = [1; D];
    shape[dim] = x.dims()[dim];
    let (gamma, beta) = (
        gamma.float::<1>().reshape(shape),
        beta.float::<1>().reshape(shape),
    );
    x.mul(gamma).add(beta)
}
