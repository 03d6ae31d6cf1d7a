//! Quantiles of a stream of numbers in little memory: the distinct numbers with their weights, exact as long as there are
//! few; of many, a sample, namely those with the smallest hashes. A number of the sample has been in it since it was first
//! seen, so its weight is exact, and the sample is the same for any order of the numbers and any division of them.

use std::collections::HashMap;

use math::hash::mix64;

/// Distinct numbers that a sketch has at most.
pub(crate) const NUMBER_LIMIT: usize = 1 << 14;

/// A sketch of numbers. With more than 16,384 distinct ones, the rank of a quantile is right within about 1 % of their
/// count.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct QuantileSketch {
    count: u64,
    limit: usize,
    /// The bits of the numbers, with their weights. Between two reductions there may be twice the limit.
    numbers: HashMap<u32, f64>,
    /// Hashes above it are not in the sample.
    largest_hash: u64,
}

impl Default for QuantileSketch {
    fn default() -> Self {
        Self { count: 0, limit: NUMBER_LIMIT, numbers: HashMap::new(), largest_hash: u64::MAX }
    }
}

fn hash(bits: u32) -> u64 {
    mix64(u64::from(bits))
}

impl QuantileSketch {
    /// Number of numbers that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn add(&mut self, number: f32, weight: f64) {
        self.count += 1;
        // Adding 0 turns -0 into 0.
        self.insert((number + 0.0).to_bits(), weight);
    }

    fn insert(&mut self, bits: u32, weight: f64) {
        if hash(bits) <= self.largest_hash {
            *self.numbers.entry(bits).or_default() += weight;
            if self.numbers.len() >= 2 * self.limit {
                self.reduce();
            }
        }
    }

    /// Drops the numbers that are beyond the limit.
    fn reduce(&mut self) {
        if self.numbers.len() > self.limit {
            let mut hashes: Vec<u64> = self.numbers.keys().map(|bits| hash(*bits)).collect();
            self.largest_hash = *hashes.select_nth_unstable(self.limit - 1).1;
            let largest = self.largest_hash;
            self.numbers.retain(|bits, _| hash(*bits) <= largest);
        }
    }

    /// Keeps at most so many distinct numbers from now on.
    pub(crate) fn lower_limit(&mut self, limit: usize) {
        if limit < self.limit {
            self.limit = limit;
            self.reduce();
        }
    }

    /// Adds the numbers of another sketch.
    pub fn merge(&mut self, other: &Self) {
        self.lower_limit(other.limit);
        self.count += other.count;
        self.largest_hash = self.largest_hash.min(other.largest_hash);
        let largest = self.largest_hash;
        self.numbers.retain(|bits, _| hash(*bits) <= largest);
        for (&bits, &weight) in &other.numbers {
            self.insert(bits, weight);
        }
    }

    /// The distinct numbers, or a sample of them, ascending, with their weights.
    pub fn numbers(&self) -> Vec<(f32, f64)> {
        let mut reduced = self.clone();
        reduced.reduce();
        let mut numbers: Vec<(f32, f64)> =
            reduced.numbers.iter().map(|(bits, weight)| (f32::from_bits(*bits), *weight)).collect();
        numbers.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        numbers
    }

    /// Returns numbers that divide the others into `bin_count` bins of about the same weight: ascending, distinct, at most
    /// `bin_count - 1`. A bin has the numbers above the one before, up to its own.
    pub fn bounds(&self, bin_count: usize) -> Vec<f32> {
        let numbers = self.numbers();
        let total: f64 = numbers.iter().map(|number| number.1).sum();
        let (mut bounds, mut before) = (Vec::new(), 0.0);
        let mut bin = 1;
        for (number, weight) in numbers {
            before += weight;
            let first = bin;
            while bin < bin_count && before > total * bin as f64 / bin_count as f64 {
                bin += 1;
            }
            if bin > first {
                bounds.push(number);
            }
        }
        bounds
    }
}

