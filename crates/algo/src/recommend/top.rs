//! The best items of users, exactly: tiles of users times tiles of items, and the n best scores of each user.
//!
//! Items stand in the order of their lengths, the longest first. A score is at most the length of the user times that of the
//! item, so a user is done when that is below the smallest of its n best scores for the next tile (Teflioudi, Gemulla, Mykytiuk,
//! "LEMP", SIGMOD 2015).

use std::sync::atomic::{AtomicUsize, Ordering};

use math::selection::TopN;
use multiversion::multiversion;

use super::Model;
use super::exact::add_products;
use super::solve::{Equations, ExactWork, LANES, padded};
use crate::error::Error;

/// Items of a tile: with 64 factors a tile has 64 KB.
const TILE: usize = 256;
/// Users that are scored at once.
const GROUP: usize = 8;
/// Users that go through the tiles together.
const BLOCK: usize = 64;
/// What rounding may add to a score, as a share of the bound.
const SLACK: f32 = 1.0 + 1e-4;

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
    /// Choices or ratings of a user that the model does not have, from which its row is computed.
    pub choices: Vec<(u64, f32)>,
}

/// How the items of a user were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// By its row in the model.
    Trained,
    /// By a row that was computed from its choices.
    FoldedIn,
    /// It has neither: by how many users have them.
    Popularity,
}

/// Rows with their keys, as a matrix of the model has them.
#[derive(Clone, Debug, Default)]
pub struct KeyedRows {
    /// Ascending.
    pub keys: Vec<u64>,
    pub values: Vec<f32>,
}

/// The rows of a model, ready for recommendations.
#[derive(Debug)]
pub struct Recommender {
    model: Model,
    users: KeyedRows,
    /// Keys of items, ascending.
    items: Vec<u64>,
    /// The rows of items, padded: factors, then 1 in place of a bias.
    vectors: Vec<f32>,
    biases: Vec<f32>,
    /// The allowed items with how many users have them, most first.
    by_count: Vec<Recommendation>,
    /// Mean, lowest and highest rating.
    scale: [f64; 3],
    ranked: Tiles,
    gramian: Vec<f32>,
}

/// Items in the order of their lengths.
#[derive(Debug, Default)]
struct Tiles {
    /// For each place the item.
    items: Vec<u32>,
    /// For each item its place.
    places: Vec<u32>,
    /// For each tile `width x TILE` numbers.
    values: Vec<f32>,
    /// For each tile the length of its longest item.
    lengths: Vec<f32>,
    width: usize,
}

impl Tiles {
    /// Tiles of rows of `width` numbers.
    fn new(rows: &[f32], width: usize) -> Self {
        let count = rows.len() / width.max(1);
        let length =
            |row: &[f32]| row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt() as f32;
        let all: Vec<f32> = rows.chunks_exact(width).map(length).collect();
        let mut items: Vec<u32> = (0..count as u32).collect();
        items.sort_by(|&a, &b| all[b as usize].total_cmp(&all[a as usize]).then(a.cmp(&b)));
        let mut places = vec![0; count];
        let mut values = vec![0.0; count.div_ceil(TILE) * TILE * width];
        for (place, &item) in items.iter().enumerate() {
            places[item as usize] = place as u32;
            let tile = &mut values[place / TILE * TILE * width..][..TILE * width];
            for (i, x) in rows[item as usize * width..][..width].iter().enumerate() {
                tile[i * TILE + place % TILE] = *x;
            }
        }
        let lengths = items.iter().step_by(TILE).map(|&item| all[item as usize]).collect();
        Self { items, places, values, lengths, width }
    }

