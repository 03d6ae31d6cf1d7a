//! Connections: first in, first out each way, until one breaks. Then a suffix of what is under way is lost, each way
//! another one, and each end hears of it at some other time, so that an old connection may still deliver when the next
//! one of the same task stands already. Where the scenario has echoes, a lane is told things once more: the last frames of
//! a connection, or all of it, by somebody who says to be the same task.

use std::collections::{BTreeMap, VecDeque};

use math::random::RandomStream;
use rpc::codec::put_frame;
use rpc::message::RequestId;
use rpc::reader::FrameReader;
use rpc::{FrameLimits, Message};

/// Longest time after a reset until an end hears of it, in microseconds.
const LATE_CLOSE: u64 = 3_000_000;

/// What is under way.
#[derive(Debug)]
pub(crate) enum Item {
    Message(Message),
    Bytes(Vec<u8>),
    Closed,
}

/// One way of a connection.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// When each comes, ascending.
    pub(crate) items: VecDeque<(u64, Item)>,
    last: u64,
    /// Of the event that is to look at the first one; earlier events mean nothing.
    pub(crate) ticket: u64,
    /// Nothing is put in any more.
    pub(crate) is_cut: bool,
}

/// A connection of a task to a lane.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) task: usize,
    pub(crate) lane: usize,
    pub(crate) up: Pipe,
    pub(crate) down: Pipe,
    /// The lane does not read, for now.
    pub(crate) is_paused: bool,
    /// The lane has heard its hello, and not that it is gone.
    pub(crate) is_served: bool,
    /// What the lane was told, in order, where it may be told once more.
    pub(crate) told: Vec<Message>,
    /// So many of the next frames are echoes, of which there are none.
    pub(crate) echo_count: usize,
    /// The last tick that was sent over it.
    pub(crate) ticked: u64,
    /// How often each request came and was not answered yet: none is answered more often than it came.
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

    /// `None`: closed.
    pub(crate) fn message(self) -> Option<Message> {
        match self {
            Item::Message(message) => Some(message),
            Item::Closed => None,
            Item::Bytes(bytes) => {
                let mut reader = FrameReader::new(FrameLimits::default(), bytes.len());
                let mut rest = &bytes[..];
                loop {
                    if let Some(frame) = reader.frame().expect("the bytes of a frame") {
                        assert!(rest.is_empty(), "a frame is taken whole");
                        return Some(Message::from_frame(frame).expect("what was written can be read"));
                    }
                    let space = reader.space();
                    let count = space.len().min(rest.len());
                    assert!(count > 0, "a frame ends where its bytes end");
                    space[..count].copy_from_slice(&rest[..count]);
                    rest = &rest[count..];
                    reader.advance(count);
                }
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

    /// The connection is gone: some of what is under way still comes, then the news.
    pub(crate) fn cut(&mut self, now: u64, random: &mut RandomStream) {
        if self.is_cut {
            return;
        }
        let kept = random.below(self.items.len() as u64 + 1) as usize;
        self.items.truncate(kept);
        self.last = self.items.back().map_or(now, |(time, _)| *time);
        let late = if random.below(3) == 0 { random.below(LATE_CLOSE) } else { random.below(1_000) };
        if random.below(2) == 0 {
            // What still comes is late too.
            let from = random.below(kept as u64 + 1) as usize;
            for (time, _) in self.items.range_mut(from..) {
                *time += late;
            }
        }
        self.put(now, late, Item::Closed);
    }
}

/// The request that wants an answer; 0: none.
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

/// The request that is answered; 0: none.
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
    pub(crate) fn new(task: usize, lane: usize) -> Self {
        Self {
            task,
            lane,
            up: Pipe::default(),
            down: Pipe::default(),
            is_paused: false,
            is_served: false,
            told: Vec::new(),
            echo_count: 0,
            ticked: 0,
            open_requests: BTreeMap::new(),
        }
    }
}
