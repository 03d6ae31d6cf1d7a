//! The scan of all records before the first step: moments of columns, weights of classes.

use super::job::Linear;
use super::model::Model;
use super::params::ClassWeights;
use algo::error::Error;
use algo::job::TrainTask;
use algo::scan;

/// Reads the data once if moments or the weights of the classes in the data are needed. Returns the weights of classes,
/// empty if all are 1.
pub(super) fn scan(job: &Linear, model: &Model, task: &mut TrainTask<'_>) -> Result<Vec<f64>, Error> {
    let scaling = model.scaling().zip(model.moments_id()).filter(|_| !task.resumed);
    let balanced = job.params.class_weights == ClassWeights::Balanced;
    if scaling.is_none() && !balanced {
        return Ok(model.class_weights.clone());
    }
    let sums = scan::scan(task, scaling, model.classes.len(), |label| model.class_of(label))?;
    if !balanced {
        return Ok(model.class_weights.clone());
    }
    let of_classes = sums.of_classes;
    if let Some(class) = of_classes.iter().position(|&sum| sum == sums.of_all) {
        return Err(Error::OneClass { record_count: sums.record_count, label: model.classes[class] });
    }
    let share = sums.of_all / of_classes.len() as f64;
    Ok(of_classes.iter().map(|&sum| if sum > 0.0 { share / sum } else { 1.0 }).collect())
}
