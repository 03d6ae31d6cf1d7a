//! The products of vectors that OWL-QN needs, in one visit, restricted to the columns that may move.
//!
//! A column at 0 with v = 0 stays at 0 in the next step. Its y should not enter the direction: because s is 0 in this
//! column, `y = H s` then holds among the other columns with their part of the Hessian, and the recursion on these
//! columns is that of the smooth problem on them (Byrd, Chin, Nocedal, Oztoprak, "A family of second-order methods for
//! convex l1-regularized optimization", 2016, which takes the second derivatives of such a subspace). Over all columns,
//! the y of the columns that stay at 0 would distort the scale and make steps short.
//!
//! The rows and the penalty are those of [`super::quasi_newton`]. The set of columns that may move changes
//! from step to step, so all products of pairs are computed again.

use crate::descent::function::quasi_newton::{
    HISTORY_ROWS, Penalty, StepVectors, check_pairs, fill_step_vectors, penalized, products,
};
use matrix::function::sum::RangeSum;
use matrix::function::{Arity, Columns, Shape};
use matrix::{Element, FunctionFault, PullFunction, with_values};

/// Number of scalars in the answer of [`OrthantProducts`] before the numbers of the pairs.
pub const ORTHANT_SCALARS: usize = 4;

/// Reads z, g, d, z0, g0, h rows of S, h of Y. The pair `z - z0`, `g - g0` follows the others, so there are k = h + 1
/// pairs. The answer is `l1 |d z|`, `0.5 l2 |d z|^2`, `v0 . s` of the new pair, `v . v`; then, over the columns that
/// may move, k rows of `S_i . Y_j`, k rows of `Y_i . Y_j` for j <= i only, the k `S_i . v`, the k `Y_i . v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrthantProducts;

impl OrthantProducts {
    /// Number of values in the answer for k pairs, including the new one.
    pub fn count(k: usize) -> usize {
        ORTHANT_SCALARS + k * k + k * (k + 1) / 2 + 2 * k
    }

    /// Number of pairs in a call of `rows` rows, including the new one.
    fn pairs(rows: usize) -> usize {
        rows.saturating_sub(HISTORY_ROWS) / 2 + 1
    }

    fn read_typed<E: Element>(penalty: Penalty, start: u64, rows: &[&[E]]) -> Vec<RangeSum> {
        let k = Self::pairs(rows.len());
        let mut made = StepVectors::default();
        let mut steps = vec![Vec::new(); k];
        let mut changes = vec![Vec::new(); k];
        let places = product_terms(k);
        RangeSum::many(Self::count(k), start, rows[0].len(), |i, range, out| {
            if i == 0 {
                let first = start + range.start as u64;
                let parts: [&[E]; HISTORY_ROWS] = std::array::from_fn(|k| &rows[k][range.clone()]);
                fill_step_vectors(&mut made, penalty, penalized(&penalty, first, range.len()), parts);
                let moves: Vec<bool> =
                    parts[0].iter().zip(&made.v).map(|(z, v)| z.to_f64() != 0.0 || *v != 0.0).collect();
                for pair in 0..k - 1 {
                    mask_row(&mut steps[pair], &moves, &rows[HISTORY_ROWS + pair][range.clone()]);
                    mask_row(&mut changes[pair], &moves, &rows[HISTORY_ROWS + k - 1 + pair][range.clone()]);
                }
                mask_row(&mut steps[k - 1], &moves, &made.s);
                mask_row(&mut changes[k - 1], &moves, &made.y);
            }
            let StepVectors { s, v, v0, weight, .. } = &made;
            match i {
                0 => out.iter_mut().zip(weight).for_each(|(out, w)| *out = penalty.0 * w.abs()),
                1 => out.iter_mut().zip(weight).for_each(|(out, w)| *out = 0.5 * penalty.1 * w * w),
                2 => products(v0, s, out),
                3 => products(v, v, out),
                _ => match places[i - ORTHANT_SCALARS] {
                    ProductTerm::StepChange(a, b) => products(&steps[a], &changes[b], out),
                    ProductTerm::ChangeChange(a, b) => products(&changes[a], &changes[b], out),
                    ProductTerm::Step(a) => products(&steps[a], v, out),
                    ProductTerm::Change(a) => products(&changes[a], v, out),
                },
            }
        })
    }
}

/// A product in the answer, with the indices of its pairs.
#[derive(Clone, Copy)]
enum ProductTerm {
    StepChange(usize, usize),
    ChangeChange(usize, usize),
    Step(usize),
    Change(usize),
}

/// Returns the products of the answer after the scalars, in order.
fn product_terms(k: usize) -> Vec<ProductTerm> {
    let all = (0..k).flat_map(|a| (0..k).map(move |b| ProductTerm::StepChange(a, b)));
    let lower = (0..k).flat_map(|a| (0..=a).map(move |b| ProductTerm::ChangeChange(a, b)));
    all.chain(lower).chain((0..k).map(ProductTerm::Step)).chain((0..k).map(ProductTerm::Change)).collect()
}

/// Copies `row` where it moves, and 0 elsewhere.
fn mask_row<E: Element>(masked_row: &mut Vec<f64>, moves: &[bool], row: &[E]) {
    masked_row.clear();
    masked_row.extend(row.iter().zip(moves).map(|(x, moves)| if *moves { x.to_f64() } else { 0.0 }));
}

impl PullFunction for OrthantProducts {
    type Argument = Penalty;
    type Partial = Vec<RangeSum>;
    type Answer = Vec<f64>;

    fn name(&self) -> &'static str {
        "orthant_products"
    }

    fn reads(&self) -> Arity {
        Arity::AtLeast(HISTORY_ROWS)
    }

    fn check(&self, penalty: &Penalty, shape: &Shape) -> Result<(), FunctionFault> {
        check_pairs(penalty, shape)
    }

    fn read(&self, penalty: &Penalty, columns: &Columns<'_>) -> Result<Vec<RangeSum>, FunctionFault> {
        let start = columns.range().start;
        Ok(with_values!(columns.row(0), row => Self::read_typed(*penalty, start, &columns.typed_rows(row)?)))
    }

    fn merge(
        &self,
        _penalty: &Penalty,
        shape: &Shape,
        parts: Vec<Vec<RangeSum>>,
    ) -> Result<Vec<f64>, FunctionFault> {
        RangeSum::totals(Self::count(Self::pairs(shape.from)), parts)
    }
}
