//! A batch: records as compressed sparse rows over the sorted, distinct keys that occur in them.
//!
//! A parser appends raw keys to a [`BatchBuilder`]. [`BatchBuilder::finish`] sorts the distinct keys and replaces the
//! key of each entry by its position among them. Pulls and pushes then name each parameter once, and the inner loops
//! work on small dense arrays.

use crate::distinct_keys::DistinctKeys;
use crate::key_vec::KeyVec;
use crate::rounding::{EXACT_INTEGER_LIMIT, loses_digits};

/// Texts of the passthrough columns: one per record and column, record by record.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PassthroughTexts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl PassthroughTexts {
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }
}

/// Records as compressed sparse rows. Record `r` has the entries `offsets[r]..offsets[r + 1]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// One label per record, after the [`LabelRule`](crate::LabelRule); 0 when the input has no labels.
    pub labels: Vec<f64>,
    /// One weight per record; empty when all are 1.
    pub weights: Vec<f32>,
    /// One group per record (hash of the group column); empty when there is no such column.
    pub groups: Vec<u64>,
    /// One point in time per record (the time column), as its numbers are, or in seconds since 1970; empty when there is
    /// no such column.
    pub times: Vec<f64>,
    /// First entry of each record, and the end of the last one: `record_count + 1` numbers.
    pub offsets: Vec<u32>,
    /// Position in `columns` of the key of each entry.
    pub indices: Vec<u32>,
    /// Value of each entry; empty when all are 1.
    pub values: Vec<f32>,
    /// Field of each entry; empty when the format has no fields.
    pub fields: Vec<u32>,
    /// The distinct keys of the batch, ascending.
    pub columns: Vec<u64>,
    /// Texts of the passthrough columns, for predictions. The block cache does not store them.
    pub passthrough: PassthroughTexts,
    /// The number of each record among the records of its task, in the order of the files, from 0: the same in every
    /// epoch and order. Empty unless the records are numbered ([`TaskData::number_records`](crate::TaskData)).
    pub numbers: Vec<u64>,
}

impl Batch {
    pub fn record_count(&self) -> usize {
        self.labels.len()
    }

    /// Number of entries of all records.
    pub fn entry_count(&self) -> usize {
        self.indices.len()
    }

    /// Returns the entries of record `r` as a range of `indices` and `values`.
    #[inline]
    pub fn entries(&self, r: usize) -> std::ops::Range<usize> {
        self.offsets[r] as usize..self.offsets[r + 1] as usize
    }

    #[inline]
    pub fn weight(&self, r: usize) -> f32 {
        self.weights.get(r).copied().unwrap_or(1.0)
    }

    /// Empties the batch and keeps its allocations.
    pub fn clear(&mut self) {
        self.labels.clear();
        self.weights.clear();
        self.groups.clear();
        self.times.clear();
        self.offsets.clear();
        self.indices.clear();
        self.values.clear();
        self.fields.clear();
        self.columns.clear();
        self.passthrough.truncate(0);
        self.numbers.clear();
    }

    /// Copies `other` into this batch and reuses its allocations.
    pub fn copy_from(&mut self, other: &Self) {
        let Self {
            labels,
            weights,
            groups,
            times,
            offsets,
            indices,
            values,
            fields,
            columns,
            passthrough: carried,
            numbers,
        } = other;
        self.labels.clone_from(labels);
        self.weights.clone_from(weights);
        self.groups.clone_from(groups);
        self.times.clone_from(times);
        self.offsets.clone_from(offsets);
        self.indices.clone_from(indices);
        self.values.clone_from(values);
        self.fields.clone_from(fields);
        self.columns.clone_from(columns);
        self.passthrough.clone_from(carried);
        self.numbers.clone_from(numbers);
    }
}

/// Collects records with raw keys. The caller pushes the entries of a record and then calls `end_record`, or
/// `discard_record` when the record is bad: nothing of it stays then.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    keys: KeyVec,
    batch: Batch,
    distinct: DistinctKeys,
    /// Number of passthrough texts of the finished records.
    passthrough_count: usize,
    /// The time of the open record.
    open_time: Option<f64>,
    /// Keys and numbers of the open record that lose digits in f32.
    rounded: Vec<(u64, f64)>,
}

impl BatchBuilder {
    pub fn new() -> Self {
        let mut builder = Self::default();
        builder.batch.offsets.push(0);
        builder
    }

