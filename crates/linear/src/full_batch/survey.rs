//! The steps before the first iteration: features and their columns, curvature of the loss in each column, first point.

use data::KeySet;
use math::elementary::ln;
use matrix::{Values, ValuesMut};

use super::super::model::Model;
use super::features::LocalFeatures;
use super::local_problem::LocalProblem;
use crate::descent::Settings;
use crate::descent::vectors::{POINT, SCALE};
use algo::batch_loop::check_weight;
use algo::error::Error;
use algo::job::TrainTask;
use algo::loss::Loss;
use algo::rows::{ONE_ROW, rows_of};
use algo::task_loop::TaskState;

/// A share of labels is clamped to at least this value, and to at most 1 minus it: a rare class must not stop the first
/// step.
const MIN_CLASS_SHARE: f64 = 1e-3;

/// Weighted sums over the records of a share, then over all records: one for each class (without classes, one of the
/// centred labels); then the sum of weights.
struct LabelSums {
    sums: Vec<f64>,
    /// Records of this share.
    record_count: usize,
}

impl LabelSums {
    /// Mean of the labels, or share of each class (for two classes only that of class 1).
    fn means(&self, model: &Model) -> Vec<f64> {
        let total = self.sums.last().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
        let mean = |sum: &f64| sum / total;
        match model.loss {
            Loss::Softmax => self.sums[..model.width()].iter().map(mean).collect(),
            Loss::Logistic | Loss::Hinge | Loss::SquaredHinge => vec![mean(&self.sums[1])],
            Loss::Squared | Loss::Huber { .. } => vec![mean(&self.sums[0])],
        }
    }
}

/// Reads the share for its features, and if nothing was saved once more for the curvature. Afterwards the vectors contain
/// the scales and a point: those of the saved run, or the first ones.
pub(super) fn survey<'a>(
    settings: &Settings,
    task: &mut TrainTask<'a>,
    class_weights: &[f64],
    saved: Option<&TaskState>,
) -> Result<LocalProblem<'a>, Error> {
    let model: &Model = task.model.of()?;
    let (keys, mut labels) = scan_features(model, task, class_weights)?;
    let task_count = task.agent.task_count() as usize;
    let mut counts = vec![0.0; task_count];
    counts[task.agent.task() as usize] = keys.len() as f64;
    counts.extend_from_slice(&labels.sums);
    counts.push(labels.record_count as f64);
    task.agent.all_reduce(&mut counts)?;
    let record_count = counts.pop().unwrap_or_default() as u64;
    labels.sums = counts.split_off(task_count);
    check_weight(record_count, labels.sums.last().copied().unwrap_or_default())?;
    let total = counts.iter().sum::<f64>() as u64;
    if Some(total) != model.numbered {
        let (actual, expected) = (total.to_string(), model.numbered.unwrap_or(0).to_string());
        return Err(Error::DataChanged { what: "features", actual, expected });
    }
    let mut features = LocalFeatures::assign_numbers(task.agent, super::numbers_id(model), keys, &counts)?;
    features.rank_columns(task.data)?;
    let mut share = LocalProblem::new(settings, model, class_weights.to_vec(), features);
    share.read_moments(task.agent)?;
    if saved.is_none() {
        let means = labels.means(model);
        if settings.diagonal {
            let curvature = share.curvature(task, &curvatures(model, &means))?;
            share.push(task.agent, SCALE, &curvature)?;
        }
        push_first_point(model, task, &share, &means)?;
        task.agent.barrier()?;
        if task.agent.task() == 0 {
            super::minimizer(model, settings).start(task.agent)?;
        }
        task.agent.barrier()?;
    }
    share.read_scales(task.agent)?;
    Ok(share)
}

