//! The best items by products of rows: tiles of users times tiles of items, and the n best scores of each user.
//!
//! Items stand in the order of their lengths, the longest first. A score is at most the length of the user times that of the
//! item, so a user is done when that is below the smallest of its n best scores for the next tile (Teflioudi, Gemulla, Mykytiuk,
//! "LEMP", SIGMOD 2015).

use math::selection::TopN;
use multiversion::multiversion;

use crate::solve::{GROUP, LANES, products_of_group};

/// Items of a tile: with 64 factors a tile has 64 KB.
const TILE: usize = 256;
/// What rounding may add to a score, as a share of the bound.
const SLACK: f32 = 1.0 + 1e-4;

/// Items in the order of their lengths.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    /// For each place the item.
    items: Vec<u32>,
    /// For each item its place; that of an item which is not allowed is `u32::MAX`.
    pub(super) places: Vec<u32>,
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

    /// Tiles of the allowed rows.
    pub(super) fn of_allowed(rows: &[f32], allowed: &[bool], width: usize) -> Self {
        let numbers: Vec<u32> = (0..allowed.len() as u32).filter(|&item| allowed[item as usize]).collect();
        let allowed_rows: Vec<f32> =
            numbers.iter().flat_map(|&item| rows[item as usize * width..][..width].iter().copied()).collect();
        let tiles = Self::new(&allowed_rows, width);
        let mut places = vec![u32::MAX; allowed.len()];
        numbers.iter().zip(&tiles.places).for_each(|(&item, &place)| places[item as usize] = place);
        let items = tiles.items.iter().map(|&at| numbers[at as usize]).collect();
        Self { items, places, ..tiles }
    }

    /// The best items of these rows (width numbers each), without the items at `left_out` (ascending places), best first, as
    /// score and number of the item.
    pub(super) fn best(&self, rows: &[f32], left_out: &[Vec<u32>], n: usize) -> Vec<Vec<(f64, u64)>> {
        let width = self.width;
        let mut best: Vec<TopN> = left_out.iter().map(|_| TopN::new(n)).collect();
        let lengths: Vec<f32> =
            rows.chunks_exact(width).map(|row| dot_plain(row, row).sqrt() * SLACK).collect();
        let mut next: Vec<usize> = vec![0; best.len()];
        let mut is_done = vec![n == 0; best.len()];
        let mut scores = vec![0.0; GROUP * TILE];
        let mut largest = vec![0.0; GROUP * TILE / LANES];
        let mut rows = rows.to_vec();
        rows.resize(rows.len().next_multiple_of(GROUP * width), 0.0);
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
                score_group(tile, &rows[from * width..][..GROUP * width], &mut scores, &mut largest);
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

pub(super) fn dot_plain(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The scores of a group of users for the items of a tile, and the largest of each 16.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn score_group(tile: &[f32], rows: &[f32], scores: &mut [f32], largest: &mut [f32]) {
    let width = tile.len() / TILE;
    for from in (0..TILE).step_by(LANES) {
        let sums = products_of_group(rows, width, tile, (TILE, from));
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
