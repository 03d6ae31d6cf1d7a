//! Chooses the objective from the labels, before the first step.
//!
//! | labels | objective |
//! |---|---|
//! | 0 and 1, -1 and 1, two names | `logistic`, also if `positive_label` or `scale_pos_weight` is given |
//! | more names | `softmax` |
//! | other numbers | `squared`: whole numbers may be classes or counts, and a message says so |

use data::{LabelKind, LabelStats};

use super::model::Model;
use super::params::{OBJECTIVE, Params};
use crate::chosen::{ChosenValue, chosen};
use crate::job::{DataProfile, Resolution, ResolvedSettings};
use crate::param::{AUTO, CheckedParams};

/// Chooses, or asks for a survey of the data.
pub(super) fn resolve_settings(
    checked: &CheckedParams,
    params: &Params,
    known: &DataProfile<'_>,
    previous: Option<&Model>,
) -> Resolution {
    let settings = checked.values().iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut all = ResolvedSettings { settings: settings.collect(), reasons: Vec::new() };
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
    Resolution::Resolved(all)
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
