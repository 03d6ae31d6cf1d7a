//! The end that connects. It is blocking; one thread sends and another one may receive.

mod address;
mod blocking_socket;
mod inbox;
mod leader;
mod memory;
mod multiplexed_connection;

use std::borrow::Borrow;
use std::io::{self, IoSlice};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

pub use address::Address;
use blocking_socket::BlockingSocket;
pub use multiplexed_connection::MultiplexedConnection;
use multiplexed_connection::{ClientStream, STEP_LIMIT};

use crate::codec::{Body, put_stream_head};
use crate::error::Error;
use crate::frame::Frame;
use crate::limits::FrameLimits;
use crate::message::{Hello, Message, Welcome};
use crate::reader::FrameReader;

/// Bytes of a receiver's buffer; one read brings many small frames.
const BUFFER_BYTES: usize = 64 << 10;
/// Bodies up to this length are copied after their head, so that one plain write sends all.
const COPIED_BYTES: usize = 16 << 10;

/// How one connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Whether bodies carry a CRC-32C, in both directions: the other end does the same as the `Hello`.
    pub checksum: bool,
    /// Longest sections that are sent and accepted.
    pub limits: FrameLimits,
    /// Longest wait of one write until the other end reads; `None`: no limit. Default 1 minute. After it the connection
    /// is broken.
    pub send_limit: Option<Duration>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        let send_limit = Some(Duration::from_mins(1));
        Self { checksum: true, limits: FrameLimits::default(), send_limit }
    }
}

/// The sending half. Dropping both halves closes the connection, or ends the stream of a multiplexed connection.
#[derive(Debug)]
pub struct Sender {
    target: SendTarget,
    options: ConnectOptions,
    head: Vec<u8>,
    is_broken: bool,
}

#[derive(Debug)]
enum SendTarget {
    Exclusive(Arc<BlockingSocket>),
    Stream(Arc<ClientStream>),
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver {
    source: ReceiveSource,
    limit: std::cell::Cell<Option<Duration>>,
}

#[derive(Debug)]
enum ReceiveSource {
    Exclusive { stream: Arc<BlockingSocket>, reader: Box<FrameReader> },
    Stream(Arc<ClientStream>),
}

/// Connects, with the default options. Sends nothing yet.
pub fn connect(address: &Address, timeout: Duration) -> Result<(Sender, Receiver), Error> {
    connect_with(address, timeout, ConnectOptions::default())
}

/// Connects. Sends nothing yet.
pub fn connect_with(
    address: &Address,
    timeout: Duration,
    options: ConnectOptions,
) -> Result<(Sender, Receiver), Error> {
    halves(BlockingSocket::connect(address, timeout)?, options)
}

/// The two ends of a connection inside this process.
pub fn memory(options: ConnectOptions) -> Result<[(Sender, Receiver); 2], Error> {
    let (one, other) = memory::pair();
    Ok([halves(BlockingSocket::Memory(one), options)?, halves(BlockingSocket::Memory(other), options)?])
}

/// Connects and sends `Hello`, with the default options. A refusal is [`Error::Refused`].
pub fn open(
    address: &Address,
    timeout: Duration,
    hello: &Hello,
) -> Result<(Sender, Receiver, Welcome), Error> {
    open_with(address, timeout, hello, ConnectOptions::default())
}

/// Connects and sends `Hello`. All of it takes at most about `timeout`. A refusal is [`Error::Refused`].
pub fn open_with(
    address: &Address,
    timeout: Duration,
    hello: &Hello,
    options: ConnectOptions,
) -> Result<(Sender, Receiver, Welcome), Error> {
    let deadline = Instant::now() + timeout;
    let (mut sender, mut receiver) = connect_with(address, timeout, options)?;
    sender.send(&Message::Hello(hello.clone()))?;
    receiver.set_timeout(Some(deadline.saturating_duration_since(Instant::now())))?;
    let message = receiver.receive()?;
    receiver.set_timeout(None)?;
    Ok((sender, receiver, expect_welcome(message)?))
}

/// The `Welcome` in the answer to a `Hello`.
fn expect_welcome(message: Message) -> Result<Welcome, Error> {
    match message {
        Message::Welcome(welcome) => Ok(welcome),
        Message::Fault(fault) => Err(Error::Refused(fault)),
        other => Err(Error::Unexpected { expected: "Welcome", actual: other.kind_name() }),
    }
}

fn halves(stream: BlockingSocket, options: ConnectOptions) -> Result<(Sender, Receiver), Error> {
    stream.set_write_limit(options.send_limit).map_err(|error| Error::io("set the write timeout", error))?;
    let stream = Arc::new(stream);
    let way = SendTarget::Exclusive(Arc::clone(&stream));
    let sender = Sender { target: way, options, head: Vec::new(), is_broken: false };
    let reader = Box::new(FrameReader::new(options.limits, BUFFER_BYTES));
    let source = ReceiveSource::Exclusive { stream, reader };
    Ok((sender, Receiver { source, limit: std::cell::Cell::new(None) }))
}

/// Writes all slices, in order.
fn write_all(stream: &BlockingSocket, mut slices: &mut [IoSlice<'_>]) -> Result<(), Error> {
    // Skips empty slices at the front.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match stream.write_vectored(slices) {
            Ok(0) => return Err(Error::Closed),
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if Error::is_wait(error.kind()) => {
                return Err(Error::TimedOut { during: "sending: the other end does not read" });
            }
            Err(error) => return Err(Error::io("send", error)),
        }
    }
    Ok(())
}

