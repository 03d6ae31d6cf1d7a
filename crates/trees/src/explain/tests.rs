//! Tests of contributions against the definition of Shapley values.

use math::random::{Purpose, RandomStream, stream};

use super::super::tree::{Node, Test, Tree, leaf_numbers};
use super::contributions::{LANES, Scratch, TreeContributions, has_counts};

/// A tree that is split at random leaves by random features: numbers, and categories if the feature is odd.
pub(in super::super) fn random_tree(random: &mut RandomStream, features: u32, leaves: usize) -> Tree {
    let mut tree = vec![Node::leaf(0.0, 1000.0 + random.below(1000) as f64)];
    let mut open = vec![0];
    while open.len() < leaves {
        let at = open.swap_remove(random.below(open.len() as u64) as usize);
        let (left, feature, count) =
            (tree.len() as u32, random.below(features.into()) as u32, tree[at].count);
        let share = (0.05 + 0.9 * random.uniform()) * count;
        tree.extend([Node::leaf(0.0, share), Node::leaf(0.0, count - share)]);
        let node = &mut tree[at];
        (node.feature, node.left, node.right) = (feature, left, left + 1);
        node.missing_left = random.below(2) == 0;
        node.test = if feature % 2 == 1 {
            Test::Among(vec![random.next_u64()])
        } else {
            Test::UpTo(random.below(5) as f32)
        };
        open.extend([left as usize, left as usize + 1]);
    }
    tree.iter_mut().filter(|node| node.is_leaf()).for_each(|leaf| leaf.value = random.normal());
    tree
}

/// A value of a feature: a number, a category (also such that no tree knows), or none.
pub(in super::super) fn random_value(random: &mut RandomStream, feature: usize) -> f32 {
    match random.below(6) {
        0 => f32::NAN,
        _ if feature % 2 == 1 => random.below(80) as f32 - 2.0,
        _ => random.below(7) as f32 - 1.0,
    }
}

/// The expected score of a record of which only some features are known.
fn expected(tree: &Tree, at: usize, values: &[f32], is_known: u32) -> f64 {
    let node = &tree[at];
    if node.is_leaf() {
        return node.value;
    }
    let (left, right) = (node.left as usize, node.right as usize);
    if is_known >> node.feature & 1 == 1 {
        let next = if node.goes_left(values[node.feature as usize]) { left } else { right };
        return expected(tree, next, values, is_known);
    }
    let part = |child: usize| tree[child].count / node.count * expected(tree, child, values, is_known);
    part(left) + part(right)
}

/// The Shapley value of a feature: the mean over all orders of what it adds to the features before it.
fn shapley(tree: &Tree, values: &[f32], feature: usize) -> f64 {
    let count = values.len() as u32;
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    (0..1u32 << count)
        .filter(|known| known >> feature & 1 == 0)
        .map(|known| {
            let size = known.count_ones();
            let weight = factorial(size) * factorial(count - size - 1) / factorial(count);
            let with = expected(tree, 0, values, known | 1 << feature);
            weight * (with - expected(tree, 0, values, known))
        })
        .sum()
}

/// The contributions of as many records as there are lanes.
fn contributions(tree: &Tree, rows: &[Vec<f32>]) -> Vec<[f64; LANES]> {
    let mut out = vec![[0.0; LANES]; rows[0].len()];
    TreeContributions::new(tree).add(&rows.concat(), rows[0].len(), &mut Scratch::default(), &mut out);
    out
}

#[test]
fn contributions_are_shapley_values() {
    let mut random = stream(1, Purpose::Test, 0, 0);
    for (features, leaves) in [(1, 1), (1, 6), (2, 2), (3, 5), (4, 12), (6, 9), (7, 31)] {
        for _ in 0..5 {
            let tree = random_tree(&mut random, features, leaves);
            assert!(has_counts(&tree));
            let rows: Vec<Vec<f32>> = (0..LANES)
                .map(|_| (0..features as usize).map(|feature| random_value(&mut random, feature)).collect())
                .collect();
            let found = contributions(&tree, &rows);
            for (lane, values) in rows.iter().enumerate() {
                for (feature, found) in found.iter().enumerate() {
                    let expected = shapley(&tree, values, feature);
                    assert!(
                        (found[lane] - expected).abs() < 1e-12,
                        "{features} {leaves}: {} {expected}",
                        found[lane]
                    );
                }
            }
            let mean = expected(&tree, 0, &rows[0], 0);
            assert!((TreeContributions::new(&tree).expected - mean).abs() < 1e-12);
        }
    }
}

#[test]
fn contributions_of_long_paths_add_up_to_the_score() {
    let mut random = stream(2, Purpose::Test, 0, 0);
    for (features, leaves) in [(3, 60), (40, 400), (100, 1000)] {
        let mut tree = random_tree(&mut random, features, leaves);
        // Another tree in which each right child is split again, so that one path tests all features.
        if features == 100 {
            tree = (0..features).fold(vec![Node::leaf(0.0, 1e6)], |mut tree, feature| {
                let (at, left) = (tree.len() - 1, tree.len() as u32);
                let count = tree[at].count;
                tree.extend([Node::leaf(0.0, 0.1 * count), Node::leaf(0.0, 0.9 * count)]);
                (tree[at].feature, tree[at].left, tree[at].right) = (feature, left, left + 1);
                tree[left as usize].value = f64::from(feature);
                tree
            });
        }
        let width = features as usize;
        let rows: Vec<Vec<f32>> =
            (0..LANES).map(|_| (0..width).map(|at| random_value(&mut random, at)).collect()).collect();
        let (found, mean) = (contributions(&tree, &rows), TreeContributions::new(&tree).expected);
        for (lane, values) in rows.iter().enumerate() {
            let score = walk(&tree, values);
            let sum = mean + found.iter().map(|found| found[lane]).sum::<f64>();
            assert!((sum - score).abs() < 1e-9 * score.abs().max(1.0), "{features}: {sum} {score}");
        }
    }
}

/// The value of the leaf that a record reaches.
pub(in super::super) fn walk(tree: &Tree, values: &[f32]) -> f64 {
    let mut at = 0;
    while !tree[at].is_leaf() {
        let node = &tree[at];
        at = if node.goes_left(values[node.feature as usize]) { node.left } else { node.right } as usize;
    }
    tree[at].value
}

#[test]
fn a_tree_whose_nodes_have_no_counts_is_known() {
    let mut tree = random_tree(&mut stream(3, Purpose::Test, 0, 0), 3, 8);
    assert!(has_counts(&tree));
    tree[0].count = 0.0;
    assert!(!has_counts(&tree));
}

#[test]
fn leaves_have_the_numbers_of_the_splits_that_made_them() {
    let mut tree = vec![Node::leaf(0.0, 0.0); 7];
    for (node, left) in [(0, 1), (2, 3), (1, 5)] {
        (tree[node].left, tree[node].right) = (left, left + 1);
    }
    let numbers = leaf_numbers(&tree);
    assert_eq!([5, 6, 3, 4].map(|leaf| numbers[leaf]), [0, 3, 1, 2]);
}
