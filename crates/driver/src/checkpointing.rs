//! Checkpoints of a training: when they are due, at which moment all tasks save, and who writes what.
//!
//! A checkpoint that is due is made when the tasks end an epoch, or within the epoch if all tasks can save at one clock
//! (`PlanSave`; under asp at any). When all tasks have saved, a snapshot of the rows is taken, and the tasks go on while it
//! is written. They wait until the checkpoint is complete, or has failed, if there is no memory for a copy, or if they move
//! to other workers. A training goes on without a checkpoint that could not be written, and says so.
//!
//! With `checkpoint_increments`, a checkpoint may have only the rows that have changed since the one before
//! ([`Increments`]). The first one of a run has all rows, and so has one after a failure: lanes record changes since the
//! last snapshot, whether its checkpoint became complete or not.
//!
//! With early stopping, the model may be that of an earlier epoch, of whose rows there is a snapshot. A checkpoint is
//! then made only after an epoch that is the best so far, so that its rows are these too. With rounded values
//! (`--wire bf16`), checkpoints are made between epochs, where the residuals of rounding are pushed anyway.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use algo::EpochDecision;
use checkpoint::{Base, Manifest, PartFile};
use matrix::Consistency;
use rpc::WireType;
use serde_json::json;

use crate::checkpoint_state::{DriverState, FIRST_LEAD, Increments, Stage, longer_lead};
use crate::driver::Driver;
use crate::effect::{Effect, ParametersRequest, RunEnd, SnapshotPurpose};
use crate::error::Error;
use crate::messages::{RowsToSave, SourceOfRows, ToWorker, encode};
use crate::phase::Phase;

/// Time until workers are asked again that had no tasks yet.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

impl Driver {
    /// Makes a checkpoint at the next opportunity, or tells in the progress why there is none.
    pub fn on_checkpoint_requested(&mut self) {
        let problem = match &mut self.phase {
            Phase::Training(training) => match training.checkpointing.problem() {
                None => {
                    training.checkpointing.request();
                    return self.job_progress.forget_checkpoint_error();
                }
                Some(problem) => problem,
            },
            Phase::Saving(_) | Phase::Failing(_) | Phase::Ended => "the job is about to end",
            // It is asked again when the tasks begin.
            _ => {
                self.is_checkpoint_requested = true;
                return;
            }
        };
        self.job_progress.set_checkpoint_error(problem);
    }

    /// Asks the tasks to save within their epoch, if a checkpoint is due.
    pub fn plan_checkpoint(&mut self, now: Instant) {
        let is_asp = self.job.consistency == Consistency::Asp;
        // Rounded pushes leave residuals, which the barrier of the tasks would push earlier than without a checkpoint.
        let is_possible = self.job.wire == WireType::F32 && self.algorithm.needs().saves_within_epochs;
        let Phase::Training(training) = &mut self.phase else { return };
        let has_stopping = training.monitor.has_stopping();
        let checkpointing = &mut training.checkpointing;
        if !is_possible || !checkpointing.is_on() || has_stopping || training.stop_sent {
            return;
        }
        let Some(clock) = checkpointing.first_clock(now) else { return };
        self.send_plan(if is_asp { None } else { Some(clock) });
    }

    fn send_plan(&mut self, clock: Option<u64>) {
        let Phase::Training(training) = &mut self.phase else { return };
        let checkpointing = &mut training.checkpointing;
        checkpointing.last_plan += 1;
        checkpointing.stage = Stage::Planned { clock, agreed_count: 0, is_confirmed: false };
        let plan = checkpointing.last_plan;
        self.send_to_tasks(&ToWorker::PlanSave { plan, clock });
    }

    /// Sends a message to all workers with tasks.
    fn send_to_tasks(&mut self, message: &ToWorker) {
        let Phase::Training(training) = &self.phase else { return };
        for share in &training.setup.plan.worker_tasks {
            self.effects.push(Effect::Send { worker: share.worker, message: message.clone() });
        }
    }

