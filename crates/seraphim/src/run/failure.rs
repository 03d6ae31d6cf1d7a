//! Which failure of a run is told. Tasks fail side by side, and what one does makes others fail in turn; the answer must not
//! depend on which of them was faster. So the others go on to the batch at which the first failure lies, and of all failures
//! the one with the smallest [`FailureRank`] is told.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::exit::Exit;

/// How far a task has come in its data. Those of different tasks are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReadPosition {
    /// Passes over training and validation data that were begun.
    pass: u64,
    /// Batches of this pass that were asked for.
    batch: u64,
}

/// What kind of failure it is, the one to be told first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Severity {
    /// A fault of the program.
    Fault,
    /// Bad data, a full disk, divergence.
    Cause,
    /// Follows from what all tasks have seen together: no records, one class.
    Conclusion,
    /// A wait was too long: the one who was waited for may say why.
    Wait,
}

/// The order in which failures are told: the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FailureRank {
    /// The task was only told that another had failed.
    is_echo: bool,
    position: ReadPosition,
    severity: Severity,
    task: u32,
}

impl FailureRank {
    fn of(error: &Error, position: ReadPosition, task: u32) -> Self {
        use algo::Error as A;
        use matrix::Error as M;
        let severity = match error {
            Error::Panic { .. } => Severity::Fault,
            Error::NoRecords { .. }
            | Error::Conclusion { .. }
            | Error::Algo(A::NoRecords | A::OneClass { .. } | A::ClassCount { .. } | A::DataChanged { .. }) => {
                Severity::Conclusion
            }
            Error::Matrix(M::WaitTimeout { .. })
            | Error::Algo(A::Coordinator { .. } | A::Matrix(M::WaitTimeout { .. })) => Severity::Wait,
            _ => Severity::Cause,
        };
        let is_echo =
            matches!(error, Error::Matrix(M::Stopped { .. }) | Error::Algo(A::Matrix(M::Stopped { .. })));
        Self { is_echo, position, severity, task }
    }

    /// Where the other tasks may stop; none for an echo.
    pub(super) fn limit(self) -> Option<ReadPosition> {
        (!self.is_echo).then_some(self.position)
    }
}

/// A failure that was noted.
pub(super) struct RecordedFailure {
    /// Its place among others.
    pub(super) rank: FailureRank,
    /// For the other tasks.
    pub(super) reason: String,
    /// The exit code of a command that ends with it.
    pub(super) exit: Exit,
}

/// The failures of the tasks of a process.
#[derive(Default)]
pub(super) struct Failures {
    state: Mutex<State>,
    /// Whether there is a limit: asked before the lock is taken.
    is_limited: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Of the first failure.
    rank: Option<FailureRank>,
    error: Option<Error>,
    limit: Option<ReadPosition>,
    /// Tasks that read, or compute with what they have read.
    busy_count: u32,
    on_idle: Option<Box<dyn FnOnce() + Send>>,
}

impl State {
    /// What is to be done now that no task reads any more.
    fn take_idle_callback(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        if self.busy_count == 0 { self.on_idle.take() } else { None }
    }
}

impl Failures {
    /// How `task` ended, a panic included.
    pub(super) fn record<T>(
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
        let reason = format!("task {} failed: {error}", reading.task);
        let exit = error.exit();
        if let Some(limit) = rank.limit() {
            self.limit_to(limit);
        }
        let mut state = self.lock();
        if state.rank.is_none_or(|first| rank < first) {
            (state.rank, state.error) = (Some(rank), Some(error));
        }
        Some(RecordedFailure { rank, reason, exit })
    }

    /// No task needs to read behind `position`: something failed there, perhaps in another process.
    pub(super) fn limit_to(&self, position: ReadPosition) {
        let mut state = self.lock();
        state.limit = Some(state.limit.map_or(position, |limit| limit.min(position)));
        self.is_limited.store(true, Ordering::SeqCst);
    }

    /// Calls `then` once no task reads any more.
    pub(super) fn on_idle(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.on_idle = Some(Box::new(then));
        let now = state.take_idle_callback();
        drop(state);
        if let Some(now) = now {
            now();
        }
    }

    /// The place of the first failure among those of other processes.
    pub(super) fn rank(&self) -> Option<FailureRank> {
        self.lock().rank
    }

    /// The first failure, if there was one and nobody has taken it yet.
    pub(super) fn take(&self) -> Result<(), Error> {
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

/// Something is under way that may fail: nothing is settled while this lives.
pub(super) struct BusyGuard(Arc<Failures>);

impl BusyGuard {
    pub(super) fn new(failures: &Arc<Failures>) -> Self {
        failures.add_busy(true);
        Self(Arc::clone(failures))
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.add_busy(false);
    }
}

/// The reading of one task: counts its batches, and ends it where the failure of another task lies.
pub(super) struct ReadTracker<'a> {
    failures: &'a Failures,
    task: u32,
    pass: AtomicU64,
    batch: AtomicU64,
    is_busy: AtomicBool,
}

impl<'a> ReadTracker<'a> {
    /// Of a task that is about to begin.
    pub(super) fn new(failures: &'a Failures, task: u32) -> Self {
        failures.add_busy(true);
        let (pass, batch) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { failures, task, pass, batch, is_busy: AtomicBool::new(true) }
    }

    /// Whose it is.
    pub(super) fn task(&self) -> u32 {
        self.task
    }

    /// Another pass over the data begins.
    pub(super) fn start_pass(&self) {
        self.pass.fetch_add(1, Ordering::Relaxed);
        self.batch.store(0, Ordering::Relaxed);
        self.set_busy(true);
    }

    /// The next batch is asked for. No: it is not worth reading, since a failure lies before it.
    pub(super) fn may_read(&self) -> bool {
        self.batch.fetch_add(1, Ordering::Relaxed);
        let may = !self.failures.is_limited.load(Ordering::SeqCst)
            || self.failures.lock().limit.is_none_or(|limit| self.position() <= limit);
        if !may {
            self.end_pass();
        }
        may
    }

    /// The pass is over: what the task does now may have to wait for others.
    pub(super) fn end_pass(&self) {
        self.set_busy(false);
    }

    fn position(&self) -> ReadPosition {
        ReadPosition { pass: self.pass.load(Ordering::Relaxed), batch: self.batch.load(Ordering::Relaxed) }
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
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Error::Panic { task, message: text.unwrap_or("no message").to_owned() }
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
        Err(Error::InvalidRequest { what: reason.into(), advice: String::new() })
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
        assert!(failures.record(&one, caught).is_some_and(|noted| noted.reason.contains("task 1")));
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
