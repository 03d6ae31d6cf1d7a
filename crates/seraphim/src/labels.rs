//! Labels in words: what was recognized is shown, so that a wrong column is noticed.

use data::{LabelKind, LabelStats, Schema};

/// `0/1, 25.9 % positive`; `20 classes (0 to 19)`; `real from 0.15 to 5`.
pub(crate) fn describe(labels: &LabelStats, schema: &Schema) -> String {
    if !schema.label_names.is_empty() {
        return format!("{} named classes: {}", schema.label_names.len(), schema.label_names.join(", "));
    }
    let positive = 100.0 * labels.positive_count() as f64 / labels.count().max(1) as f64;
    let (low, high) = labels.range().unwrap_or((0.0, 0.0));
    match labels.kind() {
        LabelKind::None => "none".into(),
        LabelKind::Constant => format!("all {low}"),
        LabelKind::ZeroOne => format!("0/1, {positive:.1} % positive"),
        LabelKind::MinusPlusOne => format!("-1/1, {positive:.1} % positive"),
        LabelKind::Classes => {
            format!("{} classes ({low} to {high})", labels.classes().map_or(0, |classes| classes.len()))
        }
        LabelKind::Real => format!("real from {low} to {high}"),
    }
}
