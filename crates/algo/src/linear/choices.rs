//! The closed sets among the parameters of the linear models, besides the optimizers.

use data::Shuffle;

use super::optimizer_params::{SCHEDULE_DECAY, SCHEDULE_EVERY, SCHEDULE_FLOOR, SCHEDULE_STRETCH};
use crate::metric::{STOPPING_METRICS, StoppingMetric};
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
    const ALL: &'static [Self] = &[Self::Constant, Self::InverseTime, Self::Exponential, Self::WarmRestarts];

    fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::InverseTime => "inverse_time",
            Self::Exponential => "exponential",
            Self::WarmRestarts => "warm_restarts",
        }
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
    const ALL: &'static [Self] = &[Self::Sum, Self::Mean];

    fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
        }
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
    const ALL: &'static [Self] = &[Self::Diagonal, Self::Identity];

    fn name(self) -> &'static str {
        match self {
            Self::Diagonal => "diagonal",
            Self::Identity => "identity",
        }
    }
}

impl Choice for Shuffle {
    const ALL: &'static [Self] = &[Self::None, Self::Batches, Self::Records];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Batches => "batches",
            Self::Records => "records",
        }
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
    const ALL: &'static [Self] = &[Self::Deviation, Self::None, Self::Entries, Self::Idf];

    fn name(self) -> &'static str {
        match self {
            Self::Deviation => "true",
            Self::None => "false",
            Self::Entries => "entries",
            Self::Idf => "idf",
        }
    }
}

/// The scaling of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordScaling {
    None,
    /// To Euclidean length 1.
    L2,
}

impl Choice for RecordScaling {
    const ALL: &'static [Self] = &[Self::None, Self::L2];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::L2 => "l2",
        }
    }
}

/// The losses of `svm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarginLoss {
    Hinge,
    SquaredHinge,
}

impl Choice for MarginLoss {
    const ALL: &'static [Self] = &[Self::Hinge, Self::SquaredHinge];

    fn name(self) -> &'static str {
        match self {
            Self::Hinge => "hinge",
            Self::SquaredHinge => "squared_hinge",
        }
    }
}

impl Choice for StoppingMetric {
    const ALL: &'static [Self] = STOPPING_METRICS;

    fn name(self) -> &'static str {
        self.name
    }
}
