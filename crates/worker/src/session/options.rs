//! How a session is opened, and what names a push of it.

use rpc::message::Durability;

/// What identifies a push that counts once, however often it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushIdentity {
    /// The evaluation, chosen by the driver of the host. Tokens of a matrix increase.
    pub token: u64,
    /// The share of the data. The same share has the same number in every attempt.
    pub part: u32,
    /// Unique among the attempts at the part.
    pub attempt: u64,
}

/// How a session is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// What the servers have of the session when they have died. With a log, a server that is started again goes on with the
    /// session, and with replicas the server that takes over: calls fail meanwhile, and [`super::ParameterSession::push_once`] may
    /// be repeated.
    pub durability: Durability,
    /// The name of the checkpoints ([`super::ParameterSession::checkpoint`]) whose newest one has the matrices and rows with which
    /// the session begins. `None`: it begins without matrices.
    pub checkpoint: Option<String>,
}
