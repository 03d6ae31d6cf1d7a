//! The driver of a training: its state, and what becomes of each event.

use std::sync::Arc;
use std::time::Instant;

use job::TrainJob;
use serde_json::Value;

use crate::config::DriverConfig;
use crate::effect::{Effect, Event, JobDriver, RunEnd};
use crate::error::Error;
use crate::job_progress::{Incidents, JobProgress};
use crate::messages::{BegunTraining, FromWorker, ToWorker};
use crate::phase::{Origin, Phase, Plan};
use crate::progress::{ProgressListener, SilentProgress};
use crate::report::Timings;
use crate::slow_workers::SlowWorkers;

/// The driver of one job.
pub struct Driver {
    pub(crate) config: DriverConfig,
    pub(crate) job: TrainJob,
    /// The algorithm with the parameters of the job.
    pub(crate) algorithm: Arc<dyn algo::Job>,
    /// The settings that the program chose, and why.
    pub(crate) reasons: Vec<String>,
    pub(crate) begun: Option<BegunTraining>,
    /// Silent until the data are inspected.
    pub(crate) progress: Arc<dyn ProgressListener>,
    pub(crate) start: Instant,
    pub(crate) timings: Timings,
    pub(crate) job_progress: JobProgress,
    pub(crate) slow_workers: SlowWorkers,
    pub(crate) stop_requested: bool,
    /// Whether the user asked for a checkpoint before the tasks began.
    pub(crate) is_checkpoint_requested: bool,
    pub(crate) phase: Phase,
    pub(crate) effects: Vec<Effect>,
}

impl Driver {
    /// Creates the driver of a checked job. `now` is its start.
    ///
    /// # Errors
    /// If this program does not know the algorithm.
    pub fn new(config: DriverConfig, job: TrainJob, now: Instant) -> Result<Self, Error> {
        let algorithm = job.algorithm_job(&config.families)?;
        let epochs = algorithm.needs().epochs;
        let job_progress = JobProgress::new(now, epochs, config.incidents.clone());
        Ok(Self {
            config,
            job,
            algorithm,
            reasons: Vec::new(),
            begun: None,
            progress: Arc::new(SilentProgress),
            start: now,
            timings: Timings::default(),
            job_progress,
            slow_workers: SlowWorkers::new(now),
            stop_requested: false,
            is_checkpoint_requested: false,
            phase: Phase::Inspecting,
            effects: Vec::new(),
        })
    }

    /// What this run has begun or continued, once it is known.
    pub fn begun(&self) -> Option<&BegunTraining> {
        self.begun.as_ref()
    }

    /// What happened in this run and earlier ones.
    pub fn incidents(&self) -> &Incidents {
        &self.job_progress.incidents
    }

    /// Tells the user of something that does not end the job.
    pub(crate) fn report_incident(&mut self, line: &str) {
        self.progress.print_line(line);
        self.job_progress.incidents.add(line);
    }
}

impl JobDriver for Driver {
    fn start(&mut self) -> Vec<Effect> {
        let begun = self.config.begun.clone();
        let message = ToWorker::InspectData { job: Box::new(self.job.clone()), begun };
        self.send(self.config.workers[0].id, message);
        std::mem::take(&mut self.effects)
    }

    fn on_event(&mut self, now: Instant, event: Event) -> Vec<Effect> {
        if matches!(self.phase, Phase::Ended) {
            return Vec::new();
        }
        let handled = match event {
            Event::FromWorker { worker, message } => self.on_message(now, worker, message),
            Event::ParametersDone(value) => self.on_parameters_done(now, value),
            // The model is there: what is lost after that changes nothing of it.
            Event::Failed(_) if self.has_saved() => self.on_parameters_done(now, Value::Null),
            Event::Failed(error) => Err(error),
            Event::StopRequested => self.on_stop_requested(),
            Event::CheckpointRequested => {
                self.on_checkpoint_requested();
                Ok(())
            }
            Event::MemberAway { member } => {
                self.slow_workers.on_away(now, member);
                Ok(())
            }
            Event::MemberBack { member, incident } => {
                self.slow_workers.on_back(now, member);
                if let Some(line) = incident {
                    self.report_incident(&line);
                }
                Ok(())
            }
            Event::Timeout => Ok(()),
        };
        let handled = handled.and_then(|()| self.on_time(now));
        if let Err(error) = handled {
            self.end(Err(error));
        }
        std::mem::take(&mut self.effects)
    }
}

