//! What went into the master, what came out, and what its members and runners heard: all that the checker knows.

use control::JobState;
use rpc::message::JobId;

/// A process that fills a seat, one of many in a run.
pub(crate) type Process = usize;

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// In microseconds.
    pub(crate) time: u64,
    pub(crate) what: ControlEvent,
}

/// A member as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberView {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) incarnation: u64,
    pub(crate) is_server: bool,
    /// The master knows a connection of it.
    pub(crate) is_connected: bool,
}

/// What a member is told, once and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberMessage {
    ToTask { job: JobId, number: u64 },
    Gone { id: u32 },
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum ControlEvent {
    /// The master grants a registration.
    Registered {
        id: u32,
        process: Process,
    },
    /// The master reads something of a member, which came to its door at a time.
    Read {
        id: u32,
        arrived: u64,
    },
    /// It reads that the member leaves.
    Leaves {
        id: u32,
    },
    /// It reads that the member has heard so much.
    Confirmed {
        id: u32,
        count: u64,
    },
    /// Who lives now, after a change; and for those that were there before, when that came to the door which was not read
    /// yet, ascending.
    Living {
        members: Vec<MemberView>,
        unread: Vec<(u32, Vec<u64>)>,
    },
    /// The master has stood still until now.
    Woke,
    /// A runner says something to a worker that lives.
    Said {
        id: u32,
        word: MemberMessage,
    },
    /// A process hears something as this member.
    Told {
        process: Process,
        id: u32,
        word: MemberMessage,
    },
    /// A worker says something to a runner.
    Spoke {
        id: u32,
        job: JobId,
        number: u64,
    },
    /// The runner hears it.
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
    /// The runner of a job is started with these members.
    Started {
        job: JobId,
        servers: Vec<u32>,
        workers: Vec<u32>,
    },
    /// The runner is told that it is cancelled.
    ToldCancelled {
        job: JobId,
    },
    /// That a member is gone.
    ToldGone {
        job: JobId,
        id: u32,
    },
    ToldBack {
        job: JobId,
        id: u32,
    },
    /// The last word of a runner.
    Ended {
        job: JobId,
        is_well: bool,
    },
    /// What people see of a job, after a change.
    Job {
        job: JobId,
        state: JobState,
    },
    /// A job is not remembered any more.
    Forgotten {
        job: JobId,
        was_over: bool,
    },
    /// The master has done what one call made it do.
    Looked,
    Crashed,
    /// All that was said has had the time to come: the members that a process knows itself to be.
    Quiet {
        members: Vec<(u32, Process)>,
    },
}

/// What was reached, counted: promises about what never happens prove nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) registrations: u64,
    pub(crate) came_back: u64,
    pub(crate) deaths: u64,
    pub(crate) deaf: u64,
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
    fn counts(&mut self) -> [&mut u64; 14] {
        [
            &mut self.registrations,
            &mut self.came_back,
            &mut self.deaths,
            &mut self.deaf,
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

    /// Whether all of it was reached.
    pub(crate) fn is_whole(mut self) -> bool {
        self.counts().iter().all(|count| **count > 0)
    }
}

/// What there is to say of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    /// What was seen that may not be, without a look at the whole.
    pub(crate) seen: Vec<String>,
}
