//! Digits that single precision (f32) loses, counted for each column.

use std::collections::BTreeMap;

use math::hash::NAMED_KEY_BIT;

/// Numbers up to this size are not counted: integers among them are exact in f32, and others keep seven digits.
pub(crate) const EXACT_INTEGER_LIMIT: f32 = 16_777_216.0;
/// Numbers from this size on are measured and not counted, and their first digits are all that is meant.
const COUNT_LIMIT: f64 = 1e18;
/// Columns that a task counts one by one.
const COLUMN_LIMIT: usize = 64;
/// Columns that a notice names.
const SHOWN_COLUMNS: usize = 5;

/// Whether f32, in which a number is `single`, loses digits that the number may have been written for.
#[inline]
pub(crate) fn loses_digits(written: f64, single: f32) -> bool {
    single.abs() >= EXACT_INTEGER_LIMIT && f64::from(single) != written && written.abs() < COUNT_LIMIT
}

/// How many numbers of a column lost digits, and the first of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RoundedNumbers {
    pub count: u64,
    pub first: f64,
}

impl RoundedNumbers {
    pub(crate) fn add(&mut self, written: f64) {
        self.merge(&Self { count: 1, first: written });
    }

    fn merge(&mut self, other: &Self) {
        if self.count == 0 {
            self.first = other.first;
        }
        self.count += other.count;
    }

    fn description(&self) -> String {
        let records = if self.count == 1 { "record" } else { "records" };
        format!("in {} {records} ({} becomes {})", self.count, self.first, f64::from(self.first as f32))
    }
}

/// The columns that lost digits, by the key of their feature.
#[derive(Debug, Default)]
pub(crate) struct RoundedKeys {
    by_key: BTreeMap<u64, RoundedNumbers>,
}

impl RoundedKeys {
    /// Counts a number of a feature. Above a limit of features, and where keys are those of names, all are counted as one.
    #[cold]
    pub(crate) fn add(&mut self, key: u64, written: f64) {
        let is_own =
            key < NAMED_KEY_BIT && (self.by_key.len() < COLUMN_LIMIT || self.by_key.contains_key(&key));
        self.by_key.entry(if is_own { key } else { u64::MAX }).or_default().add(written);
    }

    /// Makes the report. `names` are those of the feature columns, whose positions are the keys.
    pub(crate) fn report(&self, names: &[String]) -> RoundingReport {
        let name = |key: u64| match usize::try_from(key).ok().and_then(|at| names.get(at)) {
            Some(name) => format!("column '{name}'"),
            None if key == u64::MAX => "other features".to_owned(),
            None => format!("feature {key}"),
        };
        let features = self.by_key.iter().map(|(&key, numbers)| (name(key), *numbers)).collect();
        RoundingReport { features }
    }
}

/// The columns whose numbers lost digits.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RoundingReport {
    /// By the name of the feature, as in "column 'time'" or "feature 7".
    pub features: BTreeMap<String, RoundedNumbers>,
}

impl RoundingReport {
    /// A notice for the user, if there is something to tell.
    pub fn notice(&self) -> Option<String> {
        let shown = self.features.iter().take(SHOWN_COLUMNS);
        let shown = shown.map(|(name, numbers)| format!("{name} {}", numbers.description()));
        let mut shown: Vec<String> = shown.collect();
        let more = self.features.len().saturating_sub(SHOWN_COLUMNS);
        if more > 0 {
            shown.push(format!("and {more} more"));
        }
        (!shown.is_empty()).then(|| {
            format!(
                "features are stored in single precision (f32), which loses digits of {}; see docs/data-formats.md for what \
                 to do",
                shown.join(", ")
            )
        })
    }

    /// Adds the counts of another task.
    pub fn add(&mut self, other: &Self) {
        for (name, numbers) in &other.features {
            self.features.entry(name.clone()).or_default().merge(numbers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_lost_above_the_integers_that_are_exact_and_below_what_is_measured() {
        for (written, expected) in [
            (16_777_216.0, false),
            (16_777_217.0, true),
            (-16_777_219.0, true),
            (1_577_847_600.5, true),
            (9e9, true),
            (33_554_432.0, false),
            (0.1, false),
            (12_345_678.5, false),
            (1e30, false),
            (f64::NAN, false),
        ] {
            assert_eq!(loses_digits(written, written as f32), expected, "{written}");
        }
    }

    #[test]
    fn numbers_are_counted_by_column_and_the_first_is_told_as_it_is_stored() {
        let mut keys = RoundedKeys::default();
        for value in [9e9, 9.1e9] {
            keys.add(1, value);
        }
        keys.add(7, 16_777_217.0);
        keys.add(NAMED_KEY_BIT, 16_777_219.0);
        let names = ["a".to_owned(), "time".to_owned()];
        let mut report = keys.report(&names);
        report.add(&keys.report(&names));
        assert_eq!(
            report.notice().as_deref(),
            Some(
                "features are stored in single precision (f32), which loses digits of column 'time' in 4 records \
                 (9000000000 becomes 8999999488), feature 7 in 2 records (16777217 becomes 16777216), other features \
                 in 2 records (16777219 becomes 16777220); see docs/data-formats.md for what to do"
            )
        );
        assert_eq!(RoundingReport::default().notice(), None);
    }

    #[test]
    fn more_columns_than_the_limit_are_counted_together() {
        let mut keys = RoundedKeys::default();
        for key in 0..100 {
            keys.add(key, 16_777_217.0);
        }
        let report = keys.report(&[]);
        assert_eq!((report.features.len(), report.features["other features"].count), (COLUMN_LIMIT + 1, 36));
        assert!(report.notice().unwrap().contains(", and 60 more; see"));
    }
}
