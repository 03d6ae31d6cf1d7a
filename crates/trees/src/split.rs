//! The best split of a leaf, from its histogram (Ke et al., "LightGBM", NIPS 2017, and its code for categories). Of equal
//! gains the first counts: by feature, then by bin. Servers and tasks find splits by this code.

#![allow(clippy::inline_always, reason = "only inlined in a loop does it become vector instructions")]

use std::ops::Range;

use math::hash::combine;
use math::random::{NamedDraws, Purpose};
use multiversion::multiversion;

use super::histogram::{BinSums, Sums};

/// Categories up to which each is tried against all others.
const ONE_AGAINST_REST: usize = 4;
/// Largest number of categories on the left.
pub(super) const LEFT_CATEGORIES: usize = 32;
/// Added to the hessian of a category when categories are ordered.
const CATEGORY_SMOOTHING: f64 = 10.0;
/// Added to `l2` where many categories are divided.
const CATEGORY_L2: f64 = 10.0;
/// Records of a group of categories.
const CATEGORY_RECORDS: i64 = 100;

/// What a split must have, and what its gain is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SplitRule {
    pub(super) l1: f64,
    pub(super) l2: f64,
    pub(super) min_gain: f64,
    pub(super) min_records: i64,
    pub(super) min_hessian: f64,
    /// Records by which the value of a leaf is moved halfway to that of its parent; 0: not at all.
    pub(super) smoothing: f64,
    /// Seed and round of the draws of the one split of each feature that is tried; `None`: all are.
    pub(super) extra_draws: Option<(u64, u64)>,
    /// The value of a step of the integer gradients and hessians.
    pub(super) gradient_unit: f64,
    pub(super) hessian_unit: f64,
}

/// What the bins of a feature are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinKind {
    /// Ascending numbers; records that have none are in a bin after them, if there may be some.
    Numbers { has_missing: bool },
    /// Categories; records that have none are in a bin after them, and always go right.
    Categories,
}

/// The bins of a feature, as a split sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FeatureBins {
    pub(super) number: u32,
    /// All bins, with that of missing values.
    pub(super) count: u32,
    pub(super) kind: BinKind,
    /// Whether predictions may only rise (1) or fall (-1) with the feature; 0: any.
    pub(super) monotone: i8,
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
    pub(super) feature: u32,
    pub(super) condition: Condition,
    /// Whether records without a value go left.
    pub(super) missing_left: bool,
    pub(super) gain: f64,
    pub(super) left: Sums,
    pub(super) right: Sums,
}

/// A leaf for which a split is sought.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeafQuery {
    pub(super) sums: Sums,
    /// The value of the leaf, as [`SplitRule::output`] gives it.
    pub(super) output: f64,
    /// The values of its leaves are between these.
    pub(super) limits: [f64; 2],
    /// The name of the leaf for random draws.
    pub(super) name: u64,
    /// A bit for each feature that may be used; empty: all.
    pub(super) allowed: Vec<u8>,
}

/// No limits of the values of a leaf.
pub(super) const NO_LIMITS: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

impl LeafQuery {
    pub(super) fn allows(&self, feature: u32) -> bool {
        self.allowed.is_empty() || self.allowed[feature as usize / 8] >> (feature % 8) & 1 == 1
    }
}

impl SplitRule {
    /// The value of a leaf with these sums of gradients and hessians, without smoothing and limits.
    pub(super) fn leaf_value(&self, gradient: f64, hessian: f64) -> f64 {
        let value = -self.shrunk(gradient) / (hessian + self.l2);
        if value.is_finite() { value } else { 0.0 }
    }

    /// A value of a leaf, smoothed towards that of its parent and within its limits.
    pub(super) fn bounded(&self, value: f64, count: f64, parent: f64, limits: [f64; 2]) -> f64 {
        let value = if self.smoothing > 0.0 {
            let weight = count / self.smoothing;
            (value * weight + parent) / (weight + 1.0)
        } else {
            value
        };
        value.max(limits[0]).min(limits[1])
    }

    /// The value of a child of a leaf.
    pub(super) fn output(&self, sums: Sums, parent: f64, limits: [f64; 2]) -> f64 {
        let value = self.leaf_value(self.gradient(sums), self.hessian(sums));
        self.bounded(value, sums.count as f64, parent, limits)
    }

