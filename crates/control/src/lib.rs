//! The control plane: what clients say to the master, over gRPC, and the question whether a process is well.
//!
//! | module | what it holds |
//! |---|---|
//! | [`words`] | what is said, as plain values: the master's state machine knows nothing else |
//! | [`clerk`] | how a call reaches the thread of the state machine, and its answer comes back |
//! | [`door`] | the end that is called: HTTP/2 connections on the port of the process |
//! | [`client`] | the end that calls: blocking |
//! | [`limits`] | every limit by name |
//! | [`text`] | text of others, made fit to be stored and printed |
//!
//! The descriptions are in `proto/`; `docs/protocol.md` says what else is spoken on the same port.

pub mod clerk;
pub mod client;
mod codes;
mod convert;
mod deadline;
pub mod door;
mod error;
mod health;
mod jobs;
pub mod limits;
mod line;
mod news;
mod reflection;
pub mod text;
mod unread;
pub mod words;

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

pub use clerk::{Call, Clerk, ClientId, Given, Reply};
pub use client::Client;
pub use door::Door;
pub use error::Error;
pub use tonic::Code;
pub use words::{Answer, ClientWord, JobState, JobStatus, Order, SubmissionId};
