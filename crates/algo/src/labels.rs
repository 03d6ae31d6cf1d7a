//! Labels as the user writes them, in `positive_label` and `class_weights`, and the classes that they mean.
//!
//! A user writes names if the label column has names, and numbers otherwise. Internally a class is a number (for a
//! name: its position among the sorted names), and two classes are 0 and 1. The names are known when the data are
//! opened. The labels that occur are known after the scan, which a job with these settings requests. `positive` is
//! called between the two, because the reader needs the positive label. `TrainingLabels` checks all labels that the
//! settings name, after the scan and before the first step.

use serde::{Deserialize, Serialize};

use crate::data_facts::DataFacts;
use crate::error::Error;
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
    /// Standard deviation of the training labels, above 0; 1 where they are only centred.
    pub deviation: f64,
}

impl Default for LabelScale {
    /// Labels as they are.
    fn default() -> Self {
        Self { mean: 0.0, deviation: 1.0 }
    }
}

impl LabelScale {
    /// Turns the scores of weights into those of labels.
    pub fn apply(self, scores: &mut [f64]) {
        if self == Self::default() {
            return;
        }
        for score in scores {
            *score = self.mean + self.deviation * *score;
        }
    }
}

/// The index of the class with this label among ascending `classes`.
#[inline]
pub fn class_of(classes: &[f32], label: f64) -> Result<usize, Error> {
    classes.binary_search_by(|class| f64::from(*class).total_cmp(&label)).map_err(|_| Error::UnknownClass {
        label,
        class_count: classes.len(),
        first: classes.first().copied().unwrap_or_default(),
        last: classes.last().copied().unwrap_or_default(),
    })
}

/// Returns a label as the user writes it: as its name where labels have names.
pub fn text(label: f64, names: &[String]) -> String {
    names.get(label as usize).cloned().unwrap_or_else(|| label.to_string())
}

/// The labels that occur in the training data.
pub struct TrainingLabels<'a> {
    names: &'a [String],
    /// Labels as they are in the data, ascending: numbers, or numbers of names.
    values: &'a [f32],
}

impl<'a> TrainingLabels<'a> {
    /// Those of the data that were scanned.
    pub fn new(facts: &'a DataFacts) -> Self {
        Self { names: &facts.label_names, values: &facts.classes }
    }

