//! How far a training has come: what each phase knows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use algo::EpochReport;
use checkpoint::{DataFile, TrainingId};
use data::{BadLineTotal, LabelRule, NameCollector, Schema};
use matrix::MatrixSpec;
use model::{Manifest, TrainingPosition};
use rpc::layout::JobLayout;

use crate::checkpoint_state::Checkpointing;
use crate::config::RecordTimes;
use crate::epoch_monitor::{EpochMonitor, TrainingSummary, missing_reports_error};
use crate::error::Error;
use crate::failure::FailureRank;
use crate::messages::{ResumePoint, ToWorker};
use crate::totals::{TaskSummary, Totals};

/// How far the job has come. Each phase waits for something.
pub(crate) enum Phase {
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

/// A worker and the range of its tasks.
pub struct WorkerTasks {
    pub worker: u32,
    pub tasks: Range<u32>,
}

/// What the first worker found in the data, and which worker runs which tasks.
pub struct Plan {
    pub schema: Schema,
    pub label_rule: LabelRule,
    pub size_bytes: Option<u64>,
    pub notices: Vec<String>,
    pub task_count: u32,
    pub previous: Option<Arc<dyn algo::Model>>,
    pub start: TrainingPosition,
    pub training: TrainingId,
    /// The checkpoint from which training continues.
    pub resume: Option<ResumePoint>,
    /// The files of the data, if they can be read again.
    pub data: Option<Vec<DataFile>>,
    pub worker_tasks: Vec<WorkerTasks>,
}

/// What the first worker found about the training.
pub struct Origin {
    pub training: TrainingId,
    pub resume: Option<ResumePoint>,
    pub data: Option<Vec<DataFile>>,
}

/// The workers prepare their data.
pub(crate) struct Preparing {
    pub plan: Plan,
    /// Whether the data are surveyed, so that the open settings can be chosen.
    pub survey: bool,
    pub since: Instant,
    /// The summaries of the tasks of each worker, by the first of them.
    pub answers: BTreeMap<u32, Vec<TaskSummary>>,
}

/// Everything that is decided before the first step.
pub struct Setup {
    pub plan: Plan,
    pub model: Arc<dyn algo::Model>,
    /// Where the matrices are. Their schedules go on from the checkpoint, if there is one.
    pub layout: JobLayout,
    /// The matrices as the model describes them: their schedules begin where the training has begun.
    pub model_specs: Vec<MatrixSpec>,
    /// When the matrices were created.
    pub created_at: Option<Instant>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

impl Plan {
    /// Creates a plan whose label rule and tasks are not set yet.
    pub fn new(
        schema: Schema,
        size_bytes: Option<u64>,
        notices: Vec<String>,
        task_count: u32,
        previous: Option<Arc<dyn algo::Model>>,
        start: TrainingPosition,
        origin: Origin,
    ) -> Self {
        let Origin { training, resume, data } = origin;
        Self {
            schema,
            label_rule: LabelRule::Real,
            size_bytes,
            notices,
            task_count,
            previous,
            start,
            training,
            resume,
            data,
            worker_tasks: Vec::new(),
        }
    }

    pub(crate) fn first_task_of(&self, worker: u32) -> Option<u32> {
        self.worker_tasks.iter().find(|share| share.worker == worker).map(|share| share.tasks.start)
    }
}

/// The state of a job whose tasks run.
pub(crate) struct Training {
    pub setup: Setup,
    pub monitor: EpochMonitor,
    /// The reports of the current epoch by task.
    pub reports: Vec<Option<EpochReport>>,
    /// When the first task ended the current epoch.
    pub first_report: Option<Instant>,
    /// The summary of each task that has ended.
    pub summaries: Vec<Option<TaskSummary>>,
    /// Names of keys in the data.
    pub key_names: NameCollector,
    /// Bad lines by worker, in training and in validation.
    pub bad_lines: BTreeMap<u32, [BadLineTotal; 2]>,
    pub step_count: u64,
    /// Whether tasks have been requested to stop.
    pub stop_sent: bool,
    /// The decision that is sent when the snapshot of the best epoch is taken or restored.
    pub pending_decision: Option<ToWorker>,
    pub since: Instant,
    pub checkpointing: Checkpointing,
    /// The worker of which the user was told that it is slow.
    pub told_slow: Option<u32>,
    /// Set when tasks move to other workers after the next checkpoint.
    pub moves: Option<RecordTimes>,
}

impl Training {
    pub(crate) fn new(
        setup: Setup,
        monitor: EpochMonitor,
        step_count: u64,
        checkpointing: Checkpointing,
        now: Instant,
    ) -> Self {
        let task_count = setup.plan.task_count;
        Self {
            setup,
            monitor,
            reports: (0..task_count).map(|_| None).collect(),
            first_report: None,
            summaries: (0..task_count).map(|_| None).collect(),
            key_names: NameCollector::default(),
            bad_lines: BTreeMap::new(),
            step_count,
            stop_sent: false,
            pending_decision: None,
            since: now,
            checkpointing,
            told_slow: None,
            moves: None,
        }
    }

    /// Returns an error when tasks have waited longer than `wait_limit` for the report of another task.
    pub(crate) fn check_wait(&self, now: Instant, wait_limit: Duration) -> Result<(), Error> {
        match self.first_report {
            Some(since) if now.saturating_duration_since(since) > wait_limit => {
                Err(missing_reports_error(&self.reports, wait_limit))
            }
            _ => Ok(()),
        }
    }

    /// Returns the summaries in the order of tasks; none while a task runs.
    pub(crate) fn take_summaries(&mut self) -> Option<Vec<TaskSummary>> {
        let all_ended = self.summaries.iter().all(Option::is_some);
        all_ended.then(|| self.summaries.iter_mut().filter_map(Option::take).collect())
    }
}

/// The state of a job whose model is saved.
pub struct Saving {
    pub plan: Plan,
    pub totals: Totals,
    pub summary: TrainingSummary,
    pub notices: Vec<String>,
    pub since: Instant,
    /// The manifest of the saved model.
    pub manifest: Option<Manifest>,
}

/// The state of a job in which a task has failed.
pub(crate) struct Failing {
    /// The failure that is reported unless another one precedes it.
    pub rank: FailureRank,
    pub error: Error,
    /// Workers none of whose tasks reads any more.
    pub finished: BTreeSet<u32>,
    pub deadline: Instant,
}
