//! The tasks of a job on one worker: threads that train with a remote agent, and the coordinator between them and the
//! driver.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use algo::{Coordinator, EpochDecision, EpochReport, Job, StepDecision, TrainTask};
use data::{BatchStream, LookAhead, TaskData};
use matrix::{FunctionTable, Prefetch};
use rpc::message::JobId;
use worker::{CacheCounts, CancellationToken, JobLayout, Multiplexer, PrefetchCounts, RemoteAgent};

use super::messages::{FromWorker, HexEncoded, split_names};
use super::metrics_endpoint::WorkerMetrics;
use super::salvage::EpochProgress;
use crate::error::Error;
use crate::progress::Progress;
use crate::report::EpochLine;
use crate::run::failure::{BusyGuard, Failures, ReadPosition, ReadTracker};
use crate::run::input::{TaskDataPlan, TrainingInput};
use crate::run::run_info::with_job_context;
use crate::run::task_streams::{CountedStream, MeteredStream, TimedValidation};
use crate::run::totals::TaskSummary;

/// Time between two progress reports to the driver.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Sends a message to the driver.
pub(super) type MessageSender = Arc<dyn Fn(FromWorker) + Send + Sync>;

/// The coordinator between the tasks of this worker and the driver.
pub(super) struct RemoteCoordinator {
    say: MessageSender,
    job: JobId,
    gauges: WorkerMetrics,
    wait_limit: Duration,
    /// Ends the waits of tasks for servers.
    cancellation: CancellationToken,
    stop_requested: AtomicBool,
    failures: Arc<Failures>,
    state: Mutex<State>,
    decided: Condvar,
}

#[derive(Default)]
struct State {
    verdict: Option<(u64, EpochDecision)>,
    /// The master is lost, so no decision will arrive.
    master_lost: bool,
    epoch_progress: EpochProgress,
    failure: Option<String>,
    steps: u64,
    records: u64,
    loss_sum: f64,
    reported_at: Option<Instant>,
    unreported_bytes: u64,
}

impl RemoteCoordinator {
    pub(super) fn new(
        say: MessageSender,
        job: JobId,
        gauges: WorkerMetrics,
        wait_limit: Duration,
        cancellation: CancellationToken,
    ) -> Arc<Self> {
        let (stop, failures, state) = (AtomicBool::new(false), Arc::default(), Mutex::default());
        let decided = Condvar::new();
        Arc::new(Self {
            say,
            job,
            gauges,
            wait_limit,
            cancellation,
            stop_requested: stop,
            failures,
            state,
            decided,
        })
    }

    /// Returns the failures of the tasks of this worker.
    pub(super) fn failures(&self) -> &Arc<Failures> {
        &self.failures
    }

    /// Handles a failure on another worker: the tasks read on to `position`, because one of them may fail before it.
    pub(super) fn finish_reading(&self, position: Option<ReadPosition>) {
        if let Some(position) = position {
            self.failures.limit_to(position);
        }
        let say = Arc::clone(&self.say);
        self.failures.on_idle(move || say(FromWorker::Settled {}));
    }

    /// Sets the driver's decision.
    pub(super) fn set_verdict(&self, epoch: u64, verdict: EpochDecision, line: EpochLine) {
        let mut state = self.lock();
        state.verdict = Some((epoch, verdict));
        state.epoch_progress.epochs.push(line);
        drop(state);
        self.decided.notify_all();
    }

    /// Handles the loss of the master: the tasks stop at their next step, wait at the end of the epoch, and leave.
    pub(super) fn on_master_lost(&self) {
        self.stop();
        self.lock().master_lost = true;
        self.decided.notify_all();
    }

    /// Returns how far the tasks of this worker have come.
    pub(super) fn epoch_progress(&self) -> EpochProgress {
        self.lock().epoch_progress.clone()
    }

    /// Requests the tasks to stop at their next step.
    pub(super) fn stop(&self) {
        self.stop_requested.store(true, Ordering::SeqCst);
    }

    /// Fails the job: all waits for other tasks and for servers end.
    pub(super) fn fail(&self, reason: &str) {
        self.stop();
        self.lock().failure.get_or_insert_with(|| reason.to_owned());
        self.decided.notify_all();
        self.cancellation.cancel(reason);
    }