    /// Number of finished records.
    pub fn record_count(&self) -> usize {
        self.batch.labels.len()
    }

    /// Number of entries so far, those of the open record included.
    pub fn entry_count(&self) -> usize {
        self.keys.len()
    }

    /// Pushes an entry of value 1.
    #[inline]
    pub fn push_one(&mut self, key: u64) {
        if !self.batch.values.is_empty() {
            self.batch.values.push(1.0);
        }
        self.keys.push(key);
    }

    /// Pushes entries of value 1.
    #[inline]
    pub fn extend_ones(&mut self, keys: &[u64]) {
        self.keys.extend(keys);
        if !self.batch.values.is_empty() {
            self.batch.values.resize(self.keys.len(), 1.0);
        }
    }

    /// Does what [`Self::extend_ones`] does, for keys of 32 bits.
    #[cfg(feature = "parquet")]
    #[inline]
    pub(crate) fn extend_ones_u32(&mut self, keys: &[u32]) {
        self.keys.extend_u32(keys);
        if !self.batch.values.is_empty() {
            self.batch.values.resize(self.keys.len(), 1.0);
        }
    }

    /// Pushes entries of value 1 whose keys are below `SMALL_KEY_END`.
    #[inline]
    pub(crate) fn extend_small_ones(&mut self, keys: &[u32]) {
        self.keys.extend_small(keys);
        if !self.batch.values.is_empty() {
            self.batch.values.resize(self.keys.len(), 1.0);
        }
    }

    #[inline]
    pub fn push(&mut self, key: u64, value: f32) {
        if value == 1.0 {
            self.push_one(key);
        } else {
            self.push_value(key, value);
        }
    }

    /// Pushes an entry whose value is not 1: from here on all values are stored.
    fn push_value(&mut self, key: u64, value: f32) {
        if self.batch.values.is_empty() {
            self.batch.values.resize(self.keys.len(), 1.0);
        }
        self.keys.push(key);
        self.batch.values.push(value);
    }

    /// Pushes an entry with a field. Either all entries of a batch have a field, or none.
    #[inline]
    pub fn push_with_field(&mut self, field: u32, key: u64, value: f32) {
        self.push(key, value);
        self.batch.fields.push(field);
    }

    /// Gives this field to the entries that were pushed since the last call, or since the record began.
    #[inline]
    pub fn mark_field(&mut self, field: u32) {
        self.batch.fields.resize(self.keys.len(), field);
    }

    /// Adds the text of a passthrough column to the open record.
    pub fn push_passthrough(&mut self, text: &[u8]) {
        self.batch.passthrough.push(text);
    }

    /// Sets the time of the open record. Either all records of a batch have a time, or none.
    #[inline]
    pub fn set_time(&mut self, time: f64) {
        self.open_time = Some(time);
    }

    /// The time of the open record, if it has one.
    #[inline]
    pub(crate) fn open_time(&self) -> Option<f64> {
        self.open_time
    }

    /// Pushes tokens, each of which is an entry of value 1: in their order with `keeps_order`. Otherwise equal tokens are one
    /// entry, whose value is their number.
    pub fn push_tokens(&mut self, keys: &mut [u64], keeps_order: bool) {
        if keeps_order {
            return self.extend_ones(keys);
        }
        keys.sort_unstable();
        for equal in keys.chunk_by(|a, b| a == b) {
            self.push(equal[0], equal.len() as f32);
        }
    }

    /// Moves the open record to the end of `other`, where it stays open.
    pub(crate) fn move_open_record(&mut self, other: &mut Self) {
        let start = self.open_start();
        for (at, key) in self.open_keys().into_iter().enumerate() {
            other.push(key, self.batch.values.get(start + at).copied().unwrap_or(1.0));
        }
        if let Some(fields) = self.batch.fields.get(start..) {
            other.batch.fields.extend_from_slice(fields);
        }
        for at in self.passthrough_count..self.batch.passthrough.len() {
            other.batch.passthrough.push(self.batch.passthrough.get(at));
        }
        other.open_time = self.open_time;
        other.rounded.append(&mut self.rounded);
        self.discard_record();
    }

