//! The data streams of one task, with measurement: bytes read are counted, and validation time is measured.

use std::time::{Duration, Instant};

use data::{Batch, BatchStream, MemoryStream, Schema, TaskData};
use driver::coverage::FeatureCoverage;
use driver::totals::{ChunkSummary, TaskSummary};

use crate::coverage_recorder::CoverageRecorder;
use crate::failures::ReadTracker;

/// The training data of one task, whose read bytes are counted.
pub struct MeteredStream<'a> {
    pub data: TaskData,
    on_bytes: &'a (dyn Fn(u64) + Sync),
    reported_bytes: u64,
    at_end: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl<'a> MeteredStream<'a> {
    /// Creates a stream that calls `on_bytes` with the number of bytes read since the last call.
    pub fn new(data: TaskData, on_bytes: &'a (dyn Fn(u64) + Sync)) -> Self {
        let reported_bytes = data.reader().summary().bytes_read;
        Self { data, on_bytes, reported_bytes, at_end: None }
    }

    /// Sets a callback for the end of an epoch: it checks for Ctrl-C, which ends standard input too.
    #[must_use]
    pub fn on_epoch_end(mut self, then: &'a (dyn Fn() -> bool + Sync)) -> Self {
        self.at_end = Some(then);
        self
    }

    fn ended(at_end: Option<&(dyn Fn() -> bool + Sync)>, is_end: bool) {
        if let (Some(at_end), true) = (at_end, is_end) {
            at_end();
        }
    }

    fn report_bytes(&mut self) {
        let bytes = self.data.reader().summary().bytes_read;
        let count = bytes.saturating_sub(self.reported_bytes);
        if count > 0 {
            (self.on_bytes)(count);
        }
        self.reported_bytes = bytes;
    }
}

impl BatchStream for MeteredStream<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        self.data.start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        self.report_bytes();
        let batch = self.data.next()?;
        Self::ended(self.at_end, batch.is_none());
        Ok(batch)
    }

    fn next_into(&mut self, batch: &mut Batch) -> Result<bool, data::Error> {
        self.report_bytes();
        let more = self.data.next_into(batch)?;
        Self::ended(self.at_end, !more);
        Ok(more)
    }

    fn rank_columns(&mut self, keys: &data::KeySet) -> Result<bool, data::Error> {
        self.data.rank_columns(keys)
    }

    fn release_cache(&mut self) {
        self.data.release_cache();
    }
}

/// The source of validation data.
pub enum ValidationSource {
    /// The task's share of the validation files.
    File(Box<TaskData>),
    /// Records held out of the training data.
    Share(MemoryStream),
}

impl ValidationSource {
    fn stream(&mut self) -> &mut dyn BatchStream {
        match self {
            Self::File(data) => &mut **data,
            Self::Share(batches) => batches,
        }
    }
}

/// Validation data of one task, with the time spent on them: from the start of an epoch to its end, including scoring.
/// The stream ends early on Ctrl-C.
pub struct TimedValidation<'a> {
    stream: ValidationSource,
    is_stop_requested: &'a (dyn Fn() -> bool + Sync),
    started: Option<Instant>,
    elapsed: Duration,
    /// Told of the batches of a validation file, with the schema that has the names of columns.
    coverage: Option<(CoverageRecorder, Schema)>,
}

impl<'a> TimedValidation<'a> {
    /// Wraps a stream. It calls `is_told_to_stop`, which records that the answer was used, before every batch.
    pub fn new(stream: ValidationSource, is_told_to_stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            stream,
            is_stop_requested: is_told_to_stop,
            started: None,
            elapsed: Duration::ZERO,
            coverage: None,
        }
    }

    /// Has the batches of a validation file counted by `recorder`. `schema` has the names of columns.
    #[must_use]
    pub fn with_coverage(mut self, recorder: CoverageRecorder, schema: Schema) -> Self {
        self.coverage = Some((recorder, schema));
        self
    }

    /// Returns the summary of a validation file; none for held-out records.
    pub fn take_summary(&mut self) -> Option<ChunkSummary> {
        let ValidationSource::File(data) = &mut self.stream else { return None };
        let names = data.reader_mut().take_dictionary();
        let coverage = match &self.coverage {
            Some((recorder, schema)) => recorder.take(|key| schema.feature_name(&names, key)),
            None => FeatureCoverage::default(),
        };
        Some(ChunkSummary { read: data.reader().summary().clone(), coverage })
    }

    /// Returns the time so far.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

impl BatchStream for TimedValidation<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        self.started = Some(Instant::now());
        if let Some((recorder, _)) = &self.coverage {
            recorder.clear();
        }
        self.stream.stream().start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        let batch = if (self.is_stop_requested)() { None } else { self.stream.stream().next()? };
        if batch.is_none() {
            // Ctrl-C also ends standard input, so the callback must record whether this end is real.
            (self.is_stop_requested)();
            self.elapsed += self.started.take().map_or(Duration::ZERO, |start| start.elapsed());
        }
        match (&self.coverage, &batch) {
            (Some((recorder, _)), Some(batch)) => recorder.start_batch(batch),
            (Some((recorder, _)), None) => recorder.end_batch(),
            (None, _) => {}
        }
        Ok(batch)
    }

    fn release_cache(&mut self) {
        self.stream.stream().release_cache();
    }
}

/// A stream whose batches are counted and which ends at the position of another task's failure.
pub struct CountedStream<'a> {
    stream: &'a mut dyn BatchStream,
    reading: &'a ReadTracker<'a>,
}

impl<'a> CountedStream<'a> {
    /// Wraps the stream that the algorithm reads directly. A [`data::LookAhead`] lies below it, because a batch that the
    /// algorithm only looks at does not count.
    pub fn new(stream: &'a mut dyn BatchStream, reading: &'a ReadTracker<'a>) -> Self {
        Self { stream, reading }
    }
}

impl BatchStream for CountedStream<'_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        self.reading.start_pass();
        self.stream.start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&Batch>, data::Error> {
        Ok(self.next_window(0)?.and_then(<[Batch]>::first))
    }

    fn next_window(&mut self, ahead: usize) -> Result<Option<&[Batch]>, data::Error> {
        let window = if self.reading.may_read() { self.stream.next_window(ahead)? } else { None };
        if window.is_none() {
            self.reading.end_pass();
        }
        Ok(window)
    }

    fn rank_columns(&mut self, keys: &data::KeySet) -> Result<bool, data::Error> {
        self.stream.rank_columns(keys)
    }

    fn release_cache(&mut self) {
        self.stream.release_cache();
    }
}

/// Returns the summary of a task's data.
pub fn task_summary(data: &TaskData, validation: Option<&mut TimedValidation<'_>>) -> TaskSummary {
    let validate_s = validation.as_ref().map_or(0.0, |timed| timed.elapsed().as_secs_f64());
    TaskSummary {
        training: data.reader().summary().clone(),
        cached: data.cache_stats(),
        validation: validation.and_then(TimedValidation::take_summary),
        validate_s,
    }
}
