//! The one who runs the tasks of a process: gathers their reports in the order of tasks, decides after every epoch,
//! keeps the best weights for early stopping, and passes Ctrl-C on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use algo::{Coordinator, EarlyStopping, EpochReport, Flow, MetricParts, Verdict};
use matrix::{Exported, LocalStore, MatrixId};

use super::permits::Permits;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::EpochLine;

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All epochs were made.
    Finished,
    /// The validation loss was no better for long enough.
    EarlyStopping,
    /// Ctrl-C.
    Interrupted,
}

impl End {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::EarlyStopping => "early_stopping",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What is left when all tasks have ended.
#[derive(Debug)]
pub struct Outcome {
    /// Every epoch.
    pub epochs: Vec<EpochLine>,
    /// Why it ended.
    pub end: End,
    /// The epoch whose weights are in the store, when early stopping chose one.
    pub best_epoch: Option<u64>,
    /// Steps of all tasks.
    pub step_count: u64,
    /// What a reader of the metrics should know.
    pub notices: Vec<String>,
}

/// Coordinates the tasks of one process.
pub struct LocalCoordinator<'a> {
    store: &'a Arc<LocalStore>,
    matrices: &'a [MatrixId],
    progress: &'a Progress,
    interrupt: &'a Interrupt,
    permits: Option<Arc<Permits>>,
    wait_limit: Duration,
    told_stop: AtomicBool,
    steps: AtomicU64,
    state: Mutex<State>,
    decided: Condvar,
}

struct State {
    reports: Vec<Option<EpochReport>>,
    /// Number of epochs decided.
    generation: u64,
    verdict: Verdict,
    failure: Option<String>,
    stopping: Option<EarlyStopping>,
    best: Option<(u64, Vec<Exported>)>,
    epochs: Vec<EpochLine>,
    epoch_start: Instant,
    end: End,
    notices: Vec<String>,
}

impl<'a> LocalCoordinator<'a> {
    /// For `task_count` tasks on the matrices of `store`.
    pub fn new(
        store: &'a Arc<LocalStore>,
        matrices: &'a [MatrixId],
        task_count: u32,
        stopping: Option<EarlyStopping>,
        progress: &'a Progress,
        interrupt: &'a Interrupt,
        permits: Option<Arc<Permits>>,
        wait_limit: Duration,
    ) -> Self {
        let state = State {
            reports: (0..task_count).map(|_| None).collect(),
            generation: 0,
            verdict: Verdict::Continue,
            failure: None,
            stopping,
            best: None,
            epochs: Vec::new(),
            epoch_start: Instant::now(),
            end: End::Finished,
            notices: Vec::new(),
        };
        Self {
            store,
            matrices,
            progress,
            interrupt,
            permits,
            wait_limit,
            told_stop: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            state: Mutex::new(state),
            decided: Condvar::new(),
        }
    }

    /// A task has failed: nobody waits for it any longer.
    pub fn fail(&self, reason: &str) {
        self.lock().failure.get_or_insert_with(|| reason.to_owned());
        self.decided.notify_all();
    }

    /// Whether to stop now. Who hears that has left something undone: what the epoch shows is then not whole.
    pub fn is_told_to_stop(&self) -> bool {
        let raised = self.interrupt.is_raised();
        if raised {
            self.told_stop.store(true, Ordering::SeqCst);
        }
        raised
    }

