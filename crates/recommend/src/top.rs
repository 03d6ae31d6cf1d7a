//! The best items of users, exactly, and the items most similar to others.

mod factors;
mod neighbors;
mod tiles;

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use matrix::RowBlock;

use super::{FactorModel, Objective};
use algo::error::Error;
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

/// Whom to recommend to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub user: u64,
    /// Items that are left out, ascending.
    pub seen: Vec<u64>,
    /// Choices or ratings of the user, items ascending. A model of factors computes the row of a user that it does not have from
    /// them; a model of neighbors scores with them.
    pub choices: Vec<(u64, f32)>,
}

/// How the items of a user were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The user is in the model.
    Trained,
    /// It is not, but it has choices.
    FoldedIn,
    /// It has neither: by how many users have the items.
    Popularity,
}

/// Rows with their keys, as a matrix of the model has them.
#[derive(Clone, Debug, Default)]
pub struct KeyedRows {
    /// Ascending.
    pub keys: Vec<u64>,
    pub values: Vec<f32>,
}

/// The items of a model.
#[derive(Clone, Debug)]
pub struct Items {
    /// Ascending.
    keys: Vec<u64>,
    /// Which of them may be recommended.
    allowed: Vec<bool>,
    /// The positions of the allowed items, those that most users have first.
    by_count: Vec<u32>,
    counts: Vec<i64>,
}

impl Items {
    /// Items with these keys, which ascend, how many users have each, and which of them may be recommended.
    pub fn new(keys: Vec<u64>, counts: impl Fn(u64) -> i64, is_allowed: impl Fn(u64) -> bool) -> Self {
        let allowed: Vec<bool> = keys.iter().map(|&key| is_allowed(key)).collect();
        let counts: Vec<i64> = keys.iter().map(|&key| counts(key)).collect();
        let mut by_count: Vec<u32> = (0..keys.len() as u32).filter(|&at| allowed[at as usize]).collect();
        by_count.sort_by_key(|&at| (-counts[at as usize], at));
        Self { keys, allowed, by_count, counts }
    }

    fn position(&self, key: u64) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }
}

/// Best items of users, and their scores, with positions of items; none for a user by popularity.
type BestItems = Vec<(Basis, Vec<(f64, u64)>)>;

/// How a kind of model scores items.
trait Engine: Debug + Send + Sync {
    /// The n best allowed items of each request.
    fn best(&self, items: &Items, requests: &[Request], n: usize) -> Result<BestItems, Error>;

    /// The n allowed items that are most similar to each of these, by position.
    fn similar(&self, items: &Items, positions: &[usize], n: usize) -> Vec<Vec<(f64, u64)>>;
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
