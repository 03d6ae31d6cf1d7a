//! A task: it keeps its records as bins, and grows the trees of an iteration together with the other tasks.

use math::random::{NamedDraws, Purpose};
use math::reduction::FixedPoint;
use matrix::Values;

use super::grow::{Grower, TreeInput, TreeSize};
use super::histogram::LARGEST_GRADIENT;
use super::histogram::partitions;
use super::histogram::quantization::Quantizer;
use super::histogram::store::Histograms;
use super::importances::{Importances, add_importances};
use super::leaves;
use super::model::Model;
use super::objective::{
    Objective, Ranking, Slopes, add_losses, add_to_metrics, percentiles, position_of, slopes,
};
use super::params::Params;
use super::records::Records;
use super::sampling::{FeatureSample, RecordSample};
use super::scoring::TreeScorer;
use super::split::SplitRule;
use super::tree::Tree;
use super::validation::Validation;
use algo::batch_loop::{check_classes, check_weight};
use algo::coordinator::StepDecision;
use algo::error::Error;
use algo::exchange::Exchange;
use algo::family::Model as _;
use algo::job::TrainTask;
use algo::labels::class_of;
use algo::loss::Loss;
use algo::metric::MetricAccumulator;
use algo::rows::{ONE_ROW, rows_of};
use algo::task_loop::{self, EpochEnd, Learner, TaskState};

/// One task.
struct Boosting<'a> {
    params: &'a Params,
    model: &'a Model,
    records: Records,
    /// Records x width.
    scores: Vec<f64>,
    base: Vec<f64>,
    slopes: Slopes,
    /// The groups of `lambdarank`.
    ranking: Option<Ranking>,
    packed: Vec<u64>,
    /// Whether each record is in the sample of the iteration; empty: all are.
    is_drawn: Vec<bool>,
    grower: Grower,
    /// Iterations of the model before this training.
    first: u64,
    seed: u64,
    /// Records of the tasks before this one.
    records_before: u64,
    validation: Option<Validation>,
    /// The trees of the last iteration.
    last: Vec<Tree>,
}

/// Begins one task.
pub(super) fn begin<'a>(
    params: &'a Params,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let model: &Model = task.model.of()?;
    let has_trees = saved.is_some() || task.resumed;
    let (mut scores, mut batch_scores, mut scorer) = (Vec::new(), Vec::new(), TreeScorer::new(model));
    let agent = &mut *task.agent;
    let mut records = Records::read(task.data, model.features(), |batch| {
        if has_trees {
            scorer.score(agent, batch, &mut batch_scores)?;
            scores.extend_from_slice(&batch_scores);
        }
        Ok(())
    })?;
    model.objective.read_labels(&mut records.columns.labels)?;
    let monotone = |number: u32| model.constraints.monotone.get(number as usize).copied().unwrap_or(0);
    let features = (0..)
        .zip(records.features())
        .map(|(number, feature)| feature.bins(number, monotone(number)))
        .collect();
    let is_shared = task.agent.task_count() > 1;
    let histograms = Histograms::new(features, model.leaves as usize, is_shared);
    if is_shared && saved.is_none() && task.agent.task() == 0 {
        partitions::push_features(&mut Exchange::new(task.agent), histograms.features())?;
    }
    let mut learner = Boosting {
        params,
        model,
        records,
        scores,
        base: Vec::new(),
        slopes: Slopes::default(),
        ranking: None,
        packed: Vec::new(),
        is_drawn: Vec::new(),
        grower: Grower::new(histograms),
        first: 0,
        seed: task.seed,
        records_before: 0,
        validation: None,
        last: Vec::new(),
    };
    learner.start(task, has_trees)?;
    if let Some(saved) = saved {
        learner.first = saved.decode()?;
    }
    Ok(Box::new(learner))
}

