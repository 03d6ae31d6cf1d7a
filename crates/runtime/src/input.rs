//! The data of a training run: opened once, then divided over the tasks.

use std::ops::Range;

use algo::{Epochs, Job, Needs};
use data::{
    BadLineTotal, Batch, CacheConfig, HoldoutRule, MemoryStream, Reader, Schema, Shuffle, Source,
    SourceConfig, Split, TaskData,
};
use driver::Error;
use job::holdout::check_times;
use job::{Holdout, Input, TrainJob};
use math::random::{Purpose, RandomStream, stream};

use crate::environment::Environment;
use crate::interrupt::Interrupt;
use crate::machine;
use crate::task_streams::{MeteredStream, TimedValidation, ValidationSource};

/// Task number of validation streams. They do not shuffle, so it is only part of the names of their files.
const VALIDATION_TASKS: u64 = u64::MAX;

/// The opened data of a run.
pub struct TrainingInput {
    pub source: Source,
    pub validation: Option<Source>,
    /// The algorithm's needs; their label rule fits the label names of the data.
    pub needs: Needs,
}

impl TrainingInput {
    /// Returns the notices of the readers.
    pub fn notices(&self) -> Vec<String> {
        let validation = self.validation.iter().flat_map(Source::notices);
        let validation = validation.map(|notice| format!("validation: {notice}"));
        self.source.notices().iter().cloned().chain(validation).collect()
    }

    /// Returns the bad lines so far: of the training data, of the validation data.
    pub fn bad_lines(&self) -> [BadLineTotal; 2] {
        let validation = self.validation.as_ref().map(Source::bad_lines);
        [self.source.bad_lines(), validation.unwrap_or_default()]
    }
}

/// The settings of the data crate for the data of a job.
pub fn source_config(input: &Input, interrupt: &Interrupt) -> SourceConfig {
    source_config_of(input, &input.data, interrupt)
}

/// Returns the same settings for other files.
fn source_config_of(input: &Input, inputs: &[String], interrupt: &Interrupt) -> SourceConfig {
    SourceConfig {
        inputs: inputs.to_vec(),
        format: input.format.clone(),
        options: input.options.clone(),
        bad_lines: input.bad_lines,
        stop: interrupt.stop_reading(),
    }
}

/// Opens the data; with the columns of `trained_schema` (an earlier model, or the process that inspected the data first) if
/// given.
pub fn open(
    job: &TrainJob,
    algorithm: &dyn Job,
    trained_schema: Option<&Schema>,
    environment: Environment<'_>,
) -> Result<TrainingInput, Error> {
    let mut needs = algorithm.needs();
    let mut input = job.input.clone();
    needs.set_options(&mut input.options);
    let config = source_config(&input, environment.interrupt);
    let source = match trained_schema {
        Some(schema) => Source::open_with_schema(&config, schema, environment.formats),
        None => Source::open(&config, environment.formats),
    };
    // Ctrl-C also ends standard input, so what was read so far may look like any format.
    environment.interrupt.check("while the data were opened, before the first step; no model was written")?;
    let mut source = source?;
    check_times(job.holdout(), source.schema())?;
    needs.label_rule = algorithm.label_rule(&source.schema().label_names)?;
    source.set_label_rule(needs.label_rule);
    input.options.label_rule = needs.label_rule;
    let validation = (!job.validate.is_empty()).then(|| {
        let config = source_config_of(&input, &job.validate, environment.interrupt);
        Source::open_with_schema(&config, source.schema(), environment.formats)
    });
    if needs.early_stopping.is_some() && validation.is_none() && !job.holdout().is_some() {
        let what = "early_stopping needs validation data, and none are given";
        let advice = "give --validate FILES, --set validation_share=0.1, or --time and --validate-from";
        return Err(Error::request(what, advice));
    }
    Ok(TrainingInput { validation: validation.transpose()?, source, needs })
}

impl TrainingInput {
    /// Updates the needs of the data when the open settings of the algorithm have been chosen. Readers that exist keep their
    /// rule for labels.
    pub fn apply_settings(&mut self, algorithm: &dyn Job) -> Result<(), Error> {
        let label_rule = algorithm.label_rule(&self.source.schema().label_names)?;
        self.source.set_label_rule(label_rule);
        self.validation.iter_mut().for_each(|validation| validation.set_label_rule(label_rule));
        self.needs = Needs { label_rule, ..algorithm.needs() };
        Ok(())
    }
}

/// How the opened data are divided over the tasks of one process.
pub struct TaskDataPlan<'a> {
    pub job: &'a TrainJob,
    pub opened: &'a TrainingInput,
    /// Number of tasks of the job.
    pub task_count: u32,
    /// The tasks of this process.
    pub tasks: Range<u32>,
    /// Number of epochs over these data in earlier runs; the order of records continues from there.
    pub first_epoch: u64,
    /// Whether all data are read and surveyed, so that the open settings of the job can be chosen.
    pub is_survey: bool,
}