    /// The best items of these rows (width numbers each), without the items at `left_out` (ascending places), best first, as
    /// score and number of the item.
    fn best(&self, rows: &[f32], left_out: &[Vec<u32>], n: usize) -> Vec<Vec<(f64, u64)>> {
        let width = self.width;
        let mut best: Vec<TopN> = left_out.iter().map(|_| TopN::new(n)).collect();
        let lengths: Vec<f32> =
            rows.chunks_exact(width).map(|row| dot_plain(row, row).sqrt() * SLACK).collect();
        let mut next: Vec<usize> = vec![0; best.len()];
        let mut is_done = vec![n == 0; best.len()];
        let mut scores = vec![0.0; GROUP * TILE];
        let mut largest = vec![0.0; GROUP * TILE / LANES];
        let turn = |rows: &[f32]| {
            let mut turned = vec![[0.0; GROUP]; width];
            for (user, row) in rows.chunks_exact(width).enumerate() {
                turned.iter_mut().zip(row).for_each(|(turned, x)| turned[user] = *x);
            }
            turned
        };
        let groups: Vec<Vec<[f32; GROUP]>> = rows.chunks(GROUP * width).map(turn).collect();
        for (number, (tile, longest)) in self.values.chunks_exact(TILE * width).zip(&self.lengths).enumerate()
        {
            let first = number * TILE;
            let count = TILE.min(self.items.len() - first);
            for user in 0..best.len() {
                is_done[user] |=
                    best[user].smallest().is_some_and(|s| f64::from(lengths[user] * longest) < s);
            }
            for from in (0..best.len()).step_by(GROUP) {
                let users = from..best.len().min(from + GROUP);
                if is_done[users.clone()].iter().all(|&is_done| is_done) {
                    continue;
                }
                score_group(tile, &groups[from / GROUP], &mut scores, &mut largest);
                for (at, user) in users.enumerate().filter(|(_, user)| !is_done[*user]) {
                    let scores = &mut scores[at * TILE..][..count];
                    while let Some(&place) =
                        left_out[user].get(next[user]).filter(|&&p| (p as usize) < first + count)
                    {
                        scores[place as usize - first] = f32::NEG_INFINITY;
                        next[user] += 1;
                    }
                    let largest = &largest[at * (TILE / LANES)..][..TILE / LANES];
                    add_best(scores, largest, &self.items[first..], &mut best[user]);
                }
            }
        }
        best.into_iter().map(TopN::into_sorted).collect()
    }
}

/// Adds the scores that may be among the best; `largest` has the largest of each 16.
fn add_best(scores: &[f32], largest: &[f32], items: &[u32], best: &mut TopN) {
    for (number, (chunk, largest)) in scores.chunks(LANES).zip(largest).enumerate() {
        let limit = best.smallest().map_or(f32::NEG_INFINITY, |smallest| smallest as f32);
        if *largest < limit {
            continue;
        }
        for (score, item) in chunk.iter().zip(&items[number * LANES..]) {
            if *score >= limit && *score > f32::NEG_INFINITY {
                best.add(f64::from(*score), u64::from(*item));
            }
        }
    }
}

fn dot_plain(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The scores of a group of users for the items of a tile, and the largest of each 16. `rows` are turned: for each number of a
/// row that of each user.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn score_group(tile: &[f32], rows: &[[f32; GROUP]], scores: &mut [f32], largest: &mut [f32]) {
    for from in (0..TILE).step_by(LANES) {
        let mut sums = [[0.0f32; LANES]; GROUP];
        for (line, factors) in tile.chunks_exact(TILE).zip(rows) {
            let line: &[f32; LANES] = line[from..from + LANES].try_into().expect("16 lanes");
            for (sums, factor) in sums.iter_mut().zip(factors) {
                for lane in 0..LANES {
                    sums[lane] += factor * line[lane];
                }
            }
        }
        for (user, sums) in sums.iter().enumerate() {
            scores[user * TILE + from..][..LANES].copy_from_slice(sums);
            let mut half = *sums;
            let mut width = LANES / 2;
            while width > 0 {
                for lane in 0..width {
                    half[lane] =
                        if half[lane] > half[lane + width] { half[lane] } else { half[lane + width] };
                }
                width /= 2;
            }
            largest[user * (TILE / LANES) + from / LANES] = half[0];
        }
    }
}