impl Driver {
    fn on_message(&mut self, now: Instant, worker: u32, message: FromWorker) -> Result<(), Error> {
        match message {
            FromWorker::DataInspected {
                schema,
                size_bytes,
                notices,
                task_count,
                greeting,
                previous,
                start,
                training,
                resume,
                data,
            } => {
                let load = |saved| self.config.families.load(&saved);
                let previous = previous.map(load).transpose()?;
                // Later runs compare their data with those of the first one.
                let first = self.config.begun.as_ref().and_then(|begun| begun.data.clone());
                let begun = BegunTraining { training: training.clone(), data: first.or(data.clone()) };
                self.begun = Some(begun.clone());
                self.effects.push(Effect::TrainingKnown(begun));
                let origin = Origin { training, resume, data };
                let plan = Plan::new(schema, size_bytes, notices, task_count, previous, start, origin);
                return self.on_data_inspected(now, plan, &greeting);
            }
            FromWorker::DataPrepared { scanned, summaries } => {
                return self.on_data_prepared(now, worker, scanned, summaries);
            }
            FromWorker::EpochEnded { report, is_stopped, bad_lines } => {
                return self.on_epoch_ended(now, worker, report, is_stopped, bad_lines);
            }
            FromWorker::TaskEnded { task, summary } => return self.on_task_ended(now, task, summary),
            FromWorker::Failed { task, error, exit, is_loss, rank } => {
                let error = self.worker_error(worker, task, &error, (exit, is_loss));
                return self.on_failed(now, error, rank);
            }
            FromWorker::ModelImported { notices } => return self.on_model_imported(now, notices),
            FromWorker::RowsRestored => return self.on_rows_restored(now),
            FromWorker::SavePlanned { plan, is_possible, clock } => {
                self.on_save_planned(now, plan, is_possible, clock);
            }
            FromWorker::TaskSaved { task, epoch, clock } => self.on_task_saved(now, task, epoch, clock),
            FromWorker::PartWritten { number, part } => return self.on_part_written(now, number, Ok(part)),
            FromWorker::CheckpointFailed { number, error } => {
                return self.on_part_written(now, number, Err(error));
            }
            FromWorker::CheckpointWritten { base } => return self.on_checkpoint_written(now, base),
            FromWorker::Progress { steps, records, loss_sum, bytes, scanned_bytes, busy_s } => {
                if scanned_bytes > 0 {
                    self.progress.add_scanned_bytes(scanned_bytes);
                }
                self.on_steps(worker, (steps, records), loss_sum, bytes, busy_s);
            }
            FromWorker::KeyNames { names } => self.on_key_names(&names),
            FromWorker::ModelSaved { manifest, beside, notices, sync_s } => {
                if let Some(path) = beside {
                    self.job.model = path;
                }
                self.on_model_saved(now, *manifest, notices, sync_s);
            }
            FromWorker::ReadingFinished => self.on_reading_finished(worker),
            // They belong to the driver of a scoring job.
            FromWorker::ScoringInspected { .. }
            | FromWorker::ChunkMetrics { .. }
            | FromWorker::ChunkScored { .. }
            | FromWorker::PartScored { .. }
            | FromWorker::ScoresJoined => {}
        }
        Ok(())
    }

    fn on_parameters_done(&mut self, now: Instant, value: Value) -> Result<(), Error> {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Creating(setup) => return self.on_parameters_created(now, setup),
            Phase::KeepingBest(setup) => return self.train(now, setup),
            Phase::Saving(saving) => self.on_final_stats(now, *saving, value),
            phase => {
                self.phase = phase;
                if !self.on_snapshot_taken(now, value == Value::Bool(true)) {
                    self.send_decision();
                }
            }
        }
        Ok(())
    }

    fn on_stop_requested(&mut self) -> Result<(), Error> {
        self.stop_requested = true;
        let doing = match &self.phase {
            Phase::Inspecting => "the data were opened",
            Phase::Preparing(_) => "the data were surveyed",
            Phase::Creating(_) => "the matrices were created",
            Phase::Importing(_) | Phase::KeepingBest(_) => "the earlier model was sent to the servers",
            Phase::Training(_) => {
                self.stop_tasks();
                return Ok(());
            }
            // The end is near.
            Phase::Saving(_) | Phase::Failing(_) | Phase::Ended => return Ok(()),
        };
        let what = format!("while {doing}, before the first step; no model was written");
        Err(Error::Interrupted { what })
    }

    /// Checks what depends on the time alone.
    fn on_time(&mut self, now: Instant) -> Result<(), Error> {
        match &self.phase {
            Phase::Training(training) => {
                training.check_wait(now, self.job.wait_limit)?;
                self.check_slow_workers(now);
                self.plan_checkpoint(now);
                self.report_status(now);
                Ok(())
            }
            Phase::Failing(_) => self.check_failing(now),
            _ => Ok(()),
        }
    }

    pub(crate) fn send(&mut self, worker: u32, message: ToWorker) {
        self.effects.push(Effect::Send { worker, message });
    }

    pub(crate) fn send_to_all(&mut self, message: &ToWorker) {
        for i in 0..self.config.workers.len() {
            self.send(self.config.workers[i].id, message.clone());
        }
    }

    /// Ends the job: frees the parameters and the workers.
    pub(crate) fn end(&mut self, result: Result<RunEnd, Error>) {
        self.phase = Phase::Ended;
        let reason = match &result {
            Ok(RunEnd::Finished(_) | RunEnd::Scored(_)) => None,
            Ok(RunEnd::TasksMove(_)) => Some("its tasks move to other workers".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        self.effects.push(Effect::Close { failure: reason.clone() });
        self.send_to_all(&ToWorker::End { reason });
        self.progress.clear();
        self.effects.push(Effect::End(Box::new(result)));
    }
}
