//! Stochastic gradient descent on a fixed grid: of ratings (`mf`), and of pairs of a chosen item and one that was not (`bpr`).
//!
//! **Sources.** Koren, Bell, Volinsky, 2009, equation 4; Rendle, Freudenthaler, Gantner, Schmidt-Thieme, "BPR: Bayesian
//! personalized ranking from implicit feedback", UAI 2009, figure 4; the grid: Gemulla et al., "Large-scale matrix factorization
//! with distributed stochastic gradient descent", KDD 2011.
//!
//! Users are dealt to blocks by their keys, items anew in each epoch. In a step each block of users learns with one block of items,
//! and no two with the same, so blocks do not touch each other's rows, and a step gives the same rows whichever task has which
//! block of users. The number of blocks follows from the number of pairs alone. Negative items of `bpr` are drawn from the block of the
//! chosen one.

use math::elementary::{exp, ln_1p, sigmoid};
use math::random::{NamedDraws, Purpose, RandomStream};
use matrix::{Agent, ListSelection, MatrixId, Values, ValuesMut};
use multiversion::multiversion;

use super::als::write_scale;
use super::dealing::{Dealing, deal};
use super::exact::add_up;
use super::interactions::{Duplicates, Interactions};
use super::params;
use super::solve::{padded, preference, product};
use super::validation::Validation;
use super::{FactorModel, ObjectiveSettings};
use algo::error::{Error, FeatureLabel};
use algo::job::TrainTask;
use algo::metric::MetricAccumulator;
use algo::param::CheckedParams;
use algo::rows::rows_of;
use algo::task_loop::{EpochEnd, Learner, TaskState, encode};

/// Pairs of a block of users, and how many blocks there are at least and at most.
const BLOCK_PAIRS: u64 = 100_000;
const BLOCKS: (u64, u64) = (4, 64);
/// Standard deviation of first factors.
const FIRST_DEVIATION: f64 = 0.1;
/// The step size falls evenly to this share of the first one.
const LAST_RATE: f64 = 0.1;
/// Draws of a negative item until one that the user does not have is found.
const TRIES: usize = 10;

/// The settings.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) are_ratings: bool,
    factors: usize,
    epochs: u64,
    rate: f64,
    lambda: f64,
    bias_lambda: f64,
    negatives: u64,
    is_nonnegative: bool,
    pub(super) duplicates: Duplicates,
    pub(super) validation_share: f64,
}

impl Grid {
    fn new(checked: &CheckedParams) -> Self {
        Self {
            are_ratings: true,
            factors: checked.integer(&params::FACTORS) as usize,
            epochs: checked.integer(&params::EPOCHS),
            rate: checked.real(&params::RATE),
            lambda: checked.real(&params::LAMBDA),
            bias_lambda: checked.real(&params::BIAS_LAMBDA),
            negatives: 0,
            is_nonnegative: false,
            duplicates: checked.choice(&params::DUPLICATES),
            validation_share: checked.real(&params::VALIDATION_SHARE),
        }
    }

    pub(super) fn of_ratings(checked: &CheckedParams) -> Self {
        let is_nonnegative = checked.flag(&params::NONNEGATIVE);
        Self { is_nonnegative, ..Self::new(checked) }
    }

    pub(super) fn of_choices(checked: &CheckedParams) -> Self {
        Self { are_ratings: false, negatives: checked.integer(&params::NEGATIVES), ..Self::new(checked) }
    }

    pub(super) fn model(&self) -> FactorModel {
        let objective = self.are_ratings.then_some(ObjectiveSettings::Ratings { lambda: self.lambda });
        FactorModel { factors: self.factors, are_ratings: self.are_ratings, has_biases: true, objective }
    }

    pub(super) fn divergence_advice(&self) -> String {
        format!("Lower learning_rate (now {}), or raise lambda (now {})", self.rate, self.lambda)
    }

    fn first_rows(&self, (matrix, seed): (MatrixId, u64), keys: &[u64]) -> Rows {
        let draws = NamedDraws::new(seed, Purpose::Initialize, u64::from(matrix.0));
        let mut rows = Rows::zeros(keys.to_vec(), self.factors);
        let length = padded(self.factors);
        for (row, key) in rows.vectors.chunks_exact_mut(length).zip(keys) {
            let mut draws = draws.of(*key);
            for x in &mut row[..self.factors] {
                let value = (FIRST_DEVIATION * draws.normal()) as f32;
                *x = if self.is_nonnegative { value.abs() } else { value };
            }
        }
        rows
    }
}

/// Rows with their biases beside them.
#[derive(Debug, Default)]
struct Rows {
    keys: Vec<u64>,
    factors: usize,
    /// Padded.
    vectors: Vec<f32>,
    biases: Vec<f32>,
}

