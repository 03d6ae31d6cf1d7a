//! Features and their bins, made once from the survey of the training data. They are the same for any number of tasks.
//!
//! A number of a column is in the bin of the first bound that is not below it; a column whose cells may be missing has one
//! more bin for these. A value of a column of names is in the bin of its category.

use std::collections::HashMap;

use data::Survey;
use serde::{Deserialize, Serialize};

use super::split::{BinKind, FeatureBins};
use algo::error::Error;

/// Numbers of the training data that a bin has at least.
const LEAST_BIN_WEIGHT: f64 = 3.0;

/// What the values of a feature are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Feature {
    /// Numbers.
    Numbers {
        /// Ascending upper bounds of all bins but the last.
        bounds: Vec<f32>,
        /// Whether a record may have no number, which is then missing; otherwise the number is 0 there.
        has_missing: bool,
    },
    /// Names. Records without a name are in a bin of their own, after those of the categories.
    Categories { count: u32 },
}

impl Feature {
    /// Number of bins, with that of missing values.
    pub(super) fn bin_count(&self) -> usize {
        match self {
            Self::Numbers { bounds, has_missing } => bounds.len() + 1 + usize::from(*has_missing),
            Self::Categories { count } => *count as usize + 1,
        }
    }

    /// Its bins, as a split sees them.
    pub(super) fn bins(&self, number: u32, monotone: i8) -> FeatureBins {
        let kind = match self {
            Self::Numbers { has_missing, .. } => BinKind::Numbers { has_missing: *has_missing },
            Self::Categories { .. } => BinKind::Categories,
        };
        FeatureBins { number, count: self.bin_count() as u32, kind, monotone }
    }

    /// The bin of the records that have no entry of the feature.
    pub(super) fn absent_bin(&self) -> usize {
        match self {
            Self::Numbers { has_missing: false, .. } => self.bin_of(0.0),
            _ => self.bin_count() - 1,
        }
    }

    /// The bin of a number.
    pub(super) fn bin_of(&self, number: f32) -> usize {
        match self {
            Self::Numbers { bounds, .. } => bounds.partition_point(|bound| *bound < number),
            Self::Categories { .. } => unreachable!("categories have no numbers"),
        }
    }

    /// Words of 64 bits with a bit for each category; 0 for numbers.
    pub(super) fn word_count(&self) -> usize {
        match self {
            Self::Numbers { .. } => 0,
            Self::Categories { count } => count.div_ceil(64) as usize,
        }
    }
}

/// A feature as a model stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SavedFeature {
    /// Numbers with this key.
    Numbers {
        key: u64,
        /// Ascending upper bounds of all bins but the last.
        bounds: Vec<f32>,
        /// Records without an entry have 0, also in a table.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_count: bool,
    },
    /// Names with these keys.
    Categories { keys: Vec<u64> },
    /// Categories that are numbers from 0 on, in a column of numbers with this key. Only imported models have them.
    Codes { key: u64, count: u32 },
}

/// Makes bins. `is_table`: a record without a number of a column has none; otherwise it has 0.
pub(super) fn make(survey: &Survey, is_table: bool, bin_limit: usize) -> Result<Vec<SavedFeature>, Error> {
    /// Bounds of the counts of a word.
    const COUNTS: [f32; 3] = [0.5, 1.5, 2.5];
    if survey.has_too_many_quantiles() {
        let reason =
            "the data have more than 131072 columns, for which there are no bins: leave out rare ones";
        return Err(Error::UnsuitableData { reason: reason.to_owned() });
    }
    let mut features = Vec::new();
    for (key, sketch) in survey.quantile_columns() {
        let mut numbers = sketch.numbers();
        let (stored, all) = (sketch.count(), survey.record_count);
        if !is_table && stored < all {
            let weight: f64 = numbers.iter().map(|number| number.1).sum();
            add_zeros(&mut numbers, (all - stored) as f64 * weight / stored as f64);
        }
        let bounds = bounds_of(&numbers, bin_limit - usize::from(is_table));
        features.push(SavedFeature::Numbers { key, bounds, is_count: false });
    }
    for (&field, names) in survey.names() {
        if survey.has_tokens(field) {
            let count = |&key| SavedFeature::Numbers { key, bounds: COUNTS.to_vec(), is_count: true };
            features.extend(names.keys().map(count));
        } else if !is_table || survey.quantiles(u64::from(field)).is_none() {
            // Names in a column of numbers mark missing ones. Rare categories beyond the limit have no bin, like those
            // that training has not seen.
            let mut by_weight: Vec<(u64, f64)> = names.iter().map(|(&key, &weight)| (key, weight)).collect();
            by_weight.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let keys = by_weight.into_iter().take(bin_limit - 1).map(|(key, _)| key).collect();
            features.push(SavedFeature::Categories { keys });
        }
    }
    if features.is_empty() {
        return Err(Error::UnsuitableData { reason: "the training data have no features".to_owned() });
    }
    Ok(features)
}

/// What a key of the data means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyMeaning {
    pub(super) feature: u32,
    /// The category that the key is; `None`: its values are the numbers of the feature.
    pub(super) category: Option<u32>,
}

