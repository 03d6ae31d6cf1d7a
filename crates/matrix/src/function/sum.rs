//! Sums that do not depend on where the columns are cut into partitions.
//!
//! The sum of n terms is defined by a tree over the absolute column numbers. A leaf has [`LEAF_LEN`] columns and starts
//! at a multiple of it. Its terms are added in `LANES` interleaved sums that are folded by halves; a column after the
//! last counts as 0. Two adjacent full leaves, the first with an even number, make a node; two such nodes make the next
//! one, and so on. The roots of an incomplete tree are added from left to right, with a last incomplete leaf at the
//! end.
//!
//! The partial answer of a partition has the nodes of that tree that lie wholly in it, at most two on each level, and
//! the separate terms of the leaves that its ends cut. Joining partial answers completes leaves and nodes. The
//! additions are the same for any partitioning, so the sum has the same bytes. All of it is computed in doubles.

use std::ops::Range;

use multiversion::multiversion;

use crate::function::FunctionFault;
use crate::function::value::FunctionValue;

/// Number of columns of a leaf. Partitions that are cut at multiples of it have no separate terms to send.
pub const LEAF_LEN: usize = 256;
/// Number of independent sums in a leaf.
pub(crate) const LANES: usize = 16;
/// Number of terms that are computed at a time.
const CHUNK: usize = 4 * LEAF_LEN;

/// Returns the first columns of at most `partition_count` partitions of nearly equal length, cut at multiples of
/// [`LEAF_LEN`].
pub fn even_starts(columns: u64, partition_count: u32) -> Vec<u64> {
    let leaves = columns.div_ceil(LEAF_LEN as u64).max(1);
    let count = u64::from(partition_count.max(1)).min(leaves);
    (0..count)
        .map(|i| (u128::from(i) * u128::from(leaves) / u128::from(count)) as u64 * LEAF_LEN as u64)
        .collect()
}

/// The sum of the terms of a range of columns, as far as its additions do not depend on other columns.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSum {
    start: u64,
    end: u64,
    /// Terms before the first multiple of [`LEAF_LEN`].
    head: Vec<f64>,
    nodes: Vec<Node>,
    /// Terms of the last leaf, which is incomplete.
    tail: Vec<f64>,
}

/// The sum of the leaves `index << level .. (index + 1) << level`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    level: u32,
    index: u64,
    sum: f64,
}

impl RangeSum {
    /// Creates the sum of no terms. The next term is that of column `start`.
    pub fn new(start: u64) -> Self {
        Self { start, end: start, head: Vec::new(), nodes: Vec::new(), tail: Vec::new() }
    }

    /// Sums over `len` columns from `start` on. `terms` writes the terms of a range, counted from 0, into the slice.
    pub fn of(start: u64, len: usize, mut terms: impl FnMut(Range<usize>, &mut [f64])) -> Self {
        let mut sums = Self::many(1, start, len, |_, range, out| terms(range, out));
        sums.pop().unwrap_or_else(|| Self::new(start))
    }

    /// Computes `count` sums in one pass. The first argument of `terms` is the index of the sum.
    pub fn many(
        count: usize,
        start: u64,
        len: usize,
        mut terms: impl FnMut(usize, Range<usize>, &mut [f64]),
    ) -> Vec<Self> {
        let mut sums = vec![Self::new(start); count];
        let mut buffer = [0.0; CHUNK];
        let mut at = 0;
        while at < len {
            let into_leaf = ((start + at as u64) % LEAF_LEN as u64) as usize;
            let chunk = len.min(at + CHUNK - into_leaf) - at;
            for (i, sum) in sums.iter_mut().enumerate() {
                terms(i, at..at + chunk, &mut buffer[..chunk]);
                if into_leaf == 0 && chunk == CHUNK {
                    sum.full_leaves(&buffer);
                } else {
                    sum.add(&buffer[..chunk]);
                }
            }
            at += chunk;
        }
        sums
    }

    /// The column after the last.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds the terms of the next columns.
    pub fn add(&mut self, mut terms: &[f64]) {
        while !terms.is_empty() {
            let into_leaf = (self.end % LEAF_LEN as u64) as usize;
            let (own, rest) = terms.split_at(terms.len().min(LEAF_LEN - into_leaf));
            terms = rest;
            self.end += own.len() as u64;
            // The start of this leaf belongs to another partition, unless this sum has the leaf from its start.
            if self.nodes.is_empty() && self.tail.is_empty() && into_leaf != 0 {
                self.head.extend_from_slice(own);
                continue;
            }
            self.tail.extend_from_slice(own);
            if self.tail.len() == LEAF_LEN {
                let sum = leaf_sum(&self.tail);
                self.tail.clear();
                self.push_node(Node { level: 0, index: self.end / LEAF_LEN as u64 - 1, sum });
            }
        }
    }

