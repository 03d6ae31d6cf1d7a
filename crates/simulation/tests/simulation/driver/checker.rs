//! Checks a run of the driver from outside: what it sent, what it received, how the job ended.

use std::collections::BTreeMap;

use algo::EpochDecision;
use checkpoint::Manifest;
use driver::messages::{FromWorker, ToWorker};

use super::Facts;
use super::scenario::{Misfortune, Scenario, WAIT_LIMIT};
use super::worker::{failure_text, worker_failure_text};
use super::world::{History, MEMBER_LOST, PARAMETERS_FAILED, Seen};

/// Time after its cause within which a job must end, in microseconds: a step of each batch that tasks still read, and
/// delays of messages.
const END_LIMIT: u64 = 4_000_000;

/// Time after a stop within which the last step is reported, in microseconds: a message to the tasks, a step, a message
/// of it, and an answer of the parameters in between.
const STOP_LIMIT: u64 = 60_000;

pub(crate) fn check(scenario: &Scenario, history: &History) -> (Vec<String>, Facts) {
    let mut checker = Checker { scenario, faults: Vec::new(), facts: Facts::default() };
    let ends = history.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Ended(_))).count();
    if ends == 1 {
        checker.check_end(history);
        checker.check_result(history);
    } else {
        checker.faults.push(format!("the job has {ends} ends"));
    }
    checker.check_decisions(history);
    checker.check_stop(history);
    checker.check_checkpoints(history);
    checker.facts.surveyed = u64::from(scenario.survey);
    let is_import =
        |(_, seen): &(u64, Seen)| matches!(seen, Seen::Sent { message: ToWorker::ImportModel { .. }, .. });
    checker.facts.imported = u64::from(history.seen.iter().any(is_import));
    (checker.faults, checker.facts)
}

struct Checker<'a> {
    scenario: &'a Scenario,
    faults: Vec<String>,
    facts: Facts,
}

