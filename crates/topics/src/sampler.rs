//! What all samplers share: the totals while a group is sampled, and the draws of its tokens.

use math::hash::mix64;
use math::random::{NamedDraws, Purpose};

use super::documents::{Documents, WordTokens};
use super::table::WordRows;

/// Topics of a vector: a fixed number, so that sums are the same on every machine.
pub(super) const LANES: usize = 8;
/// Up to this many topics all topics are weighed for each token. At 128 topics that is a quarter slower than the other sampler, but
/// the counts of words are a quarter of a sweep old at most.
pub(super) const DENSE_LIMIT: usize = 128;

/// What does not change while a group is sampled, by topic.
pub(super) struct Frozen {
    pub(super) alpha: Vec<f32>,
    pub(super) beta: f32,
    /// `1 / (n_k + V beta)`.
    pub(super) scale: Vec<f32>,
    /// The same with one token less.
    pub(super) own_scale: Vec<f32>,
}

impl Frozen {
    pub(super) fn new(alpha: &[f64], beta: f64, vocabulary: u64, totals: &[i64]) -> Self {
        let scale = |total: i64| (1.0 / (total as f64 + vocabulary as f64 * beta)) as f32;
        Self {
            alpha: alpha.iter().map(|alpha| *alpha as f32).collect(),
            beta: beta as f32,
            scale: totals.iter().map(|total| scale(*total)).collect(),
            // A topic without tokens is that of no token.
            own_scale: totals.iter().map(|total| scale((*total - 1).max(0))).collect(),
        }
    }
}

/// The draws of a sweep: a token has the same wherever it is sampled.
#[derive(Clone, Copy)]
pub(super) struct Draws(NamedDraws);

impl Draws {
    /// Those of `sweep`, from 1; 0 are the first topics.
    pub(super) fn new(seed: u64, sweep: u64) -> Self {
        Self(NamedDraws::new(seed, Purpose::Topics, sweep))
    }

    /// Those of the tokens of a word.
    pub(super) fn of_word(self, key: u64) -> u64 {
        self.0.of(key).next_u64()
    }
}

/// 64 bits for a token: the `copy`-th of its word in a document.
#[inline]
pub(super) fn bits(of_word: u64, document: u64, copy: u64) -> u64 {
    mix64(of_word.wrapping_add(document.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(copy))
}

/// Uniform in `[0, 1)` from the upper 24 bits.
#[inline]
pub(super) fn uniform(bits: u64) -> f32 {
    (bits >> 40) as f32 * (1.0 / 16_777_216.0)
}

/// The sums of each number and those before it.
#[inline]
pub(super) fn running_sums(mut sums: [f32; LANES]) -> [f32; LANES] {
    for distance in [1, 2, 4] {
        let before = sums;
        for j in distance..LANES {
            sums[j] = before[j] + before[j - distance];
        }
    }
    sums
}

/// A group that is sampled.
pub(super) struct Group<'a> {
    pub(super) documents: &'a Documents,
    pub(super) words: &'a [WordTokens],
    pub(super) frozen: &'a Frozen,
    pub(super) draws: Draws,
    /// The topic of each token of the task.
    pub(super) topics: &'a mut [u16],
    pub(super) rows: &'a mut WordRows,
    /// By how much the totals change.
    pub(super) changes: &'a mut [i64],
}
