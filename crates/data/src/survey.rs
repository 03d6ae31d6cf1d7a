//! Statistics of the records of an input on which defaults depend: numbers of records, columns and entries, sizes of
//! values, lengths of records. They are collected while the data are scanned; those of several tasks can be merged.
//!
//! A record of weight w counts as w records, except in the numbers of records and entries, which tell how long it takes to
//! read them.

use std::collections::{BTreeMap, BTreeSet};

use math::hash::{NAMED_KEY_BIT, mix64};

use crate::batch::Batch;
use crate::quantiles::{NUMBER_LIMIT, QuantileSketch};

/// Number of columns whose scale is computed. Data with more columns are wide, where scales do not matter.
const COLUMN_LIMIT: usize = 4096;
/// Number of columns and names up to which there are quantiles.
const QUANTILE_LIMIT: usize = 1 << 17;
/// Numbers of the sketches of all columns.
const SKETCHED_NUMBERS: usize = 1 << 22;
/// Number of hashes in a [`Sketch`]: the error of its estimate is about 3 %.
const SKETCH_SIZE: usize = 1024;

/// Statistics of the training records. Merging gives the same in any order, except for the last bits of the sums.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Survey {
    pub record_count: u64,
    /// Entries of all records.
    pub entry_count: u64,
    /// Entries whose value is below 0.
    pub negative_count: u64,
    /// Entries whose value is an integer.
    pub whole_count: u64,
    /// Sum of the weights of records.
    weight_sum: f64,
    /// Weight of the records without an entry.
    empty_weight: f64,
    /// Sum of weight x number of entries, of the entries whose value is 1, and of the squared number of entries.
    entry_weight: f64,
    one_weight: f64,
    entry_count_squares: f64,
    /// Sum of weight x label.
    label_sum: f64,
    /// Sums of weight x Euclidean length of a record, and of weight x squared length.
    length_sums: [f64; 2],
    columns: Sketch,
    /// Weight and weighted sum of squares of the entries of each column. Empty above `COLUMN_LIMIT`.
    scales: BTreeMap<u64, [f64; 2]>,
    too_many_columns: bool,
    /// The values of the entries of each column that is not a name of a field; `None` if they are not asked for. Empty above
    /// `QUANTILE_LIMIT` columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quantiles: Option<BTreeMap<u64, QuantileSketch>>,
    #[serde(default)]
    too_many_quantiles: bool,
    /// Weights of the named features by their fields, if quantiles are asked for.
    #[serde(default)]
    names: BTreeMap<u32, BTreeMap<u64, f64>>,
    /// Fields of which a record has several names, or a name with another value than 1.
    #[serde(default)]
    token_fields: BTreeSet<u32>,
}

impl Survey {
    /// A survey that also has the quantiles of each column.
    pub fn with_quantiles() -> Self {
        Self { quantiles: Some(BTreeMap::new()), ..Self::default() }
    }

    /// The values of the entries of a column that is not a name of a field. Values that are not stored, which are zeros or
    /// missing, are not among them. `None` if there is no such column, there are more than 131,072 of them, or quantiles were
    /// not asked for.
    pub fn quantiles(&self, column: u64) -> Option<&QuantileSketch> {
        self.quantiles.as_ref()?.get(&column)
    }

    /// The columns that have quantiles, ascending.
    pub fn quantile_columns(&self) -> impl Iterator<Item = (u64, &QuantileSketch)> {
        self.quantiles.iter().flatten().map(|(&column, sketch)| (column, sketch))
    }

    /// Whether there are more columns than those whose quantiles fit, so that there are none.
    pub fn has_too_many_quantiles(&self) -> bool {
        self.too_many_quantiles
    }

    /// The named features of each field, which are the values of a column of names, with the weights of the records that
    /// have them. Collected like quantiles.
    pub fn names(&self) -> &BTreeMap<u32, BTreeMap<u64, f64>> {
        &self.names
    }

    /// Whether names of this field are words of a text, of which a record may have several and more than once.
    pub fn has_tokens(&self, field: u32) -> bool {
        self.token_fields.contains(&field)
    }

