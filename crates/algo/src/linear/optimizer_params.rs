//! The parameters that only some optimizers or some schedules of the linear models read: type, range, default, unit and
//! meaning of each. Who reads them is said where the [optimizers](super::optimizer) and
//! [schedules](super::choices::ScheduleKind) are.

use super::choices::StartHessian;
use crate::param::common::{NOT_NEGATIVE, POSITIVE, SHARE};
use crate::param::{Bounds, ParamKind, ParamSpec, param, words};

const AUTO_POSITIVE: ParamKind = ParamKind::AutoReal { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow };

pub(super) const LEARNING_RATE: ParamSpec = param(
    "learning_rate",
    AUTO_POSITIVE,
    "auto",
    "",
    "step size; alpha of ftrl; auto: 0.1, or 1 for linear, huber and normalize=l2",
);

pub(super) const BETA: ParamSpec = param("beta", NOT_NEGATIVE, "1", "", "smooths the first steps");

pub(super) const MOMENTUM: ParamSpec =
    param("momentum", SHARE, "0.9", "", "share of the previous step that is added to each step");

pub(super) const BETA1: ParamSpec = param("beta1", SHARE, "0.9", "", "decay rate of the first moment");

pub(super) const BETA2: ParamSpec = param("beta2", SHARE, "0.999", "", "decay rate of the second moment");

pub(super) const EPSILON: ParamSpec =
    param("epsilon", POSITIVE, "1e-6", "", "added to denominators for numerical stability");

pub(super) const DECAY: ParamSpec =
    param("decay", SHARE, "0.9", "", "decay rate of the running mean of squares");

pub(super) const HISTORY: ParamSpec = param(
    "history",
    ParamKind::Integer { low: 1, high: 1000 },
    "10",
    "pairs",
    "history length (owlqn: up to 100); each pair is two vectors on the servers, or in each task for admm",
);

pub(super) const MAX_ITERATIONS: ParamSpec = param(
    "max_iterations",
    ParamKind::Integer { low: 1, high: 1_000_000 },
    "100",
    "",
    "maximum number of iterations; an iteration makes one or a few passes over the data",
);

pub(super) const TOLERANCE: ParamSpec = param(
    "tolerance",
    NOT_NEGATIVE,
    "1e-6",
    "",
    "stops when five steps decreased the objective by at most this share on average; admm: when both \
             residuals are at most its square root, absolute and relative",
);

pub(super) const START: ParamSpec = param(
    "start",
    ParamKind::Choice(words::<StartHessian>),
    "diagonal",
    "",
    "initial Hessian: curvature of the loss in each column (diagonal), or one number for all columns",
);

pub(super) const RHO: ParamSpec = param(
    "rho",
    POSITIVE,
    "0.1",
    "",
    "ADMM penalty parameter, the weight of 0.5 |x - z|^2; with start=diagonal the loss has curvature 1 in \
             each column",
);

pub(super) const ADAPTIVE_RHO: ParamSpec =
    param("adaptive_rho", ParamKind::Flag, "true", "", "adapt rho to the residuals, by factors of 2");

pub(super) const LOCAL_ITERATIONS: ParamSpec = param(
    "local_iterations",
    ParamKind::Integer { low: 1, high: 1000 },
    "5",
    "",
    "maximum number of L-BFGS steps that a task makes over its records in each iteration",
);

pub(super) const SCHEDULE_DECAY: ParamSpec =
    param("schedule_decay", NOT_NEGATIVE, "0.01", "", "rate / (1 + decay t), or rate decay^(t / every)");

pub(super) const SCHEDULE_EVERY: ParamSpec = param(
    "schedule_every",
    POSITIVE,
    "100",
    "steps",
    "steps per decay factor, or length of the first period",
);

pub(super) const SCHEDULE_STRETCH: ParamSpec = param(
    "schedule_stretch",
    ParamKind::Real { low: 1.0, high: f64::INFINITY, open: Bounds::Closed },
    "2",
    "",
    "growth factor of the period",
);

pub(super) const SCHEDULE_FLOOR: ParamSpec = param(
    "schedule_floor",
    ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::Closed },
    "0",
    "",
    "smallest factor of the step size",
);
