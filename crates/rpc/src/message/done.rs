//! The answer to a request that has no answer of its own.

use super::{PushPosition, RequestId};

/// Confirms a request that has no answer of its own: the request was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub request: RequestId,
    /// The smallest clock (m) at this lane; [`u64::MAX`] when no task is live or the request has no job.
    pub minimum: u64,
    /// The push watermark, at this lane, of the task that sent the request.
    pub applied: PushPosition,
}