    fn is_stop_requested(&self) -> bool {
        self.stop_requested.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the accumulated progress if the last report is old enough, or in any case if `all` is true.
    fn report_progress(&self, state: &mut State, all: bool) {
        let due = state.reported_at.is_none_or(|told| told.elapsed() >= REPORT_INTERVAL);
        if state.steps > 0 && (due || all) {
            state.reported_at = Some(Instant::now());
            let (steps, records) = (std::mem::take(&mut state.steps), std::mem::take(&mut state.records));
            let (loss_sum, bytes) =
                (std::mem::take(&mut state.loss_sum), std::mem::take(&mut state.unreported_bytes));
            (self.say)(FromWorker::Progress { steps, records, loss_sum, bytes });
        }
    }

    fn progress(&self, task: u32, record_count: u64, loss_sum: f64) -> StepDecision {
        self.gauges.record_step(self.job, task, record_count);
        let mut state = self.lock();
        state.steps += 1;
        state.records += record_count;
        if loss_sum.is_finite() {
            state.loss_sum += loss_sum;
        }
        self.report_progress(&mut state, false);
        if self.is_stop_requested() { StepDecision::Stop } else { StepDecision::Continue }
    }

    /// Reports the epoch of a task to the driver, and waits for the decision.
    fn epoch(&self, report: EpochReport, opened: &TrainingInput) -> Result<EpochDecision, algo::Error> {
        let (task, epoch) = (report.task, report.epoch);
        let mut state = self.lock();
        self.report_progress(&mut state, true);
        state.epoch_progress.last = Some((epoch, report.epoch_count));
        // Sent under the lock, so that the last report of this worker contains the bad lines of all its tasks.
        let bad_lines = opened.bad_lines();
        (self.say)(FromWorker::Epoch { report: HexEncoded(report), bad_lines });
        let deadline = Instant::now() + self.wait_limit;
        loop {
            if let Some(reason) = &state.failure {
                return Err(matrix::Error::Stopped { reason: reason.clone() }.into());
            }
            if let Some((decided, verdict)) = state.verdict
                && decided >= epoch
            {
                return Ok(verdict);
            }
            if state.master_lost {
                return Ok(EpochDecision::Stop);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let reason = format!(
                    "task {task} waited {} s at the end of epoch {epoch} for the master's decision; raise --wait-limit \
                     if this is expected",
                    self.wait_limit.as_secs()
                );
                return Err(algo::Error::Coordinator { reason });
            }
            state = self.decided.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The coordinator of tasks that read `TrainingInput`: its epoch reports include their bad lines.
struct DataCoordinator<'a> {
    coordinator: &'a RemoteCoordinator,
    opened: &'a TrainingInput,
}

impl Coordinator for DataCoordinator<'_> {
    fn report_progress(&self, task: u32, record_count: u64, loss_sum: f64) -> StepDecision {
        self.coordinator.progress(task, record_count, loss_sum)
    }

    fn report_epoch(&self, report: EpochReport) -> Result<EpochDecision, algo::Error> {
        self.coordinator.epoch(report, self.opened)
    }
}

/// Runs the tasks of a worker.
pub(super) struct TaskRunner<'a> {
    pub(super) plan: TaskDataPlan<'a>,
    pub(super) algorithm: &'a dyn Job,
    pub(super) layout: &'a JobLayout,
    pub(super) token: &'a [u8],
    pub(super) functions: &'a FunctionTable,
    pub(super) model: &'a algo::Model,
    pub(super) resumed: bool,
    pub(super) coordinator: &'a RemoteCoordinator,
    pub(super) say: &'a MessageSender,
    pub(super) throttle: Throttle,
}

/// Slows a worker down, for tests: its tasks pause before every N-th batch. The pauses of different tasks are at
/// different steps, unless there are more tasks than steps between two pauses.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    /// Length of a pause; 0: no pause.
    pub pause: Duration,
    /// Pause before every N-th batch; 1: before every batch.
    pub every: u64,
}

impl Throttle {
    /// Whether a task pauses before a batch, counted from 0 over all epochs.
    fn is_due(self, task: u32, task_count: u32, batch: u64) -> bool {
        let turn = u64::from(task) * self.every / u64::from(task_count);
        !self.pause.is_zero() && batch % self.every == turn
    }
}

