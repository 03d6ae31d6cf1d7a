//! Dispatches the frames of a connection to its streams. Each frame goes to the service under the id of its stream; a
//! further `Hello` begins a stream, [`EndBranch`] ends one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::accept::connections_full;
use super::connection_writer::ConnectionWriter;
use super::counters::count;
use super::handshake::check_token;
use super::lane::Lane;
use super::server_stream::ServerStream;
use crate::error::Error;
use crate::frame::Frame;
use crate::header::{HEADER_BYTES, field};
use crate::kind::Kind;
use crate::message::{EndBranch, Fault, FaultKind, Hello, Message};

/// The streams of a connection. There is at least one until the connection ends.
pub(super) struct StreamDispatcher {
    lane: Rc<Lane>,
    link: Rc<ConnectionWriter>,
    streams: RefCell<BTreeMap<u16, Rc<ServerStream>>>,
    /// The highest number so far. Numbers ascend, so a frame for a stream that has ended can be recognized.
    last: Cell<u16>,
}

/// The effect of a frame on the connection.
pub(super) enum ConnectionStatus {
    /// The connection continues.
    Open,
    /// The last stream has ended.
    Ended,
}

impl StreamDispatcher {
    /// Starts with the stream whose `Hello` was accepted.
    pub(super) fn start(
        lane: Rc<Lane>,
        link: Rc<ConnectionWriter>,
        number: u16,
        checksum: bool,
        hello: Message,
    ) -> Self {
        let branch = ServerStream::new(link.log_id, number, checksum, &link, None);
        let branches = RefCell::new(BTreeMap::from([(number, Rc::clone(&branch))]));
        let talk = Self { lane, link, streams: branches, last: Cell::new(number) };
        talk.lane.add(&branch);
        talk.lane.message(branch.id, hello);
        talk
    }

    /// Whether no more frames are read, because the only stream is paused. With several streams reading continues,
    /// because a paused stream may wait for another one.
    pub(super) fn is_paused(&self) -> bool {
        let branches = self.streams.borrow();
        branches.len() == 1 && branches.values().all(|branch| branch.is_paused())
    }

    /// Applies what the service has asked for since the last call: ends the streams that it closed, and passes it the
    /// deferred messages of the streams that it resumed.
    pub(super) fn apply_changes(&self) -> ConnectionStatus {
        while self.link.has_changes.replace(false) {
            let all: Vec<Rc<ServerStream>> = self.streams.borrow().values().map(Rc::clone).collect();
            if all.iter().all(|branch| branch.is_closing()) {
                return ConnectionStatus::Ended;
            }
            for branch in all {
                while !branch.is_closing()
                    && let Some((message, _)) = branch.take_aside()
                {
                    self.lane.message(branch.id, message);
                }
                if branch.is_closing() && self.streams.borrow().len() > 1 {
                    self.send(branch.number, branch.checksum(), Message::EndBranch(EndBranch { request: 0 }));
                    self.close_stream(branch.number);
                }
            }
        }
        ConnectionStatus::Open
    }

    /// Passes a frame on. Errors come with the stream and the number of the request.
    pub(super) fn dispatch(&self, frame: Frame) -> Result<ConnectionStatus, (u16, u64, Error)> {
        let header = frame.header;
        let bytes = HEADER_BYTES + header.body_len();
        let bad = |error| (header.stream, header.request, error);
        let message = Message::from_frame(frame).map_err(bad)?;
        match message {
            Message::Hello(hello) => self.open_stream(header.stream, header.checksum, hello).map_err(bad)?,
            Message::EndBranch(_) => {
                self.close_stream(header.stream);
                if self.streams.borrow().is_empty() {
                    return Ok(ConnectionStatus::Ended);
                }
            }
            message => self.deliver(header.stream, message, bytes).map_err(bad)?,
        }
        Ok(ConnectionStatus::Open)
    }

