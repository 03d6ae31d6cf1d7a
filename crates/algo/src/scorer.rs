//! Scores of batches, and the metrics of all batches of a stream.

use data::{Batch, BatchStream};
use matrix::Agent;

use crate::error::Error;
use crate::metric::MetricAccumulator;

/// Scores batches. Validation, evaluation and prediction share this code path, so that their scores are equal to the
/// bit.
pub trait Scorer: Send {
    /// Sets `out` to `records x Output::width` numbers. It does not read the labels of the batch.
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error>;

    /// Sets `out` to the scores of which `predict` makes probabilities, or to what `predict` gives if that has none.
    fn raw_scores(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        self.predict(agent, batch, out)
    }

    /// Scores the batch and adds its records to `parts`. If it is not implemented, the predictions must be values.
    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error> {
        let mut predictions = Vec::new();
        self.predict(agent, batch, &mut predictions)?;
        let MetricAccumulator::Real(parts) = parts else {
            unreachable!("a scorer of other predictions than values implements this method")
        };
        for (r, (&prediction, &label)) in predictions.iter().zip(&batch.labels).enumerate() {
            parts.add(prediction, label, f64::from(batch.weight(r)));
        }
        Ok(())
    }
}

/// Adds all batches of a stream (its epoch 0) to `parts`.
pub(crate) fn score_all(
    scorer: &mut dyn Scorer,
    mut parts: MetricAccumulator,
    agent: &mut dyn Agent,
    stream: &mut dyn BatchStream,
) -> Result<MetricAccumulator, Error> {
    stream.start_epoch(0)?;
    while let Some(batch) = stream.next()? {
        scorer.evaluate(agent, batch, &mut parts)?;
    }
    Ok(parts)
}
