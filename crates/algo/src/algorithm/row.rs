//! What follows from an impl of [`Algorithm`]: its job, its model and its scorer.

use std::sync::Arc;

use data::Batch;
use math::elementary::ln;
use matrix::{Agent, MatrixSpec};
use serde_json::Value;

use super::interface::{Algorithm, AlgorithmJob, AlgorithmModel, Loop};
use super::table::{Rows, Table, TablePlace};
use crate::advice::TrainingReport;
use crate::error::Error;
use crate::family::Model;
use crate::job::{DataFacts, Job, Needs, Output, Scorer, TableLayout, TrainTask};
use crate::loss::Loss;
use crate::metric::{MetricAccumulator, argmax};
use crate::param::CheckedParams;
use crate::task_loop::{Learner, TaskState};

impl<A: Algorithm> Job for AlgorithmJob<A> {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn needs(&self) -> Needs {
        A::Loop::complete(A::needs(&self.settings))
    }

    fn model(&self, facts: &DataFacts, previous: Option<&dyn Model>) -> Result<Arc<dyn Model>, Error> {
        if previous.is_some() && !A::Loop::CONTINUES {
            let reason = format!("{} always trains from the beginning: leave out --from", A::NAME);
            return Err(Error::unsuitable(reason));
        }
        let previous = previous.map(|model| model.of::<AlgorithmModel<A>>()).transpose()?;
        Ok(Arc::new(AlgorithmModel(A::new(&self.settings, facts, previous.map(|model| &model.0))?)))
    }

    fn matrices(&self, model: &dyn Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let model: &AlgorithmModel<A> = model.of()?;
        A::Loop::check_tables(&self.tables(&model.0))?;
        Ok(Table::specs(&self.tables(&model.0), true, layout.partition_count))
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        A::Loop::begin(self, task, saved)
    }

    fn divergence_advice(&self) -> String {
        A::divergence_advice(&self.settings)
    }

    fn advice(&self, report: &TrainingReport<'_>) -> Vec<String> {
        A::advice(&self.settings, report)
    }
}

impl<A: Algorithm> Model for AlgorithmModel<A> {
    fn family(&self) -> &'static str {
        A::NAME
    }

    fn save(&self) -> Value {
        serde_json::json!(self.0)
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        Table::specs(&self.0.tables(None), false, partition_count)
    }

    fn output(&self) -> Output {
        self.0.output()
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        let places = Table::places(&self.0.tables(None));
        let values = vec![Vec::new(); places.len()];
        Box::new(AlgorithmScorer { model: self.0.clone(), places, values })
    }
}

/// Adds the predictions of a batch to its metrics.
pub(super) fn accumulate(
    output: &Output,
    metrics: &mut MetricAccumulator,
    batch: &Batch,
    predictions: &[f64],
) -> Result<(), Error> {
    let mut slopes = Vec::new();
    match metrics {
        MetricAccumulator::Real(_) => {
            crate::metric::add_scores(Loss::Squared, batch, predictions, &mut slopes, metrics);
        }
        MetricAccumulator::Binary(parts) if parts.probabilities => {
            let logit = |p: &f64| ln(p / (1.0 - p));
            let scores: Vec<f64> = predictions.iter().map(logit).collect();
            crate::metric::add_scores(Loss::Logistic, batch, &scores, &mut slopes, metrics);
        }
        MetricAccumulator::Binary(_) => {
            crate::metric::add_scores(Loss::Hinge, batch, predictions, &mut slopes, metrics);
        }
        // The loss of a step is added by the loop. No output makes metrics of ranked records.
        MetricAccumulator::Named(_) | MetricAccumulator::Ranking(_) => {}
        MetricAccumulator::Classes(parts) => {
            let Output::Classes(classes) = output else {
                unreachable!("the metrics are those of the output")
            };
            for (r, probabilities) in predictions.chunks_exact(classes.len()).enumerate() {
                let (label, weight) = (batch.labels[r], f64::from(batch.weight(r)));
                let Some(class) = classes.iter().position(|class| f64::from(*class) == label) else {
                    let ends = classes.first().zip(classes.last()).unwrap_or((&0.0, &0.0));
                    let (first, last) = (*ends.0, *ends.1);
                    return Err(Error::UnknownClass { label, class_count: classes.len(), first, last });
                };
                let said = argmax(probabilities);
                parts.counts.add(said, class, weight);
                parts.confusion.iter_mut().for_each(|cells| cells.add(said, class, weight));
                parts.loss.add(-ln(probabilities[class]), weight);
            }
        }
    }
    Ok(())
}

struct AlgorithmScorer<A> {
    model: A,
    places: Vec<TablePlace>,
    values: Vec<Vec<f64>>,
}

impl<A: Algorithm> Scorer for AlgorithmScorer<A> {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        let tables = self.places.iter().zip(&mut self.values);
        for (place, values) in tables.filter(|(place, _)| !place.is_work) {
            place.pull(agent, &batch.columns, values)?;
        }
        out.clear();
        let rows = Rows { places: &self.places, values: &self.values };
        rows.records(batch, &[]).for_each(|record| self.model.predict(&record, out));
        Ok(())
    }

    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error> {
        let mut predictions = Vec::new();
        self.predict(agent, batch, &mut predictions)?;
        accumulate(&self.model.output(), parts, batch, &predictions)?;
        if let MetricAccumulator::Named(parts) = parts {
            (0..batch.record_count()).for_each(|r| parts.loss.add(0.0, f64::from(batch.weight(r))));
        }
        Ok(())
    }
}
