//! What records add to the metrics of a model.

use data::Batch;

use super::Objective;
use super::slopes::loss;
use algo::error::Error;
use algo::metric::{self, MetricAccumulator};

/// Adds the records of a batch, with `scores` (records x width), to `parts`. `slopes` is scratch memory.
pub(in super::super) fn add_to_metrics(
    (objective, classes): (Objective, &[f32]),
    batch: &Batch,
    scores: &[f64],
    slopes: &mut Vec<f64>,
    parts: &mut MetricAccumulator,
) -> Result<(), Error> {
    if let Some(shared) = objective.shared_loss() {
        metric::add_to_metrics((shared, classes), batch, scores, slopes, parts)?;
        return Ok(());
    }
    let records = scores.iter().zip(&batch.labels).enumerate();
    match parts {
        MetricAccumulator::Ranking(parts) => {
            check_groups(batch)?;
            records.for_each(|(r, (&score, &label))| {
                parts.add(batch.groups[r], score, label, f64::from(batch.weight(r)));
            });
        }
        MetricAccumulator::Real(parts) => records.for_each(|(r, (&score, &label))| {
            let weight = f64::from(batch.weight(r));
            parts.loss.add(loss(objective, score, label), weight);
            parts.regression.add(objective.prediction(score), label, weight);
        }),
        MetricAccumulator::Binary(_) | MetricAccumulator::Classes(_) | MetricAccumulator::Named(_) => {
            unreachable!("these objectives predict numbers")
        }
    }
    Ok(())
}

/// Like [`add_to_metrics`], of the metrics the loss alone.
///
/// # Panics
/// For `lambdarank`, whose loss follows from groups.
pub(in super::super) fn add_losses(
    (objective, classes): (Objective, &[f32]),
    batch: &Batch,
    scores: &[f64],
    slopes: &mut Vec<f64>,
    parts: &mut MetricAccumulator,
) -> Result<(), Error> {
    let parts = parts.loss_mut();
    if let Some(shared) = objective.shared_loss() {
        metric::add_losses((shared, classes), batch, scores, slopes, parts)?;
        return Ok(());
    }
    for (r, (&score, &label)) in scores.iter().zip(&batch.labels).enumerate() {
        parts.add(loss(objective, score, label), f64::from(batch.weight(r)));
    }
    Ok(())
}

/// Refuses records without groups.
pub(super) fn check_groups(batch: &Batch) -> Result<(), Error> {
    if batch.groups.len() == batch.labels.len() {
        return Ok(());
    }
    Err(Error::UnsuitableData {
        reason: "objective=lambdarank ranks the records of groups, and the records have none: name the column of the groups \
                 with --group COLUMN; in libsvm, where they are qid:NUMBER, with --group qid"
            .to_owned(),
    })
}
