//! Lloyd's iterations: assign every record to its nearest centre, move every centre to the mean of its records.
//!
//! A record is compared with the centres only if the triangle inequality allows that another centre has become the
//! nearest (Hamerly, "Making k-means even faster", SDM 2010): a task keeps for each record an upper bound of the
//! distance from its centre and a lower bound of that from all others, and moves the bounds as far as the centres have
//! moved. Only records that change their cluster change the sums at the servers.

use matrix::{Values, ValuesMut};
use serde::{Deserialize, Serialize};

use super::exchange::{gather_points, weight_sum};
use super::job::KMeans;
use super::model::{Model, empty_notice, metrics};
use super::params::Distance;
use super::points::{Centres, Points, SparsePoint, factor, squares_of, transposed};
use super::seeding;
use algo::coordinator::StepDecision;
use algo::error::Error;
use algo::job::TrainTask;
use algo::metric::MetricAccumulator;
use algo::metric::named::NamedAccumulator;
use algo::rows::{ONE_ROW, rows_of};
use algo::task_loop::{self, EpochEnd, Learner, TaskState};

/// Largest relative difference of two sums of squares that rounding to single precision explains.
const ROUNDING: f64 = 1e-4;
/// No cluster.
const NONE: u32 = u32::MAX;
/// Bounds are wider by this share of the norms, which covers the rounding of products in single precision.
const SLACK: f64 = 1e-6;

/// One task.
struct Lloyd<'a> {
    job: &'a KMeans,
    points: Points,
    share: Share<'a>,
    /// The inertia before the last iteration.
    before: f64,
}

/// What a task remembers from iteration to iteration.
#[derive(Serialize, Deserialize)]
struct LloydState {
    clusters: Vec<u32>,
    upper: Vec<f64>,
    lower: Vec<f64>,
    centres: Vec<f64>,
    squares: Vec<f64>,
    shifts: Vec<f64>,
    counts: Vec<f64>,
    inertia: f64,
}

/// Begins one task.
pub(super) fn begin<'a>(
    job: &'a KMeans,
    task: &mut TrainTask<'a>,
    saved: Option<&TaskState>,
) -> Result<Box<dyn Learner + 'a>, Error> {
    let model: &Model = task.model.of()?;
    let points = Points::read(task.data, model.distance)?;
    let mut share = Share::new(model, &points, task)?;
    if let Some(saved) = saved {
        share.restore(saved)?;
    } else {
        let centres = start(job, &points, &share, task)?;
        share.exact = centres.values.iter().map(|&value| f64::from(value)).collect();
        share.centres = centres;
    }
    let before = share.inertia;
    Ok(Box::new(Lloyd { job, points, share, before }))
}

impl Learner for Lloyd<'_> {
    fn train_epoch(&mut self, task: &mut TrainTask<'_>, epoch: u64) -> Result<Option<EpochEnd>, Error> {
        let Self { job, points, share, before } = self;
        if epoch > 0 {
            share.fill_empty_clusters(points, task)?;
        }
        let passed = share.assign(points);
        share.push(task)?;
        task.agent.tick()?;
        let (number, loss_sum) = (task.agent.task(), share.loss_bound(points));
        let flow = task.coordinator.report_progress(number, points.count() as u64, loss_sum);
        let stops = f64::from(u8::from(flow == StepDecision::Stop));
        let mut sums = [passed as f64, stops];
        task.agent.all_reduce(&mut sums)?;
        let [moved, stops] = sums;
        share.pull_centres(task)?;
        let inertia = share.inertia;
        let is_last = moved == 0.0
            || *before - inertia <= job.tolerance * inertia
            || epoch + 1 >= job.max_iterations
            || stops > 0.0;
        *before = inertia;
        let empty = share.empty_clusters().len();
        Ok(Some(EpochEnd {
            training: share.metrics(points, task),
            record_count: points.count() as u64,
            epoch_count: if is_last { epoch + 1 } else { job.max_iterations },
            is_stopped: stops > 0.0,
            is_last,
            notice: (is_last && empty > 0).then(|| empty_notice(empty, share.model.clusters)),
        }))
    }

    fn write_model(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        let (features, centres) = self.share.centres.owned(&self.share.features, &self.share.is_owner);
        centres.push(task.agent, &features)
    }

    fn save_state(&self) -> Result<Vec<u8>, Error> {
        let share = &self.share;
        task_loop::encode(&LloydState {
            clusters: share.clusters.clone(),
            upper: share.upper.clone(),
            lower: share.lower.clone(),
            centres: share.exact.clone(),
            squares: share.centres.squares.clone(),
            shifts: share.shifts.clone(),
            counts: share.counts.clone(),
            inertia: share.inertia,
        })
    }
}

