//! Neighbors of items. The score of an item for a user is the sum over those of its neighbors that the user has, of their strength
//! times their weight.
//!
//! Similarities are found by the task that owns an item: it pulls the lists of the users that have the item, ascending, so a
//! similarity is a sum in one order, whatever the tasks.

use data::Batch;
use math::elementary::{exp, ln};
use math::selection::TopN;
use matrix::{Agent, ListMatrix, ListSelection, MatrixId, MatrixSpec, PushRule, Values, ValuesMut};

use super::dealing::{Dealing, Dealt, LIST_MATRICES, TrainingPairs, deal};
use super::ease;
use super::exact::add_up;
use super::interactions::{Duplicates, Interactions};
use super::model::{NeighborModel, seen};
use super::params::{self, Similarity};
use super::score::pairs;
use super::validation::Validation;
use algo::error::Error;
use algo::job::{Scorer, TrainTask};
use algo::metric::MetricAccumulator;
use algo::param::CheckedParams;
use algo::rows::rows_of;
use algo::task_loop::{EpochEnd, Learner, TaskState, encode};

/// Pairs of users and items whose users are pulled together.
const PULLED_PAIRS: usize = 1 << 18;

/// The settings.
#[derive(Clone, Debug)]
pub(super) struct Neighbors {
    weights: Weights,
    /// Most neighbors of an item.
    limit: usize,
    pub(super) duplicates: Duplicates,
    validation_share: f64,
}

/// What weighs a neighbor.
#[derive(Clone, Copy, Debug)]
enum Weights {
    Similarity(Similarity, Constants),
    Ease { lambda: f64 },
}

/// The constants of similarities; those of BM25 (Robertson and Zaragoza, 2009) have items as documents and users as terms.
#[derive(Clone, Copy, Debug)]
struct Constants {
    user_exponent: f64,
    item_exponent: f64,
    k1: f64,
    b: f64,
}

impl Neighbors {
    pub(super) fn of_similarities(checked: &CheckedParams) -> Self {
        let constants = Constants {
            user_exponent: checked.real(&params::USER_EXPONENT),
            item_exponent: checked.real(&params::ITEM_EXPONENT),
            k1: checked.real(&params::K1),
            b: checked.real(&params::B),
        };
        Self {
            weights: Weights::Similarity(checked.choice(&params::SIMILARITY), constants),
            limit: checked.integer(&params::NEIGHBORS) as usize,
            duplicates: checked.choice(&params::DUPLICATES),
            validation_share: checked.real(&params::VALIDATION_SHARE),
        }
    }

    pub(super) fn of_ease(checked: &CheckedParams) -> Self {
        Self {
            weights: Weights::Ease { lambda: checked.real(&params::EASE_LAMBDA) },
            limit: checked.integer(&params::EASE_NEIGHBORS) as usize,
            duplicates: checked.choice(&params::DUPLICATES),
            validation_share: checked.real(&params::VALIDATION_SHARE),
        }
    }

    pub(super) fn model(&self) -> NeighborModel {
        NeighborModel { neighbors: self.limit as u64 }
    }
}

/// The matrix of the sizes of items in a training, after the lists of pairs.
pub(super) fn sizes(partition_count: u32) -> MatrixSpec {
    MatrixSpec::sparse("sizes", matrix::ElementType::F64, 1, PushRule::Assign, partition_count)
}

/// Begins one task.
pub(super) fn begin<'a>(
    settings: &'a Neighbors,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    if task.resumed {
        return Err(Error::unsuitable(
            "neighbors are found anew from all data, so there is nothing to continue from: leave --from out, and give the \
             earlier data with the new ones",
        ));
    }
    let dealing = Dealing {
        are_ratings: false,
        is_saved: saved.is_some(),
        duplicates: settings.duplicates,
        held_share: settings.validation_share,
    };
    let Dealt { users, items, by_user, validation, .. } = deal(task, dealing)?;
    let mut totals = [items.row_count() as i64, items.others.len() as i64];
    add_up(task.agent, &mut totals)?;
    if totals[1] == 0 {
        return Err(Error::NoRecords);
    }
    if let Weights::Ease { .. } = settings.weights {
        ease::check_item_count(totals[0] as u64)?;
    }
    let counts: Vec<i64> = (0..items.row_count()).map(|row| items.row(row).len() as i64).collect();
    task.agent.push(NeighborModel::COUNTS, rows_of(&items.keys), Values::I64(&counts))?;
    let pair_count = users.others.len() as u64;
    Ok(Box::new(NeighborLearner {
        settings,
        items,
        by_user,
        item_count: totals[0] as u64,
        pair_count,
        validation,
    }))
}

