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
    /// A tool of one job: a lane that does not have the job refuses it, and so does the standby of the job until it has taken
    /// the job over.
    JobTool { job: JobId },
    /// A lane that sends the changes of a replicated job to its standby. Each is answered by `Done`, whose request is the
    /// number of changes that the standby has of the job; so many says the clock of the `Welcome`.
    Primary {
        job: JobId,
        /// Of the server of the primary: once the standby has taken the job over, its `Welcome` repeats this number.
        incarnation: u64,
    },
}

impl Role {
    /// The job that the role names.
    pub fn job(self) -> Option<JobId> {
        match self {
            Role::Task { job, .. }
            | Role::Session { job }
            | Role::JobTool { job }
            | Role::Primary { job, .. } => Some(job),
            Role::Tool | Role::Member => None,
        }
    }
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
