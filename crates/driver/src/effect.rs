//! What a driver learns, and what it wants done.

use std::time::Instant;

use rpc::layout::JobLayout;
use rpc::message::Base64Bytes;
use serde_json::{Map, Value};

use crate::config::RecordTimes;
use crate::error::Error;
use crate::messages::{BegunTraining, FromWorker, ToWorker};
use crate::report::Report;

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

/// The state machine that decides the course of a job.
pub trait JobDriver {
    /// Returns the first effects.
    fn start(&mut self) -> Vec<Effect>;

    /// Handles an event; returns what must be done now.
    fn on_event(&mut self, now: Instant, event: Event) -> Vec<Effect>;
}
