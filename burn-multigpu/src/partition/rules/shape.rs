//! What moves elements without looking at them: all of it is linear, in all inputs at once.

use super::super::rule::{Axis, Factor, Linear, Operand, Outcome, Rule, along, onto};
use super::{dims, passing, size};
use burn_backend::Slice;
use burn_ir::{
    CatOpIr, FlipOpIr, PermuteOpIr, RepeatDimOpIr, ShapeOpIr, SliceOpIr, SwapDimsOpIr, TensorIr,
    UnfoldOpIr,
};

/// A cut passes where the dimensions before it hold as many elements on both sides, and one of the
/// two dimensions is a multiple of the other: a batch that is merged into a longer dimension is
/// still cut between its elements.
pub(super) fn reshape(op: &ShapeOpIr) -> Rule {
    let mut factors = Vec::new();
    if op.input.shape.num_elements() > 0 {
        for (dim, before, size) in leading(&op.input) {
            // Elements before a dimension grow with each one listed, so at most one matches.
            let other = leading(&op.out).find(|&(_, elements, _)| elements == before);
            let Some((out_dim, _, out_size)) = other else {
                continue;
            };
            let (unit, out_unit) = if out_size % size == 0 {
                (1, out_size / size)
            } else if size % out_size == 0 {
                (size / out_size, 1)
            } else {
                continue;
            };
            factors.push(Factor::new(
                [Operand::Along(Axis { dim, unit })],
                [Outcome::Along(Axis {
                    dim: out_dim,
                    unit: out_unit,
                })],
            ));
        }
    }
    Rule::new(factors).linear(Linear::Jointly)
}

/// The dimensions of several elements, with the number of elements before them and their size.
fn leading(tensor: &TensorIr) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    let sizes = tensor.shape.as_slice().iter();
    sizes
        .scan(1, |before, &size| {
            let elements = *before;
            *before *= size;
            Some((elements, size))
        })
        .enumerate()
        .map(|(dim, (before, size))| (dim, before, size))
        .filter(|&(_, _, size)| size > 1)
}

pub(super) fn swap_dims(op: &SwapDimsOpIr) -> Rule {
    moved(&op.out, |dim| match dim {
        _ if dim == op.dim1 => op.dim2,
        _ if dim == op.dim2 => op.dim1,
        _ => dim,
    })
}

pub(super) fn permute(op: &PermuteOpIr) -> Rule {
    moved(&op.out, |dim| op.axes.get(dim).copied().unwrap_or(dim))
}

/// Each dimension of the output is one of the input.
fn moved(out: &TensorIr, from: impl Fn(usize) -> usize) -> Rule {
    let factors = dims(out)
        .filter(|&dim| size(out, dim) > 1)
        .map(|dim| Factor::new([along(from(dim))], [onto(dim)]))
        .collect();
    Rule::new(factors).linear(Linear::Jointly)
}

/// The dimensions that are there already, aligned from the right; a new one would repeat on each
/// member what it has in any case.
pub(super) fn expand(op: &ShapeOpIr) -> Rule {
    let new = op
        .out
        .shape
        .num_dims()
        .saturating_sub(op.input.shape.num_dims());
    let factors = dims(&op.input)
        .filter(|&dim| size(&op.input, dim) > 1 && size(&op.out, dim + new) == size(&op.input, dim))
        .map(|dim| Factor::new([along(dim)], [onto(dim + new)]))
        .collect();
    Rule::new(factors).linear(Linear::Jointly)
}

pub(super) fn flip(op: &FlipOpIr) -> Rule {
    kept(&op.input, |dim| !op.axes.contains(&dim))
}

pub(super) fn repeat_dim(op: &RepeatDimOpIr) -> Rule {
    kept(&op.tensor, |dim| dim != op.dim)
}

/// The windows' elements are a new last dimension, so the others keep their place.
pub(super) fn unfold(op: &UnfoldOpIr) -> Rule {
    kept(&op.input, |dim| dim != op.dim)
}