struct NeighborLearner<'a> {
    settings: &'a Neighbors,
    /// The own items.
    items: Interactions,
    by_user: TrainingPairs,
    /// Of all tasks.
    item_count: u64,
    /// Of the own users.
    pair_count: u64,
    validation: Option<Validation>,
}

impl Learner for NeighborLearner<'_> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, _: u64) -> Result<Option<EpochEnd>, Error> {
        let lists = NeighborModel::lists()?;
        match self.settings.weights {
            Weights::Similarity(similarity, constants) => {
                Similarities { similarity, constants, item_count: self.item_count }
                    .find(task, self, &lists)?;
            }
            Weights::Ease { lambda } => {
                ease::find(task, &self.by_user, &lists, (lambda, self.settings.limit))?;
            }
        }
        lists.seal(task.agent)?;
        task.agent.tick()?;
        task.agent.barrier()?;
        let mut training = task.model.metric_accumulator();
        training.loss_mut().record_count = self.pair_count;
        Ok(Some(EpochEnd { record_count: self.pair_count, ..EpochEnd::of_last(training) }))
    }

    fn validate(&mut self, task: &mut TrainTask<'_>) -> Result<Option<MetricAccumulator>, Error> {
        self.validation.as_ref().map(|validation| validation.measure(task)).transpose()
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        encode(&())
    }
}

/// How similar items are found.
struct Similarities {
    similarity: Similarity,
    constants: Constants,
    item_count: u64,
}

impl Similarities {
    /// What all users have of an item, for its weights.
    fn size(&self, strengths: &[f32]) -> f64 {
        let strengths = strengths.iter().map(|&x| f64::from(x));
        match self.similarity {
            Similarity::Cosine => strengths.map(|x| x * x).sum::<f64>().sqrt(),
            Similarity::Bm25 => strengths.sum(),
            Similarity::Cooccurrence | Similarity::Jaccard => strengths.len() as f64,
        }
    }

    /// The weight of a pair: of its strength, the size of its item, the mean of all sizes, and the number of the user's items.
    fn weight(&self, strength: f64, size: f64, (mean, user_items): (f64, usize)) -> f64 {
        match self.similarity {
            Similarity::Cosine => {
                let Constants { user_exponent, item_exponent, .. } = self.constants;
                strength / power(user_items as f64, 0.5 * user_exponent) / power(size, item_exponent)
            }
            Similarity::Cooccurrence | Similarity::Jaccard => 1.0,
            Similarity::Bm25 => {
                let Constants { k1, b, .. } = self.constants;
                let rarity = ln((1.0 + self.item_count as f64) / (1.0 + user_items as f64));
                strength * (k1 + 1.0) / (k1 * (1.0 - b + b * size / mean) + strength) * rarity
            }
        }
    }

    /// Finds the neighbors of the own items.
    fn find(
        &self,
        task: &mut TrainTask<'_>,
        own: &NeighborLearner<'_>,
        lists: &ListMatrix,
    ) -> Result<(), Error> {
        let (items, matrix) = (&own.items, MatrixId(task.model.matrix_count() as u32 + LIST_MATRICES));
        let sizes: Vec<f64> =
            (0..items.row_count()).map(|row| self.size(&items.values[items.row(row)])).collect();
        task.agent.push(matrix, rows_of(&items.keys), Values::F64(&sizes))?;
        let mean = self.mean_size(task, &sizes)?;
        task.agent.barrier()?;
        let mut first = 0;
        while first < items.row_count() {
            let end = items.starts.partition_point(|&start| start <= items.starts[first] + PULLED_PAIRS) - 1;
            let rows = first..end.max(first + 1);
            let mut users: Vec<u64> = items.others[items.starts[rows.start]..items.starts[rows.end]]
                .iter()
                .map(|&user| items.other_keys[user as usize])
                .collect();
            users.sort_unstable();
            users.dedup();
            let pulled = own.by_user.pull(task.agent, &ListSelection::Rows(&users))?;
            let mut sizes = vec![0.0; pulled.other_keys.len()];
            task.agent.pull(matrix, rows_of(&pulled.other_keys), ValuesMut::F64(&mut sizes))?;
            let block = self.neighbors(own, rows.clone(), (&pulled, &sizes, mean), lists);
            lists.append(task.agent, &block)?;
            first = rows.end;
        }
        Ok(())
    }

