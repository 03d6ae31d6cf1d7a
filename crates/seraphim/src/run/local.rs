//! Training in one process: opens the data, creates the matrices, runs one thread per task, saves the model, writes the
//! report.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use algo::{Job, ResolvedSettings, TrainTask};
use data::{BatchStream, TaskData};
use matrix::{Agent, LocalConfig, LocalStore, MatrixId, MatrixSpec};
use rpc::WireType;

use super::Environment;
use super::coordinator::LocalCoordinator;
use super::epoch_monitor::TrainingSummary;
use super::failure::{Failures, ReadTracker};
use super::input::{TaskDataPlan, TrainingInput, open};
use super::memory_check::check_memory;
use super::resume;
use super::run_info::{RunInfo, save, with_job_context};
use super::scan::scan;
use super::semaphore::{PermittedAgent, Semaphore, with_permit};
use super::settings_chooser::SettingsChooser;
use super::task_count::{explain, task_count};
use super::task_streams::{CountedStream, MeteredStream, TimedValidation};
use super::totals::{TaskSummary, Totals, validation_notices};
use crate::error::Error;
use crate::job::{TrainJob, consistency_name};
use crate::machine;
use crate::model::Model;
use crate::progress::Progress;
use crate::report::{Report, Timings};

/// Partitions of each matrix per task that computes at the same time: with so many, two tasks seldom need the same
/// partition at once. A single task has one partition. The bytes of the model do not depend on this number.
const PARTITIONS_PER_TASK: u32 = 8;

/// The summary of a task's input, and the names of the keys in it.
type TaskResult = (TaskSummary, BTreeMap<u64, String>);

/// The state of a run that outlives its tasks.
struct Trainer<'a> {
    job: &'a TrainJob,
    environment: Environment<'a>,
    algorithm: &'a dyn Job,
    progress: &'a Progress,
    permits: Option<Arc<Semaphore>>,
    task_count: u32,
    /// The settings that the program chose, and why.
    reasons: Vec<String>,
}

pub fn train(job: &TrainJob, environment: Environment<'_>) -> Result<Report, Error> {
    let start = Instant::now();
    if job.wire != WireType::F32 {
        return Err(Error::InvalidRequest {
            what: format!("--wire {} in one process, where no values are sent", job.wire.name()),
            advice: "give --servers N and --workers N, or leave it out".into(),
        });
    }
    let asked = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
    let functions = &job.modules.extend_table(environment.functions)?;
    let environment = Environment { functions, ..environment };
    job.check_outputs()?;
    let previous = job.from.as_deref().map(|path| Model::read(path, true)).transpose()?;
    let schema = previous.as_ref().map(|model| &model.manifest.schema);
    let mut opened = open(job, asked.as_ref(), schema, environment)?;
    let task_count = task_count(job.manner.tasks, &opened.source);
    let progress = &Progress::new(job.manner.quiet, opened.source.size_bytes(), opened.needs.epochs);
    let permits = (job.manner.threads < task_count as usize).then(|| Semaphore::new(job.manner.threads));
    let mut timings = Timings { open_s: start.elapsed().as_secs_f64(), ..Timings::default() };
    progress.print_line(&greeting(job, &opened, task_count));
    let setup =
        Setup { job, environment, opened: &opened, task_count, progress, permits: permits.as_deref() };
    let (settled, surveyed) = setup.choose_settings(asked.as_ref(), previous.as_ref(), &mut timings)?;
    for reason in &settled.reasons {
        progress.print_line(reason);
    }
    let job = &TrainJob { set: settled.settings, ..job.clone() };
    let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
    let algorithm = algorithm.as_ref();
    opened.apply_settings(algorithm);
    let trainer =
        Trainer { job, environment, algorithm, progress, permits, task_count, reasons: settled.reasons };
    let report = trainer.run(&opened, surveyed, previous, &mut timings, start);
    progress.clear();
    let report = report?;
    if let Some(path) = &job.report {
        report.write(path)?;
    }
    Ok(report)
}

/// A run whose open settings are not chosen yet.
struct Setup<'a> {
    job: &'a TrainJob,
    environment: Environment<'a>,
    opened: &'a TrainingInput,
    task_count: u32,
    progress: &'a Progress,
    permits: Option<&'a Semaphore>,
}

impl Setup<'_> {
    /// Chooses the open settings; also returns the data if they had to be surveyed.
    fn choose_settings(
        &self,
        asked: &dyn Job,
        previous: Option<&Model>,
        timings: &mut Timings,
    ) -> Result<(ResolvedSettings, Option<Vec<TaskData>>), Error> {
        let &Self { job, opened, task_count, .. } = self;
        let chooser = SettingsChooser {
            job,
            algorithm: asked,
            schema: opened.source.schema(),
            size_bytes: opened.source.size_bytes(),
            previous: previous.map(|model| &model.manifest.model),
        };
        if let Some(settled) = chooser.choose()? {
            return Ok((settled, None));
        }
        // The order of epochs is set later, together with the settings.
        let plan =
            TaskDataPlan { job, opened, task_count, tasks: 0..task_count, first_epoch: 0, is_survey: true };
        let mut shares = plan.training()?;
        let clock = Instant::now();
        let interrupt = self.environment.interrupt;
        scan(&mut shares, 0, self.permits, &Failures::default(), interrupt, self.progress)?;
        timings.scan_s = clock.elapsed().as_secs_f64();
        let seen: Vec<TaskSummary> = shares.iter().map(|share| TaskSummary::of(share, None)).collect();
        Ok((chooser.choose_after_survey(&seen)?, Some(shares)))
    }
}

