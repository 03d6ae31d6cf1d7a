//! The identity of a request in the logs. The task that sends a request and the lane that answers it log the same
//! fields, so that the lines of the two processes can be joined.
//!
//! (job, task, request) names a request that wants an answer; (job, task, clock, index) and the lane name a push,
//! whether it wants an answer or not.

use std::time::Duration;

use crate::message::{ControlBody, Message, RequestId};

/// A request that takes longer than this at either end, waits for other tasks included, is logged at level info.
pub const SLOW_REQUEST: Duration = Duration::from_secs(1);

/// The fields that name a request of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestIdentity {
    /// The name of its kind.
    pub kind: &'static str,
    pub job: u32,
    pub task: u32,
    /// The number that its answer repeats; 0: no answer is wanted.
    pub request: RequestId,
    /// The clock of the request.
    pub clock: u64,
    /// For a push: its index under that clock; else 0.
    pub index: u32,
}

impl RequestIdentity {
    /// The identity of a message, if it is a request of a task.
    pub fn of(message: &Message) -> Option<Self> {
        let (job, task, request, clock, index) = match message {
            Message::Pull(m) => (m.job, m.task, m.request, m.clock, 0),
            Message::Push(m) => (m.job, m.task, m.request, m.clock, m.index),
            Message::PullFunction(m) => (m.job, m.task, m.request, m.clock, 0),
            Message::PushFunction(m) => (m.job, m.task, m.request, m.clock, m.index),
            Message::TryFunction(m) => (m.job, m.task, m.request, m.clock, m.index),
            Message::Tick(m) => (m.job, m.task, m.request, m.clock, 0),
            Message::Barrier(m) => (m.job, m.task, m.request, m.clock, 0),
            Message::Leave(m) => (m.job, m.task, m.request, 0, 0),
            Message::Join(m) => (m.job, m.task, m.request, 0, 0),
            _ => return None,
        };
        Some(Self { kind: message.kind_name(), job, task, request, clock, index })
    }
}

/// Logs, at level debug, a numbered message between a member and the master. `number` is the number of the message in
/// its direction. Member and number identify the message in the logs of both ends.
pub fn log_control(message: &'static str, member: u32, number: RequestId, body: &ControlBody) {
    let (kind, job) = match body {
        ControlBody::ToTask { job, .. } => ("ToTask", Some(*job)),
        ControlBody::FromTask { job, .. } => ("FromTask", Some(*job)),
        ControlBody::Gone { .. } => ("Gone", None),
        _ => return,
    };
    tracing::debug!(member, request = number, job, kind, "{message}");
}

/// Logs at `$level` with the fields of an identity, then further fields.
#[macro_export]
macro_rules! log_request {
    ($level:ident, $identity:expr, $($rest:tt)+) => {{
        let identity: &$crate::trace::RequestIdentity = &$identity;
        $crate::tracing::$level!(
            job = identity.job,
            task = identity.task,
            request = identity.request,
            clock = identity.clock,
            index = identity.index,
            kind = identity.kind,
            $($rest)+
        )
    }};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Hello, Role, Tick};

    #[test]
    fn requests_of_tasks_have_an_identity_and_nothing_else_has() {
        let tick = Message::Tick(Tick { request: 3, job: 1, task: 2, clock: 9 });
        let identity = RequestIdentity { kind: "Tick", job: 1, task: 2, request: 3, clock: 9, index: 0 };
        assert_eq!(RequestIdentity::of(&tick), Some(identity));
        let hello = Message::Hello(Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 });
        assert_eq!(RequestIdentity::of(&hello), None);
    }
}
