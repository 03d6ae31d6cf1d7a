//! Which failure of several is reported: tasks fail concurrently, and one failure can cause others.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How far a task has read its data. Positions of different tasks are comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReadPosition {
    /// Number of passes over training and validation data that the task has started.
    pass: u64,
    /// Number of batches that the task has requested in this pass.
    batch: u64,
}

impl ReadPosition {
    /// Creates the position in front of batch `batch` (from 1) of pass `pass` (from 1).
    pub fn new(pass: u64, batch: u64) -> Self {
        Self { pass, batch }
    }
}

/// The kind of a failure, ordered by which is reported first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Severity {
    /// A fault of the program.
    Fault,
    /// Bad data, a full disk, or divergence.
    Cause,
    /// A consequence of the data of all tasks together: no records, one class.
    UnusableData,
    /// A wait was too long. The task that others wait for may have failed and then has the actual reason.
    Wait,
}

/// The order in which failures are reported: the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FailureRank {
    /// The task only learned that another task had failed.
    is_secondary: bool,
    position: ReadPosition,
    severity: Severity,
    task: u32,
}

impl FailureRank {
    /// Returns the rank of a failure because of bad data.
    pub fn of_cause(position: ReadPosition, task: u32) -> Self {
        Self { is_secondary: false, position, severity: Severity::Cause, task }
    }

    /// Returns the rank of an error at a position of a task.
    pub fn of(error: &Error, position: ReadPosition, task: u32) -> Self {
        use algo::Error as A;
        use matrix::Error as M;
        let severity = match error {
            Error::Panic { .. } => Severity::Fault,
            Error::NoRecords { .. }
            | Error::UnusableData { .. }
            | Error::Algo(A::NoRecords | A::OneClass { .. } | A::ClassCount { .. } | A::DataChanged { .. }) => {
                Severity::UnusableData
            }
            Error::Matrix(M::WaitTimeout { .. })
            | Error::Algo(A::Coordinator { .. } | A::Matrix(M::WaitTimeout { .. })) => Severity::Wait,
            _ => Severity::Cause,
        };
        let is_secondary =
            matches!(error, Error::Matrix(M::Stopped { .. }) | Error::Algo(A::Matrix(M::Stopped { .. })));
        Self { is_secondary, position, severity, task }
    }

    /// Returns the position at which the other tasks may stop; none if the failure only repeats another one.
    pub fn limit(self) -> Option<ReadPosition> {
        (!self.is_secondary).then_some(self.position)
    }
}
