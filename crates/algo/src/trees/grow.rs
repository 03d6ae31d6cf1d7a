//! Grows a tree leaf by leaf: the leaf whose best split gains most is split next (leaf-wise growth, Shi, 2007).

use std::ops::Range;

use super::exchange::Exchange;
use super::histogram::BinSums;
use super::records::Records;
use super::split::{Condition, Split, SplitRule};
use super::tree::{Node, Test, Tree};
use crate::error::Error;

use super::bins::Feature;

/// Limits of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeLimits {
    pub(super) leaves: usize,
    pub(super) depth: usize,
}

/// A leaf of a growing tree.
struct Leaf {
    node: usize,
    depth: usize,
    /// The places of its records of this task in the order of records.
    range: Range<usize>,
    sums: BinSums,
    /// Taken when its children have theirs.
    histogram: Vec<BinSums>,
    split: Option<Split>,
}

/// Scratch memory for trees.
#[derive(Debug, Default)]
pub(super) struct Grower {
    /// The records, those of a leaf together and in ascending order.
    order: Vec<u32>,
    moved: Vec<u32>,
    words: Vec<u64>,
    free: Vec<Vec<BinSums>>,
}

/// A grown tree, whose leaves have no values yet, with the records of each leaf.
pub(super) struct Grown<'a> {
    pub(super) tree: Tree,
    /// Node and records of each leaf.
    pub(super) leaves: Vec<(usize, &'a [u32])>,
}

impl Grower {
    /// Grows a tree on these records, by the features that are drawn; `packed` has a word for each record of the task.
    pub(super) fn grow(
        &mut self,
        records: &Records,
        packed: &[u64],
        sample: impl Iterator<Item = u32>,
        (rule, limits, is_drawn): (&SplitRule, TreeLimits, &[bool]),
        exchange: &mut Exchange<'_>,
    ) -> Result<Grown<'_>, Error> {
        self.order.clear();
        self.order.extend(sample);
        let range = 0..self.order.len();
        let histogram = self.histogram(records, packed, range.clone(), exchange)?;
        let sums = histogram[histogram.len() - 1];
        let node = |sums: BinSums| Node::leaf(sums.hessian as f64 * rule.hessian_unit, sums.count as f64);
        let mut tree = vec![node(sums)];
        let mut leaves = vec![Leaf { node: 0, depth: 0, range, sums, histogram, split: None }];
        let find = |leaf: &mut Leaf| find_split(records, is_drawn, (rule, limits), leaf);
        find(&mut leaves[0]);
        while leaves.len() < limits.leaves {
            let Some(best) = best_leaf(&leaves) else { break };
            let leaf = &mut leaves[best];
            let split = leaf.split.take().expect("the best leaf has a split");
            let middle = self.partition(records, leaf.range.clone(), &split);
            let (left, right) = (leaf.range.start..middle, middle..leaf.range.end);
            let is_left_smaller = split.left.count <= split.right.count;
            let small = self.histogram(
                records,
                packed,
                if is_left_smaller { left.clone() } else { right.clone() },
                exchange,
            )?;
            let mut large = std::mem::take(&mut leaf.histogram);
            large.iter_mut().zip(&small).for_each(|(large, small)| *large = *large - *small);
            let (first, second) = if is_left_smaller { (small, large) } else { (large, small) };
            let (parent, depth, next) = (leaf.node, leaf.depth + 1, tree.len());
            set_split(&mut tree[parent], &split, records.features(), next);
            tree.extend([node(split.left), node(split.right)]);
            let child =
                |node, range, sums, histogram| Leaf { node, depth, range, sums, histogram, split: None };
            leaves[best] = child(next, left, split.left, first);
            leaves.push(child(next + 1, right, split.right, second));
            find(&mut leaves[best]);
            let last = leaves.len() - 1;
            find(&mut leaves[last]);
        }
        self.free.extend(leaves.iter_mut().map(|leaf| std::mem::take(&mut leaf.histogram)));
        let leaves = leaves.into_iter().map(|leaf| (leaf.node, &self.order[leaf.range])).collect();
        Ok(Grown { tree, leaves })
    }

    /// The histogram of some records of all tasks; its last element has the sums of all.
    fn histogram(
        &mut self,
        records: &Records,
        packed: &[u64],
        range: Range<usize>,
        exchange: &mut Exchange<'_>,
    ) -> Result<Vec<BinSums>, Error> {
        let bin_count = records.starts()[records.features().len()] as usize;
        let mut out = self.free.pop().unwrap_or_default();
        out.resize(bin_count + 1, BinSums::default());
        let leaf = &self.order[range];
        records.histogram(leaf, packed, &mut self.words, &mut out[..bin_count]);
        out[bin_count] = super::histogram::total(leaf, packed);
        exchange.sum_bins(&mut out)?;
        Ok(out)
    }

    /// Moves the records of a leaf that go left before the others, and returns where the others begin.
    fn partition(&mut self, records: &Records, range: Range<usize>, split: &Split) -> usize {
        let goes_left = left_bins(&records.features()[split.feature], split);
        let (order, moved) = (&mut self.order[range.clone()], &mut self.moved);
        if moved.len() < order.len() {
            moved.resize(order.len(), 0);
        }
        let (mut kept, mut gone) = (0, 0);
        records.for_each_bin(order, split.feature, |order, i, bin| {
            // Without branches: where a record goes cannot be predicted.
            let record = order[i];
            let is_left = usize::from(goes_left[bin]);
            order[kept] = record;
            moved[gone] = record;
            kept += is_left;
            gone += 1 - is_left;
        });
        order[kept..].copy_from_slice(&moved[..gone]);
        range.start + kept
    }
}

