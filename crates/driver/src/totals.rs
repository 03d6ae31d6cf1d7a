//! Summaries of what the tasks have read, summed in the order of tasks.

use data::{BadLinePolicy, BadLineTotal, CacheStats, LabelStats, ReadSummary, RoundingReport};
use job::Input;
use serde::{Deserialize, Serialize};

use crate::amounts::counted;
use crate::coverage::{FeatureCoverage, KnownFeatures};
use crate::error::Error;

/// Maximum number of bad lines that are shown.
const SHOWN_BAD_LINES: usize = 10;

/// Summary of records that were read and scored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChunkSummary {
    pub read: ReadSummary,
    pub coverage: FeatureCoverage,
}

/// Summary of what one task has read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Summary of the training data.
    pub training: ReadSummary,
    /// Counters of the records that are kept for later epochs.
    pub cached: CacheStats,
    /// Summary of the validation file.
    pub validation: Option<ChunkSummary>,
    /// Seconds spent in validation.
    pub validate_s: f64,
}

/// Sums over all tasks.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Number of records, including those held out for validation.
    pub records: u64,
    /// Sum over tasks of the number of distinct features; 0 if not counted.
    pub features: u64,
    /// Largest field of the training data; `None` if entries have no fields.
    pub largest_field: Option<u32>,
    /// Number of records that were skipped because they have no label.
    pub unlabelled: u64,
    /// Number of records that were skipped because their weight is 0.
    pub weightless: u64,
    /// The first values that were rounded.
    pub rounded: RoundingReport,
    /// Number of bad lines that were skipped.
    pub bad_lines: u64,
    /// The first bad lines.
    pub first_bad_lines: Vec<String>,
    /// The labels that occurred.
    pub labels: LabelStats,
    /// Notices for the user, without duplicates.
    pub notices: Vec<String>,
    /// The interactions of which no record had a product.
    pub unmet_interactions: Vec<String>,
    /// The smallest and the largest key of the records.
    pub key_range: Option<(u64, u64)>,
    /// How many entries of scored records have features that the model knows.
    pub coverage: FeatureCoverage,
    /// Counters of the records that are kept for later epochs.
    pub cached: CacheStats,
}

impl Totals {
    /// Returns the notices of the readers, and one about skipped records.
    pub fn all_notices(&self) -> Vec<String> {
        let left_out = (self.unlabelled > 0)
            .then(|| format!("records without a label are left out: {}", self.unlabelled));
        let weightless = (self.weightless > 0)
            .then(|| format!("records of weight 0 count as if they were not there: {}", self.weightless));
        self.notices.iter().cloned().chain(left_out).chain(weightless).chain(self.rounded.notice()).collect()
    }

    /// Returns the notice about interactions that did nothing in training.
    pub fn interaction_notice(&self) -> Option<String> {
        (!self.unmet_interactions.is_empty()).then(|| {
            format!(
                "interactions: no record has features whose products {} would be, so that the model is one without; check \
                 the names",
                self.unmet_interactions.join(", ")
            )
        })
    }

    /// Sums the summaries of all tasks.
    pub fn of(tasks: &[TaskSummary]) -> Self {
        let mut totals = Self::default();
        for task in tasks {
            totals.add(&task.training);
            totals.cached.block_count += task.cached.block_count;
            totals.cached.memory_bytes += task.cached.memory_bytes;
            totals.cached.disk_bytes += task.cached.disk_bytes;
        }
        totals
    }

    /// Adds the summary of one reader.
    pub fn add(&mut self, summary: &ReadSummary) {
        if self.records == 0 {
            self.unmet_interactions.clone_from(&summary.unmet_interactions);
        } else if summary.record_count > 0 {
            self.unmet_interactions.retain(|unmet| summary.unmet_interactions.contains(unmet));
        }
        self.records += summary.record_count;
        self.features += summary.feature_count;
        self.largest_field = self.largest_field.max(summary.largest_field);
        self.unlabelled += summary.unlabelled_count;
        self.weightless += summary.weightless_count;
        self.rounded.add(&summary.rounded);
        self.bad_lines += summary.bad_line_count;
        let room = SHOWN_BAD_LINES.saturating_sub(self.first_bad_lines.len());
        self.first_bad_lines.extend(summary.bad_lines.iter().take(room).cloned());
        self.labels.merge(&summary.labels);
        let range = summary.smallest_key.zip(summary.largest_key);
        self.key_range = match (self.key_range, range) {
            (Some((first, last)), Some((other, other_last))) => {
                Some((first.min(other), last.max(other_last)))
            }
            (own, other) => own.or(other),
        };
        for notice in &summary.notices {
            if !self.notices.contains(notice) {
                self.notices.push(notice.clone());
            }
        }
    }

    /// Adds the summary of the next chunk of an input that is scored; an error if there are too many bad lines so far.
    pub fn add_checked(&mut self, chunk: &ChunkSummary, rule: BadLinePolicy) -> Result<(), Error> {
        self.add_scored(chunk);
        Ok(self.check_bad_lines(rule)?)
    }

    fn add_scored(&mut self, chunk: &ChunkSummary) {
        self.add(&chunk.read);
        self.coverage.merge(&chunk.coverage);
    }

    /// Returns the notices about scored records.
    pub fn notices_of_scores(&self, known: &KnownFeatures) -> Vec<String> {
        let unknown = self.coverage.notice(known, self.records, self.key_range);
        self.all_notices().into_iter().chain(unknown).collect()
    }

    /// Returns an error if there are no records.
    pub fn check_not_empty(&self, input: &Input) -> Result<(), Error> {
        if self.records == 0 { Err(self.no_records(input)) } else { Ok(()) }
    }

    /// The error that there are no records: all are left out because of their weights, or there are none.
    pub fn no_records(&self, input: &Input) -> Error {
        match self.weightless {
            0 => Error::NoRecords { inputs: input.data.clone() },
            _ => no_weight_error(),
        }
    }

    /// Returns an error if the number of bad lines exceeds the policy.
    pub fn check_bad_lines(&self, rule: BadLinePolicy) -> Result<(), data::Error> {
        let (count, first) = (self.bad_lines, self.first_bad_lines.first().cloned());
        rule.check(&BadLineTotal { count, first })
    }
}

/// The error that all records are left out because of their weights.
pub fn no_weight_error() -> Error {
    algo::Error::NoWeight { what: "every record has the weight 0" }.into()
}

/// Returns notices about the validation files: bad lines, and features that training did not have.
pub fn validation_notices(tasks: &[TaskSummary], known: &KnownFeatures) -> Vec<String> {
    let mut totals = Totals::default();
    tasks.iter().filter_map(|task| task.validation.as_ref()).for_each(|summary| totals.add_scored(summary));
    let mut notices: Vec<String> =
        totals.notices_of_scores(known).iter().map(|notice| format!("validation: {notice}")).collect();
    if let Some(first) = totals.first_bad_lines.first() {
        notices.push(format!(
            "validation: skipped {}, the first: {first}",
            counted(totals.bad_lines, "bad line")
        ));
    }
    notices
}
