//! The closed sets among the parameters of the linear models, besides the optimizers.

use super::param_table::{SCHEDULE_DECAY, SCHEDULE_EVERY, SCHEDULE_FLOOR, SCHEDULE_STRETCH};

algo::choices! {
    /// How the step size changes over the steps. [`matrix::Schedule`] is the same with its numbers.
    pub(super) enum ScheduleKind {
        Constant = "constant";
        InverseTime = "inverse_time", reads SCHEDULE_DECAY;
        Exponential = "exponential", reads SCHEDULE_DECAY, SCHEDULE_EVERY;
        WarmRestarts = "warm_restarts", reads SCHEDULE_EVERY, SCHEDULE_STRETCH, SCHEDULE_FLOOR;
    }

    /// The Hessian with which full-batch optimizers start.
    pub(super) enum StartHessian {
        /// Curvature of the loss in each column.
        Diagonal = "diagonal";
        /// One number for all columns.
        Identity = "identity";
    }

    /// The scaling of columns that the user asks for. The format of the data decides whether they are centered too: see
    /// [`Standardize`](super::Standardize).
    pub enum ColumnScaling {
        /// By the standard deviation.
        Deviation = "true";
        None = "false";
        /// By the root mean square of the entries.
        Entries = "entries";
        /// By the inverse document frequency.
        Idf = "idf";
    }

    /// The losses of `svm`.
    pub(super) enum MarginLoss {
        SquaredHinge = "squared_hinge";
        Hinge = "hinge";
    }
}
