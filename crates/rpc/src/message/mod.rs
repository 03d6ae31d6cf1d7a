//! The messages between processes. Each file has one topic, with each request beside its answer.
//!
//! Frames on one connection are handled in order. A request that wants an answer carries a [`RequestId`], unique on its
//! connection; the answer repeats it. A **lane** is one thread of a server with the partitions that it owns and a clock
//! table of its own; a connection speaks with one lane.

pub mod base64_bytes;
pub mod batch;
pub mod clock;
pub mod control;
pub mod fault;
pub mod function;
pub mod handshake;
pub mod job;
pub mod pull;
pub mod push;
pub mod rows;
pub mod session;
pub mod staged;
pub mod stats;

use serde::{Deserialize, Serialize};

pub use base64_bytes::Base64Bytes;
pub use batch::Batch;
pub use clock::{Barrier, Join, Joined, Leave, Released, Tick};
pub use control::{Control, ControlBody, Member, MemberKind};
pub use fault::{Fault, FaultKind};
pub use function::{PullFunction, PulledFunction, PushFunction, TryFunction};
pub use handshake::{Hello, Role, Welcome};
pub use job::{CloseJob, Durability, OpenJob, Standby};
pub use pull::{KeyList, PartitionRun, Pull, Pulled};
pub use push::Push;
pub use rows::{DropRows, Export, ExportPage, Import, KeepRows, RestoreRows, SNAPSHOT_LIMIT, ScanRows};
pub use session::{
    AddMatrix, AskMap, CheckpointSession, CloseSession, CreateMatrix, DropMatrix, OpenSession, RenewSession,
    SessionLane, SessionMap, SessionMatrix,
};
pub use staged::{CloseToken, Commit, CommitFunction, Committed, PushStaged};
pub use stats::{Stats, StatsReply, TaskState, TaskStats, TaskWait, WaitKind};

/// Names a request on its connection. 0: no answer is wanted.
pub type RequestId = u64;
/// A job, unique at its master.
pub type JobId = u32;

/// The push watermark of a task at a lane: all its pushes with a name `(clock, index)` below this one are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PushPosition {
    /// The clock of the next push.
    pub clock: u64,
    /// The index of the next push under that clock.
    pub index: u32,
}

/// Any message between processes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is named after its type, which has the documentation")]
pub enum Message {
    Hello(Hello),
    Welcome(Welcome),
    OpenJob(OpenJob),
    CloseJob(CloseJob),
    Pull(Pull),
    Pulled(Pulled),
    Push(Push),
    Tick(Tick),
    Leave(Leave),
    Join(Join),
    Joined(Joined),
    Barrier(Barrier),
    Released(Released),
    Export(Export),
    ExportPage(ExportPage),
    Import(Import),
    KeepRows(KeepRows),
    RestoreRows(RestoreRows),
    Stats(Stats),
    StatsReply(StatsReply),
    Done(Done),
    Fault(Fault),
    Control(Control),
    OpenSession(OpenSession),
    SessionMap(SessionMap),
    CreateMatrix(CreateMatrix),
    DropMatrix(DropMatrix),
    AskMap(AskMap),
    RenewSession(RenewSession),
    CloseSession(CloseSession),
    AddMatrix(AddMatrix),
    PushStaged(PushStaged),
    Commit(Commit),
    Committed(Committed),
    CloseToken(CloseToken),
    Batch(Batch),
    PullFunction(PullFunction),
    PulledFunction(PulledFunction),
    PushFunction(PushFunction),
    TryFunction(TryFunction),
    CommitFunction(CommitFunction),
    DropRows(DropRows),
    ScanRows(ScanRows),
    CheckpointSession(CheckpointSession),
}

impl Message {
    /// The job that a request to a lane names, and the number of the request. None for answers, for messages of the
    /// master, and for a batch, whose parts name them.
    pub fn request_of_job(&self) -> Option<(JobId, RequestId)> {
        macro_rules! of {
            ($($kind:ident),+) => {
                match self {
                    $(Message::$kind(message) => Some((message.job, message.request)),)+
                    _ => None,
                }
            };
        }
        of!(
            OpenJob,
            CloseJob,
            Pull,
            Push,
            Tick,
            Leave,
            Join,
            Barrier,
            Export,
            Import,
            KeepRows,
            RestoreRows,
            DropRows,
            ScanRows,
            Stats,
            AddMatrix,
            DropMatrix,
            PushStaged,
            Commit,
            CloseToken,
            PullFunction,
            PushFunction,
            TryFunction,
            CommitFunction
        )
    }
}

/// Confirms a request that has no answer of its own: the request was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub request: RequestId,
    /// The smallest clock (m) at this lane; [`u64::MAX`] when no task is live or the request has no job.
    pub minimum: u64,
    /// The push watermark, at this lane, of the task that sent the request.
    pub applied: PushPosition,
}
