//! Where the elements of a tensor are: pure data, no device.

use crate::shard::shard_sizes;
use burn::tensor::Shape;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How a tensor lies on the members of a mesh.
///
/// ```
/// use burn::tensor::Shape;
/// use burn_multigpu::layout::{Bounds, Layout};
///
/// let layout = Layout::Sharded { dim: 0, bounds: Bounds::even(5, 2) };
/// assert_eq!(layout.to_string(), "sharded along 0: 3+2");
/// assert_eq!(layout.local_shape(&Shape::new([5, 8]), 1), Shape::new([2, 8]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Every member holds all of it, with the same bits.
    Replicated,
    /// Each member holds a contiguous part of one dimension.
    Sharded {
        /// The dimension that is cut.
        dim: usize,
        /// Where it is cut.
        bounds: Bounds,
    },
    /// Every member holds a tensor of the full shape, and the value is their sum.
    Partial,
}

/// Where a dimension is cut: member `i` holds `bounds[i]..bounds[i + 1]`, which may be empty.
///
/// ```
/// use burn_multigpu::layout::Bounds;
///
/// let bounds = Bounds::even(50, 3);
/// assert_eq!(bounds.range(1), 17..34);
/// assert_eq!(bounds.len(), 50);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Bounds(Arc<[usize]>);

impl Bounds {
    /// As even as possible, the first members one more; see [`shard_sizes`].
    ///
    /// # Panics
    ///
    /// If `members` is 0.
    #[must_use]
    pub fn even(len: usize, members: usize) -> Self {
        Self::from_sizes(shard_sizes(len, members))
    }

    /// Consecutive parts of the given sizes.
    #[must_use]
    pub fn from_sizes(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut end = 0;
        let cuts = sizes.into_iter().map(|size| {
            end += size;
            end
        });
        Self(std::iter::once(0).chain(cuts).collect())
    }

    /// The part of a member.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    #[must_use]
    pub fn range(&self, member: usize) -> Range<usize> {
        self.0[member]..self.0[member + 1]
    }

    /// The size of a member's part.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    #[must_use]
    pub fn size(&self, member: usize) -> usize {
        self.0[member + 1] - self.0[member]
    }

    /// The length of the dimension.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0[self.0.len() - 1]
    }

    /// Whether the dimension has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of parts, empty ones included.
    #[must_use]
    pub fn members(&self) -> usize {
        self.0.len() - 1
    }

    /// The parts in order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.0.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// Every cut multiplied, as when rows of `unit` elements each are counted in elements.
    pub(crate) fn times(&self, unit: usize) -> Self {
        if unit == 1 {
            return self.clone();
        }
        Self(self.0.iter().map(|cut| cut * unit).collect())
    }

    /// The inverse of [`times`](Self::times), where every cut is a multiple of `unit`.
    pub(crate) fn divided(&self, unit: usize) -> Option<Self> {
        if unit == 1 {
            return Some(self.clone());
        }
        self.0
            .iter()
            .map(|cut| (cut % unit == 0).then_some(cut / unit))
            .collect::<Option<Arc<[usize]>>>()
            .map(Self)
    }

    /// The parts of `range` that the members hold, counted from its start.
    pub(crate) fn within(&self, range: &Range<usize>) -> Self {
        let cut = |cut: &usize| cut.clamp(&range.start, &range.end) - range.start;
        Self(self.0.iter().map(cut).collect())
    }

    /// One element for each member whose part is not empty, none for the others.
    pub(crate) fn one_each(&self) -> Self {
        Self::from_sizes(self.ranges().map(|range| usize::from(!range.is_empty())))
    }
}

/// What a range has of the part `own`, counted from where that starts.
pub(crate) fn overlap(range: &Range<usize>, own: &Range<usize>) -> Range<usize> {
    let cut = |end: usize| end.clamp(own.start, own.end) - own.start;
    cut(range.start)..cut(range.end)
}

impl fmt::Debug for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter()).finish()
    }
}

impl Layout {
    /// A dimension of `len` cut as evenly as possible.
    pub(crate) fn even(dim: usize, len: usize, members: usize) -> Self {
        Self::Sharded {
            dim,
            bounds: Bounds::even(len, members),
        }
    }

    /// The shape of a member's part.
    #[must_use]
    pub fn local_shape(&self, shape: &Shape, member: usize) -> Shape {
        let mut local = shape.clone();
        if let Self::Sharded { dim, bounds } = self {
            local.as_mut_slice()[*dim] = bounds.size(member);
        }
        local
    }

    /// Whether a member holds nothing of it.
    #[must_use]
    pub fn is_empty_at(&self, member: usize) -> bool {
        matches!(self, Self::Sharded { bounds, .. } if bounds.size(member) == 0)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicated => f.write_str("replicated"),
            Self::Partial => f.write_str("partial sum"),
            Self::Sharded { dim, bounds } => {
                write!(f, "sharded along {dim}: ")?;
                for (member, range) in bounds.ranges().enumerate() {
                    let comma = if member == 0 { "" } else { "+" };
                    write!(f, "{comma}{}", range.len())?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_scale_both_ways() {
        let rows = Bounds::from_sizes([2, 0, 1]);
        let elements = rows.times(5);
        assert_eq!(elements, Bounds::from_sizes([10, 0, 5]));
        assert_eq!(elements.divided(5), Some(rows.clone()));
        assert_eq!(elements.divided(4), None);
        assert_eq!(rows.one_each(), Bounds::from_sizes([1, 0, 1]));
    }

    #[test]
    fn a_range_is_cut_where_its_owners_end() {
        let bounds = Bounds::from_sizes([4, 4, 2]);
        assert_eq!(bounds.within(&(3..9)), Bounds::from_sizes([1, 4, 1]));
        assert_eq!(bounds.within(&(0..2)), Bounds::from_sizes([2, 0, 0]));
    }

    #[test]
    fn a_part_has_the_shape_of_its_range() {
        let layout = Layout::even(1, 5, 3);
        assert_eq!(
            layout.local_shape(&Shape::new([2, 5]), 0),
            Shape::new([2, 2])
        );
        assert!(Layout::even(0, 1, 2).is_empty_at(1));
        assert_eq!(layout.to_string(), "sharded along 1: 2+2+1");
        assert_eq!(
            Layout::Replicated.local_shape(&Shape::new([2]), 1),
            Shape::new([2])
        );
    }
}