    /// What happened, once all tasks have ended.
    pub fn finish(self) -> Outcome {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Outcome {
            epochs: state.epochs,
            end: state.end,
            best_epoch: state.best.map(|(epoch, _)| epoch),
            step_count: self.steps.into_inner(),
            notices: state.notices,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last task has reported: merges, shows, decides.
    fn decide(&self, state: &mut State) -> Result<Verdict, algo::Error> {
        let reports: Vec<EpochReport> = state.reports.iter_mut().filter_map(Option::take).collect();
        let (epoch, epoch_count) = (reports[0].epoch, reports[0].epoch_count);
        let training = merged(reports.iter().map(|report| &report.training));
        let told_stop = self.told_stop.load(Ordering::SeqCst);
        // Of a validation that was cut short nothing is told, and early stopping does not judge by it.
        let whole = reports.iter().filter(|_| !told_stop).filter_map(|report| report.validation.as_ref());
        let validation = merged(whole);
        if validation.as_ref().is_some_and(|parts| parts.record_count() == 0) {
            return Err(data::Error::NoRecords { files: "the validation data".into() }.into());
        }
        let line = EpochLine {
            epoch,
            records: reports.iter().map(|report| report.record_count).sum(),
            seconds: state.epoch_start.elapsed().as_secs_f64(),
            training: training.as_ref().map(metrics).unwrap_or_default(),
            validation: validation.as_ref().map(metrics),
        };
        for notice in training.iter().chain(&validation).flat_map(MetricParts::notices) {
            if !state.notices.contains(&notice) {
                state.notices.push(notice);
            }
        }
        self.progress.epoch_done(epoch, epoch_count, line.records);
        if is_told(epoch, epoch_count) {
            self.progress.say(&epoch_text(&line, epoch_count));
        }
        let loss = line.validation.as_ref().and_then(|metrics| metrics.get("loss")).copied();
        state.epochs.push(line);
        state.epoch_start = Instant::now();
        if let (Some(rule), Some(loss)) = (&mut state.stopping, loss) {
            let judgement = rule.observe(epoch, loss);
            if judgement.improved {
                state.best = Some((epoch, self.export()?));
            }
            if judgement.stop {
                state.end = End::EarlyStopping;
            }
        }
        let more = epoch + 1 < epoch_count;
        if told_stop || (more && self.interrupt.is_raised()) {
            state.end = End::Interrupted;
        }
        if state.end == End::Finished && more {
            return Ok(Verdict::Continue);
        }
        if let Some((best, rows)) = &state.best
            && *best != epoch
        {
            for (&matrix, rows) in self.matrices.iter().zip(rows) {
                self.store.import(matrix, rows)?;
            }
        }
        Ok(Verdict::Stop)
    }

    fn export(&self) -> Result<Vec<Exported>, algo::Error> {
        self.matrices.iter().map(|&matrix| Ok(self.store.export(matrix)?)).collect()
    }

    /// Waits for the decision about the epoch that follows `generation` decided ones.
    fn wait(&self, task: u32, epoch: u64, generation: u64) -> Result<Verdict, algo::Error> {
        let deadline = Instant::now() + self.wait_limit;
        let mut state = self.lock();
        loop {
            if let Some(reason) = &state.failure {
                return Err(algo::Error::Coordinator { reason: reason.clone() });
            }
            if state.generation > generation {
                return Ok(state.verdict);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let missing = (0u32..).zip(&state.reports).filter(|(_, report)| report.is_none());
                let missing: Vec<String> = missing.map(|(task, _)| task.to_string()).collect();
                let reason = format!(
                    "task {task} waited {} s at the end of epoch {epoch} for the report of task {}; raise --wait-limit if \
                     that is no surprise",
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
    fn progress(&self, _task: u32, record_count: u64, loss_sum: f64) -> Flow {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.progress.step(record_count, loss_sum);
        if self.is_told_to_stop() { Flow::Stop } else { Flow::Continue }
    }

    fn epoch(&self, report: EpochReport) -> Result<Verdict, algo::Error> {
        let (task, epoch) = (report.task, report.epoch);
        let mut state = self.lock();
        let generation = state.generation;
        state.reports[task as usize] = Some(report);
        if state.reports.iter().all(Option::is_some) {
            let verdict = self.decide(&mut state)?;
            state.verdict = verdict;
            state.generation += 1;
            self.decided.notify_all();
            return Ok(verdict);
        }
        drop(state);
        match &self.permits {
            Some(permits) => permits.without(|| self.wait(task, epoch, generation)),
            None => self.wait(task, epoch, generation),
        }
    }
}

fn merged<'p>(mut parts: impl Iterator<Item = &'p MetricParts>) -> Option<MetricParts> {
    let mut sum = parts.next()?.clone();
    parts.for_each(|part| sum.merge(part));
    Some(sum)
}

/// Metrics by name.
pub fn metrics(parts: &MetricParts) -> BTreeMap<String, f64> {
    parts.finish().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Metrics in one line: the loss first, then the others that people look at.
pub fn metrics_text(metrics: &BTreeMap<String, f64>) -> String {
    let shown = ["log_loss", "auc", "gauc", "accuracy", "macro_f1", "rmse", "mae", "r2"];
    let mut parts: Vec<String> = shown
        .iter()
        .filter_map(|&name| metrics.get(name).map(|value| format!("{name} {value:.5}")))
        .collect();
    if let (false, Some(loss)) = (metrics.contains_key("log_loss"), metrics.get("loss")) {
        parts.insert(0, format!("loss {loss:.5}"));
    }
    parts.join("  ")
}

/// Whether an epoch gets a line: the first three, the last, and some ten in between. The report has all.
fn is_told(epoch: u64, epoch_count: u64) -> bool {
    epoch < 3 || epoch + 1 == epoch_count || (epoch + 1).is_multiple_of(epoch_count.div_ceil(10))
}

fn epoch_text(line: &EpochLine, epoch_count: u64) -> String {
    let speed = crate::progress::count(line.records as f64 / line.seconds.max(1e-9));
    let mut text = format!("epoch {}/{epoch_count}  {} records  {speed}/s", line.epoch + 1, line.records);
    text += &format!("\n  training    {}", metrics_text(&line.training));
    if let Some(validation) = &line.validation {
        text += &format!("\n  validation  {}", metrics_text(validation));
    }
    text
}
