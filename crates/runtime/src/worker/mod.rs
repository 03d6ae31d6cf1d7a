//! A worker of a job does what the driver requests: it opens its share of the data, runs the tasks, saves the model. It
//! is the same in one process and on a cluster; [`TaskParameters`] is what differs.
//!
//! | file | contents |
//! |---|---|
//! | [`job_handle`] | a running job and its thread |
//! | `job` | handles each message of the driver |
//! | `task_runner` | the threads of the tasks |
//! | `coordinator` | between the tasks and the driver: progress, decisions, stops |
//! | `saves` | how tasks come to save at the same moment |
//! | `checkpoints` | reads and writes checkpoints |
//! | `data_files` | which files are read, and whether they are still the same when a training goes on |
//! | `scan` | reads the data before the first step |
//! | `scoring` | scores records, for a job that does not train |
//! | `semaphore` | how many tasks compute at once |

pub mod checkpoints;
pub mod coordinator;
pub mod data_files;
pub mod job;
pub mod job_handle;
mod saves;
mod scan;
mod scoring;
pub mod semaphore;
pub mod task_runner;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use algo::Families;
use data::FormatTable;
use driver::Error;
use driver::messages::FromWorker;
use matrix::{Agent, FunctionTable, RowBlock};
use model::{MatrixSource, Model};
use rpc::layout::JobLayout;
use rpc::message::JobId;

use crate::cluster::metrics_endpoint::WorkerMetrics;
use crate::interrupt::Interrupt;
use crate::local_data::LocalData;

/// Sends a message to the driver.
pub type MessageSender = Arc<dyn Fn(FromWorker) + Send + Sync>;

/// The parameters of a job as a worker reaches them: through connections to servers, or in a store of its process.
pub trait TaskParameters: Send + Sync {
    /// Creates the agent of a task.
    fn agent(
        &self,
        layout: &JobLayout,
        task: u32,
        functions: &FunctionTable,
    ) -> Result<Box<dyn Agent>, Error>;

    /// Returns access to whole matrices.
    fn open(&self, layout: &JobLayout) -> Result<Box<dyn MatrixAccess>, Error>;

    /// Records the failure of a task whose agent still exists.
    fn on_task_failed(&self, task: u32, reason: &str);

    /// Ends all waits of the tasks.
    fn cancel(&self, reason: &str);
}

/// Access to whole matrices, by their number.
pub trait MatrixAccess: MatrixSource<Error> {
    /// Sets rows. If `replace` is given, all rows that the matrix had are removed before, and room is made for so many.
    fn import(&mut self, matrix: u32, rows: &RowBlock, replace: Option<u64>) -> Result<(), Error>;

    /// Sets the rows of all these blocks, each with the number of its matrix.
    fn import_all(
        &mut self,
        blocks: &mut (dyn Iterator<Item = (u32, RowBlock)> + Send),
    ) -> Result<(), Error> {
        for (matrix, rows) in blocks {
            self.import(matrix, &rows, None)?;
        }
        Ok(())
    }

    /// Gives the rows of the snapshot for a checkpoint, which the driver has had taken, to `write`, in blocks, in no order.
    /// `only_changed`: those that may have changed since the snapshot before.
    fn read_snapshot(
        &mut self,
        matrix: u32,
        only_changed: bool,
        write: &mut dyn FnMut(&RowBlock) -> Result<(), Error>,
    ) -> Result<(), Error>;
}

/// What a worker needs for a job.
pub struct WorkerContext {
    pub job: JobId,
    pub sender: MessageSender,
    pub parameters: Arc<dyn TaskParameters>,
    pub formats: Arc<FormatTable>,
    pub families: Families,
    pub functions: Arc<FunctionTable>,
    /// Ends reading and writing of files, and stops the tasks.
    pub interrupt: Interrupt,
    /// Where the model goes to.
    pub model_target: ModelTarget,
    /// Where the files of this worker are.
    pub local_data: LocalData,
    /// Number of tasks that compute at the same time; none: all of them.
    pub threads: Option<usize>,
    pub metrics: WorkerMetrics,
}

/// Where the model of a job goes to.
#[derive(Clone, Debug)]
pub enum ModelTarget {
    /// The folder that the job names.
    Folder,
    /// The memory of this process.
    Memory(Arc<OnceLock<Model>>),
}

pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
