//! Reads the splits of one task and makes batches of the records.

use crate::format::RecordReader;
use crate::key_names::KeyNames;
use crate::key_set::KeySet;
use crate::label::LabelStats;
use crate::rounding::RoundingReport;
use crate::sink::{HoldoutRule, Sink};
use crate::survey::Survey;
use crate::{Batch, Error};

/// Reads the splits of one task, front to back, once.
pub struct Reader {
    records: Box<dyn RecordReader>,
    sink: Sink,
    summary: ReadSummary,
    /// Distinct keys so far, when they are counted.
    features: Option<KeySet>,
}

/// Counts and statistics of what was read so far.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ReadSummary {
    /// Records, the hold-out included.
    pub record_count: u64,
    /// Records skipped because they have no label while others have one.
    #[serde(default)]
    pub unlabelled_count: u64,
    /// Records skipped because their weight is 0.
    #[serde(default)]
    pub weightless_count: u64,
    /// The columns whose numbers lost digits.
    #[serde(default)]
    pub rounded: RoundingReport,
    /// Bytes of the input files on disk that were read, for progress against
    /// [`Source::size_bytes`](crate::Source::size_bytes).
    pub bytes_read: u64,
    /// Bad lines that were skipped.
    pub bad_line_count: u64,
    /// The first few of them, with their positions.
    pub bad_lines: Vec<String>,
    pub labels: LabelStats,
    /// Notices for the user.
    pub notices: Vec<String>,
    /// Smallest key of the batches handed out, the hold-out not included.
    #[serde(default)]
    pub smallest_key: Option<u64>,
    /// Largest key of the batches handed out, the hold-out not included.
    pub largest_key: Option<u64>,
    /// Largest field of the batches handed out, the hold-out not included; `None` when entries have no fields.
    #[serde(default)]
    pub largest_field: Option<u32>,
    /// The interactions of which no record had a product.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet_interactions: Vec<String>,
    /// Distinct keys of the batches handed out, when they are counted and everything is read; else 0.
    #[serde(default)]
    pub feature_count: u64,
    /// Survey of the batches handed out, when it is enabled.
    #[serde(default)]
    pub survey: Option<Box<Survey>>,
}

impl Reader {
    pub(crate) fn new(records: Box<dyn RecordReader>, sink: Sink) -> Self {
        Self { records, sink, summary: ReadSummary::default(), features: None }
    }

    /// Sends the later records that the rule names to the hold-out batches instead of the main ones.
    pub fn set_holdout(&mut self, rule: HoldoutRule) {
        self.sink.set_holdout(rule);
    }

    /// Whether records are held out.
    pub(crate) fn has_holdout(&self) -> bool {
        self.sink.has_holdout()
    }

    /// Enables the count of distinct keys in the summary.
    pub fn count_features(&mut self) {
        self.features = Some(KeySet::new());
    }

    /// Enables the survey of records in the summary, with or without the quantiles of columns.
    pub fn enable_survey(&mut self, with_quantiles: bool) {
        let survey = if with_quantiles { Survey::with_quantiles() } else { Survey::default() };
        self.summary.survey = Some(Box::new(survey));
    }

    /// Fills `out` (whose memory is reused) with up to `record_limit` records; returns false when no record is left.
    pub fn next_batch(&mut self, record_limit: usize, out: &mut Batch) -> Result<bool, Error> {
        let read = self.records.read(record_limit, &mut self.sink);
        if read.is_err() {
            self.sink.discard_record();
        }
        self.sink.finish(out);
        self.update_summary(out);
        read?;
        let more = out.record_count() > 0;
        self.summary.unmet_interactions = self.records.unmet_interactions();
        self.add_features(more, out);
        Ok(more)
    }

    fn update_summary(&mut self, out: &Batch) {
        let (sink, summary) = (&self.sink, &mut self.summary);
        summary.record_count = sink.total_records();
        summary.rounded = sink.rounded();
        summary.unlabelled_count = sink.unlabelled_count();
        summary.weightless_count = sink.weightless_count();
        summary.bytes_read = sink.bytes_read();
        let smallest = summary.smallest_key.into_iter().chain(out.columns.first().copied()).min();
        summary.smallest_key = smallest;
        summary.largest_key = summary.largest_key.max(out.columns.last().copied());
        summary.largest_field = summary.largest_field.max(out.fields.iter().max().copied());
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

    /// Takes the hold-out records since the last call, as batches.
    pub fn take_holdout(&mut self) -> Vec<Batch> {
        self.sink.take_holdout()
    }

    pub fn summary(&self) -> &ReadSummary {
        &self.summary
    }

    /// Takes the names of hashed keys ("column=value", "namespace^feature") that are new since the last call.
    pub fn take_dictionary(&mut self) -> KeyNames {
        self.records.take_dictionary()
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
