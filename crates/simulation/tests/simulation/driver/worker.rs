//! A worker in the simulation: it does what the driver requests, and its tasks make steps.

use std::collections::BTreeMap;

use algo::metric::RealAccumulator;
use algo::{DataFacts, EpochDecision, EpochReport, MetricAccumulator, SavedModel};
use cluster::run::driver::messages::{FromWorker, ToWorker};
use cluster::run::failure::{FailureRank, ReadPosition};
use cluster::run::totals::TaskSummary;
use data::{Schema, Survey};
use model::TrainingPosition;

use super::scenario::{Misfortune, Scenario};

/// Exit code of the failures in the simulation: bad data.
const EXIT: u8 = 3;
/// Records of a task.
const RECORDS: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    Running,
    /// It has ended an epoch and waits for the decision.
    Waiting,
    Ended,
}

#[derive(Clone, Debug)]
struct Task {
    epoch: u64,
    batch: u64,
    state: TaskState,
}

/// What a worker does next.
#[derive(Clone, Debug)]
pub(crate) enum WorkerAction {
    Send(FromWorker),
    /// The task makes its next step later.
    StepLater(u32),
    /// The worker writes the model with the rows of the parameters.
    SaveModel(FromWorker),
}

#[derive(Clone, Debug)]
pub(crate) struct Worker {
    number: u32,
    tasks: BTreeMap<u32, Task>,
    /// Numbers of its tasks.
    assigned: std::ops::Range<u32>,
    message_count: u32,
    is_stopped: bool,
    /// Where its tasks stop reading after a failure.
    limit: Option<ReadPosition>,
    is_finish_requested: bool,
    pub(crate) has_ended: bool,
}

impl Worker {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            number,
            tasks: BTreeMap::new(),
            assigned: 0..0,
            message_count: 0,
            is_stopped: false,
            limit: None,
            is_finish_requested: false,
            has_ended: false,
        }
    }

    pub(crate) fn on_message(&mut self, scenario: &Scenario, message: ToWorker) -> Vec<WorkerAction> {
        let failing = Misfortune::WorkerFails { worker: self.number, message: self.message_count };
        self.message_count += 1;
        if scenario.misfortune == failing && !matches!(message, ToWorker::End { .. }) {
            return vec![WorkerAction::Send(worker_failure(self.number))];
        }
        let mut actions = Vec::new();
        match message {
            ToWorker::InspectData { .. } => actions.push(WorkerAction::Send(inspection(scenario))),
            ToWorker::PrepareData { first, count, survey, .. } => {
                self.assigned = first..first + count;
                let summaries = (0..count).map(|_| summary(survey)).collect();
                actions.push(WorkerAction::Send(progress(0)));
                actions.push(WorkerAction::Send(FromWorker::DataPrepared { scanned: survey, summaries }));
            }
            ToWorker::ImportModel { .. } => {
                let notices = vec!["imported".into()];
                actions.push(WorkerAction::Send(FromWorker::ModelImported { notices }));
            }
            ToWorker::Train { .. } => {
                for task in self.assigned.clone() {
                    self.tasks.insert(task, Task { epoch: 0, batch: 0, state: TaskState::Running });
                    actions.push(WorkerAction::StepLater(task));
                }
            }
            ToWorker::EpochDecided { decision, .. } => self.on_decision(decision, &mut actions),
            ToWorker::Stop => self.is_stopped = true,
            ToWorker::FinishReading { position } => {
                (self.limit, self.is_finish_requested) = (position, true);
                self.report_idle(&mut actions);
            }
            ToWorker::KeyNames { .. } => {}
            // These jobs have data that cannot be read again, so no checkpoints.
            ToWorker::RestoreRows { .. }
            | ToWorker::PlanSave { .. }
            | ToWorker::DecideSave { .. }
            | ToWorker::EndSave
            | ToWorker::WritePart { .. }
            | ToWorker::CommitCheckpoint { .. } => unreachable!("there are no checkpoints"),
            ToWorker::SaveModel { manifest, .. } => {
                actions.push(WorkerAction::SaveModel(FromWorker::ModelSaved { manifest, sync_s: 0.0 }));
            }
            ToWorker::End { .. } => self.has_ended = true,
        }
        actions
    }

    fn on_decision(&mut self, decision: EpochDecision, actions: &mut Vec<WorkerAction>) {
        for (&number, task) in &mut self.tasks {
            if task.state != TaskState::Waiting {
                continue;
            }
            match decision {
                EpochDecision::Continue | EpochDecision::Save => {
                    *task = Task { epoch: task.epoch + 1, batch: 0, state: TaskState::Running };
                    actions.push(WorkerAction::StepLater(number));
                }
                EpochDecision::Stop => {
                    task.state = TaskState::Ended;
                    let summary = summary(false);
                    actions.push(WorkerAction::Send(FromWorker::TaskEnded { task: number, summary }));
                }
            }
        }
    }

    /// A task makes a step, or fails, or ends its epoch.
    pub(crate) fn step(&mut self, scenario: &Scenario, number: u32) -> Vec<WorkerAction> {
        let mut actions = Vec::new();
        let Some(task) = self.tasks.get_mut(&number).filter(|task| task.state == TaskState::Running) else {
            return actions;
        };
        if self.has_ended {
            return actions;
        }
        let next = ReadPosition::new(task.epoch + 1, task.batch + 1);
        let epoch = task.epoch;
        if self.limit.is_some_and(|limit| next > limit) {
            task.state = TaskState::Ended;
        } else if scenario.failures.contains(&(epoch, task.batch + 1, number)) {
            task.state = TaskState::Ended;
            let rank = Some(FailureRank::of_cause(next, number));
            let error = failure_text(number);
            actions.push(WorkerAction::Send(FromWorker::Failed {
                task: Some(number),
                error,
                exit: EXIT,
                rank,
            }));
        } else if task.batch == scenario.batches || self.is_stopped {
            task.state = TaskState::Waiting;
            if scenario.misfortune != (Misfortune::SilentTask { task: number, epoch }) {
                actions.push(WorkerAction::Send(self.epoch_report(scenario, number, epoch)));
            }
        } else {
            task.batch += 1;
            actions.push(WorkerAction::Send(progress(1)));
            actions.push(WorkerAction::StepLater(number));
        }
        self.report_idle(&mut actions);
        actions
    }

    /// Reports that no task reads any more, once.
    fn report_idle(&mut self, actions: &mut Vec<WorkerAction>) {
        let is_idle = self.tasks.values().all(|task| task.state != TaskState::Running);
        if self.is_finish_requested && is_idle {
            self.is_finish_requested = false;
            actions.push(WorkerAction::Send(FromWorker::ReadingFinished));
        }
    }

    fn epoch_report(&self, scenario: &Scenario, task: u32, epoch: u64) -> FromWorker {
        let mut parts = RealAccumulator::default();
        parts.loss.add(scenario.losses[epoch as usize], 1.0);
        let parts = MetricAccumulator::Real(parts);
        let report = EpochReport {
            task,
            epoch,
            epoch_count: scenario.epochs,
            record_count: RECORDS,
            clock: scenario.batches * (epoch + 1),
            training: parts.clone(),
            validation: Some(parts),
            notice: None,
        };
        FromWorker::EpochEnded { report, is_stopped: self.is_stopped, bad_lines: Default::default() }
    }
}

