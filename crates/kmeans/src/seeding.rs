//! The first centres: records of the data, far from each other.
//!
//! **Sources.** Arthur, Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007, with several trials a
//! round as their section 7 proposes; Bahmani et al., "Scalable k-means++", VLDB 2012 (k-means||, algorithm 2).
//!
//! Each task needs the distances of its own records only. What all must know are the chosen records and the sums of the
//! distances. Random numbers depend on the seed, the task and the round.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use math::hash::mix64;
use math::random::{Purpose, RandomStream, stream};
use matrix::{Agent, LocalConfig, LocalStore};

use super::exchange::{gather, gather_points, position_of, weight_sum};
use super::params::Seeding;
use super::points::{BLOCK, Centres, Points, SparsePoint};
use algo::error::Error;

/// Rounds of k-means||.
const ROUNDS: u64 = 5;
/// Records that a round of k-means|| chooses on average, for each centre.
const OVERSAMPLING: f64 = 2.0;
/// Number of the random stream that all tasks share. Tasks have numbers of 32 bits.
const SHARED: u64 = u64::MAX;

/// The squared distance of each record from its nearest centre so far, and which that is.
struct Distances {
    all: Vec<u32>,
    squared: Vec<f64>,
    nearest: Vec<u32>,
    centre_count: u32,
}

impl Distances {
    fn new(points: &Points) -> Self {
        let count = points.count();
        Self {
            all: points.all(),
            squared: vec![f64::INFINITY; count],
            nearest: vec![0; count],
            centre_count: 0,
        }
    }

    /// Adds centres.
    fn add(&mut self, points: &Points, centres: &[SparsePoint]) {
        if centres.is_empty() {
            return;
        }
        let first = self.centre_count;
        points.for_each_nearest(&self.all, &Centres::of_points(centres, &points.features), |i, found| {
            if found.first < self.squared[i] {
                self.squared[i] = found.first;
                self.nearest[i] = first + found.centre;
            }
        });
        self.centre_count += centres.len() as u32;
    }

    /// The sum of the weighted distances if each of these centres were added, and the squared distances of each record
    /// from them.
    fn with_each(&self, points: &Points, trials: &[SparsePoint]) -> (Vec<f64>, Vec<f64>) {
        let centres = Centres::of_points(trials, &points.features);
        let mut sums = vec![0.0; trials.len()];
        let mut squared = Vec::with_capacity(points.count() * trials.len());
        let (mut gathered, mut products) = (Vec::new(), Vec::new());
        for block in self.all.chunks(BLOCK) {
            points.products(block, &centres, &mut gathered, &mut products);
            for (&i, products) in block.iter().zip(products.chunks_exact(trials.len())) {
                let i = i as usize;
                for ((sum, &product), square) in sums.iter_mut().zip(products).zip(&centres.squares) {
                    let distance = (points.squares[i] + square - 2.0 * f64::from(product)).max(0.0);
                    *sum += points.weight(i) * distance.min(self.squared[i]);
                    squared.push(distance);
                }
            }
        }
        (sums, squared)
    }

    fn weighted<'a>(&'a self, points: &'a Points) -> impl Iterator<Item = f64> + Clone + 'a {
        points.all_weights().zip(&self.squared).map(|(weight, square)| weight * square)
    }
}