/// The first reading: features and sums of labels.
fn scan_features(
    model: &Model,
    task: &mut TrainTask<'_>,
    class_weights: &[f64],
) -> Result<(KeySet, LabelSums), Error> {
    let mut keys = KeySet::new();
    let mut sums = vec![0.0; model.classes.len().max(1) + 1];
    let last = sums.len() - 1;
    let mut record_count = 0;
    task.data.start_epoch(0)?;
    while let Some(batch) = task.data.next()? {
        keys.insert(&batch.columns);
        record_count += batch.record_count();
        for (r, &label) in batch.labels.iter().enumerate() {
            let mut weight = f64::from(batch.weight(r));
            if model.classes.is_empty() {
                sums[0] += weight * (label - model.label_scale.unwrap_or_default().mean);
            } else {
                let class = model.class_of(label)?;
                weight *= class_weights.get(class).copied().unwrap_or(1.0);
                sums[class] += weight;
            }
            sums[last] += weight;
        }
    }
    keys.seal();
    Ok((keys, LabelSums { sums, record_count }))
}

/// The curvature of the loss of a record in its score, one value per class. For logistic and softmax loss it is that of
/// a model that predicts the shares of the classes; for the other losses it is 1, which is exact for squares.
fn curvatures(model: &Model, means: &[f64]) -> Vec<f64> {
    match model.loss {
        Loss::Logistic | Loss::Softmax => {
            let share = |mean: &f64| mean.clamp(MIN_CLASS_SHARE, 1.0 - MIN_CLASS_SHARE);
            means.iter().map(share).map(|share| share * (1.0 - share)).collect()
        }
        Loss::Hinge | Loss::SquaredHinge => vec![1.0],
        Loss::Squared | Loss::Huber { .. } => vec![model.label_scale.unwrap_or_default().deviation.powi(2)],
    }
}

/// Pushes the weights of an earlier model; otherwise the weights are 0 and the intercept fits the mean of the labels.
fn push_first_point(
    model: &Model,
    task: &mut TrainTask<'_>,
    share: &LocalProblem<'_>,
    means: &[f64],
) -> Result<(), Error> {
    let width = model.width();
    let (places, keys) = share.features.owned_features();
    if task.resumed && !keys.is_empty() {
        let mut weights = vec![0f32; keys.len() * width];
        task.agent.pull(model.weights_id(), rows_of(&keys), ValuesMut::F32(&mut weights))?;
        let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
        share.push_at(task.agent, POINT, places.start * width..places.end * width, &weights)?;
    }
    let Some(id) = model.intercept_id().filter(|_| task.agent.task() == 0) else { return Ok(()) };
    let mut bias = vec![0f32; width];
    if task.resumed {
        task.agent.pull(id, ONE_ROW, ValuesMut::F32(&mut bias))?;
    }
    let first = |i: usize| {
        if task.resumed {
            return f64::from(bias[i]);
        }
        let mean = means.get(i).copied().unwrap_or(0.0);
        let part = mean.clamp(MIN_CLASS_SHARE, 1.0 - MIN_CLASS_SHARE);
        match model.loss {
            Loss::Logistic => ln(part / (1.0 - part)),
            Loss::Softmax => ln(part),
            Loss::Squared | Loss::Huber { .. } => mean / model.label_scale.unwrap_or_default().deviation,
            Loss::Hinge | Loss::SquaredHinge => 0.0,
        }
    };
    let bias: Vec<f64> = (0..width).map(first).collect();
    let end = share.features.len() * width;
    share.push_at(task.agent, POINT, end..end + width, &bias)
}

/// Writes the weights of the point in `row` of the vectors to the matrices of the model. Afterwards every task can read
/// them.
pub(super) fn write_weights(
    model: &Model,
    task: &mut TrainTask<'_>,
    share: &mut LocalProblem<'_>,
    row: u32,
) -> Result<(), Error> {
    let width = model.width();
    share.pull_weights(task.agent, row)?;
    let (places, keys) = share.features.owned_features();
    let narrow = |values: &[f64]| -> Vec<f32> { values.iter().map(|value| *value as f32).collect() };
    if !keys.is_empty() {
        let weights = narrow(&share.weights[places.start * width..places.end * width]);
        task.agent.push(model.weights_id(), rows_of(&keys), Values::F32(&weights))?;
    }
    if let Some(id) = model.intercept_id().filter(|_| task.agent.task() == 0) {
        let bias = narrow(&share.weights[share.features.len() * width..]);
        task.agent.push(id, ONE_ROW, Values::F32(&bias))?;
    }
    Ok(task.agent.barrier()?)
}
