//! The direction of L-BFGS computed from inner products alone (Chen et al. 2014; Nocedal and Wright, algorithm 7.4).
//!
//! Notation: pairs `(s_i, y_i)`, oldest first; v is the (pseudo-)gradient. The direction is `a v + sum b_i s_i + sum
//! c_i y_i`.

use crate::descent::function::orthant::ORTHANT_SCALARS;
use crate::descent::function::quasi_newton::{HISTORY_SCALARS, PAIR_SCALARS};
use serde::{Deserialize, Serialize};

/// A pair is used only if its `s . y` is above this share of its `y . y`: with a smaller one, rounding could make the
/// approximate Hessian indefinite.
const CURVATURE: f64 = 1e-12;

/// The answer of `quasi_newton_products`.
#[derive(Clone, Copy, Debug)]
pub struct QuasiNewtonAnswer<'a>(pub &'a [f64]);

impl QuasiNewtonAnswer<'_> {
    /// The sum of both penalties at the point.
    pub fn penalty(&self) -> f64 {
        self.0[0] + self.0[1]
    }

    /// The product of the step and the pseudo-gradient before the step.
    pub fn old_slope(&self) -> f64 {
        self.0[2]
    }

    /// The product of the step and the pseudo-gradient after the step.
    pub fn new_slope(&self) -> f64 {
        self.0[4]
    }

    fn pair(&self, i: usize) -> &[f64] {
        &self.0[HISTORY_SCALARS + i * PAIR_SCALARS..][..PAIR_SCALARS]
    }
}

/// The answer of `orthant_products`, and its number of pairs, the new one included.
#[derive(Clone, Copy, Debug)]
pub struct OrthantAnswer<'a>(pub &'a [f64], pub usize);

impl OrthantAnswer<'_> {
    /// The sum of both penalties at the point.
    pub fn penalty(&self) -> f64 {
        self.0[0] + self.0[1]
    }

    /// The product of the step and the pseudo-gradient before the step.
    pub fn old_slope(&self) -> f64 {
        self.0[2]
    }

    fn vv(&self) -> f64 {
        self.0[3]
    }

    fn sy(&self, i: usize, j: usize) -> f64 {
        self.0[ORTHANT_SCALARS + i * self.1 + j]
    }

    fn yy(&self, i: usize, j: usize) -> f64 {
        let (low, high) = (i.min(j), i.max(j));
        self.0[ORTHANT_SCALARS + self.1 * self.1 + high * (high + 1) / 2 + low]
    }

    fn sv(&self, i: usize) -> f64 {
        self.0[self.0.len() - 2 * self.1 + i]
    }

    fn yv(&self, i: usize) -> f64 {
        self.0[self.0.len() - self.1 + i]
    }

    fn curves(&self, i: usize) -> bool {
        curves(self.sy(i, i), self.yy(i, i))
    }
}

/// Whether a pair has positive curvature, beyond rounding.
fn curves(sy: f64, yy: f64) -> bool {
    sy > CURVATURE * yy && yy > 0.0
}

/// The factors of a direction.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionFactors {
    /// Factor of v.
    pub gradient: f64,
    /// Factors of the steps, oldest first.
    pub steps: Vec<f64>,
    /// Factors of the changes of the gradient, oldest first.
    pub changes: Vec<f64>,
    /// `v . direction`.
    pub slope: f64,
}

/// The pairs' slots and their products.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PairHistory {
    slots: Vec<u32>,
    /// `s_i . y_j`
    sy: Vec<Vec<f64>>,
    /// `y_i . y_j`
    yy: Vec<Vec<f64>>,
    sv: Vec<f64>,
    yv: Vec<f64>,
    vv: f64,
}

impl PairHistory {
    /// The slots of the pairs, oldest first.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// `v . v`
    pub fn square(&self) -> f64 {
        self.vv
    }

    pub fn clear(&mut self) {
        let vv = self.vv;
        *self = Self { vv, ..Self::default() };
    }

    pub fn drop_oldest(&mut self) {
        for table in [&mut self.sy, &mut self.yy] {
            table.remove(0);
            for row in table.iter_mut() {
                row.remove(0);
            }
        }
        self.slots.remove(0);
        self.sv.remove(0);
        self.yv.remove(0);
    }

