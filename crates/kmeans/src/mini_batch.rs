//! Mini-batches: each step assigns the records of a batch and moves each centre to the mean of all records that were
//! ever assigned to it. The data are read batch by batch and not kept.
//!
//! A step pulls the sums of all features that the task has seen, not only those of its batch, because the norm of a
//! centre has a part from each of its features. Features that only other tasks have seen are left out of the norms in
//! training; the norms that are saved have all of them.

use data::Batch;
use matrix::{Agent, Values, ValuesMut};
use serde::{Deserialize, Serialize};

use super::job::KMeans;
use super::lloyd::{check_features, own_features};
use super::model::{Model, empty_notice};
use super::points::{Centres, Nearest, Points, factor, squares_of, transposed};
use super::{score, seeding};
use algo::batch_loop::{self, BatchLearner, EpochSums, StepSums, check_weight};
use algo::error::Error;
use algo::job::{Epochs, TrainTask};
use algo::metric::MetricAccumulator;
use algo::rows::{ONE_ROW, rows_of};
use algo::task_loop::{Learner, TaskState};

/// The first centres are chosen among at least this many times as many records as there are clusters or records in a
/// batch, where there are so many.
const SAMPLE: usize = 3;

/// Begins one task.
pub(super) fn begin<'a>(
    job: &'a KMeans,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let model: &Model = task.model.of()?;
    batch_loop::begin(Epochs::Fixed(job.epochs), saved, |state: Option<SeenFeatures>| {
        let is_new = state.is_none() && !task.resumed;
        let sample = if is_new { seed(job, model, task)? } else { Vec::new() };
        let resumed = task.resumed;
        let seen = state.unwrap_or(SeenFeatures { features: Vec::new(), are_unchecked: resumed });
        Ok(Step { model, seen, sample })
    })
}

/// Chooses the first centres among the first records of epoch 0 of each task, and writes them. Returns the batches of
/// these records.
fn seed(job: &KMeans, model: &Model, task: &mut TrainTask<'_>) -> Result<Vec<Batch>, Error> {
    let mut sample = Vec::new();
    let mut count = 0;
    task.data.start_epoch(0)?;
    while count < SAMPLE * job.clusters.max(job.batch_size)
        && let Some(batch) = task.data.next()?
    {
        count += (0..batch.record_count()).filter(|&r| batch.weight(r) > 0.0).count();
        sample.push(batch.clone());
    }
    let points = Points::of_batches(sample.iter().collect(), model.distance)?;
    let chosen = seeding::choose(task.agent, &points, (model.clusters, job.seeding, task.seed))?;
    // Task 0 writes them.
    let own = if task.agent.task() == 0 { &chosen[..] } else { &[] };
    let centres = Points::of_points(own, Vec::new());
    centres.as_centres().push(task.agent, &centres.features)?;
    Ok(sample)
}

/// The features that a task has seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SeenFeatures {
    /// Ascending.
    features: Vec<u64>,
    /// Whether they must still be compared with those of the earlier model.
    are_unchecked: bool,
}

/// What a task keeps from step to step.
struct Step<'a> {
    model: &'a Model,
    seen: SeenFeatures,
    /// The first batches of epoch 0, until they are learned.
    sample: Vec<Batch>,
}

