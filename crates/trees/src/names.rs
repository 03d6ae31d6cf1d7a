//! The names of the features of trees and of their categories, as the data have them.

use data::ColumnKind;
use math::hash::named_key;

use super::bins::SavedFeature;
use algo::family::ModelFacts;

/// A feature for people and for other programs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NamedFeature {
    /// The name of its column; if it has none, of the feature.
    pub(super) name: String,
    /// The position of its column, or its number in the data.
    pub(super) position: Option<u64>,
    /// The names of its categories; empty for numbers.
    pub(super) categories: Vec<String>,
}

/// The features in the order of their numbers.
pub(super) fn named_features(features: &[SavedFeature], facts: &ModelFacts<'_>) -> Vec<NamedFeature> {
    let columns = &facts.schema.columns;
    let of_key = |key: u64| NamedFeature {
        name: facts.schema.feature_name(facts.names, key),
        position: Some(key).filter(|key| columns.is_empty() || (*key as usize) < columns.len()),
        categories: Vec::new(),
    };
    let of_feature = |(number, feature): (usize, &SavedFeature)| match feature {
        SavedFeature::Numbers { key, .. } => of_key(*key),
        SavedFeature::Codes { key, count } => {
            NamedFeature { categories: (0..*count).map(|code| code.to_string()).collect(), ..of_key(*key) }
        }
        SavedFeature::Categories { keys } => {
            let split = |key: &u64| column_and_name(facts, *key);
            let position = keys.iter().find_map(split).map(|(position, _)| position);
            let name = position.map_or_else(|| format!("feature_{number}"), |at| columns[at].name.clone());
            let category = |key: &u64| {
                split(key)
                    .map_or_else(|| facts.schema.feature_name(facts.names, *key), |(_, name)| name.to_owned())
            };
            NamedFeature {
                name,
                position: position.map(|at| at as u64),
                categories: keys.iter().map(category).collect(),
            }
        }
    };
    features.iter().enumerate().map(of_feature).collect()
}

/// The column and the name of a category, whose name in the dictionary is `COLUMN=NAME`.
fn column_and_name<'a>(facts: &ModelFacts<'a>, key: u64) -> Option<(usize, &'a str)> {
    let full = facts.names.get(key)?;
    let columns = facts.schema.columns.iter().enumerate();
    columns.filter(|(_, column)| column.kind != ColumnKind::Numeric).find_map(|(at, column)| {
        let name = full.strip_prefix(&column.name)?.strip_prefix('=')?;
        (named_key(column.name.as_bytes(), name.as_bytes()) == key).then_some((at, name))
    })
}