impl Rows {
    fn zeros(keys: Vec<u64>, factors: usize) -> Self {
        let (vectors, biases) = (vec![0.0; keys.len() * padded(factors)], vec![0.0; keys.len()]);
        Self { keys, factors, vectors, biases }
    }

    fn pull(agent: &mut dyn Agent, matrix: MatrixId, keys: Vec<u64>, factors: usize) -> Result<Self, Error> {
        let mut values = vec![0.0; keys.len() * (factors + 1)];
        agent.pull(matrix, rows_of(&keys), ValuesMut::F32(&mut values))?;
        let mut rows = Self::zeros(keys, factors);
        let own = rows.vectors.chunks_exact_mut(padded(factors)).zip(&mut rows.biases);
        for ((row, bias), values) in own.zip(values.chunks_exact(factors + 1)) {
            row[..factors].copy_from_slice(&values[..factors]);
            *bias = values[factors];
        }
        Ok(rows)
    }

    fn push(&self, agent: &mut dyn Agent, matrix: MatrixId, (epoch, step): (u64, u64)) -> Result<(), Error> {
        let mut values = Vec::with_capacity(self.keys.len() * (self.factors + 1));
        for (row, bias) in self.vectors.chunks_exact(padded(self.factors)).zip(&self.biases) {
            values.extend_from_slice(&row[..self.factors]);
            values.push(*bias);
        }
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            let feature = Some(FeatureLabel::new(self.keys[at / (self.factors + 1)]));
            let (loss, advice) = (f64::NAN, String::new());
            return Err(Error::Diverged { epoch: epoch + 1, step: step + 1, loss, feature, advice });
        }
        agent.push(matrix, rows_of(&self.keys), Values::F32(&values))?;
        Ok(())
    }
}

/// A block of users of this task.
struct UserBlock {
    number: u64,
    pairs: Interactions,
    /// For each pair the position of its item among all items; ascending in each row.
    items: Vec<u32>,
    rows: Rows,
}

/// Begins one task.
pub(super) fn begin<'a>(
    settings: &'a Grid,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let dealing = Dealing {
        are_ratings: settings.are_ratings,
        is_saved: saved.is_some(),
        duplicates: settings.duplicates,
        held_share: if settings.are_ratings { 0.0 } else { settings.validation_share },
    };
    let dealt = deal(task, dealing)?;
    let mut total = [dealt.users.others.len() as i64];
    add_up(task.agent, &mut total)?;
    if total[0] == 0 {
        return Err(Error::NoRecords);
    }
    let is_known = saved.is_some() || task.resumed;
    let mean =
        if settings.are_ratings { write_scale(task, &dealt.users.values, total[0] as u64)? } else { 0.0 };
    let counts = dealt.by_item.lengths(task.agent, &ListSelection::Range(0, u64::MAX))?;
    let (items, counts): (Vec<u64>, Vec<i64>) =
        counts.into_iter().map(|(key, count)| (key, count as i64)).unzip();
    if saved.is_none() {
        if task.agent.task() == 0 {
            task.agent.push(FactorModel::COUNTS, rows_of(&items), Values::I64(&counts))?;
        }
        let rows = settings.own_rows(task, (FactorModel::ITEMS, &dealt.items.keys), is_known)?;
        rows.push(task.agent, FactorModel::ITEMS, (0, 0))?;
        task.agent.tick()?;
    }
    let block_count = (total[0] as u64 / BLOCK_PAIRS).next_power_of_two().clamp(BLOCKS.0, BLOCKS.1);
    let mut blocks = Vec::new();
    let (first, tasks) = (u64::from(task.agent.task()), task.agent.task_count() as usize);
    for number in (first..block_count).step_by(tasks) {
        let rows = ListSelection::Owned { task: number as u32, task_count: block_count as u32 };
        let pairs = dealt.by_user.pull(task.agent, &rows)?;
        let position = |key: &u64| items.binary_search(key).expect("all items are listed") as u32;
        let positions: Vec<u32> = pairs.other_keys.iter().map(position).collect();
        let positions = pairs.others.iter().map(|&other| positions[other as usize]).collect();
        let rows = settings.own_rows(task, (FactorModel::USERS, &pairs.keys), is_known)?;
        blocks.push(UserBlock { number, pairs, items: positions, rows });
    }
    task.agent.barrier()?;
    let validation = dealt.validation;
    Ok(Box::new(GridLearner { settings, seed: task.seed, mean, items, block_count, blocks, validation }))
}

