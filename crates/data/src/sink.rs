//! Collects parsed records: label rule, hold-out and bad lines, the same for all formats.

use crate::bad_lines::{BadLineCounter, BadLineTally};
use crate::columns::Attributes;
use crate::label::{LabelRule, LabelStats, Labeler};
use crate::options::KeyLimit;
use crate::rounding::{RoundedKeys, RoundingReport};
use crate::{BadLine, Batch, BatchBuilder, Error, LineError};
use math::random::RandomStream;
use std::sync::Arc;

/// Collects the records of one task. For each record the caller pushes entries into [`builder`](Self::builder), then
/// calls [`end_record`](Self::end_record) or [`discard_record`](Self::discard_record).
#[derive(Debug)]
pub struct Sink {
    main_builder: BatchBuilder,
    holdout: Option<Holdout>,
    labeler: Labeler,
    key_limit: Option<KeyLimit>,
    requires_entries: bool,
    bad_lines: BadLineCounter,
    record_count: u64,
    unlabelled_count: u64,
    /// Whether records of weight 0 are left out.
    skips_weightless: bool,
    weightless_count: u64,
    bytes_read: u64,
    notices: Vec<String>,
    rounded: RoundedKeys,
    /// Names of the feature columns, whose positions are the keys.
    column_names: Arc<[String]>,
}

#[derive(Debug)]
struct Holdout {
    rule: HoldoutRule,
    /// Whether the open or next record goes to the hold-out, as far as this is known before it is read. It is drawn once
    /// per record, not per line.
    is_record_held_out: bool,
    builder: BatchBuilder,
    batches: Vec<Batch>,
}

/// Which records are held out.
#[derive(Debug)]
pub enum HoldoutRule {
    /// A share of them, drawn at random.
    Share(f64, RandomStream),
    /// Those whose time is this or later.
    From(f64),
}

impl Holdout {
    fn draw(&mut self) {
        self.is_record_held_out = match &mut self.rule {
            HoldoutRule::Share(share, stream) => stream.uniform() < *share,
            HoldoutRule::From(_) => false,
        };
    }

    /// Whether the open record, which is among those of training, is held out because of its time. An error if it has
    /// none.
    fn takes_late(&self, record: &BatchBuilder) -> Result<bool, String> {
        let HoldoutRule::From(time) = &self.rule else { return Ok(false) };
        let missing = || "a time of the record, which decides whether it is held out".to_owned();
        record.open_time().map(|own| own >= *time).ok_or_else(missing)
    }

    fn finish_batch(&mut self) {
        if self.builder.record_count() > 0 {
            let mut batch = Batch::default();
            self.builder.finish(&mut batch);
            self.batches.push(batch);
        }
    }
}

/// Records per hold-out batch.
const HOLDOUT_BATCH_SIZE: usize = 4096;

impl Sink {
    pub(crate) fn new(rule: LabelRule, bad_lines: BadLineTally) -> Self {
        Self {
            main_builder: BatchBuilder::new(),
            holdout: None,
            labeler: Labeler::new(rule),
            key_limit: None,
            requires_entries: false,
            bad_lines: BadLineCounter::new(bad_lines),
            record_count: 0,
            unlabelled_count: 0,
            skips_weightless: false,
            weightless_count: 0,
            bytes_read: 0,
            notices: Vec::new(),
            rounded: RoundedKeys::default(),
            column_names: Arc::from([]),
        }
    }

    /// Sets the limit that feature numbers of later records must be below.
    pub(crate) fn set_key_limit(&mut self, limit: Option<KeyLimit>) {
        self.key_limit = limit;
    }

    /// Sets the names of the feature columns, for notices.
    pub(crate) fn set_column_names(&mut self, names: Arc<[String]>) {
        self.column_names = names;
    }

    /// Sets whether later records must have a feature that is not 0.
    pub(crate) fn set_requires_entries(&mut self, requires_entries: bool) {
        self.requires_entries = requires_entries;
    }

    /// Leaves out later records of weight 0, as if they were not in the input: nothing is learned from them, and no metric
    /// has them.
    pub(crate) fn skip_weightless(&mut self) {
        self.skips_weightless = true;
    }

    pub(crate) fn set_holdout(&mut self, rule: HoldoutRule) {
        let mut holdout =
            Holdout { rule, is_record_held_out: false, builder: BatchBuilder::new(), batches: Vec::new() };
        holdout.draw();
        self.holdout = Some(holdout);
    }

    pub(crate) fn has_holdout(&self) -> bool {
        self.holdout.is_some()
    }

    pub(crate) fn take_holdout(&mut self) -> Vec<Batch> {
        self.holdout.as_mut().map_or_else(Vec::new, |holdout| {
            holdout.finish_batch();
            std::mem::take(&mut holdout.batches)
        })
    }

    /// Records in the batch under construction, without the hold-out.
    #[inline]
    pub fn record_count(&self) -> usize {
        self.main_builder.record_count()
    }

    /// Entries in the batch under construction.
    #[inline]
    pub fn entry_count(&self) -> usize {
        self.main_builder.entry_count()
    }

    /// The builder that takes the entries of the open record.
    #[inline]
    pub fn builder(&mut self) -> &mut BatchBuilder {
        match &mut self.holdout {
            Some(holdout) if holdout.is_record_held_out => &mut holdout.builder,
            _ => &mut self.main_builder,
        }
    }

