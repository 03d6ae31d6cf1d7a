//! Connections: first in, first out each way, until one breaks. Then a suffix of what is under way is lost, each way
//! another one, and each end hears of it at some other time, so that an old connection may still deliver when the next
//! one of the same task stands already.

use std::collections::{BTreeSet, VecDeque};

use math::random::Stream;
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
    /// Requests that were answered: no request is answered twice.
    pub(crate) answered: BTreeSet<RequestId>,
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
                    reader.filled(count);
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
    pub(crate) fn cut(&mut self, now: u64, random: &mut Stream) {
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

impl Connection {
    pub(crate) fn new(task: usize, lane: usize) -> Self {
        Self {
            task,
            lane,
            up: Pipe::default(),
            down: Pipe::default(),
            is_paused: false,
            is_served: false,
            answered: BTreeSet::new(),
        }
    }
}
