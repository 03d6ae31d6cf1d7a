//! The scan of all records before the first step: moments of columns, weights of classes.

use data::Batch;

use super::Linear;
use super::model::Model;
use super::params::ClassWeights;
use crate::batch_loop::check_weight;
use crate::error::Error;
use crate::job::TrainTask;
use crate::scaling::Moments;

/// Reads the data once if moments or the weights of the classes in the data are needed. Returns the weights of classes, empty if all are 1.
pub(super) fn scan(job: &Linear, model: &Model, task: &mut TrainTask<'_>) -> Result<Vec<f64>, Error> {
    let mut moments = model.scaling().filter(|_| !task.resumed).map(Moments::new);
    let balanced = job.params.class_weights == ClassWeights::Balanced;
    if moments.is_none() && !balanced {
        return Ok(model.class_weights.clone());
    }
    let mut sums = WeightSums { of_classes: vec![0.0; model.classes.len()], of_all: 0.0, record_count: 0.0 };
    task.data.start_epoch(0)?;
    while let Some(batch) = task.data.next()? {
        if let Some(moments) = &mut moments {
            moments.add(batch);
        }
        sums.add(model, batch)?;
    }
    sums.add_other_tasks(task)?;
    check_weight(sums.record_count as u64, sums.of_all)?;
    if let Some(moments) = moments {
        let id = model.moments_id().expect("asked for only when the model standardizes");
        moments.push(task.agent, id, sums.of_all)?;
    }
    task.agent.barrier()?;
    if balanced { sums.balanced_weights(model) } else { Ok(model.class_weights.clone()) }
}

/// Sums of the weights of the records of one task, then of all tasks.
struct WeightSums {
    /// One for each class.
    of_classes: Vec<f64>,
    of_all: f64,
    record_count: f64,
}

impl WeightSums {
    fn add(&mut self, model: &Model, batch: &Batch) -> Result<(), Error> {
        self.record_count += batch.record_count() as f64;
        for (r, &label) in batch.labels.iter().enumerate() {
            let weight = f64::from(batch.weight(r));
            self.of_all += weight;
            if !self.of_classes.is_empty() {
                self.of_classes[model.class_of(label)?] += weight;
            }
        }
        Ok(())
    }

    fn add_other_tasks(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        let mut all = self.of_classes.clone();
        all.extend([self.of_all, self.record_count]);
        task.agent.all_reduce(&mut all)?;
        let class_count = self.of_classes.len();
        self.of_classes.copy_from_slice(&all[..class_count]);
        (self.of_all, self.record_count) = (all[class_count], all[class_count + 1]);
        Ok(())
    }

    fn balanced_weights(&self, model: &Model) -> Result<Vec<f64>, Error> {
        if let Some(class) = self.of_classes.iter().position(|&sum| sum == self.of_all) {
            let record_count = self.record_count as u64;
            return Err(Error::OneClass { record_count, label: model.classes[class] });
        }
        let share = self.of_all / self.of_classes.len() as f64;
        Ok(self.of_classes.iter().map(|&sum| if sum > 0.0 { share / sum } else { 1.0 }).collect())
    }
}