    fn full_leaves(&mut self, terms: &[f64; CHUNK]) {
        self.add_leaves(&leaf_sums(terms));
    }

    /// Adds the sums of the next leaves. The next column is the first of a leaf.
    pub(crate) fn add_leaves(&mut self, sums: &[f64]) {
        for sum in sums {
            self.end += LEAF_LEN as u64;
            self.push_node(Node { level: 0, index: self.end / LEAF_LEN as u64 - 1, sum: *sum });
        }
    }

    /// Adds the next node and merges pairs of nodes.
    fn push_node(&mut self, mut node: Node) {
        while let Some(last) = self.nodes.last()
            && last.level == node.level
            && last.index + 1 == node.index
            && node.index % 2 == 1
        {
            node = Node { level: node.level + 1, index: node.index / 2, sum: last.sum + node.sum };
            self.nodes.pop();
        }
        self.nodes.push(node);
    }

    /// Appends the sum of the columns that follow.
    fn append(&mut self, next: &Self) -> Result<(), FunctionFault> {
        if next.start != self.end {
            let actual = format!("columns from {} on", next.start);
            return Err(FunctionFault::argument(
                "part of a sum",
                actual,
                format!("those from {} on", self.end),
            ));
        }
        self.add(&next.head);
        next.nodes.iter().for_each(|node| self.push_node(*node));
        self.end = next.end - next.tail.len() as u64;
        self.add(&next.tail);
        Ok(())
    }

    /// Returns `count` sums over all columns from the partial answers, which are in the order of columns and have
    /// `count` sums each.
    pub fn totals(count: usize, parts: Vec<Vec<Self>>) -> Result<Vec<f64>, FunctionFault> {
        if let Some(part) = parts.iter().find(|part| part.len() != count) {
            let actual = format!("{} sums in a partial answer", part.len());
            return Err(FunctionFault::argument("parts", actual, count.to_string()));
        }
        let mut sums: Vec<Vec<Self>> = vec![Vec::with_capacity(parts.len()); count];
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(sums, sum)| sums.push(sum));
        }
        sums.iter().map(|parts| Self::total(parts)).collect()
    }

    /// Returns the sum over all columns from the partial sums in the order of columns.
    pub fn total(parts: &[Self]) -> Result<f64, FunctionFault> {
        let mut all = Self::new(0);
        parts.iter().try_for_each(|part| all.append(part))?;
        if !all.tail.is_empty() {
            all.tail.resize(LEAF_LEN, 0.0);
            let sum = leaf_sum(&all.tail);
            all.nodes.push(Node { level: 0, index: 0, sum });
        }
        Ok(all.nodes.iter().map(|node| node.sum).fold(0.0, |total, sum| total + sum))
    }
}

/// Sums the terms of a leaf ([`LEAF_LEN`]).
fn leaf_sum(terms: &[f64]) -> f64 {
    let (rows, _) = terms.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for row in rows {
        for lane in 0..LANES {
            sums[lane] += row[lane];
        }
    }
    fold_lanes(sums)
}

/// Adds the interleaved sums of a leaf, by halves.
#[inline]
pub(crate) fn fold_lanes(mut sums: [f64; LANES]) -> f64 {
    for lane in 0..8 {
        sums[lane] += sums[lane + 8];
    }
    for lane in 0..4 {
        sums[lane] += sums[lane + 4];
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn leaf_sums(terms: &[f64; CHUNK]) -> [f64; CHUNK / LEAF_LEN] {
    let mut out = [0.0; CHUNK / LEAF_LEN];
    for (sum, leaf) in out.iter_mut().zip(terms.as_chunks::<LEAF_LEN>().0) {
        let mut sums = [0.0; LANES];
        for row in leaf.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                sums[lane] += row[lane];
            }
        }
        *sum = fold_lanes(sums);
    }
    out
}

impl FunctionValue for RangeSum {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.start, self.end).pack(out);
        (self.head.len() as u64).pack(out);
        self.head.iter().for_each(|term| term.pack(out));
        let nodes: Vec<(u32, u64, f64)> =
            self.nodes.iter().map(|node| (node.level, node.index, node.sum)).collect();
        nodes.pack(out);
        self.tail.pack(out);
    }

    fn unpack(bytes: &mut &[u8]) -> Result<Self, FunctionFault> {
        let (start, end) = FunctionValue::unpack(bytes)?;
        let head = Vec::unpack(bytes)?;
        let nodes = Vec::<(u32, u64, f64)>::unpack(bytes)?;
        let nodes: Vec<Node> =
            nodes.into_iter().map(|(level, index, sum)| Node { level, index, sum }).collect();
        let tail = Vec::unpack(bytes)?;
        let sum = Self { start, end, head, nodes, tail };
        if sum.is_whole() {
            return Ok(sum);
        }
        let actual = format!("other columns than {start} to {end}");
        Err(FunctionFault::argument("part of a sum", actual, "each column once"))
    }

    fn is_finite(&self) -> bool {
        self.nodes.iter().all(|node| node.sum.is_finite()) && self.head.is_finite() && self.tail.is_finite()
    }
}

