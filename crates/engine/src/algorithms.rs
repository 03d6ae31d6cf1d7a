//! The table of algorithms for other programs.

use algo::{AlgorithmRow, Families};
use serde_json::{Value, json};

/// All algorithms with their parameters.
pub fn as_json(families: &Families) -> Value {
    families.algorithms().map(row_as_json).collect()
}

/// An algorithm with its parameters.
pub fn row_as_json(row: &AlgorithmRow) -> Value {
    let parameters: Vec<Value> = row
        .parameters
        .iter()
        .map(|p| {
            json!({"name": p.name, "type": p.kind.describe(), "default": p.default, "unit": p.unit, "meaning": row.help_text(p)})
        })
        .collect();
    json!({"name": row.name, "title": row.title, "parameters": parameters})
}
