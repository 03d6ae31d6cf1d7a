//! The share of the entries of scored records whose features the model does not know, and the notice about it.
//!
//! A model stores no row of zeros. So a feature is known if a row of it that the scorer has read is not zero, for every
//! family of algorithms, in one process and on servers.

use std::collections::BTreeMap;

use data::Schema;
use serde::{Deserialize, Serialize};

/// Share of unknown entries from which there is a notice.
const NOTICE_SHARE: f64 = 0.05;
/// The same for a model in which l1 may have set the weights of known features to 0.
const NOTICE_SHARE_WITH_L1: f64 = 0.95;
/// Number of unknown features that are kept as examples.
pub const EXAMPLE_LIMIT: usize = 64;
/// Share of the records with feature 0 from which it is told that the model does not have it.
const ZERO_FEATURE_SHARE: f64 = 0.01;

/// Counts of entries of scored records. They do not depend on how the records were divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeatureCoverage {
    pub entries: u64,
    pub unknown_entries: u64,
    /// The unknown features with the smallest keys, at most [`EXAMPLE_LIMIT`]. The counts of these are complete: a key that
    /// has left the list is not among the smallest.
    pub examples: BTreeMap<u64, UnknownFeature>,
}

/// A feature that the model does not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnknownFeature {
    pub entries: u64,
    pub name: String,
}

impl FeatureCoverage {
    /// Adds the counts of other records.
    pub fn merge(&mut self, other: &Self) {
        self.entries += other.entries;
        self.unknown_entries += other.unknown_entries;
        for (key, feature) in &other.examples {
            let UnknownFeature { entries, name } = feature;
            self.add_example(*key, *entries, || name.clone());
        }
    }

    /// Counts entries of a feature; it is an example if the model does not know it.
    pub fn add_entries(&mut self, key: u64, entries: u64, is_known: bool) {
        self.entries += entries;
        if !is_known {
            self.unknown_entries += entries;
            self.add_example(key, entries, String::new);
        }
    }

    /// Whether the model does not know some features.
    pub fn has_unknown(&self) -> bool {
        self.unknown_entries > 0
    }

    /// Names the unknown features.
    pub fn set_names(&mut self, name: impl Fn(u64) -> String) {
        for (key, example) in &mut self.examples {
            example.name = name(*key);
        }
    }

    fn add_example(&mut self, key: u64, entries: u64, name: impl FnOnce() -> String) {
        if let Some(example) = self.examples.get_mut(&key) {
            example.entries += entries;
        } else if self.examples.len() < EXAMPLE_LIMIT
            || self.examples.last_key_value().is_some_and(|(last, _)| key < *last)
        {
            self.examples.insert(key, UnknownFeature { entries, name: name() });
            if self.examples.len() > EXAMPLE_LIMIT {
                self.examples.pop_last();
            }
        }
    }

    /// Returns the notice about unknown features, if there are many. `range` has the smallest and the largest key of the
    /// data.
    pub fn notice(&self, known: &KnownFeatures, records: u64, range: Option<(u64, u64)>) -> Option<String> {
        let shift = self.shift_hint(known, records, range);
        let share = self.unknown_entries as f64 / self.entries.max(1) as f64;
        let limit = if known.may_have_zeros { NOTICE_SHARE_WITH_L1 } else { NOTICE_SHARE };
        // Of equal counts, the smallest key.
        let (_, example) = self.examples.iter().max_by_key(|(key, it)| (it.entries, u64::MAX - **key))?;
        if share < limit && shift.is_none() {
            return None;
        }
        let cause = if known.may_have_zeros {
            "have no weight in the model, because training did not have them or l1 has set their weights to 0"
        } else {
            "are unknown to the model, because training did not have them"
        };
        let percent = (share * 1000.0).round() / 10.0;
        let advice = shift.unwrap_or_else(|| known.advice().to_owned());
        Some(format!(
            "the features of {} of {} entries ({percent} %) {cause}: as '{}' ({} of them). {advice}",
            self.unknown_entries, self.entries, example.name, example.entries
        ))
    }

    /// Returns a hint if the data seem to count features from another number than training.
    fn shift_hint(&self, known: &KnownFeatures, records: u64, range: Option<(u64, u64)>) -> Option<String> {
        let ((first, last), (known_first, known_last)) =
            range.zip(known.range.filter(|_| !known.has_columns))?;
        let zeros = self.examples.get(&0).map_or(0, |zero| zero.entries);
        let is_zero_frequent = zeros as f64 >= ZERO_FEATURE_SHARE * records.max(1) as f64;
        let bases = if first == 0 && known_first == 1 && (last + 1 == known_last || is_zero_frequent) {
            (0, 1)
        } else if first >= 1 && known_first == 0 && last == known_last + 1 {
            (1, 0)
        } else {
            return None;
        };
        Some(format!(
            "The features of these data have the numbers {first} to {last}, those of the model {known_first} to \
             {known_last}: do the data count from {}, and those of training from {}? Then every feature has the weight of \
             its neighbour; number them as in training",
            bases.0, bases.1
        ))
    }
}

/// What is known of the features of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownFeatures {
    /// The smallest and the largest key.
    pub range: Option<(u64, u64)>,
    /// Whether the features are columns of a table and their values.
    pub has_columns: bool,
    /// Whether features are named in the data.
    pub has_names: bool,
    /// Whether features of training may have no weight.
    pub may_have_zeros: bool,
}

impl KnownFeatures {
    /// Describes features with the keys of this range, of a model with these settings.
    pub fn new(range: Option<(u64, u64)>, schema: &Schema, settings: &BTreeMap<String, String>) -> Self {
        let l1 = settings.get("l1").and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        Self {
            range,
            has_columns: !schema.columns.is_empty(),
            has_names: range.is_some_and(|(first, _)| first >= math::hash::NAMED_KEY_BIT),
            may_have_zeros: l1 > 0.0,
        }
    }

    fn advice(&self) -> &'static str {
        if self.has_columns {
            "Check that the values of the columns are written as in the data of training"
        } else if self.has_names {
            "Check that names and namespaces are written as in the data of training"
        } else {
            "Check that the features have the same numbers as in the data of training"
        }
    }
}
