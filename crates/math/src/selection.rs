//! Choices: of an index by weight, and of the n largest scores.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::random::RandomStream;

/// Draws indices with given weights in constant time (Walker, 1977; built as by Vose, 1991).
#[derive(Clone, Debug, PartialEq)]
pub struct AliasTable {
    /// For each index, the probability that it is returned when its place is drawn, and what is returned otherwise.
    places: Vec<(f64, u32)>,
}

impl AliasTable {
    /// Builds the table of these weights, of which at least one is above 0.
    ///
    /// # Panics
    /// If a weight is negative or not finite, or all are 0.
    pub fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        assert!(total > 0.0 && total.is_finite() && weights.iter().all(|&weight| weight >= 0.0), "weights");
        let scale = weights.len() as f64 / total;
        let mut places: Vec<(f64, u32)> = (0..).zip(weights).map(|(i, weight)| (weight * scale, i)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..places.len()).partition(|&i| places[i].0 < 1.0);
        while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
            places[low].1 = high as u32;
            places[high].0 -= 1.0 - places[low].0;
            if places[high].0 < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        // What is left differs from 1 by rounding, but for a weight of 0, which is never drawn itself.
        Self { places }
    }

    /// Draws an index.
    pub fn draw(&self, random: &mut RandomStream) -> u32 {
        let place = random.below(self.places.len() as u64) as u32;
        let (own, other) = self.places[place as usize];
        if random.uniform() < own { place } else { other }
    }
}

/// The n largest scores that were added, each with an id. Of equal scores those with the smaller ids count as larger, so
/// that the result does not depend on the order of adding.
#[derive(Clone, Debug)]
pub struct TopN {
    limit: usize,
    /// The smallest one is on top.
    heap: BinaryHeap<Reverse<Ranked>>,
}

/// Ordered by score, then by descending id.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    score: f64,
    id: u64,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then(other.id.cmp(&self.id))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

impl TopN {
    pub fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::with_capacity(limit + 1) }
    }

    /// Adds a score. -0 counts as 0.
    #[inline]
    pub fn add(&mut self, score: f64, id: u64) {
        let new = Reverse(Ranked { score: score + 0.0, id });
        if self.heap.len() < self.limit {
            self.heap.push(new);
        } else if let Some(mut smallest) = self.heap.peek_mut()
            && new < *smallest
        {
            *smallest = new;
        }
    }

    /// The smallest of the scores, once there are n; a lower one changes nothing any more.
    #[inline]
    pub fn smallest(&self) -> Option<f64> {
        let smallest = self.heap.peek().filter(|_| self.heap.len() >= self.limit)?;
        Some(smallest.0.score)
    }

    /// The scores and their ids, the largest score first.
    pub fn into_sorted(self) -> Vec<(f64, u64)> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(ranked)| (ranked.score, ranked.id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    #[test]
    fn indices_are_drawn_by_their_weights() {
        let weights = [3.0, 0.0, 1.0, 5.0, 0.5, 0.5];
        let table = AliasTable::new(&weights);
        let mut random = stream(1, Purpose::Test, 0, 0);
        let mut counts = [0u32; 6];
        for _ in 0..100_000 {
            counts[table.draw(&mut random) as usize] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            let expected: f64 = weight * 10_000.0;
            // Five standard deviations.
            assert!((f64::from(*count) - expected).abs() <= 5.0 * expected.sqrt(), "{counts:?}");
        }
        assert_eq!(counts[1], 0);
        assert_eq!(AliasTable::new(&[7.0]).draw(&mut random), 0);
    }

    #[test]
    fn the_largest_scores_are_those_of_a_sort_whatever_the_order() {
        let mut random = stream(2, Purpose::Test, 0, 0);
        let mut scores: Vec<(f64, u64)> = (0..500).map(|id| (random.below(40) as f64 - 20.0, id)).collect();
        let mut sorted = scores.clone();
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for limit in [0, 1, 7, 100, 600] {
            random.shuffle(&mut scores);
            let mut top = TopN::new(limit);
            for (count, &(score, id)) in (0..).zip(&scores) {
                assert_eq!(top.smallest().is_some(), limit > 0 && count >= limit);
                top.add(score, id);
            }
            assert_eq!(top.into_sorted(), sorted[..limit.min(500)]);
        }
    }
}
