//! The messages between processes. Each file has one topic, with each request beside its answer.
//!
//! Frames on one connection are handled in order. A request that wants an answer carries a [`RequestId`], unique on its
//! connection; the answer repeats it. A **lane** is one thread of a server with the partitions that it owns and a clock
//! table of its own; a connection speaks with one lane.

pub mod any;
pub mod base64_bytes;
pub mod clock;
pub mod control;
pub mod done;
pub mod fault;
pub mod function;
pub mod handshake;
pub mod ids;
pub mod job;
pub mod pull;
pub mod push;
pub mod rows;
pub mod session;
pub mod staged;
pub mod stats;

pub use any::{Batch, Message};
pub use base64_bytes::Base64Bytes;
pub use clock::{Barrier, Join, Joined, Leave, Released, Tick};
pub use control::{Control, ControlBody, Member, MemberKind};
pub use done::Done;
pub use fault::{Fault, FaultKind};
pub use function::{PullFunction, PulledFunction, PushFunction, TryFunction};
pub use handshake::{Hello, Role, Welcome};
pub use ids::{JobId, PushPosition, RequestId};
pub use job::{CloseJob, Durability, OpenJob, Standby};
pub use pull::{KeyList, PartitionRun, Pull, Pulled};
pub use push::Push;
pub use rows::{DropRows, Export, ExportPage, Import, KeepRows, RestoreRows, SNAPSHOT_LIMIT, ScanRows};
pub use session::{
    AddMatrix, AskMap, CheckpointSession, CloseSession, CreateMatrix, DropMatrix, OpenSession, RenewSession,
    SessionLane, SessionMap, SessionMatrix,
};
pub use staged::{CloseToken, Commit, CommitFunction, Committed, PushStaged};
pub use stats::{Stats, StatsReply, TaskStats, TaskStatus, TaskWait, WaitKind};
