//! What the validation files were like, for the report.

use data::TaskData;

use super::local::Opened;
use super::share::Timed;
use super::totals::Totals;

/// Of the validation streams of all tasks.
#[derive(Debug, Default)]
pub(super) struct Validated {
    /// The longest task's seconds of validation.
    pub(super) longest_s: f64,
    totals: Totals,
    largest_key: Option<u64>,
}

impl Validated {
    pub(super) fn of<'a>(streams: impl Iterator<Item = &'a Timed<'a>>) -> Self {
        let mut validated = Self::default();
        for stream in streams {
            validated.longest_s = validated.longest_s.max(stream.spent().as_secs_f64());
            if let Some(summary) = stream.summary() {
                validated.totals.add(summary);
                validated.largest_key = validated.largest_key.max(summary.largest_key);
            }
        }
        validated
    }

    /// What the user should know: bad lines, and features that training has not seen.
    pub(super) fn notices(&self, training: &[TaskData], opened: &Opened) -> Vec<String> {
        let mut notices: Vec<String> =
            self.totals.notices.iter().map(|notice| format!("validation: {notice}")).collect();
        if let Some(first) = self.totals.first_bad_lines.first() {
            notices
                .push(format!("validation: skipped {} bad lines, the first: {first}", self.totals.bad_lines));
        }
        let known = training.iter().filter_map(|share| share.reader().summary().largest_key).max();
        let numbered = opened.source.schema().columns.is_empty() && opened.source.schema().format != "vw";
        if let (true, Some(known), Some(met)) = (numbered, known, self.largest_key)
            && met > known
        {
            notices.push(format!(
                "validation has features up to {met}, training only up to {known}: what training never saw has no weight"
            ));
        }
        notices
    }
}