/// Returns a description of the run for people, printed before the work.
pub(super) fn greeting(job: &TrainJob, opened: &TrainingInput, task_count: u32) -> String {
    let course = format!(
        "training {} on {} as {}: {}, {}, seed {}",
        job.algorithm,
        job.input.data.join(", "),
        opened.source.schema().format,
        explain(job.manner.tasks, task_count, &opened.source),
        consistency_name(job.consistency),
        job.seed
    );
    // Guesses about the data are printed before the work, and again in the report.
    opened.notices().iter().fold(course, |text, notice| format!("{notice}\n{text}"))
}

impl Trainer<'_> {
    fn run(
        &self,
        opened: &TrainingInput,
        surveyed: Option<Vec<TaskData>>,
        previous: Option<Model>,
        timings: &mut Timings,
        start: Instant,
    ) -> Result<Report, Error> {
        let resumed = |model: &Model| resume::start(self.job, self.task_count, &model.manifest);
        let start_position = previous.as_ref().map(resumed).unwrap_or_default();
        let plan = TaskDataPlan {
            job: self.job,
            opened,
            task_count: self.task_count,
            tasks: 0..self.task_count,
            first_epoch: start_position.epochs,
            is_survey: false,
        };
        let closing = RunInfo {
            job: self.job,
            algorithm: self.algorithm,
            label_rule: opened.needs.label_rule,
            schema: opened.source.schema(),
            size_bytes: opened.source.size_bytes(),
            notices: opened.notices(),
            task_count: self.task_count,
            start: start_position,
            reasons: &self.reasons,
        };
        let scanned = plan.must_scan();
        let shares = self.shares(&plan, surveyed, timings)?;
        let seen: Vec<TaskSummary> = shares.iter().map(|share| TaskSummary::of(share, None)).collect();
        let facts = closing.facts(&Totals::of(&seen), scanned)?;
        let model = self.algorithm.model(&facts, previous.as_ref().map(|m| &m.manifest.model));
        let model = model.map_err(|error| closing.with_job_context(error.into()))?;
        let partitions = self.partition_count();
        let specs = self.algorithm.matrices(&model, self.job.consistency, partitions, self.job.seed)?;
        let specs = resume::with_start_clock(specs, start_position);
        let (store, mut ids) = self.store(&specs, previous.as_ref())?;
        // The matrices after those of the model belong to the optimizer and are not saved.
        ids.truncate(model.matrix_count());
        let clock = Instant::now();
        let (outcome, ended) = self.train_tasks(&plan, shares, &store, &ids, &model, previous.is_some())?;
        timings.train_s = clock.elapsed().as_secs_f64();
        let (summaries, dictionaries): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
        timings.validate_s = summaries.iter().map(|task| task.validate_s).fold(0.0, f64::max);
        let totals = Totals::of(&summaries);
        closing.check_records(&totals, self.environment.interrupt.is_raised())?;
        if outcome.step_count == 0 {
            let what = "before the first step, so there is nothing to save".into();
            return Err(Error::Interrupted { what });
        }
        let mut notices: Vec<String> =
            previous.as_ref().map(|model| resume::notices(model, &specs)).unwrap_or_default();
        notices.extend(validation_notices(&summaries, closing.schema));
        let clock = Instant::now();
        let rows = ids.iter().map(|&id| store.export(id)).collect::<Result<Vec<_>, _>>()?;
        let manifest = closing.manifest(model, &outcome, &totals);
        let mut dictionary = previous.map(|model| model.dictionary).unwrap_or_default();
        dictionary.extend(dictionaries.into_iter().flatten());
        let written = save(self.job, manifest, &specs, &rows, dictionary, self.environment.interrupt)?;
        timings.save_s = clock.elapsed().as_secs_f64();
        timings.sync_s = written.sync_s;
        timings.total_s = start.elapsed().as_secs_f64();
        let stats = serde_json::to_value(store.stats()).unwrap_or_default();
        Ok(closing.report(totals, stats, outcome, &written.manifest, *timings, notices))
    }

    /// Number of partitions of each matrix.
    fn partition_count(&self) -> u32 {
        let tasks = self.running_at_once();
        if tasks == 1 { 1 } else { PARTITIONS_PER_TASK * tasks }
    }

    /// Number of tasks that compute at the same time.
    fn running_at_once(&self) -> u32 {
        self.task_count.min(self.job.manner.threads as u32)
    }

    /// Returns the training data: the surveyed ones, or else newly opened ones, scanned if necessary.
    fn shares(
        &self,
        plan: &TaskDataPlan<'_>,
        surveyed: Option<Vec<TaskData>>,
        timings: &mut Timings,
    ) -> Result<Vec<TaskData>, Error> {
        if let Some(mut shares) = surveyed {
            plan.finish_survey(&mut shares)?;
            return Ok(shares);
        }
        let mut shares = plan.training()?;
        if plan.must_scan() {
            let clock = Instant::now();
            let (permits, interrupt) = (self.permits.as_deref(), self.environment.interrupt);
            scan(&mut shares, 0, permits, &Failures::default(), interrupt, self.progress)?;
            timings.scan_s = clock.elapsed().as_secs_f64();
        }
        Ok(shares)
    }

    fn store(
        &self,
        specs: &[MatrixSpec],
        previous: Option<&Model>,
    ) -> Result<(Arc<LocalStore>, Vec<MatrixId>), Error> {
        if let Some(memory) = machine::memory_bytes() {
            let advice = "leave dimensions out, so that only features that occur take memory; or give --servers on \
                          machines with more memory";
            check_memory(specs, memory, "this machine", advice)?;
        }
        let config = LocalConfig { task_count: self.task_count, wait_limit: self.job.wait_limit };
        let mut store = LocalStore::with_functions(config, self.environment.functions.clone());
        let ids = specs.iter().map(|spec| store.create(spec.clone())).collect::<Result<Vec<_>, _>>()?;
        if let Some(previous) = previous {
            for (position, rows) in resume::rows(previous, specs) {
                store.import(ids[position], &rows)?;
            }
        }
        Ok((Arc::new(store), ids))
    }

    /// Runs the tasks; returns what each has read and the names of keys in it.
    fn train_tasks(
        &self,
        plan: &TaskDataPlan<'_>,
        shares: Vec<TaskData>,
        store: &Arc<LocalStore>,
        ids: &[MatrixId],
        model: &algo::Model,
        resumed: bool,
    ) -> Result<(TrainingSummary, Vec<TaskResult>), Error> {
        let coordinator = LocalCoordinator::new(
            store,
            ids,
            plan.opened,
            self.task_count,
            self.algorithm.stopping(),
            self.progress,
            self.environment.interrupt,
            self.permits.clone(),
            self.job.wait_limit,
        );
        let validations = plan.validation_readers()?;
        let failures = Failures::default();
        let (coordinator_ref, failures_ref) = (&coordinator, &failures);
        let is_told_to_stop = || coordinator_ref.should_stop();
        let told_ref = &is_told_to_stop;
        let ended: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0u32..)
                .zip(shares.into_iter().zip(validations))
                .map(|(task, (share, validation))| {
                    let reading = ReadTracker::new(failures_ref, task);
                    scope.spawn(move || {
                        let mut data = MeteredStream::new(share, self.progress);
                        if plan.opened.source.size_bytes().is_none() {
                            data = data.on_epoch_end(told_ref);
                        }
                        let mut validation = plan.validation_stream(validation, &mut data, told_ref);
                        let streams = (&mut data, validation.as_mut());
                        self.run_task(
                            store,
                            &reading,
                            failures_ref,
                            streams,
                            coordinator_ref,
                            model,
                            resumed,
                        );
                        let summary = TaskSummary::of(&data.data, validation.as_ref());
                        (summary, data.data.reader_mut().take_dictionary())
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().expect("panics of a task are caught inside it")).collect()
        });
        let (schema, needs) = (plan.opened.source.schema(), &plan.opened.needs);
        let (share, rule) = (needs.validation_share, needs.label_rule);
        failures.take().map_err(|error| with_job_context(error, self.job, share, rule, schema))?;
        Ok((coordinator.finish(), ended))
    }

    /// Trains one task to its end. If the task fails, its agent is kept until the others know of the failure: otherwise
    /// they would take the task for one that has finished.
    fn run_task(
        &self,
        store: &Arc<LocalStore>,
        reading: &ReadTracker<'_>,
        failures: &Failures,
        (data, validation): (&mut MeteredStream<'_>, Option<&mut TimedValidation<'_>>),
        coordinator: &LocalCoordinator<'_>,
        model: &algo::Model,
        resumed: bool,
    ) {
        let task = reading.task();
        let mut agent: Box<dyn Agent> = match &self.permits {
            None => Box::new(store.agent(task)),
            Some(permits) => Box::new(PermittedAgent::new(store.agent(task), Arc::clone(permits))),
        };
        let mut validation = validation.map(|stream| CountedStream::new(stream, reading));
        let task_of = TrainTask {
            agent: agent.as_mut(),
            data: &mut CountedStream::new(data, reading),
            validation: validation.as_mut().map(|stream| stream as &mut dyn BatchStream),
            coordinator,
            model,
            resumed,
        };
        let run = || with_permit(self.permits.as_deref(), || self.algorithm.train(task_of));
        if let Some(noted) = failures.record(reading, std::panic::catch_unwind(AssertUnwindSafe(run))) {
            store.fail(task, &*noted.reason);
            coordinator.fail(&noted.reason);
        }
    }
}
