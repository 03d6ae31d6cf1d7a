//! Chooses which failure of a run is reported. Tasks fail concurrently, and one failure can cause others; the report
//! must not depend on which task is faster. So the other tasks continue to the batch of the first failure, and the
//! failure with the smallest [`FailureRank`] is reported.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driver::Error;
use driver::failure::{FailureRank, ReadPosition};
use job::Exit;

/// A failure of a task as [`Failures::record`] returns it.
pub struct RecordedFailure {
    /// Order among the failures of all tasks.
    pub rank: FailureRank,
    /// The text of the error.
    pub error: String,
    pub exit: Exit,
    /// As [`Error::is_loss`] returns it.
    pub is_loss: bool,
}

/// The failures of the tasks of one process.
#[derive(Default)]
pub struct Failures {
    state: Mutex<State>,
    /// Whether `State::limit` is set; checked before the lock is taken.
    is_limited: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Rank of the first failure.
    rank: Option<FailureRank>,
    error: Option<Error>,
    limit: Option<ReadPosition>,
    /// Number of tasks that read, or compute with what they have read.
    busy_count: u32,
    on_idle: Option<Box<dyn FnOnce() + Send>>,
}

impl State {
    /// Returns the callback if no task reads any more.
    fn take_idle_callback(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        if self.busy_count == 0 { self.on_idle.take() } else { None }
    }
}

impl Failures {
    /// Records how a task ended; a panic is a failure too.
    pub fn record<T>(
        &self,
        reading: &ReadTracker<'_>,
        ended: std::thread::Result<Result<T, Error>>,
    ) -> Option<RecordedFailure> {
        let error = match ended {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => error,
            Err(panic) => panic_error(reading.task, &*panic),
        };
        let rank = FailureRank::of(&error, reading.position(), reading.task);
        let text = error.to_string();
        let (exit, is_loss) = (error.exit(), error.is_loss());
        if let Some(limit) = rank.limit() {
            self.limit_to(limit);
        }
        let mut state = self.lock();
        if state.rank.is_none_or(|first| rank < first) {
            (state.rank, state.error) = (Some(rank), Some(error));
        }
        Some(RecordedFailure { rank, error: text, exit, is_loss })
    }

    /// Sets a limit: something failed at `position`, perhaps in another process, so no task needs to read behind it.
    pub fn limit_to(&self, position: ReadPosition) {
        let mut state = self.lock();
        state.limit = Some(state.limit.map_or(position, |limit| limit.min(position)));
        self.is_limited.store(true, Ordering::SeqCst);
    }

    /// Calls `then` when no task reads any more.
    pub fn on_idle(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.on_idle = Some(Box::new(then));
        let now = state.take_idle_callback();
        drop(state);
        if let Some(now) = now {
            now();
        }
    }

    /// Returns the rank of the first failure, which is compared with those of other processes.
    pub fn rank(&self) -> Option<FailureRank> {
        self.lock().rank
    }

    /// Returns the first failure as an error, once.
    pub fn take(&self) -> Result<(), Error> {
        self.lock().error.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_busy(&self, is_busy: bool) {
        let mut state = self.lock();
        state.busy_count = if is_busy { state.busy_count + 1 } else { state.busy_count - 1 };
        let now = state.take_idle_callback();
        drop(state);
        if let Some(now) = now {
            now();
        }
    }
}

/// While this value exists, some work is in progress that may fail, so the failures are not idle.
pub struct BusyGuard(Arc<Failures>);

impl BusyGuard {
    pub fn new(failures: &Arc<Failures>) -> Self {
        failures.add_busy(true);
        Self(Arc::clone(failures))
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.add_busy(false);
    }
}

/// Tracks the reading of one task: counts its batches, and stops it at the limit of [`Failures`].
pub struct ReadTracker<'a> {
    failures: &'a Failures,
    task: u32,
    pass: AtomicU64,
    batch: AtomicU64,
    is_busy: AtomicBool,
}

impl<'a> ReadTracker<'a> {
    /// Creates the tracker of a task that is about to start.
    pub fn new(failures: &'a Failures, task: u32) -> Self {
        failures.add_busy(true);
        let (pass, batch) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { failures, task, pass, batch, is_busy: AtomicBool::new(true) }
    }