    pub fn on_save_planned(&mut self, now: Instant, plan: u64, is_possible: bool, largest: Option<u64>) {
        let Phase::Training(training) = &mut self.phase else { return };
        let worker_count = training.setup.plan.worker_tasks.len();
        let checkpointing = &mut training.checkpointing;
        let Stage::Planned { clock, agreed_count, is_confirmed } = &mut checkpointing.stage else { return };
        if plan != checkpointing.last_plan || *is_confirmed {
            return;
        }
        if is_possible {
            *agreed_count += 1;
            if *agreed_count == worker_count {
                *is_confirmed = true;
                checkpointing.lead = FIRST_LEAD;
                self.send_to_tasks(&ToWorker::DecideSave { plan, is_confirmed: true });
            }
            return;
        }
        let next = match (largest, *clock) {
            (Some(largest), Some(_)) => Some(largest + checkpointing.lead),
            _ => None,
        };
        checkpointing.lead = longer_lead(checkpointing.lead);
        checkpointing.wait(now, RETRY_INTERVAL);
        self.send_to_tasks(&ToWorker::DecideSave { plan, is_confirmed: false });
        if next.is_some() {
            self.send_plan(next);
        }
    }

    /// Turns the decision after an epoch into one with a checkpoint, if one is due. `is_best`: the rows are those of the
    /// best epoch so far.
    pub fn decide_checkpoint(
        &mut self,
        now: Instant,
        clock: u64,
        decision: EpochDecision,
        is_best: bool,
    ) -> EpochDecision {
        let Phase::Training(training) = &mut self.phase else { return decision };
        let can_save = is_best || !training.monitor.has_stopping();
        let checkpointing = &mut training.checkpointing;
        if checkpointing.is_writing() {
            return decision;
        }
        // A plan of the epoch that has ended is void.
        checkpointing.wait(now, Duration::ZERO);
        let is_due = checkpointing.is_on() && can_save && checkpointing.is_due_at(now, clock);
        if decision != EpochDecision::Continue || !is_due {
            return decision;
        }
        checkpointing.stage = Stage::Saving { tasks: BTreeMap::new(), is_within_epoch: false };
        EpochDecision::Save
    }

    pub fn on_task_saved(&mut self, now: Instant, task: u32, epoch: u64, clock: u64) {
        let Phase::Training(training) = &mut self.phase else { return };
        let stage = &mut training.checkpointing.stage;
        if matches!(stage, Stage::Planned { is_confirmed: true, .. }) {
            *stage = Stage::Saving { tasks: BTreeMap::new(), is_within_epoch: true };
        }
        let Stage::Saving { tasks, is_within_epoch } = stage else { return };
        if tasks.is_empty() {
            training.checkpointing.begun_at = now;
            training.checkpointing.is_requested = false;
        }
        tasks.insert(task, (epoch, clock));
        if tasks.len() < training.setup.plan.task_count as usize {
            return;
        }
        let is_within_epoch = *is_within_epoch;
        let epoch = tasks.values().map(|(epoch, _)| *epoch).max().unwrap_or(0);
        let clock = tasks.values().map(|(_, clock)| *clock).max().unwrap_or(0);
        *stage = Stage::TakingSnapshot { epoch, is_within_epoch, clock };
        self.effects.push(Effect::Parameters(ParametersRequest::TakeSnapshot {
            purpose: SnapshotPurpose::Checkpoint,
            records_changes: training.checkpointing.settings.increments > 0,
        }));
    }

