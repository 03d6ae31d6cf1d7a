//! Members and the master. Bodies are readable (JSON), rare and small. A member keeps one connection to the
//! master; both sides may speak at any time. What concerns the work of a job travels as [`ControlBody::ToTask`] and
//! [`ControlBody::FromTask`], whose contents only the two ends know. What clients say is not here: they call the
//! master over gRPC (the crate `control`).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{JobId, RequestId};

/// A frame of the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// Of the request that is made or answered, or 0.
    pub request: RequestId,
    /// What is said.
    pub body: ControlBody,
}

/// What a member is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum MemberKind {
    /// Owns partitions.
    Server {
        /// Where it takes connections: `tcp:HOST:PORT` or `unix:PATH`.
        addresses: Vec<String>,
        /// Its threads.
        lanes: u16,
        /// Most bytes that its partitions may take.
        memory_limit_bytes: u64,
    },
    /// Runs tasks.
    Worker {
        /// Most tasks that run at once.
        slots: u32,
    },
}

/// A member as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number at the master, never used again.
    pub id: u32,
    /// Unique among the living.
    pub name: String,
    /// Changes when the process starts anew.
    pub incarnation: u64,
    /// What it is.
    #[serde(flatten)]
    pub kind: MemberKind,
    /// Host and process, for people.
    pub host: String,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "say")]
pub enum ControlBody {
    /// Member -> master, first: joins, or comes back after a reset with the same incarnation. Answered by `MemberLease`, or
    /// a fault: the name is taken by another incarnation that lives.
    Register {
        /// Unique among the living.
        name: String,
        /// Of the process.
        incarnation: u64,
        /// Host and process, for people.
        host: String,
        /// What it is.
        member: MemberKind,
    },
    /// Master -> member.
    Registered {
        /// Its number.
        id: u32,
        /// It is taken for dead when it has said nothing for so long.
        lease_ms: u64,
        /// It should say something as often as this.
        heartbeat_ms: u64,
        /// Of the master.
        incarnation: u64,
    },
    /// Member -> master: lives. Answered by `Alive`.
    Heartbeat {
        /// Its number.
        id: u32,
        /// What people want to see of it.
        report: Value,
    },
    /// Master -> member.
    Alive,
    /// Member -> master: ends as it should. Its name is free at once. No answer; the master closes the connection.
    Leave,
    /// Member <-> master: how much it has heard of `ToTask`, `FromTask` and `MemberLost`. Each side numbers those of them that it
    /// says to the other in [`Control::request`], 1, 2, 3 ... for one number of a member, keeps them until this comes,
    /// says them again after a reset, and drops those that it has heard before. A number of 0 is not kept.
    Heard {
        /// All up to this one have arrived.
        count: u64,
    },
    /// Master -> worker: something for a task, or for the worker itself, of a job.
    ToTask {
        /// The job.
        job: JobId,
        /// The contents.
        body: Value,
    },
    /// Worker -> master: something for the runner of a job.
    FromTask {
        /// The job.
        job: JobId,
        /// The contents.
        body: Value,
    },
    /// Master -> members: a member is gone.
    Gone {
        /// Who.
        member: Member,
        /// Why it is taken for dead.
        reason: String,
    },
}
