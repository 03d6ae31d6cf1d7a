//! Scores by the neighbors of the items that a user has.

use math::selection::TopN;
use matrix::{OwnedValues, RowBlock};

use super::engine::{Basis, BestItems, Engine, Items, Request};
use algo::error::Error;

/// Neighbors and weights.
#[derive(Debug)]
pub(super) struct NeighborEngine {
    users: Vec<u64>,
    /// For each item its neighbors, with what they add to its score.
    neighbors: Lists,
    /// For each item those of which it is a neighbor, with what it adds to their scores.
    influences: Lists,
}

/// For each item a list of positions of others, with weights.
#[derive(Debug)]
struct Lists {
    /// Where the lists begin, and the end of all.
    starts: Vec<usize>,
    entries: Vec<(u32, f32)>,
}

impl Lists {
    fn new(block: &RowBlock, items: &Items) -> Self {
        let OwnedValues::F32(weights) = &block.values else { unreachable!("weights are such numbers") };
        let (mut starts, mut entries) = (vec![0; items.keys.len() + 1], Vec::new());
        for (item, range) in block.rows() {
            let Some(item) = items.position(item) else { continue };
            for (neighbor, weight) in block.entries()[range.clone()].iter().zip(&weights[range]) {
                entries.extend(items.position(*neighbor).map(|at| (at as u32, *weight)));
            }
            starts[item + 1] = entries.len();
        }
        // A list that is not there begins where the one before ends.
        for at in 1..starts.len() {
            starts[at] = starts[at].max(starts[at - 1]);
        }
        Self { starts, entries }
    }

    /// The same entries by the other item.
    fn turned(&self) -> Self {
        let mut starts = vec![0; self.starts.len()];
        self.entries.iter().for_each(|(other, _)| starts[*other as usize + 1] += 1);
        (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let (mut next, mut entries) = (starts.clone(), vec![(0, 0.0); self.entries.len()]);
        for item in 0..self.starts.len() - 1 {
            for (other, weight) in self.of(item) {
                entries[next[*other as usize]] = (item as u32, *weight);
                next[*other as usize] += 1;
            }
        }
        Self { starts, entries }
    }

    fn of(&self, item: usize) -> &[(u32, f32)] {
        &self.entries[self.starts[item]..self.starts[item + 1]]
    }
}

impl NeighborEngine {
    pub(super) fn new(users: &[u64], block: &RowBlock, items: &Items) -> Self {
        let neighbors = Lists::new(block, items);
        Self { users: users.to_vec(), influences: neighbors.turned(), neighbors }
    }

    /// Sets the score of each item: the sum over the items of the user of its strength times its weight as a neighbor. Returns
    /// whether the model has an item of the user.
    fn score(&self, items: &Items, choices: &[(u64, f32)], scores: &mut [f32]) -> bool {
        scores.fill(0.0);
        let mut is_known = false;
        for (item, strength) in choices {
            let Some(item) = items.position(*item) else { continue };
            is_known = true;
            for (other, weight) in self.influences.of(item) {
                scores[*other as usize] += strength * weight;
            }
        }
        is_known
    }
}

/// The n allowed items of the largest scores; of equal scores, those that more users have.
fn best_of(items: &Items, scores: &[f32], is_left_out: impl Fn(u64) -> bool, n: usize) -> Vec<(f64, u64)> {
    let mut best = TopN::new(n);
    for (rank, &at) in (0..).zip(&items.by_count) {
        let score = f64::from(scores[at as usize]);
        if best.smallest().is_none_or(|smallest| score > smallest) && !is_left_out(items.keys[at as usize]) {
            best.add(score, rank);
        }
    }
    let of_rank = |(score, rank): (f64, u64)| (score, u64::from(items.by_count[rank as usize]));
    best.into_sorted().into_iter().map(of_rank).collect()
}

impl Engine for NeighborEngine {
    fn best(&self, items: &Items, requests: &[Request], n: usize) -> Result<BestItems, Error> {
        let mut scores = vec![0.0; items.keys.len()];
        let mut best = |request: &Request| {
            if n == 0 || !self.score(items, &request.choices, &mut scores) {
                return (Basis::Popularity, Vec::new());
            }
            let is_known = self.users.binary_search(&request.user).is_ok();
            let basis = if is_known { Basis::Trained } else { Basis::FoldedIn };
            let is_seen = |key: u64| request.seen.binary_search(&key).is_ok();
            (basis, best_of(items, &scores, is_seen, n))
        };
        Ok(requests.iter().map(&mut best).collect())
    }

    /// By the weights of neighbors.
    fn similar(&self, items: &Items, positions: &[usize], n: usize) -> Vec<Vec<(f64, u64)>> {
        let similar = |&at: &usize| {
            let allowed =
                self.neighbors.of(at).iter().filter(|(neighbor, _)| items.allowed[*neighbor as usize]);
            let mut list: Vec<(f64, u64)> =
                allowed.map(|&(neighbor, weight)| (f64::from(weight), u64::from(neighbor))).collect();
            list.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            list.truncate(n);
            list
        };
        positions.iter().map(similar).collect()
    }
}
