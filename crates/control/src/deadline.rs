//! The deadline of a call. The server reads it from the headers of the call; a watch ends with it too.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    /// The time from the beginning of the call to the deadline.
    pub(crate) limit: Duration,
}

impl Deadline {
    /// The status after the deadline.
    pub(crate) fn exceeded(&self) -> tonic::Status {
        let text = format!("the deadline of the call, {} ms, has passed", self.limit.as_millis());
        tonic::Status::deadline_exceeded(text)
    }
}
