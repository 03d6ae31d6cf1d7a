//! Replicated jobs: a second server, the standby, has the same partitions. It is told of every change before the change is
//! acknowledged, and goes on when the master has lost the first one, the primary.
//!
//! A lane is a pure state machine, so what the standby is told is the messages that have changed the primary, as frames,
//! in the order of the changes. The primary holds what it would send to the tasks and tools of the job until the standby
//! has confirmed all changes before it. Who has the job is decided by the master alone: the standby takes over when it
//! hears that the master has lost the server of the primary, and refuses every change of the primary from then on; so a
//! primary that was only frozen or cut off acknowledges nothing that the standby does not have. A primary whose standby
//! is lost goes on alone.
//!
//! A server has as many lanes for copies as it has lanes of its own: the standby of a lane is a lane of the next server of
//! the job.

mod events;
pub(crate) mod link;
mod primary;
mod standby;

pub use events::{ClusterEvent, ClusterEvents};
pub use link::{LinkRefusal, OpenLink, StandbyLink};
pub use primary::PrimaryLane;
pub use standby::StandbyLane;