    fn deliver(&self, number: u16, message: Message, bytes: usize) -> Result<(), Error> {
        let branch = self.streams.borrow().get(&number).map(Rc::clone);
        let Some(branch) = branch else {
            if number <= self.last.get() {
                return Ok(()); // The frame was sent before the stream ended.
            }
            return Err(Error::Unexpected { expected: "Hello", actual: message.kind_name() });
        };
        if branch.is_closing() {
            return Ok(());
        }
        if !branch.is_paused() && !branch.has_aside() {
            self.lane.message(branch.id, message);
            return Ok(());
        }
        let kind = message.kind_name();
        branch.put_aside(message, bytes);
        let bytes: usize = self.streams.borrow().values().map(|branch| branch.aside_bytes()).sum();
        let limit = self.lane.limits().deferred_bytes;
        if bytes > limit {
            let section = "the queue behind deferred requests";
            return Err(Error::TooLong { kind, section, bytes: bytes as u64, limit: limit as u64 });
        }
        Ok(())
    }

    /// Begins another stream, or refuses it with a fault.
    fn open_stream(&self, number: u16, checksum: bool, hello: Hello) -> Result<(), Error> {
        if self.streams.borrow().contains_key(&number) {
            let expected = "one Hello for each stream, as its first message";
            return Err(Error::Unexpected { expected, actual: "Hello" });
        }
        if number <= self.last.get() {
            let expected = format!("above {}: stream numbers are not reused", self.last.get());
            return Err(field(Kind::Hello, "stream", number, expected));
        }
        self.last.set(number);
        let place = match self.check_hello(&hello) {
            Ok(place) => place,
            Err(fault) => {
                count(&self.lane.counters().refused_hello);
                self.send(number, checksum, Message::Fault(fault));
                self.send(number, checksum, Message::EndBranch(EndBranch { request: 0 }));
                return Ok(());
            }
        };
        let branch = ServerStream::new(self.lane.next_id(), number, checksum, &self.link, Some(place));
        self.streams.borrow_mut().insert(number, Rc::clone(&branch));
        self.link.stream_count.set(self.streams.borrow().len());
        self.lane.add(&branch);
        self.lane.message(branch.id, Message::Hello(hello));
        Ok(())
    }

    fn check_hello(&self, hello: &Hello) -> Result<super::counters::ConnectionSlot, Fault> {
        let config = &self.lane.shared().config;
        check_token(config, hello)?;
        let number = self.lane.number();
        if usize::from(hello.lane) != number {
            let text =
                format!("the hello names lane {}, but its connection belongs to lane {number}", hello.lane);
            let (request, kind) = (hello.request, FaultKind::NotFound);
            return Err(Fault { request, kind, text, retry_after_ms: 0 });
        }
        let limit = config.limits.connections;
        let place = self.lane.shared().counters.reserve_slot(limit);
        place.ok_or_else(|| {
            count(&self.lane.counters().refused_full);
            connections_full(hello.request, limit)
        })
    }

    /// Removes a stream and informs the service.
    fn close_stream(&self, number: u16) {
        let Some(branch) = self.streams.borrow_mut().remove(&number) else { return };
        self.link.stream_count.set(self.streams.borrow().len());
        self.lane.remove(branch.id);
    }

    pub(super) fn close_all(&self) {
        let numbers: Vec<u16> = self.streams.borrow().keys().copied().collect();
        for number in numbers {
            self.close_stream(number);
        }
    }

    /// Sends a message on a stream, whether it is open or not.
    pub(super) fn send(&self, number: u16, checksum: bool, message: Message) {
        self.lane.send(&self.link, number, checksum, message);
    }

    /// Whether bodies carry a checksum, as in the `Hello` of the stream or, if it has ended, of the first open one.
    pub(super) fn checksum_of(&self, number: u16) -> bool {
        let branches = self.streams.borrow();
        let branch = branches.get(&number).or_else(|| branches.values().next());
        branch.is_none_or(|branch| branch.checksum())
    }
}
