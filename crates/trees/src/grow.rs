//! Grows a tree: the leaf whose best split gains most is split next (leaf-wise growth, Shi, 2007), or the leaves of one
//! level after those of the level above.
//!
//! The split of a leaf does not depend on those of other leaves. So where tasks wait for each other, several leaves are
//! split at a time, before it is their turn: the tree is the same, and the few splits whose turn never comes are dropped.

use std::ops::Range;

use math::hash::combine;

use super::bins::Feature;
use super::histogram::store::Histograms;
use super::histogram::{NewHistogram, Sums, total};
use super::records::Records;
use super::sampling::FeatureSample;
use super::split::{Condition, LeafQuery, NO_LIMITS, Split, SplitRule};
use super::tree::{Node, Test, Tree};
use algo::error::Error;
use algo::exchange::Exchange;

/// How a tree grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeSize {
    pub(super) leaves: usize,
    pub(super) depth: usize,
    /// Level by level; otherwise the leaf whose split gains most is next.
    pub(super) is_depth_wise: bool,
}

/// What a tree grows from.
#[derive(Clone, Copy)]
pub(super) struct TreeInput<'a> {
    pub(super) records: &'a Records,
    /// A word for each record of the task.
    pub(super) packed: &'a [u64],
    pub(super) rule: &'a SplitRule,
    pub(super) size: TreeSize,
    pub(super) sample: &'a FeatureSample<'a>,
}

/// A leaf of a growing tree.
#[derive(Debug)]
struct Leaf {
    node: usize,
    depth: usize,
    /// The places of its records of this task in the order of records.
    range: Range<usize>,
    query: LeafQuery,
    /// The value of its parent.
    parent: f64,
    /// The features of the splits above it, if only some may meet.
    used: Vec<u32>,
    slot: usize,
    split: Option<Split>,
    /// The leaves of its split, if they were made already.
    children: Option<Box<[Leaf; 2]>>,
}

/// A grown tree, whose leaves have no values yet.
pub(super) struct Grown<'a> {
    pub(super) tree: Tree,
    pub(super) leaves: Vec<GrownLeaf<'a>>,
}

/// A leaf, with its records of this task.
pub(super) struct GrownLeaf<'a> {
    pub(super) node: usize,
    pub(super) records: &'a [u32],
    /// What the value of the leaf must be between, and the value of its parent.
    pub(super) limits: [f64; 2],
    pub(super) parent: f64,
}

/// Memory of growing trees.
#[derive(Debug)]
pub(super) struct Grower {
    /// The records, those of a leaf together.
    order: Vec<u32>,
    moved: Vec<u32>,
    histograms: Histograms,
}

impl Grower {
    pub(super) fn new(histograms: Histograms) -> Self {
        Self { order: Vec::new(), moved: Vec::new(), histograms }
    }

    /// Grows a tree on these records.
    pub(super) fn grow(
        &mut self,
        input: TreeInput<'_>,
        records: impl Iterator<Item = u32>,
        exchange: &mut Exchange<'_>,
    ) -> Result<Grown<'_>, Error> {
        self.order.clear();
        self.order.extend(records);
        let Self { order, moved, histograms } = self;
        let mut growing = GrowingTree {
            input,
            order,
            moved,
            histograms,
            exchange,
            leaves: Vec::new(),
            tree: Vec::new(),
            slots: 1,
        };
        growing.add_root()?;
        while growing.leaves.len() < input.size.leaves {
            let Some(&next) = growing.ranking().first() else { break };
            if growing.leaves[next].children.is_none() {
                growing.split(&growing.batch())?;
            }
            growing.take_children(next);
        }
        let (tree, leaves) = (growing.tree, growing.leaves);
        let leaves = leaves.into_iter().map(|leaf| GrownLeaf {
            node: leaf.node,
            records: &self.order[leaf.range],
            limits: leaf.query.limits,
            parent: leaf.parent,
        });
        Ok(Grown { leaves: leaves.collect(), tree })
    }
}

