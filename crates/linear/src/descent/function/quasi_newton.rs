//! The products of vectors that L-BFGS and OWL-QN need, in one visit (Chen et al., "Large-scale L-BFGS using
//! `MapReduce`", NIPS 2014; Andrew, Gao, "Scalable training of L1-regularized log-linear models", ICML 2007).
//!
//! The objective in a column is `f(z) + l1 d |z| + 0.5 l2 (d z)^2`, where z is the point of the recursion, d > 0 is the
//! scale of the column, and `d z` is the parameter itself. Gradients are with respect to z; they include the l2 term
//! but not the l1 term. Columns from `free_from` on have no penalty.
//!
//! | row | what |
//! |---|---|
//! | z, g | point and gradient |
//! | d | scales |
//! | z0, g0 | point and gradient before the step; `s = z - z0`, `y = g - g0` |
//! | S, Y | h older steps and the changes of the gradient over them |
//! | v | not stored: the pseudo-gradient of z and g, which is g without l1 |

use multiversion::multiversion;

use matrix::function::sum::RangeSum;
use matrix::function::{Arity, Columns, Shape, check_real, floats_only};
use matrix::{Element, FunctionFault, PullFunction, with_values};

/// `(l1, l2, free_from)`.
pub type Penalty = (f64, f64, u64);

/// Number of rows of [`QuasiNewtonProducts`] before S: z, g, d, z0, g0.
pub const HISTORY_ROWS: usize = 5;
/// Number of scalars in the answer of [`QuasiNewtonProducts`] that do not depend on h.
pub const HISTORY_SCALARS: usize = 8;
/// Number of scalars for each pair of the history.
pub const PAIR_SCALARS: usize = 5;

pub(crate) fn check_penalty(penalty: &Penalty, shape: &Shape) -> Result<(), FunctionFault> {
    floats_only(shape)?;
    check_real("l1", penalty.0, |x| x >= 0.0, "a finite number >= 0")?;
    check_real("l2", penalty.1, |x| x >= 0.0, "a finite number >= 0")
}

/// Checks the penalty, and that the rows after the first [`HISTORY_ROWS`] are pairs.
pub(crate) fn check_pairs(penalty: &Penalty, shape: &Shape) -> Result<(), FunctionFault> {
    check_penalty(penalty, shape)?;
    if (shape.from - HISTORY_ROWS).is_multiple_of(2) {
        return Ok(());
    }
    let expected = format!("{HISTORY_ROWS}, and 2 for each pair of the history");
    Err(FunctionFault::argument("rows to read", shape.from.to_string(), expected))
}

/// Returns how many of the `len` columns from `start` on have penalties.
pub(crate) fn penalized(penalty: &Penalty, start: u64, len: usize) -> usize {
    penalty.2.saturating_sub(start).min(len as u64) as usize
}

/// The pseudo-gradient of `f + l1 |z|`: the steepest of the one-sided slopes, or 0 when 0 lies between them (Andrew and
/// Gao, eq. 4).
#[inline]
pub(crate) fn pseudo_gradient(z: f64, g: f64, l1: f64) -> f64 {
    if z > 0.0 {
        g + l1
    } else if z < 0.0 {
        g - l1
    } else if g + l1 < 0.0 {
        g + l1
    } else if g - l1 > 0.0 {
        g - l1
    } else {
        0.0
    }
}

/// Reads z, g, d, z0, g0, the h rows of S and the h rows of Y, and computes everything that a line search and the next
/// direction need. The answer is `l1 |d z|`, `0.5 l2 |d z|^2`, `v0 . s` with the pseudo-gradient v0 of z0 and g0,
/// `s . y`, `s . v`, `y . y`, `y . v`, `v . v`; then for each i `S_i . y`, `S_i . v`, `Y_i . s`, `Y_i . y`, `Y_i . v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuasiNewtonProducts;

