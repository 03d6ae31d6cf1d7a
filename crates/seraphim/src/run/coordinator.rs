//! The coordinator of the tasks of one process: it collects their reports in the order of tasks, lets the epoch monitor
//! decide after every epoch, keeps the best weights for early stopping, and passes Ctrl-C to the tasks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use algo::{Coordinator, EarlyStopping, EpochDecision, EpochReport, StepDecision};
use matrix::{ExportedRows, LocalStore, MatrixId};

use super::epoch_monitor::{EpochMonitor, InterruptState, TrainingSummary};
use super::input::TrainingInput;
use super::semaphore::Semaphore;
use crate::interrupt::Interrupt;
use crate::progress::Progress;

pub struct LocalCoordinator<'a> {
    store: &'a Arc<LocalStore>,
    matrices: &'a [MatrixId],
    opened: &'a TrainingInput,
    progress: &'a Progress,
    interrupt: &'a Interrupt,
    permits: Option<Arc<Semaphore>>,
    wait_limit: Duration,
    stop_sent: AtomicBool,
    steps: AtomicU64,
    state: Mutex<State>,
    decided: Condvar,
}

struct State {
    reports: Vec<Option<EpochReport>>,
    /// Number of epochs whose decision is made.
    decided_epochs: u64,
    verdict: EpochDecision,
    failure: Option<String>,
    judge: EpochMonitor,
    best: Vec<ExportedRows>,
}

impl<'a> LocalCoordinator<'a> {
    /// Creates the coordinator of `task_count` tasks on the matrices of `store`.
    pub(super) fn new(
        store: &'a Arc<LocalStore>,
        matrices: &'a [MatrixId],
        opened: &'a TrainingInput,
        task_count: u32,
        stopping: Option<EarlyStopping>,
        progress: &'a Progress,
        interrupt: &'a Interrupt,
        permits: Option<Arc<Semaphore>>,
        wait_limit: Duration,
    ) -> Self {
        let state = State {
            reports: (0..task_count).map(|_| None).collect(),
            decided_epochs: 0,
            verdict: EpochDecision::Continue,
            failure: None,
            judge: EpochMonitor::new(stopping),
            best: Vec::new(),
        };
        Self {
            store,
            matrices,
            opened,
            progress,
            interrupt,
            permits,
            wait_limit,
            stop_sent: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            state: Mutex::new(state),
            decided: Condvar::new(),
        }
    }

    /// Records that a task has failed, so that no other task waits for it.
    pub fn fail(&self, reason: &str) {
        self.lock().failure.get_or_insert_with(|| reason.to_owned());
        self.decided.notify_all();
    }

    /// Whether the tasks must stop now. A task that stops leaves its epoch incomplete, so the epoch's metrics are
    /// incomplete too.
    pub fn should_stop(&self) -> bool {
        let raised = self.interrupt.is_raised();
        if raised {
            self.stop_sent.store(true, Ordering::SeqCst);
        }
        raised
    }

    /// Returns the summary after all tasks have ended.
    pub fn finish(self) -> TrainingSummary {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.judge.summary(self.steps.into_inner())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides after the report of the last task, and copies or restores the best weights.
    fn decide(&self, state: &mut State) -> Result<EpochDecision, algo::Error> {
        let reports: Vec<EpochReport> = state.reports.iter_mut().filter_map(Option::take).collect();
        // After epoch 0 all tasks have read their whole input, so the number of bad lines is final.
        for source in [Some(&self.opened.source), self.opened.validation.as_ref()].into_iter().flatten() {
            source.check_bad_lines()?;
        }
        let told = self.stop_sent.load(Ordering::SeqCst);
        let interrupt = InterruptState { stop_sent: told, requested: self.interrupt.is_raised() };
        let decision = state.judge.decide(&reports, interrupt, self.progress)?;
        if decision.save_best {
            state.best = self.export()?;
        }
        if decision.restore_best {
            for (&matrix, rows) in self.matrices.iter().zip(&state.best) {
                self.store.import(matrix, rows)?;
            }
        }
        Ok(decision.verdict)
    }

    fn export(&self) -> Result<Vec<ExportedRows>, algo::Error> {
        self.matrices.iter().map(|&matrix| Ok(self.store.export(matrix)?)).collect()
    }

    /// Waits for the decision that follows the first `generation` decisions.
    fn wait(&self, task: u32, epoch: u64, generation: u64) -> Result<EpochDecision, algo::Error> {
        let deadline = Instant::now() + self.wait_limit;
        let mut state = self.lock();
        loop {
            if let Some(reason) = &state.failure {
                return Err(matrix::Error::Stopped { reason: reason.clone() }.into());
            }
            if state.decided_epochs > generation {
                return Ok(state.verdict);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let missing = (0u32..).zip(&state.reports).filter(|(_, report)| report.is_none());
                let missing: Vec<String> = missing.map(|(task, _)| task.to_string()).collect();
                let reason = format!(
                    "task {task} waited {} s at the end of epoch {epoch} for the report of task {}; raise \
                     --wait-limit if this is expected",
                    self.wait_limit.as_secs(),
                    missing.join(", ")
                );
                return Err(algo::Error::Coordinator { reason });
            }
            state = self.decided.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Coordinator for LocalCoordinator<'_> {
    fn report_progress(&self, _task: u32, record_count: u64, loss_sum: f64) -> StepDecision {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.progress.step(record_count, loss_sum);
        if self.should_stop() { StepDecision::Stop } else { StepDecision::Continue }
    }

    fn report_epoch(&self, report: EpochReport) -> Result<EpochDecision, algo::Error> {
        let (task, epoch) = (report.task, report.epoch);
        let mut state = self.lock();
        let generation = state.decided_epochs;
        state.reports[task as usize] = Some(report);
        if state.reports.iter().all(Option::is_some) {
            let verdict = self.decide(&mut state)?;
            state.verdict = verdict;
            state.decided_epochs += 1;
            self.decided.notify_all();
            return Ok(verdict);
        }
        drop(state);
        match &self.permits {
            Some(permits) => permits.release_while(|| self.wait(task, epoch, generation)),
            None => self.wait(task, epoch, generation),
        }
    }
}
