//! Counts how many entries of scored records have features that the model does not know.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use algo::Model;
use data::Batch;
use driver::Error;
use driver::coverage::{FeatureCoverage, KnownFeatures};
use matrix::{Element, MatrixId, ValuesMut, with_values};
use model::ModelReader;

/// Describes the features of a saved model.
pub fn known_features(files: &ModelReader) -> Result<KnownFeatures, Error> {
    let manifest = &files.manifest;
    let range = if manifest.matrices.is_empty() { None } else { files.key_range(0)? };
    Ok(KnownFeatures::new(range, &manifest.schema, &manifest.settings))
}

/// Counts the entries of batches while they are scored. Clones share the counts: one is told of the batches, the other,
/// at an agent, of the rows that are read for them.
#[derive(Clone, Debug, Default)]
pub struct CoverageRecorder(Arc<Mutex<Recording>>);

#[derive(Debug, Default)]
struct Recording {
    /// The keys of the present batch, the number of entries of each, and whether it is known.
    columns: Vec<u64>,
    counts: Vec<u64>,
    known: Vec<bool>,
    /// Whether rows of features were read for the batch.
    was_read: bool,
    coverage: FeatureCoverage,
}

impl CoverageRecorder {
    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all counts.
    pub fn clear(&self) {
        *self.recording() = Recording::default();
    }

    /// Begins a batch, and with it ends the one before.
    pub fn start_batch(&self, batch: &Batch) {
        let mut recording = self.recording();
        recording.end_batch();
        recording.columns.extend_from_slice(&batch.columns);
        recording.counts.resize(batch.columns.len(), 0);
        recording.known.resize(batch.columns.len(), false);
        for index in &batch.indices {
            recording.counts[*index as usize] += 1;
        }
    }

    /// Ends the present batch.
    pub fn end_batch(&self) {
        self.recording().end_batch();
    }

    /// Whether there are unknown features in the batches so far, the present one included.
    pub fn has_unknown(&self) -> bool {
        let mut recording = self.recording();
        recording.end_batch();
        recording.coverage.has_unknown()
    }

    /// Takes the counts; `name` gives the name of an unknown feature.
    pub fn take(&self, name: impl Fn(u64) -> String) -> FeatureCoverage {
        let mut recording = self.recording();
        recording.end_batch();
        let mut coverage = std::mem::take(&mut recording.coverage);
        coverage.set_names(name);
        coverage
    }

    /// Notes rows of features that were read, for ascending keys.
    pub fn add_rows(&self, keys: &[u64], values: &ValuesMut<'_>) {
        let mut recording = self.recording();
        with_values!(values.as_values(), values => recording.add_rows(keys, values));
    }
}

impl Recording {
    fn add_rows<T: Element>(&mut self, keys: &[u64], values: &[T]) {
        if self.columns.is_empty() || keys.is_empty() || values.is_empty() {
            return;
        }
        self.was_read = true;
        let rows = values.chunks_exact(values.len() / keys.len());
        let mut at = 0;
        for (key, row) in keys.iter().zip(rows) {
            while self.columns.get(at).is_some_and(|column| column < key) {
                at += 1;
            }
            if self.columns.get(at) == Some(key) {
                self.known[at] = self.known[at] || row.iter().any(|value| *value != T::ZERO);
            }
        }
    }

    fn end_batch(&mut self) {
        if self.was_read {
            for ((key, count), known) in self.columns.iter().zip(&self.counts).zip(&self.known) {
                self.coverage.add_entries(*key, *count, *known);
            }
        }
        self.was_read = false;
        self.columns.clear();
        self.counts.clear();
        self.known.clear();
    }
}

/// The matrices of a model whose rows are features.
pub fn feature_matrices(model: &dyn Model) -> Vec<MatrixId> {
    let specs = model.matrices(1);
    let numbered = specs.iter().zip(0..).filter(|(spec, _)| model.has_feature_rows(&spec.name));
    numbered.map(|(_, number)| MatrixId(number)).collect()
}

#[cfg(test)]
mod tests {
    use driver::coverage::EXAMPLE_LIMIT;

    use super::*;

    /// A batch of one record with an entry for each of these keys.
    fn batch(keys: &[u64]) -> Batch {
        let mut columns = keys.to_vec();
        columns.sort_unstable();
        columns.dedup();
        let rank = |key: &u64| columns.binary_search(key).unwrap() as u32;
        let indices: Vec<u32> = keys.iter().map(rank).collect();
        let offsets = vec![0, keys.len() as u32];
        Batch { labels: vec![0.0], offsets, indices, columns, ..Batch::default() }
    }

