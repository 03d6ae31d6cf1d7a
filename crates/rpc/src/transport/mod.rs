//! The end that connects. It is blocking; one thread sends and another one may receive.

mod address;
mod blocking_socket;

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

pub use address::Address;
use blocking_socket::BlockingSocket;

use crate::codec::{Body, put_head};
use crate::error::Error;
use crate::frame::Frame;
use crate::limits::FrameLimits;
use crate::message::{Hello, Message, Welcome};
use crate::reader::FrameReader;

/// Bytes of a receiver's buffer; one read brings many small frames.
const BUFFER_BYTES: usize = 64 << 10;
/// Bodies up to this length are copied after their head, so that one plain write sends all.
const COPIED_BYTES: usize = 16 << 10;
/// Longest write before a blocked sender checks its limit and reads.
const TURN: Duration = Duration::from_millis(20);

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

/// The sending half. Dropping both halves closes the connection.
#[derive(Debug)]
pub struct Sender {
    stream: Arc<BlockingSocket>,
    options: ConnectOptions,
    head: Vec<u8>,
    is_broken: bool,
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver {
    stream: Arc<BlockingSocket>,
    reader: FrameReader,
    /// Frames that arrived while a send was blocked.
    arrived: VecDeque<Frame>,
    limit: std::cell::Cell<Option<Duration>>,
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

/// Connects and sends `Hello`, with the default options. A refusal is [`Error::Refused`].
pub fn open(
    address: &Address,
    timeout: Duration,
    hello: &Hello,
) -> Result<(Sender, Receiver, Welcome), Error> {
    open_with(address, timeout, hello, ConnectOptions::default())
}

/// Like [`open`], by the first address that accepts. Sockets of this machine are tried first.
pub fn open_first(
    addresses: &[String],
    timeout: Duration,
    hello: &Hello,
) -> Result<(Sender, Receiver, Welcome), Error> {
    let mut usable = Vec::with_capacity(addresses.len());
    for text in addresses {
        usable.push(text.parse::<Address>()?);
    }
    // A socket file that does not exist here belongs to another machine.
    usable.retain(|address| !matches!(address, Address::Unix(path) if !path.exists()));
    usable.sort_by_key(|address| !matches!(address, Address::Unix(_)));
    let source = io::Error::new(io::ErrorKind::NotFound, "no such socket");
    let mut last = Error::Io { what: format!("connect to {}", addresses.join(", ")), source };
    for address in &usable {
        match open(address, timeout, hello) {
            Err(Error::Refused(fault)) => return Err(Error::Refused(fault)),
            Err(error) => last = error,
            opened => return opened,
        }
    }
    Err(last)
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
    match message {
        Message::Welcome(welcome) => Ok((sender, receiver, welcome)),
        Message::Fault(fault) => Err(Error::Refused(fault)),
        other => Err(Error::Unexpected { expected: "Welcome", actual: other.kind_name() }),
    }
}

fn halves(stream: BlockingSocket, options: ConnectOptions) -> Result<(Sender, Receiver), Error> {
    let turn = options.send_limit.map_or(TURN, |limit| limit.min(TURN));
    stream.set_write_limit(Some(turn)).map_err(|error| Error::io("set the write timeout", error))?;
    let stream = Arc::new(stream);
    let sender = Sender { stream: Arc::clone(&stream), options, head: Vec::new(), is_broken: false };
    let reader = FrameReader::new(options.limits, BUFFER_BYTES);
    let receiver = Receiver { stream, reader, arrived: VecDeque::new(), limit: std::cell::Cell::new(None) };
    Ok((sender, receiver))
}

impl Sender {
    /// Sends one message. A message that is too long is refused, and nothing of it is sent. After any other error the
    /// connection cannot be used any more.
    pub fn send(&mut self, message: &Message) -> Result<(), Error> {
        self.send_all(std::slice::from_ref(message))
    }

    /// Sends messages in order, small ones in one write.
    pub fn send_all<M: Borrow<Message>>(&mut self, messages: &[M]) -> Result<(), Error> {
        self.send_and_read(messages, None)
    }

    /// The same as [`Self::send_all`], for a thread that has both halves of a connection. The other end may not read
    /// before its answers are read, so while a write is blocked, `receiver` reads what has arrived. It returns this
    /// later.
    pub fn send_all_reading<M: Borrow<Message>>(
        &mut self,
        messages: &[M],
        receiver: &mut Receiver,
    ) -> Result<(), Error> {
        self.send_and_read(messages, Some(receiver))
    }

    /// Sends frames that are encoded already. While a write is blocked, `receiver` reads what has arrived.
    pub fn send_frames(&mut self, frames: &[u8], receiver: &mut Receiver) -> Result<(), Error> {
        if self.is_broken {
            return Err(Error::Closed);
        }
        self.write(&mut [IoSlice::new(frames)], Some(receiver))
    }

    fn send_and_read<M: Borrow<Message>>(
        &mut self,
        messages: &[M],
        mut receiver: Option<&mut Receiver>,
    ) -> Result<(), Error> {
        if self.is_broken {
            return Err(Error::Closed);
        }
        let options = self.options;
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        let mut result = Ok(());
        for message in messages {
            let message = message.borrow();
            result = put_head(message, options.checksum, &options.limits, &mut head);
            if result.is_err() {
                break;
            }
            let body = Body::of(message);
            let slices = body.slices();
            if head.len() + body.len() <= COPIED_BYTES {
                for slice in slices {
                    head.extend_from_slice(slice);
                }
                continue;
            }
            let [keys, values, padding] = slices;
            self.write(&mut [&head, keys, values, padding].map(IoSlice::new), receiver.as_deref_mut())?;
            head.clear();
        }
        // The gathered small frames.
        self.write(&mut [IoSlice::new(&head)], receiver)?;
        self.head = head;
        result
    }

    /// Writes the slices. An error may leave half a frame written, so no frame can follow it.
    fn write(&mut self, slices: &mut [IoSlice<'_>], receiver: Option<&mut Receiver>) -> Result<(), Error> {
        let result = write_all(&self.stream, slices, self.options.send_limit, receiver);
        self.is_broken = result.is_err();
        result
    }

    /// A handle that closes the connection from another thread while this one sends or receives.
    pub fn closer(&self) -> Closer {
        Closer(Arc::downgrade(&self.stream))
    }

    /// Ends the connection in both directions; a receiver that waits gets [`Error::Closed`].
    pub fn shutdown(&self) {
        self.stream.shutdown();
    }
}

/// Writes all slices, in order. While a write is blocked, `receiver` reads. The limit is the longest time in which the
/// other end neither reads nor sends a frame.
fn write_all(
    stream: &BlockingSocket,
    mut slices: &mut [IoSlice<'_>],
    limit: Option<Duration>,
    mut receiver: Option<&mut Receiver>,
) -> Result<(), Error> {
    let mut progress_at = Instant::now();
    // Skips empty slices at the front.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match stream.write_vectored(slices) {
            Ok(0) => return Err(Error::Closed),
            Ok(count) => {
                IoSlice::advance_slices(&mut slices, count);
                progress_at = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if Error::is_wait(error.kind()) => {
                if let Some(receiver) = &mut receiver
                    && receiver.read_arrived()?
                {
                    progress_at = Instant::now();
                } else if limit.is_some_and(|limit| progress_at.elapsed() >= limit) {
                    return Err(Error::TimedOut { during: "sending: the other end does not read" });
                }
            }
            Err(error) => return Err(Error::io("send", error)),
        }
    }
    Ok(())
}

/// Closes a connection whose halves other threads own: a send or receive that waits ends with an error at once. A
/// `Closer` does not keep the connection open.
#[derive(Clone, Debug)]
pub struct Closer(Weak<BlockingSocket>);

impl Closer {
    pub fn close(&self) {
        if let Some(stream) = self.0.upgrade() {
            stream.shutdown();
        }
    }

    /// Whether a half of the connection still exists.
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Receiver {
    /// Sets the longest wait of a receive for more bytes; `None`: no limit.
    pub fn set_timeout(&self, limit: Option<Duration>) -> Result<(), Error> {
        if self.limit.get() != limit {
            self.stream.set_read_limit(limit).map_err(|error| Error::io("set the read timeout", error))?;
            self.limit.set(limit);
        }
        Ok(())
    }

    /// The next message. After [`Error::TimedOut`] a later call continues where this one stopped. After any other error
    /// the connection cannot be used any more.
    pub fn receive(&mut self) -> Result<Message, Error> {
        let frame = match self.arrived.pop_front() {
            Some(frame) => frame,
            None => self.read_frame()?,
        };
        Message::from_frame(frame)
    }

    /// The next message if it has already arrived. It is for a connection whose two halves belong to one thread: nobody
    /// may send meanwhile.
    pub fn receive_now(&mut self) -> Result<Option<Message>, Error> {
        let frame = match self.arrived.pop_front() {
            Some(frame) => Some(frame),
            None => self.read_frame_now()?,
        };
        frame.map(Message::from_frame).transpose()
    }

    /// Reads the frames that have arrived, for later receives. Returns whether there were any.
    fn read_arrived(&mut self) -> Result<bool, Error> {
        let before = self.arrived.len();
        while let Some(frame) = self.read_frame_now()? {
            self.arrived.push_back(frame);
        }
        Ok(self.arrived.len() > before)
    }

    fn read_frame_now(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            if let Some(frame) = self.reader.frame()? {
                return Ok(Some(frame));
            }
            match self.stream.read_now(self.reader.space()) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => self.reader.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if Error::is_wait(error.kind()) => return Ok(None),
                Err(error) => return Err(Error::io("receive", error)),
            }
        }
    }

    fn read_frame(&mut self) -> Result<Frame, Error> {
        let mut deadline = None;
        loop {
            if let Some(frame) = self.reader.frame()? {
                return Ok(frame);
            }
            // A sender of single bytes cannot prolong the wait without end: it lasts at most twice the limit.
            if let Some(limit) = self.limit.get()
                && Instant::now() > *deadline.get_or_insert_with(|| Instant::now() + limit)
            {
                return Err(Error::TimedOut { during: "receiving" });
            }
            match self.stream.read(self.reader.space()) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => self.reader.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if Error::is_wait(error.kind()) => {
                    return Err(Error::TimedOut { during: "receiving" });
                }
                Err(error) => return Err(Error::io("receive", error)),
            }
        }
    }
}
