//! The push function of consensus ADMM (Boyd, Parikh, Chu, Peleato, Eckstein, "Distributed optimization and statistical
//! learning via the alternating direction method of multipliers", 2011, sections 7.1.1 and 7.2).
//!
//! Each task that has a column stores its own value x of it and a scaled dual u. The consensus z minimizes
//! `l1 d |z| + 0.5 l2 (d z)^2 + sum of rho / 2 (x + u - z)^2` over these tasks, where d is the scale of the column as
//! in [`super::quasi_newton`].

use crate::descent::function::quasi_newton::{Penalty, check_penalty, penalized};
use matrix::function::{Arity, Block, Shape, check_real};
use matrix::{Element, FunctionFault, PushFunction, with_block};

/// Reads s, n, d (the sum of `x + u`, the number of tasks that have the column, its scale) and computes `into[0] = z`.
/// A column that no task has, and that has no penalty either, becomes 0. The argument is penalty and rho.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsensusStep;

impl PushFunction for ConsensusStep {
    type Argument = (Penalty, f64);

    fn name(&self) -> &'static str {
        "consensus_step"
    }

    fn reads(&self) -> Arity {
        Arity::Exactly(3)
    }

    fn writes(&self) -> Arity {
        Arity::Exactly(1)
    }

    fn check(&self, (penalty, rho): &Self::Argument, shape: &Shape) -> Result<(), FunctionFault> {
        check_penalty(penalty, shape)?;
        check_real("rho", *rho, |rho| rho > 0.0, "a finite number > 0")
    }

    fn change(&self, &(penalty, rho): &Self::Argument, block: &mut Block<'_>) -> Result<(), FunctionFault> {
        with_block!(block, block => {
            let inside = penalized(&penalty, block.start, block.len());
            let (s, n, d) = (block.from[0], block.from[1], block.from[2]);
            for (i, out) in block.into[0].iter_mut().enumerate() {
                let (pull, d) = (rho * s[i].to_f64(), d[i].to_f64());
                let (l1, l2) = if i < inside { (penalty.0 * d, penalty.1 * d * d) } else { (0.0, 0.0) };
                let curvature = rho * n[i].to_f64() + l2;
                let beyond = pull.abs() - l1;
                let z = if beyond > 0.0 && curvature > 0.0 { pull.signum() * beyond / curvature } else { 0.0 };
                *out = Element::from_f64(z);
            }
        });
        Ok(())
    }
}
