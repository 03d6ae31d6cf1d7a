//! How a process joins its master, and the events that it receives.

use std::fmt::{Debug, Display, Formatter};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc::message::{ControlBody, JobId, MemberKind};
use rpc::{Address, Error};

/// Finds the master, at each attempt to reach it anew: a supervisor may have started it elsewhere.
#[derive(Clone)]
pub struct MasterLocator {
    /// For messages.
    name: String,
    locate: Arc<dyn Fn() -> Result<Address, Error> + Send + Sync>,
}

impl MasterLocator {
    /// A master whose address `locate` tells; messages call it `name`.
    pub fn new(name: String, locate: impl Fn() -> Result<Address, Error> + Send + Sync + 'static) -> Self {
        Self { name, locate: Arc::new(locate) }
    }

    /// The present address.
    ///
    /// # Errors
    /// If it is not known now.
    pub fn locate(&self) -> Result<Address, Error> {
        (self.locate)()
    }
}

impl From<Address> for MasterLocator {
    fn from(address: Address) -> Self {
        Self::new(address.to_string(), move || Ok(address.clone()))
    }
}

impl Display for MasterLocator {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Debug for MasterLocator {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MasterLocator").field(&self.name).finish()
    }
}

/// How a process joins.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// Where the master is.
    pub master: MasterLocator,
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
