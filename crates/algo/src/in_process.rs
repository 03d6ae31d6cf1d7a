//! Runs of a job in this process, on batches in memory: all tasks on threads of their own, with a coordinator that keeps what
//! they report and save. It serves [`crate::check()`] and tests.

#![allow(
    clippy::unwrap_used,
    reason = "a poisoned lock is that of a task that has panicked, which ends the run"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use data::{Batch, BatchStream, MemoryStream};
use matrix::{Clock, Consistency, FunctionTable, LocalConfig, LocalStore, MatrixId, RowBlock};

use crate::coordinator::{Coordinator, EpochDecision, EpochReport, StepDecision};
use crate::error::Error;
use crate::family::Model;
use crate::job::{Job, TableLayout, TrainTask};
use crate::task_loop::TaskState;

/// How long a task waits for another task.
pub const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// How a run is made.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) partition_count: u32,
    pub(crate) consistency: Consistency,
    /// All of it belongs to task 0.
    pub(crate) validation: Option<&'a [Batch]>,
    /// The decision after each epoch.
    pub(crate) decision: EpochDecision,
    /// The clock at which tasks that can do so save their states within an epoch.
    pub(crate) save_clock: Option<Clock>,
    /// The moment at which the run begins; `None`: at the start.
    pub(crate) from: Option<&'a Moment>,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            partition_count: 5,
            consistency: Consistency::Bsp,
            validation: None,
            decision: EpochDecision::Save,
            save_clock: None,
            from: None,
        }
    }
}

/// A run at a moment when all tasks save: all matrices, and what each task keeps.
#[derive(Clone, Debug)]
pub struct Moment {
    pub clock: Clock,
    pub matrices: Vec<RowBlock>,
    pub states: Vec<TaskState>,
}

/// A finished run.
pub(crate) struct Finished {
    pub(crate) store: Arc<LocalStore>,
    /// By epoch and task.
    pub(crate) reports: Vec<EpochReport>,
    /// The moments at which the tasks saved their states: after each epoch but the last, and within an epoch if the
    /// setup says so.
    pub(crate) moments: Vec<Moment>,
}

/// Trains a model with one task for each list of batches. `flow` is called after every step, with the task and the number of
/// steps of all tasks.
pub(crate) fn run(
    job: &dyn Job,
    model: &dyn Model,
    functions: FunctionTable,
    tasks: Vec<Vec<Batch>>,
    setup: Setup<'_>,
    flow: impl Fn(u32, u64) -> StepDecision + Sync,
) -> Result<Finished, Error> {
    let config = LocalConfig { task_count: tasks.len() as u32, wait_limit: WAIT_LIMIT };
    let mut store = LocalStore::with_functions(config, functions);
    let mut matrices = Vec::new();
    let clock = setup.from.map_or(0, |moment| moment.clock);
    let layout = TableLayout { partition_count: setup.partition_count, task_count: tasks.len() as u32 };
    for mut spec in job.training_matrices(model, setup.consistency, layout, 1)? {
        // Schedules go on.
        spec.rule = spec.rule.after(clock);
        matrices.push(store.create(spec)?);
    }
    for (id, rows) in matrices.iter().zip(setup.from.iter().flat_map(|moment| &moment.matrices)) {
        store.import(*id, rows)?;
    }
    let store = Arc::new(store);
    let hub = Hub {
        barrier: Barrier::new(tasks.len()),
        store: Arc::clone(&store),
        matrices,
        reports: Mutex::default(),
        moments: Mutex::default(),
        failure: Mutex::default(),
        done: Mutex::new(0),
        have_saved: Mutex::new(BTreeSet::new()),
        save_clock: setup.save_clock,
        decision: setup.decision,
        flow,
    };
    run_all(tasks, |number, batches| {
        let mut agent = store.agent(number);
        let mut held_out =
            setup.validation.filter(|_| number == 0).map(|held_out| MemoryStream::new(held_out.to_vec()));
        let task = TrainTask {
            agent: &mut agent,
            data: &mut MemoryStream::new(batches),
            validation: held_out.as_mut().map(|held_out| held_out as &mut dyn BatchStream),
            coordinator: &hub,
            model,
            resumed: false,
            seed: 1,
        };
        let saved = setup.from.map(|moment| &moment.states[number as usize]);
        crate::train(job, task, saved).inspect_err(|error| store.stop(error.to_string()))
    })?;
    let moments = std::mem::take(&mut *hub.moments.lock().unwrap());
    let reports = hub.reports.into_inner().unwrap().into_values().collect();
    Ok(Finished { store, reports, moments })
}

/// Runs each task on a thread of its own. Returns the error of a task that failed by itself, if one did.
fn run_all(
    tasks: Vec<Vec<Batch>>,
    run_task: impl Fn(u32, Vec<Batch>) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let run_task = &run_task;
        let threads: Vec<_> = (0..)
            .zip(tasks)
            .map(|(number, batches)| scope.spawn(move || run_task(number, batches)))
            .collect();
        let results: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("a task panicked")).collect();
        // A task that fails stops the others; the errors of the others are not the cause.
        let stopped = |result: &Result<(), Error>| matches!(result, Err(Error::Matrix(_)));
        let (others, causes): (Vec<_>, Vec<_>) = results.into_iter().partition(stopped);
        causes.into_iter().chain(others).collect()
    })
}

struct Hub<F> {
    barrier: Barrier,
    store: Arc<LocalStore>,
    matrices: Vec<MatrixId>,
    reports: Mutex<BTreeMap<(u64, u32), EpochReport>>,
    moments: Mutex<Vec<Moment>>,
    /// Why the matrices could not be saved, for all tasks.
    failure: Mutex<Option<matrix::Error>>,
    done: Mutex<u64>,
    /// The tasks that have saved within an epoch.
    have_saved: Mutex<BTreeSet<u32>>,
    save_clock: Option<Clock>,
    decision: EpochDecision,
    flow: F,
}

impl<F: Fn(u32, u64) -> StepDecision + Sync> Coordinator for Hub<F> {
    fn report_progress(&self, task: u32, _: u64, _: f64) -> StepDecision {
        let done = {
            let mut done = self.done.lock().unwrap();
            *done += 1;
            *done
        };
        (self.flow)(task, done)
    }

    fn report_epoch(&self, report: EpochReport) -> Result<EpochDecision, Error> {
        self.reports.lock().unwrap().insert((report.epoch, report.task), report);
        self.barrier.wait();
        Ok(self.decision)
    }

    fn is_save_due(&self, task: u32, clock: Clock) -> Result<bool, Error> {
        let is_due = self.save_clock.is_some_and(|due| clock >= due);
        Ok(is_due && self.have_saved.lock().unwrap().insert(task))
    }

    fn save_state(&self, state: TaskState) -> Result<(), Error> {
        if self.barrier.wait().is_leader() {
            match self.matrices.iter().map(|id| self.store.export(*id)).collect() {
                Ok(matrices) => {
                    let moment = Moment { clock: state.clock, matrices, states: Vec::new() };
                    self.moments.lock().unwrap().push(moment);
                }
                Err(error) => *self.failure.lock().unwrap() = Some(error),
            }
        }
        self.barrier.wait();
        if let Some(error) = &*self.failure.lock().unwrap() {
            return Err(error.clone().into());
        }
        let mut moments = self.moments.lock().unwrap();
        let states = &mut moments.last_mut().expect("the leader has added a moment").states;
        states.push(state);
        states.sort_by_key(|state| state.task);
        Ok(())
    }
}