    /// Stores the products at a new point. It adds the pair of the step, in `slot`, if the pair has positive curvature,
    /// and returns whether it did.
    pub fn observe(&mut self, products: QuasiNewtonAnswer<'_>, slot: Option<u32>) -> bool {
        let [_, _, _, sy, sv, yy, yv, vv] = std::array::from_fn(|i| products.0[i]);
        self.vv = vv;
        for i in 0..self.slots.len() {
            (self.sv[i], self.yv[i]) = (products.pair(i)[1], products.pair(i)[4]);
        }
        let Some(slot) = slot.filter(|_| curves(sy, yy)) else { return false };
        let mut new_sy = Vec::new();
        let mut new_yy = Vec::new();
        for i in 0..self.slots.len() {
            let pair = products.pair(i);
            self.sy[i].push(pair[0]);
            self.yy[i].push(pair[3]);
            new_sy.push(pair[2]);
            new_yy.push(pair[3]);
        }
        new_sy.push(sy);
        new_yy.push(yy);
        self.sy.push(new_sy);
        self.yy.push(new_yy);
        self.sv.push(sv);
        self.yv.push(yv);
        self.slots.push(slot);
        true
    }

    /// Like [`Self::observe`], but replaces all products of pairs: they are over the columns that may move.
    pub fn observe_orthant(&mut self, products: OrthantAnswer<'_>, slot: Option<u32>) -> bool {
        let old = self.slots.len();
        let slot = slot.filter(|_| products.curves(old));
        self.slots.extend(slot);
        let pairs = 0..self.slots.len();
        self.vv = products.vv();
        self.sy = pairs.clone().map(|i| pairs.clone().map(|j| products.sy(i, j)).collect()).collect();
        self.yy = pairs.clone().map(|i| pairs.clone().map(|j| products.yy(i, j)).collect()).collect();
        self.sv = pairs.clone().map(|i| products.sv(i)).collect();
        self.yv = pairs.map(|i| products.yv(i)).collect();
        slot.is_some()
    }

