//! Labels: the values that are allowed, their mapping, and their statistics.

use crate::Error;
use std::collections::BTreeMap;

/// Which labels are allowed, and how they become the numbers of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LabelRule {
    /// Two classes: -1 and 0 become 0, 1 stays 1. With `positive`, that number becomes 1 and every other one 0.
    Binary {
        /// The number that means 1.
        positive: Option<f32>,
    },
    /// Class numbers: integers, not changed.
    Class,
    /// Any finite number, not changed.
    #[default]
    Real,
    /// Numbers in a range, not changed.
    Range {
        /// The range.
        range: LabelRange,
        /// The objective that has this range, for messages.
        objective: &'static str,
    },
    /// Any finite number, not changed, or names: the algorithm chooses by what there is.
    Any,
}

/// A range of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelRange {
    /// From 0 on.
    NotNegative,
    /// Above 0.
    Positive,
    /// Whole numbers from 0 to 31.
    Grades,
}

impl LabelRange {
    fn has(self, label: f64) -> bool {
        match self {
            Self::NotNegative => label >= 0.0,
            Self::Positive => label > 0.0,
            Self::Grades => (0.0..=31.0).contains(&label) && label.fract() == 0.0,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::NotNegative => "a label of at least 0",
            Self::Positive => "a label above 0",
            Self::Grades => "a grade as the label, a whole number from 0 to 31",
        }
    }
}

impl LabelRule {
    /// Whether labels must be classes.
    pub(crate) fn is_class(self) -> bool {
        matches!(self, Self::Binary { .. } | Self::Class)
    }

    /// Whether labels are numbers and not classes.
    pub fn is_real(self) -> bool {
        matches!(self, Self::Real | Self::Range { .. })
    }
}

/// The kind of the labels of an input, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelKind {
    /// There is no record.
    None,
    /// All labels are equal.
    Constant,
    /// 0 and 1.
    ZeroOne,
    /// -1 and 1.
    MinusPlusOne,
    /// Integers, at most [`CLASS_LIMIT`] distinct ones.
    Classes,
    /// Anything else.
    Real,
}

/// Number of distinct integer labels that are counted one by one; with more, labels are [`LabelKind::Real`].
pub const CLASS_LIMIT: usize = 4096;
/// Integers up to this size are exact in f32.
const EXACT_INTEGER_LIMIT: f64 = 16_777_216.0;

/// Statistics of the labels as they are written. Merging is exact in any order, except for the last bits of the sums.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LabelStats {
    count: u64,
    positive_count: u64,
    minus_one: u64,
    zero: u64,
    one: u64,
    /// Integer labels other than -1, 0, 1, with their counts.
    others: BTreeMap<i64, u64>,
    fractional: u64,
    too_many: bool,
    /// Sum of the weights of the records.
    weight_sum: f64,
    min: f64,
    max: f64,
    /// The first label. Sums of distances from it keep their digits when labels are far from 0.
    first: f64,
    /// Sums of weight x distance, and of weight x squared distance.
    sum: f64,
    square_sum: f64,
}

impl LabelStats {
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of labels that [`LabelRule::Binary`] maps to 1; for the other rules, number of labels above 0.
    pub fn positive_count(&self) -> u64 {
        self.positive_count
    }

