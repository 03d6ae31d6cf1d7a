//! The best items of users, exactly, and the items most similar to others.

mod engine;
mod factors;
mod neighbors;
mod tiles;

use std::sync::atomic::{AtomicUsize, Ordering};

use matrix::RowBlock;

use super::model::FactorModel;
use super::objective::Objective;
use algo::error::Error;
pub use engine::{Basis, Items, KeyedRows, Request};

use engine::Engine;
use factors::FactorEngine;
use neighbors::NeighborEngine;

/// Users that are scored together.
const BLOCK: usize = 64;

/// An item with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommendation {
    pub item: u64,
    pub score: f64,
}

/// A model, ready for recommendations.
#[derive(Debug)]
pub struct Recommender {
    engine: Box<dyn Engine>,
    users: Vec<u64>,
    items: Items,
}

impl Recommender {
    /// Recommends by rows of users and items; `scale` is mean, lowest and highest rating. `items` has the keys of the rows. Rows
    /// of new users are at the minimum of the objective.
    pub fn of_factors(
        model: &FactorModel,
        users: KeyedRows,
        rows: &[f32],
        (items, scale): (Items, [f64; 3]),
        objective: Option<Objective>,
    ) -> Self {
        let keys = users.keys.clone();
        let engine = FactorEngine::new(model, users, rows, (&items, scale), objective);
        Self { engine: Box::new(engine), users: keys, items }
    }

    /// Recommends to these users (ascending) and others by their choices; `neighbors` has for each item the weights of others.
    pub fn of_neighbors(users: Vec<u64>, neighbors: &RowBlock, items: Items) -> Self {
        Self { engine: Box::new(NeighborEngine::new(&users, neighbors, &items)), users, items }
    }

    /// The users of the model, ascending.
    pub fn users(&self) -> &[u64] {
        &self.users
    }

    /// The items of the model, ascending.
    pub fn items(&self) -> &[u64] {
        &self.items.keys
    }

    /// The n best items for each request, best first; fewer only if there are no more. The result does not depend on the number
    /// of threads.
    ///
    /// # Errors
    /// If the row of a new user has no unique solution.
    pub fn recommend(
        &self,
        requests: &[Request],
        n: usize,
        threads: usize,
    ) -> Result<Vec<(Basis, Vec<Recommendation>)>, Error> {
        let blocks: Vec<&[Request]> = requests.chunks(BLOCK).collect();
        let next = AtomicUsize::new(0);
        let run = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(block) = blocks.get(at) else { return Ok::<_, Error>(done) };
                done.push((at, self.engine.best(&self.items, block, n)?));
            }
        };
        let mut done = std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads.clamp(1, blocks.len().max(1))).map(|_| scope.spawn(run)).collect();
            let mut all = Vec::new();
            for worker in workers {
                all.extend(worker.join().expect("a worker does not panic")?);
            }
            Ok::<_, Error>(all)
        })?;
        done.sort_by_key(|(at, _)| *at);
        let best = done.into_iter().flat_map(|(_, block)| block).zip(requests);
        Ok(best
            .map(|((basis, best), request)| match basis {
                Basis::Popularity => (basis, self.popular(&request.seen, n)),
                Basis::Trained | Basis::FoldedIn => (basis, self.recommendations(best)),
            })
            .collect())
    }

    fn recommendations(&self, best: Vec<(f64, u64)>) -> Vec<Recommendation> {
        let keys = &self.items.keys;
        best.into_iter().map(|(score, at)| Recommendation { item: keys[at as usize], score }).collect()
    }

    /// The n allowed items that most users have, without `seen` (ascending); the score is how many.
    pub fn popular(&self, seen: &[u64], n: usize) -> Vec<Recommendation> {
        let Items { keys, counts, by_count, .. } = &self.items;
        let one = |&at: &u32| Recommendation { item: keys[at as usize], score: counts[at as usize] as f64 };
        by_count.iter().map(one).filter(|one| seen.binary_search(&one.item).is_err()).take(n).collect()
    }

    /// The n allowed items that are most similar to each of these items: by the cosine of their factors, or by the weights of
    /// their neighbors. There are none for an item that is not in the model. An item is not similar to itself here.
    pub fn similar(&self, items: &[u64], n: usize) -> Vec<Vec<Recommendation>> {
        let positions: Vec<Option<usize>> = items.iter().map(|&key| self.items.position(key)).collect();
        let known: Vec<usize> = positions.iter().flatten().copied().collect();
        let mut lists = self.engine.similar(&self.items, &known, n).into_iter();
        let mut next = || lists.next().expect("a list for each item of the model");
        positions.iter().map(|at| at.map_or_else(Vec::new, |_| self.recommendations(next()))).collect()
    }
}

#[cfg(test)]
mod tests;
