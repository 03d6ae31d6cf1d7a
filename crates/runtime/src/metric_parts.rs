//! Merges the metrics of batches, in the order of the input.

use algo::Scorer;
use algo::metric::MetricAccumulator;
use data::Batch;
use driver::Error;
use matrix::Agent;

/// The metrics of one batch. `empty` has no records.
pub fn batch_metrics(
    empty: &MetricAccumulator,
    scorer: &mut dyn Scorer,
    agent: &mut dyn Agent,
    batch: &Batch,
) -> Result<MetricAccumulator, Error> {
    let mut metrics = empty.clone();
    scorer.evaluate(agent, batch, &mut metrics)?;
    Ok(metrics)
}

/// Number of batches whose metrics are merged before they are added to the sum: a million records, whose metrics fit in a
/// message.
const PART_BATCHES: usize = 256;

/// Merges the metrics of batches to parts of at most `PART_BATCHES` batches of one chunk. The parts are then merged in
/// the order of the input: so the sums do not depend on which process has scored which chunk.
pub struct MetricParts {
    part: MetricAccumulator,
    batch_count: usize,
    empty: MetricAccumulator,
}

impl MetricParts {
    pub fn new(empty: MetricAccumulator) -> Self {
        Self { part: empty.clone(), batch_count: 0, empty }
    }

    /// Adds the next batch of the chunk. Returns the part if it is complete.
    pub fn add(&mut self, batch: &MetricAccumulator) -> Option<MetricAccumulator> {
        self.part.merge(batch);
        self.batch_count += 1;
        if self.batch_count == PART_BATCHES { self.take() } else { None }
    }

    /// Returns the last part of a chunk; none if it has no more batches.
    pub fn take(&mut self) -> Option<MetricAccumulator> {
        let is_empty = std::mem::take(&mut self.batch_count) == 0;
        (!is_empty).then(|| std::mem::replace(&mut self.part, self.empty.clone()))
    }
}

#[cfg(test)]
mod tests {
    use algo::metric::named::NamedAccumulator;

    use super::*;

    #[test]
    fn batches_are_merged_to_parts_that_do_not_grow_with_the_chunk() {
        let batch = |value: f64| {
            let mut named = NamedAccumulator::default();
            named.loss.add(value, 1.0);
            MetricAccumulator::Named(named)
        };
        let mut parts = MetricParts::new(MetricAccumulator::Named(NamedAccumulator::default()));
        let mut counts = Vec::new();
        for i in 0..2 * PART_BATCHES + 3 {
            counts.extend(parts.add(&batch(i as f64)).map(|part| part.record_count()));
        }
        counts.extend(parts.take().map(|part| part.record_count()));
        assert_eq!(counts, [PART_BATCHES as u64, PART_BATCHES as u64, 3]);
        assert!(parts.take().is_none());
        for i in 0..PART_BATCHES {
            counts.extend(parts.add(&batch(i as f64)).map(|part| part.record_count()));
        }
        assert!(counts.len() == 4 && parts.take().is_none(), "a chunk may end with a whole part");
    }
}
