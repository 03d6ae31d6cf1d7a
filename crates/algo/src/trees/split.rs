//! The best split of a leaf by a feature, from the histogram of the leaf (Ke et al., "LightGBM", NIPS 2017, and its code for
//! categories). Of equal gains the first counts: by feature, then by bin.

use serde::{Deserialize, Serialize};

use super::bins::Feature;
use super::histogram::BinSums;

/// Categories up to which each is tried against all others.
const ONE_AGAINST_REST: usize = 4;
/// Largest number of categories on the left.
const LEFT_CATEGORIES: usize = 32;
/// Added to the hessian of a category when categories are ordered.
const CATEGORY_SMOOTHING: f64 = 10.0;
/// Added to `l2` where many categories are divided.
const CATEGORY_L2: f64 = 10.0;
/// Records of a group of categories.
const CATEGORY_RECORDS: i64 = 100;

/// What a split must have, and what its gain is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SplitRule {
    pub(super) l1: f64,
    pub(super) l2: f64,
    pub(super) min_gain: f64,
    pub(super) min_records: i64,
    pub(super) min_hessian: f64,
    /// The value of a step of the integer gradients and hessians.
    pub(super) gradient_unit: f64,
    pub(super) hessian_unit: f64,
}

/// How a feature divides the records.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// Bins up to this one go left.
    UpTo(usize),
    /// These categories go left.
    Among(Vec<u32>),
}

/// A split of a leaf.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) feature: usize,
    pub(super) condition: Condition,
    /// Whether records without a value go left.
    pub(super) missing_left: bool,
    pub(super) gain: f64,
    pub(super) left: BinSums,
    pub(super) right: BinSums,
}

impl SplitRule {
    /// The value of a leaf, and its share of the gain.
    pub(super) fn leaf_value(&self, gradient: f64, hessian: f64) -> f64 {
        -self.shrunk(gradient) / (hessian + self.l2)
    }

    fn shrunk(&self, gradient: f64) -> f64 {
        if self.l1 == 0.0 { gradient } else { (gradient.abs() - self.l1).max(0.0).copysign(gradient) }
    }

    fn score(&self, sums: BinSums, more_l2: f64) -> f64 {
        let gradient = self.shrunk(sums.gradient as f64 * self.gradient_unit);
        let denominator = sums.hessian as f64 * self.hessian_unit + self.l2 + more_l2;
        if denominator > 0.0 { gradient * gradient / denominator } else { 0.0 }
    }

    fn allows(&self, side: BinSums) -> bool {
        side.count >= self.min_records && side.hessian as f64 * self.hessian_unit >= self.min_hessian
    }

    /// Whether a leaf has enough records for two.
    pub(super) fn allows_split(&self, leaf: BinSums) -> bool {
        leaf.count >= 2 * self.min_records
            && leaf.hessian as f64 * self.hessian_unit >= 2.0 * self.min_hessian
    }

    /// The best split of a leaf by one feature.
    pub(super) fn best_of_feature(
        &self,
        number: usize,
        feature: &Feature,
        bins: &[BinSums],
        leaf: BinSums,
    ) -> Option<Split> {
        let mut best = Best { rule: self, leaf, parent: self.score(leaf, 0.0), feature: number, split: None };
        match feature {
            Feature::Numbers { bounds, has_missing } => {
                let missing = if *has_missing { bins[bounds.len() + 1] } else { BinSums::default() };
                best.try_numbers(&bins[..=bounds.len()], missing);
            }
            Feature::Categories { count } => best.try_categories(&bins[..*count as usize]),
        }
        best.split
    }
}

/// The best split so far.
struct Best<'a> {
    rule: &'a SplitRule,
    leaf: BinSums,
    parent: f64,
    feature: usize,
    split: Option<Split>,
}

impl Best<'_> {
    fn offer(&mut self, left: BinSums, more_l2: f64, make: impl FnOnce() -> (Condition, bool)) {
        let right = self.leaf - left;
        if !self.rule.allows(left) || !self.rule.allows(right) {
            return;
        }
        let gain = self.rule.score(left, more_l2) + self.rule.score(right, more_l2) - self.parent;
        if gain > self.split.as_ref().map_or(self.rule.min_gain.max(0.0), |best| best.gain) {
            let (condition, missing_left) = make();
            self.split = Some(Split { feature: self.feature, condition, missing_left, gain, left, right });
        }
    }

    fn try_numbers(&mut self, bins: &[BinSums], missing: BinSums) {
        // Without missing values, later ones go where most records are.
        let sides: &[Option<bool>] = if missing.count == 0 { &[None] } else { &[Some(false), Some(true)] };
        for &missing_left in sides {
            let mut left = if missing_left == Some(true) { missing } else { BinSums::default() };
            // The last bin alone on the right is a split too, if missing values are on the left; and all numbers on the
            // left, if missing values are alone on the right.
            let end = if missing_left == Some(false) { bins.len() } else { bins.len() - 1 };
            for (bin, sums) in bins[..end].iter().enumerate() {
                // An empty bin changes nothing, so that the split before it counts.
                if sums.count == 0 && bin > 0 {
                    continue;
                }
                left += *sums;
                let (leaf, own) = (self.leaf.count, left.count);
                self.offer(left, 0.0, || (Condition::UpTo(bin), missing_left.unwrap_or(2 * own >= leaf)));
            }
        }
    }

    fn try_categories(&mut self, bins: &[BinSums]) {
        if bins.iter().filter(|bin| bin.count > 0).count() <= ONE_AGAINST_REST {
            for (category, sums) in (0..).zip(bins) {
                self.offer(*sums, 0.0, || (Condition::Among(vec![category]), false));
            }
            return;
        }
        let ratio = |bin: &BinSums| {
            bin.gradient as f64 * self.rule.gradient_unit
                / (bin.hessian as f64 * self.rule.hessian_unit + CATEGORY_SMOOTHING)
        };
        let used = |category: &u32| bins[*category as usize].count as f64 >= CATEGORY_SMOOTHING;
        let mut order: Vec<u32> = (0..bins.len() as u32).filter(used).collect();
        order.sort_by(|a, b| ratio(&bins[*a as usize]).total_cmp(&ratio(&bins[*b as usize])).then(a.cmp(b)));
        let limit = LEFT_CATEGORIES.min(order.len().div_ceil(2));
        for is_reversed in [false, true] {
            if is_reversed {
                order.reverse();
            }
            let (mut left, mut group) = (BinSums::default(), 0);
            for taken in 0..limit {
                left += bins[order[taken] as usize];
                group += bins[order[taken] as usize].count;
                if group < CATEGORY_RECORDS || self.leaf.count - left.count < CATEGORY_RECORDS {
                    continue;
                }
                group = 0;
                self.offer(left, CATEGORY_L2, || {
                    let mut among = order[..=taken].to_vec();
                    among.sort_unstable();
                    (Condition::Among(among), false)
                });
            }
        }
    }
}
