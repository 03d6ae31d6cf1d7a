//! The choice of the settings that are left open: scaling, from the scales of the columns; step sizes, from the lengths of
//! the records; and what decides when training ends.
//!
//! **Scaling.** Tables are standardized, and other data if the scales of their columns differ: beside a price, an indicator
//! in a record of unit length would be nearly 0. Sparse records whose columns are of similar scale, but far from 1, such as
//! counts of words, are scaled to unit length.
//!
//! **The end of training.** Few records are fitted to the last one in the default number of epochs. Without validation data
//! a tenth of them is held out, and the factors of the epoch that is best for these are kept.
//!
//! The sum over pairs grows with the square of the length of a record, so longer records need smaller steps. The rates
//! were found on frappe (10 entries of 1 in a record) and on synthetic clicks (40 entries of 1): with the rates of frappe,
//! the clicks have an AUC of .69 instead of .77.

use data::Survey;

use super::job::Factorization;
use super::model::Model;
use super::params::{
    AUTO_EPOCHS_LIMIT, ColumnScaling, LEARNING_RATE, LINEAR_LEARNING_RATE, NORMALIZE, STANDARDIZE,
};
use algo::chosen::{ChosenValue, chosen};
use algo::job::{DataProfile, Epochs, Resolution, ResolvedSettings};
use algo::param::common::{EARLY_STOPPING, RecordScaling, VALIDATION_SHARE};
use algo::param::{AUTO, Choice, ParamSpec};
use algo::scaling::{MAX_SPARSE_DENSITY, SCALE_RATIO_LIMIT};

/// Larger inputs are not surveyed before the rates are chosen.
const LARGE_BYTES: u64 = 2 << 30;
/// Values whose root mean square is outside of this range are scaled.
const UNIT_SCALES: std::ops::RangeInclusive<f64> = 0.5..=2.0;
/// Mean squared length of the records for which the largest rates are right.
const SHORT: f64 = 10.0;
/// Mean squared length that is assumed if the data are not read before the first step.
const ASSUMED: f64 = 40.0;
/// Rates for records of unit length.
const UNIT_RATES: [f64; 2] = [1.0, 1.0];
/// Share of the records that are held out to choose the number of epochs.
const HOLDOUT_SHARE: f64 = 0.1;
/// Epochs without an improvement after which training then ends.
const PATIENCE: u64 = 3;
/// Of fewer records too few would be held out to compare epochs.
const MIN_RECORDS: u64 = 200;
/// Share of the rates for the squared loss, whose slopes have no limit (`MovieLens` 100k: RMSE .910 instead of .963).
const SQUARED: f64 = 0.2;

/// Chooses, or asks for a survey of the data.
pub(super) fn resolve_settings(
    job: &Factorization,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
) -> Resolution {
    let open = |spec: &ParamSpec| job.checked.text(spec) == AUTO;
    let mut all = ResolvedSettings { settings: job.checked.all(), reasons: Vec::new() };
    let holds_out = may_hold_out(job, known, previous);
    if holds_out || OPEN.iter().any(|spec| open(spec)) {
        let is_readable = known.size_bytes.is_some_and(|bytes| bytes <= LARGE_BYTES);
        let survey = match known.survey {
            None if is_readable => return Resolution::NeedsSurvey,
            survey => survey.filter(|survey| survey.entry_count > 0),
        };
        let count = survey.map_or(0, |survey| survey.record_count);
        if holds_out && count >= MIN_RECORDS && job.params.epochs.count(count) == AUTO_EPOCHS_LIMIT {
            all.add(&VALIDATION_SHARE, HOLDOUT_SHARE, "");
            all.add(&EARLY_STOPPING, PATIENCE, "");
            all.reasons.push(format!(
                "{}={HOLDOUT_SHARE}, {}={PATIENCE}: a tenth of the {count} records is held out to choose the number of epochs, \
                 because factors overfit few records; --validate FILES or epochs=N trains on all of them",
                VALIDATION_SHARE.name, EARLY_STOPPING.name
            ));
        }
        let Chosen { columns, records, rates, why_rates } = Chosen::new(job, known, survey, previous);
        if open(&STANDARDIZE) {
            all.add(&STANDARDIZE, columns.value.name(), &columns.reason);
        }
        if open(&NORMALIZE) {
            all.add(&NORMALIZE, records.value.name(), &records.reason);
        }
        let rates = [&LEARNING_RATE, &LINEAR_LEARNING_RATE].into_iter().zip(rates);
        let rates: Vec<_> = rates.filter(|(spec, _)| open(spec)).collect();
        for (spec, rate) in &rates {
            all.add(spec, rate, "");
        }
        if !rates.is_empty() {
            let texts: Vec<_> = rates.iter().map(|(spec, rate)| format!("{}={rate}", spec.name)).collect();
            all.reasons.push(format!("{}: {why_rates}", texts.join(", ")));
        }
    }
    Resolution::Resolved(all)
}

