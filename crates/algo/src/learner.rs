//! The training of one task, as each family writes it.

use crate::error::Error;
use crate::metric::MetricAccumulator;
use crate::train_task::TrainTask;

/// The training of one task, epoch by epoch.
pub trait Learner {
    /// Trains an epoch, from 0. When it returns, every push of every task is visible, and no task pushes before the
    /// next call of one of these functions. `None`: all tasks save their states within the epoch; the next call
    /// continues it.
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error>;

    /// Writes the matrices of the model as they are after the last epoch. When it returns, every task can read them. A
    /// learner whose pushes change the model itself has nothing to do. It is called at every task or at none: before a
    /// validation, and at the end of training.
    fn write_model(&mut self, _task: &mut TrainTask<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The metrics of the task's share of the validation data, or of what the learner has held out, if it finds them itself.
    /// `None`: the validation data, if there are any, are scored with the model.
    fn validate(&mut self, _task: &mut TrainTask<'_>) -> Result<Option<MetricAccumulator>, Error> {
        Ok(None)
    }

    /// What the task remembers besides the matrices, for [`crate::Job::begin`]. It is made with [`crate::task_loop::encode`]. What the data say
    /// again when they are read again need not be in it.
    fn save_state(&self) -> Result<Vec<u8>, Error>;
}

/// How an epoch of a task has ended.
#[derive(Clone, Debug)]
pub struct EpochEnd {
    /// Metrics from the score of each record of the task before the update of its batch.
    pub training: MetricAccumulator,
    /// Records that the task has read, which may be several times those of the metrics.
    pub record_count: u64,
    /// The number of epochs unless training ends early, the same at every task.
    pub epoch_count: u64,
    /// A task was told to stop before its data ended; the same at every task.
    pub is_stopped: bool,
    /// No epoch follows; the same at every task.
    pub is_last: bool,
    /// A message to the user. That of task 0 is shown.
    pub notice: Option<String>,
}

impl EpochEnd {
    /// The end of the only epoch of a family that reads its data once.
    pub fn of_last(training: MetricAccumulator) -> Self {
        let record_count = training.record_count();
        Self { training, record_count, epoch_count: 1, is_stopped: false, is_last: true, notice: None }
    }
}
