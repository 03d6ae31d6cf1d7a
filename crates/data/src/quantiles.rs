//! Quantiles of a stream of numbers in little memory: the sketch of Karnin, Lang and Liberty, "Optimal quantile approximation
//! in streams" (FOCS 2016), with every other number of a full level kept, from the first and from the second in turn. So the
//! same numbers in the same order give the same sketch. A number that is kept takes over the weight of the one beside it,
//! so numbers may have any weights.

/// Numbers of the highest level. A sketch has at most about three times as many.
const LEVEL_SIZE: usize = 512;
/// No level is smaller.
const LEAST_LEVEL_SIZE: usize = 8;

/// A sketch of numbers. The rank of a quantile is right within about .5 % of their count.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct QuantileSketch {
    count: u64,
    levels: Vec<Level>,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Level {
    /// Numbers with their weights.
    numbers: Vec<(f32, f64)>,
    /// Whether the next compaction keeps the second of each pair.
    keeps_second: bool,
}

impl QuantileSketch {
    /// Number of numbers that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn add(&mut self, number: f32, weight: f64) {
        self.level(0).numbers.push((number, weight));
        self.count += 1;
        self.compact();
    }

    /// Adds the numbers of another sketch.
    pub fn merge(&mut self, other: &Self) {
        for (height, level) in other.levels.iter().enumerate() {
            self.level(height).numbers.extend_from_slice(&level.numbers);
        }
        self.count += other.count;
        self.compact();
    }

    /// Returns numbers that divide the others into `bin_count` bins of about the same weight: ascending, distinct, at most
    /// `bin_count - 1`. A bin has the numbers above the one before, up to its own.
    pub fn bounds(&self, bin_count: usize) -> Vec<f32> {
        let mut numbers: Vec<(f32, f64)> =
            self.levels.iter().flat_map(|level| level.numbers.iter().copied()).collect();
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = numbers.iter().map(|number| number.1).sum();
        let (mut bounds, mut before) = (Vec::new(), 0.0);
        let mut rest = numbers.into_iter();
        for bin in 1..bin_count {
            let rank = total * bin as f64 / bin_count as f64;
            for (number, weight) in rest.by_ref() {
                before += weight;
                if before > rank {
                    bounds.push(number);
                    break;
                }
            }
        }
        bounds.dedup();
        bounds
    }

    fn level(&mut self, height: usize) -> &mut Level {
        if self.levels.len() <= height {
            self.levels.resize_with(height + 1, Level::default);
        }
        &mut self.levels[height]
    }

    /// The number of numbers from which on a level is full: lower levels are smaller.
    fn capacity(&self, height: usize) -> usize {
        let depth = (self.levels.len() - 1 - height) as i32;
        ((LEVEL_SIZE as f64 * (2.0f64 / 3.0).powi(depth)) as usize).max(LEAST_LEVEL_SIZE)
    }

    fn compact(&mut self) {
        while let Some(height) =
            (0..self.levels.len()).find(|&h| self.levels[h].numbers.len() >= self.capacity(h))
        {
            let level = &mut self.levels[height];
            level.numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
            // Without its pair a number stays.
            let odd = if level.numbers.len() % 2 == 1 { level.numbers.pop() } else { None };
            let first = usize::from(level.keeps_second);
            level.keeps_second = !level.keeps_second;
            let kept: Vec<(f32, f64)> =
                level.numbers.chunks_exact(2).map(|pair| (pair[first].0, pair[0].1 + pair[1].1)).collect();
            level.numbers.clear();
            level.numbers.extend(odd);
            self.level(height + 1).numbers.extend(kept);
        }
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
            assert!(error < 0.005, "{error}");
            let stored: usize = sketch.levels.iter().map(|level| level.numbers.len()).sum();
            assert!(stored < 3 * LEVEL_SIZE + 100, "{stored}");
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
        assert_eq!(merged.count(), 100_000);
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
