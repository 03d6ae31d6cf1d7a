//! What each feature adds to the score of a record: the Shapley values of the game in which a feature that is not in the
//! coalition is replaced by its share of the training records (Lundberg et al., "From local explanations to global
//! understanding with explainable AI for trees", Nature Machine Intelligence 2020, path-dependent `TreeSHAP`).
//!
//! A leaf of value v whose path tests the features j gives feature i
//!
//! `v (o_i - z_i) integral from 0 to 1 of the product over j != i of (t o_j + (1 - t) z_j) dt`
//!
//! where `o_j` is 1 if the record follows the path at all tests of j, else 0, and `z_j` is the share of the records that do
//! so. The integrand is a polynomial in t, so that Gauss-Legendre quadrature is exact with half as many points as the path has
//! features. The products go down the tree and their sums over leaves come up, so a tree costs nodes x points. Where a path
//! tests a feature again, its factor is replaced.

use multiversion::multiversion;

use super::super::tree::{Node, Tree};
use super::quadrature::{self, Point};

/// Records that are explained side by side.
pub(in super::super) const LANES: usize = 8;

/// Numbers of an edge at a point of the quadrature, by the record: it has left the path of the feature above the edge, at the
/// edge, or not at all.
type Cases = [f64; 3];

/// The two children of a node.
#[derive(Clone, Debug)]
struct Split {
    /// The position of the node.
    node: usize,
    /// The child above which the path has tested the feature last, or the root.
    previous: usize,
    test: Node,
}

/// A tree, prepared for contributions.
#[derive(Clone, Debug)]
pub(in super::super) struct TreeContributions {
    /// From the root down.
    splits: Vec<Split>,
    point_count: usize,
    /// For each node and point, by what the product changes on the way from its parent.
    factors: Vec<Cases>,
    /// For each node and point, what the sum of the products of the leaves below adds to the feature of its parent.
    weights: Vec<Cases>,
    /// The values of leaves; 1 for other nodes.
    values: Vec<f64>,
    /// The score that is expected of any record.
    pub(in super::super) expected: f64,
}

/// Scratch memory: for each node and point the products, then the sums; for each node whether the records follow its path.
#[derive(Debug, Default)]
pub(in super::super) struct Scratch {
    products: Vec<[f64; LANES]>,
    follows: Vec<[u64; LANES]>,
}

/// Whether the nodes of a tree say how many records they have had.
pub(in super::super) fn has_counts(tree: &Tree) -> bool {
    tree.iter().filter(|node| !node.is_leaf()).all(|node| {
        let children = tree[node.left as usize].count + tree[node.right as usize].count;
        node.count > 0.0 && children > 0.0
    })
}

impl TreeContributions {
    /// Prepares a tree that has counts.
    pub(in super::super) fn new(tree: &Tree) -> Self {
        let mut splits: Vec<Split> = Vec::new();
        // Of the path to each node: the last child of each feature, and the number of features.
        let mut paths: Vec<Vec<(u32, usize)>> = vec![Vec::new(); tree.len()];
        let mut shares = vec![1.0; tree.len()];
        let mut reach = vec![1.0; tree.len()];
        let mut deepest = 0;
        for (position, node) in tree.iter().enumerate().filter(|(_, node)| !node.is_leaf()) {
            let path = std::mem::take(&mut paths[position]);
            let at = path.iter().position(|(feature, _)| *feature == node.feature);
            let previous = at.map_or(0, |at| path[at].1);
            let (left, right) = (node.left as usize, node.right as usize);
            let count = tree[left].count + tree[right].count;
            for child in [left, right] {
                let mut path = path.clone();
                match at {
                    Some(at) => path[at].1 = child,
                    None => path.push((node.feature, child)),
                }
                deepest = deepest.max(path.len());
                let share = tree[child].count / count;
                shares[child] = shares[previous] * share;
                reach[child] = reach[position] * share;
                paths[child] = path;
            }
            splits.push(Split { node: position, previous, test: node.clone() });
        }
        let points = quadrature::points(deepest.div_ceil(2));
        let mut factors = vec![[1.0; 3]; tree.len() * points.len()];
        let mut weights = vec![[0.0; 3]; tree.len() * points.len()];
        for split in &splits {
            for child in split.children() {
                for (k, point) in points.iter().enumerate() {
                    let at = child * points.len() + k;
                    (factors[at], weights[at]) = cases(*point, shares[split.previous], shares[child]);
                }
            }
        }
        let leaves = || tree.iter().zip(&reach).filter(|(node, _)| node.is_leaf());
        Self {
            splits,
            point_count: points.len(),
            factors,
            weights,
            values: tree.iter().map(|node| if node.is_leaf() { node.value } else { 1.0 }).collect(),
            expected: leaves().map(|(node, reach)| node.value * reach).sum(),
        }
    }

