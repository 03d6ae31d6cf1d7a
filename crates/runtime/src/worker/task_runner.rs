//! The tasks of a job on one worker: threads that train.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use algo::{TaskState, TrainTask};
use data::{BatchStream, LookAhead, Reader, TaskData};
use driver::Error;
use driver::messages::FromWorker;
use driver::run_info::with_job_context;
use driver::totals::no_weight_error;
use matrix::{Agent, FunctionTable};
use rpc::layout::JobLayout;

use crate::coverage_agent::CoverageAgent;
use crate::coverage_recorder::{CoverageRecorder, feature_matrices};
use crate::failures::{BusyGuard, ReadTracker};
use crate::input::{TaskDataPlan, TrainingInput};
use crate::task_streams::{CountedStream, MeteredStream, TimedValidation, task_summary};
use crate::worker::coordinator::{InputCoordinator, TaskCoordinator};
use crate::worker::semaphore::{PermittedAgent, Semaphore, with_permit};
use crate::worker::{WorkerContext, lock};

/// Runs the tasks of a worker.
pub struct TaskRunner<'a> {
    pub plan: TaskDataPlan<'a>,
    pub layout: &'a JobLayout,
    pub functions: &'a FunctionTable,
    pub model: &'a dyn algo::Model,
    pub algorithm: &'a dyn algo::Job,
    pub begin: &'a TaskBegin,
    pub coordinator: &'a TaskCoordinator,
    pub permits: Option<Arc<Semaphore>>,
}

/// What the tasks of a worker begin with.
pub struct TaskBegin {
    /// Whether the matrices contain an earlier model.
    pub resumed: bool,
    /// The saved states of the tasks, in their order; empty: they begin at the start.
    pub states: Vec<TaskState>,
}

/// The agents of tasks that have failed. They are kept until all tasks have ended, so that other tasks do not take a
/// failed task for one that has finished.
type FailedAgents = Mutex<Vec<Box<dyn Agent>>>;

impl TaskRunner<'_> {
    /// Runs all tasks to their end; `begun` is dropped when all of them read. It reports each failure to the driver,
    /// which ends the job.
    pub fn run(&self, shares: Vec<TaskData>, begun: Option<BusyGuard>) -> Result<(), Error> {
        let validations = self.plan.validation_readers()?;
        let failed_agents = FailedAgents::default();
        std::thread::scope(|scope| {
            for (task, (share, validation)) in
                self.plan.tasks.clone().zip(shares.into_iter().zip(validations))
            {
                let reading = ReadTracker::new(self.coordinator.failures(), task);
                let failed_agents = &failed_agents;
                scope.spawn(move || self.run_task(&reading, share, validation, failed_agents));
            }
            drop(begun);
        });
        Ok(())
    }

    fn run_task(
        &self,
        reading: &ReadTracker<'_>,
        share: TaskData,
        validation: Option<Reader>,
        failed_agents: &FailedAgents,
    ) {
        let task = reading.task();
        let on_bytes = |count| self.coordinator.add_bytes(count);
        let is_stop_requested = || self.coordinator.is_stop_requested();
        let mut data = MeteredStream::new(share, &on_bytes);
        if self.plan.opened.source.size_bytes().is_none() {
            data = data.on_epoch_end(&is_stop_requested);
        }
        let mut validation = self.plan.validation_stream(validation, &mut data, &is_stop_requested);
        let recorder = self.plan.opened.validation.as_ref().map(|_| CoverageRecorder::default());
        if let Some(recorder) = &recorder {
            let schema = self.plan.opened.source.schema().clone();
            validation = validation.map(|stream| stream.with_coverage(recorder.clone(), schema));
        }
        let mut agent = None;
        let run = || {
            let agent = agent.insert(self.agent(task, recorder)?).as_mut();
            let permits = self.permits.as_deref();
            with_permit(permits, || self.train(agent, reading, &mut data, validation.as_mut())).map_err(
                |error| {
                    let TrainingInput { source, needs, .. } = self.plan.opened;
                    let (names, summary) =
                        (data.data.reader_mut().take_dictionary(), data.data.reader().summary());
                    let error = match error {
                        Error::Algo(algo::Error::NoRecords) if summary.weightless_count > 0 => {
                            no_weight_error()
                        }
                        error => error,
                    };
                    with_job_context(error, self.plan.job, needs.label_rule, (source.schema(), &names))
                },
            )
        };
        let ended = std::panic::catch_unwind(AssertUnwindSafe(run));
        if let Some(failure) = self.coordinator.failures().record(reading, ended) {
            let reason = format!("task {task} failed: {}", failure.error);
            // Of tasks that are told to end, as after the loss of a member, the user has heard already.
            if self.coordinator.has_failed() {
                tracing::info!(job = self.layout.job, task, reason, "a task ended on this worker");
            } else {
                tracing::warn!(job = self.layout.job, task, reason, "a task failed on this worker");
            }
            lock(failed_agents).extend(agent);
            self.context().parameters.on_task_failed(task, &reason);
            let (error, exit, is_loss) = (failure.error, failure.exit as u8, failure.is_loss);
            self.coordinator.send(FromWorker::Failed {
                task: Some(task),
                error,
                exit,
                is_loss,
                rank: Some(failure.rank),
            });
            return;
        }
        let summary = task_summary(&data.data, validation.as_mut());
        let names = data.data.reader_mut().take_dictionary();
        names.pieces().for_each(|names| self.coordinator.send(FromWorker::KeyNames { names }));
        drop(names);
        self.coordinator.send(FromWorker::TaskEnded { task, summary });
    }

    fn context(&self) -> &WorkerContext {
        self.coordinator.context()
    }

    /// `recorder` is told what is read of the parameters.
    fn agent(&self, task: u32, recorder: Option<CoverageRecorder>) -> Result<Box<dyn Agent>, Error> {
        let mut agent = self.context().parameters.agent(self.layout, task, self.functions)?;
        if let Some(permits) = &self.permits {
            agent = Box::new(PermittedAgent::new(agent, Arc::clone(permits)));
        }
        Ok(match recorder {
            Some(recorder) => Box::new(CoverageAgent::new(agent, feature_matrices(self.model), recorder)),
            None => agent,
        })
    }

    /// Trains a task to its end. The algorithm can look ahead at its batches if its agent sends prefetches.
    fn train(
        &self,
        agent: &mut dyn Agent,
        reading: &ReadTracker<'_>,
        data: &mut MeteredStream<'_>,
        validation: Option<&mut TimedValidation<'_>>,
    ) -> Result<(), Error> {
        let mut validation = validation.map(|stream| CountedStream::new(stream, reading));
        let validation = validation.as_mut().map(|stream| stream as &mut dyn BatchStream);
        let mut look_ahead;
        let data: &mut dyn BatchStream = if agent.sends_prefetches() {
            look_ahead = LookAhead::new(data);
            &mut look_ahead
        } else {
            data
        };
        let data = &mut CountedStream::new(data, reading);
        let (input, permits) = (self.plan.opened, self.permits.as_deref());
        let coordinator = &InputCoordinator { coordinator: self.coordinator, input, permits };
        let (model, resumed) = (self.model, self.begin.resumed);
        let saved = self.begin.states.iter().find(|state| state.task == reading.task());
        let (job, seed) = (self.algorithm, self.plan.job.seed);
        let task = TrainTask { agent, data, validation, coordinator, model, resumed, seed };
        algo::train(job, task, saved)?;
        Ok(())
    }
}
