//! How a call reaches the thread of the master's state machine, and how its answers come back. Calls are heard on the thread
//! that accepts connections, so nothing here waits.

use std::fmt::Debug;

use rpc::message::Fault;
use rpc::serve::Lanes;
use tokio::sync::{oneshot, watch};

use crate::request::{ClientRequest, ClientResponse};

/// One call of a client, unique in the process.
pub type ClientId = u64;
/// An answer, or a refusal.
pub type CallResult = Result<ClientResponse, Fault>;

/// Takes calls to where they are answered.
pub trait MasterHandle: Send + Sync + Debug {
    /// Called once, before the first call: how the thread of the state machine is woken.
    fn start(&self, lanes: Lanes);
    /// Hands a call over without waiting; refuses when too many wait.
    fn send(&self, call: ClientCall) -> Result<(), Fault>;
}

/// A word with the way back.
#[derive(Debug)]
pub struct ClientCall {
    /// Who says it.
    pub client: ClientId,
    /// What.
    pub request: ClientRequest,
    /// Where the answers go.
    pub reply: ResponseSender,
}

/// The way back to a client. Dropping it without an answer tells the client that the master has ended.
#[derive(Debug)]
pub enum ResponseSender {
    /// No answer is wanted.
    Discard,
    /// One answer.
    Once(oneshot::Sender<CallResult>),
    /// Whatever is the latest, until the job is over.
    Latest(watch::Sender<Option<CallResult>>),
}

impl ResponseSender {
    /// Gives an answer; the reply again if more may follow and somebody still listens.
    pub fn send(self, given: CallResult) -> Option<Self> {
        match self {
            ResponseSender::Discard => None,
            ResponseSender::Once(sender) => {
                // Who asked may be gone.
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
