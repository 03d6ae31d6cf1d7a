//! The end that connects: blocking, one thread that sends and perhaps another that receives.

mod address;
mod memory;
mod stream;

use std::borrow::Borrow;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use address::Address;
use stream::Stream;

use crate::codec::{Body, put_head};
use crate::error::Error;
use crate::frame::Frame;
use crate::limits::FrameLimits;
use crate::message::{Hello, Message, Welcome};
use crate::reader::FrameReader;

/// Bytes of a receiver's buffer: small frames come many at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// Bodies up to this length are copied behind their head, so that one plain write takes all.
const COPIED_BYTES: usize = 16 << 10;

/// How one connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Whether bodies carry a CRC-32C, in both directions: the other end does as the hello did.
    pub checksum: bool,
    /// Longest sections that are sent and taken.
    pub limits: FrameLimits,
    /// Longest wait of one write for room; `None`: for ever. Afterwards the connection is broken.
    pub send_limit: Option<Duration>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        let send_limit = Some(Duration::from_mins(1));
        Self { checksum: true, limits: FrameLimits::default(), send_limit }
    }
}

/// The sending half. Dropping both halves closes the connection.
#[derive(Debug)]
pub struct Sender {
    stream: Arc<Stream>,
    options: ConnectOptions,
    head: Vec<u8>,
    is_broken: bool,
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver {
    stream: Arc<Stream>,
    reader: FrameReader,
    limit: std::cell::Cell<Option<Duration>>,
}

/// Connects, with the default options. Says nothing yet.
pub fn connect(address: &Address, timeout: Duration) -> Result<(Sender, Receiver), Error> {
    connect_with(address, timeout, ConnectOptions::default())
}

/// Connects. Says nothing yet.
pub fn connect_with(
    address: &Address,
    timeout: Duration,
    options: ConnectOptions,
) -> Result<(Sender, Receiver), Error> {
    halves(Stream::connect(address, timeout)?, options)
}

/// A connection inside this process: two ends.
pub fn memory(options: ConnectOptions) -> Result<[(Sender, Receiver); 2], Error> {
    let (one, other) = memory::pair();
    Ok([halves(Stream::Memory(one), options)?, halves(Stream::Memory(other), options)?])
}

/// Connects and says hello, with the default options: a refusal is [`Error::Refused`].
pub fn open(
    address: &Address,
    timeout: Duration,
    hello: &Hello,
) -> Result<(Sender, Receiver, Welcome), Error> {
    open_with(address, timeout, hello, ConnectOptions::default())
}

/// Connects and says hello. All of it takes at most about `timeout`.
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
    match message {
        Message::Welcome(welcome) => Ok((sender, receiver, welcome)),
        Message::Fault(fault) => Err(Error::Refused(fault)),
        other => Err(Error::Unexpected { expected: "Welcome", actual: other.kind_name() }),
    }
}

fn halves(stream: Stream, options: ConnectOptions) -> Result<(Sender, Receiver), Error> {
    stream
        .set_write_limit(options.send_limit)
        .map_err(|error| Error::io("set the limit of writes", error))?;
    let stream = Arc::new(stream);
    let sender = Sender { stream: Arc::clone(&stream), options, head: Vec::new(), is_broken: false };
    let reader = FrameReader::new(options.limits, BUFFER_BYTES);
    Ok((sender, Receiver { stream, reader, limit: std::cell::Cell::new(None) }))
}

impl Sender {
    /// Sends one message. A message that is too long is refused and nothing of it sent; after any other error the
    /// connection is of no use any more.
    pub fn send(&mut self, message: &Message) -> Result<(), Error> {
        self.send_all(std::slice::from_ref(message))
    }

    /// Sends messages one behind the other, small ones in one write.
    pub fn send_all<M: Borrow<Message>>(&mut self, messages: &[M]) -> Result<(), Error> {
        if self.is_broken {
            return Err(Error::Closed);
        }
        self.head.clear();
        for message in messages {
            let message = message.borrow();
            if let Err(error) = put_head(message, self.options.checksum, &self.options.limits, &mut self.head)
            {
                self.flush()?;
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
                let result = self.write(&mut [&head, keys, values, padding].map(IoSlice::new));
                self.head = head;
                self.head.clear();
                result?;
            }
        }
        self.flush()
    }

    /// Writes the small frames that were gathered.
    fn flush(&mut self) -> Result<(), Error> {
        let head = std::mem::take(&mut self.head);
        let result = self.write(&mut [IoSlice::new(&head)]);
        self.head = head;
        result
    }

    fn write(&mut self, mut slices: &mut [IoSlice<'_>]) -> Result<(), Error> {
        // Empty slices in front count as written.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.stream.write_vectored(slices) {
                Ok(0) => return Err(self.broken(Error::Closed)),
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if Error::is_wait(error.kind()) => {
                    return Err(
                        self.broken(Error::TimedOut { during: "sending: the other end takes nothing" })
                    );
                }
                Err(error) => return Err(self.broken(Error::io("send", error))),
            }
        }
        Ok(())
    }

    /// Half a frame may be out: nothing can follow it.
    fn broken(&mut self, error: Error) -> Error {
        self.is_broken = true;
        error
    }

    /// Ends the connection in both directions; a receiver that waits sees [`Error::Closed`].
    pub fn shutdown(&self) {
        self.stream.shutdown();
    }
}

impl Receiver {
    /// The longest wait of a receive for more bytes; `None`: for ever.
    pub fn set_timeout(&self, limit: Option<Duration>) -> Result<(), Error> {
        if self.limit.get() != limit {
            self.stream.set_read_limit(limit).map_err(|error| Error::io("set the limit of reads", error))?;
            self.limit.set(limit);
        }
        Ok(())
    }

    /// The next message. After [`Error::TimedOut`] a later call goes on where this one stopped; after any other error
    /// the connection is of no use any more.
    pub fn receive(&mut self) -> Result<Message, Error> {
        Message::from_frame(self.receive_frame()?)
    }

    /// The next message if it is here, without a wait. For a connection whose two ends are held by one thread: nobody may
    /// send meanwhile.
    pub fn receive_now(&mut self) -> Result<Option<Message>, Error> {
        loop {
            if let Some(frame) = self.reader.frame()? {
                return Message::from_frame(frame).map(Some);
            }
            match self.stream.read_now(self.reader.space(), self.limit.get()) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => self.reader.filled(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if Error::is_wait(error.kind()) => return Ok(None),
                Err(error) => return Err(Error::io("receive", error)),
            }
        }
    }

    fn receive_frame(&mut self) -> Result<Frame, Error> {
        let mut deadline = None;
        loop {
            if let Some(frame) = self.reader.frame()? {
                return Ok(frame);
            }
            // One who sends a byte now and then does not prolong the wait without end: at most twice the limit.
            if let Some(limit) = self.limit.get()
                && Instant::now() > *deadline.get_or_insert_with(|| Instant::now() + limit)
            {
                return Err(Error::TimedOut { during: "receiving" });
            }
            match self.stream.read(self.reader.space()) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => self.reader.filled(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if Error::is_wait(error.kind()) => {
                    return Err(Error::TimedOut { during: "receiving" });
                }
                Err(error) => return Err(Error::io("receive", error)),
            }
        }
    }
}
