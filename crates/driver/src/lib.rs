//! The course of a job: a pure state machine, and the messages between it and the workers. It decides; it handles neither
//! records nor parameters, and it has no threads, sockets, files and clocks: [`Driver::on_event`](driver::Driver) takes an event
//! and the time, and returns effects. Jobs in one process and jobs on a cluster differ only in what carries out the effects.
//!
//! | file | contents |
//! |---|---|
//! | [`driver`], `phase`, [`config`], [`effect`] | the driver of a training, its phases, where it runs, events and effects |
//! | [`messages`] | messages between driver and workers |
//! | `preparation` | from the inspection of the data to the first step |
//! | `training` | reports, decisions after epochs, the end of tasks |
//! | `checkpointing`, `checkpoint_state` | when checkpoints are made, and who writes what |
//! | `slow_workers` | which worker is slow, and where its tasks could go |
//! | `saving`, [`run_info`], [`report`] | the model and the report |
//! | [`scoring`], [`evaluation`], [`prediction`] | the driver of a job that scores records, and its results |
//! | `failing`, [`failure`] | which failure of several is reported |
//! | `settings_chooser`, [`epoch_monitor`] | the decisions themselves |
//! | `job_layout`, `memory_check` | where the parameters are |
//! | `job_progress`, [`progress`] | the progress that `status` shows, and what a run tells |
//! | [`totals`], [`coverage`] | what the tasks have read |
//! | [`labels`], [`amounts`] | labels and numbers as people read them |
//! | [`error`] | the errors of jobs, and the exit code of each |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests begin at any time"))]

pub mod amounts;
mod checkpoint_state;
mod checkpointing;
pub mod config;
pub mod coverage;
pub mod driver;
pub mod effect;
pub mod epoch_monitor;
pub mod error;
pub mod evaluation;
mod failing;
pub mod failure;
mod job_layout;
mod job_progress;
pub mod labels;
mod memory_check;
pub mod messages;
mod phase;
pub mod prediction;
mod preparation;
pub mod progress;
pub mod report;
pub mod run_info;
mod saving;
pub mod scoring;
mod settings_chooser;
mod slow_workers;
pub mod totals;
mod training;

pub use self::config::{DriverConfig, ParameterPlace, RecordTimes, WorkerInfo};
pub use self::driver::Driver;
pub use self::effect::{Effect, Event, FinishedJob, JobDriver, ParametersRequest, RunEnd, SnapshotPurpose};
pub use self::error::Error;
pub use self::job_progress::Incidents;
