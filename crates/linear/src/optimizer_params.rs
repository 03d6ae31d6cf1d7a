//! The parameters that only some optimizers read, in the order of help texts. Which do is said where the
//! [optimizers](super::optimizer) are.

use algo::param::common::{AUTO_POSITIVE, NOT_NEGATIVE, POSITIVE, SHARE};
use algo::param::{Bounds, ParamKind, words};

use super::choices::StartHessian;

const AUTO_NOT_NEGATIVE: ParamKind =
    ParamKind::AutoReal { low: 0.0, high: f64::INFINITY, open: Bounds::Closed };

algo::params! {
    pub(super) const OPTIMIZER_ROWS = [
        /// step size; alpha of ftrl; auto: 0.1, or 1 for linear, huber and normalize=l2
        pub(super) LEARNING_RATE = "learning_rate": AUTO_POSITIVE, "auto";
        /// smooths the first steps
        pub(super) BETA = "beta": NOT_NEGATIVE, "1";
        /// Weight of |w|_1; for ftrl, owlqn and admm on the sum of losses, else on each batch's gradient
        pub(super) L1 = "l1": NOT_NEGATIVE, "0";
        /// Weight of 0.5 |w|^2, in the same units; l1 and l2 together are an elastic net; auto: 1 if optimizer=auto
        /// chooses lbfgs or owlqn (up to 5 for sparse data with more columns than records), else 0
        pub(super) L2 = "l2": AUTO_NOT_NEGATIVE, "auto";
        /// share of the previous step that is added to each step
        pub(super) MOMENTUM = "momentum": SHARE, "0.9";
        /// decay rate of the first moment
        pub(super) BETA1 = "beta1": SHARE, "0.9";
        /// decay rate of the second moment
        pub(super) BETA2 = "beta2": SHARE, "0.999";
        /// added to denominators for numerical stability
        pub(super) EPSILON = "epsilon": POSITIVE, "1e-6";
        /// decay rate of the running mean of squares
        pub(super) DECAY = "decay": SHARE, "0.9";
        /// history length (owlqn: up to 100); each pair is two vectors on the servers, or in each task for admm
        pub(super) HISTORY = "history": ParamKind::Integer { low: 1, high: 1000 }, "10", "pairs";
        /// maximum number of iterations; an iteration makes one or a few passes over the data
        pub(super) MAX_ITERATIONS = "max_iterations": ParamKind::Integer { low: 1, high: 1_000_000 }, "100";
        /// stops when five steps decreased the objective by at most this share on average; admm: when both residuals
        /// are at most its square root, absolute and relative
        pub(super) TOLERANCE = "tolerance": NOT_NEGATIVE, "1e-6";
        /// initial Hessian: curvature of the loss in each column (diagonal), or one number for all columns
        pub(super) START = "start": ParamKind::Choice(words::<StartHessian>), "diagonal";
        /// ADMM penalty parameter, the weight of 0.5 |x - z|^2; with start=diagonal the loss has curvature 1 in each
        /// column
        pub(super) RHO = "rho": POSITIVE, "0.1";
        /// adapt rho to the residuals, by factors of 2
        pub(super) ADAPTIVE_RHO = "adaptive_rho": ParamKind::Flag, "true";
        /// maximum number of L-BFGS steps that a task makes over its records in each iteration
        pub(super) LOCAL_ITERATIONS = "local_iterations": ParamKind::Integer { low: 1, high: 1000 }, "5";
    ];
}
