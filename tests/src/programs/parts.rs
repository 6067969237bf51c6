//! Slices, joins and splits: how they are chosen. `shape.rs` runs them.

use super::shape::{Shape, push};
use super::{Builder, Id, Info, Kind, Op};
use burn::tensor::Slice;

/// Ranges in some dimensions; an odd one out is a step that is not 1.
fn slices(b: &mut Builder, shape: &[usize]) -> (Vec<Slice>, Vec<usize>) {
    let mut out = shape.to_vec();
    let first = b.rng.below(shape.len());
    let slices = (0..shape.len())
        .map(|dim| {
            if dim != first && b.rng.chance(60) {
                return Slice::full();
            }
            let (a, z) = (b.rng.below(shape[dim]), b.rng.below(shape[dim]));
            let (start, end) = (a.min(z), a.max(z) + 1);
            let step = b.rng.pick(&[1, 1, 1, 1, 2, 3, -1, -2]);
            let slice = Slice::new(start as isize, Some(end as isize), step);
            out[dim] = slice.output_size(shape[dim]);
            slice
        })
        .collect();
    (slices, out)
}

pub(super) fn slice(b: &mut Builder, id: Id) {
    let shape = b.info(id).shape;
    if b.rng.chance(30) {
        let dim = b.rng.below(shape.len());
        let start = b.rng.below(shape[dim]);
        let len = b.rng.within(1, shape[dim] - start);
        let mut out = shape;
        out[dim] = len;
        return push(b, id, Shape::Narrow { dim, start, len }, out);
    }
    let (slices, out) = slices(b, &shape);
    push(b, id, Shape::Slice(slices), out);
}

pub(super) fn slice_assign(b: &mut Builder, id: Id) {
    let info = b.info(id);
    let (slices, part) = slices(b, &info.shape);
    if info.kind != Kind::Bool && b.rng.chance(25) {
        let max = info.max.max(2.0);
        let op = Op::Shape(Shape::SliceFill(slices));
        b.push(op, &[id], vec![Info { max, ..info }]);
        return;
    }
    let value = b.shaped(info.kind, &part);
    let max = info.max.max(b.info(value).max);
    let op = Op::Shape(Shape::SliceAssign(slices));
    b.push(op, &[id, value], vec![Info { max, ..info }]);
}

pub(super) fn join(b: &mut Builder, id: Id) {
    let mut info = b.info(id);
    let dim = b.rng.below(info.rank());
    let stack = info.rank() < 4 && b.rng.chance(35);
    let mut ids = vec![id];
    let mut len = info.shape[dim];
    for _ in 0..b.rng.below(3) {
        let mut shape = info.shape.clone();
        if !stack {
            shape[dim] = b.rng.within(1, 5);
        }
        let similar = |other: &Info| {
            let mut sizes = other.shape.iter().zip(&info.shape).enumerate();
            other.kind == info.kind
                && other.rank() == info.rank()
                && sizes.all(|(d, (a, b))| a == b || (d == dim && !stack))
        };
        let found = if b.rng.chance(60) {
            b.find(similar)
        } else {
            None
        };
        let other = match found {
            Some(other) => other,
            None => b.shaped(info.kind, &shape),
        };
        len += b.info(other).shape[dim];
        info.max = info.max.max(b.info(other).max);
        ids.push(other);
    }
    b.rng
        .order(ids.len())
        .into_iter()
        .for_each(|i| ids.swap(0, i));
    let op = if stack {
        info.shape.insert(dim, ids.len());
        Shape::Stack(dim)
    } else {
        info.shape[dim] = len;
        Shape::Cat(dim)
    };
    if b.fits(&info.shape) {
        b.push(Op::Shape(op), &ids, vec![info]);
    }
}

pub(super) fn split(b: &mut Builder, id: Id) {
    let info = b.info(id);
    let dim = b.rng.below(info.rank());
    let len = info.shape[dim];
    let chunk = b.rng.chance(50);
    let pieces = b.rng.within(1, len.min(4));
    let size = len.div_ceil(pieces);
    let sizes: Vec<usize> = (0..len)
        .step_by(size)
        .map(|start| size.min(len - start))
        .collect();
    // Burn's chunks are as large as these where there are as many as asked for.
    let op = if chunk && sizes.len() == pieces {
        Shape::Chunk {
            chunks: pieces,
            dim,
        }
    } else {
        Shape::Split { size, dim }
    };
    let outs = sizes.into_iter().map(|size| {
        let mut out = info.clone();
        out.shape[dim] = size;
        out
    });
    b.push(Op::Shape(op), &[id], outs.collect());
}
