//! The pull function that finds the best splits of leaves at the partitions, and how rules, leaves and splits travel.

use matrix::function::{Arity, Columns, FunctionValue, Shape};
use matrix::{ElementType, FunctionFault, PullFunction};

use super::super::split::{Condition, LeafQuery, Scratch, Split, SplitRule, SplitSearch};
use super::layout::{SLOT_ROWS, described};
use super::sums::{BinSums, Sums};

/// Finds the best split of each leaf, of equal ones the first. It reads the row of the features, then the rows of the slot
/// of each leaf.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct BestSplits;

impl PullFunction for BestSplits {
    type Argument = (SplitRule, Vec<LeafQuery>);
    type Partial = Vec<Option<Split>>;
    type Answer = Vec<Option<Split>>;

    fn name(&self) -> &'static str {
        "best_splits"
    }

    fn reads(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn check(&self, (_, leaves): &Self::Argument, shape: &Shape) -> Result<(), FunctionFault> {
        let rows = 1 + SLOT_ROWS as usize * leaves.len();
        if shape.element == ElementType::I64 && shape.from == rows {
            return Ok(());
        }
        let actual = format!("{} rows of {:?}", shape.from, shape.element);
        Err(FunctionFault::argument("rows", actual, format!("{rows} of i64 for {} leaves", leaves.len())))
    }

    fn read(
        &self,
        (rule, leaves): &Self::Argument,
        columns: &Columns<'_>,
    ) -> Result<Self::Partial, FunctionFault> {
        let features = columns.typed::<i64>(0)?;
        let (mut splits, mut scratch) = (Vec::with_capacity(leaves.len()), Scratch::default());
        for (i, leaf) in leaves.iter().enumerate() {
            let first = 1 + SLOT_ROWS as usize * i;
            let bins = BinSums {
                gradients: columns.typed(first)?,
                hessians: columns.typed(first + 1)?,
                counts: columns.typed(first + 2)?,
            };
            let (mut search, mut at) = (SplitSearch::new(rule, leaf, &mut scratch), 0);
            while let Some(feature) = features.get(at).and_then(|code| described(*code)) {
                let end = at + feature.count as usize;
                if end > features.len() {
                    return Err(FunctionFault::argument(
                        "partition",
                        "a part of a feature",
                        "whole features",
                    ));
                }
                search.try_feature(&feature, bins.slice(at..end));
                at = end;
            }
            splits.push(search.end());
        }
        Ok(splits)
    }

    fn merge(
        &self,
        (_, leaves): &Self::Argument,
        _shape: &Shape,
        parts: Vec<Self::Partial>,
    ) -> Result<Self::Answer, FunctionFault> {
        let mut best: Self::Answer = vec![None; leaves.len()];
        for part in parts {
            for (best, split) in best.iter_mut().zip(part) {
                // Partitions come in the order of features.
                if let Some(split) = split
                    && best.as_ref().is_none_or(|best| split.gain > best.gain)
                {
                    *best = Some(split);
                }
            }
        }
        Ok(best)
    }
}

impl FunctionValue for Sums {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.gradient, self.hessian, self.count).pack(out);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let (gradient, hessian, count) = FunctionValue::unpack(bytes)?;
        Ok(Self { gradient, hessian, count })
    }

    fn is_finite(&self) -> bool {
        true
    }
}

impl FunctionValue for SplitRule {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.l1, self.l2, self.smoothing).pack(out);
        (self.min_gain, self.min_hessian, self.min_records).pack(out);
        (self.gradient_unit, self.hessian_unit, self.extra_draws).pack(out);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let (l1, l2, smoothing) = FunctionValue::unpack(bytes)?;
        let (min_gain, min_hessian, min_records) = FunctionValue::unpack(bytes)?;
        let (gradient_unit, hessian_unit, extra_draws) = FunctionValue::unpack(bytes)?;
        Ok(Self {
            l1,
            l2,
            min_gain,
            min_records,
            min_hessian,
            smoothing,
            extra_draws,
            gradient_unit,
            hessian_unit,
        })
    }

    fn is_finite(&self) -> bool {
        true
    }
}

impl FunctionValue for LeafQuery {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.sums, self.output, self.name).pack(out);
        (self.limits[0], self.limits[1]).pack(out);
        self.allowed.pack(out);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let (sums, output, name) = FunctionValue::unpack(bytes)?;
        let (low, high) = FunctionValue::unpack(bytes)?;
        let allowed = FunctionValue::unpack(bytes)?;
        Ok(Self { sums, output, limits: [low, high], name, allowed })
    }

    fn is_finite(&self) -> bool {
        true
    }
}

impl FunctionValue for Split {
    fn pack(&self, out: &mut Vec<u8>) {
        let (bin, categories) = match &self.condition {
            Condition::UpTo(bin) => (Some(*bin as u64), &[][..]),
            Condition::Among(categories) => (None, &categories[..]),
        };
        (self.feature, self.missing_left, self.gain).pack(out);
        (self.left, self.right).pack(out);
        (bin, categories.to_vec()).pack(out);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let (feature, missing_left, gain) = FunctionValue::unpack(bytes)?;
        let (left, right) = FunctionValue::unpack(bytes)?;
        let (bin, categories) = <(Option<u64>, Vec<u32>)>::unpack(bytes)?;
        let condition = bin.map_or(Condition::Among(categories), |bin| Condition::UpTo(bin as usize));
        Ok(Self { feature, condition, missing_left, gain, left, right })
    }

    fn is_finite(&self) -> bool {
        self.gain.is_finite()
    }
}