/// Whether records may be held out to choose the number of epochs: nobody has named one, or other records for that.
fn may_hold_out(job: &Factorization, known: &DataProfile<'_>, previous: Option<&Model>) -> bool {
    let params = &job.params;
    matches!(params.epochs, Epochs::Auto { .. })
        && params.early_stopping.is_none()
        && params.validation_share == 0.0
        && !known.has_validation
        && known.size_bytes.is_some()
        && previous.is_none()
}

/// The settings that may be open.
const OPEN: [&ParamSpec; 4] = [&STANDARDIZE, &NORMALIZE, &LEARNING_RATE, &LINEAR_LEARNING_RATE];

/// Whether columns should be standardized, and why.
fn column_scaling(known: &DataProfile<'_>, survey: Option<&Survey>) -> (bool, String) {
    if known.is_table {
        return (true, "the input is a table with columns of numbers".to_owned());
    }
    let Some(survey) = survey else { return (false, String::new()) };
    let (scale, is_dense) = (survey.entry_scale(), survey.density() > MAX_SPARSE_DENSITY);
    match survey.scale_ratio() {
        Some(ratio) if ratio > SCALE_RATIO_LIMIT => {
            (true, format!("the scales of columns differ by a factor of {ratio:.0}"))
        }
        Some(_) if is_dense && !UNIT_SCALES.contains(&scale) => {
            (true, format!("the root mean square of the values is {scale:.3}, far from 1"))
        }
        Some(_) | None => (false, String::new()),
    }
}

/// What suits the data, with the reasons; a reason is empty if there is nothing to tell.
struct Chosen {
    columns: ChosenValue<ColumnScaling>,
    records: ChosenValue<RecordScaling>,
    /// Step sizes of the factors and of the weights.
    rates: [f64; 2],
    why_rates: String,
}

impl Chosen {
    fn new(
        job: &Factorization,
        known: &DataProfile<'_>,
        survey: Option<&Survey>,
        previous: Option<&Model>,
    ) -> Self {
        let given = job.checked.auto_choice::<ColumnScaling>(&STANDARDIZE);
        let of_model = previous.map(|model| model.standardize.is_some());
        let normalizes =
            job.checked.auto_choice::<RecordScaling>(&NORMALIZE).map(|given| given == RecordScaling::L2);
        let (suits, why_columns) = column_scaling(known, survey.filter(|_| normalizes != Some(true)));
        let standardizes = given.map(|given| given == ColumnScaling::Deviation).or(of_model).unwrap_or(suits);
        let entries = survey.map_or(ASSUMED, Survey::mean_entry_count);
        // Standardized columns have values near 1.
        let scale = survey.filter(|_| !standardizes).map_or(1.0, Survey::entry_scale);
        let of_model = previous.map(|model| model.normalize);
        let normalizes = normalizes.or(of_model).unwrap_or(!UNIT_SCALES.contains(&scale));
        let length = entries * scale * scale;
        let ratio = SHORT / length;
        let rates = if normalizes {
            UNIT_RATES
        } else {
            [(0.5 * ratio * ratio).clamp(0.01, 0.5), (0.5 * ratio).clamp(0.05, 0.5)]
        };
        let why_rates = match survey {
            _ if normalizes => "records have unit length".to_owned(),
            Some(_) if length > 1e6 => format!("the mean squared length of the records is {length:.1e}"),
            Some(_) => format!("the mean squared length of the records is {length:.1}"),
            None => format!(
                "the input is not read before the first step, and records of {ASSUMED:.0} entries are assumed"
            ),
        };
        let is_new = previous.is_none();
        Self {
            columns: chosen(
                if standardizes { ColumnScaling::Deviation } else { ColumnScaling::None },
                if standardizes && is_new { why_columns } else { String::new() },
            ),
            records: chosen(
                if normalizes { RecordScaling::L2 } else { RecordScaling::None },
                if normalizes && is_new {
                    format!("the root mean square of the values is {scale:.3}, far from 1")
                } else {
                    String::new()
                },
            ),
            rates: rates
                .map(|rate| (rate * if job.is_real() { SQUARED } else { 1.0 } * 1000.0).round() / 1000.0),
            why_rates,
        }
    }
}
