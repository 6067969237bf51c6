//! What reads or writes where indices say.

use super::value::{Of, ranked};
use super::{Builder, Id, Info, Kind, Op, Value};
use burn::tensor::{Float, IndexingUpdateOp, Int, Tensor, backend::Backend, module};

/// Reads or writes where indices say, which are an int operand's values by the remainder.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Index {
    Gather {
        dim: usize,
        len: i64,
    },
    ScatterAdd {
        dim: usize,
        len: i64,
    },
    Select {
        dim: usize,
        len: i64,
    },
    SelectAdd {
        dim: usize,
        len: i64,
    },
    /// Two-dimensional indices.
    Take {
        dim: usize,
        len: i64,
    },
    /// Indices into the first dimensions.
    GatherNd {
        lens: Vec<usize>,
    },
    ScatterNd {
        lens: Vec<usize>,
    },
    OneHot(usize),
    Embedding {
        len: i64,
    },
}

pub(super) fn generate(b: &mut Builder) {
    match b.rng.below(11) {
        0 | 1 => gather(b),
        2 => scatter(b),
        3 | 4 => select(b, false),
        5 => select(b, true),
        6 => take(b),
        7 => nd(b),
        8 => {
            let id = b.ranked(Kind::Int, 1, 3);
            let mut shape = b.info(id).shape;
            let classes = b.rng.within(2, 5);
            shape.push(classes);
            if b.fits(&shape) {
                b.push(
                    Op::Index(Index::OneHot(classes)),
                    &[id],
                    vec![Info::int(shape, 1.0)],
                );
            }
        }
        _ => {
            let id = b.ranked(Kind::Int, 2, 2);
            let rows = b.rng.within(2, 7);
            let shape = [rows, b.rng.within(1, 4)];
            let table = b.param(&shape);
            let info = b.info(table);
            let mut out = b.info(id).shape;
            out.push(info.shape[1]);
            let op = Op::Index(Index::Embedding { len: rows as i64 });
            if b.fits(&out) {
                b.push(op, &[table, id], vec![Info::float(out, info.max)]);
            }
        }
    }
}

/// No bools: those that Flex gathers or selects are of type `U8`, which its other operations refuse.
fn source(b: &mut Builder) -> Id {
    let kind = b
        .rng
        .pick(&[Kind::Float, Kind::Float, Kind::Float, Kind::Int]);
    b.any(kind)
}

/// The shape of indices: that of the tensor, other along `dim`, and perhaps shorter elsewhere.
fn indices_shape(b: &mut Builder, shape: &[usize], dim: usize) -> Vec<usize> {
    let mut own = shape.to_vec();
    own[dim] = b.rng.within(1, 5);
    own
}

fn gather(b: &mut Builder) {
    let id = source(b);
    let info = b.info(id);
    let dim = b.rng.below(info.rank());
    let shape = indices_shape(b, &info.shape, dim);
    if !b.fits(&shape) {
        return;
    }
    let indices = b.shaped(Kind::Int, &shape);
    let op = Index::Gather {
        dim,
        len: info.shape[dim] as i64,
    };
    b.push(Op::Index(op), &[id, indices], vec![Info { shape, ..info }]);
}

fn scatter(b: &mut Builder) {
    let id = source(b);
    let mut info = b.info(id);
    let dim = b.rng.below(info.rank());
    let shape = indices_shape(b, &info.shape, dim);
    if !b.fits(&shape) {
        return;
    }
    let (indices, values) = (b.shaped(Kind::Int, &shape), b.shaped(info.kind, &shape));
    info.max += b.info(values).max * shape[dim] as f64;
    let op = Index::ScatterAdd {
        dim,
        len: info.shape[dim] as i64,
    };
    b.push(Op::Index(op), &[id, indices, values], vec![info]);
}

fn select(b: &mut Builder, assign: bool) {
    let id = source(b);
    let mut info = b.info(id);
    let dim = b.rng.below(info.rank());
    let count = if b.rng.chance(50) {
        info.shape[0]
    } else {
        b.rng.within(1, 6)
    };
    let (len, mut shape) = (info.shape[dim] as i64, info.shape.clone());
    shape[dim] = count;
    if !b.fits(&shape) {
        return;
    }
    let indices = b.shaped(Kind::Int, &[count]);
    if assign {
        let values = b.shaped(info.kind, &shape);
        info.max += b.info(values).max * count as f64;
        b.push(
            Op::Index(Index::SelectAdd { dim, len }),
            &[id, indices, values],
            vec![info],
        );
    } else {
        b.push(
            Op::Index(Index::Select { dim, len }),
            &[id, indices],
            vec![Info { shape, ..info }],
        );
    }
}

