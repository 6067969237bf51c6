//! How many items each member of a mesh gets: pure arithmetic, no device.

use std::ops::Range;

/// Splits `items` over `members` as evenly as possible; the first members get one more.
///
/// With fewer items than members the last ones get none.
///
/// ```
/// use burn_multigpu::shard::shard_sizes;
/// assert_eq!(shard_sizes(50, 3), [17, 17, 16]);
/// assert_eq!(shard_sizes(2, 3), [1, 1, 0]);
/// ```
///
/// # Panics
///
/// If `members` is 0.
pub fn shard_sizes(items: usize, members: usize) -> Vec<usize> {
    assert!(members > 0, "a mesh has at least one member");
    let (each, more) = (items / members, items % members);
    (0..members)
        .map(|member| each + usize::from(member < more))
        .collect()
}

/// The ranges of [`shard_sizes`], which cover `0..items` in order.
///
/// ```
/// use burn_multigpu::shard::shard_ranges;
/// assert_eq!(shard_ranges(50, 3), [0..17, 17..34, 34..50]);
/// ```
///
/// # Panics
///
/// If `members` is 0.
pub fn shard_ranges(items: usize, members: usize) -> Vec<Range<usize>> {
    ranges(&shard_sizes(items, members))
}

/// Consecutive ranges of the given sizes, from 0 on.
///
/// ```
/// use burn_multigpu::shard::ranges;
/// assert_eq!(ranges(&[4, 0, 2]), [0..4, 4..4, 4..6]);
/// ```
pub fn ranges(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut start = 0;
    sizes
        .iter()
        .map(|size| {
            let range = start..start + size;
            start = range.end;
            range
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_cover_all_items_evenly(items in 0usize..10_000, members in 1usize..17) {
            let ranges = shard_ranges(items, members);
            prop_assert_eq!(ranges.len(), members);
            prop_assert_eq!(ranges[0].start, 0);
            prop_assert_eq!(ranges[members - 1].end, items);
            for pair in ranges.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].start);
                prop_assert!(pair[0].len() == pair[1].len() || pair[0].len() == pair[1].len() + 1);
            }
        }
    }

    #[test]
    fn one_member_gets_everything() {
        assert_eq!(shard_sizes(7, 1), [7]);
        assert_eq!(shard_sizes(0, 2), [0, 0]);
    }
}