/// Chooses `k` records of all tasks; every task gets the same.
///
/// # Errors
/// [`Error::UnsuitableData`] if the tasks together have fewer records with a weight above 0; [`Error::NoRecords`] and
/// [`Error::NoWeight`] if they have none.
pub(super) fn choose(
    agent: &mut dyn Agent,
    points: &Points,
    (k, seeding, seed): (usize, Seeding, u64),
) -> Result<Vec<SparsePoint>, Error> {
    let weight_sum = weight_sum(agent, points)?;
    let weighted = points.all_weights().filter(|weight| *weight > 0.0).count();
    let record_count: f64 = gather(agent, weighted as f64)?.iter().sum();
    // A record of weight w counts as w records; weights below 1 do not make their number smaller.
    if record_count.max(weight_sum) < k as f64 {
        let reason = format!(
            "k={k} is more than the {record_count} training records with a weight above 0: choose a smaller k, or give \
             more data"
        );
        return Err(Error::UnsuitableData { reason });
    }
    let mut random = stream(seed, Purpose::Seeding, SHARED, 0);
    match seeding {
        Seeding::PlusPlus => plus_plus(agent, points, k, &mut random),
        Seeding::Parallel => parallel(agent, points, k, seed, &mut random),
        Seeding::Random => {
            let equal = EqualRecords::new(points);
            let (mut left, mut chosen) = (points.all_weights().collect::<Vec<_>>(), Vec::new());
            while chosen.len() < k {
                let drawn = choose_one(agent, points, left.iter().copied(), &mut random)?;
                let drawn = if drawn.is_empty() {
                    // Every record equals a centre.
                    choose_one(agent, points, points.all_weights(), &mut random)?
                } else {
                    drawn
                };
                for point in &drawn {
                    equal.remove(points, point, &mut left);
                }
                chosen.extend(drawn);
            }
            Ok(chosen)
        }
    }
}

/// Records by the hash of their values: a record is chosen with all that equal it, however often it is in the data.
struct EqualRecords(HashMap<u64, Vec<usize>>);

impl EqualRecords {
    fn new(points: &Points) -> Self {
        let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::new();
        (0..points.count()).for_each(|i| by_hash.entry(hash(&points.get(i))).or_default().push(i));
        Self(by_hash)
    }

    /// Sets the weights of the records that equal `point` to 0.
    fn remove(&self, points: &Points, point: &SparsePoint, weights: &mut [f64]) {
        for &i in self.0.get(&hash(point)).map_or(&[][..], Vec::as_slice) {
            if points.get(i) == *point {
                weights[i] = 0.0;
            }
        }
    }
}

fn hash(point: &SparsePoint) -> u64 {
    let entries = point.keys.iter().zip(&point.values);
    entries.fold(0, |hash, (key, value)| mix64(mix64(hash ^ key) ^ u64::from(value.to_bits())))
}

/// Chooses a record of all tasks with a probability proportional to its weight. Weights that are all 0 choose nothing.
fn choose_one(
    agent: &mut dyn Agent,
    points: &Points,
    weights: impl Iterator<Item = f64> + Clone,
    random: &mut RandomStream,
) -> Result<Vec<SparsePoint>, Error> {
    let sums = gather(agent, weights.clone().sum())?;
    let target = random.uniform() * sums.iter().sum::<f64>();
    let Some(task) = position_of(sums.iter().copied(), target) else { return Ok(Vec::new()) };
    let own = if task == agent.task() as usize {
        position_of(weights, target - sums[..task].iter().sum::<f64>())
    } else {
        None
    };
    let point: Vec<SparsePoint> = own.map(|i| points.get(i)).into_iter().collect();
    gather_points(agent, &point)
}

/// k-means++: each further centre is a record chosen with a probability proportional to its squared distance from the
/// nearest centre. Of several trials the one is taken that leaves the smallest sum of distances.
fn plus_plus(
    agent: &mut dyn Agent,
    points: &Points,
    k: usize,
    random: &mut RandomStream,
) -> Result<Vec<SparsePoint>, Error> {
    let trial_count = 2 + math::elementary::ln(k as f64) as usize;
    let mut chosen = choose_one(agent, points, points.all_weights(), random)?;
    let mut distances = Distances::new(points);
    distances.add(points, &chosen);
    while chosen.len() < k {
        let mut trials = Vec::new();
        for _ in 0..trial_count {
            trials.extend(choose_one(agent, points, distances.weighted(points), random)?);
        }
        if trials.is_empty() {
            // Every record equals a centre.
            chosen.extend(choose_one(agent, points, points.all_weights(), random)?);
            continue;
        }
        let (mut sums, of_trials) = distances.with_each(points, &trials);
        agent.all_reduce(&mut sums)?;
        let best = (0..sums.len()).min_by(|&a, &b| sums[a].total_cmp(&sums[b])).unwrap_or(0);
        let new = of_trials.into_iter().skip(best).step_by(trials.len());
        distances.squared.iter_mut().zip(new).for_each(|(square, new)| *square = square.min(new));
        chosen.push(trials.swap_remove(best));
    }
    Ok(chosen)
}