#[cfg(test)]
mod tests {
    use math::random::{Purpose, stream};

    use super::*;

    /// The largest difference between the rank of a bound and the wanted one, over the count.
    fn error(numbers: &[f32], sketch: &QuantileSketch, bins: usize) -> f64 {
        let bounds = sketch.bounds(bins);
        assert_eq!(bounds.len(), bins - 1);
        let rank = |bound: f32| numbers.iter().filter(|number| **number <= bound).count() as f64;
        let errors = bounds
            .iter()
            .enumerate()
            .map(|(at, bound)| (rank(*bound) / numbers.len() as f64 - (at + 1) as f64 / bins as f64).abs());
        errors.fold(0.0, f64::max)
    }

    fn numbers(count: usize, number: impl Fn(usize, f64) -> f64) -> Vec<f32> {
        let mut random = stream(1, Purpose::Test, 0, 0);
        (0..count).map(|i| number(i, random.uniform()) as f32).collect()
    }

    #[test]
    fn bounds_are_near_the_quantiles_in_any_order_of_the_numbers() {
        let cases = [
            numbers(300_000, |i, _| i as f64),
            numbers(300_000, |i, _| -(i as f64)),
            numbers(300_000, |_, random| random.ln()),
            numbers(300_000, |i, random| if i % 2 == 0 { random } else { 50.0 + random }),
        ];
        for case in cases {
            let mut sketch = QuantileSketch::default();
            for &number in &case {
                sketch.add(number, 1.0);
            }
            assert_eq!(sketch.count(), 300_000);
            let error = error(&case, &sketch, 32);
            assert!(error < 0.015, "{error}");
            assert!(sketch.numbers.len() < 2 * NUMBER_LIMIT);
        }
    }

    #[test]
    fn merged_sketches_are_those_of_all_numbers() {
        let all = numbers(100_000, |_, random| random);
        let mut merged = QuantileSketch::default();
        for part in all.chunks(7000) {
            let mut sketch = QuantileSketch::default();
            for &number in part {
                sketch.add(number, 1.0);
            }
            merged.merge(&sketch);
        }
        let mut whole = QuantileSketch::default();
        all.iter().rev().for_each(|&number| whole.add(number, 1.0));
        assert_eq!((merged.count(), merged.numbers()), (100_000, whole.numbers()));
        let error = error(&all, &merged, 16);
        assert!(error < 0.01, "{error}");
    }

    #[test]
    fn a_weight_counts_as_so_many_numbers() {
        let all = numbers(30_000, |_, random| random.ln());
        let (mut weighted, mut repeated) = (QuantileSketch::default(), Vec::new());
        for (i, &number) in all.iter().enumerate() {
            weighted.add(number, (i % 5) as f64 + 0.5);
            repeated.extend(std::iter::repeat_n(number, 2 * (i % 5) + 1));
        }
        let error = error(&repeated, &weighted, 32);
        assert!(error < 0.01, "{error}");
        let (mut few, mut copies) = (QuantileSketch::default(), QuantileSketch::default());
        for (number, weight) in [(3.0, 4), (1.0, 1), (2.0, 7)] {
            few.add(number, f64::from(weight));
            (0..weight).for_each(|_| copies.add(number, 1.0));
        }
        assert_eq!(few.bounds(5), copies.bounds(5));
    }

    #[test]
    fn few_numbers_are_exact_and_equal_ones_are_one_bound() {
        let mut sketch = QuantileSketch::default();
        assert!(sketch.bounds(4).is_empty());
        for number in [3.0, 1.0, 2.0, 4.0] {
            sketch.add(number, 1.0);
        }
        assert_eq!(sketch.bounds(4), [2.0, 3.0, 4.0]);
        let mut sketch = QuantileSketch::default();
        (0..10_000).for_each(|i| sketch.add(if i % 10 == 0 { 5.0 } else { 1.0 }, 1.0));
        assert_eq!(sketch.bounds(20), [1.0, 5.0]);
    }
}
