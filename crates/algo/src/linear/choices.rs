//! The closed sets among the parameters of the linear models, besides the optimizers.

use super::optimizer_params::{SCHEDULE_DECAY, SCHEDULE_EVERY, SCHEDULE_FLOOR, SCHEDULE_STRETCH};
use crate::param::{Choice, ParamSpec};

/// How the step size changes over the steps. [`matrix::Schedule`] is the same with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScheduleKind {
    Constant,
    InverseTime,
    Exponential,
    WarmRestarts,
}

impl Choice for ScheduleKind {
    fn all() -> Vec<(&'static str, Self)> {
        vec![
            ("constant", Self::Constant),
            ("inverse_time", Self::InverseTime),
            ("exponential", Self::Exponential),
            ("warm_restarts", Self::WarmRestarts),
        ]
    }

    fn reads(self) -> &'static [&'static ParamSpec] {
        match self {
            Self::Constant => &[],
            Self::InverseTime => &[&SCHEDULE_DECAY],
            Self::Exponential => &[&SCHEDULE_DECAY, &SCHEDULE_EVERY],
            Self::WarmRestarts => &[&SCHEDULE_EVERY, &SCHEDULE_STRETCH, &SCHEDULE_FLOOR],
        }
    }
}

/// How the gradients of the records of a batch become one gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchGradient {
    Sum,
    Mean,
}

impl Choice for BatchGradient {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("sum", Self::Sum), ("mean", Self::Mean)]
    }
}

/// The Hessian with which full-batch optimizers start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartHessian {
    /// Curvature of the loss in each column.
    Diagonal,
    /// One number for all columns.
    Identity,
}

impl Choice for StartHessian {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("diagonal", Self::Diagonal), ("identity", Self::Identity)]
    }
}

/// The scaling of columns that the user asks for. The format of the data decides whether they are centered too: see
/// [`Standardize`](super::Standardize).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnScaling {
    /// By the standard deviation.
    Deviation,
    None,
    /// By the root mean square of the entries.
    Entries,
    /// By the inverse document frequency.
    Idf,
}

impl Choice for ColumnScaling {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("true", Self::Deviation), ("false", Self::None), ("entries", Self::Entries), ("idf", Self::Idf)]
    }
}

/// The losses of `svm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarginLoss {
    Hinge,
    SquaredHinge,
}

impl Choice for MarginLoss {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("squared_hinge", Self::SquaredHinge), ("hinge", Self::Hinge)]
    }
}
