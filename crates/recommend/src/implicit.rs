//! Implicit features of ratings: that a user has rated an item says something, whatever the rating. Rows y of items and z of users
//! are learned beside p and q, with `weight (x_ui - p_u . y_i)^2` and `weight (x_ui - z_u . q_i)^2` summed over all pairs, where
//! `x_ui` is 1 if the user has rated the item and 0 if not (Cortes, "Cold-start recommendations in collective matrix factorization",
//! 2018; the idea of SVD++). They are not part of the model.

use matrix::{ElementType, MatrixId, MatrixSpec, PushRule, Values};

use super::exact::gramian;
use super::model::FactorModel;
use super::side::{Side, first_rows, read_others};
use super::solve::{Equations, padded};
use algo::error::Error;
use algo::job::TrainTask;
use algo::rows::rows_of;

/// The matrices of z and y, after the lists of pairs.
pub(super) fn specs(width: usize, partition_count: u32) -> [MatrixSpec; 2] {
    ["implicit_users", "implicit_items"].map(|name| {
        MatrixSpec::sparse(name, ElementType::F32, width as u64, PushRule::Assign, partition_count)
    })
}

/// The implicit features of one side.
pub(super) struct ImplicitFeatures {
    matrix: MatrixId,
    weight: f32,
    width: usize,
    /// Of the own users or items, padded; 0 in the place of a bias.
    rows: Vec<f32>,
}

/// What the implicit features of the other side add to the equations of rows.
pub(super) struct AddedEquations {
    pub(super) base: Vec<f32>,
    /// For each row.
    pub(super) right: Vec<f32>,
}

impl ImplicitFeatures {
    /// Begins with random rows, or with those of a saved training.
    pub(super) fn new(
        task: &mut TrainTask<'_>,
        model: &FactorModel,
        (matrix, keys): (MatrixId, &[u64]),
        (weight, is_saved): (f64, bool),
    ) -> Result<Self, Error> {
        let rows = first_rows(task, model, (matrix, keys), is_saved)?;
        let features = Self { matrix, weight: weight as f32, width: model.width(), rows };
        if !is_saved {
            features.push(task, keys)?;
        }
        Ok(features)
    }

    fn push(&self, task: &mut TrainTask<'_>, keys: &[u64]) -> Result<(), Error> {
        let rows = self.rows.chunks_exact(padded(self.width));
        let values: Vec<f32> = rows.flat_map(|row| &row[..self.width]).copied().collect();
        Ok(task.agent.push(self.matrix, rows_of(keys), Values::F32(&values))?)
    }

    fn weighted_gramian(
        &self,
        task: &mut TrainTask<'_>,
        rows: &[f32],
        total: u64,
    ) -> Result<Vec<f32>, Error> {
        let sums = gramian(task.agent, rows, padded(self.width), total)?;
        Ok(sums.iter().map(|x| self.weight * *x as f32).collect())
    }

    /// What these features, of the other side with `total` rows, add to the equations of a side.
    pub(super) fn added_to(
        &self,
        task: &mut TrainTask<'_>,
        own: &Side,
        total: u64,
    ) -> Result<AddedEquations, Error> {
        let base = self.weighted_gramian(task, &self.rows, total)?;
        let vectors = read_others(task, self.matrix, &own.pairs.other_keys, (self.width, false))?.vectors;
        let length = padded(self.width);
        let mut right = vec![0.0; own.pairs.row_count() * length];
        for (row, right) in right.chunks_exact_mut(length).enumerate() {
            for pair in own.pairs.row(row) {
                let vector = &vectors[own.pairs.others[pair] as usize * length..][..length];
                right.iter_mut().zip(vector).for_each(|(right, x)| *right += self.weight * x);
            }
        }
        Ok(AddedEquations { base, right })
    }

    /// Solves these features of the own side with the rows of the other side: all of them, and those that the own pairs name.
    pub(super) fn solve(
        &mut self,
        task: &mut TrainTask<'_>,
        own: &Side,
        (other, vectors): (&Side, &[f32]),
        steps: usize,
    ) -> Result<(), Error> {
        let base = self.weighted_gramian(task, &self.without_biases(&other.rows), other.total)?;
        let vectors = self.without_biases(vectors);
        let [weights, targets] = [0.0, self.weight].map(|x| vec![x; own.pairs.others.len()]);
        let equations = Equations {
            width: self.width,
            base: Some(&base),
            right: None,
            others: &vectors,
            starts: &own.pairs.starts,
            positions: &own.pairs.others,
            weights: Some(&weights),
            targets: Some(&targets),
            ridges: &own.ridges,
        };
        equations.approach(&mut self.rows, steps);
        self.push(task, &own.pairs.keys)
    }

    /// Rows with 0 in the place of the bias.
    fn without_biases(&self, rows: &[f32]) -> Vec<f32> {
        let mut rows = rows.to_vec();
        rows.chunks_exact_mut(padded(self.width)).for_each(|row| row[self.width - 1] = 0.0);
        rows
    }
}