impl TaskDataPlan<'_> {
    pub fn has_holdout(&self) -> bool {
        self.job.holdout().is_some()
    }

    /// Whether the data must be read before the first step.
    pub fn must_scan(&self) -> bool {
        self.is_survey || self.opened.needs.scan || self.opened.needs.quantiles || self.has_holdout()
    }

    /// Reconfigures surveyed data for the settings that were chosen after the survey.
    pub fn finish_survey(&self, surveyed: &mut [TaskData]) -> Result<(), Error> {
        let (batch_size, shuffle) = (self.opened.needs.batch_size, self.opened.needs.shuffle);
        for share in surveyed {
            let holdout = match self.job.holdout() {
                Holdout::Share(part) => Some((part, self.holdout_stream(share.task()))),
                Holdout::None | Holdout::From(_) => None,
            };
            share.reconfigure(batch_size, shuffle, self.must_scan(), holdout)?;
            share.set_first_epoch(self.first_epoch);
        }
        Ok(())
    }

    /// The random numbers that draw the hold-out of a task.
    fn holdout_stream(&self, task: u64) -> RandomStream {
        stream(self.job.seed, Purpose::Validation, task, 0)
    }

    /// What each task of this process reads.
    fn splits(&self, source: &Source) -> impl Iterator<Item = Vec<Split>> {
        let (all, first) = if self.job.is_data_local {
            (self.tasks.len(), 0)
        } else {
            (self.task_count as usize, self.tasks.start as usize)
        };
        source.splits(all).into_iter().skip(first).take(self.tasks.len())
    }

    /// Returns the training data of each task.
    pub fn training(&self) -> Result<Vec<TaskData>, Error> {
        // After the first epoch the order of records is shuffled, which requires that they were read before.
        let mixed = self.first_epoch > 0 && self.opened.needs.shuffle != Shuffle::None;
        let single = matches!(self.opened.needs.epochs, Epochs::Fixed(1)) && !self.must_scan() && !mixed;
        let keep = (!single).then(|| self.keep_config());
        self.splits(&self.opened.source)
            .zip(u64::from(self.tasks.start)..)
            .map(|(splits, task)| {
                let mut reader = self.opened.source.reader(splits)?;
                match self.job.holdout() {
                    Holdout::None => {}
                    Holdout::From(limit) => reader.set_holdout(HoldoutRule::From(limit.time)),
                    Holdout::Share(share) => {
                        reader.set_holdout(HoldoutRule::Share(share, self.holdout_stream(task)));
                    }
                }
                if self.opened.needs.count_features || self.is_survey {
                    reader.count_features();
                }
                if self.is_survey || self.opened.needs.quantiles {
                    reader.enable_survey(self.opened.needs.quantiles);
                }
                let (shuffle, batch_size) = (self.opened.needs.shuffle, self.opened.needs.batch_size);
                let mut data = TaskData::new(reader, keep.clone(), shuffle, self.job.seed, task, batch_size);
                data.set_first_epoch(self.first_epoch);
                if self.opened.needs.uses_record_numbers {
                    data.number_records();
                }
                Ok(data)
            })
            .collect()
    }

    /// The memory limit covers all tasks of this process, and their validation data if these are kept too.
    fn keep_config(&self) -> CacheConfig {
        let parts = self.tasks.len() as u64 * if self.opened.validation.is_some() { 2 } else { 1 };
        CacheConfig {
            memory_limit_bytes: self.job.memory_limit_bytes.unwrap_or_else(machine::memory_share)
                / parts.max(1),
            folder: self.job.scratch.clone().unwrap_or_else(std::env::temp_dir),
        }
    }

    /// Returns the reader of the validation data of each task, if there are any.
    pub fn validation_readers(&self) -> Result<Vec<Option<Reader>>, Error> {
        let Some(source) = &self.opened.validation else {
            return Ok(self.tasks.clone().map(|_| None).collect());
        };
        self.splits(source).map(|splits| Ok(Some(source.reader(splits)?))).collect()
    }

    /// Returns the validation data of a task; the records held out of `data` if there are no validation files.
    pub fn validation_stream<'t>(
        &self,
        reader: Option<Reader>,
        data: &mut MeteredStream<'_>,
        is_told_to_stop: &'t (dyn Fn() -> bool + Sync),
    ) -> Option<TimedValidation<'t>> {
        if let Some(reader) = reader {
            let needs = &self.opened.needs;
            let single = matches!(needs.epochs, Epochs::Fixed(1)) && !needs.repeats_validation;
            let keep = (!single).then(|| self.keep_config());
            let (seed, size) = (self.job.seed, self.opened.needs.batch_size);
            let data = TaskData::new(reader, keep, Shuffle::None, seed, VALIDATION_TASKS, size);
            return Some(TimedValidation::new(ValidationSource::File(Box::new(data)), is_told_to_stop));
        }
        if self.has_holdout() {
            let batches: Vec<Batch> = data.data.take_holdout();
            return Some(TimedValidation::new(
                ValidationSource::Share(MemoryStream::new(batches)),
                is_told_to_stop,
            ));
        }
        None
    }
}
