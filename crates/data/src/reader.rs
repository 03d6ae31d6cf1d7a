//! Reads the splits of one task: records become batches.

use crate::format::RecordReader;
use crate::key_set::KeySet;
use crate::label::LabelStats;
use crate::sink::{RoundingReport, Sink};
use crate::survey::Survey;
use crate::{Batch, Error};
use math::random::RandomStream;
use std::collections::BTreeMap;

/// Reads the splits of one task, front to back, once.
pub struct Reader {
    records: Box<dyn RecordReader>,
    sink: Sink,
    summary: ReadSummary,
    /// Distinct keys so far, when they are to be counted.
    features: Option<KeySet>,
}

/// What was read so far.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ReadSummary {
    /// Records, those held out included.
    pub record_count: u64,
    /// Records left out because they have no label and others have one.
    #[serde(default)]
    pub unlabelled_count: u64,
    /// The first values that were rounded.
    #[serde(default)]
    pub rounded: RoundingReport,
    /// Bytes of the input files (as they lie on disk), for progress against `EpochSource::size_bytes`.
    pub bytes_read: u64,
    /// Bad lines left out.
    pub bad_line_count: u64,
    /// The first few of them, with their places.
    pub bad_lines: Vec<String>,
    /// What the labels look like.
    pub labels: LabelStats,
    /// What the user should know.
    pub notices: Vec<String>,
    /// Largest key of the batches handed out (those held out are not counted).
    pub largest_key: Option<u64>,
    /// Distinct keys of the batches handed out, when they are counted and all has been read; else 0.
    #[serde(default)]
    pub feature_count: u64,
    /// What the batches handed out look like, when they are surveyed.
    #[serde(default)]
    pub survey: Option<Box<Survey>>,
}

impl Reader {
    pub(crate) fn new(records: Box<dyn RecordReader>, sink: Sink) -> Self {
        Self { records, sink, summary: ReadSummary::default(), features: None }
    }

    /// From now on each record goes, with chance `share`, to the hold-out batches instead of the main ones.
    pub fn set_holdout(&mut self, share: f64, stream: RandomStream) {
        self.sink.set_holdout(share, stream);
    }

    /// From now on distinct keys are counted, for the summary.
    pub fn count_features(&mut self) {
        self.features = Some(KeySet::new());
    }

    /// From now on records are surveyed, for the summary.
    pub fn enable_survey(&mut self) {
        self.summary.survey = Some(Box::default());
    }

    /// Fills `out` (whose memory is reused) with up to `record_limit` records; false when no record is left.
    pub fn next_batch(&mut self, record_limit: usize, out: &mut Batch) -> Result<bool, Error> {
        let read = self.records.read(record_limit, &mut self.sink);
        if read.is_err() {
            self.sink.discard_record();
        }
        self.sink.finish(out);
        self.update_summary(out);
        read?;
        let more = out.record_count() > 0;
        self.add_features(more, out);
        Ok(more)
    }

    fn update_summary(&mut self, out: &Batch) {
        let (sink, summary) = (&self.sink, &mut self.summary);
        summary.record_count = sink.total_records();
        if summary.rounded.feature.is_none() || summary.rounded.label.is_none() {
            summary.rounded = sink.rounded();
        }
        summary.unlabelled_count = sink.unlabelled_count();
        summary.bytes_read = sink.bytes_read();
        summary.largest_key = summary.largest_key.max(out.columns.last().copied());
        summary.labels.clone_from(sink.labels());
        let bad = sink.bad_lines();
        if bad.count != summary.bad_line_count {
            summary.bad_line_count = bad.count;
            summary.bad_lines.clone_from(&bad.first);
        }
        if sink.notices().len() != summary.notices.len() {
            summary.notices = sink.notices().to_vec();
        }
    }

    fn add_features(&mut self, more: bool, out: &Batch) {
        if more {
            self.summary.survey.iter_mut().for_each(|survey| survey.add(out));
            self.features.iter_mut().for_each(|features| features.insert(&out.columns));
        } else if let Some(mut features) = self.features.take() {
            features.seal();
            self.summary.feature_count = features.len() as u64;
        }
    }

    /// The records held out since the last call, in batches.
    pub fn take_holdout(&mut self) -> Vec<Batch> {
        self.sink.take_holdout()
    }

    /// What was read so far.
    pub fn summary(&self) -> &ReadSummary {
        &self.summary
    }

    /// Names of hashed keys ("column=value", "namespace^feature") met since the last call.
    pub fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        self.records.take_dictionary()
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