    /// The names in the label column; empty if labels are numbers.
    pub fn names(&self) -> &'a [String] {
        self.names
    }

    /// The label with this number, as the user writes it.
    pub fn text(&self, value: f32) -> String {
        text(value.into(), self.names)
    }

    /// The number of a label, which `parameter` names.
    fn find(&self, parameter: &'static str, text: &str) -> Result<f32, Error> {
        let number = || text.parse::<f32>().ok().filter(|value| self.values.contains(value));
        let label = match self.names {
            [] => number(),
            names => names.iter().position(|name| name == text).map(|class| class as f32),
        };
        let known = || self.values.iter().map(|value| self.text(*value)).collect::<Vec<_>>();
        label.ok_or_else(|| unknown_label(parameter, text, &known()))
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

    /// Refuses to continue from a model with another positive label.
    pub fn check_same_positive(&self, job: Option<f32>, model: Option<f32>) -> Result<(), Error> {
        let text = |label: Option<f32>| label.map_or_else(|| "none".to_owned(), |label| self.text(label));
        if job == model {
            return Ok(());
        }
        Err(Error::ModelMismatch { what: "positive_label".to_owned(), model: text(model), job: text(job) })
    }

    /// The weights of `classes`, in their order; if there are none, those of label 0 and of label 1, which is
    /// `positive`. `pairs` are labels as the user writes them with their weights.
    pub fn weights(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn facts(label_names: &[&str], classes: &[f32]) -> DataFacts {
        DataFacts { label_names: names(label_names), classes: classes.to_vec(), ..DataFacts::default() }
    }

    fn pairs(pairs: &[(&str, f64)]) -> Vec<(String, f64)> {
        pairs.iter().map(|(text, weight)| ((*text).to_owned(), *weight)).collect()
    }

    #[test]
    fn the_positive_label_is_a_name_or_a_number() {
        assert_eq!(positive(None, &[]).unwrap(), None);
        assert_eq!(positive(None, &names(&["no", "yes"])).unwrap(), None);
        assert_eq!(positive(Some("no"), &names(&["no", "yes"])).unwrap(), Some(0.0));
        assert_eq!(positive(Some("-2.5"), &[]).unwrap(), Some(-2.5));
        assert_eq!(positive(Some("16777215"), &[]).unwrap(), Some(16_777_215.0));
        assert!(positive(Some("yes"), &[]).unwrap().is_some_and(f32::is_nan), "it is refused after the scan");
        for text in ["16777216", "-16777216"] {
            let error = positive(Some(text), &[]).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("16777216"), "{error}");
        }
        let error = |text, list: &[&str]| positive(text, &names(list)).unwrap_err().to_string();
        assert!(error(None, &["only"]).contains("only"));
        assert!(error(None, &["a", "b", "c"]).contains("a, b, c"));
        let wrong = error(Some("yess"), &["no", "yes"]);
        assert!(
            wrong.contains("positive_label") && wrong.contains("no, yes") && wrong.contains("did you mean"),
            "{wrong}"
        );
    }

    #[test]
    fn a_label_that_no_record_has_is_refused_with_those_that_exist() {
        let numbers = facts(&[], &[1.0, 2.0]);
        let numbers = TrainingLabels::new(&numbers);
        assert_eq!(numbers.text(2.0), "2");
        numbers.check_positive(None).unwrap();
        numbers.check_positive(Some("2")).unwrap();
        let error = numbers.check_positive(Some("3")).unwrap_err().to_string();
        assert!(error.contains("positive_label") && error.contains("1, 2"), "{error}");
        let named = facts(&["no", "yes"], &[0.0, 1.0]);
        let named = TrainingLabels::new(&named);
        assert_eq!(named.text(1.0), "yes");
        named.check_positive(Some("yes")).unwrap();
        assert!(named.check_positive(Some("1")).is_err(), "labels are names");
        let unlisted = facts(&[], &[]);
        let unlisted = TrainingLabels::new(&unlisted);
        unlisted.check_positive(Some("0.5")).unwrap();
        let error = unlisted.check_positive(Some("high")).unwrap_err().to_string();
        assert!(error.contains("numbers, too many to list"), "{error}");
    }

    #[test]
    fn weights_are_those_of_the_labels_of_the_user() {
        let numbers = facts(&[], &[1.0, 2.0, 4.0]);
        let labels = TrainingLabels::new(&numbers);
        let of_classes = |given: &[(&str, f64)]| labels.weights(&pairs(given), Some(&[4.0, 1.0, 2.0]), None);
        assert_eq!(of_classes(&[("1", 5.0), ("4", 3.0)]).unwrap(), [3.0, 5.0, 1.0]);
        let binary = |given: &[(&str, f64)], positive| labels.weights(&pairs(given), None, positive);
        assert_eq!(binary(&[("2", 5.0)], Some(2.0)).unwrap(), [1.0, 5.0]);
        assert_eq!(binary(&[("2", 5.0), ("4", 5.0)], None).unwrap(), [5.0, 1.0], "the label 1 is positive");
        assert!(binary(&[("1", 2.0)], Some(9.0)).is_err(), "1, 2 and 4 are one class with two weights");
        let error = |given: &[(&str, f64)]| of_classes(given).unwrap_err().to_string();
        assert!(error(&[("3", 1.0)]).contains("1, 2, 4"));
        assert!(matches!(of_classes(&[("1", 1.0), ("1.0", 2.0)]), Err(Error::DuplicateLabel { .. })));
        assert!(matches!(of_classes(&[("1", 0.0), ("2", 0.0), ("4", 0.0)]), Err(Error::NoWeight { .. })));
        assert_eq!(of_classes(&[("1", 0.0), ("2", 0.0)]).unwrap(), [1.0, 0.0, 0.0]);
        let unequal = binary(&[("2", 5.0)], None).unwrap_err();
        assert!(
            matches!(&unequal, Error::UnequalWeights { first_weight, other_weight, .. } if (*first_weight, *other_weight) == (5.0, 1.0)),
            "{unequal}"
        );
        let unlisted = facts(&[], &[]);
        let none = TrainingLabels::new(&unlisted).weights(&pairs(&[("1", 2.0)]), None, None);
        assert!(matches!(none, Err(Error::UncountableLabels { .. })));
    }

    #[test]
    fn at_most_twenty_labels_are_listed() {
        let list = |count: usize| list_labels((0..count).map(|i| i.to_string()));
        assert_eq!(list(0), "numbers, too many to list");
        assert_eq!(list(2), "0, 1");
        assert!(list(20).ends_with(", 18, 19"));
        assert!(list(23).ends_with(", 18, 19 and 3 more"));
    }
}
