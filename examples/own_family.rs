//! A family that is written against the interface below that of `own_algorithm.rs`, with a partitioner of its own: it predicts
//! the mean label of a record's features. It trains in this process or on servers and workers, which run this program too.
//! Try `cargo run --example own_family -- train means --data clicks.libsvm --servers 2 --model means`.

use std::sync::Arc;

use algo::param::{Bounds, CheckedParams};
use algo::{
    AlgorithmRow, DataFacts, EpochEnd, Error, Family, Job, Learner, Model, Output, ParamKind, Scorer,
    StepDecision, TableLayout, TaskState, TrainTask,
};
use data::Batch;
use engine::Tables;
use matrix::{
    Agent, ElementType, Keys, MatrixId, MatrixSpec, OwnPartitioner, Partitioner, PushRule, Selection, Values,
    ValuesMut,
};
use serde::{Deserialize, Serialize};

algo::params! {
    /// Records with the label 0 that are added to each feature
    SMOOTHING = "smoothing": ParamKind::Real { low: 0.0, high: f64::INFINITY, open: Bounds::OpenLow }, "1", "records";
}

const FAMILY: Family = Family {
    name: "means",
    algorithms: &[AlgorithmRow {
        name: "means",
        title: "Mean labels of features",
        parameters: &[SMOOTHING],
        configure: |given| Ok(Arc::new(Means(CheckedParams::new("means", &[SMOOTHING], given)?))),
    }],
    load: |fields| Ok(Arc::new(serde_json::from_value::<LabelSums>(fields.clone())?)),
    functions: |_| Ok(()),
};

/// Neighbouring features are together: 64 of them in one partition, the next 64 in the next.
const BLOCKS: OwnPartitioner = OwnPartitioner { name: "blocks", partition_of: |key, _| (key / 64) as u32 };

/// For each feature, the number of records that have it and the sum of their labels.
const SUMS: MatrixId = MatrixId(0);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct LabelSums {
    smoothing: f64,
}

impl Model for LabelSums {
    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        vec![MatrixSpec::sparse("sums", ElementType::F64, 2, PushRule::Add, partition_count)]
    }

    fn output(&self) -> Output {
        Output::Value
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(self.clone())
    }
}

impl Scorer for LabelSums {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        let (mut sums, columns) = (vec![0.0; 2 * batch.columns.len()], Keys::Sorted(&batch.columns));
        agent.pull(SUMS, Selection::Rows(columns), ValuesMut::F64(&mut sums))?;
        let mean = |&c: &u32| sums[2 * c as usize + 1] / (sums[2 * c as usize] + self.smoothing);
        let mean_of = |columns: &[u32]| columns.iter().map(mean).sum::<f64>() / columns.len().max(1) as f64;
        *out = (0..batch.record_count()).map(|r| mean_of(&batch.indices[batch.entries(r)])).collect();
        Ok(())
    }
}

#[derive(Debug)]
struct Means(CheckedParams);

impl Job for Means {
    fn settings(&self) -> &CheckedParams {
        &self.0
    }

    fn model(&self, _: &DataFacts, _: Option<&dyn Model>) -> Result<Arc<dyn Model>, Error> {
        Ok(Arc::new(LabelSums { smoothing: self.0.real(&SMOOTHING) }))
    }

    fn matrices(&self, model: &dyn Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let count = layout.partition_count;
        let partitioner = Partitioner::Own { name: BLOCKS.name.into(), partition_count: count };
        Ok(vec![MatrixSpec { partitioner, ..model.matrices(count).remove(0) }])
    }

    fn begin(&self, _: &mut TrainTask<'_>, _: Option<&TaskState>) -> Result<Box<dyn Learner>, Error> {
        Ok(Box::new(OnePass))
    }
}

/// A task remembers nothing from epoch to epoch: all that it learns is in the matrix.
struct OnePass;

impl Learner for OnePass {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let (mut scorer, mut training) = (task.model.scorer(), task.model.metric_accumulator());
        task.data.start_epoch(epoch)?;
        while let Some(batch) = task.data.next()? {
            let count = batch.record_count() as u64; // Each record is scored before it is counted.
            scorer.evaluate(task.agent, batch, &mut training)?;
            let mut changes = vec![0.0; 2 * batch.columns.len()];
            for (r, &label) in batch.labels.iter().enumerate() {
                for &column in &batch.indices[batch.entries(r)] {
                    changes[2 * column as usize] += 1.0;
                    changes[2 * column as usize + 1] += label;
                }
            }
            task.agent.push(SUMS, Selection::Rows(Keys::Sorted(&batch.columns)), Values::F64(&changes))?;
            task.agent.tick()?;
            if task.coordinator.report_progress(task.agent.task(), count, 0.0) == StepDecision::Stop {
                break;
            }
        }
        task.agent.barrier()?;
        Ok(Some(EpochEnd::of_last(training)))
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}

fn main() -> std::process::ExitCode {
    let tables = Tables::default().with_family(&FAMILY).and_then(|tables| tables.with_partitioner(BLOCKS));
    seraphim::cli::run_with(&tables.expect("the names are free"))
}
