//! What a lane logs of requests, with the identity that the task that asks logs too: each at level debug, those that were
//! held for long at level info, refusals at level warn.

use std::time::Duration;

use rpc::log_request;
use rpc::message::{FaultKind, JobId, Message, RequestId};
use rpc::service::ConnectionId;
use rpc::trace::{RequestIdentity, SLOW_REQUEST};

use crate::job::{DeferredCall, DeferredRequest};
use crate::refusal::Refusal;
use crate::state::LaneState;

impl LaneState {
    pub(crate) fn log_arrival(&self, message: &Message) {
        if tracing::enabled!(tracing::Level::DEBUG)
            && let Some(identity) = RequestIdentity::of(message)
        {
            log_request!(debug, identity, lane = self.config.lane, "request came");
        }
    }

    pub(crate) fn log_refusal(&self, at: ConnectionId, request: RequestId, refusal: &Refusal) {
        let (job, task) = self.task_at(at).unzip();
        let (lane, kind, text) = (self.config.lane, refusal.kind, refusal.text.as_str());
        match kind {
            // Lists are forgotten, and sent again; a job that is over says so to whoever still asks.
            FaultKind::UnknownKeys | FaultKind::Stopped | FaultKind::TaskLeft => {
                tracing::debug!(job, task, request, lane, connection = at, ?kind, text, "request refused");
            }
            // Who called it is told, and may go on.
            FaultKind::Function => {
                tracing::info!(job, task, request, lane, connection = at, ?kind, text, "request refused");
            }
            _ => tracing::warn!(job, task, request, lane, connection = at, ?kind, text, "request refused"),
        }
    }
}

/// The end of a wait of a pull or push.
pub(crate) fn log_deferred(now: Duration, job: JobId, lane: u16, held: &DeferredRequest) {
    let kind = match held.call {
        DeferredCall::Pull(_) => "Pull",
        DeferredCall::PullFunction(_) => "PullFunction",
        DeferredCall::TryFunction(_) => "TryFunction",
        DeferredCall::Push => "Push",
    };
    let DeferredRequest { task, request, clock, .. } = *held;
    let identity = RequestIdentity { kind, job, task, request, clock, index: 0 };
    log_wait(now.saturating_sub(held.since), &identity, lane);
}

/// The end of a wait for other tasks.
pub(crate) fn log_wait(held: Duration, identity: &RequestIdentity, lane: u16) {
    let held_ms = held.as_millis() as u64;
    if held >= SLOW_REQUEST {
        log_request!(info, *identity, lane, held_ms, "request was held for other tasks");
    } else {
        log_request!(debug, *identity, lane, held_ms, "request was held for other tasks");
    }
}