    /// The mean of the sizes of all items. Sizes whose mean counts are sums of strengths, in steps of a millionth.
    fn mean_size(&self, task: &mut TrainTask<'_>, sizes: &[f64]) -> Result<f64, Error> {
        let mut sum = [sizes.iter().map(|size| (size * 1e6).round() as i64).sum::<i64>()];
        add_up(task.agent, &mut sum)?;
        Ok(sum[0] as f64 / 1e6 / self.item_count as f64)
    }

    /// The neighbors of some of the own items, from the lists of their users and the sizes of the items in those.
    fn neighbors(
        &self,
        own: &NeighborLearner<'_>,
        rows: std::ops::Range<usize>,
        (users, sizes, mean): (&Interactions, &[f64], f64),
        lists: &ListMatrix,
    ) -> matrix::RowBlock {
        let mut weights = Vec::with_capacity(users.others.len());
        for row in 0..users.row_count() {
            let pairs = users.row(row);
            let weight = |pair: usize| {
                let size = sizes[users.others[pair] as usize];
                self.weight(f64::from(users.values[pair]), size, (mean, pairs.len()))
            };
            weights.extend(pairs.clone().map(weight));
        }
        let mut sums = vec![0.0; sizes.len()];
        let mut touched = Vec::new();
        let mut block = lists.block();
        for row in rows {
            let key = own.items.keys[row];
            let item = users.other_keys.binary_search(&key).expect("its users have it") as u32;
            for pair in own.items.row(row) {
                let user = own.items.other_keys[own.items.others[pair] as usize];
                let user = users.keys.binary_search(&user).expect("it was pulled");
                let pairs = users.row(user);
                let at = users.others[pairs.clone()].binary_search(&item).expect("the user has it");
                let factor = weights[pairs.start + at];
                for pair in pairs {
                    let sum: &mut f64 = &mut sums[users.others[pair] as usize];
                    if *sum == 0.0 {
                        touched.push(users.others[pair]);
                    }
                    *sum += factor * weights[pair];
                }
            }
            let mut best = TopN::new(own.settings.limit);
            for other in touched.drain(..) {
                let sum = std::mem::take(&mut sums[other as usize]);
                let similarity = match self.similarity {
                    Similarity::Jaccard => sum / (sizes[item as usize] + sizes[other as usize] - sum),
                    Similarity::Cosine | Similarity::Cooccurrence | Similarity::Bm25 => sum,
                };
                if other != item && similarity > 0.0 {
                    best.add(similarity, u64::from(other));
                }
            }
            let best = best.into_sorted();
            let others: Vec<u64> = best.iter().map(|(_, other)| users.other_keys[*other as usize]).collect();
            let values: Vec<f32> = best.iter().map(|(similarity, _)| *similarity as f32).collect();
            block.push_list(key, &others, &values);
        }
        block
    }
}

/// A power of a number above 0.
fn power(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

/// Scores pairs by the training items of their users.
#[derive(Default)]
pub(super) struct NeighborScorer {}

impl Scorer for NeighborScorer {
    fn predict(&mut self, agent: &mut dyn Agent, batch: &Batch, out: &mut Vec<f64>) -> Result<(), Error> {
        let model = NeighborModel { neighbors: 0 };
        let pairs = pairs(batch)?;
        let mut users: Vec<u64> = pairs.iter().map(|(user, _)| *user).collect();
        users.sort_unstable();
        users.dedup();
        let users = Interactions::of_block(seen(&model)?.pull(agent, &ListSelection::Rows(&users))?);
        let mut items: Vec<u64> = pairs.iter().map(|(_, item)| *item).collect();
        items.sort_unstable();
        items.dedup();
        let rows = ListSelection::Rows(&items);
        let items = Interactions::of_block(NeighborModel::lists()?.pull(agent, &rows)?);
        out.clear();
        for (user, item) in pairs {
            let place = |keys: &[u64], key| keys.binary_search(&key).expect("it was pulled");
            let (user, item) = (place(&users.keys, user), place(&items.keys, item));
            let mut score = 0.0;
            for pair in users.row(user) {
                let key = users.other_keys[users.others[pair] as usize];
                let neighbors = items.row(item);
                let at = items.others[neighbors.clone()]
                    .binary_search_by_key(&key, |&other| items.other_keys[other as usize]);
                if let Ok(at) = at {
                    score += f64::from(users.values[pair]) * f64::from(items.values[neighbors.start + at]);
                }
            }
            out.push(score);
        }
        Ok(())
    }

    fn evaluate(&mut self, _: &mut dyn Agent, _: &Batch, _: &mut MetricAccumulator) -> Result<(), Error> {
        Err(super::score::only_orders())
    }
}
