//! Minimizing a sum over all records, step by step of all of them: L-BFGS, OWL-QN, gradient descent. The vectors stay at the
//! partitions (`matrix::function::quasi_newton`); what travels are sums.
//!
//! **What.** `min_w f(w) + l1 |w|_1 + 0.5 l2 |w|^2`, f smooth. The recursion sees `z = w / d` with a scale d a column: 1, or what
//! makes the objective curve alike in all columns at the start, which is L-BFGS with a diagonal first Hessian.
//!
//! **Sources.** Nocedal, Wright, "Numerical Optimization", 2006: algorithm 7.4 (two loops), 3.5 and 3.6 (strong Wolfe line search).
//! Chen, Wang, Zhou, "Large-scale L-BFGS using `MapReduce`", NIPS 2014: the two loops on inner products. Andrew, Gao, "Scalable
//! training of L1-regularized log-linear models", ICML 2007: OWL-QN, with the recursion on the columns that may move only and
//! without the alignment of the others (`matrix::function::orthant`): a third of the readings on a9a, and no fewer zeros.
//!
//! | module | what it holds |
//! |---|---|
//! | [`vectors`] | the rows of the matrix |
//! | [`two_loop`] | history and coefficients of the direction: numbers only |
//! | [`line_search`] | the next step length: a state machine on numbers |
//! | [`minimizer`] | task 0: one visit that reads, one that changes, between two passes over the data |
//! | [`proximal`] | L-BFGS on vectors of a task, for ADMM |
//!
//! **An evaluation.** Every task pulls its columns of the point, goes through its records, pushes its gradient, which is merged
//! in the order of tasks; the losses are summed over tasks. Task 0 asks for all products in one visit, decides, and sends one
//! program: direction, copies, step, gradient of the penalty. So an iteration costs two visits for each pass over the data,
//! whatever the history.
//!
//! **Cost** for m pairs and c columns: `2 m + 4` rows; an iteration reads them once for `5 m + 8` sums (OWL-QN: about
//! `1.5 m^2 + 4 m`) and once for the direction.

pub mod line_search;
pub mod minimizer;
pub mod proximal;
#[cfg(test)]
mod tests;
pub mod two_loop;
pub mod vectors;

/// How to minimize.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Pairs that are kept; 0 is gradient descent.
    pub history: usize,
    /// Most iterations.
    pub max_iterations: u64,
    /// It ends when the last five iterations lowered the objective by no more than this share in the mean.
    pub tolerance: f64,
    /// Scales from the curvature at the start, else 1.
    pub diagonal: bool,
    /// Weight of `|w|_1`; not 0 is OWL-QN.
    pub l1: f64,
    /// Weight of `0.5 |w|^2`.
    pub l2: f64,
}

/// How tasks come to agree by ADMM, besides [`Settings`]; units as in [`proximal`].
#[derive(Clone, Debug, PartialEq)]
pub struct Consensus {
    /// What a square of disagreement costs, at first.
    pub rho: f64,
    /// It follows the residuals.
    pub adaptive: bool,
    /// Most steps of a task between two meetings.
    pub local_iterations: u64,
    /// Pairs that a task keeps.
    pub history: usize,
}
