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

#[cfg(test)]
mod tests {
    use super::*;

    /// Records {0: 3, 1: 1}, {0: 5}, {NAMED: 1} and one without entries.
    fn batch() -> Batch {
        Batch {
            labels: vec![0.0; 4],
            offsets: vec![0, 2, 3, 4, 4],
            columns: vec![0, 1, NAMED_KEY_BIT],
            indices: vec![0, 1, 0, 2],
            values: vec![3.0, 1.0, 5.0, 1.0],
            ..Batch::default()
        }
    }

    #[test]
    fn a_column_is_shifted_and_divided_as_its_mode_says() {
        // Half of the records have the column, with the values 3 and 5.
        let moments = [0.5, 2.0, 8.5];
        assert_eq!(scale_of(Standardize::Center, &moments), (4.0, 1.0), "mean 4, deviation 1");
        let (shift, factor) = scale_of(Standardize::Scale, &moments);
        assert_eq!((shift, factor), (0.0, 1.0 / 4.5f64.sqrt()), "8.5 - 2^2");
        assert_eq!(scale_of(Standardize::Entries, &moments), (0.0, 1.0 / 17f64.sqrt()));
        assert_eq!(scale_of(Standardize::Idf, &moments), (0.0, 1.0 + 2f64.ln()));
        // A column of sevens.
        assert_eq!(scale_of(Standardize::Center, &[1.0, 7.0, 49.0]), (7.0, 1.0));
        assert_eq!(scale_of(Standardize::Scale, &[1.0, 7.0, 49.0]), (0.0, 1.0));
        assert_eq!(scale_of(Standardize::Entries, &[1.0, 0.0, 0.0]), IDENTITY_SCALE);
        for mode in [Standardize::Center, Standardize::Scale, Standardize::Entries, Standardize::Idf] {
            assert_eq!(scale_of(mode, &[0.0; 3]), IDENTITY_SCALE, "no record has it");
        }
    }

    #[test]
    fn names_are_scaled_by_their_frequency_only() {
        let keys = [1, 5, NAMED_KEY_BIT, NAMED_KEY_BIT + 1];
        for mode in [Standardize::Center, Standardize::Scale, Standardize::Entries] {
            assert_eq!(scaled_keys(mode, &keys), [1, 5]);
        }
        assert_eq!(scaled_keys(Standardize::Idf, &keys), keys);
        let selected = |mode| {
            let scaler = ColumnScaler::new(Some((mode, MatrixId(7))));
            let batch = batch();
            scaler.selection(&batch).map(|(id, selection)| {
                let Selection::Rows(Keys::Sorted(keys)) = selection else { panic!("{selection:?}") };
                (id, keys.to_vec())
            })
        };
        assert_eq!(selected(Standardize::Scale), Some((MatrixId(7), vec![0, 1])));
        assert_eq!(selected(Standardize::Idf), Some((MatrixId(7), vec![0, 1, NAMED_KEY_BIT])));
        assert!(ColumnScaler::new(None).selection(&batch()).is_none());
        let named = Batch { columns: vec![NAMED_KEY_BIT], indices: Vec::new(), ..Batch::default() };
        assert!(ColumnScaler::new(Some((Standardize::Scale, MatrixId(7)))).selection(&named).is_none());
    }

    #[test]
    fn entries_are_counted_and_summed_by_column() {
        let sums = |mode| {
            let mut moments = Moments::default();
            moments.add(mode, &batch());
            moments.add(mode, &Batch { values: Vec::new(), ..batch() });
            moments.0.into_iter().collect::<Vec<_>>()
        };
        // The second batch has no values: all entries are 1.
        let numbered = [(0, [4.0, 10.0, 36.0]), (1, [2.0, 2.0, 2.0])];
        assert_eq!(sums(Standardize::Scale), numbered);
        assert_eq!(sums(Standardize::Idf), [&numbered[..], &[(NAMED_KEY_BIT, [2.0; 3])]].concat());
    }

    #[test]
    fn values_are_scaled_by_the_column_of_their_entry() {
        let mut scaler = ColumnScaler::new(Some((Standardize::Center, MatrixId(0))));
        scaler.moments = vec![0.5, 2.0, 8.5, 1.0, 7.0, 49.0];
        let mut values = vec![3.0, 1.0, 5.0, 1.0];
        scaler.scale(&batch(), &mut values);
        assert_eq!(values, [-1.0, -6.0, 1.0, 1.0], "the name stays as it is");
        let mut as_they_are = vec![3.0, 1.0];
        ColumnScaler::new(None).scale(&batch(), &mut as_they_are);
        assert_eq!(as_they_are, [3.0, 1.0]);
    }
}
