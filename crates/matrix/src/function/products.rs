//! Inner products of few rows with many rows. Each row is read from memory once, and each product has the bytes that
//! `dot` gives.

use multiversion::multiversion;

use crate::element::{Element, with_values};
use crate::function::reduce::Gram;
use crate::function::sum::{LANES, LEAF_LEN, RangeSum, fold_lanes};
use crate::function::{Arity, Columns, FunctionFault, PullFunction, Shape};

/// Number of columns of a tile, a power of two of leaves. The tiles of the left rows stay in the second-level cache
/// while the tiles of all rows pass by. Shorter tiles are slower: the CPU fetches ahead only within a page of memory.
const TILE: usize = 4096;
/// Number of left rows whose products with one row are computed together: their sums fit in the registers.
const GROUP: usize = 3;

/// The inner products of the first k rows with all rows, in one pass. The argument is k, at least 1. The answer has the
/// products of row 0 with the rows from 0 on, then those of row 1 with the rows from 1 on, and so on to row k - 1: for n
/// rows `k n - k (k - 1) / 2` numbers, at [`Gram::index`]. It is what a step of vector-free L-BFGS needs when the first
/// rows are new and all others are known (Chen et al., "Large-scale L-BFGS using `MapReduce`", NIPS 2014).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerProducts;

impl InnerProducts {
    /// Number of products of the first `left` of `rows` rows.
    fn count(left: usize, rows: usize) -> usize {
        left * rows - left * left.saturating_sub(1) / 2
    }
}

impl PullFunction for InnerProducts {
    type Argument = u64;
    type Partial = Vec<RangeSum>;
    type Answer = Vec<f64>;

    fn name(&self) -> &'static str {
        "inner_products"
    }

    fn reads(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn check(&self, left: &u64, shape: &Shape) -> Result<(), FunctionFault> {
        if (1..=shape.from as u64).contains(left) {
            return Ok(());
        }
        let expected = format!("1 to {}, the number of rows to read", shape.from);
        Err(FunctionFault::argument("number of first rows", left.to_string(), expected))
    }

    fn read(&self, left: &u64, columns: &Columns<'_>) -> Result<Vec<RangeSum>, FunctionFault> {
        partial_products(*left as usize, columns)
    }

    fn merge(&self, left: &u64, shape: &Shape, parts: Vec<Vec<RangeSum>>) -> Result<Vec<f64>, FunctionFault> {
        RangeSum::totals(Self::count(*left as usize, shape.from), parts)
    }
}

/// The products of the first `left` rows with the rows from themselves on, over the columns of a partition.
pub(crate) fn partial_products(left: usize, columns: &Columns<'_>) -> Result<Vec<RangeSum>, FunctionFault> {
    let start = columns.range().start;
    with_values!(columns.row(0), row => Ok(sums_of_products(left, start, &columns.typed_rows(row)?)))
}

fn sums_of_products<E: Element>(left: usize, start: u64, rows: &[&[E]]) -> Vec<RangeSum> {
    let (n, len) = (rows.len(), rows[0].len());
    let mut sums = vec![RangeSum::new(start); InnerProducts::count(left, n)];
    let mut at = 0;
    while at < len {
        let into_tile = (start + at as u64) % TILE as u64;
        let end = len.min(at + TILE - into_tile as usize);
        for (j, right) in rows.iter().enumerate() {
            let mut i = 0;
            while i < left.min(j + 1) {
                let group = (left.min(j + 1) - i).min(GROUP);
                let tile = |k: usize| &rows[i + k][at..end];
                let of = |k: usize| Gram::index(i + k, j, n);
                let right = &right[at..end];
                match group {
                    1 => add_tile([tile(0)], right, [of(0)], &mut sums),
                    2 => add_tile([tile(0), tile(1)], right, [of(0), of(1)], &mut sums),
                    _ => add_tile([0, 1, 2].map(tile), right, [0, 1, 2].map(of), &mut sums),
                }
                i += group;
            }
        }
        at = end;
    }
    sums
}

/// Adds the products of some left rows with one row, over the next columns, to the sums with the indices `of`.
fn add_tile<E: Element, const K: usize>(left: [&[E]; K], right: &[E], of: [usize; K], sums: &mut [RangeSum]) {
    let into_leaf = (sums[of[0]].end() % LEAF_LEN as u64) as usize;
    let head = right.len().min((LEAF_LEN - into_leaf) % LEAF_LEN);
    let tail = head + (right.len() - head) / LEAF_LEN * LEAF_LEN;
    add_terms(left.map(|row| &row[..head]), &right[..head], of, sums);
    let mut leaves = [[0.0; TILE / LEAF_LEN]; K];
    let count = (tail - head) / LEAF_LEN;
    leaf_products(left.map(|row| &row[head..tail]), &right[head..tail], &mut leaves);
    for (index, leaves) in of.iter().zip(&leaves) {
        sums[*index].add_leaves(&leaves[..count]);
    }
    add_terms(left.map(|row| &row[tail..]), &right[tail..], of, sums);
}

/// Adds products one by one, where columns do not fill a leaf.
fn add_terms<E: Element, const K: usize>(
    left: [&[E]; K],
    right: &[E],
    of: [usize; K],
    sums: &mut [RangeSum],
) {
    for (index, row) in of.iter().zip(left) {
        let terms: Vec<f64> = row.iter().zip(right).map(|(x, y)| x.to_f64() * y.to_f64()).collect();
        sums[*index].add(&terms);
    }
}

/// Computes the sums of the leaves of a tile, in the order of additions of [`RangeSum`].
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn leaf_products<E: Element, const K: usize>(
    left: [&[E]; K],
    right: &[E],
    out: &mut [[f64; TILE / LEAF_LEN]; K],
) {
    for leaf in 0..right.len() / LEAF_LEN {
        let start = leaf * LEAF_LEN;
        let mut sums = [[0.0; LANES]; K];
        for at in (start..start + LEAF_LEN).step_by(LANES) {
            let right = &right[at..at + LANES];
            for (sums, row) in sums.iter_mut().zip(left) {
                let row = &row[at..at + LANES];
                for lane in 0..LANES {
                    sums[lane] += row[lane].to_f64() * right[lane].to_f64();
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            out[leaf] = fold_lanes(sums);
        }
    }
}
