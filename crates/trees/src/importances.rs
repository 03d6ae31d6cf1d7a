//! What trees say of their features: how many splits each has, and what they gain.

use std::collections::BTreeMap;

use super::bins::SavedFeature;
use super::model::IMPORTANCE_COLUMNS;
use super::tree::{Test, Tree};

/// Rows of the table `importances` by key.
pub(super) type Importances = BTreeMap<u64, [f64; IMPORTANCE_COLUMNS]>;

/// Adds the splits of a tree; those of categories count for each category that goes left.
pub(super) fn add_importances(features: &[SavedFeature], tree: &Tree, rows: &mut Importances) {
    for node in tree.iter().filter(|node| !node.is_leaf()) {
        let mut add = |key: u64| {
            let sums = rows.entry(key).or_default();
            sums[0] += 1.0;
            sums[1] += node.gain;
        };
        match (&features[node.feature as usize], &node.test) {
            (SavedFeature::Numbers { key, .. } | SavedFeature::Codes { key, .. }, _) => add(*key),
            (SavedFeature::Categories { keys }, Test::Among(_)) => {
                keys.iter()
                    .enumerate()
                    .filter(|(i, _)| node.goes_left(*i as f32))
                    .for_each(|(_, key)| add(*key));
            }
            (SavedFeature::Categories { .. }, Test::UpTo(_)) => {}
        }
    }
}