impl Grid {
    /// Rows at the beginning: those of an earlier model or of a saved training, and random ones where there are none.
    fn own_rows(
        &self,
        task: &mut TrainTask<'_>,
        (matrix, keys): (MatrixId, &[u64]),
        is_known: bool,
    ) -> Result<Rows, Error> {
        let mut first = self.first_rows((matrix, task.seed), keys);
        if is_known {
            let known = Rows::pull(task.agent, matrix, keys.to_vec(), self.factors)?;
            let length = padded(self.factors);
            for at in 0..keys.len() {
                let row = &known.vectors[at * length..][..length];
                if row.iter().any(|&x| x != 0.0) {
                    first.vectors[at * length..][..length].copy_from_slice(row);
                    first.biases[at] = known.biases[at];
                }
            }
        }
        Ok(first)
    }
}

struct GridLearner<'a> {
    settings: &'a Grid,
    seed: u64,
    /// Mean of the ratings.
    mean: f64,
    /// All items, ascending.
    items: Vec<u64>,
    block_count: u64,
    blocks: Vec<UserBlock>,
    /// Of choices.
    validation: Option<Validation>,
}

/// Where the items are in an epoch.
struct ItemBlocks {
    /// The items of each block, ascending.
    members: Vec<Vec<u32>>,
    /// For each item its block and its place there.
    places: Vec<(u32, u32)>,
}

impl GridLearner<'_> {
    fn item_blocks(&self, epoch: u64) -> ItemBlocks {
        let draws = NamedDraws::new(self.seed, Purpose::Sample, epoch);
        let mut members = vec![Vec::new(); self.block_count as usize];
        let place = |(item, key): (u32, &u64)| {
            let block = draws.of(*key).below(self.block_count) as usize;
            members[block].push(item);
            (block as u32, members[block].len() as u32 - 1)
        };
        let places = (0..).zip(&self.items).map(place).collect();
        ItemBlocks { members, places }
    }

    fn rate(&self, epoch: u64) -> f32 {
        let done = epoch as f64 / (self.settings.epochs.max(2) - 1) as f64;
        (self.settings.rate * (1.0 - (1.0 - LAST_RATE) * done)) as f32
    }
}

impl Learner for GridLearner<'_> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let (grid, rate) = (self.item_blocks(epoch), self.rate(epoch));
        let order = NamedDraws::new(self.seed, Purpose::Shuffle, epoch);
        let mut shifts: Vec<u64> = (0..self.block_count).collect();
        order.of(u64::MAX).shuffle(&mut shifts);
        let mut training = task.model.metric_accumulator();
        let mut cells: Vec<Vec<Vec<(u32, u32, f32)>>> =
            self.blocks.iter().map(|block| block.cells(&grid)).collect();
        for (step, shift) in (0..).zip(&shifts) {
            for (block, cells) in self.blocks.iter_mut().zip(&mut cells) {
                let number = (block.number + shift) % self.block_count;
                let mut cell = std::mem::take(&mut cells[number as usize]);
                let mut draws = order.of(block.number * self.block_count + number);
                draws.shuffle(&mut cell);
                let members = &grid.members[number as usize];
                let keys = members.iter().map(|&item| self.items[item as usize]).collect();
                let mut items = Rows::pull(task.agent, FactorModel::ITEMS, keys, self.settings.factors)?;
                let work = Cell { settings: self.settings, rate, mean: self.mean as f32, members };
                match &mut training {
                    MetricAccumulator::Real(parts) => {
                        let errors = work.learn_ratings(&cell, &mut block.rows, &mut items);
                        for ((_, _, rating), error) in cell.iter().zip(errors) {
                            parts.add(f64::from(rating - error), f64::from(*rating), 1.0);
                        }
                    }
                    other => {
                        let loss = work.learn_choices(&cell, block, &mut items, &mut draws);
                        let parts = other.loss_mut();
                        parts.loss_sum += loss;
                        parts.weight_sum += cell.len() as f64 * self.settings.negatives as f64;
                        parts.record_count += cell.len() as u64;
                    }
                }
                items.push(task.agent, FactorModel::ITEMS, (epoch, step))?;
            }
            task.agent.barrier()?;
        }
        for block in &self.blocks {
            block.rows.push(task.agent, FactorModel::USERS, (epoch, self.block_count))?;
        }
        task.agent.tick()?;
        task.agent.barrier()?;
        Ok(Some(EpochEnd {
            training,
            record_count: self.blocks.iter().map(|block| block.pairs.others.len() as u64).sum(),
            epoch_count: self.settings.epochs,
            is_stopped: false,
            is_last: epoch + 1 >= self.settings.epochs,
            notice: None,
        }))
    }

    fn validate(&mut self, task: &mut TrainTask<'_>) -> Result<Option<MetricAccumulator>, Error> {
        self.validation.as_ref().map(|validation| validation.measure(task)).transpose()
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        encode(&())
    }
}

