//! One task's share of the training data, watched: the bytes it has read go to the progress display, and its time.

use data::{Batch, BatchStream, TaskData};

use crate::progress::Progress;

/// Training data of one task.
pub struct Watched<'a> {
    /// The data.
    pub data: TaskData,
    progress: &'a Progress,
    told_bytes: u64,
}

impl<'a> Watched<'a> {
    /// Tells `progress` what is read.
    pub fn new(data: TaskData, progress: &'a Progress) -> Self {
        let told_bytes = data.reader().summary().bytes_read;
        Self { data, progress, told_bytes }
    }

    fn tell(&mut self) {
        let bytes = self.data.reader().summary().bytes_read;
        self.progress.add_bytes(bytes.saturating_sub(self.told_bytes));
        self.told_bytes = bytes;
    }
}

impl BatchStream for Watched<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        self.data.start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        self.tell();
        self.data.next()
    }
}
