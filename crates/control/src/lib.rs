//! The control plane: what clients say to the master, over gRPC, and the question whether a process is well.
//!
//! | module | what it holds |
//! |---|---|
//! | [`request`] | what is said, as plain values: the master's state machine knows nothing else |
//! | [`master_handle`] | how a call reaches the thread of the state machine, and its answer comes back |
//! | [`grpc_server`] | the end that is called: HTTP/2 connections on the port of the process |
//! | [`client`] | the end that calls: blocking |
//! | [`limits`] | every limit by name |
//! | [`text`] | text of others, made fit to be stored and printed |
//!
//! The descriptions are in `proto/`; `docs/protocol.md` says what else is spoken on the same port.

pub mod client;
mod codes;
mod convert;
mod deadline;
mod error;
mod grpc_connection;
pub mod grpc_server;
mod health;
mod job_updates;
mod jobs;
pub mod limits;
pub mod master_handle;
mod reflection;
pub mod request;
pub mod text;
mod unread;

/// What is made from `proto/`.
#[allow(
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::unwrap_used,
    reason = "made code; its words are in proto/"
)]
mod pb {
    tonic::include_proto!("seraphim.v1");

    pub(crate) mod health {
        tonic::include_proto!("grpc.health.v1");
    }
}

pub use client::Client;
pub use error::Error;
pub use grpc_server::GrpcServer;
pub use master_handle::{CallResult, ClientCall, ClientId, MasterHandle, ResponseSender};
pub use request::{ClientRequest, ClientResponse, JobState, JobStatus, JobSubmission, SubmissionId};
pub use tonic::Code;