    fn gradient(&self, sums: Sums) -> f64 {
        sums.gradient as f64 * self.gradient_unit
    }

    pub(super) fn hessian(&self, sums: Sums) -> f64 {
        sums.hessian as f64 * self.hessian_unit
    }

    fn shrunk(&self, gradient: f64) -> f64 {
        if self.l1 == 0.0 { gradient } else { (gradient.abs() - self.l1).max(0.0).copysign(gradient) }
    }

    fn score(&self, sums: Sums, more_l2: f64) -> f64 {
        let gradient = self.shrunk(self.gradient(sums));
        let denominator = self.hessian(sums) + self.l2 + more_l2;
        if denominator > 0.0 { gradient * gradient / denominator } else { 0.0 }
    }

    /// The part of the gain of records with this value.
    fn score_of_value(&self, sums: Sums, value: f64, more_l2: f64) -> f64 {
        let gradient = self.shrunk(self.gradient(sums));
        -(2.0 * gradient * value + (self.hessian(sums) + self.l2 + more_l2) * value * value)
    }

    fn allows(&self, side: Sums) -> bool {
        side.count >= self.min_records && self.hessian(side) >= self.min_hessian
    }

    /// Whether a leaf has enough records for two.
    pub(super) fn allows_split(&self, leaf: Sums) -> bool {
        leaf.count >= 2 * self.min_records && self.hessian(leaf) >= 2.0 * self.min_hessian
    }
}

/// Numbers that the search for a split of a feature needs.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    gradients: Vec<i64>,
    hessians: Vec<i64>,
    counts: Vec<i64>,
    gains: Vec<f64>,
}

/// Seeks the best split of a leaf.
pub(super) struct SplitSearch<'a> {
    rule: &'a SplitRule,
    leaf: &'a LeafQuery,
    scratch: &'a mut Scratch,
    /// Whether values of leaves are neither smoothed nor limited.
    is_plain: bool,
    parent: f64,
    best: Option<Split>,
}

impl<'a> SplitSearch<'a> {
    pub(super) fn new(rule: &'a SplitRule, leaf: &'a LeafQuery, scratch: &'a mut Scratch) -> Self {
        let is_plain = rule.smoothing == 0.0 && leaf.limits == NO_LIMITS;
        let parent = if is_plain {
            rule.score(leaf.sums, 0.0)
        } else {
            rule.score_of_value(leaf.sums, leaf.output, 0.0)
        };
        Self { rule, leaf, scratch, is_plain, parent, best: None }
    }

    pub(super) fn end(self) -> Option<Split> {
        self.best
    }

    /// Tries the splits by a feature, from the sums of its bins.
    pub(super) fn try_feature(&mut self, feature: &FeatureBins, bins: BinSums<'_>) {
        if !self.leaf.allows(feature.number) {
            return;
        }
        match feature.kind {
            BinKind::Numbers { has_missing } => {
                let count = bins.len() - usize::from(has_missing);
                let missing = if has_missing { bins.of(count) } else { Sums::default() };
                self.try_numbers(feature, bins.slice(0..count), missing);
            }
            BinKind::Categories => self.try_categories(feature, bins.slice(0..bins.len() - 1)),
        }
    }

    /// The one split of `count` that is tried, if only one is.
    fn drawn(&self, feature: &FeatureBins, count: usize) -> Option<usize> {
        let (seed, round) = self.rule.extra_draws?;
        let draws = NamedDraws::new(seed, Purpose::Sample, round);
        let name = combine(self.leaf.name, u64::from(feature.number));
        Some(draws.of(name).below(count.max(1) as u64) as usize)
    }

    fn gain(&self, feature: &FeatureBins, left: Sums, right: Sums, more_l2: f64) -> f64 {
        if !self.rule.allows(left) || !self.rule.allows(right) {
            return f64::NEG_INFINITY;
        }
        if self.is_plain && feature.monotone == 0 {
            return self.rule.score(left, more_l2) + self.rule.score(right, more_l2) - self.parent;
        }
        let [on_left, on_right] =
            [left, right].map(|side| self.rule.output(side, self.leaf.output, self.leaf.limits));
        if f64::from(feature.monotone) * (on_right - on_left) < 0.0 {
            return f64::NEG_INFINITY;
        }
        self.rule.score_of_value(left, on_left, more_l2) + self.rule.score_of_value(right, on_right, more_l2)
            - self.parent
    }