    /// The coverage of a batch for a model that knows these keys.
    fn coverage(keys: &[u64], known: &[u64]) -> FeatureCoverage {
        let (recorder, batch) = (CoverageRecorder::default(), batch(keys));
        recorder.start_batch(&batch);
        let is_known = |key: &u64| if known.contains(key) { 0.5 } else { 0.0 };
        let mut values: Vec<f32> = batch.columns.iter().flat_map(|key| [0.0, is_known(key)]).collect();
        recorder.add_rows(&batch.columns, &ValuesMut::F32(&mut values));
        recorder.take(|key| key.to_string())
    }

    fn numbered(first: u64, last: u64) -> KnownFeatures {
        KnownFeatures { range: Some((first, last)), ..KnownFeatures::default() }
    }

    #[test]
    fn entries_of_unknown_features_are_counted_and_the_most_frequent_is_the_example() {
        let counts = coverage(&[1, 2, 9, 9, 7], &[1, 2]);
        assert_eq!((counts.entries, counts.unknown_entries), (5, 3));
        let notice = counts.notice(&numbered(1, 5), 1, Some((1, 9))).unwrap();
        assert!(notice.contains("3 of 5 entries (60 %)") && notice.contains("'9' (2 of them)"), "{notice}");
        assert!(coverage(&[1, 2], &[1, 2]).notice(&numbered(1, 2), 1, Some((1, 2))).is_none());
    }

    #[test]
    fn a_feature_is_known_if_any_of_its_rows_is_not_zero_and_batches_without_rows_do_not_count() {
        let recorder = CoverageRecorder::default();
        recorder.start_batch(&batch(&[3, 4]));
        recorder.add_rows(&[3, 4], &ValuesMut::F32(&mut [0.0, 0.0]));
        recorder.add_rows(&[4, 8], &ValuesMut::F64(&mut [1.0, 1.0]));
        recorder.start_batch(&batch(&[5]));
        assert!(recorder.has_unknown());
        let counts = recorder.take(|key| key.to_string());
        assert_eq!((counts.entries, counts.unknown_entries), (2, 1));
        assert_eq!(recorder.take(|key| key.to_string()), FeatureCoverage::default());
    }

    #[test]
    fn counts_do_not_depend_on_how_records_are_divided() {
        let keys: Vec<u64> = (0..500).map(|i| i * 7919 % 211).collect();
        let whole = coverage(&keys, &[3, 5, 8]);
        for size in [1, 7, 100] {
            let mut sum = FeatureCoverage::default();
            keys.chunks(size).rev().for_each(|part| sum.merge(&coverage(part, &[3, 5, 8])));
            assert_eq!(sum, whole, "{size}");
        }
        assert_eq!(whole.examples.len(), EXAMPLE_LIMIT);
    }

    #[test]
    fn few_unknown_entries_are_no_notice_and_with_l1_only_nearly_all_are() {
        let keys: Vec<u64> = (0..100).collect();
        let known = |count: u64| (0..count).collect::<Vec<u64>>();
        let told = |count, known_features: &KnownFeatures| {
            coverage(&keys, &known(count)).notice(known_features, 1, Some((0, 99)))
        };
        let sparse = KnownFeatures { may_have_zeros: true, ..numbered(0, 99) };
        assert!(told(96, &numbered(0, 99)).is_none() && told(95, &numbered(0, 99)).is_some());
        assert!(told(6, &sparse).is_none());
        assert!(told(0, &sparse).unwrap().contains("l1"));
    }

    #[test]
    fn features_that_are_counted_from_another_number_are_told_however_few_are_unknown() {
        let all = |first: u64| (first..first + 100).collect::<Vec<u64>>();
        let told = |data: u64, model: u64| {
            let known = numbered(model, model + 99);
            coverage(&all(data), &all(model)).notice(&known, 1, Some((data, data + 99)))
        };
        let notice = told(0, 1).unwrap();
        assert!(notice.contains("count from 0") && notice.contains("training from 1"), "{notice}");
        let notice = told(1, 0).unwrap();
        assert!(notice.contains("count from 1") && notice.contains("training from 0"), "{notice}");
        let table = KnownFeatures { has_columns: true, ..numbered(1, 100) };
        assert!(coverage(&all(0), &all(1)).notice(&table, 1, Some((0, 99))).is_none());
    }
}
