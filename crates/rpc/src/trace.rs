//! The identity of a request in the logs: the same fields at the task that asks and at the lane that answers, so that the
//! lines of two processes can be joined.
//!
//! (job, task, request) names a request that wants an answer; (job, task, clock, index) and the lane name a push, wanted
//! or not.

use std::time::Duration;

use crate::message::{ControlBody, Message, RequestId};

/// A request that took longer at either end, waits for other tasks included, is logged at level info.
pub const SLOW_REQUEST: Duration = Duration::from_secs(1);

/// What names a request of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestIdentity {
    /// Its kind.
    pub kind: &'static str,
    /// The job.
    pub job: u32,
    /// The task.
    pub task: u32,
    /// The number that its answer repeats; 0: no answer is wanted.
    pub request: RequestId,
    /// The clock that it speaks of.
    pub clock: u64,
    /// Of a push: its number under that clock; else 0.
    pub index: u32,
}

impl RequestIdentity {
    /// Of a message, if it is a request of a task.
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

/// Logs, at level debug, what a member and the master say to each other once and in order; `number` is that of the message in
/// its direction. With the member it is the identity by which the lines of both ends can be joined.
pub fn log_control(message: &'static str, member: u32, number: RequestId, body: &ControlBody) {
    let (kind, job) = match body {
        ControlBody::ToTask { job, .. } => ("ToTask", Some(*job)),
        ControlBody::FromTask { job, .. } => ("FromTask", Some(*job)),
        ControlBody::Gone { .. } => ("Gone", None),
        _ => return,
    };
    tracing::debug!(member, request = number, job, kind, "{message}");
}

/// Logs at `$level` with the fields of an identity, then fields of one's own.
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
