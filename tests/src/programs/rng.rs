//! Random choices and data, the same for the same seed everywhere and for ever.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator of its own for each seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Self(seed ^ 0x5851_f42d_4c95_7f2d);
        rng.bits();
        rng
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// A number of a range, both ends included.
    pub fn within(&mut self, start: usize, end: usize) -> usize {
        start + self.below(end - start + 1)
    }

    /// Whether something of this probability in percent happens.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// From -1 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Some order of `0..len`.
    pub fn order(&mut self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        for i in (1..len).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// Data for a float tensor, from -1 to 1.
pub(super) fn floats(seed: u64, len: usize) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.unit()).collect()
}

/// Different numbers from 0 to 1 for each element, for what would otherwise be tied.
pub(super) fn ramp(len: usize) -> Vec<f64> {
    (0..len)
        .map(|i| (i as f64 * 0.618_033_988_749_894_9).fract())
        .collect()
}