impl Recommender {
    /// Recommends with the rows of a model: users, items, how many users have an item, and the scale of ratings. Only items that
    /// `is_allowed` are recommended.
    pub fn new(
        model: &Model,
        users: KeyedRows,
        items: KeyedRows,
        counts: impl Fn(u64) -> i64,
        (scale, is_allowed): ([f64; 3], &dyn Fn(u64) -> bool),
    ) -> Self {
        let (width, length) = (model.width(), padded(model.width()));
        let (mut vectors, mut biases) = (Vec::new(), Vec::new());
        for row in items.values.chunks_exact(width) {
            vectors.extend_from_slice(row);
            vectors.resize(vectors.len().next_multiple_of(length), 0.0);
            if model.has_biases {
                let at = vectors.len() - length + model.factors;
                biases.push(std::mem::replace(&mut vectors[at], 1.0));
            }
        }
        let gramian =
            gramian(&vectors, length, model.objective.map_or(0.0, super::Objective::gramian_factor));
        let allowed: Vec<bool> = items.keys.iter().map(|&key| is_allowed(key)).collect();
        let ranked = tiles_of(&items.values, &allowed, width);
        let allowed = items.keys.iter().zip(&allowed).filter(|(_, allowed)| **allowed);
        let counted = |(&item, _): (&u64, &bool)| Recommendation { item, score: counts(item) as f64 };
        let mut by_count: Vec<Recommendation> = allowed.map(counted).collect();
        by_count.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.item.cmp(&b.item)));
        Self {
            model: model.clone(),
            users,
            items: items.keys,
            vectors,
            biases,
            by_count,
            scale,
            ranked,
            gramian,
        }
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The users of the model, ascending.
    pub fn users(&self) -> &[u64] {
        &self.users.keys
    }

    /// The items of the model, ascending.
    pub fn items(&self) -> &[u64] {
        &self.items
    }

    /// The n best items for each request, best first; fewer only if there are no more. The result does not depend on the number
    /// of threads.
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
                done.push((at, self.recommend_block(block, n)?));
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
        Ok(done.into_iter().flat_map(|(_, block)| block).collect())
    }

    fn recommend_block(
        &self,
        requests: &[Request],
        n: usize,
    ) -> Result<Vec<(Basis, Vec<Recommendation>)>, Error> {
        let width = self.model.width();
        let (mut rows, mut bases) = (vec![0.0; requests.len() * width], Vec::new());
        for (request, row) in requests.iter().zip(rows.chunks_exact_mut(width)) {
            bases.push(self.user_row(request, row)?);
        }
        let user_biases: Vec<f64> = rows
            .chunks_exact_mut(width)
            .map(|row| {
                if self.model.has_biases {
                    f64::from(std::mem::replace(&mut row[width - 1], 1.0))
                } else {
                    0.0
                }
            })
            .collect();
        let left_out: Vec<Vec<u32>> = requests.iter().map(|request| self.places(&request.seen)).collect();
        let best = self.ranked.best(&rows, &left_out, n);
        let lists = best.into_iter().zip(requests).zip(bases).zip(user_biases);
        Ok(lists
            .map(|(((best, request), basis), bias)| match basis {
                Basis::Popularity => (basis, self.popular(&request.seen, n)),
                Basis::Trained | Basis::FoldedIn => {
                    let recommend = |(score, item): (f64, u64)| Recommendation {
                        item: self.items[item as usize],
                        score: if self.model.are_ratings { self.scale[0] + bias + score } else { score },
                    };
                    (basis, best.into_iter().map(recommend).collect())
                }
            })
            .collect())
    }

    /// Sets the row of a user.
    fn user_row(&self, request: &Request, row: &mut [f32]) -> Result<Basis, Error> {
        let width = row.len();
        if let Ok(at) = self.users.keys.binary_search(&request.user) {
            row.copy_from_slice(&self.users.values[at * width..][..width]);
            if row.iter().any(|&x| x != 0.0) {
                return Ok(Basis::Trained);
            }
        }
        let Some(objective) = self.model.objective.filter(|_| !request.choices.is_empty()) else {
            return Ok(Basis::Popularity);
        };
        let known = |&(item, value): &(u64, f32)| Some((self.items.binary_search(&item).ok()? as u32, value));
        let (positions, values): (Vec<u32>, Vec<f32>) = request.choices.iter().filter_map(known).unzip();
        if positions.is_empty() {
            return Ok(Basis::Popularity);
        }
        let (weights, mut targets) = objective.weights(&values);
        if objective.are_ratings() {
            let target =
                |(value, item): (&f32, &u32)| value - self.scale[0] as f32 - self.biases[*item as usize];
            targets = Some(values.iter().zip(&positions).map(target).collect());
        }
        let equations = Equations {
            width,
            base: (!objective.are_ratings()).then_some(&self.gramian[..]),
            others: &self.vectors,
            starts: &[0, positions.len()],
            positions: &positions,
            weights: weights.as_deref(),
            targets: targets.as_deref(),
            ridges: &[objective.ridge(positions.len(), self.items.len() as u64)],
        };
        let mut solved = vec![0.0; padded(width)];
        equations.solve(0, &mut solved, &mut ExactWork::default()).map_err(|_| {
            Error::unsuitable("a new user has no unique row, because lambda of the model is 0: train it with a larger lambda")
        })?;
        row.copy_from_slice(&solved[..width]);
        Ok(Basis::FoldedIn)
    }

    /// The places of these items, ascending.
    fn places(&self, items: &[u64]) -> Vec<u32> {
        let place = |key: &u64| {
            let place = self.ranked.places[self.items.binary_search(key).ok()?];
            (place != u32::MAX).then_some(place)
        };
        let mut places: Vec<u32> = items.iter().filter_map(place).collect();
        places.sort_unstable();
        places
    }

    /// The n allowed items that most users have, without `seen` (ascending).
    pub fn popular(&self, seen: &[u64], n: usize) -> Vec<Recommendation> {
        self.by_count.iter().filter(|one| seen.binary_search(&one.item).is_err()).take(n).copied().collect()
    }

    /// The n allowed items that are most similar to each of these items, by the cosine of their factors; none for an item that
    /// is not in the model. An item is not similar to itself here.
    pub fn similar(&self, items: &[u64], n: usize) -> Vec<Vec<Recommendation>> {
        let (factors, length) = (self.model.factors, padded(self.model.width()));
        let unit = |item: usize| {
            let row = &self.vectors[item * length..][..factors];
            let size = dot_plain(row, row).sqrt();
            row.iter().map(|x| if size > 0.0 { x / size } else { 0.0 }).collect::<Vec<f32>>()
        };
        let all: Vec<f32> = (0..self.items.len()).flat_map(unit).collect();
        let allowed: Vec<bool> = self.ranked.places.iter().map(|&place| place != u32::MAX).collect();
        let tiles = tiles_of(&all, &allowed, factors);
        let similar = |key: &u64| {
            let Ok(at) = self.items.binary_search(key) else { return Vec::new() };
            let own = tiles.places[at];
            let left_out = if own == u32::MAX { Vec::new() } else { vec![own] };
            let best = tiles.best(&unit(at), &[left_out], n).remove(0);
            best.into_iter()
                .map(|(score, item)| Recommendation { item: self.items[item as usize], score })
                .collect()
        };
        items.iter().map(similar).collect()
    }
}

