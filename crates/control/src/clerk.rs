//! How a call reaches the thread of the master's state machine, and how its answers come back. Calls are heard on the thread
//! that accepts connections, so nothing here waits.

use std::fmt::Debug;

use rpc::message::Fault;
use rpc::serve::Lanes;
use tokio::sync::{oneshot, watch};

use crate::words::{Answer, ClientWord};

/// One call of a client, unique in the process.
pub type ClientId = u64;
/// An answer, or a refusal.
pub type Given = Result<Answer, Fault>;

/// Takes calls to where they are answered.
pub trait Clerk: Send + Sync + Debug {
    /// Called once, before the first call: how the thread of the state machine is woken.
    fn begin(&self, lanes: Lanes);
    /// Hands a call over without waiting; refuses when too many wait.
    fn hear(&self, call: Call) -> Result<(), Fault>;
}

/// A word with the way back.
#[derive(Debug)]
pub struct Call {
    /// Who says it.
    pub client: ClientId,
    /// What.
    pub word: ClientWord,
    /// Where the answers go.
    pub reply: Reply,
}

/// The way back to a client. Dropping it without an answer tells the client that the master has ended.
#[derive(Debug)]
pub enum Reply {
    /// No answer is wanted.
    Nobody,
    /// One answer.
    Once(oneshot::Sender<Given>),
    /// Whatever is the latest, until the job is over.
    Latest(watch::Sender<Option<Given>>),
}

impl Reply {
    /// Gives an answer; the reply again if more may follow and somebody still listens.
    pub fn give(self, given: Given) -> Option<Self> {
        match self {
            Reply::Nobody => None,
            Reply::Once(sender) => {
                // Who asked may be gone.
                let _ = sender.send(given);
                None
            }
            Reply::Latest(sender) => {
                let is_last = match &given {
                    Ok(Answer::News(status)) => status.state.is_over(),
                    Ok(_) | Err(_) => true,
                };
                let is_heard = sender.send(Some(given)).is_ok();
                (is_heard && !is_last).then_some(Reply::Latest(sender))
            }
        }
    }
}
