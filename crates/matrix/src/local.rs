//! All matrices of one process.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::MatrixId;
use crate::clock_barrier::ClockBarrier;
use crate::error::Error;
use crate::export::{ExportRange, RowCounts};
use crate::function::FunctionTable;
use crate::local_agent::LocalAgent;
use crate::matrix::Matrix;
use crate::row_block::RowBlock;
use crate::snapshot::Snapshot;
use crate::spec::MatrixSpec;
use crate::stats::{MatrixCounters, StoreStats};

/// Settings of a [`LocalStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// Number of tasks of the job, at least 1.
    pub task_count: u32,
    /// Maximum time that a task waits for others.
    pub wait_limit: Duration,
}

/// All matrices of one process, shared by the agents of its tasks. A pull or push runs on the caller's thread.
#[derive(Debug)]
pub struct LocalStore {
    matrices: Vec<LocalMatrix>,
    barrier: ClockBarrier,
    task_count: u32,
    functions: FunctionTable,
}

/// A matrix with its counters.
#[derive(Debug)]
pub(crate) struct LocalMatrix {
    pub(crate) matrix: Matrix,
    pub(crate) counters: MatrixCounters,
}

impl LocalStore {
    /// Creates a store without matrices.
    ///
    /// # Panics
    /// When there is no task.
    pub fn new(config: LocalConfig) -> Self {
        Self::with_functions(config, FunctionTable::builtin())
    }

    /// Does the same as [`Self::new`], with the given table of functions.
    ///
    /// # Panics
    /// When there is no task.
    pub fn with_functions(config: LocalConfig, functions: FunctionTable) -> Self {
        assert!(config.task_count > 0, "a job has at least one task");
        let gate = ClockBarrier::new(config.task_count, config.wait_limit);
        Self { matrices: Vec::new(), barrier: gate, task_count: config.task_count, functions }
    }

    /// Adds a matrix. All matrices are added before the tasks start. The first is `MatrixId(0)`.
    pub fn create(&mut self, spec: MatrixSpec) -> Result<MatrixId, Error> {
        if self.specs().any(|other| other.name == spec.name) {
            return Err(Error::DuplicateName { matrix: spec.name });
        }
        let counters = MatrixCounters::default();
        self.matrices.push(LocalMatrix { matrix: Matrix::whole(spec, &self.functions)?, counters });
        Ok(MatrixId(self.matrices.len() as u32 - 1))
    }

    /// Returns the specs of all matrices, in the order of their ids.
    pub fn specs(&self) -> impl Iterator<Item = &MatrixSpec> {
        self.matrices.iter().map(|local| local.matrix.spec())
    }

    /// Returns the agent of a task. A task has one agent; when the agent is dropped, the task leaves.
    ///
    /// # Panics
    /// When there is no such task.
    pub fn agent(self: &Arc<Self>, task: u32) -> LocalAgent {
        assert!(task < self.task_count, "task {task} of {}", self.task_count);
        LocalAgent::new(Arc::clone(self), task, 0)
    }

    /// Returns the agent of a new task, which starts at the smallest clock of the live ones.
    pub fn join(self: &Arc<Self>) -> Result<LocalAgent, Error> {
        let (task, clock) = self.barrier.join()?;
        Ok(LocalAgent::new(Arc::clone(self), task, clock))
    }

    /// Removes a task, for example because it died: it no longer holds back the others. Returns false when it had left
    /// before.
    pub fn remove(&self, task: u32) -> bool {
        self.barrier.leave(task)
    }

    /// Returns all rows that exist, keys ascending, with every push that the live tasks may see. Under BSP these are
    /// the staged pushes with stamps below the smallest clock, or all of them when no task is live.
    pub fn export(&self, id: MatrixId) -> Result<RowBlock, Error> {
        self.export_range(id, ExportRange::ALL)
    }

    /// Like [`Self::export`], for the rows in a range.
    pub fn export_range(&self, id: MatrixId, range: ExportRange) -> Result<RowBlock, Error> {
        self.matrix(id)?.matrix.export_range(self.barrier.minimum(), range)
    }

    /// Like [`Self::export`], for the rows with the smallest keys from `from` on, as many as take little memory.
    pub fn export_block(&self, id: MatrixId, from: u64) -> Result<RowBlock, Error> {
        let matrix = &self.matrix(id)?.matrix;
        self.export_range(id, ExportRange::block(from, matrix.row_count(), matrix.spec()))
    }

    /// Returns the rows that [`Self::export`] returns, as they are now.
    pub fn snapshot(&self, id: MatrixId) -> Result<Snapshot, Error> {
        self.matrix(id)?.matrix.snapshot(self.barrier.minimum())
    }

    /// Like [`Self::snapshot`], but records what changes from now on: see [`Matrix::snapshot_with_changes`].
    pub fn snapshot_with_changes(&self, id: MatrixId) -> Result<Snapshot, Error> {
        self.matrix(id)?.matrix.snapshot_with_changes(self.barrier.minimum())
    }

    /// Replaces all rows by those of a snapshot of this matrix, and discards what is staged.
    pub fn restore(&self, id: MatrixId, snapshot: &Snapshot) -> Result<(), Error> {
        self.matrix(id)?.matrix.restore(snapshot)
    }

    /// Counts the rows that [`Self::export`] returns.
    pub fn count_rows(&self, id: MatrixId) -> Result<RowCounts, Error> {
        self.matrix(id)?.matrix.count_rows(self.barrier.minimum())
    }

    /// Replaces all rows and discards what is staged. Without slots, the push rule initializes them so that the values
    /// stay as given.
    pub fn import(&self, id: MatrixId, rows: &RowBlock) -> Result<(), Error> {
        self.import_block(id, rows, Some(rows.keys.len() as u64))
    }

    /// Sets rows. If `replace` is given, all others are removed, and room is made for so many.
    pub fn import_block(&self, id: MatrixId, rows: &RowBlock, replace: Option<u64>) -> Result<(), Error> {
        self.matrix(id)?.matrix.import(rows, replace)
    }

    /// Returns sizes and counters.
    pub fn stats(&self) -> StoreStats {
        let matrices = self.matrices.iter().map(|LocalMatrix { matrix, counters }| {
            let (rows, bytes) = matrix.sizes();
            counters.stats(&matrix.spec().name, rows, bytes)
        });
        StoreStats { matrices: matrices.collect(), waits: self.barrier.waits() }
    }

    /// Ends the job: every task that waits, and every task that ticks from now on, gets [`Error::Stopped`]. The first
    /// reason is kept.
    pub fn stop(&self, reason: impl Into<String>) {
        self.barrier.stop(reason.into());
    }

    /// Marks a task as failed. Its clock no longer advances, also when its agent is dropped. A task that has to wait
    /// for it gets [`Error::Stopped`] with the reason at once. All others continue until they have to wait for it, so
    /// that under BSP their results do not depend on time.
    pub fn fail(&self, task: u32, reason: impl Into<String>) {
        self.barrier.fail(task, reason.into());
    }

    pub(crate) fn barrier(&self) -> &ClockBarrier {
        &self.barrier
    }

    pub(crate) fn functions(&self) -> &FunctionTable {
        &self.functions
    }

    pub(crate) fn task_count(&self) -> u32 {
        self.task_count
    }

    pub(crate) fn matrix(&self, id: MatrixId) -> Result<&LocalMatrix, Error> {
        let count = self.matrices.len();
        self.matrices.get(id.0 as usize).ok_or(Error::NoSuchMatrix { id: id.0, count })
    }
}
