//! The area under the ROC curve, exact: the share of (positive, negative) pairs in which the positive record has the
//! higher score. A tie counts one half (Hanley and `McNeil`, Radiology 1982; this equals the use of midranks).
//!
//! Scores are kept as 32-bit floats in the order-preserving bits of `math::sort::ordered_bits`, separately for
//! positives and negatives: 4 bytes per record, 8 with weights. They are sorted once, in `value`.

use math::sort::{ordered_bits, sort_by_key};

/// The largest number of records that are kept; above it AUC is left out with a notice. 50 M records take 200 MB.
pub const AUC_RECORD_LIMIT: usize = 50_000_000;

/// Scores of both classes.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct AucAccumulator {
    positives: Scores,
    negatives: Scores,
    overflow: bool,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Scores {
    bits: Vec<u32>,
    /// Empty if all weights are 1.
    weights: Vec<f32>,
}

impl AucAccumulator {
    /// Adds a record.
    #[inline]
    pub fn add(&mut self, score: f64, positive: bool, weight: f32) {
        if self.positives.bits.len() + self.negatives.bits.len() >= AUC_RECORD_LIMIT {
            self.clear();
        }
        if !self.overflow {
            // Adding 0 turns -0 into 0: equal scores must have equal bits.
            let bits = ordered_bits(score as f32 + 0.0);
            if positive { &mut self.positives } else { &mut self.negatives }.add(bits, weight);
        }
    }

    /// Adds the records of another task.
    pub fn merge(&mut self, other: &Self) {
        self.positives.merge(&other.positives);
        self.negatives.merge(&other.negatives);
        let count = self.positives.bits.len() + self.negatives.bits.len();
        if self.overflow || other.overflow || count > AUC_RECORD_LIMIT {
            self.clear();
        }
    }

    /// The area; `None` if there is only one class, or if there were too many records.
    pub fn value(&self) -> Option<f64> {
        if self.overflow {
            return None;
        }
        if self.positives.weights.is_empty() && self.negatives.weights.is_empty() {
            unweighted_area(self.positives.bits.clone(), self.negatives.bits.clone())
        } else {
            area(self.positives.sorted(), self.negatives.sorted())
        }
    }

    /// A message for the user if the limit was exceeded.
    pub fn notice(&self) -> Option<String> {
        self.overflow
            .then(|| format!("AUC not computed: more than auc_record_limit = {AUC_RECORD_LIMIT} records"))
    }

    #[cold]
    fn clear(&mut self) {
        *self = Self { overflow: true, ..Self::default() };
    }
}

impl Scores {
    #[inline]
    fn add(&mut self, bits: u32, weight: f32) {
        if weight != 1.0 || !self.weights.is_empty() {
            self.weights.resize(self.bits.len(), 1.0);
            self.weights.push(weight);
        }
        self.bits.push(bits);
    }

    fn merge(&mut self, other: &Self) {
        if !self.weights.is_empty() || !other.weights.is_empty() {
            self.weights.resize(self.bits.len(), 1.0);
            self.weights.extend_from_slice(&other.weights);
            self.weights.resize(self.bits.len() + other.bits.len(), 1.0);
        }
        self.bits.extend_from_slice(&other.bits);
    }

    /// Pairs `(score, weight)`, ascending. The sort is stable, so that weights are added in the same order in every
    /// run.
    fn sorted(&self) -> Vec<(u32, f32)> {
        let weight = |i: usize| self.weights.get(i).copied().unwrap_or(1.0);
        let mut out: Vec<_> = self.bits.iter().enumerate().map(|(i, &bits)| (bits, weight(i))).collect();
        sort_by_key(&mut out, &mut Vec::new(), |pair| u64::from(pair.0));
        out
    }
}

/// The area from whole-number counts: exact, whatever the order of records.
fn unweighted_area(mut positives: Vec<u32>, mut negatives: Vec<u32>) -> Option<f64> {
    if positives.is_empty() || negatives.is_empty() {
        return None;
    }
    let mut scratch = Vec::new();
    sort_by_key(&mut positives, &mut scratch, u64::from);
    sort_by_key(&mut negatives, &mut scratch, u64::from);
    let (mut below, mut through) = (0, 0);
    // Twice the number of ordered pairs: a tie counts 1.
    let mut twice = 0u128;
    for positive in &positives {
        while below < negatives.len() && negatives[below] < *positive {
            below += 1;
        }
        through = through.max(below);
        while through < negatives.len() && negatives[through] == *positive {
            through += 1;
        }
        twice += (below + through) as u128;
    }
    Some(twice as f64 / (2.0 * positives.len() as f64 * negatives.len() as f64))
}

/// The weighted area of sorted `(score, weight)` pairs; `None` if a class has no weight.
pub(super) fn area(positives: Vec<(u32, f32)>, negatives: Vec<(u32, f32)>) -> Option<f64> {
    let total = |side: &[(u32, f32)]| side.iter().map(|pair| f64::from(pair.1)).sum::<f64>();
    let (positive_sum, negative_sum) = (total(&positives), total(&negatives));
    if positive_sum <= 0.0 || negative_sum <= 0.0 {
        return None;
    }
    let mut negatives = negatives.into_iter().peekable();
    let (mut below, mut tied, mut tied_at) = (0f64, 0f64, None);
    let mut pairs = 0f64;
    for (bits, weight) in positives {
        if tied_at != Some(bits) {
            below += std::mem::take(&mut tied);
            while let Some(negative) = negatives.next_if(|negative| negative.0 < bits) {
                below += f64::from(negative.1);
            }
            while let Some(negative) = negatives.next_if(|negative| negative.0 == bits) {
                tied += f64::from(negative.1);
            }
            tied_at = Some(bits);
        }
        pairs += f64::from(weight) * (below + 0.5 * tied);
    }
    Some(pairs / (positive_sum * negative_sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_above_the_limit_stays_dropped_and_is_said() {
        let over = AucAccumulator { overflow: true, ..AucAccumulator::default() };
        let mut parts = AucAccumulator::default();
        parts.add(0.75, true, 1.0);
        parts.add(0.25, false, 1.0);
        assert_eq!((parts.value(), parts.notice()), (Some(1.0), None));
        parts.merge(&over);
        assert_eq!(parts, over);
        parts.add(0.75, true, 1.0);
        parts.add(0.25, false, 1.0);
        assert_eq!(parts.value(), None);
        assert!(parts.notice().unwrap().contains("more than auc_record_limit"));
    }
}
