//! Trees laid out for scoring. Small ones are scored by features ([`TreeGroup`]). Of large ones all nodes are in one list, the
//! children of a node beside each other. Records are scored in blocks, and each tree for all records of a block, so that the top
//! of the tree stays in the cache.

use std::collections::HashMap;
use std::ops::Range;

use data::Batch;

use super::super::bins::{Feature, Features, KeyMeaning};
use super::super::tree::{Test, Tree};
use super::quick_scorer::{self, TreeGroup, WORD_LEAVES};

/// Records of a block.
pub(in super::super) const BLOCK: usize = 64;
/// Records that go down a tree side by side.
const LANES: usize = 8;

/// A node; of a leaf, the left child is the leaf itself, and everything goes there.
#[derive(Clone, Copy, Debug)]
struct FlatNode {
    feature: u32,
    threshold: f32,
    left: u32,
    /// Bit 0: missing values go left. From bit 1 on: 1 + the first word of the categories, or 0 for numbers.
    flags: u32,
}

/// Trees that follow each other and are scored in the same way.
#[derive(Clone, Debug)]
enum Section {
    Small(TreeGroup),
    /// One tree with this root.
    Large(u32),
}

/// Trees in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Forest {
    sections: Vec<Section>,
    /// The nodes of large trees.
    nodes: Vec<FlatNode>,
    /// Of leaves.
    values: Vec<f64>,
    words: Vec<u64>,
    /// Words of the categories of a feature.
    word_counts: Vec<usize>,
}

impl Forest {
    pub(in super::super) fn new(features: &Features) -> Self {
        let word_counts = features.list.iter().map(Feature::word_count).collect();
        Self { word_counts, ..Self::default() }
    }

    pub(in super::super) fn push(&mut self, tree: &Tree) {
        if tree.len() / 2 < WORD_LEAVES {
            match self.sections.last_mut() {
                Some(Section::Small(group)) if !group.is_full() => group.push(tree),
                _ => {
                    let mut group = TreeGroup::default();
                    group.push(tree);
                    self.sections.push(Section::Small(group));
                }
            }
            return;
        }
        let root = self.nodes.len() as u32;
        self.sections.push(Section::Large(root));
        for (i, node) in (root..).zip(tree) {
            self.values.push(node.value);
            self.nodes.push(if node.is_leaf() {
                FlatNode { feature: 0, threshold: f32::INFINITY, left: i, flags: 1 }
            } else {
                let (threshold, categories) = match &node.test {
                    Test::UpTo(threshold) => (*threshold, 0),
                    Test::Among(words) => {
                        let first = self.words.len() as u32;
                        self.words.extend(words);
                        (0.0, first + 1)
                    }
                };
                let flags = (categories << 1) | u32::from(node.missing_left);
                FlatNode { feature: node.feature, threshold, left: root + node.left, flags }
            });
        }
    }

    /// The child where a value goes.
    #[inline]
    fn next(&self, node: FlatNode, value: f32) -> u32 {
        let is_missing = value.is_nan();
        // A code below 0 is no category.
        let goes_left = if node.flags > 1 && value > -1.0 {
            let (first, category) = ((node.flags >> 1) as usize - 1, value as usize);
            category / 64 < self.word_counts[node.feature as usize]
                && (self.words[first + category / 64] >> (category % 64)) & 1 == 1
        } else {
            (value <= node.threshold && node.flags <= 1) || (is_missing && node.flags & 1 == 1)
        };
        node.left + u32::from(!goes_left)
    }

    /// Adds the leaves of the trees to the scores (records x width) of records with these values (records x features), which are
    /// followed by those of no record up to a whole block.
    fn add(&self, values: &[f32], feature_count: usize, width: usize, scores: &mut [f64]) {
        let (mut number, mut words) = (0, Vec::new());
        for section in &self.sections {
            match section {
                Section::Small(group) => {
                    let lanes = values.chunks_exact(feature_count * quick_scorer::LANES);
                    for (values, scores) in lanes.zip(scores.chunks_mut(width * quick_scorer::LANES)) {
                        group.add(values, feature_count, (number, width), &mut words, scores);
                    }
                    number += group.tree_count();
                }
                Section::Large(root) => {
                    self.walk(*root, values, feature_count, (number % width, width), scores);
                    number += 1;
                }
            }
        }
    }

