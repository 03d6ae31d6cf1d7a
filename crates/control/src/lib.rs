//! The control plane: requests of clients to the master over gRPC, and the health check of a process.
//!
//! | module | contents |
//! |---|---|
//! | [`request`] | requests and responses as plain values, the only ones that the state machine of the master uses |
//! | [`master_handle`] | how a call reaches the thread of the state machine, and how its answer returns |
//! | [`grpc_server`] | the server: HTTP/2 connections on the port of the process |
//! | [`client`] | the client: blocking |
//! | [`limits`] | every limit by name |
//! | [`text`] | untrusted text, made safe to store and print |
//!
//! The gRPC definitions are in `proto/`; `docs/protocol.md` describes the other protocols on the same port.

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

/// The code generated from `proto/`.
#[allow(
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::unwrap_used,
    reason = "generated code; the documentation is in proto/"
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
