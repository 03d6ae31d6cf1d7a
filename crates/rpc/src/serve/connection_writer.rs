//! The writing side of a connection: a bounded queue of frames, written as far as the socket accepts them. The reading
//! side learns here what the service has asked of the connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::socket::WriteHalf;
use crate::codec::{Body, put_head};
use crate::error::Error;
use crate::limits::Limits;
use crate::message::Message;
use crate::service::ConnectionId;

/// Bodies up to this length are copied, so that small frames leave in one write.
const COPIED_BYTES: usize = 4 << 10;
/// Copied frames are gathered up to this length.
const GATHERED_BYTES: usize = 64 << 10;
/// Most slices of one write.
const SLICES: usize = 16;

/// The writing side of a connection.
pub(super) struct ConnectionWriter {
    pub(super) id: ConnectionId,
    /// Whether bodies carry a checksum.
    checksum: bool,
    write: WriteHalf,
    outbox: RefCell<Outbox>,
    /// Signals the writing side that there is something to write.
    write_wake: Notify,
    /// Signals the reading side that something has changed.
    pub(super) read_wake: Notify,
    /// The service accepts no messages now.
    is_paused: Cell<bool>,
    /// No more messages are accepted; queued ones are still written.
    pub(super) is_closing: Cell<bool>,
    /// Whether it is in the list of writers to flush.
    pub(super) is_dirty: Cell<bool>,
}

#[derive(Default)]
struct Outbox {
    items: VecDeque<OutboxItem>,
    /// Bytes of all items that are not written yet.
    bytes: usize,
    /// Bytes of the first item that are already written.
    written: usize,
}

/// Gathered bytes, and optionally a message whose body follows them.
struct OutboxItem {
    head: Vec<u8>,
    body: Option<Message>,
}

impl OutboxItem {
    fn slices(&self) -> [&[u8]; 4] {
        let [keys, values, padding] = self.body.as_ref().map_or([&[][..]; 3], |body| Body::of(body).slices());
        [&self.head, keys, values, padding]
    }

    fn len(&self) -> usize {
        self.slices().iter().map(|slice| slice.len()).sum()
    }
}

impl Outbox {
    fn push(&mut self, message: Message, checksum: bool, limits: &Limits) -> Result<(), Error> {
        let gathers = |item: &&mut OutboxItem| item.body.is_none() && item.head.len() < GATHERED_BYTES;
        let body_len = Body::of(&message).len();
        let copied = body_len <= COPIED_BYTES;
        if let Some(last) = self.items.back_mut().filter(gathers) {
            let before = last.head.len();
            put_head(&message, checksum, &limits.frame, &mut last.head)?;
            self.bytes += last.head.len() - before + body_len;
            if copied {
                append_body(&message, &mut last.head);
            } else {
                last.body = Some(message);
            }
            return Ok(());
        }
        let mut head = Vec::new();
        put_head(&message, checksum, &limits.frame, &mut head)?;
        if copied {
            append_body(&message, &mut head);
        }
        let item = OutboxItem { head, body: (!copied).then_some(message) };
        self.bytes += item.len();
        self.items.push_back(item);
        Ok(())
    }

    /// Fills `slices` with the next bytes to write; returns how many slices it has set.
    fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let mut count = 0;
        let mut skip = self.written;
        for slice in self.items.iter().flat_map(OutboxItem::slices) {
            let skipped = skip.min(slice.len());
            skip -= skipped;
            if skipped == slice.len() {
                continue;
            }
            slices[count] = IoSlice::new(&slice[skipped..]);
            count += 1;
            if count == SLICES {
                break;
            }
        }
        count
    }

    fn advance(&mut self, count: usize) {
        self.bytes -= count;
        self.written += count;
        while let Some(len) = self.items.front().map(OutboxItem::len)
            && self.written >= len
        {
            self.written -= len;
            self.items.pop_front();
        }
    }
}

fn append_body(message: &Message, bytes: &mut Vec<u8>) {
    for slice in Body::of(message).slices() {
        bytes.extend_from_slice(slice);
    }
}

impl ConnectionWriter {
    pub(super) fn new(id: ConnectionId, checksum: bool, write: WriteHalf) -> Self {
        Self {
            id,
            checksum,
            write,
            outbox: RefCell::default(),
            write_wake: Notify::new(),
            read_wake: Notify::new(),
            is_paused: Cell::new(false),
            is_closing: Cell::new(false),
            is_dirty: Cell::new(false),
        }
    }

    /// Queues a message; returns how many bytes wait now.
    pub(super) fn push(&self, message: Message, limits: &Limits) -> Result<usize, Error> {
        let mut outbox = self.outbox.borrow_mut();
        outbox.push(message, self.checksum, limits)?;
        Ok(outbox.bytes)
    }

    /// Whether no requests are handled now: the service has paused the connection, or its answers are not read.
    pub(super) fn must_wait(&self, limits: &Limits) -> bool {
        self.is_paused.get() || self.waiting_bytes() > limits.outbound_pause_bytes
    }

    pub(super) fn pause(&self) {
        self.is_paused.set(true);
    }

    pub(super) fn resume(&self) {
        self.is_paused.set(false);
        self.read_wake.notify_one();
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.outbox.borrow().bytes
    }

    /// Drops the queued bytes, because the other end will not read them.
    pub(super) fn clear(&self) {
        *self.outbox.borrow_mut() = Outbox::default();
    }

    /// Stops accepting messages, and wakes both sides.
    pub(super) fn close(&self) {
        self.is_closing.set(true);
        self.read_wake.notify_one();
        self.write_wake.notify_one();
    }

    /// Writes what the socket accepts at once and returns the number of bytes. The rest is left to [`Self::write_all`],
    /// which is woken.
    pub(super) fn flush(&self) -> io::Result<usize> {
        let mut outbox = self.outbox.borrow_mut();
        let mut total = 0;
        while outbox.bytes > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = outbox.slices(&mut slices);
            match self.write.try_write_vectored(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    outbox.advance(written);
                    total += written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.write_wake.notify_one();
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    /// Writes all queued bytes. Calls `wrote` with the size of each write. Returns an error when the socket has
    /// accepted nothing for `stall`.
    pub(super) async fn write_all(&self, stall: Duration, wrote: impl Fn(usize)) -> io::Result<()> {
        while self.waiting_bytes() > 0 {
            let Ok(writable) = timeout(stall, self.write.writable()).await else {
                return Err(io::ErrorKind::TimedOut.into());
            };
            writable?;
            wrote(self.flush()?);
        }
        Ok(())
    }

    /// Waits until there may be something to write.
    pub(super) async fn wait_for_output(&self) {
        self.write_wake.notified().await;
    }
}
