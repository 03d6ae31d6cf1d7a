//! Opening a connection: the end that connects sends [`Hello`]; the other end sends [`Welcome`], or sends a fault and
//! closes. No other message may come first. It is always safe to repeat the handshake on a new connection: after a
//! reset a task sends `Hello` again, learns from the push watermark what has arrived, and sends the rest.

use serde::{Deserialize, Serialize};

use super::{JobId, PushPosition, RequestId};

/// What the end that connects is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Role {
    /// A task of a job. The lane drops earlier connections of the task.
    Task { job: JobId, task: u32 },
    /// Opens and closes jobs, reads and writes whole matrices, asks for statistics. At a master it may also be the host
    /// of a session.
    Tool,
    /// A foreign host that pulls and pushes. A session may have any number of connections.
    Session {
        /// The job of the session.
        job: JobId,
    },
    /// A process that joins the cluster, or a client of the master.
    Member,
}

/// The first frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub request: RequestId,
    /// The shared secret; empty when there is none. It is compared in constant time.
    pub token: Vec<u8>,
    pub role: Role,
    /// The requested lane, from 0.
    pub lane: u16,
}

/// The answer to [`Hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub request: RequestId,
    /// Changes when the process restarts: what an earlier incarnation received is lost.
    pub incarnation: u64,
    /// Number of lanes of this process.
    pub lanes: u16,
    /// Most bytes of requests that one connection may have under way.
    pub window_bytes: u64,
    /// For a task: its push watermark at this lane.
    pub applied: PushPosition,
    /// For a task: its clock at this lane.
    pub clock: u64,
    /// The smallest clock (m) at this lane; [`u64::MAX`] when no task is live.
    pub minimum: u64,
}
