//! Push functions of L-BFGS, OWL-QN and related methods: direction, step, gradient of the penalty, scales. The rows and
//! the penalty are those of [`super::quasi_newton`].

use multiversion::multiversion;

use crate::descent::function::quasi_newton::{Penalty, check_penalty, penalized, pseudo_gradient};
use matrix::function::{Arity, Block, Shape, check_real};
use matrix::{Element, FunctionFault, PushFunction, with_block};

/// Number of columns that are computed at a time. In shorter chunks the CPU would fetch less ahead, because each row lies
/// in other pages of memory.
const CHUNK: usize = 4096;

/// Reads z, g, d, then any rows X, and computes `into[0] = a v + sum of b_i X_i`. With l1, a column at 0 becomes 0 if
/// the result is not a descent direction along v there, because the step would end at once. Andrew and Gao align all
/// columns with v; but where z is not 0 the objective is smooth, and the direction is better without the alignment (on
/// a9a with l1 = 1: 270 passes over the data instead of 950). The argument is penalty, a and b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction;

impl PushFunction for Direction {
    type Argument = (Penalty, f64, Vec<f64>);

    fn name(&self) -> &'static str {
        "quasi_newton_direction"
    }

    fn version(&self) -> u32 {
        2
    }

    fn reads(&self) -> Arity {
        Arity::AtLeast(3)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, (penalty, a, b): &Self::Argument, shape: &Shape) -> Result<(), FunctionFault> {
        check_penalty(penalty, shape)?;
        if b.len() + 3 != shape.from {
            let expected = format!("{}, one for each row behind the first 3", shape.from - 3);
            return Err(FunctionFault::argument("factors", b.len().to_string(), expected));
        }
        std::iter::once(a).chain(b).try_for_each(|x| check_real("factor", *x, |_| true, "a finite number"))
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn change(&self, (penalty, a, b): &Self::Argument, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            let len = CHUNK.min(block.len());
            let (mut sums, mut slopes) = (vec![0.0; len], vec![0.0; len]);
            let start = block.start;
            for (i, out) in block.into[0].chunks_mut(CHUNK).enumerate() {
                let range = i * CHUNK..i * CHUNK + out.len();
                let [z, g, d] = [0, 1, 2].map(|k| &block.from[k][range.clone()]);
                let inside = penalized(penalty, start + range.start as u64, out.len());
                let (sums, slopes) = (&mut sums[..out.len()], &mut slopes[..out.len()]);
                for (j, slope) in slopes.iter_mut().enumerate() {
                    let l1 = if j < inside { penalty.0 * d[j].to_f64() } else { 0.0 };
                    let g = g[j].to_f64();
                    *slope = if l1 > 0.0 { pseudo_gradient(z[j].to_f64(), g, l1) } else { g };
                }
                sums.fill(0.0);
                add_scaled(*a, slopes, sums);
                for (b, row) in b.iter().zip(&block.from[3..]) {
                    add_scaled(*b, &row[range.clone()], sums);
                }
                if penalty.0 > 0.0 {
                    for (j, (sum, slope)) in sums.iter_mut().zip(&*slopes).take(inside).enumerate() {
                        if z[j].to_f64() == 0.0 && *sum * slope >= 0.0 {
                            *sum = 0.0;
                        }
                    }
                }
                out.iter_mut().zip(&*sums).for_each(|(out, sum)| *out = Element::from_f64(*sum));
            }
        });
        Ok(())
    }
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn add_scaled<E: Element>(a: f64, row: &[E], sums: &mut [f64]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += a * x.to_f64();
    }
}

/// Reads z0, g0, d, p and computes `into[0] = z0 + t p`. With l1, a column that would leave its orthant stops at 0. The
/// orthant is that of z0 or, where z0 is 0, the one in which the objective falls (Andrew and Gao, eq. 6). The argument
/// is penalty and t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrthantStep;

impl PushFunction for OrthantStep {
    type Argument = (Penalty, f64);

    fn name(&self) -> &'static str {
        "orthant_step"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(4)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, (penalty, t): &Self::Argument, shape: &Shape) -> Result<(), FunctionFault> {
        check_penalty(penalty, shape)?;
        check_real("t", *t, |t| t >= 0.0, "a finite number >= 0")
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn change(&self, &(penalty, t): &Self::Argument, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            let inside = if penalty.0 > 0.0 { penalized(&penalty, block.start, block.len()) } else { 0 };
            let (z0, g0, d, p) = (block.from[0], block.from[1], block.from[2], block.from[3]);
            for (i, out) in block.into[0].iter_mut().enumerate() {
                let before = z0[i].to_f64();
                let mut after = before + t * p[i].to_f64();
                if i < inside {
                    let orthant = if before == 0.0 {
                        -pseudo_gradient(before, g0[i].to_f64(), penalty.0 * d[i].to_f64())
                    } else {
                        before
                    };
                    if after * orthant <= 0.0 {
                        after = 0.0;
                    }
                }
                *out = Element::from_f64(after);
            }
        });
        Ok(())
    }
}

/// Reads z, d and computes `into[0] = l2 d^2 z`, or 0 in columns without penalty. This is the gradient of
/// `0.5 l2 (d z)^2`, to which the gradients of the records are added. The argument is the penalty, of which only l2 and
/// the first free column matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenaltyGradient;

impl PushFunction for PenaltyGradient {
    type Argument = Penalty;

    fn name(&self) -> &'static str {
        "penalty_gradient"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(2)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, penalty: &Penalty, shape: &Shape) -> Result<(), FunctionFault> {
        check_penalty(penalty, shape)
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn change(&self, penalty: &Penalty, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            let inside = penalized(penalty, block.start, block.len());
            let (z, d) = (block.from[0], block.from[1]);
            for (i, out) in block.into[0].iter_mut().enumerate() {
                let l2 = if i < inside { penalty.1 } else { 0.0 };
                let d = d[i].to_f64();
                *out = Element::from_f64(l2 * d * d * z[i].to_f64());
            }
        });
        Ok(())
    }
}

/// Reads c, w and computes `into[0] = d = 1 / sqrt(c + l2)` and `into[1] = w / d`. It turns the curvature c of the loss
/// in each column into the scale in which the objective has the same curvature in all columns, and parameters into the
/// point. Where the curvature is 0, d is 1. The argument is the penalty, of which l1 does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurvatureScale;

impl PushFunction for CurvatureScale {
    type Argument = Penalty;

    fn name(&self) -> &'static str {
        "curvature_scale"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(2)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(2)
    }

    fn check(&self, penalty: &Penalty, shape: &Shape) -> Result<(), FunctionFault> {
        check_penalty(penalty, shape)
    }

    fn change(&self, penalty: &Penalty, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            let inside = penalized(penalty, block.start, block.len());
            for i in 0..block.len() {
                let (c, w) = (block.from[0][i].to_f64(), block.from[1][i].to_f64());
                let curvature = c + if i < inside { penalty.1 } else { 0.0 };
                let root = if curvature > 0.0 { curvature.sqrt() } else { 1.0 };
                block.into[0][i] = Element::from_f64(1.0 / root);
                block.into[1][i] = Element::from_f64(w * root);
            }
        });
        Ok(())
    }
}
