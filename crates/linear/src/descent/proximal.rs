//! The problem that a task minimizes by itself in an iteration of ADMM: `f(x) + rho / 2 |x - c|^2`, by L-BFGS on
//! vectors of its own (Nocedal and Wright, algorithms 7.4, 3.5 and 3.6).
//!
//! The history keeps pairs of f alone: f is the same in all iterations, while rho and c change. The term of rho is
//! known and is added where it is needed. So the history stays valid from one iteration to the next, and a few steps
//! per iteration are enough. Every pair has positive curvature, because f is convex and rho > 0.
//!
//! **Cost** for m pairs and d features: `2 m + 6` vectors of d doubles; a step takes 4 m d multiply-adds besides a
//! reading of the records.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::line_search::{SearchDecision, WolfeSearch};

/// A call ends when the norm of the gradient is at most this share of its first value: later steps are better made in
/// the next iteration.
const SLOPE_REDUCTION: f64 = 0.1;

/// f at a point, without the term of rho.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    pub x: Vec<f64>,
    /// `f(x)`.
    pub value: f64,
    /// The gradient of f at x.
    pub gradient: Vec<f64>,
}

impl Evaluation {
    /// `f(x) + rho / 2 |x - c|^2`.
    fn total(&self, rho: f64, center: &[f64]) -> f64 {
        let square: f64 = self.x.iter().zip(center).map(|(x, c)| (x - c) * (x - c)).sum();
        self.value + 0.5 * rho * square
    }

    /// The gradient of [`Self::total`].
    fn total_gradient(&self, rho: f64, center: &[f64]) -> Vec<f64> {
        let terms = self.gradient.iter().zip(self.x.iter().zip(center));
        terms.map(|(g, (x, c))| g + rho * (x - c)).collect()
    }
}

/// A step s and the change y of the gradient of f over it, with their products.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CurvaturePair {
    s: Vec<f64>,
    y: Vec<f64>,
    ss: f64,
    sy: f64,
    yy: f64,
}

/// The solver, with the pairs that it keeps from one call to the next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Proximal {
    history: usize,
    pairs: VecDeque<CurvaturePair>,
}

impl Proximal {
    /// A solver that keeps `history` pairs.
    pub fn new(history: usize) -> Self {
        Self { history, pairs: VecDeque::new() }
    }

    /// Makes up to `limit` steps down from `at`, and sets `at` to the last point. `f` returns value and gradient, or
    /// `None` if it was told to stop; then the result is false, and `at` is the point before that step.
    ///
    /// # Panics
    /// If point, gradient and `center` have different lengths, or rho is not positive.
    pub fn minimize<E>(
        &mut self,
        at: &mut Evaluation,
        (rho, center): (f64, &[f64]),
        limit: u64,
        mut f: impl FnMut(&[f64]) -> Result<Option<(f64, Vec<f64>)>, E>,
    ) -> Result<bool, E> {
        assert!(at.x.len() == center.len() && at.x.len() == at.gradient.len(), "one value a column");
        assert!(rho > 0.0, "rho is {rho}");
        let mut enough = None;
        for _ in 0..limit {
            let gradient = at.total_gradient(rho, center);
            let size = dot(&gradient, &gradient).sqrt();
            if size <= *enough.get_or_insert(SLOPE_REDUCTION * size) {
                break;
            }
            let direction = self.direction(&gradient, rho);
            let first = if self.pairs.is_empty() { 1.0 / size.max(1.0) } else { 1.0 };
            let (value, slope) = (at.total(rho, center), dot(&gradient, &direction));
            if slope.abs() <= f64::EPSILON * value.abs() {
                // The decrease that a step predicts is below rounding.
                break;
            }
            let search = WolfeSearch::new(value, slope, first);
            let Some(mut search) = search else {
                self.pairs.clear();
                continue;
            };
            let next = loop {
                let t = search.length();
                let x: Vec<f64> = at.x.iter().zip(&direction).map(|(x, p)| x + t * p).collect();
                let Some((value, gradient)) = f(&x)? else { return Ok(false) };
                let tried = Evaluation { x, value, gradient };
                let slope = dot(&tried.total_gradient(rho, center), &direction);
                match search.observe(tried.total(rho, center), slope) {
                    SearchDecision::Accept => break Some(tried),
                    SearchDecision::Try(_) => {}
                    SearchDecision::Fail(_) => break None,
                }
            };
            match next {
                Some(next) => {
                    self.store_pair(at, &next);
                    *at = next;
                }
                None if self.pairs.is_empty() => break,
                None => self.pairs.clear(),
            }
        }
        Ok(true)
    }