    /// Returns a feature number of the open record that exceeds the limit, and what was expected instead.
    #[inline]
    pub(crate) fn key_beyond_limit(&mut self) -> Option<(u64, String)> {
        let KeyLimit { limit, setting } = self.key_limit?;
        let largest = self.builder().largest_open_key().filter(|key| *key >= limit)?;
        Some((largest, format!("feature numbers below {limit} ({setting} = {limit})")))
    }

    /// Whether a record of this weight is left out.
    #[inline]
    pub(crate) fn leaves_out(&self, weight: f32) -> bool {
        weight == 0.0 && self.skips_weightless
    }

    /// Returns what was expected of the open record if it has no entry and must have one.
    #[inline]
    pub(crate) fn missing_entry(&mut self) -> Option<&'static str> {
        (self.requires_entries && self.builder().largest_open_key().is_none()).then_some(
            "a feature that is not 0: distance=cosine compares directions, and a record of zeros has none",
        )
    }

    /// Closes the open record. When the rule refuses the label, or a feature number exceeds the limit, it discards the
    /// record and returns what was expected: the caller passes that on to [`report_bad_line`](Self::report_bad_line)
    /// with the position.
    #[inline]
    pub fn end_record(&mut self, label: Option<f64>, weight: f32, group: Option<u64>) -> Result<(), String> {
        if self.leaves_out(weight) {
            self.discard_record();
            self.weightless_count += 1;
            return Ok(());
        }
        let label = match label.map_or(Ok(0.0), |label| self.labeler.apply(label, weight)) {
            Ok(label) => label,
            Err(expected) => {
                self.discard_record();
                return Err(expected);
            }
        };
        if let Some(expected) = self.missing_entry() {
            self.discard_record();
            return Err(expected.to_owned());
        }
        if let Some((key, expected)) = self.key_beyond_limit() {
            self.discard_record();
            return Err(format!("{expected}, not {key}"));
        }
        let is_late =
            self.holdout.as_ref().map_or(Ok(false), |holdout| holdout.takes_late(&self.main_builder));
        let is_late = match is_late {
            Ok(is_late) => is_late,
            Err(expected) => {
                self.discard_record();
                return Err(expected);
            }
        };
        if let Some(holdout) = &mut self.holdout
            && is_late
        {
            self.main_builder.move_open_record(&mut holdout.builder);
            holdout.is_record_held_out = true;
        }
        let builder = match &mut self.holdout {
            Some(holdout) if holdout.is_record_held_out => &mut holdout.builder,
            _ => &mut self.main_builder,
        };
        builder.end_record(label, weight, group);
        builder.take_rounded(|key, written| self.rounded.add(key, written));
        self.record_count += 1;
        if let Some(holdout) = &mut self.holdout {
            if holdout.builder.record_count() >= HOLDOUT_BATCH_SIZE {
                holdout.finish_batch();
            }
            holdout.draw();
        }
        Ok(())
    }

    /// Closes the open record with the attributes of a row, or discards it after an error. `label_at` is where the label
    /// stands.
    #[inline]
    pub(crate) fn end_row(
        &mut self,
        row: Result<Attributes, LineError>,
        label_at: usize,
    ) -> Result<(), LineError> {
        match row {
            Ok(Attributes { label, weight, group }) => self
                .end_record(label, weight, group)
                .map_err(|expected| LineError::with_actual(label_at, expected, found_label(label))),
            Err(error) => {
                self.discard_record();
                Err(error)
            }
        }
    }

    /// Discards the entries of the open record.
    pub fn discard_record(&mut self) {
        self.builder().discard_record();
    }

    /// Counts a record that is skipped because it has no label.
    pub fn skip_unlabelled(&mut self) {
        self.discard_record();
        self.unlabelled_count += 1;
    }

    /// Counts a bad line or record, or fails, as the bad-line policy says. The caller must have discarded the open
    /// record.
    pub fn report_bad_line(&mut self, line: BadLine) -> Result<(), Error> {
        self.bad_lines.add(line)
    }

    /// Adds a notice for the user; the same text is stored once.
    pub fn add_notice(&mut self, text: &str) {
        if !self.notices.iter().any(|known| known == text) {
            self.notices.push(text.to_owned());
        }
    }

    /// Returns how often digits were lost so far.
    pub(crate) fn rounded(&self) -> RoundingReport {
        self.rounded.report(&self.column_names)
    }

    /// Counts bytes of the input files as read, for progress.
    #[inline]
    pub fn add_bytes(&mut self, bytes: u64) {
        self.bytes_read += bytes;
    }

    pub(crate) fn finish(&mut self, out: &mut Batch) {
        self.main_builder.finish(out);
    }

    pub(crate) fn total_records(&self) -> u64 {
        self.record_count
    }

    pub(crate) fn unlabelled_count(&self) -> u64 {
        self.unlabelled_count
    }

    pub(crate) fn weightless_count(&self) -> u64 {
        self.weightless_count
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    pub(crate) fn labels(&self) -> &LabelStats {
        &self.labeler.stats
    }

    pub(crate) fn bad_lines(&self) -> &BadLineCounter {
        &self.bad_lines
    }
}

/// Describes the label of a record that is refused.
pub(crate) fn found_label(label: Option<f64>) -> String {
    format!("label {}", label.unwrap_or_default())
}

#[cfg(test)]
mod tests;
