//! Log entries of requests, with the same identity that the task logs. Each request is logged at level debug, a long
//! deferral at level info, a refusal at level warn.

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
            log_request!(debug, identity, lane = self.config.lane, "request received");
        }
    }

    pub(crate) fn log_refusal(&self, at: ConnectionId, request: RequestId, refusal: &Refusal) {
        let (job, task) = self.task_at(at).unzip();
        let (lane, kind, text) = (self.config.lane, refusal.kind, refusal.text.as_str());
        match kind {
            // These are expected: key lists are removed and sent again, a late request of a closed job gets its reason, and a
            // server that was started again does not know a job before it is opened there.
            FaultKind::UnknownKeys | FaultKind::Stopped | FaultKind::TaskLeft | FaultKind::NoSuchJob => {
                tracing::debug!(job, task, request, lane, connection = at, ?kind, text, "request refused");
            }
            // The task gets this error and may continue.
            FaultKind::Function => {
                tracing::info!(job, task, request, lane, connection = at, ?kind, text, "request refused");
            }
            _ => tracing::warn!(job, task, request, lane, connection = at, ?kind, text, "request refused"),
        }
    }
}

/// Logs the end of the wait of a pull or push.
pub(crate) fn log_deferred(now: Duration, job: JobId, lane: u16, deferred: &DeferredRequest) {
    let kind = match deferred.call {
        DeferredCall::Pull(_) => "Pull",
        DeferredCall::PullFunction(_) => "PullFunction",
        DeferredCall::TryFunction(_) => "TryFunction",
        DeferredCall::Push => "Push",
    };
    let DeferredRequest { task, request, clock, .. } = *deferred;
    let identity = RequestIdentity { kind, job, task, request, clock, index: 0 };
    log_wait(now.saturating_sub(deferred.since), &identity, lane);
}

/// Logs the end of a wait for other tasks.
pub(crate) fn log_wait(waited: Duration, identity: &RequestIdentity, lane: u16) {
    let deferred_ms = waited.as_millis() as u64;
    if waited >= SLOW_REQUEST {
        log_request!(info, *identity, lane, deferred_ms, "request was deferred for other tasks");
    } else {
        log_request!(debug, *identity, lane, deferred_ms, "request was deferred for other tasks");
    }
}