impl RangeSum {
    /// Whether head, nodes and tail follow each other without a gap.
    fn is_whole(&self) -> bool {
        let leaf = LEAF_LEN as u64;
        let after_head = self.start.checked_add(self.head.len() as u64);
        let mut at = after_head;
        for node in &self.nodes {
            let width = leaf.checked_shl(node.level).filter(|width| *width >= leaf && *width < 1 << 63);
            at = width
                .and_then(|width| (node.index.checked_mul(width) == at).then_some(at?.checked_add(width)?));
        }
        let cut_head = self.head.is_empty()
            || (!self.start.is_multiple_of(leaf) && self.start % leaf + self.head.len() as u64 <= leaf);
        let at_leaf = self.tail.is_empty() || at.is_some_and(|at| at.is_multiple_of(leaf));
        at.and_then(|at| at.checked_add(self.tail.len() as u64)) == Some(self.end)
            && self.tail.len() < LEAF_LEN
            && cut_head
            && at_leaf
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::function::{pack, unpack};

    fn part(terms: &[f64], range: Range<usize>) -> RangeSum {
        RangeSum::of(range.start as u64, range.len(), |own, out| {
            out.copy_from_slice(&terms[range.start + own.start..range.start + own.end]);
        })
    }

    /// The tree of the module doc, written as a recursion.
    fn serial(terms: &[f64]) -> f64 {
        fn tree(terms: &[f64]) -> f64 {
            if terms.len() == LEAF_LEN {
                let mut sums: Vec<f64> =
                    (0..LANES).map(|l| terms.iter().skip(l).step_by(LANES).sum()).collect();
                while sums.len() > 1 {
                    let half = sums.len() / 2;
                    sums = (0..half).map(|l| sums[l] + sums[l + half]).collect();
                }
                return sums[0];
            }
            let (a, b) = terms.split_at(terms.len() / 2);
            tree(a) + tree(b)
        }
        let mut padded = terms.to_vec();
        padded.resize(terms.len().next_multiple_of(LEAF_LEN), 0.0);
        let (mut total, mut rest) = (0.0, &padded[..terms.len() / LEAF_LEN * LEAF_LEN]);
        while !rest.is_empty() {
            let width = LEAF_LEN << (rest.len() / LEAF_LEN).ilog2();
            total += tree(&rest[..width]);
            rest = &rest[width..];
        }
        let tail = &padded[terms.len() / LEAF_LEN * LEAF_LEN..];
        if tail.is_empty() { total } else { total + tree(tail) }
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_bytes_of_the_serial_tree(
            len in 1usize..9_000,
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..15),
            seed in any::<u64>(),
        ) {
            let mut random = math::random::stream(seed, math::random::Purpose::Test, 0, 0);
            let terms: Vec<f64> = (0..len).map(|_| random.normal() * 10f64.powi(random.below(20) as i32)).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(len + 1)).chain([0, len]).collect();
            cuts.sort_unstable();
            let parts: Vec<RangeSum> = cuts.array_windows().map(|[a, b]| part(&terms, *a..*b)).collect();
            for part in &parts {
                prop_assert_eq!(unpack::<RangeSum>(&pack(part)), Ok(part.clone()));
                prop_assert!(part.nodes.len() <= 2 * 10);
            }
            let total = RangeSum::total(&parts).unwrap();
            prop_assert_eq!(total.to_bits(), serial(&terms).to_bits());
            let mut one_by_one = RangeSum::new(0);
            for term in &terms {
                one_by_one.add(&[*term]);
            }
            prop_assert_eq!(RangeSum::total(&[one_by_one]).unwrap().to_bits(), total.to_bits());
        }

        #[test]
        fn parts_that_lie_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = unpack::<RangeSum>(&bytes);
        }
    }

    #[test]
    fn even_starts_are_ascending_multiples_of_a_leaf() {
        for (columns, count, expected) in [
            (1, 9, vec![0]),
            (1024, 2, vec![0, 512]),
            (1000, 4, vec![0, 256, 512, 768]),
            (600, 2, vec![0, 256]),
        ] {
            assert_eq!(even_starts(columns, count), expected, "{columns} {count}");
        }
    }

    #[test]
    fn a_part_that_is_missing_is_an_error() {
        let terms = vec![1.0; 1000];
        let parts = [part(&terms, 0..300), part(&terms, 400..1000)];
        assert!(RangeSum::total(&parts).is_err());
        let mut lying = part(&terms, 0..300);
        lying.end = 301;
        assert!(unpack::<RangeSum>(&pack(&lying)).is_err());
    }
}
