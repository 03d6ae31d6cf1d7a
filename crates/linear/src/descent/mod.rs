//! Minimizers of a sum over all records that read all records at each step: L-BFGS, OWL-QN, gradient descent. The
//! vectors stay at the partitions ([`function`]); only sums are sent.
//!
//! **What.** `min_w f(w) + l1 |w|_1 + 0.5 l2 |w|^2`, f smooth. The recursion works on `z = w / d` with a scale d per
//! column. The scale is 1, or it makes the curvature of the objective equal in all columns at the start; the latter is
//! L-BFGS with a diagonal first Hessian.
//!
//! **Sources.** Nocedal, Wright, "Numerical Optimization", 2006: algorithms 7.4 (two loops), 3.5 and 3.6 (strong Wolfe
//! line search). Chen, Wang, Zhou, "Large-scale L-BFGS using `MapReduce`", NIPS 2014: the two loops on inner products.
//! Andrew, Gao, "Scalable training of L1-regularized log-linear models", ICML 2007: OWL-QN. Here its recursion uses
//! only the columns that may move, and does not align the others ([`function::orthant`]): this takes a third of
//! the readings on a9a, and finds no fewer zeros.
//!
//! | module | what it holds |
//! |---|---|
//! | [`vectors`] | the rows of the matrix |
//! | [`function`] | what the partitions do with them |
//! | [`two_loop`] | history of pairs and factors of the direction, on numbers only |
//! | [`line_search`] | the next step length, as state machines on numbers |
//! | [`minimizer`] | the work of task 0 between two passes over the data |
//! | [`proximal`] | L-BFGS on the vectors of one task, for ADMM |
//!
//! **An evaluation.** Every task pulls its columns of the point, reads its records, and pushes its gradient; gradients
//! are merged in the order of tasks, and the losses are summed over tasks. Task 0 pulls all products in one call,
//! decides, and sends one program: direction, copies, step, gradient of the penalty. So each pass over the data costs
//! two calls, whatever the length of the history.
//!
//! **Cost** for m pairs and c columns: `2 m + 4` rows of c values; an iteration reads them once for `5 m + 8` sums
//! (OWL-QN: about `1.5 m^2 + 2.5 m`) and once for the direction.

use serde::{Deserialize, Serialize};

pub mod function;
pub mod line_search;
pub mod minimizer;
pub mod proximal;
#[cfg(test)]
mod tests;
pub mod two_loop;
pub mod vectors;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Number of pairs in the history; 0 is gradient descent.
    pub history: usize,
    /// Maximum number of iterations.
    pub max_iterations: u64,
    /// The minimization stops when the mean decrease of the last five iterations is at most this share of the
    /// objective.
    pub tolerance: f64,
    /// Whether the scales follow from the curvature at the start; otherwise they are 1.
    pub diagonal: bool,
    /// Weight of `|w|_1`; a value above 0 needs OWL-QN or ADMM.
    pub l1: f64,
    /// Weight of `0.5 |w|^2`.
    pub l2: f64,
}

/// Settings of ADMM, besides [`Settings`]; units as in [`proximal`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consensus {
    /// The penalty parameter at first: weight of `0.5 rho |x - z|^2`.
    pub rho: f64,
    /// Whether rho is adapted to the residuals.
    pub adaptive: bool,
    /// Maximum number of steps of a task per ADMM iteration.
    pub local_iterations: u64,
    /// Number of pairs that each task keeps.
    pub history: usize,
}
