//! The member's end of the control conversation: registers, says that it lives, comes back after a reset with the same
//! incarnation, and gives up when the master is gone for too long. A thread with a blocking connection.

mod registration;
mod thread;

use std::sync::mpsc::{Receiver as Events, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use registration::RegisteredConnection;

use crate::error::Error;
use crate::message::{Control, ControlBody, MemberKind, Message};
use crate::reliable_queue::ReliableQueue;
use crate::stop::Stop;
use crate::trace::log_control;
use crate::transport::{Address, Sender};

/// Most messages that are kept until the master confirms them; whoever says more waits.
const UNCONFIRMED_LIMIT: usize = 4096;
/// Longest wait for the master to close the connection of one who leaves.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// How a process joins.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// Where the master is.
    pub master: Address,
    /// The shared secret; empty when there is none.
    pub token: Vec<u8>,
    /// Unique among the living.
    pub name: String,
    /// Host and process, for people.
    pub host: String,
    /// Differs from that of every earlier process of this name.
    pub incarnation: u64,
    /// What it is.
    pub kind: MemberKind,
    /// Longest wait for the first contact.
    pub connect_limit: Duration,
    /// A master of which nothing is heard for so long is gone for good.
    pub lost_limit: Duration,
}

/// What a member hears.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberEvent {
    /// `ToTask` or `MemberLost` of another member, each once and in order.
    Message(ControlBody),
    /// The master had taken this member for dead, and it is another one from now on: what it was part of before this time
    /// has ended without it.
    LeaseExpired {
        /// No job that began later is meant.
        before: Instant,
    },
    /// Connected again after a loss. What was said meanwhile on both sides arrives.
    Reconnected,
    /// The master was started anew and knows of no job. Nothing more will come: whoever has ended what it did for the one
    /// before joins again.
    MasterRestarted,
    /// Nothing more will come.
    MasterLost {
        /// Why.
        reason: String,
    },
}

/// A member of a cluster, shared by whoever has something to say.
#[derive(Clone, Debug)]
pub struct Membership {
    shared: Arc<Shared>,
}

/// What the thread and the handles share.
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
    /// The thread has ended.
    is_closed: bool,
}

/// Registers with the master. A master that is not there is tried until `connect_limit`; a refusal is an error at once.
pub fn join(config: MemberConfig) -> Result<(Membership, Events<MemberEvent>), Error> {
    let RegisteredConnection { sender, receiver, lease: registered } =
        registration::register_with_retry(&config)?;
    let (events, heard) = channel();
    let link = MemberState {
        id: registered.id,
        report: Value::Null,
        // From the start, so that whoever leaves at once says so.
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
        .map_err(|source| Error::Io { what: "start the thread of a member".into(), source })?;
    Ok((Membership { shared }, heard))
}

impl Membership {
    /// Its number at the master. Another one after [`MemberEvent::LeaseExpired`].
    pub fn id(&self) -> u32 {
        self.shared.lock().id
    }

    /// Says something to the master. `FromTask` arrives once, in order, through resets; anything else is lost when there
    /// is no connection. Waits while too much is unconfirmed. Does nothing after `MasterLost`.
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
            log_control("said to the master", link.id, control.request, &control.body);
            link.send(control);
        }
    }

    /// What people see of it, from the next heartbeat on.
    pub fn set_report(&self, value: Value) {
        self.shared.lock().report = value;
    }

    /// Leaves: the name is free at once. What was said before still arrives, if there is a connection.
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
    /// Sends if there is a connection. A broken one is shut down, which the thread sees.
    fn send(&mut self, control: Control) {
        if let Some(sender) = &mut self.sender
            && sender.send(&Message::Control(control)).is_err()
        {
            sender.shutdown();
            self.sender = None;
        }
    }
}
