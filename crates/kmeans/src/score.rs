//! Predictions: the nearest centre of a record and the distance from it.

use data::Batch;
use matrix::Agent;

use super::model::Model;
use super::params::Distance;
use super::points::{Centres, Nearest, Points};
use algo::error::Error;
use algo::job::Scorer;
use algo::metric::MetricAccumulator;
use algo::metric::named::NamedAccumulator;

/// Scores batches with the centres at the agent.
pub struct ClusterScorer {
    model: Model,
}

impl ClusterScorer {
    pub(super) fn new(model: &Model) -> Self {
        Self { model: model.clone() }
    }

    /// Calls `visit` with the nearest centre of each record.
    fn visit(
        &self,
        agent: &mut dyn Agent,
        batch: &Batch,
        visit: impl FnMut(usize, Nearest),
    ) -> Result<(), Error> {
        let points = Points::of_batches(vec![batch], self.model.distance)?;
        let centres = Centres::pull(agent, &points.features, self.model.clusters)?;
        points.for_each_nearest(&points.all(), &centres, visit);
        Ok(())
    }
}

impl Scorer for ClusterScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        out.clear();
        self.visit(agent, batch, |_, found| {
            out.extend([f64::from(found.centre), distance(&self.model, found.first)]);
        })
    }

    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error> {
        let MetricAccumulator::Named(parts) = parts else { unreachable!("the model makes the accumulators") };
        self.visit(agent, batch, |i, nearest| {
            add_to_metrics(&self.model, &nearest, f64::from(batch.weight(i)), parts);
        })
    }
}

/// Adds a record to the loss, the inertia and the simplified silhouette.
pub(super) fn add_to_metrics(model: &Model, nearest: &Nearest, weight: f64, parts: &mut NamedAccumulator) {
    let objective = match model.distance {
        Distance::Euclidean => nearest.first,
        Distance::Cosine => nearest.first / 2.0,
    };
    parts.loss.add(objective, weight);
    parts.metrics[0].add(objective, weight);
    let (own, other) = (distance(model, nearest.first), distance(model, nearest.second));
    if other.is_finite() && other > 0.0 {
        parts.metrics[1].add((other - own) / other, weight);
    }
}

/// The distance that users see, of a squared one.
fn distance(model: &Model, squared: f64) -> f64 {
    match model.distance {
        Distance::Euclidean => squared.sqrt(),
        // Of unit vectors: |x - c|^2 = 2 (1 - cosine).
        Distance::Cosine => squared / 2.0,
    }
}
