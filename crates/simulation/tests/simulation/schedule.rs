//! Virtual time: one queue of events. Events of the same time are in the order in which they were added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The first frame of a connection may be due at its lane.
    Up {
        connection: usize,
        ticket: u64,
    },
    /// The first frame of a connection may be due at its task.
    Down {
        connection: usize,
        ticket: u64,
    },
    /// A timer of a lane may be due.
    LaneTime {
        lane: usize,
    },
    /// A timer of an agent may be due.
    TaskTime {
        task: usize,
    },
    /// A task has computed and makes its next call.
    Think {
        task: usize,
    },
    /// A lane pauses.
    PauseLane {
        lane: usize,
    },
    ResumeLane {
        lane: usize,
    },
    /// A task pauses.
    PauseTask {
        task: usize,
    },
    ResumeTask {
        task: usize,
    },
    /// A tool removes a task at one lane.
    Remove {
        lane: usize,
        task: u32,
    },
    /// A tool adds a task at one lane.
    Join {
        lane: usize,
    },
    /// A task dies, and another attempt of it begins.
    Again {
        task: usize,
    },
    /// The job is over, and the worker of a task learns of it.
    EndOfJob {
        task: usize,
    },
    Crash {
        lane: usize,
    },
    Restart {
        lane: usize,
    },
    /// The first frame of the link of a primary may be due at its standby.
    LinkUp {
        lane: usize,
        ticket: u64,
    },
    /// The first answer of a standby may be due at its primary.
    LinkDown {
        lane: usize,
        ticket: u64,
    },
    /// A primary connects to its standby.
    OpenLink {
        lane: usize,
    },
    /// A server dies, or stands still until the master has given it up.
    LoseServer {
        server: usize,
    },
    /// The lanes of a node hear that a server is lost.
    HearOfLoss {
        node: usize,
        server: usize,
    },
    /// A task hears that a server is lost.
    TellTask {
        task: usize,
        server: usize,
    },
}

#[derive(Debug)]
pub(crate) struct Schedule<E: Ord = Event> {
    heap: BinaryHeap<Reverse<(u64, u64, E)>>,
    count: u64,
}

impl<E: Ord> Default for Schedule<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), count: 0 }
    }
}

impl<E: Ord> Schedule<E> {
    pub(crate) fn put(&mut self, time: u64, event: E) {
        self.count += 1;
        self.heap.push(Reverse((time, self.count, event)));
    }

    pub(crate) fn next_time(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((time, _, _))| *time)
    }

    pub(crate) fn next(&mut self) -> Option<(u64, E)> {
        self.heap.pop().map(|Reverse((time, _, event))| (time, event))
    }
}
