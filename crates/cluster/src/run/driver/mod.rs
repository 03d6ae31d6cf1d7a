//! The driver decides the course of one training job: it has the workers inspect the data, chooses the settings, has
//! the parameters created, starts the tasks, decides after every epoch, and has a worker save the model. It handles
//! neither records nor parameters.
//!
//! The driver is a state machine without threads, sockets and clocks. [`Driver::on_event`] takes an event and the time,
//! and returns effects. Jobs in one process and jobs on a cluster differ only in what carries out the effects
//! ([`drive`](run_loop::drive)): a channel and a store, or the connections to workers and servers.
//!
//! | file | contents |
//! |---|---|
//! | [`messages`] | messages between driver and workers |
//! | `preparation` | from the inspection of the data to the first step |
//! | `training` | reports, decisions after epochs, the end of tasks |
//! | `checkpointing`, `checkpoint_state` | when checkpoints are made, and who writes what |
//! | `slow_workers` | which worker is slow, and where its tasks could go |
//! | `saving` | the model and the report |
//! | [`scoring`] | the driver of a job that scores records |
//! | `failing` | which failure of several is reported |
//! | `settings_chooser`, `epoch_monitor` | the decisions themselves |
//! | `job_layout`, `memory_check` | where the parameters are |
//! | `job_progress` | the progress that `status` shows |
//! | [`run_loop`] | carries out the effects |

mod checkpoint_state;
mod checkpointing;
pub mod epoch_monitor;
mod failing;
mod job_layout;
mod job_progress;
mod memory_check;
pub mod messages;
mod preparation;
pub mod run_loop;
mod saving;
pub mod scoring;
mod settings_chooser;
mod slow_workers;
mod training;

use std::sync::Arc;
use std::time::{Duration, Instant};

use algo::Families;
use rpc::message::{Base64Bytes, JobId};
use serde_json::{Map, Value};
use worker::JobLayout;

pub use self::job_layout::ParameterPlace;
pub use self::job_progress::Incidents;
pub use self::slow_workers::RecordTimes;

use self::failing::Failing;
use self::job_progress::JobProgress;
use self::messages::{BegunTraining, FromWorker, ToWorker};
use self::preparation::{Origin, Plan, Preparing, Setup};
use self::run_loop::JobDriver;
use self::saving::Saving;
use self::slow_workers::SlowWorkers;
use self::training::Training;
use crate::error::Error;
use crate::job::TrainJob;
use crate::job::raw::RawJob;
use crate::progress::{ProgressListener, SilentProgress};
use crate::report::{Report, Timings};

/// A worker of a job.
#[derive(Clone, Debug)]
pub struct WorkerInfo {
    pub id: u32,
    /// Its name in messages to the user; none for the only worker of a job in one process.
    pub name: Option<String>,
    /// Number of tasks that it runs well at the same time; at least 1.
    pub slots: u32,
}

/// Where a job runs.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    pub job: JobId,
    /// At least one.
    pub workers: Vec<WorkerInfo>,
    pub parameters: ParameterPlace,
    /// Learns of the progress, unless the job is quiet.
    pub progress: Arc<dyn ProgressListener>,
    pub families: Families,
    /// The number of the run of the job, from 1: a job that has lost a member is run again.
    pub run: u32,
    /// What an earlier run has begun.
    pub begun: Option<BegunTraining>,
    /// The times for a record that earlier runs have measured: the tasks are spread over the workers by them.
    pub record_times: RecordTimes,
    /// How often tasks have moved to other workers in earlier runs.
    pub move_count: u32,
    /// How long the job ran before this run.
    pub earlier_time: Duration,
    /// What happened in earlier runs.
    pub incidents: Incidents,
}

/// What the driver learns.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one event exists at a time")]
pub enum Event {
    /// A message of a worker of the job.
    FromWorker { worker: u32, message: FromWorker },
    /// The last [`Effect::Parameters`] is carried out. The value has the counters after [`ParametersRequest::Stats`]; after
    /// `TakeSnapshot` for a checkpoint it says whether there was memory for it; otherwise it is null.
    ParametersDone(Value),
    /// The job cannot continue: a member is lost, or a request to the parameters failed.
    Failed(Error),
    /// The user wants the job to stop.
    StopRequested,
    /// The user wants a checkpoint soon.
    CheckpointRequested,
    /// The connection of a member of the job has ended. It may come back.
    MemberAway { member: u32 },
    /// A member is back, or another one has taken its place; with what the user should know of it.
    MemberBack { member: u32, incident: Option<String> },
    /// Nothing happened for a while. Time limits are checked.
    Timeout,
}

