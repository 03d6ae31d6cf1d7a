//! How a call reaches the thread of the master's state machine, and how its answers return. Calls arrive on the thread
//! of the HTTP server, so nothing here may block.

use std::fmt::Debug;

use rpc::message::Fault;
use tokio::sync::{oneshot, watch};

use crate::request::{ClientRequest, ClientResponse};

/// A call of a client, unique in the process.
pub type ClientId = u64;
pub type CallResult = Result<ClientResponse, Fault>;

/// Passes calls to the master.
pub trait MasterHandle: Send + Sync + Debug {
    /// Enqueues a call without waiting; refuses it when the queue is full.
    fn send(&self, call: ClientCall) -> Result<(), Fault>;
}

/// A request with its response channel.
#[derive(Debug)]
pub struct ClientCall {
    pub client: ClientId,
    pub request: ClientRequest,
    pub reply: ResponseSender,
}

/// The response channel of a call. Dropping it without an answer reports to the client that the master has ended.
#[derive(Debug)]
pub enum ResponseSender {
    /// No answer is wanted.
    Discard,
    /// One answer.
    Once(oneshot::Sender<CallResult>),
    /// The latest answer replaces earlier ones, until the job is over.
    Latest(watch::Sender<Option<CallResult>>),
}

impl ResponseSender {
    /// Sends an answer. Returns the channel if more answers may follow and the client still waits for them.
    pub fn send(self, given: CallResult) -> Option<Self> {
        match self {
            ResponseSender::Discard => None,
            ResponseSender::Once(sender) => {
                // The client may be gone.
                let _ = sender.send(given);
                None
            }
            ResponseSender::Latest(sender) => {
                let is_last = match &given {
                    Ok(ClientResponse::Job(status)) => status.state.is_over(),
                    Ok(_) | Err(_) => true,
                };
                let is_heard = sender.send(Some(given)).is_ok();
                (is_heard && !is_last).then_some(ResponseSender::Latest(sender))
            }
        }
    }
}