/// The first centres: those of the model from which training continues, or chosen records.
fn start(
    job: &KMeans,
    points: &Points,
    share: &Share<'_>,
    task: &mut TrainTask<'_>,
) -> Result<Centres, Error> {
    let model = share.model;
    if !task.resumed {
        let chosen = seeding::choose(task.agent, points, (model.clusters, job.seeding, task.seed))?;
        return Ok(Centres::of_points(&chosen, &points.features));
    }
    check_features(model, &points.features, &share.is_owner, task)
}

/// What a task knows of its records and of the centres.
struct Share<'a> {
    model: &'a Model,
    features: Vec<u64>,
    /// Whether this task is the first of those that have the feature. Sums over features count each once.
    is_owner: Vec<bool>,
    /// Cluster of each record; [`NONE`] before the first assignment.
    clusters: Vec<u32>,
    /// Upper bound of the distance from the own centre.
    upper: Vec<f64>,
    /// Lower bound of the distance from every other centre.
    lower: Vec<f64>,
    centres: Centres,
    /// The centres in double precision, columns x k.
    exact: Vec<f64>,
    /// How far each centre has moved in the last step.
    shifts: Vec<f64>,
    /// Records of each cluster, by weight, over all tasks.
    counts: Vec<f64>,
    /// Changes of the sums since the last push: k x columns, and of the counts.
    changes: Vec<f64>,
    count_changes: Vec<f64>,
    /// Sum of weight x |x|^2 over all tasks, and of weights.
    square_sum: f64,
    weight_sum: f64,
    /// The objective of the clusters and their centres: the sum of squared distances, or of 1 - cosine.
    inertia: f64,
}

impl<'a> Share<'a> {
    fn new(model: &'a Model, points: &Points, task: &mut TrainTask<'_>) -> Result<Self, Error> {
        let (k, n, width) = (model.clusters, points.count(), points.width());
        let is_owner = own_features(&points.features, task)?;
        let squares = (0..n).map(|i| points.weight(i) * points.squares[i]).sum();
        let weight_sum = weight_sum(task.agent, points)?;
        let mut square_sum = [squares];
        task.agent.all_reduce(&mut square_sum)?;
        Ok(Self {
            model,
            features: points.features.clone(),
            is_owner,
            clusters: vec![NONE; n],
            upper: vec![f64::INFINITY; n],
            lower: vec![0.0; n],
            centres: Centres::default(),
            exact: vec![0.0; width * k],
            shifts: vec![0.0; k],
            counts: vec![0.0; k],
            changes: vec![0.0; width * k],
            count_changes: vec![0.0; k],
            square_sum: square_sum[0],
            weight_sum,
            inertia: f64::INFINITY,
        })
    }

    /// Continues with what the task has saved.
    fn restore(&mut self, saved: &TaskState) -> Result<(), Error> {
        let state: LloydState = saved.decode()?;
        let (records, k) = (self.clusters.len(), self.model.clusters);
        let is_per_record = [state.clusters.len(), state.upper.len(), state.lower.len()] == [records; 3];
        let is_per_centre = [state.squares.len(), state.shifts.len(), state.counts.len()] == [k; 3];
        if !is_per_record || !is_per_centre || state.centres.len() != self.exact.len() {
            let (actual, features) = (state.clusters.len(), state.centres.len() / k.max(1));
            return Err(saved.misfit(format!(
                "it has {actual} records with {features} features, and the task reads {records} records with {}",
                self.features.len()
            )));
        }
        self.centres.values = state.centres.iter().map(|&value| value as f32).collect();
        self.centres.squares = state.squares;
        self.exact = state.centres;
        (self.clusters, self.upper, self.lower) = (state.clusters, state.upper, state.lower);
        (self.shifts, self.counts, self.inertia) = (state.shifts, state.counts, state.inertia);
        Ok(())
    }

    /// Assigns all records; returns how many have changed their cluster.
    fn assign(&mut self, points: &Points) -> u64 {
        let largest = Shifts::new(&self.shifts);
        let slack = SLACK * self.centres.squares.iter().copied().fold(0.0, f64::max).sqrt();
        let mut open = Vec::new();
        for i in 0..points.count() {
            if self.clusters[i] == NONE {
                open.push(i as u32);
                continue;
            }
            self.upper[i] += self.shifts[self.clusters[i] as usize];
            self.lower[i] -= largest.of_others(self.clusters[i]);
            if self.upper[i] + slack + SLACK * points.squares[i].sqrt() >= self.lower[i] {
                open.push(i as u32);
            }
        }
        let centres = std::mem::take(&mut self.centres);
        let mut moved = 0;
        points.for_each_nearest(&open, &centres, |i, found| {
            (self.upper[i], self.lower[i]) = (found.first.sqrt(), found.second.sqrt());
            if found.centre != self.clusters[i] {
                self.move_record(points, i, found.centre);
                moved += 1;
            }
        });
        self.centres = centres;
        moved
    }