/// What the driver wants done. Effects are carried out in their order.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a few effects exist at a time")]
pub enum Effect {
    Send {
        worker: u32,
        message: ToWorker,
    },
    /// Answered by [`Event::ParametersDone`] or [`Event::Failed`].
    Parameters(ParametersRequest),
    /// Frees a snapshot. No answer.
    DropSnapshot(SnapshotPurpose),
    /// The training that this run begins or continues.
    TrainingKnown(BegunTraining),
    /// Frees the parameters. No answer.
    Close {
        /// The reason why the job failed; none after success.
        failure: Option<String>,
    },
    /// The progress that users see.
    Status(Map<String, Value>),
    /// The last effect.
    End(Box<Result<RunEnd, Error>>),
}

/// A request to the servers, or to the store of this process.
#[derive(Debug)]
pub enum ParametersRequest {
    /// Creates the matrices.
    Create {
        layout: Box<JobLayout>,
        /// WebAssembly modules with functions of the job.
        modules: Vec<Base64Bytes>,
        /// The name of the worker of each task.
        workers: Vec<String>,
    },
    /// Takes a snapshot of all rows, in place of the one for the same purpose.
    TakeSnapshot {
        purpose: SnapshotPurpose,
        /// Whether changes are recorded from now on, for the next checkpoint.
        records_changes: bool,
    },
    /// Replaces all rows by those of the best epoch.
    RestoreBest,
    /// Reads the counters.
    Stats,
}

/// What a snapshot of all rows is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotPurpose {
    /// The best epoch so far, with early stopping.
    BestEpoch = 0,
    /// A checkpoint, which is written while the tasks go on.
    Checkpoint = 1,
}

impl SnapshotPurpose {
    /// Number of purposes.
    pub const COUNT: usize = 2;
}

/// How a run ends that did not fail.
#[derive(Debug)]
pub enum RunEnd {
    Finished(Box<FinishedJob>),
    /// There is a checkpoint, from which another run continues, with its tasks spread over the workers by these times for a
    /// record.
    TasksMove(RecordTimes),
    /// Records were scored, with this result of the command.
    Scored(Value),
}

/// The result of a job that did not fail.
#[derive(Debug)]
pub struct FinishedJob {
    pub report: Report,
    /// Whether all epochs were run, or early stopping ended them.
    pub is_complete: bool,
}

/// The driver of one job.
pub struct Driver {
    config: DriverConfig,
    raw: RawJob,
    /// The job as it was given, with open settings.
    given: RawJob,
    job: TrainJob,
    /// The settings that the program chose, and why.
    reasons: Vec<String>,
    begun: Option<BegunTraining>,
    /// Silent until the data are inspected.
    progress: Arc<dyn ProgressListener>,
    start: Instant,
    timings: Timings,
    job_progress: JobProgress,
    slow_workers: SlowWorkers,
    stop_requested: bool,
    /// Whether the user asked for a checkpoint before the tasks began.
    is_checkpoint_requested: bool,
    phase: Phase,
    effects: Vec<Effect>,
}

/// How far the job has come. Each phase waits for something.
enum Phase {
    /// The first worker opens the data.
    Inspecting,
    /// The workers open their shares of the data, and read them if that is necessary.
    Preparing(Box<Preparing>),
    /// The matrices are created.
    Creating(Box<Setup>),
    /// A worker sends the earlier model or a checkpoint to the matrices.
    Importing(Box<Setup>),
    /// A snapshot of the rows of the best epoch, which the checkpoint had, is taken.
    KeepingBest(Box<Setup>),
    /// The tasks run.
    Training(Box<Training>),
    /// A worker saves the model.
    Saving(Box<Saving>),
    /// A task has failed, and others may fail before it.
    Failing(Failing),
    /// Every event is ignored. A handler that moves the state to another phase leaves this one behind if it fails.
    Ended,
}

impl Driver {
    /// Creates the driver of a checked job. `now` is its start.
    pub fn new(config: DriverConfig, raw: RawJob, job: TrainJob, now: Instant) -> Self {
        let epochs = job.parameters.needs().epochs;
        let job_progress = JobProgress::new(now, epochs, config.incidents.clone());
        Self {
            config,
            given: raw.clone(),
            raw,
            job,
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
        }
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
    fn report_incident(&mut self, line: &str) {
        self.progress.print_line(line);
        self.job_progress.incidents.add(line);
    }
}

impl JobDriver for Driver {
    fn start(&mut self) -> Vec<Effect> {
        let begun = self.config.begun.clone();
        let message = ToWorker::InspectData { job: self.raw.clone(), begun };
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

    fn send(&mut self, worker: u32, message: ToWorker) {
        self.effects.push(Effect::Send { worker, message });
    }

    fn send_to_all(&mut self, message: &ToWorker) {
        for i in 0..self.config.workers.len() {
            self.send(self.config.workers[i].id, message.clone());
        }
    }

    /// Ends the job: frees the parameters and the workers.
    fn end(&mut self, result: Result<RunEnd, Error>) {
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