    pub fn task(&self) -> u32 {
        self.task
    }

    /// Starts another pass over the data.
    pub fn start_pass(&self) {
        self.pass.fetch_add(1, Ordering::Relaxed);
        self.batch.store(0, Ordering::Relaxed);
        self.set_busy(true);
    }

    /// Counts the next batch and returns whether to read it; false if a failure lies before it.
    pub fn may_read(&self) -> bool {
        self.batch.fetch_add(1, Ordering::Relaxed);
        let may = !self.failures.is_limited.load(Ordering::SeqCst)
            || self.failures.lock().limit.is_none_or(|limit| self.position() <= limit);
        if !may {
            self.end_pass();
        }
        may
    }

    /// Ends the pass: the task may now have to wait for other tasks.
    pub fn end_pass(&self) {
        self.set_busy(false);
    }

    fn position(&self) -> ReadPosition {
        ReadPosition::new(self.pass.load(Ordering::Relaxed), self.batch.load(Ordering::Relaxed))
    }

    fn set_busy(&self, is_busy: bool) {
        if self.is_busy.swap(is_busy, Ordering::Relaxed) != is_busy {
            self.failures.add_busy(is_busy);
        }
    }
}

impl Drop for ReadTracker<'_> {
    fn drop(&mut self) {
        self.set_busy(false);
    }
}

fn panic_error(task: u32, panic: &(dyn Any + Send)) -> Error {
    Error::Panic { task, message: panic_message(panic).to_owned() }
}

/// Returns the message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reading: &ReadTracker<'_>, batches: u64) {
        reading.start_pass();
        for _ in 0..batches {
            assert!(reading.may_read());
        }
    }

    fn failed(reason: &str) -> Result<(), Error> {
        Err(Error::request(reason, String::new()))
    }

    #[test]
    fn the_failure_of_the_earliest_batch_is_told_then_that_of_the_smallest_task() {
        let failures = Failures::default();
        let (zero, one, two) =
            (ReadTracker::new(&failures, 0), ReadTracker::new(&failures, 1), ReadTracker::new(&failures, 2));
        read(&zero, 4);
        read(&one, 3);
        read(&two, 3);
        failures.record(&zero, Ok(failed("at batch 4")));
        failures.record(&two, Ok(failed("two at batch 3")));
        failures.record(&one, Ok(failed("one at batch 3")));
        assert!(failures.take().unwrap_err().to_string().contains("one at batch 3"));
    }

    #[test]
    fn what_follows_from_a_failure_is_told_only_when_nothing_else_is_there() {
        let failures = Failures::default();
        let (zero, one) = (ReadTracker::new(&failures, 0), ReadTracker::new(&failures, 1));
        let echo = matrix::Error::Stopped { reason: "task 1 failed".into() };
        assert!(failures.record(&zero, Ok::<Result<(), _>, _>(Err(echo.into()))).is_some());
        let caught = std::panic::catch_unwind(|| -> Result<(), Error> { panic!("broken") });
        read(&one, 2);
        assert!(failures.record(&one, caught).is_some_and(|noted| noted.error.contains("broken")));
        assert!(failures.record(&one, Ok(Ok(()))).is_none());
        assert!(matches!(failures.take(), Err(Error::Panic { task: 1, .. })));
    }

    #[test]
    fn the_other_tasks_read_as_far_as_the_failure_and_then_all_is_settled() {
        let failures = Failures::default();
        let (zero, one) = (ReadTracker::new(&failures, 0), ReadTracker::new(&failures, 1));
        let settled = Arc::new(AtomicBool::new(false));
        read(&zero, 3);
        read(&one, 1);
        failures.record(&zero, Ok(failed("at batch 3")));
        let seen = settled.clone();
        failures.on_idle(move || seen.store(true, Ordering::SeqCst));
        drop(zero);
        assert!(one.may_read() && one.may_read(), "batches 2 and 3");
        assert!(!settled.load(Ordering::SeqCst));
        assert!(!one.may_read(), "batch 4");
        assert!(settled.load(Ordering::SeqCst));
    }
}