    /// Adds to the contributions (features x lanes) of records with these values (lanes x features).
    pub(in super::super) fn add(
        &self,
        values: &[f32],
        feature_count: usize,
        scratch: &mut Scratch,
        out: &mut [[f64; LANES]],
    ) {
        let node_count = self.values.len();
        if scratch.products.len() < node_count * self.point_count {
            scratch.products.resize(node_count * self.point_count, [0.0; LANES]);
        }
        if scratch.follows.len() < node_count {
            scratch.follows.resize(node_count, [0; LANES]);
        }
        scratch.follows[0] = [u64::MAX; LANES];
        for split in &self.splits {
            let mut goes_left = [0; LANES];
            for (lane, left) in goes_left.iter_mut().enumerate() {
                let value = values[lane * feature_count + split.test.feature as usize];
                *left = if split.test.goes_left(value) { u64::MAX } else { 0 };
            }
            let [left, right] = split.children();
            let follows = scratch.follows[split.previous];
            for lane in 0..LANES {
                scratch.follows[left][lane] = follows[lane] & goes_left[lane];
                scratch.follows[right][lane] = follows[lane] & !goes_left[lane];
            }
        }
        add_products(self, scratch, out);
    }
}

impl Split {
    /// The positions of the children, which follow each other.
    fn children(&self) -> [usize; 2] {
        [self.test.left as usize, self.test.right as usize]
    }
}

/// The factors and weights of an edge at a point; `before` and `share` are the shares of the records that follow the path of
/// its feature, without and with the edge.
fn cases(point: Point, before: f64, share: f64) -> (Cases, Cases) {
    let (t, rest) = (point.at, 1.0 - point.at);
    let (on_before, on) = (t + rest * before, t + rest * share);
    // The factor of a record that left the path is `rest` times the share.
    let left_above = if before > 0.0 { share / before } else { 0.0 };
    let of_left = -1.0 / rest;
    let (of_before, of_own) = ((1.0 - before) / on_before, (1.0 - share) / on);
    let factors = [left_above, rest * share / on_before, on / on_before];
    (factors, [0.0, point.weight * (of_left - of_before), point.weight * (of_own - of_before)])
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "only inlined in a loop does it become a vector instruction")]
fn choose(cases: &Cases, above: u64, own: u64) -> f64 {
    let [left_above, left, follows] = cases.map(f64::to_bits);
    f64::from_bits((left_above & !above) | (left & above & !own) | (follows & own))
}

/// The products down the tree, and their sums up.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn add_products(tree: &TreeContributions, scratch: &mut Scratch, out: &mut [[f64; LANES]]) {
    let (m, products) = (tree.point_count, &mut scratch.products[..]);
    products[..m].fill([1.0; LANES]);
    for split in &tree.splits {
        let above = scratch.follows[split.previous];
        for child in split.children() {
            let own = scratch.follows[child];
            for k in 0..m {
                let parent = products[split.node * m + k];
                let cases = &tree.factors[child * m + k];
                let product = &mut products[child * m + k];
                for lane in 0..LANES {
                    product[lane] = parent[lane] * choose(cases, above[lane], own[lane]);
                }
            }
        }
    }
    for split in tree.splits.iter().rev() {
        let above = scratch.follows[split.previous];
        let mut added = [0.0; LANES];
        for k in 0..m {
            let mut sums = [0.0; LANES];
            for child in split.children() {
                let (own, value) = (scratch.follows[child], tree.values[child]);
                let below = products[child * m + k];
                let cases = &tree.weights[child * m + k];
                for lane in 0..LANES {
                    let sum = below[lane] * value;
                    sums[lane] += sum;
                    added[lane] += sum * choose(cases, above[lane], own[lane]);
                }
            }
            products[split.node * m + k] = sums;
        }
        let out = &mut out[split.test.feature as usize];
        for lane in 0..LANES {
            out[lane] += added[lane];
        }
    }
}
