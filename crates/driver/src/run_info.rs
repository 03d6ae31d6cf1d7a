//! What is known of a run besides its parameters: facts before the first step, checks after the last one, the manifest
//! of the model, and the report. Used by runs in one process and by runs on servers.

use std::collections::BTreeMap;
use std::path::Path;

use algo::{DataFacts, SavedModel};
use checkpoint::DataFile;
use data::key_names::{NAMES_LIMIT_BYTES, notice_of_limit};
use data::{KeyNames, LabelRule, Schema};
use job::checkpoints::settings_of_model;
use job::training::consistency_name;
use job::{Exit, Holdout, TrainJob};
use model::manifest::DataDigest;
use model::{Manifest, TrainingPosition, TrainingRecord, manifest};

use crate::epoch_monitor::{StopReason, TrainingSummary};
use crate::error::Error;
use crate::report::{InputReport, ModelReport, Report, Timings};
use crate::totals::Totals;

/// What is known of a run besides its parameters.
pub struct RunInfo<'a> {
    pub job: &'a TrainJob,
    /// How labels become numbers.
    pub label_rule: LabelRule,
    pub schema: &'a Schema,
    pub size_bytes: Option<u64>,
    /// Notices about how the training data were interpreted.
    pub notices: Vec<String>,
    pub task_count: u32,
    /// Number of tasks that can compute at once.
    pub threads: usize,
    /// The position at which the run started.
    pub start: TrainingPosition,
    /// The settings that the program chose, and why.
    pub reasons: &'a [String],
    /// The algorithm with the parameters of the job.
    pub algorithm: &'a dyn algo::Job,
    /// The files of the data, if they can be read again.
    pub files: &'a [DataFile],
}

/// A file of the data as the manifest of a model has it.
pub fn data_digest(file: &DataFile) -> Option<DataDigest> {
    let name = Path::new(&file.path).file_name()?.to_string_lossy().into_owned();
    Some(DataDigest { name, size_bytes: file.size_bytes, digest: file.digest.clone()? })
}

/// Returns the error when no records are left for training.
pub fn all_held_out_error(holdout: Holdout<'_>) -> Error {
    held_out_error(holdout, true)
}

/// Returns the error when all records are held out, or none of them.
fn held_out_error(holdout: Holdout<'_>, all: bool) -> Error {
    let (setting, how_many, advice) =
        (holdout.setting(), if all { "all" } else { "none" }, holdout.advice(all));
    Error::UnusableData {
        what: format!("{setting} holds out {how_many} of the records; {advice}"),
        exit: Exit::Usage,
    }
}

