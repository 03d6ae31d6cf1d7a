//! What a training job tells while it runs. The command line shows it to people; other programs may use the numbers.

use std::fmt::Debug;

use algo::Epochs;

use crate::report::EpochLine;

/// Receives the progress of one job from its driver. A method that is not implemented does nothing.
#[allow(unused_variables, reason = "the default of each method does nothing")]
pub trait ProgressListener: Debug + Send + Sync {
    /// The data are inspected. `size_bytes` is the size of the input, if known. Called before all other methods except
    /// [`Self::clear`].
    fn started(&self, size_bytes: Option<u64>, epochs: Epochs) {}

    /// A line for people, as the program chooses a setting or ends an epoch.
    fn print_line(&self, line: &str) {}

    /// Tasks have read input bytes since the last call.
    fn add_bytes(&self, count: u64) {}

    /// Tasks have read input bytes in the scan before the first epoch.
    fn add_scanned_bytes(&self, byte_count: u64) {}

    /// The scan has ended: all tasks together train on this number of records in each epoch.
    fn scanned(&self, record_count: u64) {}

    /// Tasks have made steps: the number of their records and the sum of their losses.
    fn step(&self, record_count: u64, loss_sum: f64) {}

    /// All tasks have ended an epoch, of `epoch_count`.
    fn epoch_done(&self, epoch_count: u64, line: &EpochLine) {}

    /// The job has ended: nothing of its progress is shown any more.
    fn clear(&self) {}
}

/// Tells nobody.
#[derive(Clone, Copy, Debug)]
pub struct SilentProgress;

impl ProgressListener for SilentProgress {}
