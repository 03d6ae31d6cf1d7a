//! The coordinator of the tasks of one worker: it reports their progress to the driver, waits for the driver's decision
//! after each epoch, and passes stops and failures to the tasks.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use algo::{Coordinator, EpochDecision, EpochReport, StepDecision, TaskState};
use driver::failure::ReadPosition;
use driver::messages::FromWorker;
use matrix::Clock;

use crate::failures::Failures;
use crate::input::TrainingInput;
use crate::worker::saves::{BeforeStep, Saves};
use crate::worker::semaphore::Semaphore;
use crate::worker::{MessageSender, WorkerContext, lock};

/// Time between two progress reports to the driver.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum wait of a task for a decision. The driver has the limit of the job, and reports who is late.
const DECISION_LIMIT: Duration = Duration::from_hours(24);

/// The coordinator between the tasks of this worker and the driver.
pub struct TaskCoordinator {
    context: WorkerContext,
    stop_requested: AtomicBool,
    failures: Arc<Failures>,
    state: Mutex<State>,
    decided: Condvar,
}

#[derive(Default)]
struct State {
    decision: Option<(u64, EpochDecision)>,
    failure: Option<String>,
    saves: Saves,
    unreported: Unreported,
    busy_clock: Option<BusyClock>,
    reported_at: Option<Instant>,
}

/// The time in which the tasks have computed.
struct BusyClock {
    permits: Arc<Semaphore>,
    reported: Duration,
}

impl BusyClock {
    fn new(permits: Arc<Semaphore>) -> Self {
        let reported = permits.busy_time();
        Self { permits, reported }
    }

    /// Seconds since the last call.
    fn take(&mut self) -> f64 {
        let now = self.permits.busy_time();
        let last = std::mem::replace(&mut self.reported, now);
        now.saturating_sub(last).as_secs_f64()
    }
}

/// Sums since the last report.
#[derive(Clone, Copy, Default)]
struct Unreported {
    steps: u64,
    records: u64,
    loss_sum: f64,
    bytes: u64,
    scanned_bytes: u64,
}

impl TaskCoordinator {
    pub fn new(context: WorkerContext) -> Arc<Self> {
        Arc::new(Self {
            context,
            stop_requested: AtomicBool::new(false),
            failures: Arc::default(),
            state: Mutex::default(),
            decided: Condvar::new(),
        })
    }

    /// Returns what the worker needs for the job.
    pub fn context(&self) -> &WorkerContext {
        &self.context
    }

    /// Returns the failures of the tasks of this worker.
    pub fn failures(&self) -> &Arc<Failures> {
        &self.failures
    }

    /// Sends a message to the driver.
    pub fn send(&self, message: FromWorker) {
        (self.context.sender)(message);
    }

    /// Handles a failure, perhaps on another worker: the tasks read on to `position`, because one of them may fail
    /// before it.
    pub fn finish_reading(&self, position: Option<ReadPosition>) {
        if let Some(position) = position {
            self.failures.limit_to(position);
        }
        let sender: MessageSender = Arc::clone(&self.context.sender);
        self.failures.on_idle(move || sender(FromWorker::ReadingFinished));
    }

    /// Sets the driver's decision.
    pub fn set_decision(&self, epoch: u64, decision: EpochDecision) {
        let mut state = self.lock();
        state.decision = Some((epoch, decision));
        state.saves.end_epoch();
        drop(state);
        self.decided.notify_all();
    }

    /// Begins with these tasks.
    pub fn begin(&self, tasks: Range<u32>) {
        self.lock().saves.set_tasks(tasks);
    }

    /// Measures from now on for how long tasks with these permits compute.
    pub fn measure(&self, permits: Option<Arc<Semaphore>>) {
        self.lock().busy_clock = permits.map(BusyClock::new);
    }

    /// Answers whether the tasks can save at a clock.
    pub fn plan_save(&self, plan: u64, clock: Option<u64>) {
        let (is_possible, clock) = self.lock().saves.plan(plan, clock);
        self.send(FromWorker::SavePlanned { plan, is_possible, clock });
    }

    pub fn decide_save(&self, plan: u64, is_confirmed: bool) {
        self.lock().saves.decide(plan, is_confirmed);
        self.decided.notify_all();
    }

    /// Lets the tasks go on that have saved their states.
    pub fn end_save(&self) {
        self.lock().saves.end();
        self.decided.notify_all();
    }

    /// Returns the states of the tasks that have saved.
    pub fn take_saved_states(&self) -> Vec<TaskState> {
        self.lock().saves.take_states()
    }

    /// Requests the tasks to stop at their next step.
    pub fn stop(&self) {
        self.stop_requested.store(true, Ordering::SeqCst);
    }

    /// Fails the job: all waits for other tasks and for the parameters end.
    pub fn fail(&self, reason: &str) {
        self.stop();
        self.lock().failure.get_or_insert_with(|| reason.to_owned());
        self.decided.notify_all();
        self.context.parameters.cancel(reason);
    }