impl Checker<'_> {
    /// Every worker learns of the end once, as the last message; the parameters are closed once, before the end.
    fn check_end(&mut self, history: &History) {
        let mut ends: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut closed, mut ended) = (0, false);
        for (_, seen) in &history.seen {
            match seen {
                Seen::Sent { worker, message } => {
                    if ends.contains_key(worker) {
                        self.faults.push(format!("worker {worker} receives {message:?} after the end"));
                    }
                    if matches!(message, ToWorker::End { .. }) {
                        *ends.entry(*worker).or_default() += 1;
                    }
                }
                Seen::Closed => closed += 1,
                Seen::Ended(_) => ended = true,
                _ => {}
            }
            if ended && closed != 1 {
                self.faults.push(format!("the parameters are closed {closed} times"));
            }
        }
        if history.ended_workers != self.scenario.workers {
            self.faults.push(format!("{} workers have ended", history.ended_workers));
        }
    }

    /// The result is that of the scenario.
    fn check_result(&mut self, history: &History) {
        let Some((at, Seen::Ended(result))) =
            history.seen.iter().find(|(_, seen)| matches!(seen, Seen::Ended(_)))
        else {
            return;
        };
        let before = || history.seen.iter().filter(|(time, _)| time <= at);
        let time_of = |is: &dyn Fn(&Seen) -> bool| before().find(|(_, seen)| is(seen)).map(|(time, _)| *time);
        let lost = time_of(&|seen| matches!(seen, Seen::MemberLost));
        let parameters_failed = time_of(&|seen| matches!(seen, Seen::ParametersFailed));
        let stopped = time_of(&|seen| matches!(seen, Seen::StopRequested));
        let worker_failed =
            time_of(&|seen| matches!(seen, Seen::Received(FromWorker::Failed { rank: None, .. })));
        let task_failed =
            time_of(&|seen| matches!(seen, Seen::Received(FromWorker::Failed { rank: Some(_), .. })));
        match result {
            Ok(is_complete) => self.check_success(history, *is_complete, stopped.is_some()),
            Err(text) => {
                let causes = [lost, parameters_failed, stopped, worker_failed, task_failed];
                let cause = causes.into_iter().flatten().min();
                self.check_failure(text, cause, task_failed.is_some(), stopped.is_some());
                let silent = matches!(self.scenario.misfortune, Misfortune::SilentTask { .. });
                let limit = if silent { WAIT_LIMIT.as_micros() as u64 } else { 0 };
                if cause.is_some_and(|cause| at - cause > END_LIMIT + limit) {
                    self.faults.push(format!("the job ended {} us after its cause", at - cause.unwrap_or(0)));
                }
            }
        }
    }

    fn check_success(&mut self, history: &History, is_complete: bool, is_stopped: bool) {
        self.facts.finished += 1;
        let (last, best) = self.scenario.outcome();
        let saved: Vec<u64> = history
            .seen
            .iter()
            .filter_map(|(_, seen)| if let Seen::Saved { epoch } = seen { Some(*epoch) } else { None })
            .collect();
        let restored = history.seen.iter().any(|(_, seen)| matches!(seen, Seen::RowsRestored));
        self.facts.restored += u64::from(restored);
        let [epoch] = saved[..] else {
            return self.faults.push(format!("the model is saved {} times", saved.len()));
        };
        if !is_stopped {
            if epoch != best || restored != (best != last) {
                self.faults.push(format!("rows of epoch {epoch} are saved, expected those of {best}"));
            }
            if !is_complete {
                self.faults.push("a whole job is called incomplete".into());
            }
            let failing = self.scenario.failures.iter().any(|(failing, ..)| *failing <= last);
            if failing || !matches!(self.scenario.misfortune, Misfortune::None | Misfortune::Stop(_)) {
                self.facts.finished -= 1;
                self.check_late_misfortune(last);
            }
        }
    }

    /// A misfortune that did not fail the job must lie behind its end.
    fn check_late_misfortune(&mut self, last: u64) {
        let failing = self.scenario.failures.iter().any(|(failing, ..)| *failing <= last);
        let silent =
            matches!(self.scenario.misfortune, Misfortune::SilentTask { epoch, .. } if epoch <= last);
        if failing || silent {
            self.faults.push("the job succeeds, though a task failed or was silent".into());
        }
    }

    fn check_failure(&mut self, text: &str, cause: Option<u64>, task_failed: bool, is_stopped: bool) {
        let (last, _) = self.scenario.outcome();
        let first = self.scenario.failures.iter().find(|(epoch, ..)| *epoch <= last);
        let of_task = |(_, _, task): &(u64, u64, u32)| text.ends_with(&failure_text(*task));
        if text.contains(MEMBER_LOST) {
            self.facts.lost_members += 1;
        } else if text.contains(PARAMETERS_FAILED) {
            self.facts.failed_parameters += 1;
        } else if text.contains("before the first step") {
            self.facts.stopped_before_training += 1;
            if !is_stopped {
                self.faults.push(format!("nobody stopped the job: {text}"));
            }
        } else if text.contains("waited") {
            self.facts.silent_tasks += 1;
            if !matches!(self.scenario.misfortune, Misfortune::SilentTask { .. }) {
                self.faults.push(format!("no task is silent: {text}"));
            }
        } else if let Misfortune::WorkerFails { worker, .. } = self.scenario.misfortune
            && text.ends_with(&worker_failure_text(worker))
        {
            self.facts.failed_workers += 1;
        } else if task_failed && self.scenario.failures.iter().any(of_task) {
            self.facts.failed_tasks += 1;
            self.facts.earlier_failures += u64::from(self.scenario.failures.len() > 1);
            // A task that was stopped, or whose worker failed, does not reach its own failure.
            let is_cut = is_stopped || matches!(self.scenario.misfortune, Misfortune::WorkerFails { .. });
            if !is_cut && !first.is_some_and(of_task) {
                self.faults
                    .push(format!("{text} is reported, expected the first of {:?}", self.scenario.failures));
            }
        } else {
            self.faults.push(format!("the job fails without a cause ({cause:?}): {text}"));
        }
    }

    /// A decision follows the reports of all tasks; each worker with tasks receives each decision once, and all the
    /// same.
    fn check_decisions(&mut self, history: &History) {
        let mut reports: BTreeMap<u64, u32> = BTreeMap::new();
        let mut decisions: BTreeMap<(u64, u32), EpochDecision> = BTreeMap::new();
        for (_, seen) in &history.seen {
            match seen {
                Seen::Received(FromWorker::EpochEnded { report, .. }) => {
                    *reports.entry(report.epoch).or_default() += 1;
                }
                Seen::Sent { worker, message: ToWorker::EpochDecided { epoch, decision, .. } } => {
                    if reports.get(epoch) != Some(&self.scenario.tasks) {
                        self.faults.push(format!("epoch {epoch} is decided before all tasks have ended it"));
                    }
                    if decisions.insert((*epoch, *worker), *decision).is_some() {
                        self.faults.push(format!("worker {worker} receives two decisions of epoch {epoch}"));
                    }
                    let same =
                        decisions.range((*epoch, 0)..(epoch + 1, 0)).all(|(_, other)| other == decision);
                    if !same {
                        self.faults.push(format!("the decisions of epoch {epoch} differ"));
                    }
                }
                _ => {}
            }
        }
    }

    /// A checkpoint is made when all tasks have saved at one clock, and has the states of all of them and the rows once.
    /// Tasks that have saved go on once: when the snapshot is taken, or if there is no memory for it, when all is written.
    /// The model is saved when no checkpoint is being written.
    fn check_checkpoints(&mut self, history: &History) {
        let task_count = self.scenario.tasks as usize;
        let mut saved: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut written = BTreeMap::new();
        let (mut taken, mut awaited_count, mut last_number) = (None, 0u32, 0);
        for (_, seen) in &history.seen {
            match seen {
                Seen::Received(FromWorker::TaskSaved { task, .. }) if saved.contains_key(task) => {
                    self.faults.push(format!("task {task} saves twice for one checkpoint"));
                }
                Seen::Received(FromWorker::TaskSaved { task, epoch, clock }) => {
                    saved.insert(*task, (*epoch, *clock));
                }
                Seen::Received(FromWorker::SavePlanned { is_possible: false, .. }) => {
                    self.facts.refused_plans += 1;
                }
                Seen::SnapshotTaken { has_memory } => {
                    self.facts.checkpoints_without_snapshot += u64::from(!has_memory);
                    taken = Some(*has_memory);
                    if saved.len() < task_count {
                        self.faults.push("a snapshot is taken before all tasks have saved".into());
                    }
                }
                Seen::Sent { message: ToWorker::EndSave, .. } => {
                    let is_early = taken != Some(true) && (taken.is_none() || awaited_count > 0);
                    if saved.len() == task_count && is_early {
                        self.faults
                            .push(format!("tasks go on before the rows are saved: snapshot {taken:?}"));
                    }
                    self.facts.checkpoints_beside_steps += u64::from(!saved.is_empty() && awaited_count > 0);
                    saved.clear();
                    taken = None;
                }
                Seen::Sent { message: ToWorker::WritePart { .. }, .. } => {
                    awaited_count += 1;
                    written.clone_from(&saved);
                    if saved.len() < task_count || taken.is_none() {
                        self.faults.push("a checkpoint is written before all tasks have saved".into());
                    }
                }
                Seen::Sent { message: ToWorker::CommitCheckpoint { manifest, .. }, .. } => {
                    awaited_count += 1;
                    self.facts.checkpoints += 1;
                    self.facts.checkpoints_within_epochs += u64::from(manifest.is_within_epoch);
                    self.check_manifest(manifest, &written, last_number);
                    last_number = manifest.number;
                }
                Seen::Received(FromWorker::PartWritten { .. } | FromWorker::CheckpointWritten { .. }) => {
                    awaited_count -= 1;
                }
                Seen::Received(FromWorker::CheckpointFailed { .. }) => {
                    awaited_count -= 1;
                    self.facts.failed_checkpoints += 1;
                }
                Seen::Sent { message: ToWorker::SaveModel { .. }, .. } if awaited_count > 0 => {
                    self.faults.push("the model is saved while a checkpoint is written".into());
                }
                _ => {}
            }
        }
    }

    fn check_manifest(&mut self, manifest: &Manifest, saved: &BTreeMap<u32, (u64, u64)>, last_number: u64) {
        if saved.values().any(|moment| *moment != (manifest.epoch, manifest.clock)) {
            self.faults.push(format!("tasks save at {saved:?}, the checkpoint is at {manifest:?}"));
        }
        let tasks: Vec<u32> = manifest.parts.iter().flat_map(|part| part.tasks.iter().copied()).collect();
        if tasks.len() != self.scenario.tasks as usize || saved.keys().any(|task| !tasks.contains(task)) {
            self.faults.push(format!("a checkpoint has the states of tasks {tasks:?}"));
        }
        let with_rows = manifest.parts.iter().filter(|part| part.has_rows).count();
        if with_rows != 1 || manifest.number <= last_number {
            let number = manifest.number;
            self.faults.push(format!("checkpoint {number} after {last_number}: rows in {with_rows} parts"));
        }
    }

    /// After the user's stop no task starts another epoch, and no task makes another step when it has learned of it.
    fn check_stop(&mut self, history: &History) {
        let mut stopped = None;
        for (time, seen) in &history.seen {
            match (seen, stopped) {
                (Seen::StopRequested, _) => stopped = Some(*time),
                (Seen::Sent { message: ToWorker::EpochDecided { decision, .. }, .. }, Some(_)) => {
                    self.facts.stopped_in_training = 1;
                    if *decision != EpochDecision::Stop {
                        self.faults.push("training continues after the stop".into());
                    }
                }
                (Seen::Received(FromWorker::Progress { steps: 1.., .. }), Some(stopped))
                    if time - stopped > STOP_LIMIT =>
                {
                    self.faults.push(format!("a step {} us after the stop", time - stopped));
                }
                _ => {}
            }
        }
    }
}
