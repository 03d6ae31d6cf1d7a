//! A session of the parameter service: matrices for a host that is no job of ours, such as a driver of another system with
//! its executors, or a script. The host says [`OpenSession`] to the master, and makes, drops and asks for matrices there;
//! each of these is answered by the whole [`SessionMap`], which says on which lane every partition lies. Values travel
//! between the host and the lanes, by pulls and pushes on connections whose hello says [`super::Role::MemberThread`].
//!
//! A session is a job without tasks: nothing has a clock and nothing waits. It lives as long as its host says something of
//! it at the master, be it only [`RenewSession`], and then its matrices are freed. All of it may be repeated but
//! [`OpenSession`], of which a repeat opens another session: the lost one ends with its lease.

use matrix::MatrixSpec;
use serde::{Deserialize, Serialize};

use super::{JobId, RequestId};

/// Host -> master: opens a session. Answered by [`SessionMap`] when all lanes have taken it, or a fault: `busy` when no
/// server is there or too many sessions are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    /// Of this request.
    pub request: RequestId,
    /// What people see.
    pub name: String,
    /// How long the session lives after the host has last said something of it; 0: the default of the master.
    #[serde(default)]
    pub lease_ms: u64,
    /// On how many servers; 0: all that are there.
    #[serde(default)]
    pub servers: u32,
}

/// Where the matrices of a session lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMap {
    /// Of the request.
    pub request: RequestId,
    /// The session, to be named as the job.
    pub job: JobId,
    /// How long it lives after the host has last said something of it.
    pub lease_ms: u64,
    /// The lanes, which partitions are numbered by.
    pub lanes: Vec<SessionLane>,
    /// The matrices, ascending.
    pub matrices: Vec<SessionMatrix>,
}

/// A lane of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLane {
    /// Where its server takes connections: `tcp:HOST:PORT` or `unix:PATH`.
    pub addresses: Vec<String>,
    /// Which lane of the server, for the hello.
    pub lane: u16,
}

/// A matrix of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMatrix {
    /// Its number, never used again in the session.
    pub matrix: u32,
    /// Its structure.
    pub spec: MatrixSpec,
    /// By partition: the lane, by its place in the list of lanes.
    pub owners: Vec<u16>,
}

/// Host -> master: makes a matrix. Answered by [`SessionMap`], or a fault: a spec that cannot be, a name that is taken by
/// another spec, more bytes than a lane may hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateMatrix {
    /// Of this request.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
    /// Its structure; consistency `asp`, as a session has no clocks.
    pub spec: Box<MatrixSpec>,
}

/// Host -> master -> lanes: frees a matrix. Answered by `TaskTimes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropMatrix {
    /// Of this request.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
    /// Its number.
    pub matrix: u32,
}

/// Host -> master: asks for the map again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskMap {
    /// Of this request.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
}

/// Host -> master: lives. Answered by `TaskTimes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewSession {
    /// Of this request.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
}

/// Host -> master: ends the session. Answered by `TaskTimes` when its memory is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseSession {
    /// Of this request.
    pub request: RequestId,
    /// The session.
    pub job: JobId,
}

/// Master -> lane: makes a matrix of a job that is open. Answered by `TaskTimes`. Numbers only rise; one that was left out is that
/// of a matrix which is not there any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddMatrix {
    /// Of this request.
    pub request: RequestId,
    /// The job.
    pub job: JobId,
    /// Its number.
    pub matrix: u32,
    /// Its structure.
    pub spec: Box<MatrixSpec>,
    /// The partitions that this lane holds, ascending.
    pub held: Vec<u32>,
}