impl Boosting<'_> {
    /// Finds the score before the first tree, or takes over that of the model.
    fn start(&mut self, task: &mut TrainTask<'_>, has_trees: bool) -> Result<(), Error> {
        let own = (task.agent.task() as usize, task.agent.task_count() as usize);
        let mut exchange = Exchange::new(task.agent);
        self.records_before = position_of(self.records.count(), own, &mut exchange)?.before as u64;
        if let Objective::LambdaRank { truncation } = self.model.objective {
            self.ranking = Some(Ranking::new(truncation, &self.records.columns, own, &mut exchange)?);
        }
        let means = self.means(task)?;
        let width = self.model.width();
        if has_trees {
            let mut row = vec![0.0; 1 + width];
            task.agent.pull(Model::ENSEMBLE, ONE_ROW, matrix::ValuesMut::F64(&mut row))?;
            self.first = row[0] as u64;
            self.base = row.split_off(1);
        } else {
            if task.agent.task() == 0 {
                let by_key = self.model.features().by_key;
                let rows: Importances = by_key
                    .iter()
                    .map(|(&key, meaning)| (key, [0.0, 0.0, 1.0 + f64::from(meaning.feature)]))
                    .collect();
                push_importances(task, rows)?;
            }
            self.base = self.base_scores(task, &means)?;
            self.scores = self.base.repeat(self.records.count());
        }
        Ok(())
    }

    /// The scores before the first tree.
    fn base_scores(&self, task: &mut TrainTask<'_>, means: &[f64]) -> Result<Vec<f64>, Error> {
        let columns = &self.records.columns;
        let Some(alpha) = self.model.objective.percentile() else {
            return self.model.objective.base_scores(means);
        };
        let all = columns.labels.iter().enumerate().map(|(r, label)| (*label, f64::from(columns.weight(r))));
        percentiles(std::iter::once(all), alpha, &mut Exchange::new(task.agent))
    }

    /// The mean label, or the share of each class, over all records, exact for any division of them.
    fn means(&self, task: &mut TrainTask<'_>) -> Result<Vec<f64>, Error> {
        let (objective, classes) = self.model.labels();
        let is_softmax = objective == Objective::Softmax;
        let columns = &self.records.columns;
        let mut exchange = Exchange::new(task.agent);
        let largest = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(0.0, |a: f64, b| a.max(b.abs()));
        let weights = || (0..columns.labels.len()).map(|r| f64::from(columns.weight(r)));
        let mut most = [largest(&mut columns.labels.iter().copied()), largest(&mut weights())];
        exchange.max(&mut most)?;
        let mut counts =
            [columns.labels.len() as i64, columns.labels.iter().filter(|label| **label > 0.0).count() as i64];
        exchange.sum(&mut counts)?;
        let count = counts[0] as u64;
        let (of_weights, of_labels) =
            (FixedPoint::for_sums(most[1], count), FixedPoint::for_sums(most[0] * most[1], count));
        let mut sums = vec![0i64; 1 + self.model.width()];
        for (weight, &label) in weights().zip(&columns.labels) {
            sums[0] += of_weights.steps(weight);
            if is_softmax {
                sums[1 + class_of(classes, label)?] += of_weights.steps(weight);
            } else {
                sums[1] += of_labels.steps(weight * label);
            }
        }
        exchange.sum(&mut sums)?;
        let weight = of_weights.value(sums[0]);
        check_weight(count, weight)?;
        check_classes(count, counts[1] as u64, objective.shared_loss().unwrap_or(Loss::Squared))?;
        let unit = if is_softmax { of_weights } else { of_labels };
        Ok(sums[1..].iter().map(|sum| unit.value(*sum) / weight).collect())
    }

    fn metrics(&mut self, is_full: bool) -> Result<MetricAccumulator, Error> {
        let mut parts = self.model.metric_accumulator();
        let (labels, columns) = (self.model.labels(), &self.records.columns);
        let mut slopes = Vec::new();
        if is_full {
            add_to_metrics(labels, columns, &self.scores, &mut slopes, &mut parts)?;
        } else if let Some(ranking) = &self.ranking {
            ranking.add_losses(&mut parts);
        } else {
            add_losses(labels, columns, &self.scores, &mut slopes, &mut parts)?;
        }
        Ok(parts)
    }

    /// Takes the records that are not in the sample of an iteration out of the gradients.
    fn draw_records(&mut self, iteration: u64, exchange: &mut Exchange<'_>) -> Result<(), Error> {
        // The first gradients do not say which records are hard.
        let is_early = (iteration as f64) * self.params.learning_rate < 1.0;
        let sample = match self.params.records {
            RecordSample::LargeGradients { .. } if is_early => RecordSample::All,
            sample => sample,
        };
        let draws = NamedDraws::new(self.seed, Purpose::Sample, 2 * iteration);
        let columns = &self.records.columns;
        let (slopes, is_drawn) = (&mut self.slopes, &mut self.is_drawn);
        sample.draw((draws, self.records_before), columns, slopes, is_drawn, exchange)
    }

    /// What to tell the user if a few gradients are so large that the integers of the others do not show their differences.
    fn rounding_notice(&self, exchange: &mut Exchange<'_>) -> Result<Option<String>, Error> {
        /// Gradients above this share of the largest one are large.
        const LARGE: f64 = 1.0 / 16.0;
        /// Steps of the integers in a mean difference, below which rounding is felt.
        const FEW_STEPS: f64 = 8.0;
        let mut most = [self.slopes.gradients.iter().fold(0.0, |a: f64, b| a.max(b.abs()))];
        exchange.max(&mut most)?;
        let others = || self.slopes.gradients.iter().filter(|gradient| gradient.abs() <= LARGE * most[0]);
        let mut count = [others().count() as i64];
        exchange.sum(&mut count)?;
        let fixed = FixedPoint::for_sums(most[0], count[0] as u64);
        let mut mean = |steps: &mut dyn Iterator<Item = f64>| {
            let mut sum = [steps.map(|x| fixed.steps(x)).sum()];
            exchange.sum(&mut sum)?;
            Ok::<_, Error>(fixed.value(sum[0]) / count[0].max(1) as f64)
        };
        let center = mean(&mut others().copied())?;
        let difference = mean(&mut others().map(|gradient| (gradient - center).abs()))?;
        // Equal gradients, but for the rounding of their sum, have no differences to lose.
        let has_differences = difference > 1e-9 * center.abs();
        let is_felt = has_differences && difference * LARGEST_GRADIENT < FEW_STEPS * most[0];
        Ok(is_felt.then(|| {
            format!(
                "a few labels or weights are so large that splits see little of the other records: gradients have 15 bits, and \
                 the largest is {:.0} times the mean difference of the others. Cut the largest labels and weights off, or \
                 train on the logarithms of the labels",
                most[0] / difference
            )
        }))
    }

    /// Grows the tree of a class, sets the values of its leaves and adds them to the scores.
    fn grow(&mut self, exchange: &mut Exchange<'_>, class: usize, tree: u64) -> Result<Tree, Error> {
        let (count, width) = (self.records.count(), self.model.width());
        let gradients = &self.slopes.gradients[class * count..][..count];
        let hessians = &self.slopes.hessians[class * count..][..count];
        let largest = |numbers: &[f64]| numbers.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let mut most = [largest(gradients), largest(hessians)];
        exchange.max(&mut most)?;
        let quantizer = Quantizer {
            bits: self.params.gradient_bits,
            seed: self.seed,
            tree,
            records_before: self.records_before,
        };
        let units = quantizer.units(most);
        let rule = SplitRule {
            gradient_unit: units[0],
            hessian_unit: units[1],
            extra_draws: self.params.rule.extra_draws.map(|_| (self.seed, tree)),
            ..self.params.rule
        };
        quantizer.pack(gradients, hessians, units, &mut self.packed);
        for (word, _) in self.packed.iter_mut().zip(&self.is_drawn).filter(|(_, is_drawn)| !**is_drawn) {
            // It goes down the tree without counting.
            *word = 0;
        }
        let columns = &self.records.columns;
        let sample =
            (0..count as u32).filter(|&r| columns.weights.is_empty() || columns.weight(r as usize) > 0.0);
        let size = TreeSize {
            leaves: self.model.leaves as usize,
            depth: self.params.depth,
            is_depth_wise: self.params.is_depth_wise,
        };
        let features = FeatureSample {
            seed: self.seed,
            tree,
            feature_count: self.records.features().len(),
            tree_share: self.params.feature_share,
            level_share: self.params.level_share,
            interactions: &self.model.constraints.interactions,
        };
        let (records, packed) = (&self.records, &self.packed[..]);
        let input = TreeInput { records, packed, rule: &rule, size, sample: &features };
        let grown = self.grower.grow(input, sample, exchange)?;
        let mut tree = grown.tree;
        let (leaves, count) = (&grown.leaves, tree[0].count as u64);
        let percentile = self.model.objective.percentile();
        let values = match percentile {
            Some(alpha) => leaves::residuals(leaves, alpha, (columns, &self.scores[..]), exchange)?,
            None => leaves::newton_steps(leaves, (gradients, hessians), most, count, &rule, exchange)?,
        };
        for (leaf, value) in leaves.iter().zip(values) {
            let node = &mut tree[leaf.node];
            let value = match percentile {
                Some(_) => value,
                None => rule.bounded(value, node.count, leaf.parent, leaf.limits),
            };
            node.value = self.params.learning_rate * value;
            for &r in leaf.records {
                self.scores[r as usize * width + class] += node.value;
            }
        }
        Ok(tree)
    }

    /// Pushes the trees of an iteration and what they say of the features.
    fn push(&self, task: &mut TrainTask<'_>, iteration: u64, trees: &[Tree]) -> Result<(), Error> {
        let tables = self.model.tables();
        for (number, tree) in (iteration * trees.len() as u64..).zip(trees) {
            tables.push(task.agent, number, tree)?;
        }
        let mut row = vec![(iteration + 1) as f64];
        row.extend_from_slice(&self.base);
        task.agent.push(Model::ENSEMBLE, ONE_ROW, Values::F64(&row))?;
        let mut importances = Importances::new();
        for tree in trees {
            add_importances(&self.model.features, tree, &mut importances);
        }
        push_importances(task, importances)
    }
}