/// The leaf whose split gains most; of equal ones the first.
fn best_leaf(leaves: &[Leaf]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (i, leaf) in leaves.iter().enumerate() {
        if let Some(split) = &leaf.split
            && best.is_none_or(|(_, gain)| split.gain > gain)
        {
            best = Some((i, split.gain));
        }
    }
    best.map(|(i, _)| i)
}

fn find_split(
    records: &Records,
    is_drawn: &[bool],
    (rule, limits): (&SplitRule, TreeLimits),
    leaf: &mut Leaf,
) {
    if leaf.depth >= limits.depth || !rule.allows_split(leaf.sums) {
        return;
    }
    let starts = records.starts();
    for (number, feature) in records.features().iter().enumerate().filter(|(number, _)| is_drawn[*number]) {
        let bins = &leaf.histogram[starts[number] as usize..starts[number + 1] as usize];
        let found = rule.best_of_feature(number, feature, bins, leaf.sums);
        if let Some(found) = found
            && leaf.split.as_ref().is_none_or(|best| found.gain > best.gain)
        {
            leaf.split = Some(found);
        }
    }
}

/// For each bin of the feature of a split, whether it goes left.
fn left_bins(feature: &Feature, split: &Split) -> Vec<bool> {
    let mut bins = vec![false; feature.bin_count()];
    match (&split.condition, feature) {
        (Condition::UpTo(bin), Feature::Numbers { bounds, has_missing }) => {
            bins[..=*bin].fill(true);
            if *has_missing {
                bins[bounds.len() + 1] = split.missing_left;
            }
        }
        (Condition::Among(categories), _) => {
            for category in categories {
                bins[*category as usize] = true;
            }
        }
        (Condition::UpTo(_), Feature::Categories { .. }) => unreachable!("categories have no order"),
    }
    bins
}

/// Makes a leaf a node with two children, which follow each other.
fn set_split(node: &mut Node, split: &Split, features: &[Feature], left: usize) {
    node.feature = split.feature as u32;
    node.missing_left = split.missing_left;
    (node.left, node.right) = (left as u32, left as u32 + 1);
    node.gain = split.gain;
    node.test = match (&split.condition, &features[split.feature]) {
        (Condition::UpTo(bin), Feature::Numbers { bounds, .. }) => {
            // All numbers go left, and missing ones right.
            Test::UpTo(bounds.get(*bin).copied().unwrap_or(f32::MAX))
        }
        (Condition::Among(categories), feature) => {
            let mut words = vec![0u64; feature.word_count()];
            for category in categories {
                words[*category as usize / 64] |= 1 << (category % 64);
            }
            Test::Among(words)
        }
        (Condition::UpTo(_), Feature::Categories { .. }) => unreachable!("categories have no order"),
    };
}