/// A slice of the cut dimension is the planner's: it knows whose elements are in the range.
pub(super) fn slice(op: &SliceOpIr) -> Rule {
    kept(&op.tensor, |dim| is_full(&op.ranges, dim, &op.tensor))
}

fn kept(input: &TensorIr, keeps: impl Fn(usize) -> bool) -> Rule {
    let kept = dims(input).filter(|&dim| keeps(dim));
    Rule::new(passing(input, kept, 1, 1)).linear(Linear::Jointly)
}

/// Whether a slice takes the dimension as it is; those without a range are not sliced.
pub(super) fn is_full(ranges: &[Slice], dim: usize, tensor: &TensorIr) -> bool {
    ranges.get(dim).is_none_or(|slice| {
        let range = slice.to_range(size(tensor, dim));
        slice.step == 1 && range.start == 0 && range.end == size(tensor, dim)
    })
}

pub(super) fn cat(op: &CatOpIr) -> Rule {
    let others = dims(&op.out).filter(|&dim| dim != op.dim);
    Rule::new(passing(&op.out, others, op.tensors.len(), 1)).linear(Linear::Jointly)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{base, factors, float, id, linear};
    use super::*;
    use burn_backend::Shape;
    use burn_ir::BaseOperationIr;
    use proptest::prelude::*;

    fn reshaped<const A: usize, const B: usize>(from: [usize; A], to: [usize; B]) -> Vec<String> {
        let desc = ShapeOpIr::reshape(float(from), to.into(), id);
        factors(&base(BaseOperationIr::Reshape(desc)))
    }

    #[test]
    fn a_reshape_follows_the_leading_factor() {
        assert_eq!(reshaped([4, 6], [4, 2, 3]), ["0 -> 0", "1*3 -> 1"]);
        assert_eq!(reshaped([4, 3, 5], [12, 5]), ["0 -> 0*3", "2 -> 1"]);
        assert_eq!(reshaped([12, 5], [4, 3, 5]), ["0*3 -> 0", "1 -> 2"]);
        assert_eq!(reshaped([4, 1, 6], [1, 4, 6]), ["0 -> 1", "2 -> 2"]);
        assert!(reshaped([4, 6], [6, 4]).is_empty());
        assert!(reshaped([1, 1], [1]).is_empty());
        assert!(reshaped([4, 0], [2, 0]).is_empty());
    }

    #[test]
    fn dimensions_change_places() {
        let desc = SwapDimsOpIr::create(float([2, 1, 3]), 0, 2, id);
        let op = base(BaseOperationIr::SwapDims(desc));
        assert_eq!(factors(&op), ["2 -> 0", "0 -> 2"]);
        assert_eq!(linear(&op), Linear::Jointly);
        let desc = PermuteOpIr::create(float([2, 3, 4]), vec![2, 0, 1], id);
        let op = base(BaseOperationIr::Permute(desc));
        assert_eq!(factors(&op), ["2 -> 0", "0 -> 1", "1 -> 2"]);
    }

    #[test]
    fn an_expanded_dimension_is_not_cut() {
        let desc = ShapeOpIr::expand(float([3, 1]), Shape::new([2, 3, 4]), id);
        assert_eq!(factors(&base(BaseOperationIr::Expand(desc))), ["0 -> 1"]);
    }

    #[test]
    fn the_other_dimensions_pass() {
        let desc = FlipOpIr::create(float([2, 3, 4]), vec![0, 2], id);
        assert_eq!(factors(&base(BaseOperationIr::Flip(desc))), ["1 -> 1"]);
        let desc = RepeatDimOpIr::create(float([2, 3]), 1, 2, id);
        assert_eq!(factors(&base(BaseOperationIr::RepeatDim(desc))), ["0 -> 0"]);
        let desc = UnfoldOpIr::create(float([2, 8, 3]), 1, 4, 2, id);
        let op = base(BaseOperationIr::Unfold(desc));
        assert_eq!(factors(&op), ["0 -> 0", "2 -> 2"]);
        let desc = CatOpIr::create(vec![float([2, 3, 4]), float([2, 1, 4])], 1, id);
        let op = base(BaseOperationIr::Cat(desc));
        assert_eq!(factors(&op), ["0 0 -> 0", "2 2 -> 2"]);
        assert_eq!(linear(&op), Linear::Jointly);
    }

    #[test]
    fn a_slice_passes_what_it_takes_whole() {
        let sliced = |ranges: &[Slice]| {
            let desc = SliceOpIr::create(float([4, 3, 2]), ranges.to_vec(), id);
            factors(&base(BaseOperationIr::Slice(desc)))
        };
        let full = Slice::full();
        assert_eq!(sliced(&[Slice::new(0, Some(2), 1)]), ["1 -> 1", "2 -> 2"]);
        assert_eq!(
            sliced(&[full, Slice::new(-1, None, 1)]),
            ["0 -> 0", "2 -> 2"]
        );
        assert_eq!(
            sliced(&[Slice::new(0, Some(4), 1), full, Slice::new(0, None, -1)]),
            ["0 -> 0", "1 -> 1"]
        );
        assert_eq!(sliced(&[Slice::new(0, None, 2)]), ["1 -> 1", "2 -> 2"]);
    }

    /// The part of row-major data between two positions of a dimension.
    fn part(
        data: &[usize],
        shape: &[usize],
        dim: usize,
        range: std::ops::Range<usize>,
    ) -> Vec<usize> {
        let rest: usize = shape[dim + 1..].iter().product();
        let block = rest * shape[dim];
        data.chunks(block)
            .flat_map(|chunk| chunk[range.start * rest..range.end * rest].to_vec())
            .collect()
    }

    /// A shape, and it again with neighbours merged (`0`), dimensions split (`1`) or as they are.
    fn shapes() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
        let dims = prop::collection::vec((1..4usize, 1..4usize, 0..4u8), 1..5);
        dims.prop_map(|dims| {
            let from: Vec<usize> = dims.iter().map(|(a, b, _)| a * b).collect();
            let mut to = Vec::new();
            for (a, b, how) in dims {
                match how {
                    0 if !to.is_empty() => *to.last_mut().unwrap() *= a * b,
                    1 => to.extend([a, b]),
                    2 => to.extend([1, a * b]),
                    _ => to.push(a * b),
                }
            }
            (from, to)
        })
    }

    proptest! {
        #[test]
        fn reshaping_parts_gives_the_parts_of_the_reshaped(
            (from, to) in shapes(),
            backwards in any::<bool>(),
            cuts in (0.0..1.0f64, 0.0..1.0f64),
        ) {
            let (from, to) = if backwards { (to, from) } else { (from, to) };
            let input = TensorIr { shape: from.clone().into(), ..float([1]) };
            let op = ShapeOpIr::reshape(input, to.clone().into(), id);
            let data: Vec<usize> = (0..from.iter().product()).collect();
            for factor in reshape(&op).factors {
                let (Operand::Along(own), Outcome::Along(other)) =
                    (factor.inputs[0], factor.outputs[0])
                else {
                    panic!("a reshape moves parts");
                };
                let steps = from[own.dim] / own.unit;
                prop_assert_eq!(steps * own.unit, from[own.dim]);
                prop_assert_eq!(steps * other.unit, to[other.dim]);
                let cut = |at: f64| (at * (steps + 1) as f64) as usize;
                let (a, b) = (cut(cuts.0), cut(cuts.1));
                let (start, end) = (a.min(b), a.max(b));

                let before = part(&data, &from, own.dim, start * own.unit..end * own.unit);
                let after = part(&data, &to, other.dim, start * other.unit..end * other.unit);
                // Row-major data keeps its order when it is reshaped.
                prop_assert_eq!(before, after);
                let mut local = from.clone();
                local[own.dim] = (end - start) * own.unit;
                let mut local_out = to.clone();
                local_out[other.dim] = (end - start) * other.unit;
                let elements = |shape: &[usize]| shape.iter().product::<usize>();
                prop_assert_eq!(elements(&local), elements(&local_out));
            }
        }
    }
}
