//! A worker in the simulation: it does what the driver requests, and its tasks make steps.

use std::collections::BTreeMap;

use algo::metric::RealAccumulator;
use algo::{DataFacts, EpochDecision, EpochReport, MetricAccumulator, SavedModel};
use checkpoint::{Base, PartFile};
use data::{Schema, Survey};
use driver::failure::{FailureRank, ReadPosition};
use driver::messages::{FromWorker, ToWorker};
use driver::totals::TaskSummary;
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
    /// It has come to the clock of a plan and waits for the decision about it.
    AtPlan,
    /// It waits for all other tasks of the job, to save or to end its epoch.
    AtBarrier,
    /// It has saved its state and waits for the end of the save.
    Saved,
    Ended,
}

#[derive(Clone, Debug)]
struct Task {
    epoch: u64,
    batch: u64,
    state: TaskState,
}

impl Task {
    fn clock(&self, scenario: &Scenario) -> u64 {
        self.epoch * scenario.batches + self.batch
    }
}

/// A plan of the driver to save at a clock.
#[derive(Clone, Copy, Debug)]
struct SavePlan {
    number: u64,
    clock: u64,
    is_confirmed: bool,
}

/// Why a task waits for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierReason {
    DataEnded,
    Stopped,
    Save,
}

/// What a worker does next.
#[derive(Clone, Debug)]
pub(crate) enum WorkerAction {
    /// Sends a message when a file is written.
    WriteLater(FromWorker),
    Send(FromWorker),
    /// The task waits for all other tasks of the job.
    Arrive {
        task: u32,
        reason: BarrierReason,
    },
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
    plan: Option<SavePlan>,
    /// Whether it agrees to every plan, which is a fault.
    accepts_every_plan: bool,
    /// Where its tasks stop reading after a failure.
    limit: Option<ReadPosition>,
    is_finish_requested: bool,
    pub(crate) has_ended: bool,
}

impl Worker {
    pub(crate) fn new(number: u32, accepts_every_plan: bool) -> Self {
        Self {
            number,
            tasks: BTreeMap::new(),
            assigned: 0..0,
            message_count: 0,
            is_stopped: false,
            plan: None,
            accepts_every_plan,
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
            ToWorker::EpochDecided { decision, .. } => self.on_decision(scenario, decision, &mut actions),
            ToWorker::Stop => self.is_stopped = true,
            ToWorker::FinishReading { position } => {
                (self.limit, self.is_finish_requested) = (position, true);
                self.report_idle(&mut actions);
            }
            ToWorker::KeyNames { .. } => {}
            ToWorker::InspectScoring { .. } | ToWorker::Score { .. } | ToWorker::JoinScores { .. } => {
                unreachable!("the job is a training")
            }
            ToWorker::RestoreRows { .. } => unreachable!("no job continues from a checkpoint"),
            ToWorker::PlanSave { plan, clock } => {
                let clock = clock.expect("these jobs are bsp");
                actions.push(WorkerAction::Send(self.plan_save(scenario, plan, clock)));
            }
            ToWorker::DecideSave { plan, is_confirmed } => {
                self.decide_save(plan, is_confirmed, &mut actions);
            }
            ToWorker::EndSave => self.end_save(&mut actions),
            ToWorker::WritePart { checkpoint, name, rows } => {
                let number = checkpoint.number;
                let is_failing = rows.is_some() && scenario.failed_checkpoint == Some(number);
                actions.push(WorkerAction::WriteLater(if is_failing {
                    FromWorker::CheckpointFailed { number, error: "the disk is full".into() }
                } else {
                    FromWorker::PartWritten { number, part: self.part(name, rows.is_some()) }
                }));
            }
            ToWorker::CommitCheckpoint { manifest, .. } => {
                let base = Base { number: manifest.number, crc32c: 0 };
                actions.push(WorkerAction::Send(FromWorker::CheckpointWritten { base }));
            }
            ToWorker::SaveModel { manifest, .. } => {
                actions.push(WorkerAction::SaveModel(FromWorker::ModelSaved {
                    manifest,
                    beside: None,
                    notices: Vec::new(),
                    sync_s: 0.0,
                }));
            }
            ToWorker::DropCheckpoint { .. } => {}
            ToWorker::End { .. } => self.has_ended = true,
        }
        actions
    }

    /// The file of a checkpoint that this worker has written.
    fn part(&self, name: String, has_rows: bool) -> PartFile {
        let tasks = self.assigned.clone().collect();
        PartFile { name, size_bytes: 1, tasks, has_rows, row_counts: Vec::new() }
    }

