//! Scaling of columns by their moments, which a scan of the data measures before the first step. The moments are a matrix of
//! the model: features x 3, with the share of records that have the feature, and the mean and the mean square over all
//! records, by the weights of the records.
//!
//! A column whose values are all 0 and 1 keeps them: it has a scale already (Gelman, "Scaling regression inputs by
//! dividing by two standard deviations", Statistics in Medicine 2008, section 3), and the deviation of a rare one is so
//! small that it would count for too much. So a name in a column of text is the same as an indicator that is written as a
//! number, in every format.

use std::collections::BTreeMap;

use data::Batch;
use math::hash::NAMED_KEY_BIT;
use matrix::{Agent, MatrixId, PullTicket, Selection, Values, ValuesMut};
use serde::{Deserialize, Serialize};

use crate::batch_loop::pull_or_wait;
use crate::csr::normalize;
use crate::data_facts::DataFacts;
use crate::error::Error;
use crate::rows::rows_of;

/// A variance below this share of the mean square is a rounding error: such a column is constant, and is not scaled.
const CONSTANT_COLUMN: f64 = 1e-12;

/// Columns are of unlike scale if their root mean squares differ by more than this factor: then one l2 and one step
/// size do not suit all columns.
pub const SCALE_RATIO_LIMIT: f64 = 30.0;
/// Data are sparse if their entries fill less than this share of the cells of a table.
pub const MAX_SPARSE_DENSITY: f64 = 0.25;

/// From this share on all records have a column: the sum of their weights is exact only up to rounding.
const FULL_SHARE: f64 = 1.0 - 1e-9;

/// Columns of the moments: share of records that have the feature, mean, mean square, each over all records.
pub const MOMENT_COLUMNS: u64 = 3;

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

impl Standardize {
    /// By deviations, as the format of the training data allows it.
    pub fn by_deviation(facts: &DataFacts) -> Self {
        if facts.dense { Self::Center } else { Self::Scale }
    }
}

/// Which columns are standardized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaledColumns {
    /// All columns that have numbers, also those of 0 and 1, and no names: in models of earlier versions.
    #[default]
    Numbered,
    /// Columns that have numbers and other values than 0 and 1. Names have no other values in these data.
    Numbers,
    /// All columns with other values than 0 and 1.
    All,
}

impl ScaledColumns {
    /// Those of a new model that is standardized.
    pub fn of_data(facts: &DataFacts) -> Self {
        if facts.names_have_values { Self::All } else { Self::Numbers }
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    /// Whether it is the default, which models do not save.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the columns of a model are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalingRule {
    pub mode: Standardize,
    pub columns: ScaledColumns,
}

impl ScalingRule {
    /// The keys, of ascending `keys`, whose columns may be scaled.
    pub fn keys(self, keys: &[u64]) -> &[u64] {
        match (self.mode, self.columns) {
            (Standardize::Idf, _) | (_, ScaledColumns::All) => keys,
            (_, ScaledColumns::Numbered | ScaledColumns::Numbers) => {
                &keys[..keys.partition_point(|key| *key & NAMED_KEY_BIT == 0)]
            }
        }
    }

    /// Whether a column with these moments keeps its values, because they are 0 and 1: then x = x^2 in every record.
    fn is_indicator(self, [_, mean, square]: &[f64; 3]) -> bool {
        mean == square && self.columns != ScaledColumns::Numbered
    }

    /// Shift and factor of a column.
    pub fn scale(self, key: u64, moments: &[f64; 3]) -> (f64, f64) {
        let &[share, mean, square] = moments;
        if share <= 0.0 {
            return IDENTITY_SCALE;
        }
        // A name or a product that some records lack is 0 there. A number is missing there.
        let is_sparse = key & NAMED_KEY_BIT != 0 && share < FULL_SHARE;
        let (shift, mean, square) = match self.mode {
            Standardize::Center if !is_sparse => (mean / share, mean / share, square / share),
            Standardize::Center | Standardize::Scale => (0.0, mean, square),
            Standardize::Entries if square > 0.0 => return (0.0, (share / square).sqrt()),
            Standardize::Entries => return IDENTITY_SCALE,
            Standardize::Idf => return (0.0, 1.0 - math::elementary::ln(share)),
        };
        let variance = square - mean * mean;
        let keeps_values = self.is_indicator(moments) || variance <= CONSTANT_COLUMN * square;
        if keeps_values { (shift, 1.0) } else { (shift, 1.0 / variance.sqrt()) }
    }