    /// The sum of weight x objective of the own records before the next move of the centres; at most a little too large.
    fn loss_bound(&self, points: &Points) -> f64 {
        let sum = (0..points.count()).map(|i| points.weight(i) * self.upper[i].powi(2)).sum::<f64>();
        match self.model.distance {
            Distance::Euclidean => sum,
            Distance::Cosine => sum / 2.0,
        }
    }

    fn move_record(&mut self, points: &Points, i: usize, to: u32) {
        let (width, weight) = (self.features.len(), points.weight(i));
        let from = std::mem::replace(&mut self.clusters[i], to);
        for (cluster, factor) in [(from, -weight), (to, weight)] {
            if cluster != NONE {
                let c = cluster as usize;
                points.add_to(i, factor, &mut self.changes[c * width..][..width]);
                self.count_changes[c] += factor;
            }
        }
    }

    /// Pushes the changes of the sums.
    fn push(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        if self.changes.iter().any(|change| *change != 0.0) {
            let turned = transposed(&self.changes, self.features.len());
            task.agent.push(Model::SUMS, rows_of(&self.features), Values::F64(&turned))?;
        }
        task.agent.push(Model::COUNTS, ONE_ROW, Values::F64(&self.count_changes))?;
        self.changes.fill(0.0);
        self.count_changes.fill(0.0);
        Ok(())
    }

    /// Pulls the sums and computes the centres and how far they have moved.
    fn pull_centres(&mut self, task: &mut TrainTask<'_>) -> Result<(), Error> {
        let k = self.model.clusters;
        let mut sums = vec![0.0; self.features.len() * k];
        task.agent.pull(Model::SUMS, rows_of(&self.features), ValuesMut::F64(&mut sums))?;
        task.agent.pull(Model::COUNTS, ONE_ROW, ValuesMut::F64(&mut self.counts))?;
        // |S|^2 of the new sums, and their products with the old centres.
        let mut products = vec![0.0; 2 * k];
        for ((row, old), _) in sums
            .chunks_exact(k)
            .zip(self.exact.chunks_exact(k))
            .zip(&self.is_owner)
            .filter(|(_, owner)| **owner)
        {
            let (squares, mixed) = products.split_at_mut(k);
            for c in 0..k {
                squares[c] += row[c] * row[c];
                mixed[c] += row[c] * old[c];
            }
        }
        task.agent.all_reduce(&mut products)?;
        let mut factors = vec![0.0; k];
        let mut explained = 0.0;
        for c in (0..k).filter(|&c| self.counts[c] > 0.0) {
            let (square, mixed) = (products[c], products[k + c]);
            factors[c] = factor(self.model.distance, self.counts[c], square);
            explained += square * factors[c];
            let new = square * factors[c] * factors[c];
            let shift = new + self.centres.squares[c] - 2.0 * mixed * factors[c];
            self.shifts[c] = shift.max(0.0).sqrt() + SLACK * new.sqrt();
            self.centres.squares[c] = new;
        }
        let whole = match self.model.distance {
            Distance::Euclidean => self.square_sum,
            Distance::Cosine => self.weight_sum,
        };
        self.inertia = (whole - explained).max(0.0);
        for (row, exact) in sums.chunks_exact(k).zip(self.exact.chunks_exact_mut(k)) {
            // The centre of an empty cluster stays where it is.
            for c in (0..k).filter(|&c| self.counts[c] > 0.0) {
                exact[c] = row[c] * factors[c];
            }
        }
        self.centres.values.clear();
        self.centres.values.extend(self.exact.iter().map(|&value| value as f32));
        Ok(())
    }

    fn empty_clusters(&self) -> Vec<usize> {
        (0..self.counts.len()).filter(|&c| self.counts[c] <= 0.0).collect()
    }

