//! The tasks of a job in one worker: threads that train with a remote agent, and the coordinator between them and the
//! driver.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use algo::{Coordinator, EpochReport, Flow, Job, TrainTask, Verdict};
use data::{BatchStream, ReadAhead, TaskData};
use matrix::{Agent, FunctionTable};
use rpc::message::JobId;
use worker::{
    AheadAgent, AheadCounts, CacheCounts, Cancellation, JobLayout, Prefetch, RemoteAgent, Trunks, Upcoming,
};

use super::face::Gauges;
use super::orphan::Reached;
use super::say::{FromWorker, Packed, in_messages};
use crate::error::Error;
use crate::progress::Progress;
use crate::report::EpochLine;
use crate::run::closing::explained;
use crate::run::failure::{Busy, Failures, ReadPosition, Reading};
use crate::run::input::{Opened, Shares};
use crate::run::share::{Counted, Timed, Watched};
use crate::run::totals::TaskSummary;

/// How often the driver hears of progress.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Says something to the driver.
pub(super) type Say = Arc<dyn Fn(FromWorker) + Send + Sync>;

/// Between the tasks of this worker and the driver.
pub(super) struct RemoteCoordinator {
    say: Say,
    job: JobId,
    gauges: Gauges,
    wait_limit: Duration,
    /// Reaches the tasks that wait for servers.
    cancellation: Cancellation,
    stop: AtomicBool,
    failures: Arc<Failures>,
    state: Mutex<State>,
    decided: Condvar,
}

#[derive(Default)]
struct State {
    verdict: Option<(u64, Verdict)>,
    /// The master is gone: nobody decides any more.
    alone: bool,
    reached: Reached,
    failure: Option<String>,
    steps: u64,
    records: u64,
    loss_sum: f64,
    told: Option<Instant>,
    told_bytes: u64,
}

impl RemoteCoordinator {
    pub(super) fn new(
        say: Say,
        job: JobId,
        gauges: Gauges,
        wait_limit: Duration,
        cancellation: Cancellation,
    ) -> Arc<Self> {
        let (stop, failures, state) = (AtomicBool::new(false), Arc::default(), Mutex::default());
        let decided = Condvar::new();
        Arc::new(Self { say, job, gauges, wait_limit, cancellation, stop, failures, state, decided })
    }

    /// Of the tasks here.
    pub(super) fn failures(&self) -> &Arc<Failures> {
        &self.failures
    }

    /// Something failed at another worker: the tasks here go on to `position`, in case that one of them fails before it.
    pub(super) fn settle(&self, position: Option<ReadPosition>) {
        if let Some(position) = position {
            self.failures.limit_to(position);
        }
        let say = Arc::clone(&self.say);
        self.failures.when_settled(move || say(FromWorker::Settled {}));
    }

    /// The driver has decided.
    pub(super) fn decide(&self, epoch: u64, verdict: Verdict, line: EpochLine) {
        let mut state = self.lock();
        state.verdict = Some((epoch, verdict));
        state.reached.epochs.push(line);
        drop(state);
        self.decided.notify_all();
    }

    /// The master is gone: the tasks stop at their next step, meet at the end of the epoch, and leave.
    pub(super) fn go_alone(&self) {
        self.stop();
        self.lock().alone = true;
        self.decided.notify_all();
    }

    /// How far the tasks here have come.
    pub(super) fn reached(&self) -> Reached {
        self.lock().reached.clone()
    }

    /// The tasks stop at their next step.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// The job has failed: nobody waits any longer, neither here nor for servers.
    pub(super) fn fail(&self, reason: &str) {
        self.stop();
        self.lock().failure.get_or_insert_with(|| reason.to_owned());
        self.decided.notify_all();
        self.cancellation.raise(reason);
    }

    fn is_told_to_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what has gathered, every now and then; now, when `all`.
    fn tell(&self, state: &mut State, all: bool) {
        let due = state.told.is_none_or(|told| told.elapsed() >= TELL_EVERY);
        if state.steps > 0 && (due || all) {
            state.told = Some(Instant::now());
            let (steps, records) = (std::mem::take(&mut state.steps), std::mem::take(&mut state.records));
            let (loss_sum, bytes) =
                (std::mem::take(&mut state.loss_sum), std::mem::take(&mut state.told_bytes));
            (self.say)(FromWorker::Progress { steps, records, loss_sum, bytes });
        }
    }

    fn progress(&self, task: u32, record_count: u64, loss_sum: f64) -> Flow {
        self.gauges.step(self.job, task, record_count);
        let mut state = self.lock();
        state.steps += 1;
        state.records += record_count;
        if loss_sum.is_finite() {
            state.loss_sum += loss_sum;
        }
        self.tell(&mut state, false);
        if self.is_told_to_stop() { Flow::Stop } else { Flow::Continue }
    }