    /// Whether the job has failed or ended, so that its tasks end.
    pub fn has_failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// Whether the tasks must stop now. A task that stops leaves its epoch incomplete, and the report of that epoch
    /// says so.
    pub fn is_stop_requested(&self) -> bool {
        // Ctrl-C also ends standard input, so it must be noticed at once.
        if self.context.interrupt.is_raised() {
            self.stop();
        }
        self.stop_requested.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Counts bytes that tasks have read.
    pub fn add_bytes(&self, count: u64) {
        self.lock().unreported.bytes += count;
    }

    /// Counts bytes that a scan has read, and reports them.
    pub fn add_scanned_bytes(&self, count: u64) {
        let mut state = self.lock();
        state.unreported.scanned_bytes += count;
        self.report(&mut state, false);
    }

    /// Reports the accumulated progress if the last report is old enough, or in any case if `all` is true.
    fn report(&self, state: &mut State, all: bool) {
        let is_due = state.reported_at.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL);
        let Unreported { steps, records, loss_sum, bytes, scanned_bytes } = state.unreported;
        if (steps > 0 || scanned_bytes > 0) && (is_due || all) {
            state.reported_at = Some(Instant::now());
            state.unreported = Unreported::default();
            let busy_s = state.busy_clock.as_mut().map_or(0.0, BusyClock::take);
            self.send(FromWorker::Progress { steps, records, loss_sum, bytes, scanned_bytes, busy_s });
        }
    }

    fn add_step(&self, task: u32, record_count: u64, loss_sum: f64) -> StepDecision {
        self.context.metrics.record_step(self.context.job, task, record_count);
        let mut state = self.lock();
        state.unreported.steps += 1;
        state.unreported.records += record_count;
        if loss_sum.is_finite() {
            state.unreported.loss_sum += loss_sum;
        }
        self.report(&mut state, false);
        drop(state);
        if self.is_stop_requested() { StepDecision::Stop } else { StepDecision::Continue }
    }

    fn report_epoch(&self, report: EpochReport, input: &TrainingInput) {
        let mut state = self.lock();
        self.report(&mut state, true);
        // Sent under the lock, so that the last report of this worker contains the bad lines of all its tasks.
        let (is_stopped, bad_lines) = (self.stop_requested.load(Ordering::SeqCst), input.bad_lines());
        self.send(FromWorker::EpochEnded { report, is_stopped, bad_lines });
    }

    /// Waits for the driver's decision after an epoch.
    fn wait_for_decision(&self, task: u32, epoch: u64) -> Result<EpochDecision, algo::Error> {
        let what = || format!("at the end of epoch {epoch} for the master's decision");
        self.wait(task, what, |state| match state.decision {
            Some((decided, decision)) if decided >= epoch => Some(decision),
            _ => None,
        })
    }

    fn before_step(&self, task: u32, clock: Clock) -> BeforeStep {
        self.lock().saves.before_step(task, clock)
    }

    /// Waits for the decision whether a task saves before its next step.
    fn wait_for_save_decision(&self, task: u32, clock: Clock) -> Result<bool, algo::Error> {
        let what = || format!("at clock {clock} for the master's decision about a checkpoint");
        self.wait(task, what, |state| match state.saves.before_step(task, clock) {
            BeforeStep::GoOn => Some(false),
            BeforeStep::Save => Some(true),
            BeforeStep::Wait => None,
        })
    }

    /// Reports the state of a task, and waits until the checkpoint lets it go on.
    fn save_state(&self, state: TaskState) -> Result<(), algo::Error> {
        let (task, epoch, clock) = (state.task, state.epoch, state.clock);
        let ended_count = {
            let mut own = self.lock();
            // The driver counts the steps of a checkpoint.
            self.report(&mut own, true);
            own.saves.add(state)
        };
        self.send(FromWorker::TaskSaved { task, epoch, clock });
        self.wait(
            task,
            || "for a checkpoint".to_owned(),
            |state| (state.saves.ended_count() > ended_count).then_some(()),
        )
    }

    /// Waits until `outcome` returns a value. It ends with an error when the job fails.
    fn wait<T>(
        &self,
        task: u32,
        what: impl Fn() -> String,
        mut outcome: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, algo::Error> {
        let deadline = Instant::now() + DECISION_LIMIT;
        let mut state = self.lock();
        loop {
            if let Some(reason) = &state.failure {
                return Err(matrix::Error::Stopped { reason: reason.clone() }.into());
            }
            if let Some(outcome) = outcome(&mut state) {
                return Ok(outcome);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let reason = format!(
                    "task {task} waited {} s {}; raise --wait-limit if this is expected",
                    DECISION_LIMIT.as_secs(),
                    what()
                );
                return Err(algo::Error::Coordinator { reason });
            }
            state = self.decided.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The coordinator of tasks that read `TrainingInput`: its epoch reports include their bad lines.
pub struct InputCoordinator<'a> {
    pub coordinator: &'a TaskCoordinator,
    pub input: &'a TrainingInput,
    pub permits: Option<&'a Semaphore>,
}

impl Coordinator for InputCoordinator<'_> {
    fn report_progress(&self, task: u32, record_count: u64, loss_sum: f64) -> StepDecision {
        self.coordinator.add_step(task, record_count, loss_sum)
    }

    fn report_epoch(&self, report: EpochReport) -> Result<EpochDecision, algo::Error> {
        let (task, epoch) = (report.task, report.epoch);
        self.coordinator.report_epoch(report, self.input);
        self.without_permit(|| self.coordinator.wait_for_decision(task, epoch))
    }

    fn is_save_due(&self, task: u32, clock: Clock) -> Result<bool, algo::Error> {
        match self.coordinator.before_step(task, clock) {
            BeforeStep::GoOn => Ok(false),
            BeforeStep::Save => Ok(true),
            BeforeStep::Wait => self.without_permit(|| self.coordinator.wait_for_save_decision(task, clock)),
        }
    }

    fn save_state(&self, state: TaskState) -> Result<(), algo::Error> {
        self.without_permit(|| self.coordinator.save_state(state))
    }
}

impl InputCoordinator<'_> {
    /// Lets another task compute while this one waits.
    fn without_permit<T>(&self, wait: impl FnOnce() -> T) -> T {
        match self.permits {
            Some(permits) => permits.release_while(wait),
            None => wait(),
        }
    }
}
