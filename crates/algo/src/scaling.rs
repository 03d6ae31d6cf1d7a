//! Scaling of columns by their moments, which a scan of the data measures before the first step. The moments are a matrix of
//! the model: features x 3, with the share of records that have the feature, and the mean and the mean square over all
//! records.

use std::collections::BTreeMap;

use data::Batch;
use math::hash::NAMED_KEY_BIT;
use matrix::{Agent, Keys, MatrixId, PullTicket, Selection, Values, ValuesMut};
use serde::{Deserialize, Serialize};

use crate::batch_loop::pull_or_wait;
use crate::error::Error;

/// A variance below this share of the mean square is a rounding error: such a column is constant, and is not scaled.
const CONSTANT_COLUMN: f64 = 1e-12;

/// Columns of the moments: share of records that have the feature, mean, mean square, each over all records.
pub(crate) const MOMENT_COLUMNS: u64 = 3;

/// How columns are standardized before they are multiplied by their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standardize {
    /// `(x - mean) / deviation`, over the records that have the column: for dense formats. A missing value counts as
    /// the mean.
    Center,
    /// `x / deviation`, over all records, where an absent entry is 0: for sparse formats, which stay sparse.
    Scale,
    /// `x / root mean square`, over the records that have the column: a rare column of ones stays as it is.
    Entries,
    /// `x (1 - log share)`, where share is that of the records with the column: the inverse document frequency of
    /// texts.
    Idf,
}

/// Scales the columns of one batch after the other; scratch memory is reused.
#[derive(Debug)]
pub(crate) struct ColumnScaler {
    /// How columns are scaled, and the matrix of their moments; `None` leaves them as they are.
    scaling: Option<(Standardize, MatrixId)>,
    moments: Vec<f64>,
    /// Shift to subtract and factor to multiply by, for each column of the batch.
    scales: Vec<(f64, f64)>,
}

impl ColumnScaler {
    pub(crate) fn new(scaling: Option<(Standardize, MatrixId)>) -> Self {
        Self { scaling, moments: Vec::new(), scales: Vec::new() }
    }

    /// The moments that a batch needs, if any.
    pub(crate) fn selection<'b>(&self, batch: &'b Batch) -> Option<(MatrixId, Selection<'b>)> {
        let (mode, id) = self.scaling?;
        let keys = scaled_keys(mode, &batch.columns);
        (!keys.is_empty()).then_some((id, Selection::Rows(Keys::Sorted(keys))))
    }

    /// Reads the moments of a batch, with their ticket if they were prefetched.
    pub(crate) fn read(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        ticket: Option<&PullTicket>,
    ) -> Result<(), Error> {
        let count = self.scaling.map_or(0, |(mode, _)| scaled_keys(mode, &batch.columns).len());
        self.moments.resize(count * MOMENT_COLUMNS as usize, 0.0);
        pull_or_wait(agent, self.selection(batch), ticket, ValuesMut::F64(&mut self.moments))
    }

    /// Scales the values of the batch whose moments were read last; one value per entry.
    pub(crate) fn scale(&mut self, batch: &Batch, values: &mut [f32]) {
        let Some((mode, _)) = self.scaling else { return };
        self.scales.clear();
        let rows = self.moments.as_chunks::<{ MOMENT_COLUMNS as usize }>().0;
        self.scales.extend(rows.iter().map(|row| scale_of(mode, row)));
        self.scales.resize(batch.columns.len(), IDENTITY_SCALE);
        apply_scales(&self.scales, &batch.indices, values);
    }
}

/// Number of entries, sum and sum of squares of each column of the records of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments(BTreeMap<u64, [f64; 3]>);

impl Moments {
    pub(crate) fn add(&mut self, mode: Standardize, batch: &Batch) {
        let keys = scaled_keys(mode, &batch.columns);
        let mut sums = vec![[0f64; 3]; keys.len()];
        for (i, &index) in batch.indices.iter().enumerate() {
            if index as usize >= keys.len() {
                continue;
            }
            let value = batch.values.get(i).map_or(1.0, |&value| f64::from(value));
            let sum = &mut sums[index as usize];
            sum[0] += 1.0;
            sum[1] += value;
            sum[2] += value * value;
        }
        for (key, sum) in keys.iter().zip(sums) {
            let total = self.0.entry(*key).or_insert([0.0; 3]);
            total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
        }
    }

    /// Adds the moments of the records of this task, of `record_count` records of all tasks, to the matrix.
    pub(crate) fn push(&self, agent: &mut dyn Agent, id: MatrixId, record_count: f64) -> Result<(), Error> {
        let keys: Vec<u64> = self.0.keys().copied().collect();
        let shares: Vec<f64> = self.0.values().flatten().map(|sum| sum / record_count).collect();
        if !keys.is_empty() {
            agent.push(id, Selection::Rows(Keys::Sorted(&keys)), Values::F64(&shares))?;
        }
        Ok(())
    }
}

/// Subtracts the shift and multiplies by the factor: `scales` has one pair per column, `indices` the column of each
/// value.
pub(crate) fn apply_scales(scales: &[(f64, f64)], indices: &[u32], values: &mut [f32]) {
    for (value, &index) in values.iter_mut().zip(indices) {
        let (shift, factor) = scales[index as usize];
        *value = ((f64::from(*value) - shift) * factor) as f32;
    }
}

/// Shift and factor of a column that is not standardized.
pub(crate) const IDENTITY_SCALE: (f64, f64) = (0.0, 1.0);

/// The keys, of ascending `keys`, whose columns are scaled. One-hot columns of names are scaled only by their document
/// frequency: their values 0 and 1 need no other scale.
pub(crate) fn scaled_keys(mode: Standardize, keys: &[u64]) -> &[u64] {
    match mode {
        Standardize::Center | Standardize::Scale | Standardize::Entries => {
            &keys[..keys.partition_point(|key| *key & NAMED_KEY_BIT == 0)]
        }
        Standardize::Idf => keys,
    }
}

/// Shift and factor of a scaled column.
pub(crate) fn scale_of(mode: Standardize, &[share, mean, square]: &[f64; 3]) -> (f64, f64) {
    if share <= 0.0 {
        return IDENTITY_SCALE;
    }
    let (shift, mean, square) = match mode {
        Standardize::Center => (mean / share, mean / share, square / share),
        Standardize::Scale => (0.0, mean, square),
        Standardize::Entries if square > 0.0 => return (0.0, (share / square).sqrt()),
        Standardize::Entries => return IDENTITY_SCALE,
        Standardize::Idf => return (0.0, 1.0 - share.ln()),
    };
    let variance = square - mean * mean;
    if variance <= CONSTANT_COLUMN * square { (shift, 1.0) } else { (shift, 1.0 / variance.sqrt()) }
}
