//! A tree, and its rows in the tables of a model.

use matrix::{Agent, MatrixId, Values, ValuesMut};

use algo::error::Error;
use algo::rows::rows_of;

/// Columns of a node in the table `nodes`.
pub(super) const NODE_COLUMNS: usize = 9;
/// Names of these columns.
pub(super) const NODE_COLUMN_NAMES: [&str; NODE_COLUMNS] =
    ["feature", "threshold", "missing_left", "left", "right", "value", "gain", "hessian", "records"];
/// Words of 64 categories that a node has at most.
pub(super) const NODE_WORDS: u64 = 1 << 10;
/// The feature of a leaf.
const NO_FEATURE: f64 = -1.0;

/// What decides at a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// Numbers up to this one go left.
    UpTo(f32),
    /// Categories whose bits are set go left.
    Among(Vec<u64>),
}

/// A node. The left child of a leaf is 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) feature: u32,
    pub(super) test: Test,
    pub(super) missing_left: bool,
    pub(super) left: u32,
    pub(super) right: u32,
    /// Of leaves.
    pub(super) value: f64,
    pub(super) gain: f64,
    pub(super) hessian: f64,
    pub(super) count: f64,
}

impl Node {
    pub(super) fn leaf(hessian: f64, count: f64) -> Self {
        let test = Test::UpTo(0.0);
        Self {
            feature: 0,
            test,
            missing_left: false,
            left: 0,
            right: 0,
            value: 0.0,
            gain: 0.0,
            hessian,
            count,
        }
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.left == 0
    }

    /// Whether a record with this value of the feature goes to the left child; NaN is missing.
    pub(super) fn goes_left(&self, value: f32) -> bool {
        match &self.test {
            Test::UpTo(threshold) => value <= *threshold || (value.is_nan() && self.missing_left),
            // A code below 0 is no category.
            Test::Among(words) if value > -1.0 => {
                let category = value as usize;
                words.get(category / 64).is_some_and(|word| word >> (category % 64) & 1 == 1)
            }
            Test::Among(_) => value.is_nan() && self.missing_left,
        }
    }

    fn to_row(&self) -> [f64; NODE_COLUMNS] {
        let feature = if self.is_leaf() { NO_FEATURE } else { self.feature.into() };
        let threshold = match &self.test {
            Test::UpTo(threshold) => f64::from(*threshold),
            Test::Among(_) => 0.0,
        };
        let missing_left = f64::from(u8::from(self.missing_left));
        let (left, right) = (self.left.into(), self.right.into());
        [feature, threshold, missing_left, left, right, self.value, self.gain, self.hessian, self.count]
    }

    fn of_row(row: &[f64; NODE_COLUMNS], words: Option<Vec<u64>>) -> Self {
        let [feature, threshold, missing_left, left, right, value, gain, hessian, count] = *row;
        Self {
            feature: feature.max(0.0) as u32,
            test: words.map_or(Test::UpTo(threshold as f32), Test::Among),
            missing_left: missing_left > 0.0,
            left: left as u32,
            right: right as u32,
            value,
            gain,
            hessian,
            count,
        }
    }
}

/// The nodes of a tree; the first is the root.
pub(super) type Tree = Vec<Node>;

/// The rows of trees in their tables, with ascending keys.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeRows {
    pub(super) node_keys: Vec<u64>,
    pub(super) nodes: Vec<f64>,
    pub(super) word_keys: Vec<u64>,
    pub(super) words: Vec<i64>,
}

/// The numbers of the leaves of a tree, by their nodes, as LightGBM counts them: when a leaf is split, the left child keeps its
/// number and the right one gets the next. Other nodes have the number of a leaf below.
pub(super) fn leaf_numbers(tree: &Tree) -> Vec<u32> {
    let mut numbers = vec![0; tree.len()];
    for (position, node) in tree.iter().enumerate().filter(|(_, node)| !node.is_leaf()) {
        numbers[node.left as usize] = numbers[position];
        numbers[node.right as usize] = node.right / 2;
    }
    numbers
}

/// Where trees are.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeTables {
    pub(super) nodes: MatrixId,
    pub(super) categories: MatrixId,
    /// Keys of a tree.
    pub(super) stride: u64,
}

impl TreeTables {
    /// Pushes a tree with this number.
    pub(super) fn push(&self, agent: &mut dyn Agent, number: u64, tree: &Tree) -> Result<(), Error> {
        let rows = self.rows(number, tree);
        agent.push(self.nodes, rows_of(&rows.node_keys), Values::F64(&rows.nodes))?;
        if !rows.word_keys.is_empty() {
            agent.push(self.categories, rows_of(&rows.word_keys), Values::I64(&rows.words))?;
        }
        Ok(())
    }

    /// The rows of a tree with this number: those of its nodes, and of their categories.
    pub(super) fn rows(&self, number: u64, tree: &Tree) -> TreeRows {
        let first = number * self.stride;
        let mut rows = TreeRows {
            node_keys: (first..first + tree.len() as u64).collect(),
            nodes: tree.iter().flat_map(Node::to_row).collect(),
            ..TreeRows::default()
        };
        for (key, node) in (first..).zip(tree) {
            if let Test::Among(words) = &node.test {
                rows.word_keys.extend((key * NODE_WORDS..).take(words.len()));
                rows.words.extend(words.iter().map(|word| *word as i64));
            }
        }
        rows
    }

    /// Pulls the trees with these numbers, in order; `word_counts` has the words of the categories of each feature, 0 for numbers.
    pub(super) fn pull(
        &self,
        agent: &mut dyn Agent,
        numbers: std::ops::Range<u64>,
        word_counts: &[usize],
        mut visit: impl FnMut(&Tree),
    ) -> Result<(), Error> {
        /// Trees that are pulled at a time.
        const TREES: u64 = 64;
        let mut first = numbers.start;
        while first < numbers.end {
            let end = numbers.end.min(first + TREES);
            let keys: Vec<u64> = (first * self.stride..end * self.stride).collect();
            let mut rows = vec![0.0; keys.len() * NODE_COLUMNS];
            agent.pull(self.nodes, rows_of(&keys), ValuesMut::F64(&mut rows))?;
            let rows = rows.as_chunks::<NODE_COLUMNS>().0;
            let word_count = |row: &[f64; NODE_COLUMNS]| match row[0] {
                // Nodes that are not there have 0 everywhere, leaves no children.
                feature if feature >= 0.0 && row[3] > 0.0 => word_counts[feature as usize],
                _ => 0,
            };
            let word_keys: Vec<u64> = keys
                .iter()
                .zip(rows)
                .flat_map(|(key, row)| (key * NODE_WORDS..).take(word_count(row)))
                .collect();
            let mut words = vec![0i64; word_keys.len()];
            if !word_keys.is_empty() {
                agent.pull(self.categories, rows_of(&word_keys), ValuesMut::I64(&mut words))?;
            }
            let mut words = words.into_iter().map(|word| word as u64);
            for rows in rows.chunks_exact(self.stride as usize) {
                let mut tree: Tree = Vec::new();
                let mut node_count = 1;
                for row in rows {
                    let count = word_count(row);
                    let own = (count > 0).then(|| words.by_ref().take(count).collect());
                    if tree.len() < node_count {
                        let node = Node::of_row(row, own);
                        node_count = node_count.max(node.left.max(node.right) as usize + 1);
                        tree.push(node);
                    }
                }
                visit(&tree);
            }
            first = end;
        }
        Ok(())
    }
}