/// Tiles of the allowed rows; the place of another one is `u32::MAX`.
fn tiles_of(rows: &[f32], allowed: &[bool], width: usize) -> Tiles {
    let numbers: Vec<u32> = (0..allowed.len() as u32).filter(|&item| allowed[item as usize]).collect();
    let kept: Vec<f32> =
        numbers.iter().flat_map(|&item| rows[item as usize * width..][..width].iter().copied()).collect();
    let tiles = Tiles::new(&kept, width);
    let mut places = vec![u32::MAX; allowed.len()];
    numbers.iter().zip(&tiles.places).for_each(|(&item, &place)| places[item as usize] = place);
    let items = tiles.items.iter().map(|&at| numbers[at as usize]).collect();
    Tiles { items, places, ..tiles }
}

/// The Gramian of padded rows times a factor; empty if the factor is 0.
fn gramian(rows: &[f32], length: usize, factor: f64) -> Vec<f32> {
    if factor == 0.0 {
        return Vec::new();
    }
    let mut sums = vec![0.0; length * length];
    for rows in rows.chunks(128 * length) {
        add_products(&rows.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>(), length, &mut sums);
    }
    let at = |i: usize, j: usize| (factor * sums[i.max(j) * length + i.min(j)]) as f32;
    (0..length * length).map(|place| at(place / length, place % length)).collect()
}

#[cfg(test)]
mod tests;
