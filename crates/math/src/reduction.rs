//! Sums that have the same bits however the terms are divided among threads and processes: integers, whose addition is
//! associative, or doubles that are added in a fixed tree. Where neither is fast enough to matter,
//! [`crate::exact_sum`] needs no preparation.

/// Numbers as multiples of a power of two, so that sums of them are sums of integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPoint {
    /// A power of two.
    scale: f64,
}

impl FixedPoint {
    /// The finest steps for sums of at most `count` numbers with magnitudes up to `largest`: such a sum is below 2^62 steps.
    /// No step is below 2^-1023.
    ///
    /// # Panics
    /// If `largest` is negative or not finite.
    pub fn for_sums(largest: f64, count: u64) -> Self {
        assert!(largest >= 0.0 && largest.is_finite(), "the largest magnitude is {largest}");
        let bound = (largest * count.max(1) as f64).clamp(f64::MIN_POSITIVE, f64::MAX);
        // The exponent of the power of two above the bound, in -1021..=1024.
        let exponent = (bound.to_bits() >> 52) as i64 - 1022;
        let power = (62 - exponent).min(1023);
        Self { scale: f64::from_bits(((power + 1023) as u64) << 52) }
    }

    /// The number as a count of steps, rounded towards 0.
    #[inline]
    pub fn steps(self, x: f64) -> i64 {
        (x * self.scale) as i64
    }

    /// The number that so many steps are.
    #[inline]
    pub fn value(self, steps: i64) -> f64 {
        steps as f64 / self.scale
    }
}

/// Terms of a leaf of [`tree_sum`].
const LEAF: usize = 4096;

/// The sum in a fixed tree: leaves of 4,096 terms, each from left to right, then pairs of leaves, pairs of pairs and so
/// on. Leaves may be summed anywhere and combined by [`combine_leaves`].
pub fn tree_sum(terms: &[f64]) -> f64 {
    combine_leaves(terms.chunks(LEAF).map(|leaf| leaf.iter().sum()).collect())
}

/// The upper part of the tree of [`tree_sum`]: combines the sums of all leaves, in their order.
pub fn combine_leaves(mut sums: Vec<f64>) -> f64 {
    while sums.len() > 1 {
        sums = sums.chunks(2).map(|pair| pair[0] + pair.get(1).copied().unwrap_or(0.0)).collect();
    }
    sums.first().copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    #[test]
    fn sums_of_steps_are_near_and_do_not_overflow() {
        let mut random = stream(1, Purpose::Test, 0, 0);
        for largest in [0.0, 1e-270, 3.7, 1e12, 1e300] {
            let fixed = FixedPoint::for_sums(largest, 1000);
            let terms: Vec<f64> = (0..1000).map(|_| (random.uniform() * 2.0 - 1.0) * largest).collect();
            let sum: i64 = terms.iter().map(|&x| fixed.steps(x)).sum();
            let expected: f64 = terms.iter().sum();
            assert!((fixed.value(sum) - expected).abs() <= largest * 1e-12, "{largest}");
            let most = (0..1000).try_fold(0i64, |sum, _| sum.checked_add(fixed.steps(largest)));
            assert!(most.is_some_and(|sum| sum < 1 << 62));
        }
    }

    #[test]
    fn a_tree_that_is_summed_in_parts_has_the_same_bits() {
        let mut random = stream(2, Purpose::Test, 0, 0);
        for len in [0, 1, 4096, 4097, 50_000] {
            let terms: Vec<f64> = (0..len).map(|_| random.normal()).collect();
            let leaves = terms.chunks(LEAF).map(|leaf| leaf.iter().sum()).collect();
            assert_eq!(tree_sum(&terms).to_bits(), combine_leaves(leaves).to_bits());
            assert!((tree_sum(&terms) - terms.iter().sum::<f64>()).abs() < 1e-9);
        }
    }
}
