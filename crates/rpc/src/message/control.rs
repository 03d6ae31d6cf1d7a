//! Messages between members and the master. Bodies are JSON, rare and small. A member keeps one connection to the
//! master, on which both sides may send at any time. The work of a job travels in [`ControlBody::ToTask`] and
//! [`ControlBody::FromTask`], whose contents only the two ends understand. Requests of clients are not here: clients
//! call the master over gRPC (the crate `control`).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Base64Bytes, JobId, RequestId};

#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// The number of the request or of the answered request, or 0. See [`ControlBody::Heard`].
    pub request: RequestId,
    pub body: ControlBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum MemberKind {
    /// A process that owns partitions.
    Server {
        /// Where the server accepts connections: `tcp:HOST:PORT` or `unix:PATH`.
        addresses: Vec<String>,
        /// Number of its threads.
        lanes: u16,
        /// Most bytes that its partitions may take.
        memory_limit_bytes: u64,
    },
    /// A process that runs tasks.
    Worker {
        /// Most tasks that run at once.
        slots: u32,
        /// Only jobs for this group run on it. Empty: jobs for no group.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        group: String,
    },
}

/// A member as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The number of the member at the master, never used again.
    pub id: u32,
    /// Unique among the alive members.
    pub name: String,
    /// Changes when the process restarts.
    pub incarnation: u64,
    #[serde(flatten)]
    pub kind: MemberKind,
    /// Host and process id, for people.
    pub host: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "say")]
pub enum ControlBody {
    /// Member -> master, the first message: joins, or reconnects after a reset with the same incarnation. Answered by
    /// `Registered`, or by a fault: an alive member with another incarnation has this name.
    Register {
        /// Unique among the alive members.
        name: String,
        /// Of the process.
        incarnation: u64,
        /// Host and process id, for people.
        host: String,
        member: MemberKind,
        /// Whether the process was started again and has the state of the one before, whose incarnation it has. What was
        /// said to that one and not acknowledged is dropped.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        restored: bool,
    },
    /// Master -> member.
    Registered {
        id: u32,
        /// The master removes the member after so many milliseconds without a message.
        lease_ms: u64,
        /// The member should send a message at least as often as this, in milliseconds.
        heartbeat_ms: u64,
        /// Of the master.
        incarnation: u64,
        /// The runs of jobs that this member is part of, by the numbers by which members know them. What a process that was
        /// started again still has of other runs is of no use any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        runs: Vec<JobId>,
    },
    /// Member -> master, of a member of an earlier master before it registers: asks which runs of jobs another run goes on
    /// with, so that their state needs not be saved. Answered by `ContinuedRuns`.
    AskContinuedRuns,
    /// Master -> member.
    ContinuedRuns {
        /// The numbers by which members know the runs.
        runs: Vec<JobId>,
    },
    /// Member -> master: renews the lease. Answered by `Alive`.
    Heartbeat {
        /// The number of the member.
        id: u32,
        /// What `status` shows of the member.
        report: Value,
    },
    /// Master -> member.
    Alive,
    /// Member -> master: the process ends as intended. Its name is free at once. No answer; the master closes the
    /// connection.
    Leave,
    /// Member <-> master: acknowledges `ToTask`, `FromTask` and `Gone`. Each side numbers those messages in
    /// [`Control::request`]: 1, 2, 3 ... for one number of a member. It keeps them until they are acknowledged, sends
    /// them again after a reset, and drops those that it has received before. A message with number 0 is not kept.
    Heard {
        /// All messages up to this number have arrived.
        count: u64,
    },
    /// Master -> worker: a message for a task of a job, or for the worker itself.
    ToTask { job: JobId, body: Base64Bytes },
    /// Worker -> master: a message for the runner of a job.
    FromTask { job: JobId, body: Base64Bytes },
    /// Master -> members: a member is lost.
    Gone {
        member: Member,
        /// Why the master has removed the member.
        reason: String,
    },
}
