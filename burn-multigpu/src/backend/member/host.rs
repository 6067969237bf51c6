//! Parts of data in host memory: cutting what is uploaded, joining what is read.

use crate::layout::Layout;
use burn::tensor::{DType, Shape, TensorData};
use std::ops::Range;

/// A range of one dimension, copied out.
pub(in super::super) fn cut(data: &TensorData, dim: usize, range: &Range<usize>) -> TensorData {
    let runs = Runs::new(&data.shape, dim, data.dtype);
    let mut bytes = Vec::with_capacity(runs.outer * range.len() * runs.inner);
    for outer in 0..runs.outer {
        let start = outer * runs.row() + range.start * runs.inner;
        bytes.extend_from_slice(&data.bytes[start..start + range.len() * runs.inner]);
    }
    let mut shape = data.shape.clone();
    shape.as_mut_slice()[dim] = range.len();
    TensorData::from_bytes_vec(bytes, shape, data.dtype)
}

/// A member's part of data that is laid out over the mesh.
pub(in super::super) fn part(data: &TensorData, layout: &Layout, member: usize) -> TensorData {
    match layout {
        Layout::Sharded { dim, bounds } => cut(data, *dim, &bounds.range(member)),
        Layout::Replicated | Layout::Partial => data.clone(),
    }
}

/// The whole from its parts along a dimension, in their order.
pub(in super::super) fn join(
    parts: &[TensorData],
    shape: &Shape,
    dim: usize,
    dtype: DType,
) -> TensorData {
    let runs = Runs::new(shape, dim, dtype);
    let mut bytes = Vec::with_capacity(runs.outer * runs.row());
    for outer in 0..runs.outer {
        for part in parts {
            let len = part.shape[dim] * runs.inner;
            bytes.extend_from_slice(&part.bytes[outer * len..(outer + 1) * len]);
        }
    }
    TensorData::from_bytes_vec(bytes, shape.clone(), dtype)
}

/// Row-major data as runs: `outer` times `len` times `inner` bytes.
struct Runs {
    outer: usize,
    len: usize,
    inner: usize,
}

impl Runs {
    fn new(shape: &Shape, dim: usize, dtype: DType) -> Self {
        let dims = shape.as_slice();
        Self {
            outer: dims[..dim].iter().product(),
            len: dims[dim],
            inner: dims[dim + 1..].iter().product::<usize>() * dtype.size(),
        }
    }

    fn row(&self) -> usize {
        self.len * self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Bounds;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_join_to_the_whole(
            dims in proptest::collection::vec(1usize..5, 1..4),
            pick in 0usize..3,
            members in 1usize..6,
        ) {
            let dim = pick % dims.len();
            let len: usize = dims.iter().product();
            let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let data = TensorData::new(values, dims.clone());
            let layout = Layout::Sharded { dim, bounds: Bounds::even(dims[dim], members) };
            let parts: Vec<TensorData> =
                (0..members).map(|member| part(&data, &layout, member)).collect();
            prop_assert_eq!(parts[0].shape.as_slice()[dim], dims[dim].div_ceil(members));
            let joined = join(&parts, &data.shape, dim, data.dtype);
            prop_assert_eq!(joined, data);
        }
    }
}
