//! Opening a connection: the one who connects says [`Hello`], the other [`Welcome`] or a fault, and closes. Nothing else
//! may come first. Repeating it on a new connection is always safe: a task says hello again after a reset, learns from
//! the marks what has arrived, and sends the rest.

use serde::{Deserialize, Serialize};

use super::{JobId, PushPosition, RequestId};

/// Who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Role {
    /// A task of a job. Its earlier connections to this lane are dropped.
    Task {
        /// The job.
        job: JobId,
        /// The task.
        task: u32,
    },
    /// Whoever opens and closes jobs, reads and writes whole matrices, asks for statistics; at a master also the host of
    /// a session.
    Tool,
    /// A foreign host that pulls and pushes. Any number of connections may be of one session.
    Session {
        /// The session.
        job: JobId,
    },
    /// A process that joins the cluster, or a client of the master.
    Member,
}

/// The first frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Of this request.
    pub request: RequestId,
    /// The shared secret; empty when there is none. Compared in constant time.
    pub token: Vec<u8>,
    /// Who connects.
    pub role: Role,
    /// The lane that is wanted, from 0.
    pub lane: u16,
}

/// The answer to [`Hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Of the request.
    pub request: RequestId,
    /// Changes when the process starts anew: what was said to an earlier incarnation is lost.
    pub incarnation: u64,
    /// Number of lanes of this process.
    pub lanes: u16,
    /// Most bytes of requests that one connection may have under way.
    pub window_bytes: u64,
    /// Of a task: how far its pushes have come here.
    pub applied: PushPosition,
    /// Of a task: its clock here.
    pub clock: u64,
    /// m at this lane; [`u64::MAX`] when no task is live.
    pub minimum: u64,
}
