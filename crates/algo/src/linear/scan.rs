//! The scan of all records before the first step: moments of columns, counts of classes.

use data::Batch;

use super::Linear;
use super::model::Model;
use super::params::ClassWeights;
use crate::error::Error;
use crate::job::TrainTask;
use crate::scaling::Moments;

/// Reads the data once if moments or counts are needed. Returns the weights of classes, empty if all are 1.
pub(super) fn scan(job: &Linear, model: &Model, task: &mut TrainTask<'_>) -> Result<Vec<f64>, Error> {
    let moments = model.standardize.filter(|_| !task.resumed);
    let balanced = job.params.class_weights == ClassWeights::Balanced;
    if moments.is_none() && !balanced {
        return Ok(model.class_weights.clone());
    }
    let mut seen = DataCounts { counts: vec![0.0; model.classes.len() + 1], moments: Moments::default() };
    task.data.start_epoch(0)?;
    while let Some(batch) = task.data.next()? {
        if let Some(mode) = moments {
            seen.moments.add(mode, batch);
        }
        seen.add_labels(model, batch)?;
    }
    task.agent.all_reduce(&mut seen.counts)?;
    let record_count = seen.counts[model.classes.len()];
    if record_count == 0.0 {
        return Err(Error::NoRecords);
    }
    if moments.is_some() {
        let id = model.moments_id().expect("asked for only when the model standardizes");
        seen.moments.push(task.agent, id, record_count)?;
    }
    // Every task has pushed its moments, so they are complete before the first pull.
    task.agent.barrier()?;
    if !balanced {
        return Ok(model.class_weights.clone());
    }
    seen.counts.pop();
    balanced_weights(model, &seen.counts, record_count)
}

/// Counts of one task, then of all tasks.
struct DataCounts {
    /// Records of each class, then all records.
    counts: Vec<f64>,
    moments: Moments,
}

impl DataCounts {
    fn add_labels(&mut self, model: &Model, batch: &Batch) -> Result<(), Error> {
        let all = model.classes.len();
        self.counts[all] += batch.record_count() as f64;
        if all > 0 {
            for &label in &batch.labels {
                self.counts[model.class_of(label)?] += 1.0;
            }
        }
        Ok(())
    }
}

fn balanced_weights(model: &Model, counts: &[f64], record_count: f64) -> Result<Vec<f64>, Error> {
    if let Some(class) = counts.iter().position(|&count| count == record_count) {
        return Err(Error::OneClass { record_count: record_count as u64, label: model.classes[class] });
    }
    let weight = |&count: &f64| if count > 0.0 { record_count / (counts.len() as f64 * count) } else { 1.0 };
    Ok(counts.iter().map(weight).collect())
}
