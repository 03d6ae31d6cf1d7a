//! How well the best items of users meet the choices that were held out, while a model of choices is trained.

use math::random::{NamedDraws, Purpose};
use matrix::{ListMatrix, ListSelection, OwnedValues, RowBlock, ValuesMut};

use super::exact::add_up;
use super::interactions::Interactions;
use super::model::{FactorModel, NeighborModel, seen};
use super::ranking::RankingQuality;
use super::top::{Items, KeyedRows, Recommendation, Recommender, Request};
use algo::error::Error;
use algo::job::TrainTask;
use algo::metric::MetricAccumulator;
use algo::metric::named::{MergeRule, NamedMetric};
use algo::rows::rows_of;

/// Users that are ranked, about: with more, they are drawn by their keys.
const USERS: f64 = 2000.0;
/// Items of a list.
const LIST: usize = 20;

/// Divides the pairs of users into those of the training and those that are held out: of each user `share` of its items, rounded
/// down, drawn by the keys of both.
pub(super) fn split(users: &Interactions, share: f64, seed: u64) -> [RowBlock; 2] {
    let mut blocks = [(); 2].map(|()| RowBlock::no_lists(matrix::ElementType::F32));
    for row in 0..users.row_count() {
        let draws = NamedDraws::new(seed, Purpose::Validation, users.keys[row]);
        let key = |pair: &usize| users.other_keys[users.others[*pair] as usize];
        let mut pairs: Vec<usize> = users.row(row).collect();
        pairs.sort_by_cached_key(|pair| (draws.of(key(pair)).below(u64::MAX), *pair));
        let (held_out, training) = pairs.split_at_mut((share * users.row(row).len() as f64) as usize);
        for (block, pairs) in blocks.iter_mut().zip([training, held_out]) {
            pairs.sort_unstable();
            let values: Vec<f32> = pairs.iter().map(|&pair| users.values[pair]).collect();
            block.push_list(users.keys[row], &pairs.iter().map(key).collect::<Vec<u64>>(), &values);
        }
    }
    blocks
}

/// The own users that are ranked.
pub(super) struct Validation {
    /// With their items that were held out, ascending.
    users: Vec<(u64, Vec<u64>)>,
    /// By user, those of the training.
    seen: RowBlock,
    /// The lists of items with their users.
    by_item: ListMatrix,
}

impl Validation {
    /// Draws the users of which the held-out pairs are measured; none if there are no such pairs.
    pub(super) fn new(
        task: &mut TrainTask<'_>,
        held_out: &Interactions,
        by_item: &ListMatrix,
    ) -> Result<Option<Self>, Error> {
        let is_held = |row: &usize| !held_out.row(*row).is_empty();
        let rows: Vec<usize> = (0..held_out.row_count()).filter(is_held).collect();
        let mut total = [rows.len() as i64];
        add_up(task.agent, &mut total)?;
        if total[0] == 0 {
            return Ok(None);
        }
        let draws = NamedDraws::new(task.seed, Purpose::Validation, u64::MAX);
        let is_drawn = |row: &&usize| draws.of(held_out.keys[**row]).uniform() < USERS / total[0] as f64;
        let items = |row: usize| {
            held_out.row(row).map(|pair| held_out.other_keys[held_out.others[pair] as usize]).collect()
        };
        let users: Vec<(u64, Vec<u64>)> =
            rows.iter().filter(is_drawn).map(|&row| (held_out.keys[row], items(row))).collect();
        let keys: Vec<u64> = users.iter().map(|(user, _)| *user).collect();
        let seen = seen(task.model)?.pull(task.agent, &ListSelection::Rows(&keys))?;
        Ok(Some(Self { users, seen, by_item: by_item.clone() }))
    }

    /// Ranks all items for the own users with the model as it is.
    pub(super) fn measure(&self, task: &mut TrainTask<'_>) -> Result<MetricAccumulator, Error> {
        let recommender = self.recommender(task)?;
        let OwnedValues::F32(strengths) = &self.seen.values else {
            unreachable!("the lists have such values")
        };
        let requests: Vec<Request> = self
            .seen
            .rows()
            .map(|(user, range)| {
                let seen = self.seen.entries()[range.clone()].to_vec();
                Request {
                    user,
                    choices: seen.iter().copied().zip(strengths[range].iter().copied()).collect(),
                    seen,
                }
            })
            .collect();
        let lists = recommender.recommend(&requests, LIST, 1)?;
        let keys = |list: &[Recommendation]| list.iter().map(|one| one.item).collect::<Vec<u64>>();
        let lists: Vec<Vec<u64>> = lists.iter().map(|(_, list)| keys(list)).collect();
        let pairs = lists.iter().zip(&self.users).map(|(list, (_, held_out))| (&list[..], &held_out[..]));
        let quality = RankingQuality::of(pairs, LIST);
        let mut metrics = task.model.metric_accumulator();
        if let MetricAccumulator::Named(parts) = &mut metrics {
            for (name, mean) in [
                ("ndcg@20", quality.ndcg),
                ("recall@20", quality.recall),
                ("precision@20", quality.precision),
            ] {
                let mut metric = NamedMetric::new(name, MergeRule::Mean);
                metric.add(mean, quality.users as f64);
                parts.metrics.push(metric);
            }
        }
        metrics.loss_mut().record_count = self.users.iter().map(|(_, held_out)| held_out.len() as u64).sum();
        Ok(metrics)
    }

    fn recommender(&self, task: &mut TrainTask<'_>) -> Result<Recommender, Error> {
        let users: Vec<u64> = self.users.iter().map(|(user, _)| *user).collect();
        let counts = self.by_item.lengths(task.agent, &ListSelection::Range(0, u64::MAX))?;
        let keys: Vec<u64> = counts.iter().map(|(key, _)| *key).collect();
        let count =
            |key: u64| counts.binary_search_by_key(&key, |(key, _)| *key).map_or(0, |at| counts[at].1 as i64);
        let items = Items::new(keys.clone(), count, |_| true);
        let Ok(model) = task.model.of::<FactorModel>() else {
            let lists = NeighborModel::lists()?.pull(task.agent, &ListSelection::Range(0, u64::MAX))?;
            return Ok(Recommender::of_neighbors(users, &lists, items));
        };
        let mut pull = |matrix, keys: &[u64]| {
            let mut values = vec![0.0; keys.len() * model.width()];
            task.agent.pull(matrix, rows_of(keys), ValuesMut::F32(&mut values))?;
            Ok::<_, Error>(values)
        };
        let rows = pull(FactorModel::ITEMS, &keys)?;
        let users = KeyedRows { values: pull(FactorModel::USERS, &users)?, keys: users };
        Ok(Recommender::of_factors(model, users, &rows, (items, [0.0; 3]), None))
    }
}
