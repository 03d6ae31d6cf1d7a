//! The scan of all records before the first step: moments of columns, counts of classes.

use std::collections::BTreeMap;

use data::Batch;
use matrix::{Keys, Selection, Values};

use super::Linear;
use super::model::{Model, Standardize};
use super::params::ClassWeights;
use super::score::scaled_keys;
use crate::error::Error;
use crate::job::TrainTask;

/// Reads the data once if moments or counts are needed. Returns the weights of classes, empty if all are 1.
pub(super) fn scan(job: &Linear, model: &Model, task: &mut TrainTask<'_>) -> Result<Vec<f64>, Error> {
    let moments = model.standardize.filter(|_| !task.resumed);
    let balanced = job.params.class_weights == ClassWeights::Balanced;
    if moments.is_none() && !balanced {
        return Ok(model.class_weights.clone());
    }
    let mut seen = DataCounts { counts: vec![0.0; model.classes.len() + 1], moments: BTreeMap::new() };
    task.data.start_epoch(0)?;
    while let Some(batch) = task.data.next()? {
        if let Some(mode) = moments {
            seen.add_moments(mode, batch);
        }
        seen.add_labels(model, batch)?;
    }
    task.agent.all_reduce(&mut seen.counts)?;
    let record_count = seen.counts[model.classes.len()];
    if record_count == 0.0 {
        return Err(Error::NoRecords);
    }
    if moments.is_some() {
        push_moments(model, task, &seen.moments, record_count)?;
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
    /// Entries, sum and sum of squares of each column.
    moments: BTreeMap<u64, [f64; 3]>,
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

    fn add_moments(&mut self, mode: Standardize, batch: &Batch) {
        let keys = scaled_keys(mode, &batch.columns);
        let mut sums = vec![[0f64; 3]; keys.len()];
        for (i, &index) in batch.indices.iter().enumerate() {
            if index as usize >= keys.len() {
                continue;
            }
            let value = batch.values.get(i).map_or(1.0, |&value| f64::from(value));
            let sum = &mut sums[index as usize];
            sum[0] += 1.0;
            sum[1] += value;
            sum[2] += value * value;
        }
        for (key, sum) in keys.iter().zip(sums) {
            let total = self.moments.entry(*key).or_insert([0.0; 3]);
            total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
        }
    }
}

fn push_moments(
    model: &Model,
    task: &mut TrainTask<'_>,
    moments: &BTreeMap<u64, [f64; 3]>,
    record_count: f64,
) -> Result<(), Error> {
    let id = model.moments_id().expect("asked for only when the model standardizes");
    let keys: Vec<u64> = moments.keys().copied().collect();
    let shares: Vec<f64> = moments.values().flatten().map(|sum| sum / record_count).collect();
    if !keys.is_empty() {
        task.agent.push(id, Selection::Rows(Keys::Sorted(&keys)), Values::F64(&shares))?;
    }
    Ok(())
}

fn balanced_weights(model: &Model, counts: &[f64], record_count: f64) -> Result<Vec<f64>, Error> {
    if let Some(class) = counts.iter().position(|&count| count == record_count) {
        return Err(Error::OneClass { record_count: record_count as u64, label: model.classes[class] });
    }
    let weight = |&count: &f64| if count > 0.0 { record_count / (counts.len() as f64 * count) } else { 1.0 };
    Ok(counts.iter().map(weight).collect())
}