impl TaskRunner<'_> {
    /// Runs all tasks to their end; `begun` is dropped when all of them read. It reports each failure to the driver,
    /// which ends the job.
    pub(super) fn run(&self, shares: Vec<TaskData>, begun: Option<BusyGuard>) -> Result<(), Error> {
        let validations = self.plan.validation_readers()?;
        let progress = Progress::silent();
        let multiplexer = (self.plan.tasks.len() > 1).then(Multiplexer::default);
        let failed_agents = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for (task, (share, validation)) in
                self.plan.tasks.clone().zip(shares.into_iter().zip(validations))
            {
                let (progress, multiplexer, failed_agents) = (&progress, multiplexer.clone(), &failed_agents);
                let reading = ReadTracker::new(self.coordinator.failures(), task);
                scope.spawn(move || {
                    let mut data = MeteredStream::new(share, progress);
                    let is_told_to_stop = || self.coordinator.is_stop_requested();
                    let mut validation = self.plan.validation_stream(validation, &mut data, &is_told_to_stop);
                    let mut agent = None;
                    let run = || {
                        let agent = agent.insert(self.agent(task, multiplexer)?);
                        let TrainingInput { source, needs, .. } = self.plan.opened;
                        let (share, rule) = (needs.validation_share, needs.label_rule);
                        self.train(agent, &reading, &mut data, validation.as_mut()).map_err(|error| {
                            with_job_context(error, self.plan.job, share, rule, source.schema())
                        })
                    };
                    let ended = std::panic::catch_unwind(AssertUnwindSafe(run));
                    if let Some(noted) = self.coordinator.failures().record(&reading, ended) {
                        tracing::warn!(
                            job = self.layout.job,
                            task,
                            reason = noted.reason,
                            "a task failed on this worker"
                        );
                        // The agent is kept, so that other tasks do not take this one for a task that has finished.
                        failed_agents.lock().unwrap_or_else(PoisonError::into_inner).extend(agent);
                        let (error, exit) = (noted.reason, noted.exit as u8);
                        (self.say)(FromWorker::Failed { error, exit, rank: Some(noted.rank) });
                        return;
                    }
                    let summary = HexEncoded(TaskSummary::of(&data.data, validation.as_ref()));
                    let names = data.data.reader_mut().take_dictionary();
                    split_names(names, |names| (self.say)(FromWorker::Names { names }));
                    (self.say)(FromWorker::TaskEnded { task, summary });
                });
            }
            drop(begun);
        });
        Ok(())
    }

    fn agent(&self, task: u32, multiplexer: Option<Multiplexer>) -> Result<RemoteAgent, Error> {
        let mut agent = RemoteAgent::new(self.layout.clone(), task, self.token.to_vec())
            .map_err(Error::process)?
            .with_functions(self.functions.clone())
            .with_cancellation(self.coordinator.cancellation.clone());
        if let Some(multiplexer) = multiplexer {
            agent = agent.with_multiplexer(multiplexer);
        }
        let gauges = &self.coordinator.gauges;
        gauges.add_task(self.layout.job, task, agent.shared_stats(), self.layout.lanes.len());
        Ok(agent)
    }

    /// Trains a task to its end. The algorithm can look ahead at its batches if the layout lets it prefetch.
    fn train(
        &self,
        agent: &mut RemoteAgent,
        reading: &ReadTracker<'_>,
        data: &mut MeteredStream<'_>,
        validation: Option<&mut TimedValidation<'_>>,
    ) -> Result<(), Error> {
        let (slowness, task, task_count) = (self.throttle, reading.task(), self.layout.task_count);
        let mut paced = ThrottledStream { stream: data, throttle: slowness, task, task_count, batch: 0 };
        let mut validation = validation.map(|stream| CountedStream::new(stream, reading));
        let validation = validation.as_mut().map(|stream| stream as &mut dyn BatchStream);
        let mut look_ahead;
        let data: &mut dyn BatchStream = match self.layout.prefetch {
            Prefetch::Off => &mut paced,
            Prefetch::Exact | Prefetch::Stale => {
                look_ahead = LookAhead::new(&mut paced);
                &mut look_ahead
            }
        };
        let data = &mut CountedStream::new(data, reading);
        let coordinator = &DataCoordinator { coordinator: self.coordinator, opened: self.plan.opened };
        let (model, resumed) = (self.model, self.resumed);
        self.algorithm.train(TrainTask { agent, data, validation, coordinator, model, resumed })?;
        let PrefetchCounts { sent, used, dropped } = agent.prefetch_counts();
        tracing::debug!(task, sent, used, dropped, "prefetched pulls");
        let CacheCounts { hits, misses, evictions: evicted } = agent.cache_counts();
        tracing::debug!(task, hits, misses, evicted, "cached rows");
        Ok(())
    }
}

/// A stream that pauses before batches, for slow workers in tests.
struct ThrottledStream<'a, 'b> {
    stream: &'a mut MeteredStream<'b>,
    throttle: Throttle,
    task: u32,
    task_count: u32,
    batch: u64,
}

impl ThrottledStream<'_, '_> {
    fn pause(&mut self) {
        if self.throttle.is_due(self.task, self.task_count, self.batch) {
            std::thread::sleep(self.throttle.pause);
        }
        self.batch += 1;
    }
}

impl BatchStream for ThrottledStream<'_, '_> {
    fn start_epoch(&mut self, epoch: u64) -> Result<(), data::Error> {
        self.stream.start_epoch(epoch)
    }

    fn next(&mut self) -> Result<Option<&data::Batch>, data::Error> {
        self.pause();
        self.stream.next()
    }

    fn next_into(&mut self, batch: &mut data::Batch) -> Result<bool, data::Error> {
        self.pause();
        self.stream.next_into(batch)
    }

    fn release_cache(&mut self) {
        self.stream.release_cache();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_pause_in_turns() {
        let pauses = |every: u64| -> Vec<Vec<u64>> {
            let slowness = Throttle { pause: Duration::from_millis(1), every };
            (0..4).map(|task| (0..16).filter(|batch| slowness.is_due(task, 4, *batch)).collect()).collect()
        };
        assert_eq!(pauses(8), [[0, 8], [2, 10], [4, 12], [6, 14]]);
        assert!(pauses(1).iter().all(|batches| batches.len() == 16), "before every batch");
        let never = Throttle { pause: Duration::ZERO, every: 1 };
        assert!(!never.is_due(0, 4, 0));
    }
}
