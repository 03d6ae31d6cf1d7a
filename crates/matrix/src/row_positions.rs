//! Keys with the positions of their rows in the tables, which a caller keeps from one call to the next.

use crate::agent::Selection;
use crate::error::Error;
use crate::key_runs::KeyRuns;
use crate::partitioner::Placement;
use crate::routed_keys::ValueOrder;
use crate::spec::MatrixSpec;
use crate::storage::rows::ABSENT;

/// The keys of one pull or push that lie in one partition, with the positions of their rows.
pub(crate) struct PositionedRun<'a> {
    pub(crate) table: u32,
    pub(crate) keys: &'a [u64],
    pub(crate) order: ValueOrder<'a>,
    /// The known positions; [`ABSENT`] for all others.
    pub(crate) positions: &'a mut [u32],
    /// The generation of `positions`.
    pub(crate) generation: &'a mut u64,
}

/// The keys of a pull or push at a lane that lie in one partition.
#[derive(Clone, Copy, Debug)]
pub struct KeyRun<'a> {
    pub partition: u32,
    /// By row: 0. By column: the row.
    pub table: u32,
    /// Strictly ascending keys, all in this partition.
    pub keys: &'a [u64],
}

/// The known row positions of a list of keys. The caller may keep it for later calls with the same keys.
#[derive(Clone, Debug, Default)]
pub struct RowPositions {
    positions: Vec<u32>,
    generation: u64,
    /// Whether the keys are checked to be ascending and in the range of their partition.
    keys_are_checked: bool,
}

impl RowPositions {
    pub(crate) fn are_checked_for(&self, run: &KeyRun<'_>) -> bool {
        self.keys_are_checked && self.positions.len() == run.keys.len()
    }

    pub(crate) fn set_checked(&mut self, run: &KeyRun<'_>) {
        self.reset_for(run.keys.len());
        self.keys_are_checked = true;
    }

    /// Clears the positions when they belong to another number of keys.
    fn reset_for(&mut self, key_count: usize) {
        if self.positions.len() != key_count {
            self.positions.clear();
            self.positions.resize(key_count, ABSENT);
            self.keys_are_checked = false;
        }
    }

    /// Returns the run with its known row positions.
    pub(crate) fn run<'a>(&'a mut self, run: &KeyRun<'a>) -> PositionedRun<'a> {
        self.reset_for(run.keys.len());
        PositionedRun {
            table: run.table,
            keys: run.keys,
            positions: &mut self.positions,
            order: ValueOrder::Contiguous { first: 0, count: run.keys.len() },
            generation: &mut self.generation,
        }
    }
}

/// The generation of positions that were never looked up.
const NO_GENERATION: u64 = u64::MAX;

/// The key runs of the last pull or push of a matrix, with the positions of their rows.
#[derive(Debug, Default)]
pub(crate) struct PositionedKeys {
    runs: KeyRuns,
    /// Row positions in the order of runs. They are valid only where the generation equals that of the partition.
    positions: Vec<u32>,
    /// The generation of the positions of each partition.
    generations: Vec<u64>,
    /// Scratch: partitions that another task had locked.
    pub(crate) locked_partitions: Vec<usize>,
}

impl PositionedKeys {
    /// Sets the keys. Positions stay known when the keys are those of the last call.
    pub(crate) fn set(
        &mut self,
        spec: &MatrixSpec,
        placement: &Placement,
        selection: Selection<'_>,
    ) -> Result<(), Error> {
        if self.runs.set_listed(spec, placement, selection)? {
            // No partition has this generation, so the first use of a run looks up all its positions.
            self.positions.resize(self.runs.key_count(), ABSENT);
            self.generations.clear();
            self.generations.resize(placement.partition_count(), NO_GENERATION);
        }
        Ok(())
    }

    pub(crate) fn runs(&self) -> &KeyRuns {
        &self.runs
    }

    /// Returns the keys of a partition with their positions.
    pub(crate) fn run(&mut self, partition: usize) -> PositionedRun<'_> {
        let Self { runs, positions, generations, .. } = self;
        let (keys, order) = runs.listed_run(partition);
        PositionedRun {
            table: runs.table(),
            keys,
            order,
            positions: &mut positions[runs.indices(partition)],
            generation: &mut generations[partition],
        }
    }
}
