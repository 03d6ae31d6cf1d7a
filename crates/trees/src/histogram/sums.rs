//! Histograms: for each bin the sums of gradients and hessians of the records of a leaf, and their count. Gradients are
//! integers, so that the sums are the same in any order.

use std::ops::Range;

use multiversion::multiversion;

/// Largest size of a gradient: 15 bits with its sign.
pub(in super::super) const LARGEST_GRADIENT: f64 = 16_383.0;

/// Records whose sums fit a word: 12 bits for the count, 26 for the hessians, 26 for the gradients.
const PACKED_RECORDS: usize = 2047;
const HESSIAN_SHIFT: u32 = 12;
const GRADIENT_SHIFT: u32 = HESSIAN_SHIFT + 26;

/// The sums of some records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Sums {
    pub(in super::super) gradient: i64,
    pub(in super::super) hessian: i64,
    pub(in super::super) count: i64,
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.gradient += other.gradient;
        self.hessian += other.hessian;
        self.count += other.count;
    }
}

impl std::ops::Sub for Sums {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            gradient: self.gradient - other.gradient,
            hessian: self.hessian - other.hessian,
            count: self.count - other.count,
        }
    }
}

/// The sums of some bins, a list for each kind.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct BinSums<'a> {
    pub(in super::super) gradients: &'a [i64],
    pub(in super::super) hessians: &'a [i64],
    pub(in super::super) counts: &'a [i64],
}

impl BinSums<'_> {
    pub(in super::super) fn of(self, bin: usize) -> Sums {
        Sums { gradient: self.gradients[bin], hessian: self.hessians[bin], count: self.counts[bin] }
    }

    pub(in super::super) fn slice(self, range: Range<usize>) -> Self {
        Self {
            gradients: &self.gradients[range.clone()],
            hessians: &self.hessians[range.clone()],
            counts: &self.counts[range],
        }
    }

    pub(in super::super) fn len(self) -> usize {
        self.counts.len()
    }
}

/// The sums of all bins of a leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Histogram {
    /// The gradients of all bins, then the hessians, then the counts.
    sums: Vec<i64>,
}

impl Histogram {
    /// Makes this a histogram of so many empty bins.
    pub(in super::super) fn clear(&mut self, bin_count: usize) {
        self.sums.clear();
        self.sums.resize(3 * bin_count, 0);
    }

    pub(in super::super) fn bins(&self) -> BinSums<'_> {
        let count = self.sums.len() / 3;
        let (gradients, rest) = self.sums.split_at(count);
        let (hessians, counts) = rest.split_at(count);
        BinSums { gradients, hessians, counts }
    }

    pub(in super::super) fn subtract(&mut self, other: &Self) {
        for (own, other) in self.sums.iter_mut().zip(&other.sums) {
            *own -= other;
        }
    }

    /// Adds sums in words to those of the bins from this one on.
    #[inline]
    pub(in super::super) fn add_words(&mut self, words: &[u64], first: usize) {
        let count = self.sums.len() / 3;
        let (gradients, rest) = self.sums.split_at_mut(count);
        let (hessians, counts) = rest.split_at_mut(count);
        let range = first..first + words.len();
        let bins =
            gradients[range.clone()].iter_mut().zip(&mut hessians[range.clone()]).zip(&mut counts[range]);
        for (((gradient, hessian), count), &word) in bins.zip(words) {
            let sums = unpack(word);
            *gradient += sums.gradient;
            *hessian += sums.hessian;
            *count += sums.count;
        }
    }
}

#[inline]
fn unpack(word: u64) -> Sums {
    Sums {
        gradient: word as i64 >> GRADIENT_SHIFT,
        hessian: ((word >> HESSIAN_SHIFT) & ((1 << (GRADIENT_SHIFT - HESSIAN_SHIFT)) - 1)) as i64,
        count: (word & ((1 << HESSIAN_SHIFT) - 1)) as i64,
    }
}

/// Rounds gradients and hessians times these scales to integers, and packs each pair with the count 1 into a word, so that
/// one addition adds all three.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
pub(in super::super) fn pack(gradients: &[f64], hessians: &[f64], scales: (f64, f64), out: &mut [u64]) {
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
pub(in super::super) fn packed_chunks(records: &[u32]) -> impl Iterator<Item = &[u32]> {
    records.chunks(PACKED_RECORDS)
}

/// The sums of these records.
pub(in super::super) fn total(records: &[u32], packed: &[u64]) -> Sums {
    let mut sums = Sums::default();
    for chunk in packed_chunks(records) {
        sums += unpack(chunk.iter().fold(0u64, |sum, record| sum.wrapping_add(packed[*record as usize])));
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_words_are_those_of_their_parts() {
        let (gradient, hessian) = (LARGEST_GRADIENT as i64, 32_767u32);
        for parts in [(-gradient, hessian), (gradient, 0), (-1, 1), (gradient, hessian)] {
            let records: Vec<u32> = (0..10_000).collect();
            let mut histogram = Histogram::default();
            histogram.clear(2);
            for chunk in packed_chunks(&records) {
                let mut word = [0];
                pack(&[parts.0 as f64], &[parts.1.into()], (1.0, 1.0), &mut word);
                let word = chunk.iter().fold(0u64, |sum, _| sum.wrapping_add(word[0]));
                histogram.add_words(&[word], 1);
            }
            let (gradient, hessian) = (10_000 * parts.0, 10_000 * i64::from(parts.1));
            assert_eq!(histogram.bins().of(1), Sums { gradient, hessian, count: 10_000 });
            assert_eq!(histogram.bins().of(0), Sums::default());
        }
    }
}
