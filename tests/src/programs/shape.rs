//! What moves elements, of any kind.

use super::value::{Of, kinded, ranked};
use super::{Builder, Id, Info, Kind, Op, Value, parts};
use burn::tensor::{Shape as BurnShape, Slice, Tensor, backend::Backend};

/// Moves elements.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Shape {
    Reshape,
    Flatten(usize, usize),
    Unsqueeze(usize),
    Squeeze(usize),
    SwapDims(usize, usize),
    Permute(Vec<usize>),
    Flip(Vec<usize>),
    Expand,
    Repeat(Vec<usize>),
    Slice(Vec<Slice>),
    SliceAssign(Vec<Slice>),
    SliceFill(Vec<Slice>),
    Narrow {
        dim: usize,
        start: usize,
        len: usize,
    },
    Roll {
        by: i64,
        dim: usize,
    },
    Pad(Vec<(usize, usize)>),
    Cat(usize),
    Stack(usize),
    Split {
        size: usize,
        dim: usize,
    },
    Chunk {
        chunks: usize,
        dim: usize,
    },
    Unfold {
        dim: usize,
        size: usize,
        step: usize,
    },
    Triangle {
        upper: bool,
        diagonal: i64,
    },
}

pub(super) fn generate(b: &mut Builder) {
    let kind = b
        .rng
        .pick(&[Kind::Float, Kind::Float, Kind::Float, Kind::Int, Kind::Bool]);
    let id = b.any(kind);
    match b.rng.below(22) {
        0..4 => reshape(b, id),
        4..7 => parts::slice(b, id),
        7..9 => parts::slice_assign(b, id),
        9..12 => parts::join(b, id),
        12..14 => parts::split(b, id),
        _ => one(b, id),
    }
}

/// Pushes an operation of one tensor, unless the result would be too large or have too many
/// dimensions.
pub(super) fn push(b: &mut Builder, id: Id, op: Shape, shape: Vec<usize>) {
    if b.fits(&shape) && shape.len() <= 4 {
        let info = Info {
            shape,
            ..b.info(id)
        };
        b.push(Op::Shape(op), &[id], vec![info]);
    }
}

fn reshape(b: &mut Builder, id: Id) {
    let shape = b.info(id).shape;
    let rank = shape.len();
    let mut out = shape.clone();
    match b.rng.below(6) {
        // Neighbours become one.
        0 | 1 if rank > 1 => {
            let start = b.rng.below(rank - 1);
            let end = b.rng.within(start + 1, rank - 1);
            let merged: usize = shape[start..=end].iter().product();
            out.splice(start..=end, [merged]);
            let flatten = Shape::Flatten(start, end);
            let op = if b.rng.chance(50) {
                flatten
            } else {
                Shape::Reshape
            };
            return push(b, id, op, out);
        }
        2 => {
            let dim = b.rng.below(rank + 1);
            out.insert(dim, 1);
            return push(b, id, Shape::Unsqueeze(dim), out);
        }
        3 if rank > 1 => {
            if let Some(dim) = shape.iter().position(|size| *size == 1) {
                out.remove(dim);
                return push(b, id, Shape::Squeeze(dim), out);
            }
        }
        // Any other factorisation of the number of elements.
        4 => {
            let mut rest: usize = shape.iter().product();
            let ranks = b.rng.within(1, 4);
            out = (1..ranks)
                .map(|_| {
                    let divisors: Vec<usize> =
                        (1..=rest).filter(|d| rest.is_multiple_of(*d)).collect();
                    let divisor = b.rng.pick(&divisors);
                    rest /= divisor;
                    divisor
                })
                .collect();
            out.push(rest);
            return push(b, id, Shape::Reshape, out);
        }
        _ => {}
    }
    // One dimension becomes two.
    let dim = b.rng.below(rank);
    let divisors: Vec<usize> = (1..=shape[dim])
        .filter(|d| shape[dim].is_multiple_of(*d))
        .collect();
    let divisor = b.rng.pick(&divisors);
    out.splice(dim..=dim, [divisor, shape[dim] / divisor]);
    push(b, id, Shape::Reshape, out);
}

fn one(b: &mut Builder, id: Id) {
    let info = b.info(id);
    let (shape, rank) = (info.shape.clone(), info.rank());
    let mut out = shape.clone();
    let dim = b.rng.below(rank);
    let op = match b.rng.below(11) {
        0 => {
            let other = b.rng.below(rank);
            out.swap(dim, other);
            Shape::SwapDims(dim, other)
        }
        1 | 2 => {
            let axes = b.rng.order(rank);
            out = axes.iter().map(|axis| shape[*axis]).collect();
            Shape::Permute(axes)
        }
        3 => Shape::Flip(
            (0..rank)
                .filter(|d| *d == dim || b.rng.chance(30))
                .collect(),
        ),
        4 | 5 => {
            for size in &mut out {
                if *size == 1 {
                    *size = b.rng.within(1, 4);
                }
            }
            if rank < 4 && b.rng.chance(40) {
                out.insert(0, b.rng.within(1, 3));
            }
            Shape::Expand
        }
        6 => {
            let times: Vec<usize> = (0..rank).map(|_| b.rng.pick(&[1, 1, 2, 3])).collect();
            out.iter_mut()
                .zip(&times)
                .for_each(|(size, times)| *size *= times);
            Shape::Repeat(times)
        }
        7 => Shape::Roll {
            by: b.rng.below(5) as i64 - 2,
            dim,
        },
        8 if info.kind == Kind::Float => {
            let pads: Vec<_> = (0..rank)
                .map(|_| (b.rng.below(2), b.rng.below(3)))
                .collect();
            out.iter_mut()
                .zip(&pads)
                .for_each(|(size, pad)| *size += pad.0 + pad.1);
            Shape::Pad(pads)
        }
        9 if rank < 4 => {
            let size = b.rng.within(1, shape[dim]);
            let step = b.rng.within(1, 3);
            out[dim] = (shape[dim] - size) / step + 1;
            out.push(size);
            Shape::Unfold { dim, size, step }
        }
        _ if rank >= 2 && info.kind != Kind::Bool => Shape::Triangle {
            upper: b.rng.chance(50),
            diagonal: b.rng.below(4) as i64 - 2,
        },
        _ => Shape::Flip(vec![dim]),
    };
    push(b, id, op, out);
}

