//! Alternating least squares: an iteration solves the rows of all users with those of the items as they are, then the other way
//! round. A row depends on its own pairs, the rows of the other side that they name, and the Gramian of that side, whose bits do
//! not depend on how rows are divided; so the model does not either.

use math::reduction::FixedPoint;
use matrix::{MatrixId, Values};

use super::dealing::{Dealing, Dealt, LIST_MATRICES, deal};
use super::exact::{add_up, gramian, of_all_tasks};
use super::implicit::ImplicitFeatures;
use super::interactions::Duplicates;
use super::model::FactorModel;
use super::objective::{Objective, ObjectiveSettings};
use super::params::{self, ChoiceLoss, Solver};
use super::side::{OtherRows, Side, first_rows, read_others};
use super::solve::{Equations, ExactWork, padded, product};
use super::validation::Validation;
use algo::error::{Error, FeatureLabel};
use algo::job::TrainTask;
use algo::metric::MetricAccumulator;
use algo::param::CheckedParams;
use algo::rows::{ONE_ROW, rows_of};
use algo::task_loop::{EpochEnd, Learner, TaskState, encode};

/// The settings.
#[derive(Clone, Debug)]
pub(super) struct Als {
    pub(super) objective: ObjectiveSettings,
    factors: usize,
    iterations: u64,
    /// Steps of conjugate gradients; 0: Cholesky.
    steps: usize,
    pub(super) duplicates: Duplicates,
    pub(super) validation_share: f64,
    /// Of implicit features; 0: there are none.
    pub(super) implicit_weight: f64,
}

impl Als {
    fn new(checked: &CheckedParams, objective: ObjectiveSettings) -> Self {
        let solver: Solver = checked.choice(&params::SOLVER);
        Self {
            objective,
            factors: checked.integer(&params::FACTORS) as usize,
            iterations: checked.integer(&params::ITERATIONS),
            steps: match solver {
                Solver::ConjugateGradients => checked.integer(&params::STEPS) as usize,
                Solver::Cholesky => 0,
            },
            duplicates: checked.choice(&params::DUPLICATES),
            validation_share: checked.real(&params::VALIDATION_SHARE),
            implicit_weight: 0.0,
        }
    }

    pub(super) fn of_ratings(checked: &CheckedParams) -> Self {
        let objective = ObjectiveSettings::Ratings { lambda: checked.real(&params::LAMBDA) };
        Self { implicit_weight: checked.real(&params::IMPLICIT_WEIGHT), ..Self::new(checked, objective) }
    }

    pub(super) fn of_choices(checked: &CheckedParams) -> Self {
        let lambda = checked.auto_real(&params::IALS_LAMBDA);
        let loss: ChoiceLoss = checked.choice(&params::LOSS);
        let objective = match loss {
            ChoiceLoss::Ials => {
                let (unobserved, nu) = (checked.auto_real(&params::UNOBSERVED), checked.real(&params::NU));
                ObjectiveSettings::Choices { unobserved, lambda, nu }
            }
            ChoiceLoss::Confidence => {
                ObjectiveSettings::Confidence { alpha: checked.real(&params::ALPHA), lambda }
            }
        };
        Self::new(checked, objective)
    }

    pub(super) fn are_ratings(&self) -> bool {
        self.objective.are_ratings()
    }

    pub(super) fn model(&self) -> FactorModel {
        let are_ratings = self.are_ratings();
        FactorModel {
            factors: self.factors,
            are_ratings,
            has_biases: are_ratings,
            objective: Some(self.objective),
        }
    }

    pub(super) fn divergence_advice(&self) -> String {
        match self.objective {
            ObjectiveSettings::Ratings { .. } => "Scale the ratings down, or raise lambda".to_owned(),
            ObjectiveSettings::Choices { .. } => "Scale the strengths down, or raise lambda".to_owned(),
            ObjectiveSettings::Confidence { .. } => {
                "Lower alpha or scale the strengths down, or raise lambda".to_owned()
            }
        }
    }
}

