//! The schedules of the step size, and the parameters that they read.

use algo::param::common::{NOT_NEGATIVE, POSITIVE};
use algo::param::{Bounds, ParamKind, words};

algo::choices! {
    /// How the step size changes over the steps. [`matrix::Schedule`] is the same with its numbers.
    pub(super) enum ScheduleKind {
        Constant = "constant";
        InverseTime = "inverse_time", reads SCHEDULE_DECAY;
        Exponential = "exponential", reads SCHEDULE_DECAY, SCHEDULE_EVERY;
        WarmRestarts = "warm_restarts", reads SCHEDULE_EVERY, SCHEDULE_STRETCH, SCHEDULE_FLOOR;
    }
}

algo::params! {
    pub(super) const SCHEDULE_ROWS = [
        /// Schedule of the step size over the steps; not for rules that determine their own, such as ftrl and
        /// adadelta
        pub(super) SCHEDULE = "schedule": ParamKind::Choice(words::<ScheduleKind>), "constant";
        /// rate / (1 + decay t), or rate decay^(t / every)
        pub(super) SCHEDULE_DECAY = "schedule_decay": NOT_NEGATIVE, "0.01";
        /// steps per decay factor, or length of the first period
        pub(super) SCHEDULE_EVERY = "schedule_every": POSITIVE, "100", "steps";
        /// growth factor of the period
        pub(super) SCHEDULE_STRETCH = "schedule_stretch":
            ParamKind::Real { low: 1.0, high: f64::INFINITY, open: Bounds::Closed }, "2";
        /// smallest factor of the step size
        pub(super) SCHEDULE_FLOOR = "schedule_floor":
            ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::Closed }, "0";
    ];
}
