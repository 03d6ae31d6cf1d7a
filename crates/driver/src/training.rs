//! Training: the driver sums the reports of the tasks, decides when all of them have ended an epoch, and collects what
//! they report at their end.

use std::time::{Duration, Instant};

use algo::EpochReport;
use data::{BadLineTotal, KeyNames};
use job::SlowWorkerPolicy;

use crate::driver::Driver;
use crate::effect::{Effect, ParametersRequest, SnapshotPurpose};
use crate::epoch_monitor::InterruptState;
use crate::error::Error;
use crate::job_layout::check_bad_lines;
use crate::messages::ToWorker;
use crate::phase::Phase;
use crate::totals::TaskSummary;

impl Driver {
    pub fn on_steps(
        &mut self,
        worker: u32,
        (steps, records): (u64, u64),
        loss_sum: f64,
        bytes: u64,
        busy_s: f64,
    ) {
        let Phase::Training(training) = &mut self.phase else { return };
        training.step_count += steps;
        self.slow_workers.add(worker, records, busy_s);
        self.progress.add_bytes(bytes);
        self.progress.step(records, loss_sum);
        self.job_progress.add_steps(records, loss_sum);
    }

    pub fn on_epoch_ended(
        &mut self,
        now: Instant,
        worker: u32,
        report: EpochReport,
        is_stopped: bool,
        bad_lines: [BadLineTotal; 2],
    ) -> Result<(), Error> {
        let Phase::Training(training) = &mut self.phase else { return Ok(()) };
        training.stop_sent |= is_stopped;
        self.stop_requested |= is_stopped;
        training.bad_lines.insert(worker, bad_lines);
        training.first_report.get_or_insert(now);
        let task = report.task as usize;
        training.reports[task] = Some(report);
        if training.reports.iter().any(Option::is_none) {
            return Ok(());
        }
        training.first_report = None;
        let reports: Vec<EpochReport> = training.reports.iter_mut().filter_map(Option::take).collect();
        self.decide(now, &reports)
    }

    /// Decides after the last report of an epoch.
    fn decide(&mut self, now: Instant, reports: &[EpochReport]) -> Result<(), Error> {
        let Phase::Training(training) = &mut self.phase else { return Ok(()) };
        self.job_progress.epoch_done(reports[0].epoch_count);
        self.slow_workers.on_epoch_ended(now);
        let plan = &training.setup.plan;
        // After epoch 0 all tasks have read their whole input, so the number of bad lines is final.
        check_bad_lines(self.job.input.bad_lines, &plan.worker_tasks, &training.bad_lines)?;
        let interrupted = InterruptState { stop_sent: training.stop_sent, requested: self.stop_requested };
        let decided = training.monitor.decide(now, reports, interrupted, self.progress.as_ref());
        let decision = match decided {
            Ok(decision) => decision,
            Err(error) => {
                let Phase::Training(training) = &self.phase else { return Ok(()) };
                return Err(self.run_info(&training.setup.plan).with_job_context(error.into()));
            }
        };
        let verdict = self.decide_checkpoint(now, reports[0].clock, decision.verdict, decision.save_best);
        let Phase::Training(training) = &mut self.phase else { return Ok(()) };
        let line = training.monitor.last_epoch().expect("an epoch was decided").clone();
        training.pending_decision = Some(ToWorker::EpochDecided { epoch: line.epoch, decision: verdict });
        if decision.save_best {
            self.effects.push(Effect::Parameters(ParametersRequest::TakeSnapshot {
                purpose: SnapshotPurpose::BestEpoch,
                records_changes: false,
            }));
        } else if decision.restore_best {
            self.effects.push(Effect::Parameters(ParametersRequest::RestoreBest));
        } else {
            self.send_decision();
        }
        Ok(())
    }

    /// Sends the pending decision to all workers with tasks.
    pub fn send_decision(&mut self) {
        let Phase::Training(training) = &mut self.phase else { return };
        let Some(decision) = training.pending_decision.take() else { return };
        for share in &training.setup.plan.worker_tasks {
            self.effects.push(Effect::Send { worker: share.worker, message: decision.clone() });
        }
    }

