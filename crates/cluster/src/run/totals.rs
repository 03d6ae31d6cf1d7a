//! Summaries of what the tasks have read, summed in the order of tasks.

use data::{
    BadLinePolicy, BadLineTotal, CacheStats, LabelStats, ReadSummary, RoundingReport, Schema, TaskData,
};
use serde::{Deserialize, Serialize};

use super::task_streams::TimedValidation;
use crate::amounts::counted;
use crate::error::Error;
use crate::job::Input;

/// Maximum number of bad lines that are shown.
const SHOWN_BAD_LINES: usize = 10;

/// Summary of what one task has read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Summary of the training data.
    pub training: ReadSummary,
    /// Counters of the records that are kept for later epochs.
    pub kept: CacheStats,
    /// Summary of the validation file.
    pub validation: Option<ReadSummary>,
    /// Seconds spent in validation.
    pub validate_s: f64,
}

impl TaskSummary {
    /// Returns the summary of a task's data.
    pub fn of(data: &TaskData, validation: Option<&TimedValidation<'_>>) -> Self {
        Self {
            training: data.reader().summary().clone(),
            kept: data.cache_stats(),
            validation: validation.and_then(|timed| timed.summary()).cloned(),
            validate_s: validation.map_or(0.0, |timed| timed.elapsed().as_secs_f64()),
        }
    }
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
    /// Counters of the records that are kept for later epochs.
    pub kept: CacheStats,
}

impl Totals {
    /// Returns the notices of the readers, and one about skipped records.
    pub fn all_notices(&self) -> Vec<String> {
        let left_out = (self.unlabelled > 0)
            .then(|| format!("records without a label are left out: {}", self.unlabelled));
        let weightless = (self.weightless > 0)
            .then(|| format!("records of weight 0 count as if they were not there: {}", self.weightless));
        self.notices.iter().cloned().chain(left_out).chain(weightless).chain(self.rounded.notices()).collect()
    }

    /// Sums the summaries of all tasks.
    pub fn of(tasks: &[TaskSummary]) -> Self {
        let mut totals = Self::default();
        for task in tasks {
            totals.add(&task.training);
            totals.kept.block_count += task.kept.block_count;
            totals.kept.memory_bytes += task.kept.memory_bytes;
            totals.kept.disk_bytes += task.kept.disk_bytes;
        }
        totals
    }

    /// Adds the summary of one reader.
    pub fn add(&mut self, summary: &ReadSummary) {
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
        for notice in &summary.notices {
            if !self.notices.contains(notice) {
                self.notices.push(notice.clone());
            }
        }
    }

    /// Adds the summary of the next chunk of an input that is scored; an error if there are too many bad lines so far.
    pub fn add_checked(&mut self, chunk: &ReadSummary, rule: BadLinePolicy) -> Result<(), Error> {
        self.add(chunk);
        Ok(self.check_bad_lines(rule)?)
    }

    /// Returns an error if there are no records.
    pub fn check_not_empty(&self, input: &Input) -> Result<(), Error> {
        if self.records == 0 { Err(self.no_records(input)) } else { Ok(()) }
    }

    /// The error that there are no records: all are left out because of their weights, or there are none.
    pub fn no_records(&self, input: &Input) -> Error {
        match self.weightless {
            0 => Error::NoRecords { inputs: input.data.clone() },
            _ => algo::Error::NoWeight { what: "every record has the weight 0" }.into(),
        }
    }

    /// Returns an error if the number of bad lines exceeds the policy.
    pub fn check_bad_lines(&self, rule: BadLinePolicy) -> Result<(), data::Error> {
        let (count, first) = (self.bad_lines, self.first_bad_lines.first().cloned());
        rule.check(&BadLineTotal { count, first })
    }
}

/// Returns notices about the validation files: bad lines, and features that do not occur in training.
pub fn validation_notices(tasks: &[TaskSummary], schema: &Schema) -> Vec<String> {
    let mut totals = Totals::default();
    let mut met = None;
    for summary in tasks.iter().filter_map(|task| task.validation.as_ref()) {
        totals.add(summary);
        met = met.max(summary.largest_key);
    }
    let mut notices: Vec<String> =
        totals.all_notices().iter().map(|notice| format!("validation: {notice}")).collect();
    if let Some(first) = totals.first_bad_lines.first() {
        notices.push(format!(
            "validation: skipped {}, the first: {first}",
            counted(totals.bad_lines, "bad line")
        ));
    }
    let known = tasks.iter().filter_map(|task| task.training.largest_key).max();
    let numbered = schema.columns.is_empty() && schema.format != "vw";
    if let (true, Some(known), Some(met)) = (numbered, known, met)
        && met > known
    {
        notices.push(format!(
            "validation has features up to {met}, training only up to {known}: a feature that training did \
             not have has no weight"
        ));
    }
    notices
}