impl RunInfo<'_> {
    /// Returns the facts before the first step; after a scan, an error if there are no records.
    pub fn facts(&self, totals: &Totals, scanned: bool) -> Result<DataFacts, Error> {
        totals.check_bad_lines(self.job.input.bad_lines)?;
        if scanned && totals.records == 0 {
            return Err(totals.no_records(&self.job.input));
        }
        let classes = totals.labels.classes().unwrap_or_default();
        Ok(DataFacts {
            record_count: totals.records,
            classes: classes.into_iter().map(|(label, _)| label).collect(),
            label_names: self.schema.label_names.clone(),
            columns: self.schema.columns.iter().map(|column| column.name.clone()).collect(),
            dense: !self.schema.columns.is_empty(),
            names_have_values: self.schema.columns.is_empty() || !self.schema.interactions.is_empty(),
            feature_count: totals.features,
            field_count: totals.largest_field.map_or(0, |field| u64::from(field) + 1),
            label_mean: totals.labels.mean(),
            label_deviation: totals.labels.variance().sqrt(),
            survey: None,
        })
    }

    /// Returns `error` of a task in the terms of the job.
    pub fn with_job_context(&self, error: Error) -> Error {
        with_job_context(error, self.job, self.label_rule, (self.schema, &KeyNames::default()))
    }

    /// Checks what only the end of epoch 0 can show: no records, or labels that do not fit together.
    pub fn check_records(&self, totals: &Totals, interrupted: bool) -> Result<(), Error> {
        if totals.records == 0 && !interrupted {
            return Err(totals.no_records(&self.job.input));
        }
        totals.labels.check(self.label_rule)?;
        let one_class = matches!(self.label_rule, LabelRule::Binary { .. })
            && (totals.labels.positive_count() == 0
                || totals.labels.positive_count() == totals.labels.count());
        if one_class && totals.records > 0 && !interrupted {
            let label = if totals.labels.positive_count() == 0 { 0.0 } else { 1.0 };
            return Err(
                self.with_job_context(algo::Error::OneClass { record_count: totals.records, label }.into())
            );
        }
        Ok(())
    }

    /// Returns the manifest of the model without its matrices and files.
    pub fn manifest(&self, model: SavedModel, outcome: &TrainingSummary, totals: &Totals) -> Manifest {
        Manifest {
            format: manifest::FORMAT_NAME.into(),
            format_version: manifest::FORMAT_VERSION,
            program_version: env!("CARGO_PKG_VERSION").into(),
            algorithm: self.job.algorithm.clone(),
            settings: self.settings(),
            schema: self.schema.clone(),
            model,
            matrices: Vec::new(),
            trained: self.trained(outcome, totals),
            files: Vec::new(),
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let settings = self.algorithm.settings().values();
        settings.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    fn trained(&self, outcome: &TrainingSummary, totals: &Totals) -> TrainingRecord {
        let saved_epoch = match outcome.best_epoch {
            Some(best) => outcome.epochs.iter().find(|line| line.epoch == best),
            None => outcome.epochs.last(),
        };
        TrainingRecord {
            data: self.job.written.data.clone(),
            validate: self.job.written.validate.clone(),
            from: self.job.written.from.clone(),
            records: totals.records,
            epochs: outcome.epochs.len() as u64,
            position: Some(TrainingPosition {
                epochs: self.start.epochs + saved_epoch.map_or(0, |line| line.epoch + 1),
                clock: self.start.clock + saved_epoch.map_or(0, |line| line.clock),
            }),
            interrupted: outcome.end == StopReason::Interrupted,
            seed: self.job.seed,
            tasks: self.task_count,
            consistency: consistency_name(self.job.consistency),
            metrics: saved_epoch.map(|line| line.training.clone()).unwrap_or_default(),
            validation_metrics: saved_epoch.and_then(|line| line.validation.clone()).unwrap_or_default(),
            given: settings_of_model(&self.job.given),
            files: self.files.iter().filter_map(data_digest).collect(),
            applied: Vec::new(),
        }
    }

    pub fn report(
        &self,
        totals: Totals,
        store: serde_json::Value,
        outcome: TrainingSummary,
        written: &Manifest,
        timings: Timings,
        more_notices: Vec<String>,
    ) -> Report {
        let trained: u64 = outcome.epochs.iter().map(|line| line.records).sum();
        let mut notices = self.notices.clone();
        notices.extend(totals.all_notices());
        notices.extend(totals.interaction_notice());
        notices.extend(self.algorithm.advice(&outcome.metrics_report()));
        notices.extend(outcome.notices);
        notices.extend(more_notices);
        Report {
            program_version: env!("CARGO_PKG_VERSION").into(),
            algorithm: self.job.algorithm.clone(),
            settings: self.settings(),
            choices: self.reasons.to_vec(),
            seed: self.job.seed,
            consistency: consistency_name(self.job.consistency),
            tasks: self.task_count,
            threads: self.threads,
            data: self.job.written.data.clone(),
            validate: self.job.written.validate.clone(),
            format: self.schema.format.clone(),
            input: InputReport {
                records: totals.records,
                size_bytes: self.size_bytes,
                labels: crate::labels::describe(&totals.labels, self.schema, self.label_rule),
                bad_lines: totals.bad_lines,
                first_bad_lines: totals.first_bad_lines,
                cached: serde_json::json!(totals.cached),
            },
            epochs: outcome.epochs,
            ended_by: outcome.end.name().into(),
            best_epoch: outcome.best_epoch,
            timings,
            records_per_second: trained as f64 / timings.train_s.max(1e-9),
            peak_memory_bytes: None,
            store,
            notices,
            model: ModelReport {
                path: self.job.model.display().to_string(),
                size_bytes: written.files.iter().map(|file| file.size_bytes).sum(),
                stored_rows: written.matrices.iter().map(|m| (m.name.clone(), m.stored_rows)).collect(),
            },
        }
    }
}

/// Returns the error of a task, which knows neither files nor names of labels, in the terms of the job.
pub fn with_job_context(
    error: Error,
    job: &TrainJob,
    label_rule: LabelRule,
    (schema, names): (&Schema, &KeyNames),
) -> Error {
    let holdout = job.holdout();
    let mut error = error;
    if let Error::Algo(error) = &mut error
        && let Some(feature) = error.feature_mut()
    {
        feature.name = Some(schema.feature_name(names, feature.key));
    }
    match error {
        Error::Algo(algo::Error::NoRecords) if holdout.is_some() => all_held_out_error(holdout),
        Error::Algo(algo::Error::NoRecords) => Error::NoRecords { inputs: job.input.data.clone() },
        // This error is about the validation data: training data without records have the variant above.
        Error::Algo(algo::Error::Data(data::Error::NoRecords { .. })) if holdout.is_some() => {
            held_out_error(holdout, false)
        }
        Error::Algo(algo::Error::Data(data::Error::NoRecords { .. })) => {
            Error::NoRecords { inputs: job.validate.clone() }
        }
        Error::Algo(algo::Error::OneClass { record_count, label })
            if let Some(name) = schema.label_names.get(label as usize)
                && matches!(label_rule, LabelRule::Class | LabelRule::Binary { positive: None }) =>
        {
            Error::UnusableData {
                what: format!(
                    "all {record_count} records have the label '{name}', and a classifier needs two; check the label \
                     column"
                ),
                exit: Exit::Data,
            }
        }
        error => error,
    }
}

/// The notice that not all names of features are saved.
pub fn names_notice() -> String {
    notice_of_limit("the names of the features of a model", NAMES_LIMIT_BYTES)
}