    /// Adds the pair of two evaluations of f to the history.
    pub fn store_pair(&mut self, from: &Evaluation, to: &Evaluation) {
        let s: Vec<f64> = to.x.iter().zip(&from.x).map(|(to, from)| to - from).collect();
        let y: Vec<f64> = to.gradient.iter().zip(&from.gradient).map(|(to, from)| to - from).collect();
        let (ss, sy, yy) = (dot(&s, &s), dot(&s, &y), dot(&y, &y));
        // A value below 0 comes from rounding.
        if ss > 0.0 && sy >= 0.0 && yy.is_finite() {
            if self.pairs.len() == self.history {
                self.pairs.pop_front();
            }
            self.pairs.push_back(CurvaturePair { s, y, ss, sy, yy });
        }
    }

    /// `- H gradient` for the pairs `(s, y + rho s)`.
    fn direction(&self, gradient: &[f64], rho: f64) -> Vec<f64> {
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let curvature = |pair: &CurvaturePair| pair.sy + rho * pair.ss;
        let mut alphas = Vec::with_capacity(self.pairs.len());
        for pair in self.pairs.iter().rev() {
            let alpha = dot(&pair.s, &q) / curvature(pair);
            for (q, (s, y)) in q.iter_mut().zip(pair.s.iter().zip(&pair.y)) {
                *q -= alpha * (y + rho * s);
            }
            alphas.push(alpha);
        }
        if let Some(last) = self.pairs.back() {
            let gamma = curvature(last) / (last.yy + rho * (2.0 * last.sy + rho * last.ss));
            for q in &mut q {
                *q *= gamma;
            }
        }
        for (pair, alpha) in self.pairs.iter().zip(alphas.iter().rev()) {
            let beta = (dot(&pair.y, &q) + rho * dot(&pair.s, &q)) / curvature(pair);
            q.iter_mut().zip(&pair.s).for_each(|(q, s)| *q += (alpha - beta) * s);
        }
        q
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tolerance for the minimum of a quadratic whose curvatures are 1 to 40.
    const TOLERANCE: f64 = 1e-6;
    const LEN: usize = 40;

    /// `sum of (j + 1) (x_j - b_j)^2 / 2`
    fn bowl(x: &[f64]) -> (f64, Vec<f64>) {
        let part = |j: usize| x[j] - ((j * 37) % 11) as f64;
        let value = (0..x.len()).map(|j| 0.5 * (j + 1) as f64 * part(j) * part(j)).sum();
        (value, (0..x.len()).map(|j| (j + 1) as f64 * part(j)).collect())
    }

    fn at(x: Vec<f64>) -> Evaluation {
        let (value, gradient) = bowl(&x);
        Evaluation { x, value, gradient }
    }

    /// Calls the solver until all columns are near the minimum, `((j + 1) b_j + rho c_j) / (j + 1 + rho)`. Returns the
    /// number of readings.
    fn descend(solver: &mut Proximal, point: &mut Evaluation, rho: f64, center: &[f64]) -> u32 {
        let is_near = |point: &Evaluation| {
            point.x.iter().enumerate().all(|(j, x)| {
                let (a, b) = ((j + 1) as f64, ((j * 37) % 11) as f64);
                (x - (a * b + rho * center[j]) / (a + rho)).abs() < TOLERANCE
            })
        };
        let mut readings = 0;
        let mut read = |x: &[f64]| {
            readings += 1;
            Ok::<_, ()>(Some(bowl(x)))
        };
        for _ in 0..200 {
            if is_near(point) {
                return readings;
            }
            assert_eq!(solver.minimize(point, (rho, center), 5, &mut read), Ok(true));
        }
        panic!("{point:?} after {readings} readings");
    }

    #[test]
    fn it_comes_to_the_minimum_with_any_pull_to_the_center() {
        for (history, rho) in [(1, 0.01), (5, 1.0), (20, 300.0)] {
            let mut point = at(vec![0.0; LEN]);
            descend(&mut Proximal::new(history), &mut point, rho, &[3.0; LEN]);
        }
    }

    #[test]
    fn directions_fulfil_the_secant_equation_for_any_rho() {
        let mut solver = Proximal::new(3);
        let mut point = at(vec![0.0; LEN]);
        assert_eq!(
            solver.minimize(&mut point, (0.1, &[3.0; LEN]), 4, |x| Ok::<_, ()>(Some(bowl(x)))),
            Ok(true)
        );
        let last = solver.pairs.back().unwrap().clone();
        for rho in [0.1, 2.0, 50.0] {
            let change: Vec<f64> = last.y.iter().zip(&last.s).map(|(y, s)| y + rho * s).collect();
            for (found, s) in solver.direction(&change, rho).iter().zip(&last.s) {
                assert!((found + s).abs() < TOLERANCE, "rho {rho}: {found}, {s}");
            }
        }
    }

    /// Where nothing was learned, the step is that of Barzilai and Borwein: `s y' / y' y'` with `y' = y + rho s`.
    #[test]
    fn a_direction_beside_all_pairs_has_the_scale_of_the_last_one() {
        let point = |x: [f64; 3], gradient: [f64; 3]| Evaluation {
            x: x.to_vec(),
            value: 0.0,
            gradient: gradient.to_vec(),
        };
        let mut solver = Proximal::new(3);
        solver.store_pair(&point([0.0; 3], [0.0; 3]), &point([1.0, 0.0, 0.0], [2.0, 1.0, 0.0]));
        for (rho, scale) in [(0.0, 2.0 / 5.0), (3.0, 5.0 / 26.0)] {
            let direction = solver.direction(&[0.0, 0.0, 1.0], rho);
            assert_eq!(direction[..2], [0.0, 0.0]);
            assert!((direction[2] + scale).abs() < 1e-15, "rho {rho}: {direction:?}");
        }
    }

    #[test]
    fn what_was_learned_of_the_curvature_serves_another_rho_and_center() {
        let mut solver = Proximal::new(LEN);
        let mut point = at(vec![0.0; LEN]);
        descend(&mut solver, &mut point, 0.1, &[3.0; LEN]);
        let mut again = point.clone();
        let known = descend(&mut solver, &mut point, 5.0, &[-2.0; LEN]);
        let new = descend(&mut Proximal::new(LEN), &mut again, 5.0, &[-2.0; LEN]);
        assert!(3 * known < 2 * new, "{known} readings with old pairs, {new} without");
    }

    #[test]
    fn a_call_makes_few_steps_and_keeps_the_point_when_told_to_stop() {
        let mut solver = Proximal::new(5);
        let mut point = at(vec![0.0; LEN]);
        let mut readings = 0;
        let mut counted = |x: &[f64]| {
            readings += 1;
            Ok::<_, ()>(Some(bowl(x)))
        };
        assert_eq!(solver.minimize(&mut point, (1.0, &[0.0; LEN]), 2, &mut counted), Ok(true));
        assert!(readings < 10, "two steps: {readings}");
        let before = point.clone();
        assert_eq!(solver.minimize(&mut point, (1.0, &[0.0; LEN]), 2, |_| Ok::<_, ()>(None)), Ok(false));
        assert_eq!(point, before);
        assert_eq!(solver.minimize(&mut point, (1.0, &[0.0; LEN]), 2, |_| Err("gone")), Err("gone"));
    }

    #[test]
    fn slopes_that_lie_end_it_at_the_best_point() {
        let mut point = at(vec![0.0; LEN]);
        let start = point.value;
        let lie = |x: &[f64]| {
            let (value, gradient) = bowl(x);
            Ok::<_, ()>(Some((value, gradient.into_iter().map(|g| -g).collect())))
        };
        assert_eq!(Proximal::new(5).minimize(&mut point, (1e-3, &[0.0; LEN]), 20, lie), Ok(true));
        assert!(point.value <= start, "{} {start}", point.value);
        // Where the gradient is 0 there is nothing to do.
        let mut flat = Evaluation { x: vec![1.0; 3], value: 0.0, gradient: vec![0.0; 3] };
        let never = |_: &[f64]| -> Result<Option<(f64, Vec<f64>)>, ()> { panic!("read") };
        assert_eq!(Proximal::new(5).minimize(&mut flat, (1.0, &[1.0; 3]), 20, never), Ok(true));
    }
}