impl Step<'_> {
    fn add_features(&mut self, columns: &[u64]) {
        let known = self.seen.features.len();
        for key in columns {
            if self.seen.features[..known].binary_search(key).is_err() {
                self.seen.features.push(*key);
            }
        }
        if self.seen.features.len() > known {
            self.seen.features.sort_unstable();
        }
    }

    /// The centres over the features of the task: the means of their records, or the first centres of clusters that
    /// have none.
    fn pull_centres(&self, agent: &mut dyn Agent) -> Result<Centres, Error> {
        let k = self.model.clusters;
        let (mut sums, mut counts) = (vec![0.0; self.seen.features.len() * k], vec![0.0; k]);
        agent.pull(Model::SUMS, rows_of(&self.seen.features), ValuesMut::F64(&mut sums))?;
        agent.pull(Model::COUNTS, ONE_ROW, ValuesMut::F64(&mut counts))?;
        let mut centres = if counts.contains(&0.0) {
            Centres::pull(agent, &self.seen.features, k)?
        } else {
            Centres { values: vec![0.0; sums.len()], squares: vec![0.0; k] }
        };
        let squares = squares_of(&sums, k);
        let mut factors = vec![0.0; k];
        for c in (0..k).filter(|&c| counts[c] > 0.0) {
            factors[c] = factor(self.model.distance, counts[c], squares[c]);
            centres.squares[c] = squares[c] * factors[c] * factors[c];
        }
        for (row, values) in sums.chunks_exact(k).zip(centres.values.chunks_exact_mut(k)) {
            for c in (0..k).filter(|&c| counts[c] > 0.0) {
                values[c] = (row[c] * factors[c]) as f32;
            }
        }
        Ok(centres)
    }

    /// Writes the centres for prediction. Afterwards every task can read them.
    fn write_centres(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        let centres = self.pull_centres(task.agent)?;
        let is_owner = own_features(&self.seen.features, task)?;
        if std::mem::take(&mut self.seen.are_unchecked) {
            check_features(self.model, &self.seen.features, &is_owner, task)?;
        }
        let (features, mut centres) = centres.owned(&self.seen.features, &is_owner);
        centres.squares = squares_of(&centres.values, self.model.clusters);
        task.agent.all_reduce(&mut centres.squares)?;
        centres.push(task.agent, &features)
    }
}

impl BatchLearner for Step<'_> {
    type State = SeenFeatures;

    fn state(&self) -> SeenFeatures {
        self.seen.clone()
    }

    fn take_sample(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.sample)
    }

    fn step(
        &mut self,
        agent: &mut dyn Agent,
        batch: &Batch,
        _: Option<&Batch>,
        metrics: &mut MetricAccumulator,
    ) -> Result<StepSums, Error> {
        let k = self.model.clusters;
        self.add_features(&batch.columns);
        let points = Points::of_batches(vec![batch], self.model.distance)?;
        let all = self.pull_centres(agent)?;
        let mut centres = Centres { values: Vec::with_capacity(points.width() * k), squares: all.squares };
        for key in &points.features {
            let f = self.seen.features.binary_search(key).expect("the features of the batch were added");
            centres.values.extend_from_slice(&all.values[f * k..][..k]);
        }
        let MetricAccumulator::Named(parts) = metrics else { unreachable!("the model makes them") };
        let before = parts.loss;
        let mut counts = vec![0.0; k];
        let mut clusters = vec![0; points.count()];
        points.for_each_nearest(&points.all(), &centres, |i, nearest: Nearest| {
            let weight = points.weight(i);
            score::add_to_metrics(self.model, &nearest, weight, parts);
            counts[nearest.centre as usize] += weight;
            clusters[i] = nearest.centre as usize;
        });
        let loss = parts.loss.loss_sum - before.loss_sum;
        let weight = parts.loss.weight_sum - before.weight_sum;
        let sums = StepSums { loss, positive_count: 0, weight };
        if !loss.is_finite() {
            return Ok(sums);
        }
        let width = points.width();
        let mut totals = vec![0.0; k * width];
        for (i, &c) in clusters.iter().enumerate() {
            points.add_to(i, points.weight(i), &mut totals[c * width..][..width]);
        }
        if width > 0 {
            let turned = transposed(&totals, width);
            agent.push(Model::SUMS, rows_of(&points.features), Values::F64(&turned))?;
        }
        agent.push(Model::COUNTS, ONE_ROW, Values::F64(&counts))?;
        agent.tick()?;
        Ok(sums)
    }

    fn end_epoch(&mut self, task: &mut TrainTask<'_>, end: &EpochSums) -> Result<Option<String>, Error> {
        if !end.is_stopped {
            check_weight(end.totals.record_count, end.totals.weight)?;
        }
        self.write_centres(task)?;
        let clusters = self.model.clusters;
        let mut counts = vec![0.0; clusters];
        task.agent.pull(Model::COUNTS, ONE_ROW, ValuesMut::F64(&mut counts))?;
        let empty = counts.iter().filter(|count| **count == 0.0).count();
        Ok((end.is_last && empty > 0).then(|| empty_notice(empty, clusters)))
    }
}
