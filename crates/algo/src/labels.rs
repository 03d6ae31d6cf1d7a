//! Labels as the user writes them, in `positive_label` and `class_weights`, and the classes that they mean.
//!
//! A user writes names if the label column has names, and numbers otherwise. Internally a class is a number (for a
//! name: its position among the sorted names), and two classes are 0 and 1. The names are known when the data are
//! opened. The labels that occur are known after the scan, which a job with these settings requests. `positive` is
//! called between the two, because the reader needs the positive label. `TrainingLabels` checks all labels that the
//! settings name, after the scan and before the first step.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::job::DataFacts;
use crate::param::nearest;

/// Whole numbers below this limit are exact in single precision.
const EXACT_LABELS: u64 = 1 << 24;
/// Number of labels that a message lists.
const SHOWN_LABELS: usize = 20;

/// The number of the positive label `text`; `None` if the job names none. `names` are those of the label column, empty if
/// labels are numbers. If labels are numbers, a text that is not a number becomes NaN: [`TrainingLabels`] refuses it
/// later, when it can list the labels.
pub(crate) fn positive(text: Option<&str>, names: &[String]) -> Result<Option<f32>, Error> {
    let Some(text) = text else {
        return match names {
            [] | [_, _] => Ok(None),
            [name] => Err(Error::SingleLabelName { name: name.clone() }),
            names => Err(Error::TooManyLabelNames {
                count: names.len(),
                known: list_labels(names.iter().cloned()),
            }),
        };
    };
    if names.is_empty() {
        let label = text.parse().unwrap_or(f32::NAN);
        if label.abs() >= EXACT_LABELS as f32 {
            return Err(Error::LargeLabel { label: text.to_owned(), limit: EXACT_LABELS });
        }
        return Ok(Some(label));
    }
    match names.iter().position(|name| name == text) {
        Some(class) => Ok(Some(class as f32)),
        None => Err(unknown_label("positive_label", text, names)),
    }
}

/// The relation between the score of the weights and the label: `label = mean + deviation x score`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelScale {
    /// Mean of the training labels.
    pub mean: f64,
    /// Standard deviation of the training labels, above 0.
    pub deviation: f64,
}

/// The labels that occur in the training data.
pub(crate) struct TrainingLabels<'a> {
    names: &'a [String],
    /// Labels as they are in the data, ascending: numbers, or numbers of names.
    values: &'a [f32],
}

impl<'a> TrainingLabels<'a> {
    pub(crate) fn new(facts: &'a DataFacts) -> Self {
        Self { names: &facts.label_names, values: &facts.classes }
    }

    /// The label with this number, as the user writes it.
    pub(crate) fn text(&self, value: f32) -> String {
        self.names.get(value as usize).cloned().unwrap_or_else(|| value.to_string())
    }

    /// The number of a label, which `parameter` names.
    fn find(&self, parameter: &'static str, text: &str) -> Result<f32, Error> {
        let number = || text.parse::<f32>().ok().filter(|value| self.values.contains(value));
        let found = match self.names {
            [] => number(),
            names => names.iter().position(|name| name == text).map(|class| class as f32),
        };
        let known = || self.values.iter().map(|value| self.text(*value)).collect::<Vec<_>>();
        found.ok_or_else(|| unknown_label(parameter, text, &known()))
    }

    /// Refuses a positive label that no record has. Fractional labels are not listed, so they cannot be checked.
    pub(crate) fn check_positive(&self, text: Option<&str>) -> Result<(), Error> {
        match text {
            Some(text) if !self.values.is_empty() || text.parse::<f32>().is_err() => {
                self.find("positive_label", text).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// The weights of `classes`, in their order; if there are none, those of label 0 and of label 1, which is
    /// `positive`. `pairs` are labels as the user writes them with their weights.
    pub(crate) fn weights(
        &self,
        pairs: &[(String, f64)],
        classes: Option<&[f32]>,
        positive: Option<f32>,
    ) -> Result<Vec<f64>, Error> {
        if self.values.is_empty() {
            return Err(Error::UncountableLabels { parameter: "class_weights" });
        }
        let mut given: Vec<(f32, f64)> = Vec::new();
        for (text, weight) in pairs {
            let value = self.find("class_weights", text)?;
            if given.iter().any(|pair| pair.0 == value) {
                return Err(Error::DuplicateLabel { parameter: "class_weights", label: text.clone() });
            }
            given.push((value, *weight));
        }
        let weight = |value: f32| given.iter().find(|pair| pair.0 == value).map_or(1.0, |pair| pair.1);
        let weights = if let Some(classes) = classes {
            classes.iter().map(|class| weight(*class)).collect()
        } else {
            let (ones, others): (Vec<f32>, Vec<f32>) =
                self.values.iter().partition(|value| **value == positive.unwrap_or(1.0));
            vec![self.common_weight(&others, weight)?, self.common_weight(&ones, weight)?]
        };
        if self.values.iter().all(|value| weight(*value) == 0.0) {
            return Err(Error::NoWeight { what: "class_weights gives the weight 0 to every class" });
        }
        Ok(weights)
    }

    /// The common weight of labels that count as one class.
    fn common_weight(&self, labels: &[f32], weight: impl Fn(f32) -> f64) -> Result<f64, Error> {
        let Some(&first) = labels.first() else { return Ok(1.0) };
        match labels.iter().find(|label| weight(**label) != weight(first)) {
            None => Ok(weight(first)),
            Some(&other) => Err(Error::UnequalWeights {
                first: self.text(first),
                first_weight: weight(first),
                other: self.text(other),
                other_weight: weight(other),
            }),
        }
    }
}

fn unknown_label(parameter: &'static str, text: &str, known: &[String]) -> Error {
    Error::UnknownLabel {
        parameter,
        label: text.to_owned(),
        nearest: nearest(text, known.iter().map(String::as_str)),
        known: list_labels(known.iter().cloned()),
    }
}

/// The first labels, and how many more there are.
fn list_labels(labels: impl ExactSizeIterator<Item = String>) -> String {
    let more = labels.len().saturating_sub(SHOWN_LABELS);
    let text = labels.take(SHOWN_LABELS).collect::<Vec<_>>().join(", ");
    match (text.is_empty(), more) {
        (true, _) => "numbers, too many to list".to_owned(),
        (false, 0) => text,
        (false, more) => format!("{text} and {more} more"),
    }
}