    /// All tasks of the job meet: they save, or end their epoch.
    pub(crate) fn on_met(&mut self, scenario: &Scenario, saves: bool) -> Vec<WorkerAction> {
        let mut actions = Vec::new();
        let at_barrier = self.tasks.iter_mut().filter(|(_, task)| task.state == TaskState::AtBarrier);
        let mut ended = Vec::new();
        for (&number, task) in at_barrier {
            if saves {
                task.state = TaskState::Saved;
                actions.push(WorkerAction::Send(saved(scenario, number, task)));
            } else {
                task.state = TaskState::Waiting;
                ended.push((number, task.epoch));
            }
        }
        for (task, epoch) in ended {
            if scenario.misfortune != (Misfortune::SilentTask { task, epoch }) {
                actions.push(WorkerAction::Send(self.epoch_report(scenario, task, epoch)));
            }
        }
        actions
    }

    fn plan_save(&mut self, scenario: &Scenario, number: u64, clock: u64) -> FromWorker {
        let clocks = self.tasks.values().map(|task| task.clock(scenario));
        let largest = (!self.assigned.is_empty()).then(|| clocks.max().unwrap_or(0));
        let is_possible = self.accepts_every_plan || largest.is_some_and(|largest| largest < clock);
        if is_possible {
            self.plan = Some(SavePlan { number, clock, is_confirmed: false });
        }
        FromWorker::SavePlanned { plan: number, is_possible, clock: largest }
    }

    fn decide_save(&mut self, number: u64, is_confirmed: bool, actions: &mut Vec<WorkerAction>) {
        let Some(plan) = self.plan.as_mut().filter(|plan| plan.number == number) else { return };
        plan.is_confirmed = is_confirmed;
        if !is_confirmed {
            self.plan = None;
        }
        for (&number, task) in self.tasks.iter_mut().filter(|(_, task)| task.state == TaskState::AtPlan) {
            if is_confirmed {
                task.state = TaskState::AtBarrier;
                actions.push(WorkerAction::Arrive { task: number, reason: BarrierReason::Save });
            } else {
                task.state = TaskState::Running;
                actions.push(WorkerAction::StepLater(number));
            }
        }
    }

    fn end_save(&mut self, actions: &mut Vec<WorkerAction>) {
        self.plan = None;
        for (&number, task) in &mut self.tasks {
            if task.state == TaskState::Saved {
                task.state = TaskState::Running;
                actions.push(WorkerAction::StepLater(number));
            }
        }
    }

    fn on_decision(&mut self, scenario: &Scenario, decision: EpochDecision, actions: &mut Vec<WorkerAction>) {
        self.plan = None;
        for (&number, task) in &mut self.tasks {
            if task.state != TaskState::Waiting {
                continue;
            }
            match decision {
                EpochDecision::Save => {
                    *task = Task { epoch: task.epoch + 1, batch: 0, state: TaskState::Saved };
                    actions.push(WorkerAction::Send(saved(scenario, number, task)));
                }
                EpochDecision::Continue => {
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
        let plan = self.plan.filter(|plan| task.clock(scenario) >= plan.clock);
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
                is_loss: false,
                rank,
            }));
        } else if let Some(plan) = plan.filter(|_| !self.is_stopped) {
            if plan.is_confirmed {
                task.state = TaskState::AtBarrier;
                actions.push(WorkerAction::Arrive { task: number, reason: BarrierReason::Save });
            } else {
                task.state = TaskState::AtPlan;
            }
        } else if task.batch == scenario.batches || self.is_stopped {
            task.state = TaskState::AtBarrier;
            let reason = if self.is_stopped { BarrierReason::Stopped } else { BarrierReason::DataEnded };
            actions.push(WorkerAction::Arrive { task: number, reason });
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

fn saved(scenario: &Scenario, number: u32, task: &Task) -> FromWorker {
    FromWorker::TaskSaved { task: number, epoch: task.epoch, clock: task.clock(scenario) }
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
    FromWorker::Failed {
        task: None,
        error: worker_failure_text(worker),
        exit: EXIT,
        is_loss: false,
        rank: None,
    }
}

fn progress(steps: u64) -> FromWorker {
    FromWorker::Progress {
        steps,
        records: steps,
        loss_sum: 0.5,
        bytes: 1,
        scanned_bytes: 1 - steps.min(1),
        busy_s: 0.0,
    }
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
    let linear = families::all().configure("linear", &algo::param::ParamValues::default());
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
        data: Some(Vec::new()),
    }
}