/// A growing tree.
struct GrowingTree<'a, 'b> {
    input: TreeInput<'a>,
    order: &'a mut Vec<u32>,
    moved: &'a mut Vec<u32>,
    histograms: &'a mut Histograms,
    exchange: &'a mut Exchange<'b>,
    leaves: Vec<Leaf>,
    tree: Tree,
    /// Slots of histograms that are taken.
    slots: usize,
}

impl GrowingTree<'_, '_> {
    fn add_root(&mut self) -> Result<(), Error> {
        let TreeInput { records, packed, rule, sample, .. } = self.input;
        let own = total(self.order, packed);
        let mut sums = [own.gradient, own.hessian, own.count];
        self.exchange.sum(&mut sums)?;
        let sums = Sums { gradient: sums[0], hessian: sums[1], count: sums[2] };
        let output = rule.output(sums, 0.0, NO_LIMITS);
        let query = LeafQuery { sums, output, limits: NO_LIMITS, name: 0, allowed: sample.allowed(0, &[]) };
        self.tree.push(self.node(sums));
        let (range, used) = (0..self.order.len(), Vec::new());
        let mut root = Leaf {
            node: 0,
            depth: 0,
            range,
            query,
            parent: output,
            used,
            slot: 0,
            split: None,
            children: None,
        };
        let new = NewHistogram { slot: 0, parent: None, records: self.order };
        self.histograms.fill(records, packed, &[new], self.exchange)?;
        if self.may_split(&root) {
            let splits = self.histograms.best_splits(rule, &[(0, &root.query)], self.exchange)?;
            root.split = splits.into_iter().next().flatten();
        }
        self.leaves.push(root);
        Ok(())
    }

    fn node(&self, sums: Sums) -> Node {
        Node::leaf(self.input.rule.hessian(sums), sums.count as f64)
    }

    fn may_split(&self, leaf: &Leaf) -> bool {
        leaf.depth < self.input.size.depth && self.input.rule.allows_split(leaf.query.sums)
    }

