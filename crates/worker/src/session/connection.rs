//! A blocking connection of a session, to the master or to a lane.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc::message::{Hello, RequestId, Role, SessionLane, SessionMap};
use rpc::{Message, Receiver, Sender};

use super::SessionError;
use crate::lane_connection::connect_lane;
use crate::layout::LaneAddress;

/// Maximum wait for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Maximum wait for an answer: a function may compute for minutes.
const ANSWER_LIMIT: Duration = Duration::from_mins(5);

/// Time without an answer after which the standby of a lane is asked whether it has taken over: the server may stand still.
const STANDBY_PAUSE: Duration = Duration::from_secs(1);

/// A connection to the master or to a lane.
pub(super) struct SessionConnection {
    pub(super) place: String,
    /// Another lane that may take over, with the hello for it.
    standby: Option<(Vec<String>, Hello)>,
    sender: Sender,
    receiver: Receiver,
}

impl SessionConnection {
    /// Connects to the master.
    pub(super) fn to_master(address: &str, token: &[u8]) -> Result<Self, SessionError> {
        let place = SessionLane { addresses: vec![address.to_owned()], lane: 0, standby: None };
        Self::open(&place, token, Role::Tool)
    }

    /// Connects to a lane of a session, or to its standby, if that has taken over.
    pub(super) fn open(lane: &SessionLane, token: &[u8], role: Role) -> Result<Self, SessionError> {
        let SessionLane { addresses, lane, standby } = lane.clone();
        let place = addresses.first().cloned().unwrap_or_default();
        let hello = Hello { request: 1, token: token.to_vec(), role, lane };
        let of_standby = standby.clone().map(|standby| {
            let hello = Hello { lane: standby.lane, ..hello.clone() };
            (standby.addresses, hello)
        });
        let lane = LaneAddress { addresses, lane, server: String::new(), standby };
        let opened =
            connect_lane(&lane, CONNECT_LIMIT, &hello, |_| false).and_then(|(sender, receiver, _)| {
                let pause = if of_standby.is_some() { STANDBY_PAUSE } else { ANSWER_LIMIT };
                receiver.set_timeout(Some(pause))?;
                Ok((sender, receiver))
            });
        match opened {
            Ok((sender, receiver)) => Ok(Self { place, standby: of_standby, sender, receiver }),
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
        let mut answer = self.receive_any()?;
        while request_of(&answer).is_some_and(|earlier| (1..request).contains(&earlier)) {
            answer = self.receive_any()?;
        }
        match answer {
            Message::Fault(fault) => Err(SessionError::Refused { place: self.place.clone(), fault }),
            answer if request_of(&answer) == Some(request) => Ok(answer),
            _ => Err(self.unexpected()),
        }
    }

    fn receive_any(&mut self) -> Result<Message, SessionError> {
        let start = Instant::now();
        loop {
            match self.receiver.receive() {
                Err(error @ rpc::Error::TimedOut { .. })
                    if start.elapsed() >= ANSWER_LIMIT || self.standby_has_taken_over() =>
                {
                    return Err(self.broken(error));
                }
                Err(rpc::Error::TimedOut { .. }) => {}
                received => return received.map_err(|source| self.broken(source)),
            }
        }
    }

    /// The standby refuses everybody until it has taken the partitions over.
    fn standby_has_taken_over(&self) -> bool {
        let standby = self.standby.as_ref();
        standby.is_some_and(|(addresses, hello)| rpc::open_first(addresses, STANDBY_PAUSE, hello).is_ok())
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
