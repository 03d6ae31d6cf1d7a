//! One task's share of the training data, watched: the bytes it has read go to the progress display, and its time.

use std::time::{Duration, Instant};

use data::{Batch, BatchStream, MemoryStream, ReadSummary, TaskData};

use super::failure::Reading;
use crate::progress::Progress;

/// Training data of one task.
pub struct Watched<'a> {
    /// The data.
    pub data: TaskData,
    progress: &'a Progress,
    told_bytes: u64,
    at_end: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl<'a> Watched<'a> {
    /// Tells `progress` what is read.
    pub fn new(data: TaskData, progress: &'a Progress) -> Self {
        let told_bytes = data.reader().summary().bytes_read;
        Self { data, progress, told_bytes, at_end: None }
    }

    /// `then` is called when an epoch has come to its end: standard input ends also when somebody asked to stop.
    pub(super) fn at_end(mut self, then: &'a (dyn Fn() -> bool + Sync)) -> Self {
        self.at_end = Some(then);
        self
    }

    fn ended(at_end: Option<&(dyn Fn() -> bool + Sync)>, is_end: bool) {
        if let (Some(at_end), true) = (at_end, is_end) {
            at_end();
        }
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
        let batch = self.data.next()?;
        Self::ended(self.at_end, batch.is_none());
        Ok(batch)
    }

    fn next_into(&mut self, batch: &mut Batch) -> Result<bool, data::Error> {
        self.tell();
        let more = self.data.next_into(batch)?;
        Self::ended(self.at_end, !more);
        Ok(more)
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
            // Standard input ends when nobody wants to wait for it any more.
            (self.is_told_to_stop)();
            self.spent += self.started.take().map_or(Duration::ZERO, |start| start.elapsed());
        }
        Ok(batch)
    }

    fn forget(&mut self) {
        self.stream.stream().forget();
    }
}

/// A stream whose batches are counted, and which ends where the failure of another task lies.
pub(super) struct Counted<'a> {
    stream: &'a mut dyn BatchStream,
    reading: &'a Reading<'a>,
}

impl<'a> Counted<'a> {
    /// As the algorithm sees it: nothing may read ahead of it.
    pub(super) fn new(stream: &'a mut dyn BatchStream, reading: &'a Reading<'a>) -> Self {
        Self { stream, reading }
    }
}

impl BatchStream for Counted<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        self.reading.start_pass();
        self.stream.start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        let batch = if self.reading.may_read() { self.stream.next()? } else { None };
        if batch.is_none() {
            self.reading.end_pass();
        }
        Ok(batch)
    }

    fn forget(&mut self) {
        self.stream.forget();
    }
}
