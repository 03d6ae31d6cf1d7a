//! One side of the pairs: the rows of the users or of the items that a task owns, and those of the other side that it reads.

use algo::error::Error;
use algo::job::TrainTask;
use algo::rows::rows_of;
use math::random::{NamedDraws, Purpose};
use matrix::{MatrixId, Values, ValuesMut};

use super::interactions::Interactions;
use super::model::FactorModel;
use super::solve::padded;

/// First factors have the standard deviation 0.1 / sqrt(k), as in the public code of Rendle et al., 2021.
const FIRST_DEVIATION: f64 = 0.1;

/// One side of the pairs: users, or items.
pub(super) struct Side {
    pub(super) matrix: MatrixId,
    pub(super) pairs: Interactions,
    /// The own rows, padded.
    pub(super) rows: Vec<f32>,
    /// Rows of all tasks.
    pub(super) total: u64,
    /// Of the own pairs; none: all are 1.
    pub(super) weights: Option<Vec<f32>>,
    pub(super) targets: Option<Vec<f32>>,
    pub(super) ridges: Vec<f32>,
}

impl Side {
    /// Writes the own rows.
    pub(super) fn push(&self, task: &mut TrainTask<'_>, width: usize) -> Result<(), Error> {
        let rows = self.rows.chunks_exact(padded(width));
        let values: Vec<f32> = rows.flat_map(|row| row[..width].iter().copied()).collect();
        task.agent.push(self.matrix, rows_of(&self.pairs.keys), Values::F32(&values))?;
        Ok(())
    }
}

/// The own rows at the beginning: those of an earlier model or of a saved training, and random ones where there are none.
pub(super) fn first_rows(
    task: &mut TrainTask<'_>,
    model: &FactorModel,
    (matrix, keys): (MatrixId, &[u64]),
    is_known: bool,
) -> Result<Vec<f32>, Error> {
    let (width, length) = (model.width(), padded(model.width()));
    let mut rows = vec![0.0; keys.len() * length];
    if is_known {
        let mut values = vec![0.0; keys.len() * width];
        task.agent.pull(matrix, rows_of(keys), ValuesMut::F32(&mut values))?;
        for (row, values) in rows.chunks_exact_mut(length).zip(values.chunks_exact(width)) {
            row[..width].copy_from_slice(values);
        }
    }
    let draws = NamedDraws::new(task.seed, Purpose::Initialize, u64::from(matrix.0));
    let deviation = FIRST_DEVIATION / (model.factors as f64).sqrt();
    for (row, key) in rows.chunks_exact_mut(length).zip(keys) {
        if row.iter().all(|&x| x == 0.0) {
            let mut draws = draws.of(*key);
            row[..model.factors].iter_mut().for_each(|x| *x = (deviation * draws.normal()) as f32);
        }
    }
    Ok(rows)
}

/// The rows of the other side that a half-step reads.
pub(super) struct OtherRows {
    /// Padded; with biases, 1 stands in their place.
    pub(super) vectors: Vec<f32>,
    pub(super) biases: Vec<f32>,
}

/// Reads rows of the other side, ascending.
pub(super) fn read_others(
    task: &mut TrainTask<'_>,
    matrix: MatrixId,
    keys: &[u64],
    (width, has_biases): (usize, bool),
) -> Result<OtherRows, Error> {
    let mut values = vec![0.0; keys.len() * width];
    task.agent.pull(matrix, rows_of(keys), ValuesMut::F32(&mut values))?;
    let length = padded(width);
    if width == length && !has_biases {
        return Ok(OtherRows { vectors: values, biases: Vec::new() });
    }
    let (mut vectors, mut biases) = (vec![0.0; keys.len() * length], Vec::new());
    for (row, values) in vectors.chunks_exact_mut(length).zip(values.chunks_exact(width)) {
        row[..width].copy_from_slice(values);
        if has_biases {
            biases.push(std::mem::replace(&mut row[width - 1], 1.0));
        }
    }
    Ok(OtherRows { vectors, biases })
}
