//! The order of a sum of squares: one rule for the device and the CPU.
//!
//! A sum over `n` values is cut into blocks of [`block_len`] consecutive values, one cube each.
//! Value `j` of a block goes to lane `j % BLOCK_LANES`, and each lane adds its values in order.
//! [`LANES`] neighbouring lanes form a unit, `(l0 + l1) + (l2 + l3)`, and the units of a block are
//! folded in halves. The block sums, at most [`MAX_BLOCKS`], are then one block of plain values
//! summed in the same way. The order depends on `n` alone, so equal inputs give equal bits, and a
//! device that does not contract to FMA gives those of the CPU.

/// Units per cube.
pub(crate) const UNITS: usize = 256;
/// Values a unit takes at once.
pub(crate) const LANES: usize = 4;
/// Values a cube takes at once.
pub(crate) const BLOCK_LANES: usize = UNITS * LANES;
/// The most blocks a sum is cut into: their sums fit one block with one value per lane.
pub(crate) const MAX_BLOCKS: usize = BLOCK_LANES;
/// The fewest values a lane of a full block adds, so that short sums do not become all tree.
const MIN_ROUNDS: usize = 8;

/// Values per block for a sum over `n` values.
pub(crate) fn block_len(n: usize) -> usize {
    BLOCK_LANES * n.div_ceil(BLOCK_LANES * MAX_BLOCKS).max(MIN_ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_sums_fit_one_block() {
        let large = 1 << 40;
        for n in [
            0,
            1,
            1023,
            8192,
            8193,
            3_000_000,
            8 << 20,
            (8 << 20) + 1,
            large,
        ] {
            let block = block_len(n);
            assert_eq!(block % BLOCK_LANES, 0);
            assert!(n.div_ceil(block) <= MAX_BLOCKS, "{n}");
        }
    }
}