    /// The leaves that have a split, the one that is next first; of equal ones the first.
    fn ranking(&self) -> Vec<usize> {
        let gain = |i: &usize| self.leaves[*i].split.as_ref().map_or(0.0, |split| split.gain);
        let mut order: Vec<usize> =
            (0..self.leaves.len()).filter(|i| self.leaves[*i].split.is_some()).collect();
        if self.input.size.is_depth_wise {
            order.sort_by_key(|i| (self.leaves[*i].depth, self.leaves[*i].node));
        } else {
            order.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then(a.cmp(b)));
        }
        order
    }

    /// The leaves to split now: the next one, and where tasks wait for each other those that will probably follow it.
    fn batch(&self) -> Vec<usize> {
        let is_open = |i: &usize| self.leaves[*i].children.is_none();
        let rest = self.input.size.leaves - self.leaves.len();
        // Every split to come must find a slot.
        let spare = (self.histograms.capacity() - self.slots).saturating_sub(rest);
        let likely = if self.input.size.is_depth_wise { rest } else { rest.div_ceil(4).min(1 + spare) };
        let count = if self.histograms.is_shared() { likely } else { 1 };
        self.ranking().into_iter().filter(is_open).take(count).collect()
    }

    /// Makes the children of some leaves.
    fn split(&mut self, batch: &[usize]) -> Result<(), Error> {
        let mut children: Vec<[Leaf; 2]> = batch.iter().map(|&leaf| self.divide(leaf)).collect();
        let small = |pair: &[Leaf; 2]| usize::from(pair[0].query.sums.count > pair[1].query.sums.count);
        let new: Vec<NewHistogram<'_>> = children
            .iter()
            .map(|pair| {
                let (small, large) = (&pair[small(pair)], &pair[1 - small(pair)]);
                let records = &self.order[small.range.clone()];
                NewHistogram { slot: small.slot, parent: Some(large.slot), records }
            })
            .collect();
        let TreeInput { records, packed, rule, .. } = self.input;
        self.histograms.fill(records, packed, &new, self.exchange)?;
        let mut open: Vec<&mut Leaf> =
            children.iter_mut().flatten().filter(|leaf| self.may_split(leaf)).collect();
        let queries: Vec<_> = open.iter().map(|leaf| (leaf.slot, &leaf.query)).collect();
        let splits = self.histograms.best_splits(rule, &queries, self.exchange)?;
        for (leaf, split) in open.iter_mut().zip(splits) {
            leaf.split = split;
        }
        for (&i, pair) in batch.iter().zip(children) {
            self.leaves[i].children = Some(Box::new(pair));
        }
        Ok(())
    }

    /// Divides the records of a leaf by its split. The smaller child gets a new slot.
    fn divide(&mut self, leaf: usize) -> [Leaf; 2] {
        let leaf = &self.leaves[leaf];
        let split = leaf.split.as_ref().expect("a leaf of the ranking has a split");
        let feature = &self.input.records.features()[split.feature as usize];
        let goes_left = left_bins(feature, split);
        let middle =
            partition(self.input.records, self.order, self.moved, leaf.range.clone(), split, &goes_left);
        let rule = self.input.rule;
        let sums = [split.left, split.right];
        let outputs = sums.map(|side| rule.output(side, leaf.query.output, leaf.query.limits));
        let is_left_smaller = split.left.count <= split.right.count;
        let mut used = Vec::new();
        if !self.input.sample.interactions.is_empty() {
            used.clone_from(&leaf.used);
            used.push(split.feature);
        }
        let monotone = self.histograms.features()[split.feature as usize].monotone;
        let bound = f64::midpoint(outputs[0], outputs[1]);
        let allowed = self.input.sample.allowed(leaf.depth + 1, &used);
        let new_slot = self.slots;
        self.slots += 1;
        [0, 1].map(|side| {
            let mut limits = leaf.query.limits;
            // The side of the larger values is that of the right child, if the feature makes them rise.
            match (monotone, side) {
                (1, 0) | (-1, 1) => limits[1] = limits[1].min(bound),
                (1, 1) | (-1, 0) => limits[0] = limits[0].max(bound),
                _ => {}
            }
            let name = combine(leaf.query.name, side as u64);
            let is_small = (side == 0) == is_left_smaller;
            Leaf {
                node: 0,
                depth: leaf.depth + 1,
                range: if side == 0 { leaf.range.start..middle } else { middle..leaf.range.end },
                query: LeafQuery {
                    sums: sums[side],
                    output: outputs[side],
                    limits,
                    name,
                    allowed: allowed.clone(),
                },
                parent: leaf.query.output,
                used: used.clone(),
                slot: if is_small { new_slot } else { leaf.slot },
                split: None,
                children: None,
            }
        })
    }

    /// Replaces a leaf by its children, whose nodes follow each other.
    fn take_children(&mut self, leaf: usize) {
        let parent = &mut self.leaves[leaf];
        let pair = parent.children.take().expect("the leaf was split");
        let split = parent.split.take().expect("a leaf of the ranking has a split");
        let next = self.tree.len();
        set_split(&mut self.tree[parent.node], &split, self.input.records.features(), next);
        let [mut left, mut right] = *pair;
        (left.node, right.node) = (next, next + 1);
        self.tree.extend([self.node(split.left), self.node(split.right)]);
        self.leaves[leaf] = left;
        self.leaves.push(right);
    }
}

/// Moves the records of a leaf that go left before the others, and returns where the others begin.
fn partition(
    records: &Records,
    order: &mut [u32],
    moved: &mut Vec<u32>,
    range: Range<usize>,
    split: &Split,
    goes_left: &[bool],
) -> usize {
    let own = &mut order[range.clone()];
    if moved.len() < own.len() {
        moved.resize(own.len(), 0);
    }
    let (mut left_count, mut right_count) = (0, 0);
    records.for_each_bin(own, split.feature as usize, |order, i, bin| {
        // Without branches: where a record goes cannot be predicted.
        let record = order[i];
        let is_left = usize::from(goes_left[bin]);
        order[left_count] = record;
        moved[right_count] = record;
        left_count += is_left;
        right_count += 1 - is_left;
    });
    own[left_count..].copy_from_slice(&moved[..right_count]);
    range.start + left_count
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
    node.feature = split.feature;
    node.missing_left = split.missing_left;
    (node.left, node.right) = (left as u32, left as u32 + 1);
    node.gain = split.gain;
    node.test = match (&split.condition, &features[split.feature as usize]) {
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