    pub fn add(&mut self, batch: &Batch) {
        self.record_count += batch.record_count() as u64;
        self.entry_count += batch.entry_count() as u64;
        if batch.values.is_empty() {
            self.whole_count += batch.entry_count() as u64;
        }
        for &value in &batch.values {
            self.negative_count += u64::from(value < 0.0);
            self.whole_count += u64::from(value.fract() == 0.0);
        }
        for (r, &label) in batch.labels.iter().enumerate() {
            let (weight, entries) = (f64::from(batch.weight(r)), batch.entries(r));
            let count = entries.len() as f64;
            let (ones, square) = match batch.values.get(entries) {
                Some(values) => (
                    values.iter().filter(|value| **value == 1.0).count() as f64,
                    values.iter().map(|&value| f64::from(value) * f64::from(value)).sum(),
                ),
                None => (count, count),
            };
            self.weight_sum += weight;
            self.empty_weight += if count == 0.0 { weight } else { 0.0 };
            self.entry_weight += weight * count;
            self.one_weight += weight * ones;
            self.entry_count_squares += weight * count * count;
            self.label_sum += weight * label;
            self.length_sums[0] += weight * square.sqrt();
            self.length_sums[1] += weight * square;
        }
        self.columns.add(&batch.columns);
        self.add_scales(batch);
        self.add_values(batch);
    }

    fn add_scales(&mut self, batch: &Batch) {
        if self.too_many_columns {
            return;
        }
        let mut sums = vec![[0f64; 2]; batch.columns.len()];
        for r in 0..batch.record_count() {
            let weight = f64::from(batch.weight(r));
            for i in batch.entries(r) {
                let value = batch.values.get(i).map_or(1.0, |&value| f64::from(value));
                let sum = &mut sums[batch.indices[i] as usize];
                sum[0] += weight;
                sum[1] += weight * value * value;
            }
        }
        for (&key, sum) in batch.columns.iter().zip(sums) {
            let total = self.scales.entry(key).or_default();
            total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
        }
        self.drop_scales_when_too_many();
    }

    fn add_values(&mut self, batch: &Batch) {
        let Some(quantiles) = self.quantiles.as_mut().filter(|_| !self.too_many_quantiles) else { return };
        for r in 0..batch.record_count() {
            let weight = f64::from(batch.weight(r));
            let mut before = None;
            for i in batch.entries(r) {
                let key = batch.columns[batch.indices[i] as usize];
                let value = batch.values.get(i).copied().unwrap_or(1.0);
                let field = batch.fields.get(i).filter(|_| key & NAMED_KEY_BIT != 0);
                if let Some(&field) = field {
                    *self.names.entry(field).or_default().entry(key).or_default() += weight;
                    // The entries of a column follow each other.
                    if before.replace(field) == Some(field) || value != 1.0 {
                        self.token_fields.insert(field);
                    }
                } else {
                    quantiles.entry(key).or_default().add(value, weight);
                }
            }
        }
        self.drop_quantiles_when_too_many();
    }

    fn drop_quantiles_when_too_many(&mut self) {
        let Some(quantiles) = &mut self.quantiles else { return };
        let columns = quantiles.len() + self.names.values().map(BTreeMap::len).sum::<usize>();
        self.too_many_quantiles |= columns > QUANTILE_LIMIT;
        if self.too_many_quantiles {
            quantiles.clear();
            self.names.clear();
        } else if columns > SKETCHED_NUMBERS / NUMBER_LIMIT {
            let limit = SKETCHED_NUMBERS / columns.next_power_of_two();
            for sketch in quantiles.values_mut() {
                sketch.lower_limit(limit);
            }
        }
    }

    fn drop_scales_when_too_many(&mut self) {
        self.too_many_columns |= self.scales.len() > COLUMN_LIMIT;
        if self.too_many_columns {
            self.scales.clear();
        }
    }

    /// Adds the statistics of another task.
    pub fn merge(&mut self, other: &Self) {
        self.record_count += other.record_count;
        self.entry_count += other.entry_count;
        self.negative_count += other.negative_count;
        self.whole_count += other.whole_count;
        self.weight_sum += other.weight_sum;
        self.empty_weight += other.empty_weight;
        self.entry_weight += other.entry_weight;
        self.one_weight += other.one_weight;
        self.entry_count_squares += other.entry_count_squares;
        self.label_sum += other.label_sum;
        self.length_sums.iter_mut().zip(other.length_sums).for_each(|(sum, other)| *sum += other);
        self.columns.merge(&other.columns);
        self.too_many_columns |= other.too_many_columns;
        for (&key, sum) in &other.scales {
            let total = self.scales.entry(key).or_default();
            total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
        }
        self.drop_scales_when_too_many();
        if let (Some(quantiles), Some(other)) = (&mut self.quantiles, &other.quantiles) {
            for (&key, sketch) in other {
                quantiles.entry(key).or_default().merge(sketch);
            }
        }
        self.token_fields.extend(&other.token_fields);
        for (&field, names) in &other.names {
            let all = self.names.entry(field).or_default();
            for (&key, weight) in names {
                *all.entry(key).or_default() += weight;
            }
        }
        self.too_many_quantiles |= other.too_many_quantiles;
        self.drop_quantiles_when_too_many();
    }

