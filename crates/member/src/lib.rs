//! A member's connection to the master: registers, sends heartbeats, reconnects after a reset with the same
//! incarnation, and gives up when the master is away for too long. It is a thread with a blocking connection.

mod config;
mod membership;
mod registration;
mod shared;
mod thread;

pub use config::{MasterLocator, MemberConfig, MemberEvent};
pub use membership::{Membership, join};