    fn least_gain(&self) -> f64 {
        /// A share of the gain of a leaf that is nothing but rounding.
        const ROUNDING: f64 = 1e-12;
        let least = self.rule.min_gain.max(ROUNDING * self.parent.abs());
        self.best.as_ref().map_or(least, |best| best.gain)
    }

    fn offer(
        &mut self,
        feature: &FeatureBins,
        (gain, left): (f64, Sums),
        make: impl FnOnce() -> (Condition, bool),
    ) {
        if gain > self.least_gain() {
            let (condition, missing_left) = make();
            let right = self.leaf.sums - left;
            self.best = Some(Split { feature: feature.number, condition, missing_left, gain, left, right });
        }
    }

    fn try_numbers(&mut self, feature: &FeatureBins, bins: BinSums<'_>, missing: Sums) {
        // Without missing values, later ones go where most records are.
        let sides: &[Option<bool>] = if missing.count == 0 { &[None] } else { &[Some(false), Some(true)] };
        for &missing_left in sides {
            let start = if missing_left == Some(true) { missing } else { Sums::default() };
            // The last bin alone on the right is a split too, if missing values are on the left; and all numbers on the
            // left, if missing values are alone on the right.
            let end = if missing_left == Some(false) { bins.len() } else { bins.len() - 1 };
            let drawn = self.drawn(feature, end);
            let Some((bin, gain)) = self.best_bin(feature, bins.slice(0..end), start, drawn) else {
                continue;
            };
            let left = self.scratch.sums(bin);
            let is_left = missing_left.unwrap_or(2 * left.count >= self.leaf.sums.count);
            self.offer(feature, (gain, left), || (Condition::UpTo(bin), is_left));
        }
    }

    /// The first of the best splits after a bin, or the drawn one, and its gain. `start`: what is on the left before the first.
    fn best_bin(
        &mut self,
        feature: &FeatureBins,
        bins: BinSums<'_>,
        start: Sums,
        drawn: Option<usize>,
    ) -> Option<(usize, f64)> {
        self.scratch.add_up(bins, start);
        if let Some(bin) = drawn.filter(|bin| *bin < bins.len()) {
            let left = self.scratch.sums(bin);
            return Some((bin, self.gain(feature, left, self.leaf.sums - left, 0.0)));
        }
        let range = self.scratch.allowed(self.rule, self.leaf.sums);
        let most = if self.is_plain && feature.monotone == 0 && self.rule.l1 == 0.0 {
            let leaf = (self.leaf.sums.gradient, self.leaf.sums.hessian);
            let units = (self.rule.gradient_unit, self.rule.hessian_unit);
            let sums = (&self.scratch.gradients[range.clone()], &self.scratch.hessians[range.clone()]);
            plain_gains(sums, leaf, units, self.rule.l2, self.parent, &mut self.scratch.gains[range.clone()])
        } else {
            let mut most = f64::NEG_INFINITY;
            for bin in range.clone() {
                let left = self.scratch.sums(bin);
                let gain = self.gain(feature, left, self.leaf.sums - left, 0.0);
                self.scratch.gains[bin] = gain;
                most = most.max(gain);
            }
            most
        };
        if most <= self.least_gain() {
            return None;
        }
        // An empty bin changes nothing, so that the split before it, which has the same gain, counts.
        let bin = range.start + self.scratch.gains[range].iter().position(|gain| *gain == most)?;
        Some((bin, most))
    }

