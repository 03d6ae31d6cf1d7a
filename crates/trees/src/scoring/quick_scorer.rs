//! Small trees laid out for scoring by features (`QuickScorer`: Lucchese et al., SIGIR 2015, with several records side by side):
//! of each tree a word has a bit for each leaf, from left to right. A test that sends a record to the right clears the leaves
//! on its left, in any order of the tests, and the first bit that is left is the leaf of the record. The tests of a feature are
//! sorted by their thresholds, so that those of a record are the first ones, and nothing depends on a node before it.

use multiversion::multiversion;

use super::super::tree::{Node, Test, Tree};

/// Leaves of a tree whose bits fit a word.
pub(in super::super) const WORD_LEAVES: usize = 64;
/// Records side by side.
pub(in super::super) const LANES: usize = 8;
/// Trees of a group, whose words for all lanes stay in the cache.
const GROUP_TREES: usize = 256;

/// Words of a tree, by lane.
type Words = [u64; LANES];

/// A test of a number.
#[derive(Clone, Copy, Debug)]
struct NumberTest {
    /// The rank of the threshold.
    rank: i64,
    tree: u32,
    /// The leaves that are left of a record that goes to the right.
    right: u64,
    /// The same of a record without a value.
    missing: u64,
}

/// A test of a category.
#[derive(Clone, Debug)]
struct SetTest {
    tree: usize,
    right: u64,
    node: Node,
}

/// The tests of a feature.
#[derive(Clone, Debug, Default)]
struct FeatureTests {
    feature: usize,
    /// By threshold, ascending.
    numbers: Vec<NumberTest>,
    sets: Vec<SetTest>,
}

/// Trees that follow each other.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct TreeGroup {
    /// By feature, ascending.
    tests: Vec<FeatureTests>,
    /// The first value of each tree.
    starts: Vec<usize>,
    /// The values of the leaves of all trees, from left to right.
    values: Vec<f64>,
}

impl TreeGroup {
    pub(in super::super) fn is_full(&self) -> bool {
        self.starts.len() == GROUP_TREES
    }

    pub(in super::super) fn tree_count(&self) -> usize {
        self.starts.len()
    }

    /// Adds a tree of at most 64 leaves.
    pub(in super::super) fn push(&mut self, tree: &Tree) {
        let number = self.starts.len() as u32;
        self.starts.push(self.values.len());
        // The leaves below each node: the first one, and how many.
        let mut counts = vec![1u32; tree.len()];
        for (at, node) in tree.iter().enumerate().rev().filter(|(_, node)| !node.is_leaf()) {
            counts[at] = counts[node.left as usize] + counts[node.right as usize];
        }
        let mut firsts = vec![0u32; tree.len()];
        let mut leaves = vec![0.0; counts[0] as usize];
        for (at, node) in tree.iter().enumerate() {
            if node.is_leaf() {
                leaves[firsts[at] as usize] = node.value;
                continue;
            }
            let (left, right) = (node.left as usize, node.right as usize);
            (firsts[left], firsts[right]) = (firsts[at], firsts[at] + counts[left]);
            self.push_test(node, number, !(((1 << counts[left]) - 1) << firsts[at]));
        }
        self.values.extend(leaves);
    }

    fn push_test(&mut self, node: &Node, tree: u32, right: u64) {
        let feature = node.feature as usize;
        let at = self.tests.partition_point(|tests| tests.feature < feature);
        if self.tests.get(at).is_none_or(|tests| tests.feature != feature) {
            self.tests.insert(at, FeatureTests { feature, ..FeatureTests::default() });
        }
        let tests = &mut self.tests[at];
        match node.test {
            Test::UpTo(threshold) => {
                let missing = if node.missing_left { u64::MAX } else { right };
                let rank = rank_of(threshold);
                let at = tests.numbers.partition_point(|test| test.rank < rank);
                tests.numbers.insert(at, NumberTest { rank, tree, right, missing });
            }
            Test::Among(_) => tests.sets.push(SetTest { tree: tree as usize, right, node: node.clone() }),
        }
    }

    /// Adds the leaves of the trees to the scores (records x width) of at most as many records as there are lanes; `values`
    /// (lanes x features) has all lanes. The first tree has a number.
    pub(in super::super) fn add(
        &self,
        values: &[f32],
        feature_count: usize,
        (first, width): (usize, usize),
        words: &mut Vec<Words>,
        scores: &mut [f64],
    ) {
        words.clear();
        words.resize(self.starts.len(), [u64::MAX; LANES]);
        scan(&self.tests, values, feature_count, words);
        for (number, (words, start)) in (first..).zip(words.iter().zip(&self.starts)) {
            let scores = scores.iter_mut().skip(number % width).step_by(width);
            for (score, word) in scores.zip(words) {
                *score += self.values[start + word.trailing_zeros() as usize];
            }
        }
    }
}

/// Clears the leaves that the records do not reach.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn scan(tests: &[FeatureTests], values: &[f32], feature_count: usize, words: &mut [Words]) {
    for tests in tests {
        let own: [f32; LANES] = std::array::from_fn(|lane| values[lane * feature_count + tests.feature]);
        let ranks = own.map(rank_of);
        let largest = ranks.iter().fold(MISSING, |a, b| a.max(*b));
        for test in tests.numbers.iter().take_while(|test| test.rank < largest) {
            let words = &mut words[test.tree as usize];
            for lane in 0..LANES {
                // All bits if the number is above the threshold: arithmetic becomes vector instructions more surely than a
                // comparison.
                let is_above = ((test.rank - ranks[lane]) >> 63) as u64;
                words[lane] &= test.right | !is_above;
            }
        }
        let missing = own.map(|value| if value.is_nan() { u64::MAX } else { 0 });
        if missing != [0; LANES] {
            for test in &tests.numbers {
                let words = &mut words[test.tree as usize];
                for lane in 0..LANES {
                    words[lane] &= test.missing | !missing[lane];
                }
            }
        }
        for test in &tests.sets {
            for (word, value) in words[test.tree].iter_mut().zip(&own) {
                *word &= if test.node.goes_left(*value) { u64::MAX } else { test.right };
            }
        }
    }
}

/// The rank of a missing number, below all others.
const MISSING: i64 = i64::MIN >> 2;

/// An integer that is in the order of the numbers; -0 and 0 are equal.
fn rank_of(number: f32) -> i64 {
    if number.is_nan() {
        return MISSING;
    }
    let bits = (number + 0.0).to_bits();
    let size = i64::from(bits & (u32::MAX >> 1));
    if number < 0.0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_in_the_order_of_numbers() {
        let numbers =
            [f32::NEG_INFINITY, -1e30, -1.5, -1e-40, 0.0, 1e-40, 0.5, 1.5f32.next_down(), 1.5, f32::MAX];
        assert!(numbers.map(rank_of).is_sorted_by(|a, b| a < b));
        assert_eq!(rank_of(-0.0), rank_of(0.0));
        assert!(rank_of(f32::NAN) < rank_of(f32::NEG_INFINITY));
    }
}
