//! A stream of a connection. To a service each stream is a connection. Most connections have one stream, a multiplexed
//! connection has several.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::connection_writer::ConnectionWriter;
use super::counters::ConnectionSlot;
use crate::message::Message;
use crate::service::ConnectionId;

/// A stream at its lane.
pub(super) struct ServerStream {
    pub(super) id: ConnectionId,
    pub(super) number: u16,
    /// Whether bodies carry a checksum.
    checksum: bool,
    pub(super) link: Rc<ConnectionWriter>,
    is_paused: Cell<bool>,
    /// No more messages are accepted; queued ones are still written.
    is_closing: Cell<bool>,
    /// Messages that arrived while the stream was paused, with the bytes of each frame. The other streams of the
    /// connection are still read.
    aside: RefCell<VecDeque<(Message, usize)>>,
    /// `None` for the first stream, which uses the slot of the connection.
    _place: Option<ConnectionSlot>,
}

impl ServerStream {
    pub(super) fn new(
        id: ConnectionId,
        number: u16,
        checksum: bool,
        link: &Rc<ConnectionWriter>,
        place: Option<ConnectionSlot>,
    ) -> Rc<Self> {
        let (is_paused, is_closing) = (Cell::new(false), Cell::new(false));
        let (link, aside) = (Rc::clone(link), RefCell::default());
        Rc::new(Self { id, number, checksum, link, is_paused, is_closing, aside, _place: place })
    }

    pub(super) fn checksum(&self) -> bool {
        self.checksum
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.get() || self.link.is_closing.get()
    }

    pub(super) fn pause(&self) {
        self.is_paused.set(true);
    }

    pub(super) fn resume(&self) {
        self.is_paused.set(false);
        self.link.has_changes.set(true);
        self.link.read_wake.notify_one();
    }

    /// Stops accepting messages.
    pub(super) fn close(&self) {
        self.is_closing.set(true);
        self.link.has_changes.set(true);
        self.link.read_wake.notify_one();
    }

    /// Defers a message that has arrived.
    pub(super) fn put_aside(&self, message: Message, bytes: usize) {
        self.aside.borrow_mut().push_back((message, bytes));
    }

    /// The first deferred message, unless the stream is still paused.
    pub(super) fn take_aside(&self) -> Option<(Message, usize)> {
        if self.is_paused() { None } else { self.aside.borrow_mut().pop_front() }
    }

    /// Whether there are deferred messages.
    pub(super) fn has_aside(&self) -> bool {
        !self.aside.borrow().is_empty()
    }

    /// Bytes of the deferred messages.
    pub(super) fn aside_bytes(&self) -> usize {
        self.aside.borrow().iter().map(|(_, bytes)| bytes).sum()
    }
}
