//! From the inspection of the data to the first step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use algo::{ResolvedSettings, SavedModel};

use crate::amounts::counted;
use crate::checkpoint_state::{Checkpointing, DriverState};
use crate::config::ParameterPlace;
use crate::driver::Driver;
use crate::effect::{Effect, ParametersRequest, SnapshotPurpose};
use crate::epoch_monitor::EpochMonitor;
use crate::error::Error;
use crate::job_layout::{assign_tasks, layout, with_start_clock};
use crate::messages::{CheckpointPlace, ResumePoint, ToWorker};
use crate::phase::{Phase, Plan, Preparing, Setup, Training};
use crate::run_info::RunInfo;
use crate::scoring::refuse_no_predictions;
use crate::settings_chooser::{SettingsChooser, merged_survey};
use crate::totals::{TaskSummary, Totals};

/// Tells the user from which checkpoint training continues.
fn resume_text(point: &ResumePoint) -> String {
    let within = if point.is_within_epoch { "within" } else { "before" };
    let CheckpointPlace { location, number } = &point.place;
    format!(
        "continuing from checkpoint {number} in {location}: {within} epoch {}, clock {}",
        point.epoch + 1,
        point.clock
    )
}

impl Driver {
    pub fn run_info<'b>(&'b self, plan: &'b Plan) -> RunInfo<'b> {
        RunInfo {
            job: &self.job,
            label_rule: plan.label_rule,
            schema: &plan.schema,
            size_bytes: plan.size_bytes,
            notices: plan.notices.clone(),
            task_count: plan.task_count,
            threads: self.config.threads,
            start: plan.start,
            reasons: &self.reasons,
            algorithm: &*self.algorithm,
            files: plan.data.as_deref().unwrap_or_default(),
        }
    }

    pub fn on_data_inspected(&mut self, now: Instant, mut plan: Plan, greeting: &str) -> Result<(), Error> {
        if !matches!(self.phase, Phase::Inspecting) {
            return Ok(());
        }
        if !self.job.run_options.quiet {
            self.progress = Arc::clone(&self.config.progress);
        }
        self.progress.started(plan.size_bytes, self.algorithm.needs().epochs);
        self.progress.print_line(&match &self.config.parameters {
            ParameterPlace::Process { .. } => greeting.to_owned(),
            ParameterPlace::Servers(servers) => {
                let workers = counted(self.config.workers.len() as u64, "worker");
                format!("{greeting}, {}, {workers}", counted(servers.len() as u64, "server"))
            }
        });
        if let Some(point) = &plan.resume {
            for notice in &point.notices {
                self.report_incident(notice);
            }
            self.report_incident(&resume_text(point));
        }
        plan.label_rule = self.algorithm.label_rule(&plan.schema.label_names)?;
        plan.worker_tasks = assign_tasks(&self.config, plan.task_count);
        self.timings.open_s = (now - self.start).as_secs_f64();
        let settings = self.settings_chooser(&plan).choose()?;
        let survey = settings.is_none();
        if let Some(settings) = settings {
            self.apply_settings(settings, &mut plan)?;
        }
        self.prepare_data(now, plan, survey);
        Ok(())
    }

    fn settings_chooser<'b>(&'b self, plan: &'b Plan) -> SettingsChooser<'b> {
        SettingsChooser {
            job: &self.job,
            algorithm: self.algorithm.as_ref(),
            schema: &plan.schema,
            size_bytes: plan.size_bytes,
            previous: plan.previous.as_deref(),
        }
    }

    fn apply_settings(&mut self, resolved: ResolvedSettings, plan: &mut Plan) -> Result<(), Error> {
        let ResolvedSettings { settings, reasons } = resolved;
        for reason in &reasons {
            self.progress.print_line(reason);
        }
        self.algorithm = self.config.families.configure(&self.job.algorithm, &settings)?;
        self.job.set_params(&*self.algorithm);
        plan.label_rule = self.algorithm.label_rule(&plan.schema.label_names)?;
        self.reasons = reasons;
        Ok(())
    }

    fn prepare_data(&mut self, now: Instant, plan: Plan, survey: bool) {
        for share in &plan.worker_tasks {
            let message = ToWorker::PrepareData {
                job: Box::new(self.job.clone()),
                schema: plan.schema.clone(),
                task_count: plan.task_count,
                first: share.tasks.start,
                count: share.tasks.len() as u32,
                start: plan.start,
                survey,
            };
            self.effects.push(Effect::Send { worker: share.worker, message });
        }
        self.phase =
            Phase::Preparing(Box::new(Preparing { plan, survey, since: now, answers: BTreeMap::new() }));
    }

