//! Built-in pull functions that search for values: extremes and their columns, the largest k, the first difference. Of
//! equal values the one in the first column wins, so that the answer does not depend on where partitions are cut.

use std::cmp::Ordering;

use crate::element::{Element, with_values};
use crate::function::{Arity, Columns, FunctionFault, PullFunction, Shape};

/// An extreme of one row: its column and its value. An `i64` beyond 2^53 is rounded in the answer, not in the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The largest magnitude: the infinity norm. The value has its sign.
    Magnitude,
}

impl Extreme {
    pub const ALL: [Self; 3] = [Extreme::Min, Extreme::Max, Extreme::Magnitude];

    /// Whether `x` is more extreme than `best`.
    fn beats<E: Element>(self, x: E, best: E) -> bool {
        match self {
            Extreme::Min => x < best,
            Extreme::Max => x > best,
            Extreme::Magnitude => x.to_f64().abs() > best.to_f64().abs(),
        }
    }
}

impl PullFunction for Extreme {
    type Argument = ();
    type Partial = Option<(u64, f64)>;
    type Answer = (u64, f64);

    fn name(&self) -> &str {
        match self {
            Extreme::Min => "min",
            Extreme::Max => "max",
            Extreme::Magnitude => "norm_inf",
        }
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn read(&self, _argument: &(), columns: &Columns<'_>) -> Result<Self::Partial, FunctionFault> {
        let start = columns.range().start;
        Ok(with_values!(columns.row(0), row => best(*self, row))
            .map(|(at, value)| (start + at as u64, value)))
    }

    fn merge(
        &self,
        _argument: &(),
        _shape: &Shape,
        parts: Vec<Self::Partial>,
    ) -> Result<Self::Answer, FunctionFault> {
        let better =
            |best: (u64, f64), next: (u64, f64)| if self.beats(next.1, best.1) { next } else { best };
        parts
            .into_iter()
            .flatten()
            .reduce(better)
            .ok_or_else(|| FunctionFault::argument("parts", "none with a column", "a column"))
    }
}

fn best<E: Element>(kind: Extreme, row: &[E]) -> Option<(usize, f64)> {
    let mut best = (0, *row.first()?);
    for (i, x) in row.iter().enumerate() {
        if kind.beats(*x, best.1) {
            best = (i, *x);
        }
    }
    Some((best.0, best.1.to_f64()))
}

/// The k largest values of one row, or those of largest magnitude, with their columns, in descending order. There are
/// fewer than k when the row is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopK {
    Value,
    /// The values keep their signs.
    Magnitude,
}

/// Maximum k.
pub const TOP_LIMIT: u64 = 1 << 20;

impl TopK {
    fn order(self, a: &(u64, f64), b: &(u64, f64)) -> Ordering {
        let rank = |x: f64| match self {
            TopK::Value => x,
            TopK::Magnitude => x.abs(),
        };
        // Zeros of both signs are equal.
        let values = rank(b.1).partial_cmp(&rank(a.1)).unwrap_or(Ordering::Equal);
        values.then(a.0.cmp(&b.0))
    }

    /// Truncates the list to the first k.
    fn cut(self, k: usize, all: &mut Vec<(u64, f64)>) {
        if k > 0 && all.len() > k {
            all.select_nth_unstable_by(k - 1, |a, b| self.order(a, b));
        }
        all.truncate(k);
    }
}

impl PullFunction for TopK {
    type Argument = u64;
    type Partial = Vec<(u64, f64)>;
    type Answer = Vec<(u64, f64)>;

    fn name(&self) -> &str {
        match self {
            TopK::Value => "top_k",
            TopK::Magnitude => "top_k_magnitude",
        }
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, k: &u64, _shape: &Shape) -> Result<(), FunctionFault> {
        if *k <= TOP_LIMIT {
            return Ok(());
        }
        Err(FunctionFault::argument("k", k.to_string(), format!("0 to {TOP_LIMIT}")))
    }

    fn read(&self, k: &u64, columns: &Columns<'_>) -> Result<Self::Partial, FunctionFault> {
        let k = *k as usize;
        let mut top = Vec::new();
        with_values!(columns.row(0), row => for (column, x) in columns.range().zip(row) {
            top.push((column, x.to_f64()));
            // At most about twice k values are kept, so that the cost of a cut is shared by k values.
            if top.len() >= 2 * k + 1024 {
                self.cut(k, &mut top);
            }
        });
        self.cut(k, &mut top);
        top.sort_unstable_by(|a, b| self.order(a, b));
        Ok(top)
    }

    fn merge(
        &self,
        k: &u64,
        _shape: &Shape,
        parts: Vec<Self::Partial>,
    ) -> Result<Self::Answer, FunctionFault> {
        let mut all = parts.concat();
        self.cut(*k as usize, &mut all);
        all.sort_unstable_by(|a, b| self.order(a, b));
        Ok(all)
    }
}

/// The first column in which two rows differ; none when they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstDifference;

impl PullFunction for FirstDifference {
    type Argument = ();
    type Partial = Option<u64>;
    type Answer = Option<u64>;

    fn name(&self) -> &'static str {
        "first_difference"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(2)
    }

    fn read(&self, _argument: &(), columns: &Columns<'_>) -> Result<Option<u64>, FunctionFault> {
        let at = with_values!(columns.row(0), x => first_difference(x, columns.typed(1)?));
        Ok(at.map(|at| columns.range().start + at as u64))
    }

    fn merge(
        &self,
        _argument: &(),
        _shape: &Shape,
        parts: Vec<Option<u64>>,
    ) -> Result<Option<u64>, FunctionFault> {
        Ok(parts.into_iter().flatten().next())
    }
}

fn first_difference<E: Element>(x: &[E], y: &[E]) -> Option<usize> {
    x.iter().zip(y).position(|(x, y)| x != y)
}
