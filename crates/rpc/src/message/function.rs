//! PS functions at a lane. A lane defers and answers a pull function like a pull, and it may be repeated. A push
//! function has a name like a push, is ordered with the pushes of its task, and is applied once.
//!
//! A function that fails is refused with [`super::FaultKind::Function`]. Its name is used up; the task and its later
//! requests are not affected. A repeat of the same name gets the same fault.
//!
//! A push function that may fail is tried at all lanes before it is sent to the first one, so that it changes nothing
//! anywhere if one lane refuses it. A try changes nothing and leaves no state, so nothing needs a cleanup if the task
//! dies between the two.

use matrix::{FunctionCall, PartialAnswer};

use super::{JobId, PushPosition, RequestId};

/// Runs a pull function on all partitions of the lane. Answered by [`PulledFunction`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullFunction {
    pub request: RequestId,
    pub job: JobId,
    pub task: u32,
    pub clock: u64,
    /// The position of the matrix in the order of creation.
    pub matrix: u32,
    /// Milliseconds that the task still waits for the answer, counted from when it sends the request. 0: as long as the
    /// job allows.
    pub wait_ms: u32,
    pub call: FunctionCall,
}

/// The answer to [`PullFunction`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledFunction {
    pub request: RequestId,
    /// The smallest clock (m) when the rows were read.
    pub minimum: u64,
    /// Nanoseconds that the lane deferred the request, waiting for other tasks.
    pub deferred_ns: u64,
    /// The push watermark of the task that sent the request.
    pub applied: PushPosition,
    /// The answers of the partitions of the lane, in ascending order.
    pub parts: Vec<PartialAnswer>,
}

/// Runs push functions on all partitions of the lane, in this order and without other requests in between, or stages
/// them. Answered by `Done` when `request` is not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushFunction {
    /// 0: no answer is wanted.
    pub request: RequestId,
    pub job: JobId,
    pub task: u32,
    pub clock: u64,
    /// Counts the push functions together with the pushes of the task to this lane under this clock.
    pub index: u32,
    /// The position of the matrix in the order of creation.
    pub matrix: u32,
    /// The functions. With none, only the name is used up. Each argument may be reduced to the columns that the lane
    /// needs.
    pub calls: Vec<FunctionCall>,
}

/// Asks whether the lane could run push functions in its present state: it runs them on all its partitions and reverts
/// the changes. The lane defers it as it would defer the push. Answered by `Done`, or by the fault that the push would
/// get; if the push of this name is already applied, by the answer to that push. If any lane refuses, the task pushes
/// an empty list of calls to all lanes under this name, so that the names of later pushes do not depend on the state
/// that another attempt of the task may find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryFunction {
    pub request: RequestId,
    pub job: JobId,
    pub task: u32,
    pub clock: u64,
    /// The index of the push that would follow.
    pub index: u32,
    /// The position of the matrix in the order of creation.
    pub matrix: u32,
    /// Milliseconds that the task still waits for the answer, counted from when it sends the request. 0: as long as the
    /// job allows.
    pub wait_ms: u32,
    /// The functions, as they would be pushed.
    pub calls: Vec<FunctionCall>,
}
