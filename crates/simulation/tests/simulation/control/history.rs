//! Input and output of the master, and what its members and runners received: all that the checker knows.

use control::JobState;
use rpc::message::JobId;

/// Index of a process. Several processes may fill a seat one after another.
pub(crate) type Process = usize;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Microseconds.
    pub(crate) time: u64,
    pub(crate) what: ControlEvent,
}

/// A member as `status` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberView {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) incarnation: u64,
    pub(crate) is_server: bool,
    /// Whether the master knows a connection of the member.
    pub(crate) is_connected: bool,
}

/// A message to a member. Each arrives once and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberMessage {
    ToTask { job: JobId, number: u64 },
    Gone { id: u32 },
}

#[derive(Clone, Debug)]
pub(crate) enum ControlEvent {
    /// The master grants a registration.
    Registered {
        id: u32,
        process: Process,
    },
    /// The master reads a message of a member, which arrived at this time.
    Read {
        id: u32,
        arrived: u64,
    },
    /// The master reads that the member leaves.
    Leaves {
        id: u32,
    },
    /// The master reads that the member has acknowledged this many messages.
    Confirmed {
        id: u32,
        count: u64,
    },
    /// The live members after a change. For each earlier member, `unread` has the arrival times of the messages that
    /// the master has not read yet, ascending.
    Living {
        members: Vec<MemberView>,
        unread: Vec<(u32, Vec<u64>)>,
    },
    /// The master has been paused until now.
    Woke,
    /// A runner sends a message to a live worker.
    Said {
        id: u32,
        word: MemberMessage,
    },
    /// A process receives a message as this member.
    Told {
        process: Process,
        id: u32,
        word: MemberMessage,
    },
    /// A worker sends a message to a runner.
    Spoke {
        id: u32,
        job: JobId,
        number: u64,
    },
    /// The runner receives the message.
    Heard {
        id: u32,
        job: JobId,
        number: u64,
    },
    Submitted {
        job: Option<JobId>,
        servers: u32,
        workers: u32,
    },
    Cancelled {
        job: JobId,
        was_live: Option<bool>,
    },
    /// The runner of a job starts with these members.
    Started {
        job: JobId,
        servers: Vec<u32>,
        workers: Vec<u32>,
    },
    /// The runner receives the cancellation of its job.
    ToldCancelled {
        job: JobId,
    },
    /// The runner receives the loss of a member.
    ToldGone {
        job: JobId,
        id: u32,
    },
    ToldBack {
        job: JobId,
        id: u32,
    },
    /// A runner ends.
    Ended {
        job: JobId,
        is_well: bool,
    },
    /// State of a job after a change, as `status` shows it.
    Job {
        job: JobId,
        state: JobState,
    },
    /// The master does not list a job any more.
    Forgotten {
        job: JobId,
        was_over: bool,
    },
    /// The master has executed all effects of one call.
    Looked,
    Crashed,
    /// All messages have had the time to arrive. `members` are the processes that know themselves as members.
    Quiet {
        members: Vec<(u32, Process)>,
    },
}

/// Counts of what happened: a promise about events that never happen proves nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) registrations: u64,
    pub(crate) came_back: u64,
    pub(crate) deaths: u64,
    pub(crate) deaf: u64,
    /// Members whose name a new process has taken.
    pub(crate) replaced: u64,
    /// Members that were removed because they did not reconnect in time.
    pub(crate) not_back: u64,
    pub(crate) crashes: u64,
    pub(crate) wakes: u64,
    pub(crate) starts: u64,
    pub(crate) waited: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) refused: u64,
    pub(crate) words: u64,
    pub(crate) answers: u64,
}

impl Facts {
    fn counts(&mut self) -> [&mut u64; 16] {
        [
            &mut self.registrations,
            &mut self.came_back,
            &mut self.deaths,
            &mut self.deaf,
            &mut self.replaced,
            &mut self.not_back,
            &mut self.crashes,
            &mut self.wakes,
            &mut self.starts,
            &mut self.waited,
            &mut self.done,
            &mut self.failed,
            &mut self.cancelled,
            &mut self.refused,
            &mut self.words,
            &mut self.answers,
        ]
    }

    pub(crate) fn add(&mut self, other: &Facts) {
        let mut other = *other;
        for (sum, more) in self.counts().into_iter().zip(other.counts()) {
            *sum += *more;
        }
    }

    /// Whether every count is above zero.
    pub(crate) fn is_whole(mut self) -> bool {
        self.counts().iter().all(|count| **count > 0)
    }
}

/// All entries of a run, and the faults that were seen without the checker.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    /// Faults that were seen during the run.
    pub(crate) seen: Vec<String>,
}
