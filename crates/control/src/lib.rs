//! The HTTP port of a process: the control plane, which is requests of clients to the master over gRPC, and the health and
//! the metrics of the process.
//!
//! | module | contents |
//! |---|---|
//! | [`request`] | requests and responses as plain values, the only ones that the state machine of the master uses |
//! | [`master_handle`] | how a call reaches the thread of the state machine, and how its answer returns |
//! | [`http_server`] | the HTTP port of a process: gRPC, `/metrics`, `/health` |
//! | [`client`] | the client: blocking |
//! | [`limits`] | every limit by name |
//! | [`text`] | untrusted text, made safe to store and print |
//!
//! The gRPC definitions are in `proto/`; `docs/protocol.md` describes the frames of the other port.

mod answer;
pub mod client;
mod codes;
mod convert;
mod counters;
mod error;
mod health;
pub mod http_config;
mod http_connection;
pub mod http_server;
mod job_updates;
mod jobs;
pub mod limits;
pub mod master_handle;
mod metrics_text;
mod reflection;
pub mod request;
mod routes;
pub mod text;

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
pub use http_config::{HttpConfig, metrics_of_lanes};
pub use http_server::{HttpThread, serve_http};
pub use master_handle::{CallResult, ClientCall, ClientId, MasterHandle, ResponseSender};
pub use metrics_text::metrics_text;
pub use request::{ClientRequest, ClientResponse, JobState, JobStatus, JobSubmission, SubmissionId};
pub use tonic::Code;
