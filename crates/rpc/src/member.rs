//! The member's end of the control conversation: registers, says that it lives, comes back after a reset with the same
//! incarnation, and gives up when the master is gone for too long. A thread with a blocking connection.

mod contact;
mod session;

use std::sync::mpsc::{Receiver as Events, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use contact::Contact;

use crate::error::Error;
use crate::kept::Kept;
use crate::message::{Control, ControlBody, MemberKind, Message};
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
    /// `ToTask` or `Gone` of another member, each once and in order.
    Said(ControlBody),
    /// The master had taken this member for dead, and it is another one from now on: what it was part of before this time
    /// has ended without it.
    Forgotten {
        /// No job that began later is meant.
        before: Instant,
    },
    /// Connected again after a loss. What was said meanwhile on both sides arrives.
    Back,
    /// The master was started anew and knows of no job. Nothing more will come: whoever has ended what it did for the one
    /// before joins again.
    Anew,
    /// Nothing more will come.
    Lost {
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
    link: Mutex<Link>,
    changed: Condvar,
    leaving: Stop,
}

#[derive(Debug)]
struct Link {
    id: u32,
    report: Value,
    /// `None` while there is no connection.
    sender: Option<Sender>,
    kept: Kept,
    /// The thread has ended.
    is_over: bool,
}

/// Registers with the master. A master that is not there is tried until `connect_limit`; a refusal is an error at once.
pub fn join(config: MemberConfig) -> Result<(Membership, Events<MemberEvent>), Error> {
    let Contact { sender, receiver, registered } = contact::first(&config)?;
    let (events, heard) = channel();
    let link = Link {
        id: registered.id,
        report: Value::Null,
        // From the start, so that whoever leaves at once says so.
        sender: Some(sender),
        kept: Kept::default(),
        is_over: false,
    };
    let shared = Arc::new(Shared { link: Mutex::new(link), changed: Condvar::new(), leaving: Stop::new() });
    let thread = session::Session::new(config, Arc::clone(&shared), events, &registered);
    std::thread::Builder::new()
        .name("member".into())
        .spawn(move || thread.run(receiver))
        .map_err(|source| Error::Io { what: "start the thread of a member".into(), source })?;
    Ok((Membership { shared }, heard))
}

impl Membership {
    /// Its number at the master. Another one after [`MemberEvent::Forgotten`].
    pub fn id(&self) -> u32 {
        self.shared.lock().id
    }

    /// Says something to the master. `FromTask` arrives once, in order, through resets; anything else is lost when there
    /// is no connection. Waits while too much is unconfirmed. Does nothing after `Lost`.
    pub fn say(&self, body: ControlBody) {
        let mut link = self.shared.lock();
        if !matches!(body, ControlBody::FromTask { .. }) {
            link.send(Control { request: 0, body });
            return;
        }
        while link.kept.unconfirmed_count() >= UNCONFIRMED_LIMIT && !link.is_over {
            link = self.shared.changed.wait(link).unwrap_or_else(PoisonError::into_inner);
        }
        if !link.is_over {
            let control = link.kept.say(body);
            log_control("said to the master", link.id, control.request, &control.body);
            link.send(control);
        }
    }

    /// What people see of it, from the next heartbeat on.
    pub fn report(&self, value: Value) {
        self.shared.lock().report = value;
    }

    /// Leaves: the name is free at once. What was said before still arrives, if there is a connection.
    pub fn leave(&self) {
        let mut link = self.shared.lock();
        link.send(Control { request: 0, body: ControlBody::Leave });
        self.shared.leaving.raise();
        let deadline = Instant::now() + LEAVE_LIMIT;
        while !link.is_over {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            link = self.shared.changed.wait_timeout(link, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
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