    fn try_categories(&mut self, feature: &FeatureBins, bins: BinSums<'_>) {
        let leaf = self.leaf.sums;
        if bins.counts.iter().filter(|count| **count > 0).count() <= ONE_AGAINST_REST {
            let drawn = self.drawn(feature, bins.len());
            for category in (0..bins.len()).filter(|category| drawn.is_none_or(|drawn| drawn == *category)) {
                let left = bins.of(category);
                let gain = self.gain(feature, left, leaf - left, 0.0);
                self.offer(feature, (gain, left), || (Condition::Among(vec![category as u32]), false));
            }
            return;
        }
        let rule = self.rule;
        let ratio = |category: u32| {
            let sums = bins.of(category as usize);
            rule.gradient(sums) / (rule.hessian(sums) + CATEGORY_SMOOTHING)
        };
        let used = |category: &u32| bins.counts[*category as usize] as f64 >= CATEGORY_SMOOTHING;
        let mut order: Vec<u32> = (0..bins.len() as u32).filter(used).collect();
        order.sort_by(|a, b| ratio(*a).total_cmp(&ratio(*b)).then(a.cmp(b)));
        let limit = LEFT_CATEGORIES.min(order.len().div_ceil(2));
        let drawn = self.drawn(feature, limit);
        for is_reversed in [false, true] {
            if is_reversed {
                order.reverse();
            }
            let (mut left, mut group) = (Sums::default(), 0);
            for taken in 0..limit {
                left += bins.of(order[taken] as usize);
                group += bins.counts[order[taken] as usize];
                if group < CATEGORY_RECORDS || leaf.count - left.count < CATEGORY_RECORDS {
                    continue;
                }
                group = 0;
                if drawn.is_some_and(|drawn| drawn > taken) {
                    continue;
                }
                let gain = self.gain(feature, left, leaf - left, CATEGORY_L2);
                self.offer(feature, (gain, left), || {
                    let mut among = order[..=taken].to_vec();
                    among.sort_unstable();
                    (Condition::Among(among), false)
                });
                if drawn.is_some() {
                    break;
                }
            }
        }
    }
}

impl Scratch {
    /// Sets each sum to that of the bins up to its own, and makes room for the gains.
    fn add_up(&mut self, bins: BinSums<'_>, start: Sums) {
        let count = bins.len();
        for list in [&mut self.gradients, &mut self.hessians, &mut self.counts] {
            list.resize(count, 0);
        }
        self.gains.resize(count, 0.0);
        let out = self.gradients.iter_mut().zip(&mut self.hessians).zip(&mut self.counts);
        let own = bins.gradients.iter().zip(bins.hessians).zip(bins.counts);
        let mut sum = start;
        for (((gradients, hessians), counts), ((gradient, hessian), count)) in out.zip(own) {
            sum += Sums { gradient: *gradient, hessian: *hessian, count: *count };
            (*gradients, *hessians, *counts) = (sum.gradient, sum.hessian, sum.count);
        }
    }

    /// The sums of the bins up to this one.
    fn sums(&self, bin: usize) -> Sums {
        Sums { gradient: self.gradients[bin], hessian: self.hessians[bin], count: self.counts[bin] }
    }

    /// The bins after which a split leaves enough on both sides: counts and hessians only rise.
    fn allowed(&self, rule: &SplitRule, leaf: Sums) -> Range<usize> {
        let hessian = |sum: i64| sum as f64 * rule.hessian_unit;
        let first = self.counts.partition_point(|count| *count < rule.min_records);
        let end = self.counts.partition_point(|count| leaf.count - count >= rule.min_records);
        let first = first.max(self.hessians.partition_point(|sum| hessian(*sum) < rule.min_hessian));
        let end =
            end.min(self.hessians.partition_point(|sum| hessian(leaf.hessian - sum) >= rule.min_hessian));
        first..end.max(first)
    }
}

/// Sets the gains of splits whose sides have the best values, from the sums on the left, and returns the largest. The sums
/// are below 2^51.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn plain_gains(
    (gradients, hessians): (&[i64], &[i64]),
    leaf: (i64, i64),
    units: (f64, f64),
    l2: f64,
    parent: f64,
    gains: &mut [f64],
) -> f64 {
    let mut most = f64::NEG_INFINITY;
    for ((g, h), gain) in gradients.iter().zip(hessians).zip(gains) {
        let (left_gradient, left_hessian) = (double(*g) * units.0, double(*h) * units.1 + l2);
        let (right_gradient, right_hessian) =
            (double(leaf.0 - g) * units.0, double(leaf.1 - h) * units.1 + l2);
        let (left, right) =
            (left_gradient * left_gradient / left_hessian, right_gradient * right_gradient / right_hessian);
        let (left, right) =
            (if left_hessian > 0.0 { left } else { 0.0 }, if right_hessian > 0.0 { right } else { 0.0 });
        let all = left + right - parent;
        *gain = all;
        most = if all > most { all } else { most };
    }
    most
}

/// An integer below 2^51 as a double, by vector instructions that every machine has.
#[inline(always)]
fn double(x: i64) -> f64 {
    /// A whole number in its last bits becomes a double by subtraction.
    const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5 x 2^52
    f64::from_bits(ROUNDER.to_bits().wrapping_add(x as u64)) - ROUNDER
}
