//! Training in one process: open the data, lay out the matrices, run a thread a task, save the model, report.

mod save;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use algo::{DataFacts, DataNeeds, Epochs, Job, TrainTask};
use data::{Batch, BatchStream, KeepConfig, LabelRule, MemoryStream, Reader, Source, TaskData};
use math::random::{Purpose, stream};
use matrix::{Agent, LocalConfig, LocalStore, MatrixId, MatrixSpec};

use super::Environment;
use super::coordinator::{LocalCoordinator, Outcome};
use super::failure::Failure;
use super::permits::{Permits, PermittedAgent, with_permit};
use super::resume;
use super::scan::scan;
use super::share::{Timed, Validation, Watched};
use super::tasks::{explain, task_count};
use super::totals::Totals;
use super::validated::Validated;
use crate::error::Error;
use crate::job::{TrainJob, consistency_name};
use crate::model::{self, Manifest, Model};
use crate::progress::Progress;
use crate::report::{InputReport, ModelReport, Report, Timings};

/// Partitions a task has of each matrix: enough that two tasks seldom want the same one at once. A task that is alone
/// has one.
const PARTITIONS_A_TASK: u32 = 8;

/// The opened data of a run.
pub(super) struct Opened {
    pub(super) source: Source,
    pub(super) validation: Option<Source>,
    task_count: u32,
}

/// The parts of a run that outlive its tasks.
struct Trainer<'a> {
    job: &'a TrainJob,
    environment: Environment<'a>,
    algorithm: &'a dyn Job,
    needs: DataNeeds,
    progress: &'a Progress,
    permits: Option<Arc<Permits>>,
}

/// Trains a model and writes it.
pub fn train(job: &TrainJob, environment: Environment<'_>) -> Result<Report, Error> {
    let start = Instant::now();
    let algorithm = (algo::algorithm(&job.algorithm)?.configure)(&job.set)?;
    model::check_place(&job.model, job.overwrite)?;
    if let Some(path) = &job.report {
        check_writable(path)?;
    }
    let previous = job.from.as_deref().map(|path| Model::read(path, true)).transpose()?;
    let needs = algorithm.data_needs();
    let opened = open(job, &needs, previous.as_ref(), environment)?;
    let progress = Progress::new(job.manner.quiet, opened.source.size_bytes());
    let permits = (job.manner.threads < opened.task_count as usize).then(|| Permits::new(job.manner.threads));
    let trainer =
        Trainer { job, environment, algorithm: algorithm.as_ref(), needs, progress: &progress, permits };
    let mut timings = Timings { open_s: start.elapsed().as_secs_f64(), ..Timings::default() };
    trainer.greet(&opened);
    let report = trainer.run(&opened, previous, &mut timings, start);
    progress.clear();
    let report = report?;
    if let Some(path) = &job.report {
        report.write(path)?;
    }
    Ok(report)
}

/// Tries it before the work, and leaves nothing behind.
fn check_writable(path: &Path) -> Result<(), Error> {
    let there = path.exists();
    std::fs::OpenOptions::new().create(true).append(true).open(path).map_err(Error::io("write", path))?;
    if there { Ok(()) } else { std::fs::remove_file(path).map_err(Error::io("write", path)) }
}

fn open(
    job: &TrainJob,
    needs: &DataNeeds,
    previous: Option<&Model>,
    environment: Environment<'_>,
) -> Result<Opened, Error> {
    let mut input = job.input.clone();
    input.options.label_rule = needs.label_rule;
    input.options.keep_zeros = needs.keep_zeros;
    let config = input.source_config();
    let source = match previous {
        Some(model) => Source::open_like(&config, &model.manifest.schema, environment.formats)?,
        None => Source::open(&config, environment.formats)?,
    };
    let validation = (!job.validate.is_empty()).then(|| {
        Source::open_like(&input.source_config_of(&job.validate), source.schema(), environment.formats)
    });
    if needs.validation_required && validation.is_none() && needs.validation_share == 0.0 {
        let what = "early_stopping watches the validation loss, and there is nothing to validate on".into();
        let advice = "give --validate FILES, or --set validation_share=0.1".into();
        return Err(Error::Request { what, advice });
    }
    let task_count = task_count(job.manner.tasks, &source, job.manner.threads);
    Ok(Opened { validation: validation.transpose()?, source, task_count })
}