/// The text of the failure of a task.
pub(crate) fn failure_text(task: u32) -> String {
    format!("line of task {task} is bad")
}

/// The text of the failure of a worker.
pub(crate) fn worker_failure_text(worker: u32) -> String {
    format!("the disk of worker {worker} is full")
}

fn worker_failure(worker: u32) -> FromWorker {
    FromWorker::Failed { task: None, error: worker_failure_text(worker), exit: EXIT, rank: None }
}

fn progress(steps: u64) -> FromWorker {
    FromWorker::Progress { steps, records: steps, loss_sum: 0.5, bytes: 1, scanned_bytes: 1 - steps.min(1) }
}

fn summary(survey: bool) -> TaskSummary {
    let mut summary = TaskSummary::default();
    summary.training.record_count = RECORDS;
    summary.training.survey = survey.then(|| {
        let mut survey = Survey::default();
        (survey.record_count, survey.entry_count) = (RECORDS, RECORDS);
        Box::new(survey)
    });
    summary
}

fn inspection(scenario: &Scenario) -> FromWorker {
    let linear = algo::Families::default().configure("linear", &BTreeMap::new());
    let facts = DataFacts { record_count: RECORDS, feature_count: 1, ..DataFacts::default() };
    let previous = linear.and_then(|linear| linear.model(&facts, None)).expect("the defaults are valid");
    FromWorker::DataInspected {
        schema: Schema { format: "libsvm".into(), ..Schema::default() },
        size_bytes: Some(1_000),
        notices: Vec::new(),
        task_count: scenario.tasks,
        greeting: String::new(),
        previous: scenario.resumed.then(|| SavedModel::new(&*previous)),
        start: TrainingPosition::default(),
        training: "simulated".into(),
        resume: None,
        data: None,
    }
}
