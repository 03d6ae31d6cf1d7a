//! The result of `evaluate`: metrics of a model on labelled data.

use std::collections::BTreeMap;

use algo::metric::MetricAccumulator;
use algo::metric::calibration::CalibrationRow;
use algo::metric::classification::Confusion;
use algo::{Model, Output};
use data::Schema;
use job::EvaluateJob;
use serde::{Deserialize, Serialize};

use crate::coverage::KnownFeatures;
use crate::epoch_monitor::metrics;
use crate::error::Error;
use crate::labels;
use crate::totals::Totals;

/// The result of `evaluate`.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Serialize, Deserialize)]
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
pub fn threshold(asked: Option<f64>, output: &Output) -> Result<Option<f64>, Error> {
    let refused = |what: &str, advice: &str| Err(Error::request(what, advice));
    match (output, asked) {
        (Output::Probability, Some(threshold)) if !(0.0..=1.0).contains(&threshold) => {
            refused(&format!("--threshold {threshold} is not a probability"), "give a number from 0 to 1")
        }
        (Output::Probability, asked) => Ok(Some(asked.unwrap_or(0.5))),
        (Output::Margin, asked) => Ok(Some(asked.unwrap_or(0.0))),
        (Output::None | Output::Value | Output::Classes(_) | Output::Columns(_), None) => Ok(None),
        (Output::None | Output::Value | Output::Classes(_) | Output::Columns(_), Some(_)) => {
            refused("--threshold is for models of two classes", "leave it out")
        }
    }
}

/// Metrics of no records.
pub fn empty_metrics(scoring: &dyn Model, job: &EvaluateJob) -> MetricAccumulator {
    scoring.metric_accumulator().with_confusion(job.threshold)
}

/// What is known of an evaluation before its first record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvaluationFacts {
    pub algorithm: String,
    /// The schema of the data.
    pub schema: Schema,
    /// Notices about the input.
    pub notices: Vec<String>,
    pub known: KnownFeatures,
}

impl EvaluationFacts {
    /// The result of the command.
    pub fn evaluation(
        self,
        scoring: &dyn Model,
        job: &EvaluateJob,
        totals: &Totals,
        sums: &MetricAccumulator,
    ) -> Result<Evaluation, Error> {
        let mut notices = self.notices;
        notices.extend(totals.notices_of_scores(&self.known));
        notices.extend(sums.notices());
        notices.extend(algo::advice::notice_of_evaluation(&metrics(sums)));
        let classes = labels::classes(scoring, &self.schema, &totals.labels);
        Ok(Evaluation {
            metrics: metrics(sums),
            threshold: threshold(job.threshold, &scoring.output())?,
            confusion: sums.confusion().map(|confusion| ConfusionMatrix::new(&confusion, classes)),
            calibration_table: sums.calibration_table(),
            records: totals.records,
            labels: labels::describe(&totals.labels, &self.schema, scoring.record_needs().label_rule),
            model: job.model.display().to_string(),
            algorithm: self.algorithm,
            data: job.input.data.clone(),
            bad_lines: totals.bad_lines,
            notices,
        })
    }
}