    /// Has the checkpoint written if its snapshot was to be taken; returns false if not. `has_snapshot`: there was memory for
    /// it.
    pub fn on_snapshot_taken(&mut self, now: Instant, has_snapshot: bool) -> bool {
        let Phase::Training(training) = &mut self.phase else { return false };
        let checkpointing = &mut training.checkpointing;
        let Stage::TakingSnapshot { epoch, is_within_epoch, clock } = checkpointing.stage else {
            return false;
        };
        let holds_tasks = !has_snapshot || training.moves.is_some();
        let since = checkpointing.begun_at;
        if !has_snapshot && !std::mem::replace(&mut checkpointing.told_memory_short, true) {
            self.report_incident(
                "the tasks wait while a checkpoint is written: there is no memory for a copy of the parameters",
            );
        }
        self.write_checkpoint((epoch, is_within_epoch), clock, has_snapshot, holds_tasks);
        if !holds_tasks {
            self.timings.checkpoint_wait_s += (now - since).as_secs_f64();
            self.send_to_tasks(&ToWorker::EndSave);
        }
        true
    }

    /// Has the workers write the states of all tasks, and one of them the rows.
    fn write_checkpoint(
        &mut self,
        (epoch, is_within_epoch): (u64, bool),
        clock: u64,
        has_snapshot: bool,
        holds_tasks: bool,
    ) {
        let job = json!(self.job.given);
        let Phase::Training(training) = &mut self.phase else { return };
        let state = DriverState { monitor: training.monitor.state(), step_count: training.step_count };
        let layout = training.setup.layout.clone();
        let checkpointing = &mut training.checkpointing;
        checkpointing.last_number += 1;
        let number = checkpointing.last_number;
        let manifest = Manifest {
            format_version: checkpoint::manifest::VERSION,
            program_version: env!("CARGO_PKG_VERSION").into(),
            training: checkpointing.training.clone(),
            number,
            created_s: 0,
            job,
            data: checkpointing.data.clone().unwrap_or_default(),
            task_count: training.setup.plan.task_count,
            epoch,
            is_within_epoch,
            clock,
            base: checkpointing.next_base(has_snapshot),
            matrices: layout.matrices.clone(),
            parts: Vec::new(),
        };
        let source = match (has_snapshot, manifest.base) {
            (false, _) => SourceOfRows::Matrices,
            (true, None) => SourceOfRows::Snapshot,
            (true, Some(_)) => SourceOfRows::Changes,
        };
        let place = checkpointing.place(number);
        let shares = &training.setup.plan.worker_tasks;
        let awaited_count = shares.len();
        let (training_id, run) = (checkpointing.training.clone(), checkpointing.run);
        let mut rows = Some(Box::new(RowsToSave { layout, driver: encode(&state), source }));
        for share in shares {
            let name = format!("part-{training_id}-{run}-{}", share.tasks.start);
            let message = ToWorker::WritePart { checkpoint: place.clone(), name, rows: rows.take() };
            self.effects.push(Effect::Send { worker: share.worker, message });
        }
        checkpointing.last_clock = clock;
        let manifest = Box::new(manifest);
        checkpointing.stage = Stage::Writing { manifest, awaited_count, failure: None, holds_tasks };
    }

    pub fn on_part_written(
        &mut self,
        now: Instant,
        number: u64,
        part: Result<PartFile, String>,
    ) -> Result<(), Error> {
        let title = format!("{} of {}", self.job.model.display(), self.job.algorithm);
        let Phase::Training(training) = &mut self.phase else { return Ok(()) };
        let saver = training.setup.plan.worker_tasks[0].worker;
        let checkpointing = &mut training.checkpointing;
        if let Stage::Committing { number: committing, .. } = checkpointing.stage {
            if let (Err(error), true) = (&part, committing == number) {
                let error = error.clone();
                return self.end_checkpoint(now, Some(&error));
            }
            return Ok(());
        }
        let Stage::Writing { manifest, awaited_count, failure, holds_tasks } = &mut checkpointing.stage
        else {
            return Ok(());
        };
        if manifest.number != number {
            return Ok(());
        }
        *awaited_count -= 1;
        match part {
            Ok(part) => manifest.parts.push(part),
            Err(error) => drop(failure.get_or_insert(error)),
        }
        if *awaited_count > 0 {
            return Ok(());
        }
        if let Some(error) = failure.take() {
            return self.end_checkpoint(now, Some(&error));
        }
        manifest.parts.sort_by(|a, b| a.name.cmp(&b.name));
        let (clock, holds_tasks) = (manifest.clock, *holds_tasks);
        let size_bytes = manifest.parts.iter().map(|part| part.size_bytes).sum();
        let is_increment = manifest.base.is_some();
        let message = ToWorker::CommitCheckpoint {
            location: checkpointing.settings.location.clone(),
            manifest: manifest.clone(),
            title,
            keep: checkpointing.settings.keep,
        };
        checkpointing.stage = Stage::Committing { number, clock, holds_tasks, size_bytes, is_increment };
        self.effects.push(Effect::Send { worker: saver, message });
        Ok(())
    }

