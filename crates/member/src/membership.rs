//! The handle of a member, with which a process joins, sends and leaves.

use std::sync::mpsc::{Receiver as Events, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use rpc::message::{Control, ControlBody, JobId};
use rpc::reliable_queue::ReliableQueue;
use rpc::trace::log_control;
use rpc::{Error, Stop};
use serde_json::Value;

use crate::config::{MemberConfig, MemberEvent};
use crate::registration::{RegisteredConnection, register_with_retry};
use crate::shared::{LEAVE_LIMIT, MemberState, Shared};
use crate::thread::MemberThread;

/// Most messages that wait for an acknowledgement of the master; with more, the sender waits.
const UNCONFIRMED_LIMIT: usize = 4096;
/// A member of a cluster. Clones share it; any of them may send.
#[derive(Clone, Debug)]
pub struct Membership {
    shared: Arc<Shared>,
    /// As of [`join`].
    runs_at_join: Arc<Vec<JobId>>,
}

/// Registers with the master. While no master answers, it retries until `connect_limit`; a refusal is an error at once.
pub fn join(config: MemberConfig) -> Result<(Membership, Events<MemberEvent>), Error> {
    let RegisteredConnection { sender, receiver, lease: registered, runs } = register_with_retry(&config)?;
    let (events, received) = channel();
    let link = MemberState {
        id: registered.id,
        report: Value::Null,
        // The sender is there from the start, so that a member that leaves at once can send `Leave`.
        sender: Some(sender),
        queue: ReliableQueue::default(),
        is_closed: false,
    };
    let shared =
        Arc::new(Shared { state: Mutex::new(link), changed: Condvar::new(), leave_requested: Stop::new() });
    let thread = MemberThread::new(config, Arc::clone(&shared), events, &registered);
    std::thread::Builder::new()
        .name("member".into())
        .spawn(move || thread.run(receiver))
        .map_err(|source| Error::Io { what: "start the member thread".into(), source })?;
    Ok((Membership { shared, runs_at_join: Arc::new(runs) }, received))
}

impl Membership {
    /// The number of the member at the master. It changes with [`MemberEvent::LeaseExpired`].
    pub fn id(&self) -> u32 {
        self.shared.lock().id
    }

    /// The runs of jobs that this member was part of when it joined: those of the process in whose place this one was
    /// started, if the master has not lost it.
    pub fn runs_at_join(&self) -> &[JobId] {
        &self.runs_at_join
    }

    /// Sends a message to the master. `FromTask` arrives once and in order, also after resets; other messages are lost
    /// when there is no connection. Waits while too many messages are unacknowledged. Does nothing after `MasterLost`.
    pub fn send(&self, body: ControlBody) {
        let mut link = self.shared.lock();
        if !matches!(body, ControlBody::FromTask { .. }) {
            link.send(Control { request: 0, body });
            return;
        }
        while link.queue.unacknowledged_count() >= UNCONFIRMED_LIMIT && !link.is_closed {
            link = self.shared.changed.wait(link).unwrap_or_else(PoisonError::into_inner);
        }
        if !link.is_closed {
            let control = link.queue.enqueue(body);
            log_control("sent to the master", link.id, control.request, &control.body);
            link.send(control);
        }
    }

    /// Sets what `status` shows of the member, from the next heartbeat on.
    pub fn set_report(&self, value: Value) {
        self.shared.lock().report = value;
    }

    /// Leaves: the name is free at once. Earlier messages still arrive if there is a connection.
    pub fn leave(&self) {
        let mut link = self.shared.lock();
        link.send(Control { request: 0, body: ControlBody::Leave });
        self.shared.leave_requested.raise();
        let deadline = Instant::now() + LEAVE_LIMIT;
        while !link.is_closed {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            link = self.shared.changed.wait_timeout(link, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
