//! `evaluate`: metrics of a model on labelled data.

use std::collections::BTreeMap;

use algo::Output;
use algo::metric::calibration::CalibrationRow;
use algo::metric::classification::Confusion;
use serde::Serialize;

use super::Environment;
use super::driver::epoch_monitor::metrics;
use super::score::LoadedModel;
use crate::error::Error;
use crate::job::EvaluateJob;
use crate::labels;

/// The result of `evaluate`.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    pub metrics: BTreeMap<String, f64>,
    /// The score above which a record is predicted as 1; only for models of two classes.
    pub threshold: Option<f64>,
    /// Predicted labels against true labels; none for regression.
    pub confusion: Option<ConfusionMatrix>,
    /// Predicted probabilities and observed frequencies in bins; empty except for `lr`.
    pub calibration_table: Vec<CalibrationRow>,
    /// Number of scored records.
    pub records: u64,
    /// Description of the labels, for people.
    pub labels: String,
    /// Path of the model.
    pub model: String,
    pub algorithm: String,
    /// The data as given.
    pub data: Vec<String>,
    /// Number of bad lines that were skipped.
    pub bad_lines: u64,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// Sums of record weights by true label and predicted label.
#[derive(Clone, Debug, Serialize)]
pub struct ConfusionMatrix {
    /// The labels as the user writes them, in the order of rows and columns.
    pub labels: Vec<String>,
    /// One row per true label, one column per predicted label.
    pub counts: Vec<Vec<f64>>,
}

impl ConfusionMatrix {
    fn new(confusion: &Confusion, labels: Vec<String>) -> Self {
        let cell = |is, said| confusion.cells.get(&(is, said)).copied().unwrap_or(0.0);
        let all = 0..labels.len() as u32;
        let counts = all.clone().map(|is| all.clone().map(|said| cell(is, said)).collect()).collect();
        Self { labels, counts }
    }
}

/// Returns the threshold in force; an error if the model has no threshold.
fn threshold(asked: Option<f64>, output: &Output) -> Result<Option<f64>, Error> {
    let refused = |what: &str, advice: &str| {
        Err(Error::InvalidRequest { what: what.to_owned(), advice: advice.to_owned() })
    };
    match (output, asked) {
        (Output::Probability, Some(threshold)) if !(0.0..=1.0).contains(&threshold) => {
            refused(&format!("--threshold {threshold} is not a probability"), "give a number from 0 to 1")
        }
        (Output::Probability, asked) => Ok(Some(asked.unwrap_or(0.5))),
        (Output::Margin, asked) => Ok(Some(asked.unwrap_or(0.0))),
        (Output::Value | Output::Classes(_) | Output::Columns(_), None) => Ok(None),
        (Output::Value | Output::Classes(_) | Output::Columns(_), Some(_)) => {
            refused("--threshold is for models of two classes", "leave it out")
        }
    }
}

pub fn evaluate(job: &EvaluateJob, environment: Environment<'_>) -> Result<Evaluation, Error> {
    let loaded = LoadedModel::of_command(&job.model, &job.manner, job.servers, environment)?;
    evaluate_loaded(&loaded, job, environment)
}

/// Evaluates a model that was read.
pub fn evaluate_loaded(
    loaded: &LoadedModel,
    job: &EvaluateJob,
    environment: Environment<'_>,
) -> Result<Evaluation, Error> {
    let LoadedModel { model, scoring, scorer } = loaded;
    let (input, source) = loaded.open(&job.input, scoring.label_rule(), environment)?;
    let source = source?;
    let threshold = threshold(job.threshold, &scoring.output())?;
    let mut parts = scoring.metric_accumulator().with_confusion(job.threshold);
    let empty = parts.clone();
    let totals = scorer.run(
        &source,
        &input,
        environment.interrupt,
        |scorer, agent, batch| {
            let mut parts = empty.clone();
            scorer.evaluate(agent, batch, &mut parts)?;
            Ok(parts)
        },
        |made| {
            parts.merge(&made);
            Ok(())
        },
    )?;
    let mut notices: Vec<String> = source.notices().iter().cloned().chain(totals.all_notices()).collect();
    notices.extend(parts.notices());
    notices.extend(super::training_checks::notice_of_evaluation(&metrics(&parts)));
    let classes = labels::classes(&**scoring, source.schema(), &totals.labels);
    Ok(Evaluation {
        metrics: metrics(&parts),
        threshold,
        confusion: parts.confusion().map(|confusion| ConfusionMatrix::new(&confusion, classes)),
        calibration_table: parts.calibration_table(),
        records: totals.records,
        labels: labels::describe(&totals.labels, source.schema(), scoring.label_rule()),
        model: job.model.display().to_string(),
        algorithm: model.manifest.algorithm.clone(),
        data: job.input.data.clone(),
        bad_lines: totals.bad_lines,
        notices,
    })
}
