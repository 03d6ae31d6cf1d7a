//! All matrices of one process.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::MatrixId;
use crate::clock::Clock;
use crate::clock_barrier::ClockBarrier;
use crate::element::ElementType;
use crate::error::Error;
use crate::export::ExportedRows;
use crate::function::FunctionTable;
use crate::local_agent::LocalAgent;
use crate::matrix::Matrix;
use crate::spec::MatrixSpec;
use crate::stats::StoreStats;

/// Settings of a [`LocalStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// Tasks of the job, at least 1.
    pub task_count: u32,
    /// Longest wait of a task for others.
    pub wait_limit: Duration,
}

/// All matrices of one process, shared by the agents of its tasks. A pull or push runs on the caller's thread.
#[derive(Debug)]
pub struct LocalStore {
    matrices: Vec<AnyMatrix>,
    barrier: ClockBarrier,
    task_count: u32,
    functions: FunctionTable,
}

/// A matrix of any element type.
#[derive(Debug)]
pub(crate) enum AnyMatrix {
    F32(Matrix<f32>),
    F64(Matrix<f64>),
    I64(Matrix<i64>),
}

/// The same expression for a matrix of each element type.
macro_rules! with_matrix {
    ($any:expr, $matrix:ident => $body:expr) => {
        match $any {
            AnyMatrix::F32($matrix) => $body,
            AnyMatrix::F64($matrix) => $body,
            AnyMatrix::I64($matrix) => $body,
        }
    };
}

impl AnyMatrix {
    pub(crate) fn spec(&self) -> &MatrixSpec {
        with_matrix!(self, matrix => &matrix.spec)
    }
}

impl LocalStore {
    /// A store without matrices.
    ///
    /// # Panics
    /// When there is no task.
    pub fn new(config: LocalConfig) -> Self {
        Self::with_functions(config, FunctionTable::builtin())
    }

    /// As [`Self::new`], with functions of your own.
    ///
    /// # Panics
    /// When there is no task.
    pub fn with_functions(config: LocalConfig, functions: FunctionTable) -> Self {
        assert!(config.task_count > 0, "a job has at least one task");
        let gate = ClockBarrier::new(config.task_count, config.wait_limit);
        Self { matrices: Vec::new(), barrier: gate, task_count: config.task_count, functions }
    }

    /// Adds a matrix, before the tasks start. The first is `MatrixId(0)`.
    pub fn create(&mut self, spec: MatrixSpec) -> Result<MatrixId, Error> {
        spec.check()?;
        if self.matrices.iter().any(|matrix| matrix.spec().name == spec.name) {
            return Err(Error::DuplicateName { matrix: spec.name });
        }
        self.matrices.push(match spec.element {
            ElementType::F32 => AnyMatrix::F32(Matrix::new(spec)),
            ElementType::F64 => AnyMatrix::F64(Matrix::new(spec)),
            ElementType::I64 => AnyMatrix::I64(Matrix::new(spec)),
        });
        Ok(MatrixId(self.matrices.len() as u32 - 1))
    }

    /// The specs of all matrices, by identity.
    pub fn specs(&self) -> impl Iterator<Item = &MatrixSpec> {
        self.matrices.iter().map(AnyMatrix::spec)
    }

    /// The agent of a task. A task has one agent; when that is dropped, the task leaves.
    ///
    /// # Panics
    /// When there is no such task.
    pub fn agent(self: &Arc<Self>, task: u32) -> LocalAgent {
        assert!(task < self.task_count, "task {task} of {}", self.task_count);
        LocalAgent::new(Arc::clone(self), task, 0)
    }

    /// The agent of a new task, which starts at the smallest clock of the live ones.
    pub fn join(self: &Arc<Self>) -> Result<LocalAgent, Error> {
        let (task, clock) = self.barrier.join()?;
        Ok(LocalAgent::new(Arc::clone(self), task, clock))
    }

    /// Takes a task out, for example because it died: it holds nobody back any more. False when it had left.
    pub fn remove(&self, task: u32) -> bool {
        self.barrier.leave(task)
    }

    /// All rows that exist, keys ascending, with every push that the live tasks may see: of what is staged under BSP, the
    /// stamps below the smallest clock; all, when no task is live.
    pub fn export(&self, id: MatrixId) -> Result<ExportedRows, Error> {
        with_matrix!(self.matrix(id)?, matrix => matrix.export(self.visibility_bound()))
    }

    /// Replaces all rows, and forgets what is staged. With no slots, the push rule starts them so that the values stand.
    pub fn import(&self, id: MatrixId, rows: &ExportedRows) -> Result<(), Error> {
        with_matrix!(self.matrix(id)?, matrix => matrix.import(rows))
    }

    /// Sizes and counts.
    pub fn stats(&self) -> StoreStats {
        let matrices = self.matrices.iter().map(|any| with_matrix!(any, matrix => matrix.stats()));
        StoreStats { matrices: matrices.collect(), waits: self.barrier.waits() }
    }

    /// Ends the job: whoever waits, and whoever ticks from now on, gets [`Error::Stopped`]. The first reason stays.
    pub fn stop(&self, reason: impl Into<String>) {
        self.barrier.stop(reason.into());
    }

    /// A task has failed, and stays where it is, also when its agent is dropped: whoever has to wait for it gets
    /// [`Error::Stopped`] with the reason at once. All others go on until they have to wait for it, so that under BSP what
    /// they do meanwhile does not depend on time.
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

    pub(crate) fn matrix(&self, id: MatrixId) -> Result<&AnyMatrix, Error> {
        let count = self.matrices.len();
        self.matrices.get(id.0 as usize).ok_or(Error::NoSuchMatrix { id: id.0, count })
    }

    fn visibility_bound(&self) -> Clock {
        self.barrier.minimum()
    }
}
