//! A blocking connection of a session, to the master or to a lane.

use std::sync::Arc;
use std::time::Duration;

use rpc::message::{Hello, RequestId, Role, SessionMap};
use rpc::{Message, Receiver, Sender};

use super::SessionError;
use crate::lane_connection::connect_lane;
use crate::layout::LaneAddress;

/// Maximum wait for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Maximum wait for an answer: a function may compute for minutes.
const ANSWER_LIMIT: Duration = Duration::from_mins(5);

/// A connection to the master or to a lane.
pub(super) struct Line {
    pub(super) place: String,
    sender: Sender,
    receiver: Receiver,
}

impl Line {
    pub(super) fn open(
        addresses: &[String],
        lane: u16,
        token: &[u8],
        role: Role,
    ) -> Result<Self, SessionError> {
        let place = addresses.first().cloned().unwrap_or_default();
        let hello = Hello { request: 1, token: token.to_vec(), role, lane };
        let lane = LaneAddress { addresses: addresses.to_vec(), lane, server: String::new(), standby: None };
        let opened =
            connect_lane(&lane, CONNECT_LIMIT, &hello, |_| false).and_then(|(sender, receiver, _)| {
                receiver.set_timeout(Some(ANSWER_LIMIT))?;
                Ok((sender, receiver))
            });
        match opened {
            Ok((sender, receiver)) => Ok(Self { place, sender, receiver }),
            Err(rpc::Error::Refused(fault)) => Err(SessionError::Refused { place, fault }),
            Err(source) => Err(SessionError::Connection { place, source }),
        }
    }

    pub(super) fn send(&mut self, message: Message) -> Result<(), SessionError> {
        // The other end may have to send answers before it reads on.
        let sent = self.sender.send_all_reading(&[Arc::new(message)], &mut self.receiver);
        sent.map_err(|source| self.broken(source))
    }

    /// Receives the answer to a request. Those to earlier requests, which a call has given up because another lane could not
    /// be reached, are dropped.
    pub(super) fn receive(&mut self, request: RequestId) -> Result<Message, SessionError> {
        let mut answer = self.receiver.receive().map_err(|source| self.broken(source))?;
        while request_of(&answer).is_some_and(|earlier| (1..request).contains(&earlier)) {
            answer = self.receiver.receive().map_err(|source| self.broken(source))?;
        }
        match answer {
            Message::Fault(fault) => Err(SessionError::Refused { place: self.place.clone(), fault }),
            answer if request_of(&answer) == Some(request) => Ok(answer),
            _ => Err(self.unexpected()),
        }
    }

    pub(super) fn ask(&mut self, message: Message, request: RequestId) -> Result<Message, SessionError> {
        self.send(message)?;
        self.receive(request)
    }

    pub(super) fn ask_map(
        &mut self,
        message: Message,
        request: RequestId,
    ) -> Result<SessionMap, SessionError> {
        match self.ask(message, request)? {
            Message::SessionMap(map) => Ok(map),
            _ => Err(self.unexpected()),
        }
    }

    pub(super) fn ask_done(&mut self, message: Message, request: RequestId) -> Result<(), SessionError> {
        match self.ask(message, request)? {
            Message::Done(_) => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    fn broken(&self, source: rpc::Error) -> SessionError {
        SessionError::Connection { place: self.place.clone(), source }
    }

    pub(super) fn unexpected(&self) -> SessionError {
        SessionError::UnexpectedAnswer { place: self.place.clone() }
    }
}

/// The request that a message of a master or a lane answers.
fn request_of(answer: &Message) -> Option<RequestId> {
    match answer {
        Message::SessionMap(map) => Some(map.request),
        Message::Done(done) => Some(done.request),
        Message::Pulled(pulled) => Some(pulled.request),
        Message::PulledFunction(pulled) => Some(pulled.request),
        Message::Committed(committed) => Some(committed.request),
        Message::Fault(fault) => Some(fault.request),
        _ => None,
    }
}