/// Adds to the importances of keys.
fn push_importances(task: &mut TrainTask<'_>, rows: Importances) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let keys: Vec<u64> = rows.keys().copied().collect();
    let values: Vec<f64> = rows.into_values().flatten().collect();
    Ok(task.agent.push(Model::IMPORTANCES, rows_of(&keys), Values::F64(&values))?)
}

impl Learner for Boosting<'_> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let (width, count) = (self.model.width(), self.records.count());
        let is_end = epoch == 0 || epoch + 1 >= self.params.iterations;
        if let Some(ranking) = &mut self.ranking {
            ranking.update(&self.scores, &mut Exchange::new(task.agent))?;
        }
        let training = self.metrics(is_end || task.validation.is_some())?;
        let flow =
            task.coordinator.report_progress(task.agent.task(), count as u64, training.loss().loss_sum);
        let mut exchange = Exchange::new(task.agent);
        let mut stops = [f64::from(u8::from(flow == StepDecision::Stop))];
        exchange.max(&mut stops)?;
        let is_stopped = stops[0] > 0.0;
        let mut is_done = is_stopped;
        self.last.clear();
        let mut notice = None;
        if !is_stopped {
            let (columns, (objective, classes)) = (&self.records.columns, self.model.labels());
            match &self.ranking {
                Some(ranking) => ranking.slopes(columns, &mut self.slopes),
                None => slopes(objective, classes, &self.scores, columns, &mut self.slopes)?,
            }
            if epoch == 0 && self.first == 0 {
                notice = self.rounding_notice(&mut exchange)?;
            }
            let iteration = self.first + epoch;
            self.draw_records(iteration, &mut exchange)?;
            let number = |class: usize| iteration * width as u64 + class as u64;
            let trees = (0..width)
                .map(|class| self.grow(&mut exchange, class, number(class)))
                .collect::<Result<Vec<_>, _>>()?;
            is_done = trees.iter().all(|tree| tree.len() == 1);
            if task.agent.task() == 0 {
                self.push(task, iteration, &trees)?;
            }
            self.last = trees;
        }
        task.agent.tick()?;
        task.agent.barrier()?;
        let is_last = is_done || epoch + 1 >= self.params.iterations;
        if is_done && !is_stopped {
            notice = Some(format!("iteration {}: no split gains anything, so training ends", epoch + 1));
        }
        Ok(Some(EpochEnd {
            training,
            record_count: count as u64,
            epoch_count: if is_last { epoch + 1 } else { self.params.iterations },
            is_stopped,
            is_last,
            notice,
        }))
    }

    fn validate(&mut self, task: &mut TrainTask<'_>) -> Result<Option<MetricAccumulator>, Error> {
        if task.validation.is_none() {
            return Ok(None);
        }
        match &mut self.validation {
            Some(validation) => validation.add(self.model, &self.last),
            empty => *empty = Validation::read(task, self.model)?,
        }
        self.validation.as_ref().map(|validation| validation.metrics(self.model)).transpose()
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        task_loop::encode(&self.first)
    }
}