    /// Notes that a feature has the number `value`, which may have lost digits. `written` returns the number in double
    /// precision.
    #[inline]
    pub(crate) fn note_rounding(&mut self, key: u64, value: f32, written: impl FnOnce() -> Option<f64>) {
        if value.abs() >= EXACT_INTEGER_LIMIT {
            let written = written().filter(|written| loses_digits(*written, value));
            self.rounded.extend(written.map(|written| (key, written)));
        }
    }

    /// Takes the numbers of the last record that lost digits.
    #[inline]
    pub(crate) fn take_rounded(&mut self, visit: impl FnMut(u64, f64)) {
        let mut visit = visit;
        if !self.rounded.is_empty() {
            self.rounded.drain(..).for_each(|(key, written)| visit(key, written));
        }
    }

    /// Returns a copy of the raw keys of the open record.
    pub fn open_keys(&self) -> Vec<u64> {
        self.keys.copy_from(self.open_start())
    }

    /// Returns the largest key of the open record; `None` when it has no entry.
    pub fn largest_open_key(&self) -> Option<u64> {
        let start = self.open_start();
        match self.keys.small() {
            Some(small) => small[start..].iter().max().copied().map(u64::from),
            None => self.keys.wide()[start..].iter().max().copied(),
        }
    }

    /// Returns a key that occurs twice in the open record. Ascending keys cost one comparison each.
    #[inline]
    pub fn duplicate_key(&self) -> Option<u64> {
        self.keys.duplicate_from(self.open_start())
    }

    /// Adds up the entries of the open record that have the same key, and sorts the entries by key. Returns false when
    /// a sum exceeds the range of f32: the caller must then discard the record. Entries with a field are not supported.
    pub fn sum_duplicates(&mut self) -> bool {
        let start = self.open_start();
        let values = self.batch.values.get(start..);
        let value = |at: usize| values.and_then(|values| values.get(at)).copied().unwrap_or(1.0);
        let mut entries: Vec<(u64, f32)> =
            self.open_keys().into_iter().enumerate().map(|(at, key)| (key, value(at))).collect();
        entries.sort_by_key(|entry| entry.0);
        let rounded = std::mem::take(&mut self.rounded);
        self.discard_record();
        self.rounded = rounded;
        let mut rest = &entries[..];
        let mut finite = true;
        while let Some(&(key, _)) = rest.first() {
            let count = rest.iter().take_while(|entry| entry.0 == key).count();
            let sum: f64 = rest[..count].iter().map(|entry| f64::from(entry.1)).sum();
            finite &= (sum as f32).is_finite();
            self.push(key, sum as f32);
            rest = &rest[count..];
        }
        finite
    }

    pub fn end_record(&mut self, label: f64, weight: f32, group: Option<u64>) {
        let before = self.batch.labels.len();
        self.batch.labels.push(label);
        if weight != 1.0 || !self.batch.weights.is_empty() {
            self.batch.weights.resize(before, 1.0);
            self.batch.weights.push(weight);
        }
        if let Some(group) = group {
            self.batch.groups.resize(before, 0);
            self.batch.groups.push(group);
        } else if !self.batch.groups.is_empty() {
            self.batch.groups.push(0);
        }
        if let Some(time) = self.open_time.take() {
            self.batch.times.push(time);
        }
        let start = self.open_start();
        if let Some(keys) = self.keys.small() {
            self.distinct.add(&keys[start..]);
        }
        self.batch.offsets.push(self.keys.len() as u32);
        self.passthrough_count = self.batch.passthrough.len();
    }

    /// Removes the entries of the open record.
    pub fn discard_record(&mut self) {
        let start = self.open_start();
        self.keys.truncate(start);
        self.batch.values.truncate(start);
        self.batch.fields.truncate(start);
        self.batch.passthrough.truncate(self.passthrough_count);
        self.rounded.clear();
        self.open_time = None;
    }

    fn open_start(&self) -> usize {
        self.batch.offsets[self.batch.offsets.len() - 1] as usize
    }

    /// Moves the finished records into `out`, reuses the memory of `out`, and empties the builder.
    ///
    /// # Panics
    /// When a record is open.
    pub fn finish(&mut self, out: &mut Batch) {
        assert_eq!(self.open_start(), self.keys.len(), "finish: a record is still open");
        out.clear();
        std::mem::swap(&mut self.batch, out);
        self.distinct.index(&self.keys, &mut out.columns, &mut out.indices);
        self.keys.clear();
        self.batch.offsets.push(0);
        self.passthrough_count = 0;
    }
}

#[cfg(test)]
mod tests;