/// Begins one task.
pub(super) fn begin<'a>(
    settings: &'a Als,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let dealing = Dealing {
        are_ratings: settings.are_ratings(),
        is_saved: saved.is_some(),
        duplicates: settings.duplicates,
        held_share: if settings.are_ratings() { 0.0 } else { settings.validation_share },
    };
    let Dealt { users, items, validation, .. } = deal(task, dealing)?;
    let mut totals = [users.row_count() as i64, items.row_count() as i64, users.others.len() as i64];
    add_up(task.agent, &mut totals)?;
    if totals[2] == 0 {
        return Err(Error::NoRecords);
    }
    let [user_count, item_count, pair_count] = totals.map(|total| total as u64);
    let objective = settings.objective.resolve(pair_count, user_count, item_count);
    let mean =
        if objective.are_ratings() { write_scale(task, &users.values, totals[2] as u64)? } else { 0.0 };
    let model = settings.model();
    let is_known = saved.is_some() || task.resumed;
    let mut sides = Vec::new();
    for (number, (matrix, pairs)) in
        [(FactorModel::USERS, users), (FactorModel::ITEMS, items)].into_iter().enumerate()
    {
        let (total, others) = (totals[number] as u64, totals[1 - number] as u64);
        let (weights, targets) = objective.weights(&pairs.values);
        let ridge = |row| objective.ridge(pairs.row(row).len(), others);
        let ridges = (0..pairs.row_count()).map(ridge).collect();
        let rows = first_rows(task, &model, (matrix, &pairs.keys), is_known)?;
        sides.push(Side { matrix, pairs, rows, total, weights, targets, ridges });
    }
    let [users, items] = sides.try_into().unwrap_or_else(|_| unreachable!("there are two sides"));
    let mut implicit = Vec::new();
    if settings.implicit_weight > 0.0 {
        let first = task.model.matrix_count() as u32 + LIST_MATRICES;
        for (matrix, side) in (first..).map(MatrixId).zip([&users, &items]) {
            let start = (settings.implicit_weight, saved.is_some());
            implicit.push(ImplicitFeatures::new(task, &model, (matrix, &side.pairs.keys), start)?);
        }
    }
    if saved.is_none() {
        items.push(task, model.width())?;
        let counts: Vec<i64> =
            (0..items.pairs.row_count()).map(|row| items.pairs.row(row).len() as i64).collect();
        task.agent.push(FactorModel::COUNTS, rows_of(&items.pairs.keys), Values::I64(&counts))?;
        task.agent.tick()?;
    }
    task.agent.barrier()?;
    Ok(Box::new(Factorization {
        settings,
        objective,
        width: model.width(),
        users,
        items,
        implicit,
        mean,
        validation,
    }))
}

/// Finds mean, lowest and highest rating of all tasks, writes them, and returns the mean.
pub(super) fn write_scale(task: &mut TrainTask<'_>, ratings: &[f32], count: u64) -> Result<f64, Error> {
    let ends = ratings.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &rating| {
        (f64::min(low, f64::from(rating)), f64::max(high, f64::from(rating)))
    });
    let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
    let has_own = of_all_tasks(task.agent, f64::from(u8::from(!ratings.is_empty())))?;
    let merge = |values: Vec<f64>| {
        values
            .into_iter()
            .zip(&has_own)
            .filter(|(_, has)| **has > 0.0)
            .map(|(x, _)| x)
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let high = merge(of_all_tasks(task.agent, finite(ends.1))?);
    let low = -merge(of_all_tasks(task.agent, -finite(ends.0))?);
    let fixed = FixedPoint::for_sums(high.abs().max(low.abs()), count);
    let mut sum = [ratings.iter().map(|&rating| fixed.steps(f64::from(rating))).sum()];
    add_up(task.agent, &mut sum)?;
    let mean = fixed.value(sum[0]) / count as f64;
    if task.agent.task() == 0 {
        task.agent.push(FactorModel::SCALE, ONE_ROW, Values::F64(&[mean, low, high]))?;
    }
    Ok(mean)
}

/// What a task keeps from iteration to iteration.
struct Factorization<'a> {
    settings: &'a Als,
    objective: Objective,
    width: usize,
    users: Side,
    items: Side,
    /// Of users and items; none if they are not used.
    implicit: Vec<ImplicitFeatures>,
    /// Mean of the ratings.
    mean: f64,
    /// Of choices.
    validation: Option<Validation>,
}

