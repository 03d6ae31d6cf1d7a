//! A session of the parameter service: matrices for a host that is not one of our jobs, such as a driver of another
//! system with its executors, or a script. The host sends [`OpenSession`] to the master, and creates, drops and looks
//! up matrices there. The master answers each of these requests with the whole [`SessionMap`], which says which lane
//! owns each partition. Values travel between the host and the lanes, by pulls and pushes on connections whose `Hello`
//! has [`super::Role::Session`].
//!
//! A session is a job without tasks: it has no clocks, and no request waits. It lives as long as its host sends
//! requests for it to the master, at least [`RenewSession`]; then its matrices are freed. All requests may be repeated
//! except [`OpenSession`]: a repeat opens another session, and the lost one ends with its lease.

use matrix::MatrixSpec;
use serde::{Deserialize, Serialize};

use super::{Durability, JobId, RequestId, Standby};

/// Host -> master: opens a session. Answered by [`SessionMap`] when all lanes have opened it, or by a fault: `Busy`
/// when there is no server or when there are too many sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    pub request: RequestId,
    /// The name that people see.
    pub name: String,
    /// How long the session lives after the last request of its host, in milliseconds. 0: the default of the master.
    #[serde(default)]
    pub lease_ms: u64,
    /// Number of servers. 0: all that are there.
    #[serde(default)]
    pub servers: u32,
    /// What the servers must have of the session when they have died; left out for `checkpoint`.
    #[serde(default, skip_serializing_if = "Durability::is_checkpoint")]
    pub durability: Durability,
    /// The name of checkpoints ([`CheckpointSession`]): the session begins with the matrices and rows of the newest one. Left
    /// out: it begins without matrices.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
}

/// Where the matrices of a session lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMap {
    pub request: RequestId,
    /// The session; later requests name it as their job.
    pub job: JobId,
    /// How long the session lives after the last request of its host, in milliseconds.
    pub lease_ms: u64,
    /// The lanes. Partitions name a lane by its position in this list.
    pub lanes: Vec<SessionLane>,
    /// The matrices, in ascending order.
    pub matrices: Vec<SessionMatrix>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLane {
    /// Where the server accepts connections: `tcp:HOST:PORT` or `unix:PATH`.
    pub addresses: Vec<String>,
    /// The lane of the server, for the `Hello`.
    pub lane: u16,
    /// Which lane has the partitions too, of a session with durability `replica`: when this lane cannot be reached, it
    /// refuses with `Busy` until it has taken them over, and then has the incarnation of this lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<Standby>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMatrix {
    /// The number of the matrix, never used again in the session.
    pub matrix: u32,
    pub spec: MatrixSpec,
    /// By partition: the position of its lane in the list of lanes.
    pub owners: Vec<u16>,
}

/// Host -> master: creates a matrix. Answered by [`SessionMap`], or by a fault: the spec is invalid, the name belongs
/// to a matrix with another spec, or a lane would exceed its limit of bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateMatrix {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
    /// The consistency must be `asp`, because a session has no clocks.
    pub spec: Box<MatrixSpec>,
}

/// Host -> master -> lanes: frees a matrix. Answered by `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropMatrix {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
    pub matrix: u32,
}

/// Host -> master: asks for the map again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskMap {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
}

/// Host -> master: renews the lease of the session. Answered by `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewSession {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
}

/// Host -> master: ends the session. Answered by `Done` when its memory is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseSession {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
}

/// Host -> master: writes a checkpoint of all matrices of the session. Answered by `Done` when it is complete, or by a fault;
/// then the checkpoints before it are as they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSession {
    pub request: RequestId,
    /// The job of the session.
    pub job: JobId,
    /// The name that [`OpenSession`] asks for.
    pub name: String,
}

/// Master -> lane: creates a matrix of an open job. Answered by `Done`. Numbers ascend; a number that was left out
/// belongs to a matrix that no longer exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddMatrix {
    pub request: RequestId,
    pub job: JobId,
    /// The number of the matrix.
    pub matrix: u32,
    pub spec: Box<MatrixSpec>,
    /// The partitions that this lane owns, in ascending order; `held` in older write-ahead logs.
    #[serde(alias = "held")]
    pub owned_partitions: Vec<u32>,
}