pub(super) fn run<B: Backend>(op: &Shape, args: Vec<Value<B>>, outs: &[Info]) -> Vec<Value<B>> {
    let rank = args[0].rank();
    match (op, args[0].kind()) {
        (Shape::Triangle { upper, diagonal }, Kind::Float) => ranked!(rank, D => {
            let t = only(args).float::<D>();
            vec![if *upper { t.triu(*diagonal) } else { t.tril(*diagonal) }.into()]
        }),
        (Shape::Triangle { upper, diagonal }, _) => ranked!(rank, D => {
            let t = only(args).int::<D>();
            vec![if *upper { t.triu(*diagonal) } else { t.tril(*diagonal) }.into()]
        }),
        (Shape::SliceFill(slices), Kind::Float) => ranked!(rank, D => {
            vec![only(args).float::<D>().slice_fill(slices.as_slice(), 0.7).into()]
        }),
        (Shape::SliceFill(slices), _) => ranked!(rank, D => {
            vec![only(args).int::<D>().slice_fill(slices.as_slice(), 2).into()]
        }),
        (Shape::Pad(pads), _) => ranked!(rank, D => {
            vec![only(args).float::<D>().pad(pads.clone(), 0.3).into()]
        }),
        (Shape::Reshape, kind) => kinded!(kind, K => reshaped::<B, K>(args, &outs[0])),
        (Shape::Expand, kind) => kinded!(kind, K => expanded::<B, K>(args, &outs[0])),
        (_, kind) => kinded!(kind, K => ranked!(rank, D => apply::<B, D, K>(op, args))),
    }
}

fn only<B: Backend>(args: Vec<Value<B>>) -> Value<B> {
    args.into_iter().next().expect("an operand")
}

fn reshaped<B: Backend, K: Of<B>>(args: Vec<Value<B>>, out: &Info) -> Vec<Value<B>> {
    let (value, shape) = (only(args), BurnShape::from(out.shape.clone()));
    ranked!(value.rank(), D => ranked!(out.rank(), E => {
        vec![value.of::<D, K>().reshape::<E, _>(shape).into()]
    }))
}

fn expanded<B: Backend, K: Of<B>>(args: Vec<Value<B>>, out: &Info) -> Vec<Value<B>> {
    let (value, shape) = (only(args), BurnShape::from(out.shape.clone()));
    ranked!(value.rank(), D => ranked!(out.rank(), E => {
        vec![value.of::<D, K>().expand::<E, _>(shape).into()]
    }))
}

/// What adds a dimension or takes some away; `$E` is the new rank.
macro_rules! other_rank {
    ($rank:expr, $E:ident => $body:expr) => {
        ranked!($rank, $E => vec![$body.into()])
    };
}

fn apply<B: Backend, const D: usize, K: Of<B>>(op: &Shape, args: Vec<Value<B>>) -> Vec<Value<B>> {
    let mut all: Vec<Tensor<B, D, K>> = args.into_iter().map(Value::of).collect();
    if let Shape::Cat(dim) = op {
        return vec![Tensor::cat(all, *dim).into()];
    }
    if let Shape::Stack(dim) = op {
        return other_rank!(D + 1, E => Tensor::stack::<E>(all, *dim));
    }
    let last = all.pop().expect("an operand");
    let one = match op {
        Shape::Flatten(start, end) => {
            return other_rank!(D + start - end, E => last.flatten::<E>(*start, *end));
        }
        Shape::Unsqueeze(dim) => {
            return other_rank!(D + 1, E => last.unsqueeze_dim::<E>(*dim));
        }
        Shape::Squeeze(dim) => return other_rank!(D - 1, E => last.squeeze_dim::<E>(*dim)),
        Shape::Unfold { dim, size, step } => {
            return other_rank!(D + 1, E => last.unfold::<E, _>(*dim, *size, *step));
        }
        Shape::Split { size, dim } => {
            return last
                .split(*size, *dim)
                .into_iter()
                .map(Into::into)
                .collect();
        }
        Shape::Chunk { chunks, dim } => {
            return last
                .chunk(*chunks, *dim)
                .into_iter()
                .map(Into::into)
                .collect();
        }
        Shape::SwapDims(a, b) => last.swap_dims(*a, *b),
        Shape::Permute(axes) => {
            last.permute(std::array::from_fn::<isize, D, _>(|dim| axes[dim] as isize))
        }
        // One after the other, since their number is a constant for Burn.
        Shape::Flip(axes) => axes.iter().fold(last, |t, axis| t.flip([*axis as isize])),
        Shape::Repeat(times) => last.repeat(times),
        Shape::Slice(slices) => last.slice(slices.as_slice()),
        Shape::SliceAssign(slices) => {
            let target = all.pop().expect("two operands");
            target.slice_assign(slices.as_slice(), last)
        }
        Shape::Narrow { dim, start, len } => last.narrow(*dim, *start, *len),
        Shape::Roll { by, dim } => last.roll_dim(*by as isize, *dim as isize),
        op => panic!("{op:?} is run elsewhere"),
    };
    vec![one.into()]
}
