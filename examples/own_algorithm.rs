//! The ordinary commands with an algorithm of your own, multinomial naive Bayes for two classes. It trains in this
//! process or on servers and workers, which run this program too; it saves, predicts, and `algorithms` lists it.
//!
//! ```text
//! cargo run --example own_algorithm -- train bayes --data clicks.libsvm --servers 2 --model bayes
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use algo::metric::BinaryAccumulator;
use algo::param::{Bounds, CheckedParams, param};
use algo::{
    Algorithm, DataFacts, DataNeeds, EpochReport, Error, Family, Job, MetricAccumulator, Model, Output, ParamKind,
    ParamSpec, Scorer, TrainTask,
};
use data::{Batch, LabelRule};
use matrix::{
    Agent, Axis, Consistency, ElementType, Initializer, Keys, MatrixId, MatrixSpec, Partitioner, PushRule, Selection,
    Storage, Values, ValuesMut,
};
use seraphim::cli::Tables;
use serde::{Deserialize, Serialize};

const SMOOTHING: ParamSpec = param(
    "smoothing",
    ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow },
    "1",
    "entries",
    "Added to the counts of each feature",
);

const FAMILY: Family = Family {
    name: "bayes",
    algorithms: &[Algorithm {
        name: "bayes",
        title: "Naive Bayes: probability of label 1 from the counts of features",
        parameters: &[SMOOTHING],
        configure: |given| Ok(Arc::new(Bayes(CheckedParams::new("bayes", &[SMOOTHING], given)?))),
    }],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Counts>(fields.clone())?)),
    functions: |_| Ok(()),
};

/// The sum of the values of each feature in records of label 0 and of label 1; in row [`TOTAL`] their totals, in row
/// [`RECORDS`] the numbers of records.
const COUNTS: MatrixId = MatrixId(0);
const TOTAL: u64 = (1 << 63) - 1;
const RECORDS: u64 = TOTAL - 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Counts {
    smoothing: f64,
}

impl Counts {
    fn matrix(consistency: Consistency, partition_count: u32) -> MatrixSpec {
        MatrixSpec {
            name: "counts".to_owned(),
            element: ElementType::F64,
            rows: 1 << 63,
            columns: 2,
            axis: Axis::Row,
            storage: Storage::Sparse,
            partitioner: Partitioner::Hash { partition_count },
            initializer: Initializer::Zero,
            rule: PushRule::Add,
            consistency,
            seed: 0,
        }
    }

    /// The probability of label 1 for each record.
    fn probabilities(&self, agent: &mut dyn Agent, batch: &Batch) -> Result<Vec<f64>, Error> {
        let keys: Vec<u64> = batch.columns.iter().copied().chain([RECORDS, TOTAL]).collect();
        let mut counts = vec![0.0; 2 * keys.len()];
        agent.pull(COUNTS, Selection::Rows(Keys::Sorted(&keys)), ValuesMut::F64(&mut counts))?;
        let odds = |i: usize| ((counts[2 * i + 1] + self.smoothing) / (counts[2 * i] + self.smoothing)).ln();
        let (records, total) = (odds(keys.len() - 2), odds(keys.len() - 1));
        let term = |i: usize| f64::from(value(batch, i)) * (odds(batch.indices[i] as usize) - total);
        let score = |r| records + batch.entries(r).map(term).sum::<f64>();
        Ok((0..batch.record_count()).map(|r| math::special::sigmoid(score(r))).collect())
    }
}

fn value(batch: &Batch, i: usize) -> f32 {
    batch.values.get(i).copied().unwrap_or(1.0)
}

impl Model for Counts {
    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        vec![Self::matrix(Consistency::Asp, partition_count)]
    }

    fn output(&self) -> Output {
        Output::Probability
    }

    fn label_rule(&self) -> LabelRule {
        LabelRule::Binary { positive: None }
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(self.clone())
    }

    fn metric_accumulator(&self) -> MetricAccumulator {
        MetricAccumulator::Binary(Box::new(BinaryAccumulator { probabilities: true, ..BinaryAccumulator::default() }))
    }
}

impl Scorer for Counts {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        *out = self.probabilities(agent, batch)?;
        Ok(())
    }

    fn evaluate(&mut self, agent: &mut dyn Agent, batch: &Batch, parts: &mut MetricAccumulator) -> Result<(), Error> {
        for (r, p) in self.probabilities(agent, batch)?.into_iter().enumerate() {
            parts.add_probability(p, batch.labels[r], batch.weight(r));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Bayes(CheckedParams);

impl Job for Bayes {
    fn algorithm(&self) -> &'static str {
        self.0.algorithm()
    }

    fn settings(&self) -> BTreeMap<&'static str, String> {
        self.0.values().clone()
    }

    fn data_needs(&self) -> DataNeeds {
        DataNeeds { label_rule: LabelRule::Binary { positive: None }, ..DataNeeds::default() }
    }

    fn model(&self, _: &DataFacts, _: Option<&dyn Model>) -> Result<Arc<dyn Model>, Error> {
        Ok(Arc::new(Counts { smoothing: self.0.real(&SMOOTHING) }))
    }

    fn matrices(&self, _: &dyn Model, how: Consistency, count: u32, _: u64) -> Result<Vec<MatrixSpec>, Error> {
        Ok(vec![Counts::matrix(how, count)])
    }

    fn train(&self, task: TrainTask<'_>) -> Result<(), Error> {
        let mut scorer = task.model.scorer();
        let mut training = task.model.metric_accumulator();
        task.data.start_epoch(0)?;
        while let Some(batch) = task.data.next()? {
            // Each record is scored before it is counted.
            scorer.evaluate(task.agent, batch, &mut training)?;
            let keys: Vec<u64> = batch.columns.iter().copied().chain([RECORDS, TOTAL]).collect();
            let mut counts = vec![0.0; 2 * keys.len()];
            let (records, total) = (2 * keys.len() - 4, 2 * keys.len() - 2);
            for r in 0..batch.record_count() {
                let class = usize::from(batch.labels[r] > 0.0);
                counts[records + class] += 1.0;
                for i in batch.entries(r) {
                    counts[2 * batch.indices[i] as usize + class] += f64::from(value(batch, i));
                    counts[total + class] += f64::from(value(batch, i));
                }
            }
            task.agent.push(COUNTS, Selection::Rows(Keys::Sorted(&keys)), Values::F64(&counts))?;
            task.agent.tick()?;
            let (number, count) = (task.agent.task(), batch.record_count() as u64);
            task.coordinator.report_progress(number, count, 0.0);
        }
        task.agent.barrier()?;
        let report = EpochReport::single(task.agent, training);
        task.coordinator.report_epoch(report)?;
        Ok(task.agent.finish()?)
    }
}

fn main() -> ExitCode {
    let tables = Tables::default().with_family(&FAMILY).expect("the names are free");
    seraphim::cli::run_with(&tables)
}