    /// The direction `- H v`. A pair without positive curvature in the columns that may move is left out.
    pub fn direction(&self) -> DirectionFactors {
        let k = self.slots.len();
        let (sy, yy) = (&self.sy, &self.yy);
        let curves = |i: usize| curves(sy[i][i], yy[i][i]);
        let mut alpha = vec![0.0; k];
        for i in (0..k).rev().filter(|i| curves(*i)) {
            let before: f64 = (i + 1..k).map(|j| alpha[j] * sy[i][j]).sum();
            alpha[i] = (self.sv[i] - before) / sy[i][i];
        }
        let last = (0..k).rev().find(|i| curves(*i));
        let gamma = last.map_or(1.0, |i| sy[i][i] / yy[i][i]);
        // r = gamma (v - sum alpha_j y_j) + sum (alpha_i - beta_i) s_i
        let mut steps: Vec<f64> = Vec::with_capacity(k);
        for i in 0..k {
            if !curves(i) {
                steps.push(0.0);
                continue;
            }
            let first: f64 = self.yv[i] - (0..k).map(|j| alpha[j] * yy[i][j]).sum::<f64>();
            let second: f64 = (0..i).map(|j| steps[j] * sy[j][i]).sum();
            steps.push(alpha[i] - (gamma * first + second) / sy[i][i]);
        }
        let steps: Vec<f64> = steps.into_iter().map(|step| -step).collect();
        let changes: Vec<f64> = alpha.into_iter().map(|alpha| gamma * alpha).collect();
        let along = |factors: &[f64], products: &[f64]| -> f64 {
            factors.iter().zip(products).map(|(a, b)| a * b).sum()
        };
        let slope = -gamma * self.vv + along(&steps, &self.sv) + along(&changes, &self.yv);
        DirectionFactors { gradient: -gamma, steps, changes, slope }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::proximal::dot;
    use super::*;
    use math::random::{Purpose, stream};

    /// Tolerance for sums of 40 terms in another order, through 6 pairs.
    const TOLERANCE: f64 = 1e-10;

    /// Minus the product of the inverse Hessian with `v`: Nocedal and Wright, algorithm 7.4, on vectors.
    pub(in crate::descent) fn reference_direction(pairs: &[(Vec<f64>, Vec<f64>)], v: &[f64]) -> Vec<f64> {
        let mut q = v.to_vec();
        let mut alphas = Vec::new();
        for (s, y) in pairs.iter().rev() {
            let alpha = dot(s, &q) / dot(s, y);
            q.iter_mut().zip(y).for_each(|(q, y)| *q -= alpha * y);
            alphas.push(alpha);
        }
        let gamma = pairs.last().map_or(1.0, |(s, y)| dot(s, y) / dot(y, y));
        for q in &mut q {
            *q *= gamma;
        }
        for ((s, y), alpha) in pairs.iter().zip(alphas.iter().rev()) {
            let beta = dot(y, &q) / dot(s, y);
            q.iter_mut().zip(s).for_each(|(q, s)| *q += (alpha - beta) * s);
        }
        q.iter().map(|q| -q).collect()
    }

    #[test]
    fn the_direction_from_products_is_that_of_the_two_loops_on_vectors() {
        let mut random = stream(3, Purpose::Test, 0, 0);
        let columns = 40;
        let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        let mut memory = PairHistory::default();
        for round in 0..9u32 {
            let s: Vec<f64> = (0..columns).map(|_| random.normal()).collect();
            // The change of the gradient of a convex function: each column has its own factor.
            let y: Vec<f64> = (0..columns).map(|j| s[j] * (1.0 + j as f64)).collect();
            let v: Vec<f64> = (0..columns).map(|_| random.normal()).collect();
            let mut answer =
                vec![0.0, 0.0, 0.0, dot(&s, &y), dot(&s, &v), dot(&y, &y), dot(&y, &v), dot(&v, &v)];
            for (old_s, old_y) in &pairs {
                answer.extend([
                    dot(old_s, &y),
                    dot(old_s, &v),
                    dot(old_y, &s),
                    dot(old_y, &y),
                    dot(old_y, &v),
                ]);
            }
            assert!(memory.observe(QuasiNewtonAnswer(&answer), Some(round)));
            pairs.push((s, y));
            let factors = memory.direction();
            let expected = reference_direction(&pairs, &v);
            for j in 0..columns {
                let mut actual = factors.gradient * v[j];
                for (i, (s, y)) in pairs.iter().enumerate() {
                    actual += factors.steps[i] * s[j] + factors.changes[i] * y[j];
                }
                assert!((actual - expected[j]).abs() < TOLERANCE, "round {round}: {actual} {}", expected[j]);
            }
            assert!((factors.slope - dot(&v, &expected)).abs() < TOLERANCE * columns as f64);
            if pairs.len() == 6 {
                pairs.remove(0);
                memory.drop_oldest();
            }
        }
        assert_eq!(memory.slots(), [4, 5, 6, 7, 8]);
    }

    /// What `orthant_products` answers for pairs in columns that may all move.
    fn moving(pairs: &[(Vec<f64>, Vec<f64>)], v: &[f64]) -> Vec<f64> {
        let mut answer = vec![0.0, 0.0, 0.0, dot(v, v)];
        for (s, _) in pairs {
            answer.extend(pairs.iter().map(|(_, y)| dot(s, y)));
        }
        for (i, (_, y)) in pairs.iter().enumerate() {
            answer.extend(pairs[..=i].iter().map(|(_, other)| dot(y, other)));
        }
        answer.extend(pairs.iter().map(|(s, _)| dot(s, v)));
        answer.extend(pairs.iter().map(|(_, y)| dot(y, v)));
        answer
    }

    #[test]
    fn pairs_that_do_not_curve_where_columns_move_are_left_out_of_the_direction() {
        let mut random = stream(4, Purpose::Test, 0, 0);
        let columns = 40;
        let mut normal = || (0..columns).map(|_| random.normal()).collect::<Vec<f64>>();
        let mut memory = PairHistory::default();
        let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        for round in 0..5u32 {
            let s = normal();
            let y = (0..columns).map(|j| s[j] * (1.0 + j as f64)).collect();
            pairs.push((s, y));
            let v = normal();
            // In this round other columns may move: pair 1 is 0 in them, and pair 2 has negative curvature.
            let mut seen = pairs.clone();
            if round == 4 {
                seen[1] = (vec![0.0; columns], vec![0.0; columns]);
                seen[2].0.iter_mut().for_each(|s| *s = -*s);
            }
            let answer = moving(&seen, &v);
            assert!(memory.observe_orthant(OrthantAnswer(&answer, seen.len()), Some(round)));
            let good: Vec<_> = seen.iter().filter(|(s, y)| dot(s, y) > 0.0).cloned().collect();
            let (factors, expected) = (memory.direction(), reference_direction(&good, &v));
            for j in 0..columns {
                let mut actual = factors.gradient * v[j];
                for (i, (s, y)) in seen.iter().enumerate() {
                    actual += factors.steps[i] * s[j] + factors.changes[i] * y[j];
                }
                assert!((actual - expected[j]).abs() < TOLERANCE, "round {round}: {actual} {}", expected[j]);
            }
        }
        assert_eq!(memory.slots(), [0, 1, 2, 3, 4], "they may curve where others move");
    }

    #[test]
    fn a_pair_that_does_not_curve_upwards_is_not_kept() {
        let mut memory = PairHistory::default();
        assert!(!memory.observe(QuasiNewtonAnswer(&[0.0, 0.0, 0.0, -1.0, 0.5, 2.0, 0.0, 4.0]), Some(0)));
        assert!(
            !memory.observe_orthant(OrthantAnswer(&[0.0, 0.0, 0.0, 4.0, -1.0, 2.0, 0.5, 0.0], 1), Some(0))
        );
        assert!(memory.slots().is_empty());
        let factors = memory.direction();
        assert_eq!((factors.gradient, factors.slope), (-1.0, -4.0), "the steepest descent");
    }
}