    /// Smallest and largest label; `None` before the first.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.count > 0).then_some((self.min, self.max))
    }

    /// Mean of the labels as written, by the weights of their records; 0 before the first.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.first + self.sum / self.weight_sum }
    }

    /// Variance of the labels as written, by the weights of their records (divided by the sum of weights); 0 before the first.
    pub fn variance(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            (self.square_sum / self.weight_sum - (self.sum / self.weight_sum).powi(2)).max(0.0)
        }
    }

    pub fn kind(&self) -> LabelKind {
        if self.count == 0 {
            return LabelKind::None;
        }
        if self.min == self.max {
            return LabelKind::Constant;
        }
        if self.fractional > 0 || self.too_many {
            return LabelKind::Real;
        }
        match (self.minus_one > 0, self.zero > 0, self.one > 0, self.others.is_empty()) {
            (false, true, true, true) => LabelKind::ZeroOne,
            (true, false, true, true) => LabelKind::MinusPlusOne,
            _ => LabelKind::Classes,
        }
    }

    /// The distinct integer labels with their counts, ascending; `None` when there are fractional labels or more than
    /// [`CLASS_LIMIT`].
    pub fn classes(&self) -> Option<Vec<(f32, u64)>> {
        if self.fractional > 0 || self.too_many {
            return None;
        }
        let mut all = self.others.clone();
        for (label, count) in [(-1, self.minus_one), (0, self.zero), (1, self.one)] {
            if count > 0 {
                all.insert(label, count);
            }
        }
        Some(all.into_iter().map(|(label, count)| (label as f32, count)).collect())
    }

    /// Adds the labels of another task.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        self.count += other.count;
        self.positive_count += other.positive_count;
        self.minus_one += other.minus_one;
        self.zero += other.zero;
        self.one += other.one;
        for (&label, &count) in &other.others {
            *self.others.entry(label).or_insert(0) += count;
        }
        self.fractional += other.fractional;
        self.too_many |= other.too_many || self.others.len() > CLASS_LIMIT;
        self.drop_counts_when_too_many();
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let distance = other.first - self.first;
        self.square_sum += other.square_sum + distance * (2.0 * other.sum + distance * other.weight_sum);
        self.sum += other.sum + distance * other.weight_sum;
        self.weight_sum += other.weight_sum;
    }

    /// Checks what a single record cannot show: under [`LabelRule::Binary`], -1 and 0 must not both occur.
    pub fn check(&self, rule: LabelRule) -> Result<(), Error> {
        match rule {
            LabelRule::Binary { positive: None } if self.minus_one > 0 && self.zero > 0 => {
                Err(Error::BadLabels {
                    reason: format!(
                        "{} labels are -1 and {} are 0: it is not clear which of the two is the negative class; use \
                         0/1 or -1/1, or set positive_label=1",
                        self.minus_one, self.zero
                    ),
                })
            }
            LabelRule::Binary { .. }
            | LabelRule::Class
            | LabelRule::Real
            | LabelRule::Range { .. }
            | LabelRule::Any => Ok(()),
        }
    }

    #[inline]
    fn add(&mut self, label: f64, positive: bool, weight: f64) {
        if self.count == 0 {
            (self.first, self.min, self.max) = (label, label, label);
        }
        self.count += 1;
        self.positive_count += u64::from(positive);
        self.min = self.min.min(label);
        self.max = self.max.max(label);
        let distance = label - self.first;
        self.weight_sum += weight;
        self.sum += weight * distance;
        self.square_sum += weight * distance * distance;
        if label == 1.0 {
            self.one += 1;
        } else if label == 0.0 {
            self.zero += 1;
        } else if label == -1.0 {
            self.minus_one += 1;
        } else {
            self.add_other(label);
        }
    }

    fn add_other(&mut self, label: f64) {
        if label.fract() != 0.0 || label.abs() > EXACT_INTEGER_LIMIT {
            self.fractional += 1;
        } else if !self.too_many {
            *self.others.entry(label as i64).or_insert(0) += 1;
            self.too_many = self.others.len() > CLASS_LIMIT;
            self.drop_counts_when_too_many();
        }
    }

    fn drop_counts_when_too_many(&mut self) {
        if self.too_many {
            self.others.clear();
        }
    }
}

/// Applies a rule to labels and counts them.
#[derive(Clone, Debug)]
pub(crate) struct Labeler {
    rule: LabelRule,
    pub(crate) stats: LabelStats,
}

impl Labeler {
    pub(crate) fn new(rule: LabelRule) -> Self {
        Self { rule, stats: LabelStats::default() }
    }

    /// Returns the number for the batch, or what was expected instead of `label`.
    #[inline]
    pub(crate) fn apply(&mut self, label: f64, weight: f32) -> Result<f64, String> {
        let out = match self.rule {
            LabelRule::Binary { positive: None } => {
                if label == 1.0 {
                    1.0
                } else if label == 0.0 || label == -1.0 {
                    self.check_negative(label)?;
                    0.0
                } else {
                    return Err(not_binary(label));
                }
            }
            LabelRule::Binary { positive: Some(positive) } => f64::from(label as f32 == positive),
            LabelRule::Class if label.fract() != 0.0 || label.abs() > EXACT_INTEGER_LIMIT => {
                return Err(format!(
                    "a class number (a whole number up to {EXACT_INTEGER_LIMIT}); label {label} is not one"
                ));
            }
            LabelRule::Range { range, objective } if !range.has(label) => {
                return Err(format!("{} for objective={objective}", range.describe()));
            }
            LabelRule::Class | LabelRule::Real | LabelRule::Range { .. } | LabelRule::Any => label,
        };
        if !(label as f32).is_finite() {
            return Err(format!("a label within the range of f32; {label} is not"));
        }
        self.stats.add(label, out > 0.0, f64::from(weight));
        Ok(out)
    }

    #[inline]
    fn check_negative(&self, label: f64) -> Result<(), String> {
        let other = if label == 0.0 { self.stats.minus_one } else { self.stats.zero };
        if other > 0 {
            return Err(
                "labels 0/1 or -1/1, but both 0 and -1 occur; set positive_label=1 if both are negative"
                    .into(),
            );
        }
        Ok(())
    }
}

#[cold]
fn not_binary(label: f64) -> String {
    format!(
        "a label of two classes; label {label} is neither 0/1 nor -1/1; for class numbers use softmax; or set \
         positive_label={label}"
    )
}

#[cfg(test)]
mod tests;
