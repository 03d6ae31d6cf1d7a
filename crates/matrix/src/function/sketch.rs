//! Quantiles of one row by a sketch with bounded relative error: `DDSketch` (Masson, Rim, Lee, VLDB 2019).
//!
//! A value x > 0 is counted in the bucket `ceil(log_gamma(x))` with `gamma = (1 + a) / (1 - a)`. The bucket represents
//! the value `2 gamma^i / (gamma + 1)`, which differs from x by at most `a x`. Negative values have buckets of their
//! own, and zeros are counted separately. Buckets are counts, so the answer does not depend on where partitions are
//! cut. The extremes are exact.

use std::collections::BTreeMap;

use math::elementary::{exp, ln};

use crate::element::Element;
use crate::element::with_values;
use crate::function::{Arity, Columns, FunctionFault, PullFunction, Shape, check_real};

/// Minimum relative error: with it, a sketch of all doubles has 1.4 million buckets.
const MIN_ERROR: f64 = 0.001;

/// Quantiles of one row. The argument is the relative error, in `[0.001, 0.5]`, and the quantiles, in `[0, 1]`. The
/// quantile q is the value of rank `floor(q (n - 1))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles;

/// Buckets of negative values and of positive values (index and count), number of zeros, smallest value, largest value.
type Sketch = (Vec<(i64, u64)>, Vec<(i64, u64)>, u64, f64, f64);

fn log_gamma(error: f64) -> f64 {
    ln((1.0 + error) / (1.0 - error))
}

impl PullFunction for Quantiles {
    type Argument = (f64, Vec<f64>);
    type Partial = Option<Sketch>;
    type Answer = Vec<f64>;

    fn name(&self) -> &'static str {
        "quantiles"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, (error, quantiles): &Self::Argument, _shape: &Shape) -> Result<(), FunctionFault> {
        check_real("relative error", *error, |e| (MIN_ERROR..=0.5).contains(&e), "a number in [0.001, 0.5]")?;
        let in_range = |q| (0.0..=1.0).contains(&q);
        quantiles.iter().try_for_each(|q| check_real("quantile", *q, in_range, "a number in [0, 1]"))
    }

    fn read(
        &self,
        (error, _): &Self::Argument,
        columns: &Columns<'_>,
    ) -> Result<Self::Partial, FunctionFault> {
        Ok(with_values!(columns.row(0), row => sketch(log_gamma(*error), row)))
    }

    fn merge(
        &self,
        (error, quantiles): &Self::Argument,
        _shape: &Shape,
        parts: Vec<Self::Partial>,
    ) -> Result<Vec<f64>, FunctionFault> {
        let (mut below, mut above) = (BTreeMap::new(), BTreeMap::new());
        let (mut zeros, mut low, mut high) = (0u64, f64::INFINITY, f64::NEG_INFINITY);
        for (negative, positive, zero, smallest, largest) in parts.into_iter().flatten() {
            for (all, own) in [(&mut below, negative), (&mut above, positive)] {
                for (i, count) in own {
                    *all.entry(i).or_insert(0u64) += count;
                }
            }
            zeros += zero;
            (low, high) = (low.min(smallest), high.max(largest));
        }
        let value = |i: i64| {
            let log = log_gamma(*error);
            exp(i as f64 * log + ln(2.0 / (exp(log) + 1.0)))
        };
        // The buckets are ordered from the smallest value to the largest.
        let ascending: Vec<(f64, u64)> = below
            .iter()
            .rev()
            .map(|(i, count)| (-value(*i), *count))
            .chain(std::iter::once((0.0, zeros)))
            .chain(above.iter().map(|(i, count)| (value(*i), *count)))
            .collect();
        let count: u64 = ascending.iter().map(|(_, count)| count).sum();
        let at = |q: &f64| {
            let last = count.saturating_sub(1);
            let rank = (q * last as f64) as u64;
            if rank == 0 || rank >= last {
                return if rank == 0 { low } else { high };
            }
            let mut passed = 0;
            let bucket = ascending.iter().find(|(_, count)| {
                passed += count;
                passed > rank
            });
            bucket.map_or(high, |(value, _)| *value).clamp(low, high)
        };
        if count == 0 {
            return Err(FunctionFault::argument("parts", "none with a column", "a column"));
        }
        Ok(quantiles.iter().map(at).collect())
    }
}

fn sketch<E: Element>(log_gamma: f64, row: &[E]) -> Option<Sketch> {
    let (mut negative, mut positive, mut zeros) = (BTreeMap::new(), BTreeMap::new(), 0);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for x in row.iter().map(|x| x.to_f64()) {
        (low, high) = (low.min(x), high.max(x));
        if x == 0.0 {
            zeros += 1;
            continue;
        }
        let buckets = if x < 0.0 { &mut negative } else { &mut positive };
        *buckets.entry((ln(x.abs()) / log_gamma).ceil() as i64).or_insert(0) += 1;
    }
    let list = |buckets: BTreeMap<i64, u64>| buckets.into_iter().collect();
    (!row.is_empty()).then(|| (list(negative), list(positive), zeros, low, high))
}
