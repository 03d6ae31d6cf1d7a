//! The choice of the settings that are left open, before the first step.
//!
//! **The objective** follows from the labels.
//!
//! | labels | objective |
//! |---|---|
//! | 0 and 1, -1 and 1, two names | `logistic`, also if `positive_label` or `scale_pos_weight` is given |
//! | more names | `softmax` |
//! | other numbers | `squared`: whole numbers may be classes or counts, and a message says so |
//!
//! **Validation data** choose the number of trees, and then smaller steps and trees that see a part of the features are
//! better. Measured with a tenth of the training records held out, on test data: California housing RMSE .457 with steps of .1,
//! .450 with .05, .449 with .05 and .8 of the features; adult AUC .9265, .9267, .9274; abalone RMSE 2.262, 2.267, 2.256; a9a
//! AUC .9044, .9043, .9043. Without validation data: the number of trees and the rate of `LightGBM`.

use data::{LabelKind, LabelStats};

use super::model::Model;
use super::params::{
    FEATURE_SHARE, ITERATIONS, LEARNING_RATE, LEAVES, OBJECTIVE, PLAIN_ITERATIONS, PLAIN_LEAVES, PLAIN_RATE,
    Params, STOPPING,
};
use algo::chosen::{ChosenValue, chosen};
use algo::job::{DataProfile, Resolution, ResolvedSettings};
use algo::param::{AUTO, CheckedParams};

/// With validation data, which end a training before this.
const ITERATION_LIMIT: u64 = 2000;
const SMALL_RATE: f64 = 0.05;
/// Iterations without an improvement after which training ends.
const PATIENCE: u64 = 50;
const FEATURE_PART: f64 = 0.8;
/// Least leaves of a tree, and the records that each should have on average.
const LEAST_LEAVES: u64 = 4;
const RECORDS_OF_A_LEAF: u64 = 50;

/// Chooses, or asks for a survey of the data.
pub(super) fn resolve_settings(
    checked: &CheckedParams,
    params: &Params,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
) -> Resolution {
    let mut all = ResolvedSettings { settings: checked.all(), reasons: Vec::new() };
    if checked.text(&LEAVES) == AUTO
        && previous.is_none()
        && known.survey.is_none()
        && known.size_bytes.is_some()
    {
        return Resolution::NeedsSurvey;
    }
    if checked.text(&OBJECTIVE) == AUTO {
        let choice = match (previous, known.label_name_count, known.labels) {
            (Some(previous), ..) => {
                chosen(previous.objective.name(), "as in the model that training continues from")
            }
            (None, ..) if params.objective.is_some() => {
                chosen("logistic", "positive_label or scale_pos_weight is given")
            }
            (None, 0, None) => return Resolution::NeedsSurvey,
            (None, 0, Some(labels)) => by_numbers(labels),
            (None, 1 | 2, _) => chosen("logistic", "the labels are two names"),
            (None, count, _) => chosen("softmax", format!("the labels are {count} names")),
        };
        all.add(&OBJECTIVE, choice.value, &choice.reason);
    }
    choose_iterations(checked, known.has_validation || params.validation_share > 0.0, &mut all);
    choose_leaves(checked, known, previous, &mut all);
    Resolution::Resolved(all)
}

/// Number of trees, rate, and the share of the features of a tree.
fn choose_iterations(checked: &CheckedParams, has_validation: bool, all: &mut ResolvedSettings) {
    let is_off = checked.text(&STOPPING) == "0";
    let (iterations, rate, patience, share) = if has_validation && !is_off {
        (ITERATION_LIMIT, SMALL_RATE, PATIENCE, FEATURE_PART)
    } else {
        (PLAIN_ITERATIONS, PLAIN_RATE, 0, 1.0)
    };
    let why = match (has_validation, is_off) {
        (true, false) => "the validation data choose the number of trees, and then small steps are better",
        (true, true) => "training does not stop early",
        (false, _) => {
            "there are no validation data that choose the number of trees; --validate FILES, or validation_share=0.1, lets them"
        }
    };
    let mut chosen = Vec::new();
    for (spec, value) in [
        (&ITERATIONS, iterations.to_string()),
        (&LEARNING_RATE, rate.to_string()),
        (&STOPPING, patience.to_string()),
        (&FEATURE_SHARE, share.to_string()),
    ] {
        if checked.text(spec) == AUTO {
            chosen.push(format!("{}={value}", spec.name));
            all.add(spec, value, "");
        }
    }
    if !chosen.is_empty() {
        all.reasons.push(format!("{}: {why}", chosen.join(", ")));
    }
}

fn choose_leaves(
    checked: &CheckedParams,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
    all: &mut ResolvedSettings,
) {
    if checked.text(&LEAVES) != AUTO {
        return;
    }
    let count = known.survey.map(|survey| survey.record_count);
    let fitting = |count: u64| (count / RECORDS_OF_A_LEAF).clamp(LEAST_LEAVES, PLAIN_LEAVES);
    match (previous, count.map(fitting)) {
        (Some(previous), _) => {
            all.add(&LEAVES, previous.leaves, "as in the model that training continues from");
        }
        (None, Some(leaves)) if leaves < PLAIN_LEAVES => {
            let why = format!("{} records are about {RECORDS_OF_A_LEAF} in a leaf", count.unwrap_or(0));
            all.add(&LEAVES, leaves, &why);
        }
        (None, _) => all.add(&LEAVES, PLAIN_LEAVES, ""),
    }
}

fn by_numbers(labels: &LabelStats) -> ChosenValue<&'static str> {
    let (low, high) = labels.range().unwrap_or_default();
    match labels.kind() {
        LabelKind::ZeroOne | LabelKind::MinusPlusOne => {
            chosen("logistic", format!("the labels are {low} and {high}"))
        }
        // A classifier then says that it needs two.
        LabelKind::Constant if [-1.0, 0.0, 1.0].contains(&low) => {
            chosen("logistic", format!("all labels are {low}"))
        }
        LabelKind::Classes => {
            let count = labels.classes().map_or(0, |classes| classes.len());
            let other = if count == 2 {
                format!("set positive_label={high} if they are two classes")
            } else {
                "set objective=softmax if they are classes, objective=poisson if they are counts".to_owned()
            };
            chosen("squared", format!("the labels are {count} whole numbers from {low} to {high}; {other}"))
        }
        LabelKind::None | LabelKind::Constant | LabelKind::Real => {
            chosen("squared", format!("the labels are numbers from {low} to {high}"))
        }
    }
}
