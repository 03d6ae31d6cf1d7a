//! A connection that several threads of a process share. Each thread has a stream of its own.
//!
//! Frames that threads send at the same time go out in one write: a thread that finds another one writing leaves its
//! frames to it. The end of a step that cannot matter before other tasks have ended theirs waits for them
//! ([`super::Sender::send_step`]). One of the waiting threads, the leader, reads and puts frames of other streams into
//! their inboxes; when it has its own frame, another thread leads. A stream that nobody reads does not block the
//! others: its inbox is bounded by what the stream has requested. A thread that cannot write reads meanwhile, because
//! the other end may not read before its answers are read.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::blocking_socket::BlockingSocket;
use super::inbox::Inbox;
use super::{Address, BUFFER_BYTES, COPIED_BYTES, ConnectOptions, Receiver, Sender, expect_welcome};
use crate::codec::put_stream_head;
use crate::error::Error;
use crate::frame::Frame;
use crate::message::{EndBranch, Hello, Message, Welcome};
use crate::reader::FrameReader;

/// Most bytes that are left to the thread that writes; with more, their sender waits.
const LEFT_BYTES: usize = 64 << 10;
/// Longest time that the end of a step waits for other streams once its task waits for an answer.
pub(super) const STEP_LIMIT: Duration = Duration::from_millis(20);
/// Longest read or write before the deadline is checked, and before a blocked writer reads.
pub(super) const TURN: Duration = Duration::from_millis(20);

/// A connection with several streams. It ends with the last of them.
#[derive(Clone, Debug)]
pub struct MultiplexedConnection(Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stream: BlockingSocket,
    options: ConnectOptions,
    outgoing: Mutex<Outgoing>,
    /// Signals that a write has ended.
    written: Condvar,
    /// Whether ends of steps wait for other streams.
    holds: AtomicBool,
    pub(super) streams: Mutex<StreamTable>,
    /// Locked from the choice of a number until its `Hello` is sent.
    opening: Mutex<()>,
    /// Locked by the leader.
    pub(super) reader: Mutex<FrameReader>,
    /// Inboxes whose tasks are marked. Each task that is woken wakes the next.
    pub(super) called: Mutex<VecDeque<Arc<Inbox>>>,
}

/// Invariant: while no thread writes, `left` is empty or contains ends of steps that wait for other streams.
#[derive(Debug, Default)]
struct Outgoing {
    /// The bytes of the next write.
    left: Vec<u8>,
    /// Memory for the next `left`.
    spare: Vec<u8>,
    is_writing: bool,
    /// Number of threads that wait until no thread writes.
    waiting: usize,
    is_broken: bool,
    /// Streams whose last message was the end of a step, with the number of the step.
    steps: BTreeMap<u16, u64>,
}

#[derive(Debug, Default)]
pub(super) struct StreamTable {
    pub(super) open: BTreeMap<u16, Arc<Inbox>>,
    /// The number of the next stream. Numbers ascend up to the largest u16.
    next: u32,
    is_over: bool,
}