    /// Requests all tasks to stop at their next step, once.
    pub fn stop_tasks(&mut self) {
        let Phase::Training(training) = &mut self.phase else { return };
        if !std::mem::replace(&mut training.stop_sent, true) {
            for share in &training.setup.plan.worker_tasks {
                self.effects.push(Effect::Send { worker: share.worker, message: ToWorker::Stop });
            }
        }
    }

    /// Tells the user of a slow worker, or has its tasks move to others after the next checkpoint.
    pub fn check_slow_workers(&mut self, now: Instant) {
        let (policy, cost) = (self.job.slow_worker, self.start_cost());
        let Phase::Training(training) = &mut self.phase else { return };
        let is_over = training.stop_sent || training.moves.is_some();
        if policy == SlowWorkerPolicy::Off || is_over || !self.slow_workers.is_due(now) {
            return;
        }
        let shares = &training.setup.plan.worker_tasks;
        let counts: Vec<_> = shares.iter().map(|share| (share.worker, share.tasks.len() as u32)).collect();
        let Some(slow) = self.slow_workers.compare(now, &self.config.workers, &counts) else { return };
        // Each move is made more reluctantly than the one before, so that workers whose speed varies do not stop a job.
        let cost = cost * 2u32.saturating_pow(self.config.move_count);
        let is_worth = slow.is_worth_moving(self.slow_workers.elapsed(now), cost);
        let what = match (policy, training.checkpointing.problem()) {
            (SlowWorkerPolicy::Move, None) if is_worth => {
                training.moves = Some(slow.times);
                training.checkpointing.request();
                "its tasks move to others after a checkpoint".to_owned()
            }
            _ if training.told_slow == Some(slow.worker) => return,
            (SlowWorkerPolicy::Move, Some(problem)) => format!("its tasks cannot move to others: {problem}"),
            (SlowWorkerPolicy::Move, None) => {
                "its tasks stay as long as moving them gains too little".to_owned()
            }
            _ => "--slow-worker move gives its tasks to others".to_owned(),
        };
        training.told_slow = Some(slow.worker);
        let (name, factor, count) = (self.worker_name(slow.worker), slow.factor, self.config.workers.len());
        self.report_incident(&format!(
            "{name} needs {factor:.1} times as long for a record as the median of {count} workers: {what}"
        ));
    }

    /// Time from the beginning of a run to its first step.
    fn start_cost(&self) -> Duration {
        let Phase::Training(training) = &self.phase else { return Duration::ZERO };
        training.since.saturating_duration_since(self.start) + training.checkpointing.last_duration()
    }

    pub fn on_key_names(&mut self, names: &KeyNames) {
        if let Phase::Training(training) = &mut self.phase {
            training.key_names.add_all(names);
        }
    }

    pub fn on_task_ended(&mut self, now: Instant, task: u32, summary: TaskSummary) -> Result<(), Error> {
        let Phase::Training(training) = &mut self.phase else { return Ok(()) };
        training.summaries[task as usize] = Some(summary);
        self.save_if_ended(now)
    }

    /// Has the model saved if all tasks have ended, and no checkpoint is being written: it would be removed meanwhile.
    pub fn save_if_ended(&mut self, now: Instant) -> Result<(), Error> {
        let Phase::Training(training) = &mut self.phase else { return Ok(()) };
        if training.checkpointing.is_writing() {
            return Ok(());
        }
        match training.take_summaries() {
            Some(summaries) => self.save_model(now, &summaries),
            None => Ok(()),
        }
    }

    /// Reports the progress that `status` and `submit` show, when it is due.
    pub fn report_status(&mut self, now: Instant) {
        if let Phase::Training(training) = &self.phase
            && self.job_progress.is_due(now)
        {
            let progress = self.job_progress.to_json(now, training.monitor.last_epoch());
            self.effects.push(Effect::Status(progress));
        }
    }
}