    /// Adds the leaves of a large tree to the scores of a class.
    fn walk(
        &self,
        root: u32,
        values: &[f32],
        feature_count: usize,
        (class, width): (usize, usize),
        scores: &mut [f64],
    ) {
        let lanes = values.chunks_exact(feature_count * LANES).zip(scores.chunks_mut(width * LANES));
        for (values, scores) in lanes {
            let mut at = [root; LANES];
            let count = scores.len() / width;
            loop {
                let mut moved = 0;
                for lane in 0..count {
                    let node = self.nodes[at[lane] as usize];
                    let next = self.next(node, values[lane * feature_count + node.feature as usize]);
                    moved |= next ^ at[lane];
                    at[lane] = next;
                }
                if moved == 0 {
                    break;
                }
            }
            for lane in 0..count {
                scores[lane * width + class] += self.values[at[lane] as usize];
            }
        }
    }
}

/// Makes rows of values of batches.
#[derive(Clone, Debug)]
pub(in super::super) struct ValueRows {
    by_key: HashMap<u64, KeyMeaning>,
    /// The value of each feature in a record without an entry.
    absent: Vec<f32>,
}

impl ValueRows {
    pub(in super::super) fn new(features: &Features) -> Self {
        Self { absent: features.absent.clone(), by_key: features.by_key.clone() }
    }

    /// Adds the leaves of the trees to the scores (records x width) of a batch.
    pub(in super::super) fn add_scores(
        &self,
        forest: &Forest,
        batch: &Batch,
        width: usize,
        scores: &mut [f64],
    ) {
        let feature_count = self.absent.len();
        self.for_each_block(batch, |records, values| {
            let scores = &mut scores[records.start * width..records.end * width];
            forest.add(values, feature_count, width, scores);
        });
    }

    /// Visits blocks of records with the values of all features (records x features), which are followed by those of no record up
    /// to a whole block.
    pub(in super::super) fn for_each_block(
        &self,
        batch: &Batch,
        mut visit: impl FnMut(Range<usize>, &[f32]),
    ) {
        let meanings: Vec<Option<KeyMeaning>> =
            batch.columns.iter().map(|key| self.by_key.get(key).copied()).collect();
        let feature_count = self.absent.len();
        let mut values = self.absent.repeat(BLOCK);
        for start in (0..batch.record_count()).step_by(BLOCK) {
            let records = start..batch.record_count().min(start + BLOCK);
            for (row, r) in values.chunks_exact_mut(feature_count).zip(records.clone()) {
                for i in batch.entries(r) {
                    if let Some(KeyMeaning { feature, category }) = meanings[batch.indices[i] as usize] {
                        let value = || batch.values.get(i).copied().unwrap_or(1.0);
                        row[feature as usize] = category.map_or_else(value, |category| category as f32);
                    }
                }
            }
            visit(records.clone(), &values);
            for (row, r) in values.chunks_exact_mut(feature_count).zip(records) {
                for i in batch.entries(r) {
                    if let Some(KeyMeaning { feature, .. }) = meanings[batch.indices[i] as usize] {
                        row[feature as usize] = self.absent[feature as usize];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use math::random::{Purpose, stream};

    use super::super::super::explain::tests::{random_tree, random_value, walk};
    use super::*;

    #[test]
    fn small_and_large_trees_of_numbers_and_categories_give_the_values_of_their_leaves() {
        const FEATURES: usize = 6;
        let mut random = stream(4, Purpose::Test, 0, 0);
        // More small trees than a group has, some large ones between them, and trees without a split.
        let sizes = [1, 2, 31, 64, 65, 200, 31, 1].into_iter().chain(std::iter::repeat_n(9, 300));
        let trees: Vec<Tree> =
            sizes.map(|leaves| random_tree(&mut random, FEATURES as u32, leaves)).collect();
        let mut forest = Forest { word_counts: vec![1; FEATURES], ..Forest::default() };
        for tree in &trees {
            forest.push(tree);
        }
        let values: Vec<f32> =
            (0..BLOCK * FEATURES).map(|at| random_value(&mut random, at % FEATURES)).collect();
        for (count, width) in [(BLOCK, 1), (13, 1), (13, 4)] {
            let mut found = vec![0.5; count * width];
            forest.add(&values, FEATURES, width, &mut found);
            for (r, found) in found.chunks(width).enumerate() {
                let mut expected = vec![0.5; width];
                for (number, tree) in trees.iter().enumerate() {
                    expected[number % width] += walk(tree, &values[r * FEATURES..][..FEATURES]);
                }
                assert_eq!(found, expected);
            }
        }
    }
}