/// One stream. Both halves share it; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct ClientStream {
    connection: MultiplexedConnection,
    pub(super) number: u16,
    inbox: Arc<Inbox>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MultiplexedConnection {
    /// Connects and opens the first stream. All of it takes at most about `timeout`. A refusal is [`Error::Refused`].
    pub fn connect(
        address: &Address,
        timeout: Duration,
        hello: &Hello,
        options: ConnectOptions,
    ) -> Result<(Self, (Sender, Receiver, Welcome)), Error> {
        let deadline = Instant::now() + timeout;
        let stream = BlockingSocket::connect(address, timeout)?;
        stream
            .set_write_limit(Some(TURN))
            .and_then(|()| stream.set_read_limit(Some(TURN)))
            .map_err(|error| Error::io("set the timeouts of a multiplexed connection", error))?;
        let connection = Self(Arc::new(Shared {
            stream,
            options,
            outgoing: Mutex::default(),
            written: Condvar::new(),
            holds: AtomicBool::new(false),
            streams: Mutex::default(),
            opening: Mutex::default(),
            reader: Mutex::new(FrameReader::new(options.limits, BUFFER_BYTES)),
            called: Mutex::default(),
        }));
        let opened = connection.open(deadline.saturating_duration_since(Instant::now()), hello)?;
        Ok((connection, opened))
    }

    /// Opens another stream. [`Error::Closed`] when the connection is over or has no numbers left.
    pub fn open(&self, timeout: Duration, hello: &Hello) -> Result<(Sender, Receiver, Welcome), Error> {
        // The lock ensures that each `Hello` is sent in the order of the numbers.
        let opening = lock(&self.0.opening);
        let (mut sender, mut receiver) = self.new_stream()?;
        sender.send(&Message::Hello(hello.clone()))?;
        drop(opening);
        receiver.set_timeout(Some(timeout))?;
        let welcome = expect_welcome(receiver.receive()?)?;
        receiver.set_timeout(None)?;
        Ok((sender, receiver, welcome))
    }

    /// Whether no stream can be opened any more.
    pub fn is_over(&self) -> bool {
        let branches = lock(&self.0.streams);
        branches.is_over || branches.next > u32::from(u16::MAX)
    }

    fn new_stream(&self) -> Result<(Sender, Receiver), Error> {
        let mut branches = lock(&self.0.streams);
        let number = u16::try_from(branches.next).map_err(|_| Error::Closed)?;
        if branches.is_over {
            return Err(Error::Closed);
        }
        branches.next += 1;
        let inbox = Arc::<Inbox>::default();
        branches.open.insert(number, Arc::clone(&inbox));
        drop(branches);
        let branch = Arc::new(ClientStream { connection: self.clone(), number, inbox });
        Ok((Sender::of_stream(&branch, self.0.options), Receiver::of_stream(branch)))
    }
}

impl Shared {
    /// Writes all slices, in order.
    fn write_all(&self, mut slices: &mut [IoSlice<'_>]) -> Result<(), Error> {
        let mut blocked = None;
        // Skips empty slices at the front.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.stream.write_vectored(slices) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => {
                    blocked = None;
                    IoSlice::advance_slices(&mut slices, count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if Error::is_wait(error.kind()) => {
                    let since = blocked.get_or_insert_with(Instant::now).elapsed();
                    if self.options.send_limit.is_some_and(|limit| since >= limit) {
                        return Err(Error::TimedOut { during: "sending: the other end does not read" });
                    }
                    self.read_while_blocked()?;
                }
                Err(error) => return Err(Error::io("send", error)),
            }
        }
        Ok(())
    }

    /// Ends the connection: closes all inboxes and wakes all threads that wait.
    pub(super) fn over(&self) {
        self.stream.shutdown();
        let mut branches = lock(&self.streams);
        branches.is_over = true;
        branches.open.values().for_each(|inbox| inbox.close());
        drop(branches);
        lock(&self.outgoing).is_broken = true;
        self.written.notify_all();
    }