impl Trainer<'_> {
    fn greet(&self, opened: &Opened) {
        let tasks = explain(self.job.manner.tasks, opened.task_count, &opened.source);
        self.progress.say(&format!(
            "training {} on {} as {}: {tasks}, {}, seed {}",
            self.job.algorithm,
            self.job.input.data.join(", "),
            opened.source.schema().format,
            consistency_name(self.job.consistency),
            self.job.seed
        ));
    }

    fn run(
        &self,
        opened: &Opened,
        previous: Option<Model>,
        timings: &mut Timings,
        start: Instant,
    ) -> Result<Report, Error> {
        let mut shares = self.shares(opened)?;
        let clock = Instant::now();
        let scanned = self.needs.scan || self.holds_out(opened);
        if scanned {
            scan(&mut shares, self.permits.as_deref(), self.environment.interrupt, self.progress)?;
            timings.scan_s = clock.elapsed().as_secs_f64();
        }
        let facts = self.facts(&shares, opened, scanned)?;
        let model = self.algorithm.model(&facts, previous.as_ref().map(|m| &m.manifest.model))?;
        let partitions = if opened.task_count == 1 { 1 } else { PARTITIONS_A_TASK * opened.task_count };
        let specs = self.algorithm.matrices(&model, self.job.consistency, partitions, self.job.seed)?;
        let (store, ids) = self.store(&specs, opened.task_count, previous.as_ref())?;
        let clock = Instant::now();
        let (outcome, mut shares, validated) =
            self.train_tasks(opened, shares, &store, &ids, &model, previous.is_some())?;
        timings.train_s = clock.elapsed().as_secs_f64();
        timings.validate_s = validated.longest_s;
        self.check_records(&shares)?;
        if outcome.step_count == 0 {
            let what = "before the first step was made: there is nothing to save".into();
            return Err(Error::Interrupted { what });
        }
        let mut notices =
            previous.as_ref().and_then(|model| resume::notice(model, &specs)).into_iter().collect::<Vec<_>>();
        notices.extend(validated.notices(&shares, opened));
        let clock = Instant::now();
        let written = self.save(opened, &specs, &ids, &store, model, previous, &outcome, &mut shares)?;
        timings.save_s = clock.elapsed().as_secs_f64();
        timings.sync_s = written.sync_s;
        timings.total_s = start.elapsed().as_secs_f64();
        Ok(self.report(opened, &shares, &store, outcome, &written.manifest, *timings, notices))
    }

    fn holds_out(&self, opened: &Opened) -> bool {
        opened.validation.is_none() && self.needs.validation_share > 0.0
    }

    /// Each task's share of the training data.
    fn shares(&self, opened: &Opened) -> Result<Vec<TaskData>, Error> {
        let single =
            matches!(self.needs.epochs, Epochs::Fixed(1)) && !self.needs.scan && !self.holds_out(opened);
        let keep = (!single).then(|| self.keep_config(opened));
        let splits = opened.source.splits(opened.task_count as usize);
        (0u64..)
            .zip(splits)
            .map(|(task, splits)| {
                let mut reader = opened.source.reader(splits)?;
                if self.holds_out(opened) {
                    let chance = stream(self.job.seed, Purpose::Validation, task, 0);
                    reader.set_holdout(self.needs.validation_share, chance);
                }
                let (shuffle, batch_size) = (self.needs.shuffle, self.needs.batch_size);
                Ok(TaskData::new(reader, keep.clone(), shuffle, self.job.seed, task, batch_size))
            })
            .collect()
    }

    /// The memory limit is of all tasks together, and of their validation data when these are kept as well.
    fn keep_config(&self, opened: &Opened) -> KeepConfig {
        let parts = u64::from(opened.task_count) * if opened.validation.is_some() { 2 } else { 1 };
        KeepConfig {
            mode: self.job.keep,
            memory_limit_bytes: self.job.memory_limit_bytes / parts,
            folder: self.job.scratch.clone(),
        }
    }

    /// What is known before the first step; a scan must have seen records.
    fn facts(&self, shares: &[TaskData], opened: &Opened, scanned: bool) -> Result<DataFacts, Error> {
        let summary = Totals::of(shares);
        if scanned && summary.records == 0 {
            return Err(Error::NoRecords { inputs: self.job.input.data.clone() });
        }
        let classes = summary.labels.classes().unwrap_or_default();
        Ok(DataFacts {
            record_count: summary.records,
            classes: classes.into_iter().map(|(label, _)| label).collect(),
            dense: !opened.source.schema().columns.is_empty(),
        })
    }

    fn store(
        &self,
        specs: &[MatrixSpec],
        task_count: u32,
        previous: Option<&Model>,
    ) -> Result<(Arc<LocalStore>, Vec<MatrixId>), Error> {
        let mut store = LocalStore::new(LocalConfig { task_count, wait_limit: self.job.wait_limit });
        let ids = specs.iter().map(|spec| store.create(spec.clone())).collect::<Result<Vec<_>, _>>()?;
        if let Some(previous) = previous {
            resume::import(previous, specs, &ids, &store)?;
        }
        Ok((Arc::new(store), ids))
    }

    /// Runs the tasks; gives back their data for the summaries, and what is known of their validation.
    fn train_tasks(
        &self,
        opened: &Opened,
        shares: Vec<TaskData>,
        store: &Arc<LocalStore>,
        ids: &[MatrixId],
        model: &algo::Model,
        resumed: bool,
    ) -> Result<(Outcome, Vec<TaskData>, Validated), Error> {
        let coordinator = LocalCoordinator::new(
            store,
            ids,
            opened.task_count,
            self.algorithm.stopping(),
            self.progress,
            self.environment.interrupt,
            self.permits.clone(),
            self.job.wait_limit,
        );
        let validations = Self::validations(opened, shares.len())?;
        let failure = Failure::default();
        let (coordinator_ref, failure_ref) = (&coordinator, &failure);
        let is_told_to_stop = || coordinator_ref.is_told_to_stop();
        let told_ref = &is_told_to_stop;
        let ended: Vec<(TaskData, Option<Timed<'_>>)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0u32..)
                .zip(shares.into_iter().zip(validations))
                .map(|(task, (share, validation))| {
                    scope.spawn(move || {
                        let mut data = Watched::new(share, self.progress);
                        let mut validation = self.validation_stream(opened, validation, &mut data, told_ref);
                        let run = || {
                            self.one_task(
                                task,
                                store,
                                &mut data,
                                validation.as_mut(),
                                coordinator_ref,
                                model,
                                resumed,
                            )
                        };
                        if let Some(reason) =
                            failure_ref.note(task, std::panic::catch_unwind(AssertUnwindSafe(run)))
                        {
                            store.stop(&reason);
                            coordinator_ref.fail(&reason);
                        }
                        (data.data, validation)
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().expect("panics of a task are caught inside it")).collect()
        });
        failure.into_result().map_err(|error| match error {
            Error::Algo(algo::Error::NoRecords) => Error::NoRecords { inputs: self.job.input.data.clone() },
            error => error,
        })?;
        let (shares, validations): (Vec<TaskData>, Vec<Option<Timed<'_>>>) = ended.into_iter().unzip();
        let validated = Validated::of(validations.iter().flatten());
        Ok((coordinator.finish(), shares, validated))
    }

    /// Each task's reader of the validation data, if there are any.
    fn validations(opened: &Opened, count: usize) -> Result<Vec<Option<Reader>>, Error> {
        let Some(source) = &opened.validation else {
            return Ok((0..count).map(|_| None).collect());
        };
        source.splits(count).into_iter().map(|splits| Ok(Some(source.reader(splits)?))).collect()
    }

    fn validation_stream<'t>(
        &self,
        opened: &Opened,
        reader: Option<Reader>,
        data: &mut Watched<'_>,
        is_told_to_stop: &'t (dyn Fn() -> bool + Sync),
    ) -> Option<Timed<'t>> {
        if let Some(reader) = reader {
            let single = matches!(self.needs.epochs, Epochs::Fixed(1));
            let keep = (!single).then(|| self.keep_config(opened));
            let (seed, size) = (self.job.seed, self.needs.batch_size);
            let task = VALIDATION_TASKS;
            let data = TaskData::new(reader, keep, data::Shuffle::None, seed, task, size);
            return Some(Timed::new(Validation::File(Box::new(data)), is_told_to_stop));
        }
        if self.needs.validation_share > 0.0 {
            let batches: Vec<Batch> = data.data.reader_mut().take_holdout();
            return Some(Timed::new(Validation::Share(MemoryStream::new(batches)), is_told_to_stop));
        }
        None
    }

    fn one_task(
        &self,
        task: u32,
        store: &Arc<LocalStore>,
        data: &mut Watched<'_>,
        validation: Option<&mut Timed<'_>>,
        coordinator: &LocalCoordinator<'_>,
        model: &algo::Model,
        resumed: bool,
    ) -> Result<(), Error> {
        let mut plain;
        let mut permitted;
        let agent: &mut dyn Agent = match &self.permits {
            None => {
                plain = store.agent(task);
                &mut plain
            }
            Some(permits) => {
                permitted = PermittedAgent::new(store.agent(task), Arc::clone(permits));
                &mut permitted
            }
        };
        let validation = validation.map(|stream| stream as &mut dyn BatchStream);
        let task = TrainTask { agent, data, validation, coordinator, model, resumed };
        with_permit(self.permits.as_deref(), || self.algorithm.train(task))
    }

    /// What only the end of epoch 0 shows: no records, labels that do not go together.
    fn check_records(&self, shares: &[TaskData]) -> Result<(), Error> {
        let totals = Totals::of(shares);
        if totals.records == 0 && !self.environment.interrupt.is_raised() {
            return Err(Error::NoRecords { inputs: self.job.input.data.clone() });
        }
        totals.labels.check(self.needs.label_rule)?;
        let one_class = matches!(self.needs.label_rule, LabelRule::Binary { .. })
            && (totals.labels.positive_count() == 0
                || totals.labels.positive_count() == totals.labels.count());
        if one_class && totals.records > 0 && !self.environment.interrupt.is_raised() {
            let label = if totals.labels.positive_count() == 0 { 0.0 } else { 1.0 };
            return Err(algo::Error::OneClass { record_count: totals.records, label }.into());
        }
        Ok(())
    }

    fn report(
        &self,
        opened: &Opened,
        shares: &[TaskData],
        store: &LocalStore,
        outcome: Outcome,
        written: &Manifest,
        timings: Timings,
        more_notices: Vec<String>,
    ) -> Report {
        let totals = Totals::of(shares);
        let trained: u64 = outcome.epochs.iter().map(|line| line.records).sum();
        let mut notices = totals.notices;
        notices.extend(outcome.notices);
        notices.extend(more_notices);
        Report {
            program_version: env!("CARGO_PKG_VERSION"),
            algorithm: self.job.algorithm.clone(),
            settings: self.settings(),
            seed: self.job.seed,
            consistency: consistency_name(self.job.consistency),
            tasks: opened.task_count,
            threads: self.job.manner.threads,
            data: self.job.input.data.clone(),
            validate: self.job.validate.clone(),
            format: opened.source.schema().format.clone(),
            input: InputReport {
                records: totals.records,
                size_bytes: opened.source.size_bytes(),
                labels: crate::labels::describe(&totals.labels, opened.source.schema()),
                bad_lines: totals.bad_lines,
                first_bad_lines: totals.first_bad_lines,
                kept: serde_json::json!(totals.kept),
            },
            epochs: outcome.epochs,
            ended_by: outcome.end.name(),
            best_epoch: outcome.best_epoch,
            timings,
            records_per_second: trained as f64 / timings.train_s.max(1e-9),
            peak_memory_bytes: crate::machine::peak_memory_bytes(),
            store: serde_json::to_value(store.stats()).unwrap_or_default(),
            notices,
            model: ModelReport {
                path: self.job.model.display().to_string(),
                size_bytes: written.files.iter().map(|file| file.size_bytes).sum(),
                stored_rows: written.matrices.iter().map(|m| (m.name.clone(), m.stored_rows)).collect(),
            },
        }
    }
}

/// Task number of validation streams: they do not shuffle, so it only names their files.
const VALIDATION_TASKS: u64 = u64::MAX;