    /// Tells the driver of the epoch of a task, and waits for what follows from it.
    fn epoch(&self, report: EpochReport, opened: &Opened) -> Result<Verdict, algo::Error> {
        let (task, epoch) = (report.task, report.epoch);
        let mut state = self.lock();
        self.tell(&mut state, true);
        state.reached.last = Some((epoch, report.epoch_count));
        // Under the lock: what is said last of this worker is of all its tasks.
        let bad_lines = opened.bad_lines();
        (self.say)(FromWorker::Epoch { report: Packed(report), bad_lines });
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
            if state.alone {
                return Ok(Verdict::Stop);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let reason = format!(
                    "task {task} waited {} s at the end of epoch {epoch} for the word of the master; raise --wait-limit if \
                     that is no surprise",
                    self.wait_limit.as_secs()
                );
                return Err(algo::Error::Coordinator { reason });
            }
            state = self.decided.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The coordinator of the tasks that read these data: what it says of an epoch tells their bad lines too.
struct OfData<'a> {
    coordinator: &'a RemoteCoordinator,
    opened: &'a Opened,
}

impl Coordinator for OfData<'_> {
    fn progress(&self, task: u32, record_count: u64, loss_sum: f64) -> Flow {
        self.coordinator.progress(task, record_count, loss_sum)
    }

    fn epoch(&self, report: EpochReport) -> Result<Verdict, algo::Error> {
        self.coordinator.epoch(report, self.opened)
    }
}

/// What the tasks of a worker train.
pub(super) struct Work<'a> {
    pub(super) plan: Shares<'a>,
    pub(super) algorithm: &'a dyn Job,
    pub(super) layout: &'a JobLayout,
    pub(super) token: &'a [u8],
    pub(super) functions: &'a FunctionTable,
    pub(super) model: &'a algo::Model,
    pub(super) resumed: bool,
    pub(super) coordinator: &'a RemoteCoordinator,
    pub(super) say: &'a Say,
    pub(super) slowness: Slowness,
}

/// How slow a worker is made, for tests: its tasks pause before every so many batches, in turns, so that no two tasks of a
/// job pause at the same step unless they pause at more of them than their number allows.
#[derive(Clone, Copy, Debug)]
pub struct Slowness {
    /// Length of a pause; 0: never.
    pub pause: Duration,
    /// 1: before every batch.
    pub every: u64,
}

impl Slowness {
    /// Whether a task pauses before a batch, counted from 0 over all epochs.
    fn is_due(self, task: u32, task_count: u32, batch: u64) -> bool {
        let turn = u64::from(task) * self.every / u64::from(task_count);
        !self.pause.is_zero() && batch % self.every == turn
    }
}

