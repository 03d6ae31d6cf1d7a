//! Virtual time: one queue of events. Those of one time come in the order in which they were put there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The first frame of a connection may have come to its lane.
    Up {
        connection: usize,
        ticket: u64,
    },
    /// The same on the way to its task.
    Down {
        connection: usize,
        ticket: u64,
    },
    /// A lane wanted to be called.
    LaneTime {
        lane: usize,
    },
    /// An agent wanted to be called.
    TaskTime {
        task: usize,
    },
    /// A task has computed and makes its next call.
    Think {
        task: usize,
    },
    /// A lane stands still.
    PauseLane {
        lane: usize,
    },
    ResumeLane {
        lane: usize,
    },
    /// A task stands still.
    PauseTask {
        task: usize,
    },
    ResumeTask {
        task: usize,
    },
    /// A tool takes a task out, at one lane.
    Remove {
        lane: usize,
        task: u32,
    },
    /// A tool lets one more task in, at one lane.
    Join {
        lane: usize,
    },
    /// A task dies, and another attempt of it begins.
    Again {
        task: usize,
    },
    /// The job is over, and the worker of a task hears of it.
    EndOfJob {
        task: usize,
    },
    Crash {
        lane: usize,
    },
    Restart {
        lane: usize,
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