impl Factorization<'_> {
    /// Solves the rows of one side. Returns what the loss of its pairs is below that of zeros, and what it has read.
    fn half_step(
        &mut self,
        task: &mut TrainTask<'_>,
        (of_users, epoch): (bool, u64),
    ) -> Result<(f64, OtherRows), Error> {
        let Self { settings, objective, width, users, items, implicit, mean, .. } = self;
        let (own, other) = if of_users { (users, items) } else { (items, users) };
        let length = padded(*width);
        let (own_side, other_side) = if of_users { (0, 1) } else { (1, 0) };
        let mut right = None;
        let base = if objective.are_ratings() {
            task.agent.barrier()?;
            let added = implicit.get(other_side).map(|features| features.added_to(task, own, other.total));
            added.transpose()?.map(|added| {
                right = Some(added.right);
                added.base
            })
        } else {
            let sums = gramian(task.agent, &other.rows, length, other.total)?;
            Some(sums.iter().map(|x| (objective.gramian_factor() * x) as f32).collect::<Vec<f32>>())
        };
        let read = read_others(task, other.matrix, &own.pairs.other_keys, (*width, objective.are_ratings()))?;
        let ratings = objective.are_ratings().then(|| {
            let target = |(value, other): (&f32, &u32)| value - *mean as f32 - read.biases[*other as usize];
            own.pairs.values.iter().zip(&own.pairs.others).map(target).collect::<Vec<f32>>()
        });
        let equations = Equations {
            width: *width,
            base: base.as_deref(),
            right: right.as_deref(),
            others: &read.vectors,
            starts: &own.pairs.starts,
            positions: &own.pairs.others,
            weights: own.weights.as_deref(),
            targets: ratings.as_deref().or(own.targets.as_deref()),
            ridges: &own.ridges,
        };
        let mut gain = 0.0;
        if settings.steps > 0 {
            gain = equations.approach(&mut own.rows, settings.steps);
        } else {
            let mut work = ExactWork::default();
            for (row, x) in own.rows.chunks_exact_mut(length).enumerate() {
                equations.solve(row, x, &mut work).map_err(|_| no_solution(own.pairs.keys[row], of_users))?;
            }
        }
        if let Some(at) = own.rows.iter().position(|x| !x.is_finite()) {
            let feature = Some(FeatureLabel::new(own.pairs.keys[at / length]));
            let (step, advice) = (if of_users { 1 } else { 2 }, String::new());
            return Err(Error::Diverged { epoch: epoch + 1, step, loss: f64::NAN, feature, advice });
        }
        own.push(task, *width)?;
        if let Some(features) = implicit.get_mut(own_side) {
            features.solve(task, own, (other, &read.vectors), settings.steps.max(1))?;
        }
        Ok((gain, read))
    }

    /// The metrics of the own ratings, after the rows of the items were solved with these rows of the users.
    fn rating_metrics(&self, task: &TrainTask<'_>, users: &OtherRows) -> MetricAccumulator {
        let mut metrics = task.model.metric_accumulator();
        let (items, length) = (&self.items, padded(self.width));
        if let MetricAccumulator::Real(parts) = &mut metrics {
            for (row, x) in items.rows.chunks_exact(length).enumerate() {
                for pair in items.pairs.row(row) {
                    let user = items.pairs.others[pair] as usize;
                    let factors = product(x, &users.vectors[user * length..][..length]);
                    let rating = self.mean + f64::from(factors + users.biases[user]);
                    parts.add(rating, f64::from(items.pairs.values[pair]), 1.0);
                }
            }
        }
        metrics
    }

    /// The loss of choices without the penalty of the items.
    fn choice_metrics(&self, task: &TrainTask<'_>, gain: f64) -> MetricAccumulator {
        let mut metrics = task.model.metric_accumulator();
        let pairs = &self.users.pairs;
        let sum = |values: &Option<Vec<f32>>| match values {
            Some(values) => values.iter().map(|&x| f64::from(x)).sum(),
            None => pairs.others.len() as f64,
        };
        let loss = metrics.loss_mut();
        loss.loss_sum = sum(&self.users.targets) - gain;
        loss.weight_sum = pairs.others.len() as f64;
        loss.record_count = pairs.others.len() as u64;
        metrics
    }
}

fn no_solution(key: u64, of_users: bool) -> Error {
    let whose = if of_users { "user" } else { "item" };
    Error::unsuitable(format!(
        "the equations of the {whose} with the key {key} have no unique solution, because lambda is 0 or too small: raise \
         lambda, or use solver=cg"
    ))
}

impl Learner for Factorization<'_> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let (gain, _) = self.half_step(task, (true, epoch))?;
        let (_, users) = self.half_step(task, (false, epoch))?;
        let training = if self.settings.are_ratings() {
            self.rating_metrics(task, &users)
        } else {
            self.choice_metrics(task, gain)
        };
        task.agent.tick()?;
        task.agent.barrier()?;
        Ok(Some(EpochEnd {
            training,
            record_count: self.users.pairs.others.len() as u64,
            epoch_count: self.settings.iterations,
            is_stopped: false,
            is_last: epoch + 1 >= self.settings.iterations,
            notice: self.settings.objective.notice(self.objective).filter(|_| epoch == 0),
        }))
    }

    fn validate(&mut self, task: &mut TrainTask<'_>) -> Result<Option<MetricAccumulator>, Error> {
        self.validation.as_ref().map(|validation| validation.measure(task)).transpose()
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        encode(&())
    }
}