impl Sender {
    fn of_stream(branch: &Arc<ClientStream>, options: ConnectOptions) -> Self {
        Self { target: SendTarget::Stream(Arc::clone(branch)), options, head: Vec::new(), is_broken: false }
    }

    /// Sends one message. A message that is too long is refused, and nothing of it is sent. After any other error the
    /// connection cannot be used any more.
    pub fn send(&mut self, message: &Message) -> Result<(), Error> {
        self.send_all(std::slice::from_ref(message))
    }

    /// Sends messages in order, small ones in one write.
    pub fn send_all<M: Borrow<Message>>(&mut self, messages: &[M]) -> Result<(), Error> {
        self.send_as(messages, None)
    }

    /// The same as [`Self::send_all`], for messages that end a step and that cannot be answered before all tasks have
    /// ended it. On a multiplexed connection they may wait for the streams whose last message ended an earlier step.
    /// They are sent in one write with the next message of any of those streams, at the latest when a receive of this
    /// stream has waited for 20 ms.
    pub fn send_step<M: Borrow<Message>>(&mut self, messages: &[M], step: u64) -> Result<(), Error> {
        self.send_as(messages, Some(step))
    }

    fn send_as<M: Borrow<Message>>(&mut self, messages: &[M], step: Option<u64>) -> Result<(), Error> {
        if self.is_broken {
            return Err(Error::Closed);
        }
        let branch = match &self.target {
            SendTarget::Exclusive(_) => 0,
            SendTarget::Stream(branch) => branch.number,
        };
        let options = self.options;
        self.head.clear();
        for message in messages {
            let message = message.borrow();
            let put = put_stream_head(branch, message, options.checksum, &options.limits, &mut self.head);
            if let Err(error) = put {
                self.flush(None)?;
                return Err(error);
            }
            let body = Body::of(message);
            let slices = body.slices();
            if self.head.len() + body.len() <= COPIED_BYTES {
                for slice in slices {
                    self.head.extend_from_slice(slice);
                }
            } else {
                let [keys, values, padding] = slices;
                let head = std::mem::take(&mut self.head);
                let result = self.write(&mut [&head, keys, values, padding].map(IoSlice::new), None);
                self.head = head;
                self.head.clear();
                result?;
            }
        }
        self.flush(step)
    }

    /// Writes the gathered small frames.
    fn flush(&mut self, step: Option<u64>) -> Result<(), Error> {
        let head = std::mem::take(&mut self.head);
        let result = self.write(&mut [IoSlice::new(&head)], step);
        self.head = head;
        result
    }

    /// Writes the slices. An error may leave half a frame written, so no frame can follow it.
    fn write(&mut self, slices: &mut [IoSlice<'_>], step: Option<u64>) -> Result<(), Error> {
        let result = match &self.target {
            SendTarget::Exclusive(stream) => write_all(stream, slices),
            SendTarget::Stream(branch) => branch.write(slices, step),
        };
        self.is_broken = result.is_err();
        result
    }

    /// A handle that closes the connection from another thread while this one sends or receives.
    pub fn closer(&self) -> Closer {
        Closer(match &self.target {
            SendTarget::Exclusive(stream) => WeakTarget::Exclusive(Arc::downgrade(stream)),
            SendTarget::Stream(branch) => WeakTarget::Stream(Arc::downgrade(branch)),
        })
    }

    /// Ends the connection, or the stream, in both directions; a receiver that waits gets [`Error::Closed`].
    pub fn shutdown(&self) {
        match &self.target {
            SendTarget::Exclusive(stream) => stream.shutdown(),
            SendTarget::Stream(branch) => branch.end(),
        }
    }
}

/// Closes a connection whose halves other threads own: a send or receive that waits ends with an error at once. A
/// `Closer` does not keep the connection open.
#[derive(Clone, Debug)]
pub struct Closer(WeakTarget);

#[derive(Clone, Debug)]
enum WeakTarget {
    Exclusive(Weak<BlockingSocket>),
    Stream(Weak<ClientStream>),
}

impl Closer {
    /// Closes the connection. For a stream it closes the whole multiplexed connection, because a write of one stream
    /// may block the others.
    pub fn close(&self) {
        match &self.0 {
            WeakTarget::Exclusive(stream) => drop(stream.upgrade().map(|stream| stream.shutdown())),
            WeakTarget::Stream(branch) => drop(branch.upgrade().map(|branch| branch.close_connection())),
        }
    }