/// The vectors s, y, v and v0 of some columns in doubles. `weight` is `d z`, or 0 in columns without penalty.
#[derive(Default)]
pub(crate) struct StepVectors {
    pub(crate) s: Vec<f64>,
    pub(crate) y: Vec<f64>,
    pub(crate) v: Vec<f64>,
    pub(crate) v0: Vec<f64>,
    pub(crate) weight: Vec<f64>,
}

impl QuasiNewtonProducts {
    /// Number of pairs in a call of `rows` rows.
    fn pairs(rows: usize) -> usize {
        rows.saturating_sub(HISTORY_ROWS) / 2
    }

    fn read_typed<E: Element>(penalty: Penalty, start: u64, rows: &[&[E]]) -> Vec<RangeSum> {
        let h = Self::pairs(rows.len());
        let mut made = StepVectors::default();
        let count = HISTORY_SCALARS + PAIR_SCALARS * h;
        RangeSum::many(count, start, rows[0].len(), |i, range, out| {
            if i == 0 {
                let first = start + range.start as u64;
                let parts: [&[E]; HISTORY_ROWS] = std::array::from_fn(|k| &rows[k][range.clone()]);
                fill_step_vectors(&mut made, penalty, penalized(&penalty, first, range.len()), parts);
            }
            let StepVectors { s, y, v, v0, weight } = &made;
            match i {
                0 => out.iter_mut().zip(weight).for_each(|(out, w)| *out = penalty.0 * w.abs()),
                1 => out.iter_mut().zip(weight).for_each(|(out, w)| *out = 0.5 * penalty.1 * w * w),
                2 => products(v0, s, out),
                3 => products(s, y, out),
                4 => products(s, v, out),
                5 => products(y, y, out),
                6 => products(y, v, out),
                7 => products(v, v, out),
                _ => {
                    let (pair, which) =
                        ((i - HISTORY_SCALARS) / PAIR_SCALARS, (i - HISTORY_SCALARS) % PAIR_SCALARS);
                    let step = &rows[HISTORY_ROWS + pair][range.clone()];
                    let change = &rows[HISTORY_ROWS + h + pair][range];
                    match which {
                        0 => products(step, y, out),
                        1 => products(step, v, out),
                        2 => products(change, s, out),
                        3 => products(change, y, out),
                        _ => products(change, v, out),
                    }
                }
            }
        })
    }
}

/// Fills `made`. The first `penalized` columns have penalties.
pub(crate) fn fill_step_vectors<E: Element>(
    made: &mut StepVectors,
    penalty: Penalty,
    penalized: usize,
    rows: [&[E]; HISTORY_ROWS],
) {
    let [z, g, d, z0, g0] = rows;
    let len = z.len();
    for values in [&mut made.s, &mut made.y, &mut made.v, &mut made.v0, &mut made.weight] {
        values.resize(len, 0.0);
    }
    for i in 0..len {
        let [z, g, d, z0, g0] = [z, g, d, z0, g0].map(|row| row[i].to_f64());
        let inside = if i < penalized { 1.0 } else { 0.0 };
        let l1 = inside * penalty.0 * d;
        made.s[i] = z - z0;
        made.y[i] = g - g0;
        made.v[i] = if l1 > 0.0 { pseudo_gradient(z, g, l1) } else { g };
        made.v0[i] = if l1 > 0.0 { pseudo_gradient(z0, g0, l1) } else { g0 };
        made.weight[i] = inside * d * z;
    }
}

impl PullFunction for QuasiNewtonProducts {
    type Argument = Penalty;
    type Partial = Vec<RangeSum>;
    type Answer = Vec<f64>;

    fn name(&self) -> &'static str {
        "quasi_newton_products"
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
        let count = HISTORY_SCALARS + PAIR_SCALARS * Self::pairs(shape.from);
        RangeSum::totals(count, parts)
    }
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
pub(crate) fn products<E: Element>(x: &[E], y: &[f64], out: &mut [f64]) {
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = x.to_f64() * y;
    }
}
