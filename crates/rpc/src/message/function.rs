//! PS functions at a lane. A pull function is held and answered as a pull is, and may be repeated. A push function is named
//! as a push is, in one order with the pushes of its task, and counts once.
//!
//! A function that fails is refused with [`super::FaultKind::Function`]: its name is used up, the task and what it says next are
//! not touched. Who sends the same name again is told the same fault again.
//!
//! A push function that may fail is tried at all lanes before it is sent to the first, so that it changes nothing anywhere when
//! one of them says no. A try changes nothing and leaves nothing behind: a task that dies between the two is cleaned up by
//! nobody.

use matrix::FunctionCall;
use matrix::lane_matrix::PartialAnswer;

use super::{JobId, PushPosition, RequestId};

/// Carries a pull function out on all partitions of the lane. Answered by [`PulledFunction`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullFunction {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The task that asks.
    pub task: u32,
    /// Its clock.
    pub clock: u64,
    /// The matrix, by order of creation.
    pub matrix: u32,
    /// Milliseconds for which the task still waits for the answer, from the sending on; 0: as long as the job allows.
    pub wait_ms: u32,
    /// The function.
    pub call: FunctionCall,
}

/// The answer to [`PullFunction`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledFunction {
    /// Of the request.
    pub request: RequestId,
    /// m when the rows were read.
    pub minimum: u64,
    /// Nanoseconds that the lane held the request, waiting for other tasks.
    pub held_ns: u64,
    /// How far the pushes of the asking task have come.
    pub applied: PushPosition,
    /// The parts of the partitions of the lane, ascending.
    pub parts: Vec<PartialAnswer>,
}

/// Carries push functions out on all partitions of the lane, in this order and in one visit; or stages them. Answered by
/// `TaskTimes` when `request` is not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushFunction {
    /// Of this request, or 0.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: u32,
    /// Its clock.
    pub clock: u64,
    /// Counted together with the pushes of the task to this lane under this clock.
    pub index: u32,
    /// The matrix, by order of creation.
    pub matrix: u32,
    /// The functions; none: only the name is used up. Arguments may be those that the columns of the lane need.
    pub calls: Vec<FunctionCall>,
}

/// Asks whether the lane could carry push functions out as it is now: they are, on all its partitions, and undone. Held as the
/// push would be. Answered by `TaskTimes`, or by the fault that the push would have; if the push of this name counts already, by
/// what that was answered. Who is told no at any lane pushes no calls to all under this name, so that the names of later
/// pushes hang on nothing that another attempt of the task might find otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryFunction {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: u32,
    /// Its clock.
    pub clock: u64,
    /// Of the push that would follow.
    pub index: u32,
    /// The matrix, by order of creation.
    pub matrix: u32,
    /// Milliseconds for which the task still waits for the answer, from the sending on; 0: as long as the job allows.
    pub wait_ms: u32,
    /// The functions, as they would be pushed.
    pub calls: Vec<FunctionCall>,
}
