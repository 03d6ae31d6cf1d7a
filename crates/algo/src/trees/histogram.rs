//! Histograms: for each bin the sums of gradients and hessians of the records of a leaf, and their count. Gradients are
//! integers, so that the sums are the same in any order.

use multiversion::multiversion;

/// Largest size of a gradient: 15 bits with its sign.
pub(super) const LARGEST_GRADIENT: f64 = 16_383.0;
/// Largest hessian: 15 bits.
pub(super) const LARGEST_HESSIAN: f64 = 32_767.0;

/// Records whose sums fit a word: 12 bits for the count, 26 for the hessians, 26 for the gradients.
const PACKED_RECORDS: usize = 2047;
const HESSIAN_SHIFT: u32 = 12;
const GRADIENT_SHIFT: u32 = HESSIAN_SHIFT + 26;

/// The sums of the records of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BinSums {
    pub(super) gradient: i64,
    pub(super) hessian: i64,
    pub(super) count: i64,
}

impl std::ops::AddAssign for BinSums {
    fn add_assign(&mut self, other: Self) {
        self.gradient += other.gradient;
        self.hessian += other.hessian;
        self.count += other.count;
    }
}

impl std::ops::Sub for BinSums {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            gradient: self.gradient - other.gradient,
            hessian: self.hessian - other.hessian,
            count: self.count - other.count,
        }
    }
}

/// Rounds gradients and hessians times these scales to integers, and packs each pair with the count 1 into a word, so that
/// one addition adds all three.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
pub(super) fn pack(gradients: &[f64], hessians: &[f64], scales: (f64, f64), out: &mut [u64]) {
    /// What is added to it is rounded to a whole number, which is in its last bits.
    const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5 x 2^52
    let steps = |x: f64| (x + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits());
    for ((gradient, hessian), out) in gradients.iter().zip(hessians).zip(out) {
        *out = (steps(gradient * scales.0) << GRADIENT_SHIFT)
            .wrapping_add(steps(hessian * scales.1) << HESSIAN_SHIFT)
            .wrapping_add(1);
    }
}

/// Records in groups whose sums fit a word.
pub(super) fn packed_chunks(records: &[u32]) -> impl Iterator<Item = &[u32]> {
    records.chunks(PACKED_RECORDS)
}

/// Adds sums in words to those of the bins.
#[inline]
pub(super) fn add_words(words: &[u64], out: &mut [BinSums]) {
    for (out, &word) in out.iter_mut().zip(words) {
        *out += BinSums {
            gradient: word as i64 >> GRADIENT_SHIFT,
            hessian: ((word >> HESSIAN_SHIFT) & ((1 << (GRADIENT_SHIFT - HESSIAN_SHIFT)) - 1)) as i64,
            count: (word & ((1 << HESSIAN_SHIFT) - 1)) as i64,
        };
    }
}

/// The sums of these records.
pub(super) fn total(records: &[u32], packed: &[u64]) -> BinSums {
    let mut sums = [BinSums::default()];
    for chunk in packed_chunks(records) {
        let word = chunk.iter().fold(0u64, |sum, record| sum.wrapping_add(packed[*record as usize]));
        add_words(&[word], &mut sums);
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_words_are_those_of_their_parts() {
        let (gradient, hessian) = (LARGEST_GRADIENT as i64, LARGEST_HESSIAN as u32);
        for parts in [(-gradient, hessian), (gradient, 0), (-1, 1), (gradient, hessian)] {
            let records: Vec<u32> = (0..10_000).collect();
            let mut sums = [BinSums::default()];
            for chunk in packed_chunks(&records) {
                let mut word = [0];
                pack(&[parts.0 as f64], &[parts.1.into()], (1.0, 1.0), &mut word);
                let word = chunk.iter().fold(0u64, |sum, _| sum.wrapping_add(word[0]));
                add_words(&[word], &mut sums);
            }
            let (gradient, hessian) = (10_000 * parts.0, 10_000 * i64::from(parts.1));
            assert_eq!(sums[0], BinSums { gradient, hessian, count: 10_000 });
        }
    }
}