    /// Whether the moments of a column must be known. Without them its values stay as they are.
    fn needs_moments(self, key: u64, moments: &[f64; 3]) -> bool {
        let is_numbered = key & NAMED_KEY_BIT == 0;
        self.mode == Standardize::Idf
            || (self.mode == Standardize::Center && is_numbered)
            || !self.is_indicator(moments)
    }
}

/// Scales the values of one batch after the other: the columns, then the records; scratch memory is reused.
#[derive(Debug)]
pub struct ValueScaler {
    /// How columns are scaled, and the matrix of their moments; `None` leaves them as they are.
    scaling: Option<(ScalingRule, MatrixId)>,
    /// Whether each record is scaled to unit length.
    normalizes: bool,
    moments: Vec<f64>,
    /// Shift to subtract and factor to multiply by, for each column of the batch.
    scales: Vec<(f64, f64)>,
    /// The values that were scaled last, one for each entry.
    pub values: Vec<f32>,
}

impl ValueScaler {
    /// Scales columns by the moments in this matrix, if it is given, then records to unit length if `normalizes` is set.
    pub fn new(scaling: Option<(ScalingRule, MatrixId)>, normalizes: bool) -> Self {
        Self { scaling, normalizes, moments: Vec::new(), scales: Vec::new(), values: Vec::new() }
    }

    /// Whether all values stay as they are.
    pub fn is_identity(&self) -> bool {
        self.scaling.is_none() && !self.normalizes
    }

    /// The moments that a batch needs, if any.
    pub fn selection<'b>(&self, batch: &'b Batch) -> Option<(MatrixId, Selection<'b>)> {
        let (scaling, id) = self.scaling?;
        let keys = scaling.keys(&batch.columns);
        (!keys.is_empty()).then_some((id, rows_of(keys)))
    }

    /// Reads the moments of a batch, with their ticket if they were prefetched.
    pub fn read(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        ticket: Option<&PullTicket>,
    ) -> Result<(), Error> {
        let count = self.scaling.map_or(0, |(scaling, _)| scaling.keys(&batch.columns).len());
        self.moments.resize(count * MOMENT_COLUMNS as usize, 0.0);
        pull_or_wait(agent, self.selection(batch), ticket, ValuesMut::F64(&mut self.moments))
    }

    /// Scales the values of the batch whose moments were read last.
    pub fn scale(&mut self, batch: &Batch) {
        self.values.clear();
        self.values.extend_from_slice(&batch.values);
        self.values.resize(batch.entry_count(), 1.0);
        if let Some((scaling, _)) = self.scaling {
            self.scales.clear();
            let rows = self.moments.as_chunks::<{ MOMENT_COLUMNS as usize }>().0;
            self.scales.extend(batch.columns.iter().zip(rows).map(|(key, row)| scaling.scale(*key, row)));
            self.scales.resize(batch.columns.len(), IDENTITY_SCALE);
            apply_scales(&self.scales, &batch.indices, &mut self.values);
        }
        if self.normalizes {
            normalize(&batch.offsets, &mut self.values);
        }
    }
}

/// Weighted number of entries, sum and sum of squares of each column of the records of a task.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    scaling: ScalingRule,
    columns: BTreeMap<u64, [f64; 3]>,
}

