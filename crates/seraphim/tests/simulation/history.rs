//! What the tasks did and saw, in the order of time: all that the checker knows.

use matrix::Consistency;

use crate::scenario::Scenario;

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// In microseconds.
    pub(crate) time: u64,
    pub(crate) task: u32,
    pub(crate) what: What,
}

/// A call begins or ends, or something befalls the task.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Adds `amount` to the counter of the task in these partitions (a set of bits).
    Push { matrix: usize, clock: u64, amount: i64, partitions: u64 },
    /// Ends a step: now at this clock.
    Tick { clock: u64 },
    /// A pull has ended.
    Pulled { matrix: usize, clock: u64, cells: Vec<Cell> },
    /// Comes to a barrier.
    Barrier { generation: u64, part: Option<Vec<f64>> },
    /// Has passed it.
    Passed { generation: u64, clock: u64, sum: Vec<f64> },
    /// Begins to leave.
    Leaves,
    /// Has left.
    Left,
    /// A tool begins to take it out.
    Removed,
    /// Begins at this clock, later than the others.
    Joined { clock: u64 },
    /// A lane has lost all that it held. It concerns no task.
    Crashed,
    /// Ended with an error.
    Failed { error: String },
}

/// What a pull saw of one task in one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) partition: u32,
    pub(crate) writer: u32,
    pub(crate) value: i64,
}

/// What there is to say of a run.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    /// By matrix.
    pub(crate) consistency: Vec<Consistency>,
    /// At the end, on the lanes that live: matrix and cell.
    pub(crate) exported: Vec<(usize, Cell)>,
    /// What was seen on the network that may not be.
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
            seen: Vec::new(),
            stuck: None,
        }
    }
}