    /// Moves each empty cluster to one of the records that are farthest from their centres, as far as there are records
    /// that differ from their centres.
    fn fill_empty_clusters(&mut self, points: &Points, task: &mut TrainTask<'_>) -> Result<(), Error> {
        let empty = self.empty_clusters();
        if empty.is_empty() {
            return Ok(());
        }
        let mut far: Vec<(f64, usize)> = Vec::new();
        points.for_each_nearest(&points.all(), &self.centres, |i, found| {
            if found.first > SLACK * points.squares[i] && points.weight(i) > 0.0 {
                far.push((found.first, i));
            }
        });
        far.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        // Records that equal each other would become one cluster.
        far.dedup_by(|b, a| a.0 == b.0 && points.get(a.1) == points.get(b.1));
        far.truncate(empty.len());
        // The distances of the candidates of all tasks, each task in slots of its own.
        let mut distances = vec![0.0; task.agent.task_count() as usize * empty.len()];
        let own = task.agent.task() as usize * empty.len();
        distances[own..].iter_mut().zip(&far).for_each(|(slot, (distance, _))| *slot = *distance);
        task.agent.all_reduce(&mut distances)?;
        let mut order: Vec<usize> = (0..distances.len()).filter(|&slot| distances[slot] > 0.0).collect();
        order.sort_by(|&a, &b| distances[b].total_cmp(&distances[a]).then(a.cmp(&b)));
        order.truncate(empty.len());
        order.sort_unstable();
        let own_slots = own..own + empty.len();
        let mut points_of_task = Vec::new();
        for (slot, &cluster) in order.iter().zip(&empty).filter(|(slot, _)| own_slots.contains(slot)) {
            let record = far[slot - own].1;
            points_of_task.push(points.get(record));
            self.move_record(points, record, cluster as u32);
        }
        let chosen = gather_points(task.agent, &points_of_task)?;
        for (point, &cluster) in chosen.iter().zip(&empty) {
            self.place(cluster, point);
        }
        Ok(())
    }

    /// Moves a centre to a record.
    fn place(&mut self, cluster: usize, point: &SparsePoint) {
        let k = self.model.clusters;
        let centre = Centres::of_points(std::slice::from_ref(point), &self.features);
        for (f, value) in centre.values.iter().enumerate() {
            self.centres.values[f * k + cluster] = *value;
            self.exact[f * k + cluster] = f64::from(*value);
        }
        self.centres.squares[cluster] = centre.squares[0];
        // Every record has to be compared with it.
        self.shifts[cluster] = f64::INFINITY;
    }

    /// The metrics of all tasks: task 0 has the objective, every task its records.
    fn metrics(&self, points: &Points, task: &TrainTask<'_>) -> MetricAccumulator {
        let mut parts = NamedAccumulator { metrics: metrics(), ..Default::default() };
        parts.loss.record_count = points.count() as u64;
        parts.loss.weight_sum = points.all_weights().sum();
        if task.agent.task() == 0 {
            parts.loss.loss_sum = self.inertia;
            parts.metrics[0].sum = self.inertia;
        }
        parts.metrics[0].weight = parts.loss.weight_sum;
        MetricAccumulator::Named(parts)
    }
}

/// The largest shift of the centres, and the largest of the others.
struct Shifts {
    largest: (usize, f64),
    second: f64,
}

impl Shifts {
    fn new(shifts: &[f64]) -> Self {
        let mut largest_two = Self { largest: (0, 0.0), second: 0.0 };
        for (c, &shift) in shifts.iter().enumerate() {
            if shift > largest_two.largest.1 {
                largest_two = Self { largest: (c, shift), second: largest_two.largest.1 };
            } else if shift > largest_two.second {
                largest_two.second = shift;
            }
        }
        largest_two
    }

    /// The largest shift of another centre than `cluster`.
    fn of_others(&self, cluster: u32) -> f64 {
        if self.largest.0 == cluster as usize { self.second } else { self.largest.1 }
    }
}

/// The centres of the earlier model. It must have no features but those of the training data: nothing would move its
/// centres there.
pub(super) fn check_features(
    model: &Model,
    features: &[u64],
    is_owner: &[bool],
    task: &mut TrainTask<'_>,
) -> Result<Centres, Error> {
    let centres = Centres::pull(task.agent, features, model.clusters)?;
    let mut squares = squares_of(&centres.owned(features, is_owner).1.values, model.clusters);
    task.agent.all_reduce(&mut squares)?;
    let is_near = |(actual, square): (&f64, &f64)| (actual - square).abs() <= ROUNDING * square;
    if squares.iter().zip(&centres.squares).all(is_near) {
        return Ok(centres);
    }
    let reason = "the earlier model has features that the training data lack, so its centres cannot follow the data: \
                  train without --from, or on data with all features of the model";
    Err(Error::UnsuitableData { reason: reason.to_owned() })
}

/// Which of these features belong to this task: a feature belongs to the first of the tasks that have it.
pub(super) fn own_features(features: &[u64], task: &mut TrainTask<'_>) -> Result<Vec<bool>, Error> {
    if features.is_empty() {
        task.agent.barrier()?;
        return Ok(Vec::new());
    }
    // A row begins with 0, and the push rule keeps the smallest value.
    let own = i64::from(task.agent.task()) - i64::from(task.agent.task_count());
    let rows = rows_of(features);
    task.agent.push(Model::OWNERS, rows, Values::I64(&vec![own; features.len()]))?;
    task.agent.barrier()?;
    let mut owners = vec![0; features.len()];
    task.agent.pull(Model::OWNERS, rows, ValuesMut::I64(&mut owners))?;
    Ok(owners.into_iter().map(|owner| owner == own).collect())
}