    /// Number of distinct columns: exact up to a thousand, then an estimate with an error of about 3 %. It does not
    /// depend on how the records are divided among tasks.
    pub fn column_count(&self) -> u64 {
        self.columns.count()
    }

    /// Number of records by their weights. Weights below 1 on average do not make it smaller, since they are often shares.
    pub fn sample_size(&self) -> f64 {
        self.weight_sum.max(self.record_count as f64)
    }

    /// Entries of a record, on average.
    pub fn mean_entry_count(&self) -> f64 {
        if self.weight_sum > 0.0 { self.entry_weight / self.weight_sum } else { 0.0 }
    }

    /// Share of the entries whose value is 1; 0 without entries.
    pub fn one_share(&self) -> f64 {
        if self.entry_weight > 0.0 { self.one_weight / self.entry_weight } else { 0.0 }
    }

    /// Mean of the labels; 0 without records.
    pub fn label_mean(&self) -> f64 {
        if self.weight_sum > 0.0 { self.label_sum / self.weight_sum } else { 0.0 }
    }

    /// Entries over records x columns, in `[0, 1]`.
    pub fn density(&self) -> f64 {
        let cells = self.weight_sum * self.column_count() as f64;
        if cells > 0.0 { (self.entry_weight / cells).min(1.0) } else { 0.0 }
    }

    /// The largest root mean square of the entries of a column over the smallest; 1 without columns, `None`
    /// when there are more than `COLUMN_LIMIT` columns. Columns of zeros do not count.
    pub fn scale_ratio(&self) -> Option<f64> {
        if self.too_many_columns {
            return None;
        }
        let squares = self.scales.values().map(|[count, square]| square / count).filter(|mean| *mean > 0.0);
        let (low, high) = squares.fold((f64::INFINITY, 0f64), |(low, high), x| (low.min(x), high.max(x)));
        Some(if high > 0.0 { (high / low).sqrt() } else { 1.0 })
    }

    /// Root mean square of all entries; 0 without entries.
    pub fn entry_scale(&self) -> f64 {
        if self.entry_weight > 0.0 { (self.length_sums[1] / self.entry_weight).sqrt() } else { 0.0 }
    }

    /// Standard deviation of the Euclidean lengths of records over their mean; records without entries do not count.
    pub fn length_spread(&self) -> f64 {
        self.spread(self.length_sums)
    }

    /// Standard deviation of the numbers of entries of records over their mean; records without entries do not count.
    pub fn entry_count_spread(&self) -> f64 {
        self.spread([self.entry_weight, self.entry_count_squares])
    }

    /// Computes standard deviation over mean of the records with entries, from their sum and sum of squares.
    fn spread(&self, [sum, squares]: [f64; 2]) -> f64 {
        let count = self.weight_sum - self.empty_weight;
        if count <= 0.0 {
            return 0.0;
        }
        let mean = sum / count;
        let variance = (squares / count - mean * mean).max(0.0);
        if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
    }
}

/// The smallest hashes of all keys; the number of distinct keys is estimated from how small they are (Bar-Yossef et
/// al., "Counting distinct elements in a data stream", RANDOM 2002, algorithm 1).
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Sketch {
    /// Ascending, distinct, at most [`SKETCH_SIZE`].
    hashes: Vec<u64>,
}

impl Sketch {
    fn add(&mut self, keys: &[u64]) {
        let hashes: Vec<u64> =
            keys.iter().map(|key| mix64(*key)).filter(|hash| self.is_small(*hash)).collect();
        self.take(hashes);
    }

    fn merge(&mut self, other: &Self) {
        self.take(other.hashes.clone());
    }

    fn is_small(&self, hash: u64) -> bool {
        self.hashes.len() < SKETCH_SIZE || self.hashes.last().is_some_and(|last| hash < *last)
    }

    fn take(&mut self, mut hashes: Vec<u64>) {
        if hashes.is_empty() {
            return;
        }
        self.hashes.append(&mut hashes);
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.hashes.truncate(SKETCH_SIZE);
    }

    fn count(&self) -> u64 {
        match self.hashes.last() {
            Some(&last) if self.hashes.len() == SKETCH_SIZE => {
                let share = (last as f64 + 1.0) / 2f64.powi(64);
                ((SKETCH_SIZE - 1) as f64 / share).round() as u64
            }
            _ => self.hashes.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests;
