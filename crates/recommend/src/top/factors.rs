//! Scores by rows of users and items.

use super::engine::{Basis, BestItems, Engine, Items, KeyedRows, Request};
use super::tiles::{Tiles, dot_plain};
use crate::exact::add_products;
use crate::model::FactorModel;
use crate::objective::Objective;
use crate::solve::{Equations, ExactWork, padded};
use algo::error::Error;

/// The rows of a model.
#[derive(Debug)]
pub(super) struct FactorEngine {
    model: FactorModel,
    /// Of the row of a new user; none: it has none.
    objective: Option<Objective>,
    users: KeyedRows,
    /// The rows of items, padded: factors, then 1 in place of a bias.
    vectors: Vec<f32>,
    biases: Vec<f32>,
    /// Mean, lowest and highest rating.
    scale: [f64; 3],
    ranked: Tiles,
    gramian: Vec<f32>,
}

impl FactorEngine {
    pub(super) fn new(
        model: &FactorModel,
        users: KeyedRows,
        rows: &[f32],
        (items, scale): (&Items, [f64; 3]),
        objective: Option<Objective>,
    ) -> Self {
        let (width, length) = (model.width(), padded(model.width()));
        let (mut vectors, mut biases) = (Vec::new(), Vec::new());
        for row in rows.chunks_exact(width) {
            vectors.extend_from_slice(row);
            vectors.resize(vectors.len().next_multiple_of(length), 0.0);
            if model.has_biases {
                let at = vectors.len() - length + model.factors;
                biases.push(std::mem::replace(&mut vectors[at], 1.0));
            }
        }
        let gramian = gramian(&vectors, length, objective.map_or(0.0, Objective::gramian_factor));
        let ranked = Tiles::of_allowed(rows, &items.allowed, width);
        Self { model: model.clone(), objective, users, vectors, biases, scale, ranked, gramian }
    }

    /// Sets the row of a user.
    fn user_row(&self, items: &Items, request: &Request, row: &mut [f32]) -> Result<Basis, Error> {
        let width = row.len();
        if let Ok(at) = self.users.keys.binary_search(&request.user) {
            row.copy_from_slice(&self.users.values[at * width..][..width]);
            if row.iter().any(|&x| x != 0.0) {
                return Ok(Basis::Trained);
            }
        }
        let Some(objective) = self.objective.filter(|_| !request.choices.is_empty()) else {
            return Ok(Basis::Popularity);
        };
        let known = |&(item, value): &(u64, f32)| Some((items.position(item)? as u32, value));
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
            right: None,
            others: &self.vectors,
            starts: &[0, positions.len()],
            positions: &positions,
            weights: weights.as_deref(),
            targets: targets.as_deref(),
            ridges: &[objective.ridge(positions.len(), items.keys.len() as u64)],
        };
        let mut solved = vec![0.0; padded(width)];
        equations.solve(0, &mut solved, &mut ExactWork::default()).map_err(|_| {
            Error::unsuitable("a new user has no unique row, because lambda of the model is 0: train it with a larger lambda")
        })?;
        row.copy_from_slice(&solved[..width]);
        Ok(Basis::FoldedIn)
    }

    /// The places of these items, ascending.
    fn places(&self, items: &Items, keys: &[u64]) -> Vec<u32> {
        let place = |key: &u64| {
            let place = self.ranked.places[items.position(*key)?];
            (place != u32::MAX).then_some(place)
        };
        let mut places: Vec<u32> = keys.iter().filter_map(place).collect();
        places.sort_unstable();
        places
    }
}

impl Engine for FactorEngine {
    fn best(&self, items: &Items, requests: &[Request], n: usize) -> Result<BestItems, Error> {
        let width = self.model.width();
        let (mut rows, mut bases) = (vec![0.0; requests.len() * width], Vec::new());
        for (request, row) in requests.iter().zip(rows.chunks_exact_mut(width)) {
            bases.push(self.user_row(items, request, row)?);
        }
        let mut added = Vec::new();
        for row in rows.chunks_exact_mut(width) {
            let bias = if self.model.has_biases { std::mem::replace(&mut row[width - 1], 1.0) } else { 0.0 };
            added.push(if self.model.are_ratings { self.scale[0] + f64::from(bias) } else { 0.0 });
        }
        let left_out: Vec<Vec<u32>> =
            requests.iter().map(|request| self.places(items, &request.seen)).collect();
        let mut best = self.ranked.best(&rows, &left_out, n);
        for (best, added) in best.iter_mut().zip(added) {
            for (score, _) in best.iter_mut() {
                *score += added;
            }
        }
        Ok(bases.into_iter().zip(best).collect())
    }

    /// By the cosine of factors.
    fn similar(&self, items: &Items, positions: &[usize], n: usize) -> Vec<Vec<(f64, u64)>> {
        let (factors, length) = (self.model.factors, padded(self.model.width()));
        let unit = |item: usize| {
            let row = &self.vectors[item * length..][..factors];
            let size = dot_plain(row, row).sqrt();
            row.iter().map(|x| if size > 0.0 { x / size } else { 0.0 }).collect::<Vec<f32>>()
        };
        let all: Vec<f32> = (0..items.keys.len()).flat_map(unit).collect();
        let tiles = Tiles::of_allowed(&all, &items.allowed, factors);
        let similar = |&at: &usize| {
            let own = tiles.places[at];
            let left_out = if own == u32::MAX { Vec::new() } else { vec![own] };
            tiles.best(&unit(at), &[left_out], n).remove(0)
        };
        positions.iter().map(similar).collect()
    }
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
