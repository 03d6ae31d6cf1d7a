//! The scan of all records before the first step: moments of columns, and sums of weights.

use matrix::MatrixId;

use crate::batch_loop::check_weight;
use crate::error::Error;
use crate::job::TrainTask;
use crate::scaling::{Moments, ScalingRule};

/// Sums of the weights of the records of all tasks.
pub struct WeightSums {
    /// One for each class.
    pub of_classes: Vec<f64>,
    pub of_all: f64,
    pub record_count: u64,
}

/// Reads the data once. With `scaling`, every task can read the moments of the columns afterwards. `class_of` gives the
/// class of a label; it is not called if there are no classes.
///
/// # Errors
/// [`Error::NoRecords`] and [`Error::NoWeight`], the same at every task.
pub fn scan(
    task: &mut TrainTask<'_>,
    scaling: Option<(ScalingRule, MatrixId)>,
    class_count: usize,
    class_of: impl Fn(f64) -> Result<usize, Error>,
) -> Result<WeightSums, Error> {
    let mut moments = scaling.map(|(rule, id)| (Moments::new(rule), id));
    // The sums of the classes, of all records, and the number of records.
    let mut sums = vec![0.0; class_count + 2];
    task.data.start_epoch(0)?;
    while let Some(batch) = task.data.next()? {
        if let Some((moments, _)) = &mut moments {
            moments.add(batch);
        }
        sums[class_count + 1] += batch.record_count() as f64;
        for (r, &label) in batch.labels.iter().enumerate() {
            let weight = f64::from(batch.weight(r));
            sums[class_count] += weight;
            if class_count > 0 {
                sums[class_of(label)?] += weight;
            }
        }
    }
    task.agent.all_reduce(&mut sums)?;
    let (of_all, record_count) = (sums[class_count], sums[class_count + 1] as u64);
    check_weight(record_count, of_all)?;
    if let Some((moments, id)) = moments {
        moments.push(task.agent, id, of_all)?;
    }
    sums.truncate(class_count);
    Ok(WeightSums { of_classes: sums, of_all, record_count })
}