fn take(b: &mut Builder) {
    let id = b.ranked(Kind::Float, 1, 3);
    let info = b.info(id);
    let dim = b.rng.below(info.rank());
    let indices = b.ranked(Kind::Int, 2, 2);
    let mut shape = info.shape.clone();
    shape.splice(dim..=dim, b.info(indices).shape);
    if b.fits(&shape) {
        let op = Index::Take {
            dim,
            len: info.shape[dim] as i64,
        };
        b.push(Op::Index(op), &[id, indices], vec![Info { shape, ..info }]);
    }
}

/// Of floats: Flex has none of ints.
fn nd(b: &mut Builder) {
    let id = b.ranked(Kind::Float, 1, 3);
    let mut info = b.info(id);
    let deep = b.rng.within(1, info.rank());
    let lens = info.shape[..deep].to_vec();
    let count = if b.rng.chance(50) {
        info.shape[0]
    } else {
        b.rng.within(1, 6)
    };
    let indices = b.shaped(Kind::Int, &[count, deep]);
    let mut shape = vec![count];
    shape.extend(&info.shape[deep..]);
    if b.rng.chance(60) {
        let op = Op::Index(Index::GatherNd { lens });
        b.push(op, &[id, indices], vec![Info { shape, ..info }]);
    } else {
        let values = b.shaped(Kind::Float, &shape);
        info.max += b.info(values).max * count as f64;
        b.push(
            Op::Index(Index::ScatterNd { lens }),
            &[id, indices, values],
            vec![info],
        );
    }
}

pub(super) fn run<B: Backend>(op: &Index, args: Vec<Value<B>>, out: &Info) -> Value<B> {
    if let Index::OneHot(classes) = op {
        let value = args.into_iter().next().expect("an operand");
        return ranked!(value.rank(), D => ranked!(D + 1, E => {
            let t = value.int::<D>().abs().remainder_scalar(*classes as i64);
            t.one_hot::<E>(*classes).into()
        }));
    }
    if let Index::Embedding { len } = op {
        let mut args = args.into_iter();
        let mut next = || args.next().expect("an operand");
        let table = next().float::<2>();
        let indices = next().int::<2>().abs().remainder_scalar(*len);
        return module::embedding(table, indices).into();
    }
    let (kind, rank) = (args[0].kind(), args[0].rank());
    match kind {
        Kind::Float => ranked!(rank, D => apply::<B, D, Float>(op, args, out)),
        Kind::Int => ranked!(rank, D => apply::<B, D, Int>(op, args, out)),
        Kind::Bool => panic!("{op:?} is not for bools"),
    }
}

fn apply<B: Backend, const D: usize, K: Of<B>>(
    op: &Index,
    args: Vec<Value<B>>,
    out: &Info,
) -> Value<B> {
    let mut args = args.into_iter();
    let mut next = || args.next().expect("an operand");
    let t = next().of::<D, K>();
    match op {
        Index::Gather { dim, len } => {
            let indices = next().int::<D>().abs().remainder_scalar(*len);
            t.gather(*dim, indices).into()
        }
        Index::ScatterAdd { dim, len } => {
            let indices = next().int::<D>().abs().remainder_scalar(*len);
            t.scatter(*dim, indices, next().of(), IndexingUpdateOp::Add)
                .into()
        }
        Index::Select { dim, len } => {
            let indices = next().int::<1>().abs().remainder_scalar(*len);
            t.select(*dim, indices).into()
        }
        Index::SelectAdd { dim, len } => {
            let indices = next().int::<1>().abs().remainder_scalar(*len);
            t.select_assign(*dim, indices, next().of(), IndexingUpdateOp::Add)
                .into()
        }
        Index::Take { dim, len } => {
            let indices = next().int::<2>().abs().remainder_scalar(*len);
            ranked!(out.rank(), E => t.take::<2, E>(*dim, indices).into())
        }
        Index::GatherNd { lens } => {
            let indices = nd_indices::<B>(next(), lens);
            ranked!(out.rank(), E => t.gather_nd::<2, E>(indices).into())
        }
        Index::ScatterNd { lens } => {
            let indices = nd_indices::<B>(next(), lens);
            let values = next();
            ranked!(values.rank(), E => {
                t.scatter_nd::<2, E>(indices, values.of(), IndexingUpdateOp::Add).into()
            })
        }
        op => panic!("{op:?} is run elsewhere"),
    }
}

/// Each column by the remainder of its own length.
fn nd_indices<B: Backend>(value: Value<B>, lens: &[usize]) -> Tensor<B, 2, Int> {
    let indices = value.int::<2>().abs();
    let lens: Vec<i64> = lens.iter().map(|len| *len as i64).collect();
    let lens = Tensor::<B, 1, Int>::from_data(lens.as_slice(), &indices.device());
    indices.remainder(lens.unsqueeze())
}