impl Moments {
    pub(crate) fn new(scaling: ScalingRule) -> Self {
        Self { scaling, columns: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, batch: &Batch) {
        let keys = self.scaling.keys(&batch.columns);
        let mut sums = vec![[0f64; 3]; keys.len()];
        for r in 0..batch.record_count() {
            let weight = f64::from(batch.weight(r));
            for i in batch.entries(r) {
                let Some(sum) = sums.get_mut(batch.indices[i] as usize) else { continue };
                let value = batch.values.get(i).map_or(1.0, |&value| f64::from(value));
                sum[0] += weight;
                sum[1] += weight * value;
                sum[2] += weight * value * value;
            }
        }
        for (key, sum) in keys.iter().zip(sums) {
            let total = self.columns.entry(*key).or_insert([0.0; 3]);
            total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
        }
    }

    /// Adds the moments of the records of this task to the matrix; `weight_sum` is that of all tasks. Afterwards every task
    /// can read those of all.
    pub(crate) fn push(&self, agent: &mut dyn Agent, id: MatrixId, weight_sum: f64) -> Result<(), Error> {
        let share = |sums: &[f64; 3]| sums.map(|sum| sum / weight_sum);
        let all = self.columns.iter().map(|(key, sums)| (*key, share(sums)));
        let (needed, others): (Vec<_>, Vec<_>) =
            all.partition(|(key, moments)| self.scaling.needs_moments(*key, moments));
        push_rows(agent, id, &needed)?;
        agent.barrier()?;
        if agent.task_count() > 1 {
            // What is an indicator here may have other values at another task.
            let keys: Vec<u64> = others.iter().map(|(key, _)| *key).collect();
            let mut moments_of_others = vec![0.0; keys.len() * MOMENT_COLUMNS as usize];
            if !keys.is_empty() {
                agent.pull(id, rows_of(&keys), ValuesMut::F64(&mut moments_of_others))?;
            }
            // No task adds its part before all have read which columns have one.
            agent.barrier()?;
            let rows = moments_of_others.as_chunks::<{ MOMENT_COLUMNS as usize }>().0;
            let is_needed = rows.iter().map(|row| row[0] > 0.0);
            let more: Vec<_> =
                others.into_iter().zip(is_needed).filter(|(_, needed)| *needed).map(|(row, _)| row).collect();
            push_rows(agent, id, &more)?;
            agent.barrier()?;
        }
        Ok(())
    }
}

fn push_rows(agent: &mut dyn Agent, id: MatrixId, rows: &[(u64, [f64; 3])]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let keys: Vec<u64> = rows.iter().map(|(key, _)| *key).collect();
    let moments: Vec<f64> = rows.iter().flat_map(|(_, moments)| *moments).collect();
    Ok(agent.push(id, rows_of(&keys), Values::F64(&moments))?)
}

/// Subtracts the shift and multiplies by the factor: `scales` has one pair per column, `indices` the column of each
/// value.
pub fn apply_scales(scales: &[(f64, f64)], indices: &[u32], values: &mut [f32]) {
    for (value, &index) in values.iter_mut().zip(indices) {
        let (shift, factor) = scales[index as usize];
        *value = ((f64::from(*value) - shift) * factor) as f32;
    }
}

/// Shift and factor of a column that is not standardized.
pub const IDENTITY_SCALE: (f64, f64) = (0.0, 1.0);

#[cfg(test)]
mod tests {
    use matrix::Keys;

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

    fn scaling(mode: Standardize) -> ScalingRule {
        ScalingRule { mode, columns: ScaledColumns::All }
    }

    #[test]
    fn a_column_is_shifted_and_divided_as_its_mode_says() {
        let scale_of = |mode, moments: &[f64; 3]| scaling(mode).scale(3, moments);
        // Half of the records have the column, with the values 3 and 5.
        let moments = [0.5, 2.0, 8.5];
        assert_eq!(scale_of(Standardize::Center, &moments), (4.0, 1.0), "mean 4, deviation 1");
        let sparse = (0.0, 1.0 / 4.5f64.sqrt());
        assert_eq!(scale_of(Standardize::Scale, &moments), sparse, "8.5 - 2^2");
        assert_eq!(scale_of(Standardize::Entries, &moments), (0.0, 1.0 / 17f64.sqrt()));
        assert_eq!(scale_of(Standardize::Idf, &moments), (0.0, 1.0 + 2f64.ln()));
        let of_name = |moments| scaling(Standardize::Center).scale(NAMED_KEY_BIT, moments);
        assert_eq!(of_name(&moments), sparse, "the other records have the value 0");
        assert_eq!(of_name(&[1.0, 4.0, 17.0]), (4.0, 1.0), "all records have it");
        // A column of sevens.
        assert_eq!(scale_of(Standardize::Center, &[1.0, 7.0, 49.0]), (7.0, 1.0));
        assert_eq!(scale_of(Standardize::Scale, &[1.0, 7.0, 49.0]), (0.0, 1.0));
        assert_eq!(scale_of(Standardize::Entries, &[1.0, 0.0, 0.0]), IDENTITY_SCALE);
        for mode in [Standardize::Center, Standardize::Scale, Standardize::Entries, Standardize::Idf] {
            assert_eq!(scale_of(mode, &[0.0; 3]), IDENTITY_SCALE, "no record has it");
        }
    }