    /// Whether a half of the connection still exists.
    pub fn is_open(&self) -> bool {
        match &self.0 {
            WeakTarget::Exclusive(stream) => stream.strong_count() > 0,
            WeakTarget::Stream(branch) => branch.strong_count() > 0,
        }
    }
}

impl Receiver {
    fn of_stream(branch: Arc<ClientStream>) -> Self {
        Self { source: ReceiveSource::Stream(branch), limit: std::cell::Cell::new(None) }
    }

    /// Sets the longest wait of a receive for more bytes; `None`: no limit.
    pub fn set_timeout(&self, limit: Option<Duration>) -> Result<(), Error> {
        if self.limit.get() != limit {
            if let ReceiveSource::Exclusive { stream, .. } = &self.source {
                stream.set_read_limit(limit).map_err(|error| Error::io("set the read timeout", error))?;
            }
            self.limit.set(limit);
        }
        Ok(())
    }

    /// The next message. After [`Error::TimedOut`] a later call continues where this one stopped. After any other error
    /// the connection cannot be used any more.
    pub fn receive(&mut self) -> Result<Message, Error> {
        let limit = self.limit.get();
        Message::from_frame(match &mut self.source {
            ReceiveSource::Exclusive { stream, reader } => receive_frame(stream, reader, limit)?,
            ReceiveSource::Stream(branch) => receive_of_stream(branch, limit)?,
        })
    }

    /// The next message if it has already arrived. It is for a connection whose two ends belong to one thread: nobody
    /// may send meanwhile.
    pub fn receive_now(&mut self) -> Result<Option<Message>, Error> {
        let frame = match &mut self.source {
            ReceiveSource::Exclusive { stream, reader } => {
                receive_frame_now(stream, reader, self.limit.get())?
            }
            ReceiveSource::Stream(branch) => branch.take(Some(Duration::ZERO))?,
        };
        frame.map(Message::from_frame).transpose()
    }
}

fn receive_frame_now(
    stream: &BlockingSocket,
    reader: &mut FrameReader,
    limit: Option<Duration>,
) -> Result<Option<Frame>, Error> {
    loop {
        if let Some(frame) = reader.frame()? {
            return Ok(Some(frame));
        }
        match stream.read_now(reader.space(), limit) {
            Ok(0) => return Err(Error::Closed),
            Ok(count) => reader.advance(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if Error::is_wait(error.kind()) => return Ok(None),
            Err(error) => return Err(Error::io("receive", error)),
        }
    }
}

fn receive_frame(
    stream: &BlockingSocket,
    reader: &mut FrameReader,
    limit: Option<Duration>,
) -> Result<Frame, Error> {
    let mut deadline = None;
    loop {
        if let Some(frame) = reader.frame()? {
            return Ok(frame);
        }
        // A sender of single bytes cannot prolong the wait without end: it lasts at most twice the limit.
        if let Some(limit) = limit
            && Instant::now() > *deadline.get_or_insert_with(|| Instant::now() + limit)
        {
            return Err(Error::TimedOut { during: "receiving" });
        }
        match stream.read(reader.space()) {
            Ok(0) => return Err(Error::Closed),
            Ok(count) => reader.advance(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if Error::is_wait(error.kind()) => {
                return Err(Error::TimedOut { during: "receiving" });
            }
            Err(error) => return Err(Error::io("receive", error)),
        }
    }
}

fn receive_of_stream(branch: &ClientStream, limit: Option<Duration>) -> Result<Frame, Error> {
    let mut rest = limit;
    if branch.holds() {
        let first = limit.map_or(STEP_LIMIT, |limit| limit.min(STEP_LIMIT));
        if let Some(frame) = branch.take(Some(first))? {
            return Ok(frame);
        }
        branch.let_go();
        rest = limit.map(|limit| limit.saturating_sub(first));
    }
    branch.take(rest)?.ok_or(Error::TimedOut { during: "receiving" })
}
