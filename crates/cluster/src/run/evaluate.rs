//! `evaluate`: metrics of a model on labelled data.

use std::collections::BTreeMap;

use algo::metric::MetricAccumulator;
use algo::metric::calibration::CalibrationRow;
use algo::metric::classification::Confusion;
use algo::{Model, Output, Scorer};
use data::{Batch, Schema};
use matrix::Agent;
use serde::{Deserialize, Serialize};

use super::Environment;
use super::coverage::KnownFeatures;
use super::driver::epoch_monitor::metrics;
use super::score::{LoadedModel, OpenedInput, ScoredPiece};
use super::totals::Totals;
use crate::error::Error;
use crate::job::EvaluateJob;
use crate::labels;

/// Number of batches whose metrics are merged before they are added to the sum: a million records, whose metrics fit in a
/// message.
const PART_BATCHES: usize = 256;

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
pub(super) fn threshold(asked: Option<f64>, output: &Output) -> Result<Option<f64>, Error> {
    let refused = |what: &str, advice: &str| {
        Err(Error::InvalidRequest { what: what.to_owned(), advice: advice.to_owned() })
    };
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

pub fn evaluate(job: &EvaluateJob, environment: Environment<'_>) -> Result<Evaluation, Error> {
    let loaded = LoadedModel::of_command(&job.model, &job.manner, job.members.servers, environment)?;
    evaluate_loaded(&loaded, job, environment)
}

/// Evaluates a model that was read.
pub fn evaluate_loaded(
    loaded: &LoadedModel,
    job: &EvaluateJob,
    environment: Environment<'_>,
) -> Result<Evaluation, Error> {
    let LoadedModel { model, scoring, scorer } = loaded;
    let opened = OpenedInput::for_evaluation(job, &model.manifest, &**scoring, environment)?;
    threshold(job.threshold, &scoring.output())?;
    let empty = empty_metrics(&**scoring, job);
    let (mut sums, mut parts) = (empty.clone(), MetricParts::new(empty.clone()));
    let mut totals = Totals::default();
    let work = |scorer: &mut dyn Scorer, agent: &mut dyn Agent, batch: &Batch| {
        batch_metrics(&empty, scorer, agent, batch)
    };
    let take = |piece: ScoredPiece<MetricAccumulator>| match piece {
        ScoredPiece::Batch(batch) => {
            parts.add(&batch).iter().for_each(|part| sums.merge(part));
            Ok(())
        }
        ScoredPiece::ChunkEnd(summary) => {
            parts.take().iter().for_each(|part| sums.merge(part));
            totals.add_checked(&summary, job.input.bad_lines)
        }
    };
    scorer.run(&opened.source, &opened.chunks(), environment.interrupt, work, take)?;
    totals.check_not_empty(&job.input)?;
    let facts = EvaluationFacts {
        algorithm: model.manifest.algorithm.clone(),
        schema: opened.source.schema().clone(),
        notices: opened.source.notices().to_vec(),
        known: KnownFeatures::of(model)?,
    };
    facts.evaluation(&**scoring, job, &totals, &sums)
}

/// The metrics of one batch. `empty` has no records.
pub(super) fn batch_metrics(
    empty: &MetricAccumulator,
    scorer: &mut dyn Scorer,
    agent: &mut dyn Agent,
    batch: &Batch,
) -> Result<MetricAccumulator, Error> {
    let mut metrics = empty.clone();
    scorer.evaluate(agent, batch, &mut metrics)?;
    Ok(metrics)
}

/// Metrics of no records.
pub(super) fn empty_metrics(scoring: &dyn Model, job: &EvaluateJob) -> MetricAccumulator {
    scoring.metric_accumulator().with_confusion(job.threshold)
}

/// Merges the metrics of batches to parts of at most [`PART_BATCHES`] batches of one chunk. The parts are then merged in
/// the order of the input: so the sums do not depend on which process has scored which chunk.
pub(super) struct MetricParts {
    part: MetricAccumulator,
    batch_count: usize,
    empty: MetricAccumulator,
}

impl MetricParts {
    pub(super) fn new(empty: MetricAccumulator) -> Self {
        Self { part: empty.clone(), batch_count: 0, empty }
    }

    /// Adds the next batch of the chunk. Returns the part if it is complete.
    pub(super) fn add(&mut self, batch: &MetricAccumulator) -> Option<MetricAccumulator> {
        self.part.merge(batch);
        self.batch_count += 1;
        if self.batch_count == PART_BATCHES { self.take() } else { None }
    }

    /// Returns the last part of a chunk; none if it has no more batches.
    pub(super) fn take(&mut self) -> Option<MetricAccumulator> {
        let is_empty = std::mem::take(&mut self.batch_count) == 0;
        (!is_empty).then(|| std::mem::replace(&mut self.part, self.empty.clone()))
    }
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
    pub(super) fn evaluation(
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

#[cfg(test)]
mod tests {
    use algo::metric::named::NamedAccumulator;

    use super::*;

    #[test]
    fn batches_are_merged_to_parts_that_do_not_grow_with_the_chunk() {
        let batch = |value: f64| {
            let mut named = NamedAccumulator::default();
            named.loss.add(value, 1.0);
            MetricAccumulator::Named(named)
        };
        let mut parts = MetricParts::new(MetricAccumulator::Named(NamedAccumulator::default()));
        let mut counts = Vec::new();
        for i in 0..2 * PART_BATCHES + 3 {
            counts.extend(parts.add(&batch(i as f64)).map(|part| part.record_count()));
        }
        counts.extend(parts.take().map(|part| part.record_count()));
        assert_eq!(counts, [PART_BATCHES as u64, PART_BATCHES as u64, 3]);
        assert!(parts.take().is_none());
        for i in 0..PART_BATCHES {
            counts.extend(parts.add(&batch(i as f64)).map(|part| part.record_count()));
        }
        assert!(counts.len() == 4 && parts.take().is_none(), "a chunk may end with a whole part");
    }
}
