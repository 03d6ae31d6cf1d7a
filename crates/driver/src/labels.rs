//! Descriptions of labels for people: the output shows how labels were recognized, so that a wrong label column is
//! noticed.

pub use algo::labels::text;
use algo::{Model, Output};
use data::{LabelKind, LabelRule, LabelStats, Schema};

/// The description of data without labels.
pub const NONE: &str = "none";

/// Returns a text such as `0/1, 25.9 % positive`, `20 classes (0 to 19)` or `real from 0.15 to 5`. Labels that `rule`
/// reads as real numbers are never described as classes.
pub fn describe(labels: &LabelStats, schema: &Schema, rule: LabelRule) -> String {
    if !schema.label_names.is_empty() {
        return format!("{} named classes: {}", schema.label_names.len(), schema.label_names.join(", "));
    }
    let positive = 100.0 * labels.positive_count() as f64 / labels.count().max(1) as f64;
    let (low, high) = labels.range().unwrap_or((0.0, 0.0));
    match labels.kind() {
        LabelKind::None => NONE.into(),
        LabelKind::Classes if rule.is_real() => format!("numbers from {low} to {high}"),
        LabelKind::Constant => format!("all {low}"),
        LabelKind::ZeroOne => format!("0/1, {positive:.1} % positive"),
        LabelKind::MinusPlusOne => format!("-1/1, {positive:.1} % positive"),
        LabelKind::Classes => {
            format!("{} classes ({low} to {high})", labels.classes().map_or(0, |classes| classes.len()))
        }
        LabelKind::Real => format!("real from {} to {}", number(low), number(high)),
    }
}

/// Returns the number as text; very large and very small ones as powers of ten.
fn number(value: f64) -> String {
    let is_plain = value == 0.0 || (1e-5..1e16).contains(&value.abs());
    if is_plain { value.to_string() } else { format!("{value:e}") }
}

/// Returns the label that a model of two classes counts as 1, as the user writes it; none for other models.
pub fn positive(model: &dyn Model, schema: &Schema) -> Option<String> {
    match (model.output(), model.record_needs().label_rule) {
        (Output::Probability | Output::Margin, LabelRule::Binary { positive }) => {
            Some(text(positive.map_or(1.0, f64::from), &schema.label_names))
        }
        _ => None,
    }
}

/// Returns the labels of a classifier in the order of its classes, as the user writes them; empty for other models.
/// `seen` has the labels of the data, which distinguish 0 from -1.
pub fn classes(model: &dyn Model, schema: &Schema, seen: &LabelStats) -> Vec<String> {
    if let Output::Classes(classes) = model.output() {
        return classes.iter().map(|class| text(f64::from(*class), &schema.label_names)).collect();
    }
    let Some(positive) = positive(model, schema) else { return Vec::new() };
    let named_other = schema.label_names.iter().find(|name| **name != positive);
    let other = match (schema.label_names.len(), named_other, model.record_needs().label_rule) {
        (2, Some(other), _) => other.clone(),
        (0, _, LabelRule::Binary { positive: None }) if seen.kind() == LabelKind::MinusPlusOne => {
            "-1".to_owned()
        }
        (0, _, LabelRule::Binary { positive: None }) => "0".to_owned(),
        _ => format!("not {positive}"),
    };
    vec![other, positive]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_very_large_and_very_small_labels_are_written_as_powers_of_ten() {
        assert_eq!([0.0, 0.15, -500_001.0, 3e38, 2e-9].map(number), ["0", "0.15", "-500001", "3e38", "2e-9"]);
    }
}
