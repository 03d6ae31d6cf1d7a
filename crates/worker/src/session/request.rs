//! Requests of a session to its master and to its lanes. None is repeated: what a call has changed before its connection
//! ended is known to the caller alone.

use std::time::{Duration, Instant};

use rpc::Message;
use rpc::layout::LaneAddress;
use rpc::message::{RequestId, Role, SessionMap};

use super::SessionError;
use crate::lane_client::{LaneClient, RetryPolicy};

/// Maximum wait for an answer: a function may compute for minutes.
const ANSWER_LIMIT: Duration = Duration::from_mins(5);

/// Connects to the master.
pub(super) fn connect_to_master(address: &str, token: &[u8]) -> Result<LaneClient, SessionError> {
    let address = LaneAddress::new(vec![address.to_owned()], 0);
    let mut master = LaneClient::new(address, Role::Tool, token);
    let connected = master.connect(&RetryPolicy::default());
    connected.map_err(|error| SessionError::of(&master, error)).map(|()| master)
}

/// Sends a request. Connects if there is no connection any more, or none yet.
pub(super) fn send(client: &mut LaneClient, message: Message) -> Result<(), SessionError> {
    let policy = RetryPolicy::default();
    let connected = if client.is_open() { Ok(()) } else { client.connect(&policy) };
    let sent = connected.and_then(|()| client.request(message, &policy));
    sent.map_err(|error| SessionError::of(client, error))
}

/// Receives the answer to a request; a fault is an error.
pub(super) fn receive(client: &mut LaneClient, request: RequestId) -> Result<Message, SessionError> {
    let deadline = Instant::now() + ANSWER_LIMIT;
    match client.receive_answer(request, deadline, &RetryPolicy::default()) {
        Ok(Message::Fault(fault)) => Err(SessionError::of(client, rpc::Error::Refused(fault))),
        answer => answer.map_err(|error| SessionError::of(client, error)),
    }
}

/// Sends a request and receives its answer, from which `take` takes what the caller needs. It returns `None` if the answer
/// does not fit.
pub(super) fn ask<T>(
    client: &mut LaneClient,
    message: Message,
    request: RequestId,
    take: impl Fn(Message) -> Option<T>,
) -> Result<T, SessionError> {
    send(client, message)?;
    take(receive(client, request)?).ok_or_else(|| SessionError::unexpected(client))
}

pub(super) fn map_of(answer: Message) -> Option<SessionMap> {
    if let Message::SessionMap(map) = answer { Some(map) } else { None }
}

/// Sends a request that has no answer of its own.
pub(super) fn ask_done(
    client: &mut LaneClient,
    message: Message,
    request: RequestId,
) -> Result<(), SessionError> {
    ask(client, message, request, |answer| matches!(answer, Message::Done(_)).then_some(()))
}