impl UserBlock {
    /// The pairs with the items of each block: row of the user, place of the item, value.
    fn cells(&self, grid: &ItemBlocks) -> Vec<Vec<(u32, u32, f32)>> {
        let mut cells = vec![Vec::new(); grid.members.len()];
        for row in 0..self.pairs.row_count() {
            for pair in self.pairs.row(row) {
                let (block, place) = grid.places[self.items[pair] as usize];
                cells[block as usize].push((row as u32, place, self.pairs.values[pair]));
            }
        }
        cells
    }

    /// Whether a user has an item.
    fn has(&self, row: u32, item: u32) -> bool {
        self.items[self.pairs.row(row as usize)].binary_search(&item).is_ok()
    }
}

/// What a block of users learns with a block of items.
struct Cell<'a> {
    settings: &'a Grid,
    rate: f32,
    mean: f32,
    /// The items of the block.
    members: &'a [u32],
}

impl Cell<'_> {
    /// Takes a step for each rating, and returns the error before it.
    fn learn_ratings(&self, cell: &[(u32, u32, f32)], users: &mut Rows, items: &mut Rows) -> Vec<f32> {
        let (rate, settings, length) = (self.rate, self.settings, padded(self.settings.factors));
        let (lambda, bias_lambda) = (settings.lambda as f32, settings.bias_lambda as f32);
        let low = if settings.is_nonnegative { 0.0 } else { f32::NEG_INFINITY };
        let learn = |&(user, item, rating): &(u32, u32, f32)| {
            let (u, i) = (user as usize, item as usize);
            let p = &mut users.vectors[u * length..][..length];
            let q = &mut items.vectors[i * length..][..length];
            let error = rating - (self.mean + users.biases[u] + items.biases[i] + product(p, q));
            users.biases[u] += rate * (error - bias_lambda * users.biases[u]);
            items.biases[i] += rate * (error - bias_lambda * items.biases[i]);
            step_of_rating(p, q, (rate, error), (lambda, low));
            error
        };
        cell.iter().map(learn).collect()
    }

    /// Takes a step for each choice and negative item, and returns the sum of the losses `-ln sigmoid(x)` before them.
    fn learn_choices(
        &self,
        cell: &[(u32, u32, f32)],
        block: &mut UserBlock,
        items: &mut Rows,
        draws: &mut RandomStream,
    ) -> f64 {
        let (rate, settings, length) = (self.rate, self.settings, padded(self.settings.factors));
        let (lambda, bias_lambda) = (settings.lambda as f32, settings.bias_lambda as f32);
        let mut loss = 0.0;
        for &(user, item, strength) in cell {
            for _ in 0..settings.negatives {
                let mut other = || draws.below(self.members.len() as u64) as u32;
                let is_negative = |place: &u32| !block.has(user, self.members[*place as usize]);
                let Some(negative) = (0..TRIES).map(|_| other()).find(is_negative) else { continue };
                let (u, i, j) = (user as usize, item as usize, negative as usize);
                let p = &mut block.rows.vectors[u * length..][..length];
                let [q, n] = items
                    .vectors
                    .get_disjoint_mut([i * length..(i + 1) * length, j * length..(j + 1) * length])
                    .expect("a negative item is another one");
                let x = f64::from(items.biases[i] - items.biases[j] + preference(p, q, n));
                loss += if x > 0.0 { ln_1p(exp(-x)) } else { ln_1p(exp(x)) - x };
                let slope = strength * sigmoid(-x) as f32;
                items.biases[i] += rate * (slope - bias_lambda * items.biases[i]);
                items.biases[j] -= rate * (slope + bias_lambda * items.biases[j]);
                step_of_choice((p, q, n), (rate, slope, lambda));
            }
        }
        loss
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn step_of_rating(p: &mut [f32], q: &mut [f32], (rate, error): (f32, f32), (lambda, low): (f32, f32)) {
    for (p, q) in p.iter_mut().zip(q) {
        let old = *p;
        *p = (old + rate * (error * *q - lambda * old)).max(low);
        *q = (*q + rate * (error * old - lambda * *q)).max(low);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn step_of_choice((p, q, n): (&mut [f32], &mut [f32], &mut [f32]), (rate, slope, lambda): (f32, f32, f32)) {
    for ((p, q), n) in p.iter_mut().zip(q).zip(n) {
        let old = *p;
        *p = old + rate * (slope * (*q - *n) - lambda * old);
        *q += rate * (slope * old - lambda * *q);
        *n -= rate * (slope * old + lambda * *n);
    }
}
