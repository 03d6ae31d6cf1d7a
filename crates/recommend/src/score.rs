//! The scores of given pairs of a user and an item, for `predict` and `evaluate`.

use data::Batch;
use matrix::{Agent, MatrixId, ValuesMut};

use super::interactions::pairs_of;
use super::model::FactorModel;
use algo::error::Error;
use algo::job::Scorer;
use algo::metric::MetricAccumulator;
use algo::rows::{ONE_ROW, rows_of};

/// Scores pairs. Rows of users and items that are not in the model are 0: of a rating, the mean and the other bias stay.
pub(super) struct PairScorer {
    model: FactorModel,
    users: Vec<f32>,
    items: Vec<f32>,
}

impl PairScorer {
    pub(super) fn new(model: &FactorModel) -> Self {
        Self { model: model.clone(), users: Vec::new(), items: Vec::new() }
    }
}

/// The user and the item of each record.
pub(super) fn pairs(batch: &Batch) -> Result<Vec<(u64, u64)>, Error> {
    let pair = |r: usize| {
        let mut pairs = pairs_of(batch, r)?;
        match (pairs.next(), pairs.next()) {
            (Some(pair), None) => Ok(pair),
            _ => Err(Error::unsuitable(
                "a record has no item, or several, and a score belongs to one pair: give a user and an item in each record; \
                 `seraphim recommend` ranks items for users",
            )),
        }
    };
    (0..batch.record_count()).map(pair).collect()
}

/// The distinct keys, ascending, and their rows.
fn pull(
    agent: &mut dyn Agent,
    matrix: MatrixId,
    keys: impl Iterator<Item = u64>,
    (width, out): (usize, &mut Vec<f32>),
) -> Result<Vec<u64>, Error> {
    let mut keys: Vec<u64> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    out.clear();
    out.resize(keys.len() * width, 0.0);
    agent.pull(matrix, rows_of(&keys), ValuesMut::F32(out))?;
    Ok(keys)
}

/// Scores of choices have no errors.
pub(super) fn only_orders() -> Error {
    Error::unsuitable(
        "the scores of this model only order items: `seraphim recommend MODEL --test FILES` measures the order",
    )
}

impl Scorer for PairScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        let (pairs, width) = (pairs(batch)?, self.model.width());
        let users =
            pull(agent, FactorModel::USERS, pairs.iter().map(|pair| pair.0), (width, &mut self.users))?;
        let items =
            pull(agent, FactorModel::ITEMS, pairs.iter().map(|pair| pair.1), (width, &mut self.items))?;
        let mut scale = [0.0; 3];
        if self.model.are_ratings {
            agent.pull(FactorModel::SCALE, ONE_ROW, ValuesMut::F64(&mut scale))?;
        }
        let factors = self.model.factors;
        out.clear();
        for (user, item) in pairs {
            let row = |keys: &[u64], key: u64| keys.binary_search(&key).expect("it was pulled") * width;
            let (p, q) =
                (&self.users[row(&users, user)..][..width], &self.items[row(&items, item)..][..width]);
            let product: f64 = p[..factors].iter().zip(q).map(|(p, q)| f64::from(*p) * f64::from(*q)).sum();
            let biases =
                if self.model.has_biases { f64::from(p[factors]) + f64::from(q[factors]) } else { 0.0 };
            let score = product + biases;
            let [mean, low, high] = scale;
            out.push(if self.model.are_ratings { (mean + score).clamp(low, high) } else { score });
        }
        Ok(())
    }

    fn evaluate(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        parts: &mut MetricAccumulator,
    ) -> Result<(), Error> {
        let MetricAccumulator::Real(parts) = parts else {
            return Err(only_orders());
        };
        let mut predictions = Vec::new();
        self.predict(agent, batch, &mut predictions)?;
        for (r, (&prediction, &label)) in predictions.iter().zip(&batch.labels).enumerate() {
            parts.add(prediction, label, f64::from(batch.weight(r)));
        }
        Ok(())
    }
}
