//! One task's share of the training data, watched: the bytes it has read go to the progress display, and its time.

use std::time::{Duration, Instant};

use data::{Batch, BatchStream, MemoryStream, ReadSummary, TaskData};

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

    fn next_into(&mut self, batch: &mut Batch) -> Result<bool, data::Error> {
        self.tell();
        self.data.next_into(batch)
    }

    fn forget(&mut self) {
        self.data.forget();
    }
}

/// Where validation data come from.
pub enum Validation {
    /// A share of the validation files.
    File(Box<TaskData>),
    /// Records held out of the training data.
    Share(MemoryStream),
}

impl Validation {
    fn stream(&mut self) -> &mut dyn BatchStream {
        match self {
            Self::File(data) => &mut **data,
            Self::Share(batches) => batches,
        }
    }
}

/// Validation data of one task, with the time spent on them: from the start of an epoch to its end, scoring included.
/// They end early when somebody asked to stop.
pub struct Timed<'a> {
    stream: Validation,
    is_told_to_stop: &'a (dyn Fn() -> bool + Sync),
    started: Option<Instant>,
    spent: Duration,
}

impl<'a> Timed<'a> {
    /// Around a stream; `is_told_to_stop` is asked before every batch, and counts its answer.
    pub fn new(stream: Validation, is_told_to_stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { stream, is_told_to_stop, started: None, spent: Duration::ZERO }
    }

    /// What was read of a validation file.
    pub fn summary(&self) -> Option<&ReadSummary> {
        match &self.stream {
            Validation::File(data) => Some(data.reader().summary()),
            Validation::Share(_) => None,
        }
    }

    /// The time so far.
    pub fn spent(&self) -> Duration {
        self.spent
    }
}

impl BatchStream for Timed<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        self.started = Some(Instant::now());
        self.stream.stream().start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        let batch = if (self.is_told_to_stop)() { None } else { self.stream.stream().next()? };
        if batch.is_none() {
            self.spent += self.started.take().map_or(Duration::ZERO, |start| start.elapsed());
        }
        Ok(batch)
    }

    fn forget(&mut self) {
        self.stream.stream().forget();
    }
}
