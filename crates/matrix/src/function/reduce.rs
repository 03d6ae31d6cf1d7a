//! Built-in pull functions that sum in doubles, with the same bytes wherever partitions are cut
//! ([`crate::function::sum`]).

use multiversion::multiversion;

use crate::element::with_values;
use crate::element::{Element, Values};
use crate::function::products::partial_products;
use crate::function::sum::RangeSum;
use crate::function::{Arity, Columns, FunctionFault, PullFunction, Shape};

/// Sums over one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// `sum x`.
    Sum,
    /// `sum |x|`, the 1-norm.
    AbsoluteSum,
    /// `sum x^2`.
    SquareSum,
    /// `sqrt(sum x^2)`, the 2-norm.
    Norm2,
}

impl Reduce {
    pub const ALL: [Self; 4] = [Reduce::Sum, Reduce::AbsoluteSum, Reduce::SquareSum, Reduce::Norm2];
}

impl PullFunction for Reduce {
    type Argument = ();
    type Partial = RangeSum;
    type Answer = f64;

    fn name(&self) -> &str {
        match self {
            Reduce::Sum => "sum",
            Reduce::AbsoluteSum => "norm_1",
            Reduce::SquareSum => "square_sum",
            Reduce::Norm2 => "norm_2",
        }
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn read(&self, _argument: &(), columns: &Columns<'_>) -> Result<RangeSum, FunctionFault> {
        let row = columns.row(0);
        Ok(RangeSum::of(columns.range().start, columns.len(), |range, out| {
            with_values!(row, row => match self {
                Reduce::Sum => copy_to_f64(&row[range], out),
                Reduce::AbsoluteSum => abs_to_f64(&row[range], out),
                Reduce::SquareSum | Reduce::Norm2 => products(&row[range.clone()], &row[range], out),
            });
        }))
    }

    fn merge(&self, _argument: &(), _shape: &Shape, parts: Vec<RangeSum>) -> Result<f64, FunctionFault> {
        let total = RangeSum::total(&parts)?;
        Ok(match self {
            Reduce::Sum | Reduce::AbsoluteSum | Reduce::SquareSum => total,
            Reduce::Norm2 => total.sqrt(),
        })
    }
}

/// `sum x y` over two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dot;

impl PullFunction for Dot {
    type Argument = ();
    type Partial = RangeSum;
    type Answer = f64;

    fn name(&self) -> &'static str {
        "dot"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(2)
    }

    fn read(&self, _argument: &(), columns: &Columns<'_>) -> Result<RangeSum, FunctionFault> {
        let (x, y) = (columns.row(0), columns.row(1));
        Ok(RangeSum::of(columns.range().start, columns.len(), |range, out| {
            value_products(x.slice(range.clone()), y.slice(range), out);
        }))
    }

    fn merge(&self, _argument: &(), _shape: &Shape, parts: Vec<RangeSum>) -> Result<f64, FunctionFault> {
        RangeSum::total(&parts)
    }
}

/// The inner products of all pairs of k rows, in one visit, as the two loops of L-BFGS need them (Chen et al.,
/// "Large-scale L-BFGS using `MapReduce`", NIPS 2014). The answer is the upper triangle, row by row: `(k + 1) k / 2`
/// numbers, each with the bytes that [`Dot`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gram;

impl Gram {
    /// Returns the index in the answer of the product of rows `i` and `j` of `k`.
    pub fn index(i: usize, j: usize, k: usize) -> usize {
        let (i, j) = (i.min(j), i.max(j));
        i * k - i * (i + 1) / 2 + j
    }
}

impl PullFunction for Gram {
    type Argument = ();
    type Partial = Vec<RangeSum>;
    type Answer = Vec<f64>;

    fn name(&self) -> &'static str {
        "gram"
    }

    fn reads(&self) -> Arity {
        Arity::AtLeast(1)
    }

    fn read(&self, _argument: &(), columns: &Columns<'_>) -> Result<Vec<RangeSum>, FunctionFault> {
        partial_products(columns.row_count(), columns)
    }

    fn merge(
        &self,
        _argument: &(),
        shape: &Shape,
        parts: Vec<Vec<RangeSum>>,
    ) -> Result<Vec<f64>, FunctionFault> {
        RangeSum::totals(shape.from * (shape.from + 1) / 2, parts)
    }
}

/// The number of values that are not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountNonZero;

impl PullFunction for CountNonZero {
    type Argument = ();
    type Partial = u64;
    type Answer = u64;

    fn name(&self) -> &'static str {
        "count_non_zero"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn read(&self, _argument: &(), columns: &Columns<'_>) -> Result<u64, FunctionFault> {
        Ok(with_values!(columns.row(0), row => count_non_zero(row)))
    }

    fn merge(&self, _argument: &(), _shape: &Shape, parts: Vec<u64>) -> Result<u64, FunctionFault> {
        Ok(parts.iter().sum())
    }
}

fn value_products(x: Values<'_>, y: Values<'_>, out: &mut [f64]) {
    with_values!(x, x => products(x, Element::slice(y).expect("rows of one matrix"), out));
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn copy_to_f64<E: Element>(x: &[E], out: &mut [f64]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = x.to_f64();
    }
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn abs_to_f64<E: Element>(x: &[E], out: &mut [f64]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = x.to_f64().abs();
    }
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn products<E: Element>(x: &[E], y: &[E], out: &mut [f64]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = x.to_f64() * y.to_f64();
    }
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn count_non_zero<E: Element>(x: &[E]) -> u64 {
    x.iter().map(|x| u64::from(*x != E::ZERO)).sum()
}
