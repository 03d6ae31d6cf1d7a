//! What the tasks did and read, in the order of time: all that the checker knows.

use matrix::Consistency;

use crate::scenario::Scenario;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Microseconds.
    pub(crate) time: u64,
    pub(crate) task: u32,
    pub(crate) what: TaskEvent,
}

/// A call of a task begins or ends, or the task is interrupted.
#[derive(Clone, Debug)]
pub(crate) enum TaskEvent {
    /// The task adds `amount` to its counter in these partitions (a set of bits).
    Push {
        matrix: usize,
        clock: u64,
        amount: i64,
        partitions: u64,
    },
    /// The task ends a step and is now at this clock.
    Tick {
        clock: u64,
    },
    /// A pull that began at time `begun` has ended.
    Pulled {
        matrix: usize,
        clock: u64,
        begun: u64,
        cells: Vec<Cell>,
    },
    /// The task comes to a barrier.
    Barrier {
        generation: u64,
        part: Option<Vec<f64>>,
    },
    /// The task has passed the barrier.
    Passed {
        generation: u64,
        clock: u64,
        sum: Vec<f64>,
    },
    /// The task begins to leave.
    Leaves,
    Left,
    /// A tool removes the task at one more lane.
    Removed,
    /// The task begins at this clock, later than the others.
    Joined {
        clock: u64,
        generation: u64,
    },
    /// Another attempt continues at this clock and repeats the steps after it.
    Again {
        clock: u64,
    },
    /// A lane has lost all of its state. The event belongs to no task.
    Crashed,
    /// The job ends from outside, or one of its processes is lost: answers may be missing. The event belongs to no
    /// task.
    Cut,
    /// The task ends with an error.
    Failed {
        error: String,
    },
}

/// What a pull read of one task in one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) partition: u32,
    pub(crate) writer: u32,
    pub(crate) value: i64,
}

/// Counts of what happened: a promise about events that never happen proves nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) resets: u64,
    pub(crate) pulls: u64,
    /// Pulls that ended after the tick of another task for which they waited.
    pub(crate) waits: u64,
    /// Pulls under SSP(0) that saw a push of another task stamped with their own clock. Under BSP no pull does.
    pub(crate) newer_than_bsp: u64,
    /// Pulls under SSP(s) that missed a push stamped below their clock.
    pub(crate) older_than_bsp: u64,
    pub(crate) barriers: u64,
    pub(crate) joins: u64,
    /// Tasks that joined after a barrier.
    pub(crate) joins_behind_barriers: u64,
    /// Attempts that continued, and those of them that began at a clock below that of the attempt before.
    pub(crate) attempts: u64,
    pub(crate) attempts_behind: u64,
    /// Lanes that refused a joining task for a while.
    pub(crate) busy_joins: u64,
    /// Lanes whose rows were replaced and restored at the end.
    pub(crate) restores: u64,
    /// Jobs that ran beside another one.
    pub(crate) second_jobs: u64,
    /// Tasks that were removed more than one clock behind the slowest of the others.
    pub(crate) removals_at_a_gap: u64,
    pub(crate) crashes: u64,
    /// Tasks that left while another one was paused for ever.
    pub(crate) left_beside_paused: u64,
    /// Pulls without keys, by tasks without data.
    pub(crate) empty_pulls: u64,
    /// Prefetched pulls that were read, of tasks that left by themselves.
    pub(crate) read_ahead: u64,
    /// Pushes and pulls that were functions.
    pub(crate) function_pushes: u64,
    pub(crate) function_pulls: u64,
    /// Functions that failed at one lane.
    pub(crate) failed_functions: u64,
    /// Servers that were lost and whose standbys took over.
    pub(crate) takeovers: u64,
}

impl Facts {
    pub(crate) fn add(&mut self, other: &Facts) {
        self.resets += other.resets;
        self.pulls += other.pulls;
        self.waits += other.waits;
        self.newer_than_bsp += other.newer_than_bsp;
        self.older_than_bsp += other.older_than_bsp;
        self.barriers += other.barriers;
        self.joins += other.joins;
        self.joins_behind_barriers += other.joins_behind_barriers;
        self.attempts += other.attempts;
        self.attempts_behind += other.attempts_behind;
        self.busy_joins += other.busy_joins;
        self.restores += other.restores;
        self.second_jobs += other.second_jobs;
        self.removals_at_a_gap += other.removals_at_a_gap;
        self.crashes += other.crashes;
        self.left_beside_paused += other.left_beside_paused;
        self.empty_pulls += other.empty_pulls;
        self.read_ahead += other.read_ahead;
        self.function_pushes += other.function_pushes;
        self.function_pulls += other.function_pulls;
        self.failed_functions += other.failed_functions;
        self.takeovers += other.takeovers;
    }

    /// Whether every count is above zero.
    pub(crate) fn is_whole(&self) -> bool {
        let counts =
            [self.resets, self.pulls, self.waits, self.newer_than_bsp, self.older_than_bsp, self.barriers];
        let more =
            [self.joins, self.removals_at_a_gap, self.crashes, self.left_beside_paused, self.empty_pulls];
        let joins = [
            self.read_ahead,
            self.joins_behind_barriers,
            self.busy_joins,
            self.function_pushes,
            self.function_pulls,
        ];
        let last =
            [self.attempts, self.attempts_behind, self.restores, self.second_jobs, self.failed_functions];
        let last = last.iter().chain([&self.takeovers]);
        counts.iter().chain(&more).chain(&joins).chain(last).all(|count| *count > 0)
    }
}

/// All entries of a run, and what else the checker needs.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    /// Per matrix.
    pub(crate) consistency: Vec<Consistency>,
    /// Values at the end on the lanes that are alive: matrix and cell.
    pub(crate) exported: Vec<(usize, Cell)>,
    /// Counts that the network keeps.
    pub(crate) facts: Facts,
    /// Faults that were seen on the network.
    pub(crate) seen: Vec<String>,
    /// Why the run ended before the tasks did.
    pub(crate) stuck: Option<String>,
}

impl History {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            entries: Vec::new(),
            consistency: scenario.counters.iter().map(|of| of.spec.consistency).collect(),
            exported: Vec::new(),
            facts: Facts::default(),
            seen: Vec::new(),
            stuck: None,
        }
    }
}