    #[test]
    fn a_column_of_0_and_1_keeps_its_values_except_in_models_of_earlier_versions() {
        for mode in [Standardize::Scale, Standardize::Entries] {
            assert_eq!(scaling(mode).scale(3, &[0.25, 0.25, 0.25]), IDENTITY_SCALE, "zeros are absent");
        }
        assert_eq!(scaling(Standardize::Center).scale(3, &[1.0, 0.25, 0.25]), (0.25, 1.0));
        let earlier = |mode| ScalingRule { mode, columns: ScaledColumns::Numbered };
        let factor = 1.0 / 0.1875f64.sqrt();
        assert_eq!(earlier(Standardize::Scale).scale(3, &[0.25, 0.25, 0.25]), (0.0, factor));
        assert_eq!(earlier(Standardize::Center).scale(3, &[1.0, 0.25, 0.25]), (0.25, factor));
    }

    #[test]
    fn the_moments_of_names_are_read_where_names_have_values() {
        let keys = [1, 5, NAMED_KEY_BIT, NAMED_KEY_BIT + 1];
        for mode in [Standardize::Center, Standardize::Scale, Standardize::Entries] {
            assert_eq!(scaling(mode).keys(&keys), keys);
            for columns in [ScaledColumns::Numbered, ScaledColumns::Numbers] {
                assert_eq!(ScalingRule { mode, columns }.keys(&keys), [1, 5]);
            }
        }
        assert_eq!(ScalingRule { mode: Standardize::Idf, columns: ScaledColumns::Numbers }.keys(&keys), keys);
        let selected = |scaling| {
            let scaler = ValueScaler::new(Some((scaling, MatrixId(7))), false);
            let batch = batch();
            scaler.selection(&batch).map(|(id, selection)| {
                let Selection::Rows(Keys::Sorted(keys)) = selection else { panic!("{selection:?}") };
                (id, keys.to_vec())
            })
        };
        let numbers = ScalingRule { mode: Standardize::Scale, columns: ScaledColumns::Numbers };
        assert_eq!(selected(numbers), Some((MatrixId(7), vec![0, 1])));
        assert_eq!(selected(scaling(Standardize::Scale)), Some((MatrixId(7), vec![0, 1, NAMED_KEY_BIT])));
        assert!(ValueScaler::new(None, false).selection(&batch()).is_none());
        let named = Batch { columns: vec![NAMED_KEY_BIT], indices: Vec::new(), ..Batch::default() };
        assert!(ValueScaler::new(Some((numbers, MatrixId(7))), false).selection(&named).is_none());
    }

    #[test]
    fn entries_are_counted_and_summed_by_column_and_by_weight() {
        let mut moments = Moments::new(scaling(Standardize::Scale));
        moments.add(&batch());
        // The second batch has no values: all entries are 1.
        moments.add(&Batch { values: Vec::new(), ..batch() });
        let expected = [(0, [4.0, 10.0, 36.0]), (1, [2.0, 2.0, 2.0]), (NAMED_KEY_BIT, [2.0; 3])];
        assert_eq!(moments.columns.into_iter().collect::<Vec<_>>(), expected);
        let mut weighted = Moments::new(scaling(Standardize::Scale));
        weighted.add(&Batch { weights: vec![2.0, 0.5, 3.0, 1.0], ..batch() });
        let expected = [(0, [2.5, 8.5, 30.5]), (1, [2.0, 2.0, 2.0]), (NAMED_KEY_BIT, [3.0; 3])];
        assert_eq!(weighted.columns.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn values_are_scaled_by_the_column_of_their_entry() {
        let numbers = ScalingRule { mode: Standardize::Center, columns: ScaledColumns::Numbers };
        let mut scaler = ValueScaler::new(Some((numbers, MatrixId(0))), false);
        scaler.moments = vec![0.5, 2.0, 8.5, 1.0, 7.0, 49.0];
        scaler.scale(&batch());
        assert_eq!(scaler.values, [-1.0, -6.0, 1.0, 1.0], "the name stays as it is");
        let mut as_they_are = ValueScaler::new(None, false);
        as_they_are.scale(&batch());
        assert_eq!(as_they_are.values, batch().values);
        as_they_are.normalizes = true;
        as_they_are.scale(&batch());
        assert_eq!(as_they_are.values[2..], [1.0, 1.0], "records of one value");
    }
}
