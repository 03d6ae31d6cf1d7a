//! Connections: each direction is first in, first out, until the connection breaks. Then a suffix of the messages in
//! flight is lost, a different one per direction. The two ends learn of it at different times, so an old connection may
//! still deliver when the next one of the same task is open. If the scenario has duplicates, a lane gets messages twice:
//! the last frames of a connection again, or its first frames over a second connection of the same task.

use std::collections::{BTreeMap, VecDeque};

use math::random::RandomStream;
use rpc::codec::put_frame;
use rpc::message::RequestId;
use rpc::reader::read_messages;
use rpc::{FrameLimits, Message};

/// Longest time from a reset until an end learns of it, in microseconds.
const LATE_CLOSE: u64 = 3_000_000;

/// A message in flight.
#[derive(Debug)]
pub(crate) enum Item {
    Message(Message),
    Bytes(Vec<u8>),
    Closed,
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Arrival time and item, in ascending order of time.
    pub(crate) items: VecDeque<(u64, Item)>,
    last: u64,
    /// Ticket of the event that delivers the first item; events with older tickets are ignored.
    pub(crate) ticket: u64,
    /// Whether the direction takes no more items.
    pub(crate) is_cut: bool,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) task: usize,
    /// The lane of the job.
    pub(crate) lane: usize,
    /// Who has the lane at the other end: the lane itself or its standby.
    pub(crate) node: usize,
    pub(crate) up: Pipe,
    pub(crate) down: Pipe,
    /// Whether the lane has stopped reading for now.
    pub(crate) is_paused: bool,
    /// Whether the lane has received the hello, and not yet that the connection is closed.
    pub(crate) is_served: bool,
    /// Messages that the lane has received, in order; only recorded if the scenario has duplicates.
    pub(crate) told: Vec<Message>,
    /// Number of next frames that are duplicates. Duplicates have no duplicates.
    pub(crate) duplicate_count: usize,
    /// Clock of the last tick that was sent over the connection.
    pub(crate) ticked: u64,
    /// Per request: how often it arrived without an answer yet. A lane must not answer it more often than that.
    pub(crate) open_requests: BTreeMap<RequestId, u32>,
}

impl Item {
    pub(crate) fn of(message: Message, as_bytes: bool) -> Self {
        if !as_bytes {
            return Item::Message(message);
        }
        let mut bytes = Vec::new();
        put_frame(&message, true, &FrameLimits::default(), &mut bytes).expect("a message that fits a frame");
        Item::Bytes(bytes)
    }

    /// `None`: the connection is closed.
    pub(crate) fn message(self) -> Option<Message> {
        match self {
            Item::Message(message) => Some(message),
            Item::Closed => None,
            Item::Bytes(bytes) => {
                let messages = read_messages(&bytes, &FrameLimits::default());
                let mut messages = messages.expect("what was written can be read");
                assert_eq!(messages.len(), 1, "a frame is taken whole");
                messages.pop()
            }
        }
    }
}

impl Pipe {
    pub(crate) fn put(&mut self, now: u64, delay: u64, item: Item) {
        if self.is_cut {
            return;
        }
        self.is_cut = matches!(item, Item::Closed);
        self.last = self.last.max(now + delay);
        self.items.push_back((self.last, item));
    }

    /// An empty one in its place. Events of the one before do not count.
    pub(crate) fn renewed(&self) -> Self {
        Self { ticket: self.ticket, ..Self::default() }
    }

    /// Breaks the connection: some messages in flight still arrive, then the close.
    pub(crate) fn cut(&mut self, now: u64, random: &mut RandomStream) {
        if self.is_cut {
            return;
        }
        let kept = random.below(self.items.len() as u64 + 1) as usize;
        self.items.truncate(kept);
        self.last = self.items.back().map_or(now, |(time, _)| *time);
        let late = if random.below(3) == 0 { random.below(LATE_CLOSE) } else { random.below(1_000) };
        if random.below(2) == 0 {
            // The messages that still arrive may be late too.
            let from = random.below(kept as u64 + 1) as usize;
            for (time, _) in self.items.range_mut(from..) {
                *time += late;
            }
        }
        self.put(now, late, Item::Closed);
    }
}

/// The request that needs an answer; 0: none.
pub(crate) fn request_of(message: &Message) -> RequestId {
    match message {
        Message::Hello(hello) => hello.request,
        Message::Pull(pull) => pull.request,
        Message::PullFunction(pull) => pull.request,
        Message::PushFunction(push) => push.request,
        Message::TryFunction(ask) => ask.request,
        Message::Push(push) => push.request,
        Message::Barrier(barrier) => barrier.request,
        Message::Leave(leave) => leave.request,
        Message::Tick(tick) => tick.request,
        _ => 0,
    }
}

/// The request that the message answers; 0: none.
pub(crate) fn answer_of(message: &Message) -> RequestId {
    match message {
        Message::Welcome(welcome) => welcome.request,
        Message::Pulled(pulled) => pulled.request,
        Message::PulledFunction(pulled) => pulled.request,
        Message::Done(done) => done.request,
        Message::Released(released) => released.request,
        Message::Fault(fault) => fault.request,
        _ => 0,
    }
}

impl Connection {
    pub(crate) fn new(task: usize, lane: usize, node: usize) -> Self {
        Self {
            task,
            lane,
            node,
            up: Pipe::default(),
            down: Pipe::default(),
            is_paused: false,
            is_served: false,
            told: Vec::new(),
            duplicate_count: 0,
            ticked: 0,
            open_requests: BTreeMap::new(),
        }
    }
}
