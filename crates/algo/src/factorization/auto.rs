//! The choice of the settings that are left open, from the lengths of the records.
//!
//! The sum over pairs grows with the square of the length of a record, so longer records need smaller steps. The rates
//! were found on frappe (10 entries of 1 in a record) and on synthetic clicks (40 entries of 1): with the rates of frappe,
//! the clicks have an AUC of .69 instead of .77.

use data::Survey;

use super::Factorization;
use super::model::Model;
use super::params::{LEARNING_RATE, LINEAR_LEARNING_RATE, NORMALIZE};
use crate::job::{DataProfile, Resolution, ResolvedSettings};
use crate::param::{AUTO, Choice, ParamSpec, common::RecordScaling};

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

/// Chooses, or asks for a survey of the data.
pub(super) fn resolve_settings(
    job: &Factorization,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
) -> Resolution {
    let open = |spec: &ParamSpec| job.checked.text(spec) == AUTO;
    let mut settings: std::collections::BTreeMap<_, _> =
        job.checked.values().iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
    let mut reasons = Vec::new();
    if [&LEARNING_RATE, &LINEAR_LEARNING_RATE, &NORMALIZE].into_iter().any(open) {
        let is_readable = known.size_bytes.is_some_and(|bytes| bytes <= LARGE_BYTES);
        let survey = match known.survey {
            None if is_readable => return Resolution::NeedsSurvey,
            survey => survey.filter(|survey| survey.entry_count > 0),
        };
        let scale = survey.map_or(1.0, Survey::entry_scale);
        let length = survey.map_or(ASSUMED, |survey| {
            scale * scale * survey.entry_count as f64 / survey.record_count.max(1) as f64
        });
        let normalizes = match (job.checked.auto_choice::<RecordScaling>(&NORMALIZE), previous) {
            (Some(given), _) => given == RecordScaling::L2,
            (None, Some(previous)) => previous.normalize,
            (None, None) => !UNIT_SCALES.contains(&scale),
        };
        if open(&NORMALIZE) {
            let value = if normalizes { RecordScaling::L2 } else { RecordScaling::None };
            settings.insert(NORMALIZE.name.to_owned(), value.name().to_owned());
            if normalizes && previous.is_none() {
                reasons.push(format!(
                    "normalize=l2: the root mean square of the values is {scale:.3}, far from 1"
                ));
            }
        }
        let ratio = SHORT / length;
        let [factors, linear] = if normalizes {
            UNIT_RATES
        } else {
            [(0.5 * ratio * ratio).clamp(0.01, 0.5), (0.5 * ratio).clamp(0.05, 0.5)]
        };
        let mut chosen = Vec::new();
        for (spec, rate) in [(&LEARNING_RATE, factors), (&LINEAR_LEARNING_RATE, linear)] {
            if open(spec) {
                let text = format!("{}", (rate * 1000.0).round() / 1000.0);
                chosen.push(format!("{}={text}", spec.name));
                settings.insert(spec.name.to_owned(), text);
            }
        }
        if !chosen.is_empty() {
            let why = match survey {
                Some(_) if normalizes => "records have unit length".to_owned(),
                Some(_) => format!("the mean squared length of the records is {length:.1}"),
                None => format!(
                    "the input is not read before the first step, and records of {ASSUMED:.0} entries are assumed"
                ),
            };
            reasons.push(format!("{}: {why}", chosen.join(", ")));
        }
    }
    Resolution::Resolved(ResolvedSettings { settings, reasons })
}
