//! Until when an answer is waited for: the door reads it off the head of a call, and what is watched ends with it.

use std::time::Duration;

use tokio::time::Instant;

/// Until when an answer is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    /// From the beginning of the call.
    pub(crate) limit: Duration,
}

impl Deadline {
    /// What is said when it has passed.
    pub(crate) fn exceeded(&self) -> tonic::Status {
        let text = format!("the deadline of the call, {} ms, has passed", self.limit.as_millis());
        tonic::Status::deadline_exceeded(text)
    }
}