/// All features, with the keys of the data.
#[derive(Clone, Debug, Default)]
pub(super) struct Features {
    pub(super) list: Vec<Feature>,
    pub(super) by_key: HashMap<u64, KeyMeaning>,
    /// The value of each feature in a record without an entry; NaN if it is missing there.
    pub(super) absent: Vec<f32>,
}

impl Features {
    /// Features with these bins.
    pub(super) fn new(saved: &[SavedFeature], is_table: bool) -> Self {
        let mut features = Self::default();
        for (number, saved) in (0..).zip(saved) {
            let mut insert = |key, category| {
                features.by_key.insert(key, KeyMeaning { feature: number, category });
            };
            let (feature, is_zero_absent) = match saved {
                SavedFeature::Numbers { key, bounds, is_count } => {
                    insert(*key, None);
                    let has_missing = is_table && !is_count;
                    (Feature::Numbers { bounds: bounds.clone(), has_missing }, !has_missing)
                }
                SavedFeature::Categories { keys } => {
                    (0..).zip(keys).for_each(|(category, key)| insert(*key, Some(category)));
                    (Feature::Categories { count: keys.len() as u32 }, false)
                }
                SavedFeature::Codes { key, count } => {
                    insert(*key, None);
                    (Feature::Categories { count: *count }, !is_table)
                }
            };
            features.list.push(feature);
            features.absent.push(if is_zero_absent { 0.0 } else { f32::NAN });
        }
        features
    }

    /// The first bin of each feature in the concatenation of all, and the end.
    pub(super) fn bin_starts(&self) -> Vec<u32> {
        let mut starts = vec![0];
        starts.extend(self.list.iter().scan(0, |end, feature| {
            *end += feature.bin_count() as u32;
            Some(*end)
        }));
        starts
    }
}

/// Adds records of value 0 to ascending numbers.
fn add_zeros(numbers: &mut Vec<(f32, f64)>, weight: f64) {
    let at = numbers.partition_point(|number| number.0 < 0.0);
    match numbers.get_mut(at).filter(|number| number.0 == 0.0) {
        Some(zero) => zero.1 += weight,
        None => numbers.insert(at, (0.0, weight)),
    }
}

/// Upper bounds of at most `bin_count` bins of ascending distinct numbers: between two numbers, in the middle.
fn bounds_of(numbers: &[(f32, f64)], bin_count: usize) -> Vec<f32> {
    let total: f64 = numbers.iter().map(|number| number.1).sum();
    let is_exact = numbers.len() <= bin_count;
    let (mut bounds, mut weight, mut rest) = (Vec::new(), 0.0, total);
    let mut share = total / bin_count as f64;
    for pair in numbers.array_windows() {
        let [(number, own), (next, following)] = *pair;
        weight += own;
        let is_full = if is_exact {
            weight >= LEAST_BIN_WEIGHT
        } else {
            // A number that fills a bin alone gets one, and does not share it with those before it.
            weight >= share || following >= share && weight >= LEAST_BIN_WEIGHT
        };
        if is_full && bounds.len() + 1 < bin_count {
            bounds.push(middle(number, next));
            rest -= weight;
            weight = 0.0;
            share = rest / (bin_count - bounds.len()) as f64;
        }
    }
    bounds
}

/// A number that is at least the first and below the second.
fn middle(first: f32, second: f32) -> f32 {
    let middle = f64::midpoint(f64::from(first), f64::from(second)) as f32;
    if middle < second { middle } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbers_have_a_bin_each_and_bounds_between_them() {
        let numbers = [(1.0, 5.0), (2.0, 5.0), (4.0, 2.0), (5.0, 9.0)];
        assert_eq!(bounds_of(&numbers, 10), [1.5, 3.0]);
        assert_eq!(bounds_of(&numbers[..1], 10), [0.0; 0]);
        let feature = Feature::Numbers { bounds: vec![1.5, 3.0], has_missing: true };
        assert_eq!([-9.0, 1.5, 1.6, 3.0, 99.0].map(|number| feature.bin_of(number)), [0, 0, 1, 1, 2]);
        assert_eq!((feature.bin_count(), feature.absent_bin()), (4, 3));
    }

    #[test]
    fn many_numbers_have_bins_of_about_the_same_weight() {
        let numbers: Vec<(f32, f64)> = (0..1000).map(|i| (i as f32, 1.0)).collect();
        let bounds = bounds_of(&numbers, 10);
        assert_eq!(bounds.len(), 9);
        assert!(bounds.iter().zip(1u16..).all(|(bound, i)| (bound - f32::from(100 * i)).abs() < 2.0));
        let mut heavy = numbers;
        heavy[500].1 = 5000.0;
        let bounds = bounds_of(&heavy, 10);
        assert!(bounds.contains(&499.5) && bounds.contains(&500.5), "{bounds:?}");
    }

    #[test]
    fn a_bound_is_below_the_next_number() {
        for (a, b) in [(1.0, 1.0f32.next_up()), (-1.0f32, (-1.0f32).next_up()), (0.0, f32::from_bits(1))] {
            let bound = middle(a, b);
            assert!(a <= bound && bound < b);
        }
    }
}
