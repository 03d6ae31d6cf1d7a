//! How a kind of model scores items, and what it is asked.

use std::fmt::Debug;

use algo::error::Error;

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
    pub(super) keys: Vec<u64>,
    /// Which of them may be recommended.
    pub(super) allowed: Vec<bool>,
    /// The positions of the allowed items, those that most users have first.
    pub(super) by_count: Vec<u32>,
    pub(super) counts: Vec<i64>,
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

    pub(super) fn position(&self, key: u64) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }
}

/// Best items of users, and their scores, with positions of items; none for a user by popularity.
pub(super) type BestItems = Vec<(Basis, Vec<(f64, u64)>)>;

/// How a kind of model scores items.
pub(super) trait Engine: Debug + Send + Sync {
    /// The n best allowed items of each request.
    fn best(&self, items: &Items, requests: &[Request], n: usize) -> Result<BestItems, Error>;

    /// The n allowed items that are most similar to each of these, by position.
    fn similar(&self, items: &Items, positions: &[usize], n: usize) -> Vec<Vec<(f64, u64)>>;
}