impl Work<'_> {
    /// Runs all tasks to their end; `begun` is dropped when all read. The driver hears of each that fails, and ends the job.
    pub(super) fn run(&self, shares: Vec<TaskData>, begun: Option<Busy>) -> Result<(), Error> {
        let validations = self.plan.validations()?;
        let progress = Progress::silent();
        let trunks = (self.plan.tasks.len() > 1).then(Trunks::default);
        let failed_agents = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for (task, (share, validation)) in
                self.plan.tasks.clone().zip(shares.into_iter().zip(validations))
            {
                let (progress, trunks, failed_agents) = (&progress, trunks.clone(), &failed_agents);
                let reading = Reading::new(self.coordinator.failures(), task);
                scope.spawn(move || {
                    let mut data = Watched::new(share, progress);
                    let is_told_to_stop = || self.coordinator.is_told_to_stop();
                    let mut validation = self.plan.validation_stream(validation, &mut data, &is_told_to_stop);
                    let mut agent = None;
                    let run = || {
                        let agent = agent.insert(self.agent(task, trunks)?);
                        let Opened { source, needs, .. } = self.plan.opened;
                        let (share, rule) = (needs.validation_share, needs.label_rule);
                        self.train(agent, &reading, &mut data, validation.as_mut())
                            .map_err(|error| explained(error, self.plan.job, share, rule, source.schema()))
                    };
                    let ended = std::panic::catch_unwind(AssertUnwindSafe(run));
                    if let Some(noted) = self.coordinator.failures().note(&reading, ended) {
                        tracing::warn!(
                            job = self.layout.job,
                            task,
                            reason = noted.reason,
                            "a task failed here"
                        );
                        // To the others it must not look like a task that has come to its end.
                        failed_agents.lock().unwrap_or_else(PoisonError::into_inner).extend(agent);
                        let (error, exit) = (noted.reason, noted.exit as u8);
                        (self.say)(FromWorker::Failed { error, exit, rank: Some(noted.rank) });
                        return;
                    }
                    let summary = Packed(TaskSummary::of(&data.data, validation.as_ref()));
                    let names = data.data.reader_mut().take_dictionary();
                    in_messages(names, |names| (self.say)(FromWorker::Names { names }));
                    (self.say)(FromWorker::TaskEnded { task, summary });
                });
            }
            drop(begun);
        });
        Ok(())
    }

    fn agent(&self, task: u32, trunks: Option<Trunks>) -> Result<Trainee, Error> {
        let mut agent = RemoteAgent::new(self.layout.clone(), task, self.token.to_vec())
            .map_err(Error::process)?
            .with_functions(self.functions.clone())
            .with_cancellation(self.coordinator.cancellation.clone());
        if let Some(trunks) = trunks {
            agent = agent.with_trunks(trunks);
        }
        let gauges = &self.coordinator.gauges;
        gauges.begin(self.layout.job, task, agent.meter(), self.layout.lanes.len());
        if self.layout.prefetch == Prefetch::Off {
            return Ok(Trainee::Plain(agent));
        }
        let upcoming = Upcoming::default();
        Ok(Trainee::Ahead(AheadAgent::new(agent, upcoming.clone()), upcoming))
    }

    /// Trains a task to its end, asking ahead as the layout says.
    fn train(
        &self,
        agent: &mut Trainee,
        reading: &Reading<'_>,
        data: &mut Watched<'_>,
        validation: Option<&mut Timed<'_>>,
    ) -> Result<(), Error> {
        let (slowness, task, task_count) = (self.slowness, reading.task(), self.layout.task_count);
        let mut paced = Paced { stream: data, slowness, task, task_count, batch: 0 };
        let mut validation = validation.map(|stream| Counted::new(stream, reading));
        let validation = validation.as_mut().map(|stream| stream as &mut dyn BatchStream);
        match agent {
            Trainee::Plain(agent) => {
                self.train_with(agent, &mut Counted::new(&mut paced, reading), validation)
            }
            Trainee::Ahead(agent, upcoming) => {
                let mut data = ReadAhead::new(&mut paced, |now, next| upcoming.set(now, next));
                self.train_with(agent, &mut Counted::new(&mut data, reading), validation)?;
                let AheadCounts { asked, used, unused } = agent.agent().ahead_counts();
                tracing::debug!(task, asked, used, unused, "pulls asked ahead");
                let CacheCounts { hits, misses, evicted } = agent.agent().cache_counts();
                tracing::debug!(task, hits, misses, evicted, "rows of the cache");
                Ok(())
            }
        }
    }

    fn train_with(
        &self,
        agent: &mut dyn Agent,
        data: &mut dyn BatchStream,
        validation: Option<&mut dyn BatchStream>,
    ) -> Result<(), Error> {
        let validation = validation.map(|stream| stream as &mut dyn BatchStream);
        let coordinator = &OfData { coordinator: self.coordinator, opened: self.plan.opened };
        let (model, resumed) = (self.model, self.resumed);
        self.algorithm.train(TrainTask { agent, data, validation, coordinator, model, resumed })?;
        Ok(())
    }
}

/// The agent of a task.
enum Trainee {
    Plain(RemoteAgent),
    /// Asks ahead for what is said to come.
    Ahead(AheadAgent, Upcoming),
}

/// A stream that waits before each batch: a worker as slow as a test wants it.
struct Paced<'a, 'b> {
    stream: &'a mut Watched<'b>,
    slowness: Slowness,
    task: u32,
    task_count: u32,
    batch: u64,
}

impl Paced<'_, '_> {
    fn pause(&mut self) {
        if self.slowness.is_due(self.task, self.task_count, self.batch) {
            std::thread::sleep(self.slowness.pause);
        }
        self.batch += 1;
    }
}

impl BatchStream for Paced<'_, '_> {
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

    fn forget(&mut self) {
        self.stream.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_pause_in_turns() {
        let pauses = |every: u64| -> Vec<Vec<u64>> {
            let slowness = Slowness { pause: Duration::from_millis(1), every };
            (0..4).map(|task| (0..16).filter(|batch| slowness.is_due(task, 4, *batch)).collect()).collect()
        };
        assert_eq!(pauses(8), [[0, 8], [2, 10], [4, 12], [6, 14]]);
        assert!(pauses(1).iter().all(|batches| batches.len() == 16), "before every batch");
        let never = Slowness { pause: Duration::ZERO, every: 1 };
        assert!(!never.is_due(0, 4, 0));
    }
}