    /// Writes frames of a stream, or leaves them to another thread that writes. `step`: the frames end this step of the
    /// stream.
    fn write(&self, branch: u16, slices: &mut [IoSlice<'_>], step: Option<u64>) -> Result<(), Error> {
        let len: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut outgoing = lock(&self.outgoing);
        match step {
            Some(step) => outgoing.steps.insert(branch, step),
            None => outgoing.steps.remove(&branch),
        };
        let is_small = len <= COPIED_BYTES;
        while outgoing.is_writing && !outgoing.is_broken && (!is_small || outgoing.left.len() > LEFT_BYTES) {
            outgoing.waiting += 1;
            outgoing = self.written.wait(outgoing).unwrap_or_else(PoisonError::into_inner);
            outgoing.waiting -= 1;
        }
        if outgoing.is_broken {
            return Err(Error::Closed);
        }
        if !is_small {
            return self.write_left(outgoing, slices);
        }
        for slice in slices.iter() {
            outgoing.left.extend_from_slice(slice);
        }
        if outgoing.is_writing {
            return Ok(());
        }
        let waits = step.is_some_and(|step| outgoing.steps.values().any(|other| *other < step));
        if waits && outgoing.left.len() <= LEFT_BYTES {
            self.holds.store(true, Ordering::Relaxed);
            return Ok(());
        }
        self.write_left(outgoing, &mut [])
    }

    /// Writes `left`, then `behind`, then what other threads leave meanwhile. No other thread writes at the same time.
    fn write_left<'a>(
        &'a self,
        mut outgoing: MutexGuard<'a, Outgoing>,
        mut behind: &mut [IoSlice<'_>],
    ) -> Result<(), Error> {
        outgoing.is_writing = true;
        let mut result = Ok(());
        while result.is_ok() && !(outgoing.left.is_empty() && behind.is_empty()) {
            let spare = std::mem::take(&mut outgoing.spare);
            let mut left = std::mem::replace(&mut outgoing.left, spare);
            self.holds.store(false, Ordering::Relaxed);
            drop(outgoing);
            result = self
                .write_all(&mut [IoSlice::new(&left)])
                .and_then(|()| self.write_all(std::mem::take(&mut behind)));
            left.clear();
            outgoing = lock(&self.outgoing);
            outgoing.spare = left;
        }
        outgoing.is_writing = false;
        if outgoing.waiting > 0 {
            self.written.notify_all();
        }
        drop(outgoing);
        if result.is_err() {
            // Half a frame may be written: no frame can follow it.
            self.over();
        }
        result
    }

    /// Writes ends of steps that wait for other streams.
    fn let_go(&self) {
        let outgoing = lock(&self.outgoing);
        if !outgoing.is_writing && !outgoing.left.is_empty() {
            // After an error the connection is over, which waiting threads see.
            let _ = self.write_left(outgoing, &mut []);
        }
    }
}

impl ClientStream {
    pub(super) fn write(&self, slices: &mut [IoSlice<'_>], step: Option<u64>) -> Result<(), Error> {
        if self.inbox.is_closed() {
            return Err(Error::Closed);
        }
        self.connection.0.write(self.number, slices, step)
    }

    /// The next frame; waits for at most `limit`. `None` when no frame arrived.
    pub(super) fn take(&self, limit: Option<Duration>) -> Result<Option<Frame>, Error> {
        self.connection.0.take(&self.inbox, limit)
    }

    /// Whether ends of steps wait; they may belong to other streams.
    pub(super) fn holds(&self) -> bool {
        self.connection.0.holds.load(Ordering::Relaxed)
    }

    pub(super) fn let_go(&self) {
        self.connection.0.let_go();
    }

    /// Ends the whole connection with all its streams.
    pub(super) fn close_connection(&self) {
        self.connection.0.over();
    }

    /// Ends the stream: no more frames arrive, and the other end is informed.
    pub(super) fn end(&self) {
        self.inbox.close();
        let shared = &self.connection.0;
        let mut branches = lock(&shared.streams);
        if branches.open.remove(&self.number).is_none() || branches.is_over {
            return;
        }
        branches.is_over = branches.open.is_empty();
        let is_last = branches.is_over;
        drop(branches);
        if is_last {
            shared.let_go();
            return shared.over();
        }
        let (mut bytes, message) = (Vec::new(), Message::EndBranch(EndBranch { request: 0 }));
        let options = &shared.options;
        let put = put_stream_head(self.number, &message, options.checksum, &options.limits, &mut bytes);
        if put.is_ok() {
            // If the write fails, the connection is over, which ends the stream too.
            let _ = shared.write(self.number, &mut [IoSlice::new(&bytes)], None);
        }
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.end();
    }
}