    pub fn on_data_prepared(
        &mut self,
        now: Instant,
        worker: u32,
        scanned: bool,
        summaries: Vec<TaskSummary>,
    ) -> Result<(), Error> {
        let Phase::Preparing(preparing) = &mut self.phase else { return Ok(()) };
        let Some(first) = preparing.plan.first_task_of(worker) else { return Ok(()) };
        preparing.answers.insert(first, summaries);
        if preparing.answers.len() < preparing.plan.worker_tasks.len() {
            return Ok(());
        }
        let Phase::Preparing(preparing) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return Ok(());
        };
        let Preparing { mut plan, survey, since, answers } = *preparing;
        let summaries: Vec<TaskSummary> = answers.into_values().flatten().collect();
        let scanned = if survey {
            let settings = self.settings_chooser(&plan).choose_after_survey(&summaries)?;
            self.apply_settings(settings, &mut plan)?;
            let needs = self.algorithm.needs();
            needs.scan || needs.quantiles || self.job.holdout().is_some()
        } else {
            scanned
        };
        if scanned || survey {
            self.timings.scan_s = (now - since).as_secs_f64();
        }
        self.create_parameters(plan, &summaries, scanned)
    }

    fn create_parameters(
        &mut self,
        plan: Plan,
        summaries: &[TaskSummary],
        scanned: bool,
    ) -> Result<(), Error> {
        let info = self.run_info(&plan);
        let mut facts = info.facts(&Totals::of(summaries), scanned)?;
        facts.survey = merged_survey(summaries).map(Arc::new);
        if facts.record_count > 0 {
            self.progress.scanned(facts.record_count);
        }
        let model = self.algorithm.new_model(&facts, plan.previous.as_deref());
        let model = model.map_err(|error| info.with_job_context(error.into()))?;
        if !self.job.validate.is_empty() || self.job.holdout().is_some() {
            refuse_no_predictions(&*model, self.algorithm.algorithm())?;
        }
        let mut layout = layout(&self.config, (&self.job, &*self.algorithm), &*model, plan.task_count)?;
        layout.matrices = with_start_clock(layout.matrices, plan.start.clock);
        let model_specs = layout.matrices.clone();
        if let Some(point) = &plan.resume {
            layout.matrices = with_start_clock(layout.matrices, point.clock);
        }
        let workers = plan
            .worker_tasks
            .iter()
            .flat_map(|share| share.tasks.clone().map(|_| self.worker_name(share.worker)))
            .collect();
        self.effects.push(Effect::Parameters(ParametersRequest::Create {
            layout: Box::new(layout.clone()),
            modules: self.job.modules().list().to_vec(),
            workers,
        }));
        self.phase = Phase::Creating(Box::new(Setup {
            plan,
            model,
            layout,
            model_specs,
            created_at: None,
            notices: Vec::new(),
        }));
        Ok(())
    }

    pub fn on_parameters_created(&mut self, now: Instant, mut setup: Box<Setup>) -> Result<(), Error> {
        setup.created_at = Some(now);
        let worker = setup.plan.worker_tasks[0].worker;
        let layout = setup.layout.clone();
        let message = match &setup.plan.resume {
            Some(point) => ToWorker::RestoreRows { layout, checkpoint: point.place.clone() },
            None if setup.plan.previous.is_some() => ToWorker::ImportModel { layout },
            None => return self.train(now, setup),
        };
        self.send(worker, message);
        self.phase = Phase::Importing(setup);
        Ok(())
    }

    /// The rows of the checkpoint are on the servers. If training may stop early, they are those of the best epoch.
    pub fn on_rows_restored(&mut self, now: Instant) -> Result<(), Error> {
        if let Phase::Importing(setup) = &self.phase
            && let Some(since) = setup.created_at
        {
            self.timings.restore_s = (now - since).as_secs_f64();
        }
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Importing(setup) if self.algorithm.needs().early_stopping.is_some() => {
                self.effects.push(Effect::Parameters(ParametersRequest::TakeSnapshot {
                    purpose: SnapshotPurpose::BestEpoch,
                    records_changes: false,
                }));
                self.phase = Phase::KeepingBest(setup);
                Ok(())
            }
            Phase::Importing(setup) => self.train(now, setup),
            phase => {
                self.phase = phase;
                Ok(())
            }
        }
    }

    pub fn on_model_imported(&mut self, now: Instant, notices: Vec<String>) -> Result<(), Error> {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Importing(mut setup) => {
                setup.notices.extend(notices);
                self.train(now, setup)
            }
            phase => {
                self.phase = phase;
                Ok(())
            }
        }
    }

    /// Starts the tasks.
    pub fn train(&mut self, now: Instant, setup: Box<Setup>) -> Result<(), Error> {
        let point = setup.plan.resume.clone();
        let saved = point.as_ref().map(|point| DriverState::decode(&point.driver)).transpose()?;
        let shares = &setup.plan.worker_tasks;
        let mut trains = Vec::new();
        for share in shares {
            let message = ToWorker::Train {
                params: self.job.params.clone(),
                layout: setup.layout.clone(),
                model: SavedModel::new(&*setup.model),
                resumed: setup.plan.previous.is_some(),
                checkpoint: point.as_ref().map(|point| point.place.clone()),
            };
            trains.push(Effect::Send { worker: share.worker, message });
        }
        let stopping = self.algorithm.needs().early_stopping;
        let (monitor, step_count) = match saved {
            Some(DriverState { monitor, step_count }) => {
                (EpochMonitor::restored(stopping, monitor, now), step_count)
            }
            None => (EpochMonitor::new(stopping, now), 0),
        };
        let place = point.map_or((0, 0), |point| (point.place.number, point.clock));
        let (id, data) = (setup.plan.training.clone(), setup.plan.data.clone());
        let checkpointing =
            Checkpointing::new(self.job.checkpoints.clone(), (id, self.config.run), data, place, now);
        let training = Training::new(*setup, monitor, step_count, checkpointing, now);
        self.phase = Phase::Training(Box::new(training));
        self.slow_workers.begin(now, self.config.run > 1);
        if std::mem::take(&mut self.is_checkpoint_requested) {
            self.on_checkpoint_requested();
        }
        // A plan for the first checkpoint by its number of steps is there before the first step.
        self.plan_checkpoint(now);
        self.effects.extend(trains);
        if self.stop_requested {
            self.stop_tasks();
        }
        Ok(())
    }
}
