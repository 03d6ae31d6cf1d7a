//! Chooses the scaling of columns and of records from the data.

use data::Survey;

use super::super::choices::ColumnScaling;
use super::super::job::Linear;
use super::super::model::Model;
use algo::chosen::{ChosenValue, chosen};
use algo::job::DataProfile;
use algo::param::common::RecordScaling;
use algo::scaling::{MAX_SPARSE_DENSITY, SCALE_RATIO_LIMIT, Standardize};

/// In texts the number of entries per record deviates by more than this share of its mean; records of one-hot columns
/// all have about the same number.
const MIN_TEXT_LENGTH_DEVIATION: f64 = 0.3;
/// A vocabulary has at least this many words.
const MIN_VOCABULARY: u64 = 1000;
/// More than this share of the words of a text occur more than once in it; in sets all counts are 1.
const MIN_REPEATED_SHARE: f64 = 0.02;
/// Records were normalized if their Euclidean lengths deviate by less than this share of their mean.
const MAX_NORM_DEVIATION: f64 = 1e-3;

/// The kinds of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Counts of words.
    Counts,
    /// Weights of words; all records have the same Euclidean length.
    Normalized,
}

/// Whether records look like texts with classes to learn. This excludes real labels, for which the length of a text is
/// informative.
pub(super) fn text_kind(job: &Linear, known: &DataProfile<'_>) -> Option<TextKind> {
    let survey = known.survey?;
    let may_be = !known.is_table
        && !job.loss.is_real()
        && survey.negative_count == 0
        && survey.column_count() >= MIN_VOCABULARY
        && survey.density() < MAX_SPARSE_DENSITY
        && survey.entry_count_spread() > MIN_TEXT_LENGTH_DEVIATION;
    let repeated = 1.0 - survey.one_share();
    if !may_be {
        None
    } else if survey.length_spread() < MAX_NORM_DEVIATION {
        Some(TextKind::Normalized)
    } else {
        (survey.whole_count == survey.entry_count && repeated > MIN_REPEATED_SHARE)
            .then_some(TextKind::Counts)
    }
}

pub(super) fn column_scaling(
    job: &Linear,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
) -> ChosenValue<ColumnScaling> {
    if let Some(given) = job.params.column_scaling {
        return chosen(given, "");
    }
    if let Some(previous) = previous {
        let value = match previous.standardize {
            Some(Standardize::Center | Standardize::Scale) => ColumnScaling::Deviation,
            Some(Standardize::Entries) => ColumnScaling::Entries,
            Some(Standardize::Idf) => ColumnScaling::Idf,
            None => ColumnScaling::None,
        };
        return chosen(value, "as in the model that training continues from");
    }
    if known.is_table {
        return chosen(ColumnScaling::Deviation, "the input is a table with columns of numbers");
    }
    let Some(survey) = known.survey else {
        if job.loss.is_real() {
            return chosen(ColumnScaling::Deviation, "for numeric labels, columns may have any scale");
        }
        return chosen(
            ColumnScaling::None,
            "features are numbered, and the input is not read before the first step",
        );
    };
    match text_kind(job, known) {
        Some(TextKind::Counts) if job.params.record_scaling != Some(RecordScaling::None) => {
            return chosen(
                ColumnScaling::Idf,
                "the records look like texts, in which rare words are more informative",
            );
        }
        Some(TextKind::Normalized) => {
            return chosen(ColumnScaling::None, "the records have the same length already");
        }
        Some(TextKind::Counts) | None => {}
    }
    scaling_by_survey(survey)
}

/// The scaling of columns that follows from how their scales differ.
fn scaling_by_survey(survey: &Survey) -> ChosenValue<ColumnScaling> {
    let (is_sparse, scale) = (survey.density() <= MAX_SPARSE_DENSITY, survey.entry_scale());
    let scaled = if is_sparse { ColumnScaling::Entries } else { ColumnScaling::Deviation };
    match survey.scale_ratio() {
        Some(ratio) if ratio > SCALE_RATIO_LIMIT => {
            chosen(scaled, format!("the scales of columns differ by a factor of {ratio:.0}"))
        }
        _ if scale > 0.0 && !(1.0 / SCALE_RATIO_LIMIT..=SCALE_RATIO_LIMIT).contains(&scale) => {
            chosen(scaled, format!("the root mean square of all entries is {scale:.1e}, far from 1"))
        }
        None => chosen(ColumnScaling::None, "there are too many columns for a table"),
        Some(_) if is_sparse => chosen(ColumnScaling::None, "the columns are sparse and of similar scale"),
        Some(_) => chosen(ColumnScaling::None, "the columns are of similar scale"),
    }
}

pub(super) fn record_scaling(
    job: &Linear,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
) -> ChosenValue<RecordScaling> {
    if let Some(given) = job.params.record_scaling {
        return chosen(given, "");
    }
    if let Some(previous) = previous {
        let value = if previous.normalize { RecordScaling::L2 } else { RecordScaling::None };
        return chosen(value, "as in the model that training continues from");
    }
    match text_kind(job, known) {
        Some(TextKind::Counts) => {
            chosen(RecordScaling::L2, "records are sparse and of very different length")
        }
        Some(TextKind::Normalized) | None => chosen(RecordScaling::None, ""),
    }
}