/// k-means||: a few rounds in which every task chooses several records at once; then k-means++ among the chosen ones,
/// each with the weight of the records that it is nearest to.
fn parallel(
    agent: &mut dyn Agent,
    points: &Points,
    k: usize,
    seed: u64,
    random: &mut RandomStream,
) -> Result<Vec<SparsePoint>, Error> {
    let (candidates, nearest) = candidates(agent, points, (k, seed), random)?;
    if candidates.len() <= k {
        return plus_plus(agent, points, k, random);
    }
    let mut weights = vec![0.0; candidates.len()];
    for (i, &nearest) in nearest.iter().enumerate() {
        weights[nearest as usize] += points.weight(i);
    }
    agent.all_reduce(&mut weights)?;
    let weights = weights.into_iter().map(|weight| weight as f32).collect();
    // Every task has all candidates, and chooses the same.
    let config = LocalConfig { task_count: 1, wait_limit: Duration::ZERO };
    let mut alone = Arc::new(LocalStore::new(config)).agent(0);
    plus_plus(&mut alone, &Points::of_points(&candidates, weights), k, random)
}

/// The records that the rounds of k-means|| choose, of all tasks: about `1 + ROUNDS x OVERSAMPLING x k`. With them, the
/// number of the nearest one for each record of this task.
fn candidates(
    agent: &mut dyn Agent,
    points: &Points,
    (k, seed): (usize, u64),
    random: &mut RandomStream,
) -> Result<(Vec<SparsePoint>, Vec<u32>), Error> {
    let mut candidates = choose_one(agent, points, points.all_weights(), random)?;
    let mut distances = Distances::new(points);
    distances.add(points, &candidates);
    for round in 1..=ROUNDS {
        let sum: f64 = gather(agent, distances.weighted(points).sum())?.iter().sum();
        if sum == 0.0 {
            break;
        }
        let mut random = stream(seed, Purpose::Seeding, u64::from(agent.task()), round);
        let factor = OVERSAMPLING * k as f64 / sum;
        let is_chosen = |square: f64| random.uniform() < factor * square;
        let own = distances.weighted(points).map(is_chosen).enumerate().filter(|(_, chosen)| *chosen);
        let own: Vec<SparsePoint> = own.map(|(i, _)| points.get(i)).collect();
        let new = gather_points(agent, &own)?;
        distances.add(points, &new);
        candidates.extend(new);
    }
    Ok((candidates, distances.nearest))
}

#[cfg(test)]
mod tests {
    use math::random::{Purpose, stream};

    use super::*;
    use crate::Distance;
    use algo::test_harness::{Record, build};

    #[test]
    fn the_rounds_choose_about_as_many_records_as_they_should() {
        let mut random = stream(1, Purpose::Test, 0, 0);
        let mut value = || random.uniform() as f32;
        let records: Vec<Record> = (0..3000).map(|_| (0.0, vec![(0, value()), (1, value())])).collect();
        let points = Points::of_batches(build(&records, 100), Distance::Euclidean).unwrap();
        for k in [5, 20] {
            let config = LocalConfig { task_count: 1, wait_limit: Duration::ZERO };
            let mut agent = Arc::new(LocalStore::new(config)).agent(0);
            let mut shared = stream(7, Purpose::Seeding, SHARED, 0);
            let (chosen, nearest) = candidates(&mut agent, &points, (k, 7), &mut shared).unwrap();
            // The sum of 3000 draws has a deviation of about its root.
            let expected = 1.0 + ROUNDS as f64 * OVERSAMPLING * k as f64;
            let count = chosen.len() as f64;
            assert!(
                (count - expected).abs() < 4.0 * expected.sqrt(),
                "{count} records, expected about {expected}"
            );
            let centres = Centres::of_points(&chosen, &points.features);
            let mut expected = vec![0; points.count()];
            points.for_each_nearest(&points.all(), &centres, |i, found| expected[i] = found.centre);
            assert_eq!(nearest, expected);
        }
    }
}
