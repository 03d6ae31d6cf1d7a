//! A member's connection to the master: registers, sends heartbeats, reconnects after a reset with the same
//! incarnation, and gives up when the master is away for too long. It is a thread with a blocking connection.

mod registration;
mod thread;

use std::sync::mpsc::{Receiver as Events, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use registration::RegisteredConnection;

use crate::error::Error;
use crate::message::{Control, ControlBody, JobId, MemberKind, Message};
use crate::reliable_queue::ReliableQueue;
use crate::stop::Stop;
use crate::trace::log_control;
use crate::transport::{Address, Sender};

/// Most messages that wait for an acknowledgement of the master; with more, the sender waits.
const UNCONFIRMED_LIMIT: usize = 4096;
/// Longest wait for the master to close the connection of a member that leaves.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// How a process joins.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// The address of the master.
    pub master: Address,
    /// The shared secret; empty when there is none.
    pub token: Vec<u8>,
    /// Unique among the alive members.
    pub name: String,
    /// Host and process id, for people.
    pub host: String,
    /// Differs from that of every earlier process with this name.
    pub incarnation: u64,
    /// Whether this process was started again with the incarnation and the state of an earlier one.
    pub restored: bool,
    pub kind: MemberKind,
    /// Longest wait for the first registration.
    pub connect_limit: Duration,
    /// The master is considered lost when no message of it has arrived for this time.
    pub lost_limit: Duration,
}

/// An event that a member receives.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberEvent {
    /// `ToTask`, or `Gone` of another member, each once and in order.
    Message(ControlBody),
    /// The lease expired at the master, and the process is now a new member. Jobs that it was part of before this time
    /// have ended without it.
    LeaseExpired {
        /// Jobs that began later are not affected.
        before: Instant,
    },
    /// Connected again after a loss. All messages that either side sent meanwhile arrive.
    Reconnected,
    /// The master restarted. No more events follow: when the process has ended its work for the previous master, it joins
    /// again.
    MasterRestarted {
        /// The runs of jobs that the new master goes on with in other runs: of the others it knows nothing.
        continued: Vec<JobId>,
    },
    /// The connection to the master is given up. No more events follow.
    MasterLost { reason: String },
}

/// A member of a cluster. Clones share it; any of them may send.
#[derive(Clone, Debug)]
pub struct Membership {
    shared: Arc<Shared>,
    /// As of [`join`].
    runs_at_join: Arc<Vec<JobId>>,
}

/// The state that the thread and the handles share.
#[derive(Debug)]
struct Shared {
    state: Mutex<MemberState>,
    changed: Condvar,
    leave_requested: Stop,
}

#[derive(Debug)]
struct MemberState {
    id: u32,
    report: Value,
    /// `None` while there is no connection.
    sender: Option<Sender>,
    queue: ReliableQueue,
    /// Whether the thread has ended.
    is_closed: bool,
}

/// Registers with the master. While no master answers, it retries until `connect_limit`; a refusal is an error at once.
pub fn join(config: MemberConfig) -> Result<(Membership, Events<MemberEvent>), Error> {
    let RegisteredConnection { sender, receiver, lease: registered, runs } =
        registration::register_with_retry(&config)?;
    let (events, heard) = channel();
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
    let thread = thread::MemberThread::new(config, Arc::clone(&shared), events, &registered);
    std::thread::Builder::new()
        .name("member".into())
        .spawn(move || thread.run(receiver))
        .map_err(|source| Error::Io { what: "start the member thread".into(), source })?;
    Ok((Membership { shared, runs_at_join: Arc::new(runs) }, heard))
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, MemberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemberState {
    /// Sends if there is a connection. Shuts a broken connection down, which the thread notices.
    fn send(&mut self, control: Control) {
        if let Some(sender) = &mut self.sender
            && sender.send(&Message::Control(control)).is_err()
        {
            sender.shutdown();
            self.sender = None;
        }
    }
}