    pub fn on_checkpoint_written(&mut self, now: Instant, base: Base) -> Result<(), Error> {
        let Phase::Training(training) = &mut self.phase else { return Ok(()) };
        match training.checkpointing.stage {
            Stage::Committing { number, clock, size_bytes, is_increment, .. } if number == base.number => {
                training.checkpointing.increments.add(base, size_bytes, is_increment);
                self.job_progress.set_checkpoint(number, clock);
                self.end_checkpoint(now, None)
            }
            _ => Ok(()),
        }
    }

    /// A task has failed: the others read on, so none of them waits for a checkpoint any more.
    pub fn end_saves(&mut self) {
        let Phase::Training(training) = &self.phase else { return };
        let checkpointing = &training.checkpointing;
        if checkpointing.holds_tasks() {
            self.send_to_tasks(&ToWorker::EndSave);
        } else if matches!(checkpointing.stage, Stage::Planned { .. }) {
            let plan = checkpointing.last_plan;
            self.send_to_tasks(&ToWorker::DecideSave { plan, is_confirmed: false });
        }
    }

    /// A checkpoint is complete, or has failed: tasks that have waited for it go on.
    fn end_checkpoint(&mut self, now: Instant, failure: Option<&str>) -> Result<(), Error> {
        let Phase::Training(training) = &mut self.phase else { return Ok(()) };
        let checkpointing = &mut training.checkpointing;
        let holds_tasks = checkpointing.holds_tasks();
        let duration = now - checkpointing.begun_at;
        checkpointing.last_duration = duration;
        checkpointing.last_at = now;
        checkpointing.wait(now, Duration::ZERO);
        self.timings.checkpoint_s += duration.as_secs_f64();
        if holds_tasks {
            self.timings.checkpoint_wait_s += duration.as_secs_f64();
        }
        self.effects.push(Effect::DropSnapshot(SnapshotPurpose::Checkpoint));
        // A job that is to stop does not begin another run. After a failure the next comparison of the workers asks for
        // another checkpoint.
        let may_move = holds_tasks && failure.is_none() && !training.stop_sent;
        let moves = if holds_tasks { training.moves.take() } else { None };
        if let Some(times) = moves.filter(|_| may_move) {
            self.end(Ok(RunEnd::TasksMove(times)));
            return Ok(());
        }
        if let Some(error) = failure {
            checkpointing.increments = Increments::default();
            let checkpoint = checkpointing.place(checkpointing.last_number);
            let saver = training.setup.plan.worker_tasks[0].worker;
            self.effects
                .push(Effect::Send { worker: saver, message: ToWorker::DropCheckpoint { checkpoint } });
            self.job_progress.set_checkpoint_error(error);
            let line = format!("a checkpoint could not be written, training goes on without it: {error}");
            self.report_incident(&line);
        }
        if holds_tasks {
            self.send_to_tasks(&ToWorker::EndSave);
        }
        self.save_if_ended(now)
    }
}
