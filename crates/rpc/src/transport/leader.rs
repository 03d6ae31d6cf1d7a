//! How a multiplexed connection is read. One of the waiting tasks is the leader: it reads, and puts frames of other
//! streams into their inboxes. When the leader has its own frame, another task leads.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use super::inbox::Inbox;
use super::multiplexed_connection::{Shared, TURN, lock};
use crate::error::Error;
use crate::frame::Frame;
use crate::kind::Kind;
use crate::reader::FrameReader;

/// Most reads of a blocked writer before it tries to write again.
const READ_LIMIT: usize = 64;

/// `None` when another thread has locked it.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Shared {
    /// The next frame of an inbox; waits for at most `limit`. `None` when no frame arrived.
    pub(super) fn take(&self, inbox: &Inbox, limit: Option<Duration>) -> Result<Option<Frame>, Error> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            if let Some(frame) = inbox.take()? {
                return Ok(Some(frame));
            }
            // This comes before the attempt to lead, so that a leader that ends in between can wake this task.
            inbox.begin_wait();
            if let Some(mut reader) = try_lock(&self.reader) {
                inbox.end_wait();
                let led = self.read_as_leader(&mut reader, inbox, deadline);
                drop(reader);
                self.pass_leadership();
                return led;
            }
            let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !is_over {
                inbox.wait(deadline);
            }
            inbox.end_wait();
            self.wake_next();
            if is_over {
                // This task may have been marked to lead.
                self.pass_leadership();
                return inbox.take();
            }
        }
    }

    /// Reads and delivers until a frame has arrived for `inbox`, or the deadline has passed.
    fn read_as_leader(
        &self,
        reader: &mut FrameReader,
        inbox: &Inbox,
        deadline: Option<Instant>,
    ) -> Result<Option<Frame>, Error> {
        let mut is_over = false;
        loop {
            let delivered = self.deliver_all(reader);
            self.wake_next();
            if let Some(frame) = inbox.take()? {
                return Ok(Some(frame));
            }
            if is_over {
                return Ok(None);
            }
            delivered?;
            let now = deadline.map(|_| Instant::now());
            is_over = deadline <= now && now.is_some();
            // With no time left it reads only what is already there.
            let read = if is_over {
                self.stream.read_now(reader.space(), Some(TURN))
            } else {
                self.stream.read(reader.space())
            };
            self.on_read(reader, read)?;
        }
    }

    /// Handles the result of a read. An error ends the connection.
    fn on_read(&self, reader: &mut FrameReader, read: io::Result<usize>) -> Result<usize, Error> {
        let error = match read {
            Ok(count @ 1..) => {
                reader.advance(count);
                return Ok(count);
            }
            Err(error) if Error::is_wait(error.kind()) || error.kind() == io::ErrorKind::Interrupted => {
                return Ok(0);
            }
            Ok(0) => Error::Closed,
            Err(error) => Error::io("receive", error),
        };
        self.over();
        Err(error)
    }

    fn deliver_all(&self, reader: &mut FrameReader) -> Result<(), Error> {
        loop {
            match reader.frame() {
                Ok(Some(frame)) => self.deliver(frame),
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.over();
                    return Err(error);
                }
            }
        }
    }

    /// Lets another waiting task lead, if there is no leader.
    fn pass_leadership(&self) {
        if try_lock(&self.reader).is_none() {
            return;
        }
        let branches = lock(&self.streams);
        // A task that was marked for a frame of its own is left out.
        let _ = branches.open.values().any(|inbox| inbox.wake_waiting());
    }

    /// Reads for all streams while a write is blocked, because the other end may not read before its answers are read.
    pub(super) fn read_while_blocked(&self) -> Result<(), Error> {
        let Some(mut reader) = try_lock(&self.reader) else { return Ok(()) };
        for _ in 0..READ_LIMIT {
            self.deliver_all(&mut reader)?;
            self.wake_next();
            let read = self.stream.read(reader.space());
            if self.on_read(&mut reader, read)? == 0 {
                break;
            }
        }
        drop(reader);
        self.pass_leadership();
        Ok(())
    }

    /// Delivers a frame. A frame for a stream that has ended is dropped: it was sent before the end.
    fn deliver(&self, frame: Frame) {
        let branches = lock(&self.streams);
        let Some(inbox) = branches.open.get(&frame.header.stream).map(Arc::clone) else { return };
        drop(branches);
        if frame.header.kind == Kind::EndBranch {
            inbox.close();
        } else if inbox.put(frame) {
            lock(&self.called).push_back(inbox);
        }
    }

    /// Wakes the next marked task, which does the same. A task that is already awake has done it.
    fn wake_next(&self) {
        loop {
            let next = lock(&self.called).pop_front();
            if next.is_none_or(|inbox| inbox.wake()) {
                return;
            }
        }
    }
}
