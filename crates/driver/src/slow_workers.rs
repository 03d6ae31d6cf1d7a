//! Workers that need much longer for a record than the others, and how tasks are spread over workers by their speed.
//!
//! A worker reports the time in which its tasks computed, without their waits for parameters and for each other. So its
//! time for a record shows how fast it is itself, also under bsp, where all tasks go at the pace of the slowest.
//!
//! After the loss of a member tasks connect again, or read to where they were, at different speeds. So the epoch in which a
//! member was away, or another took its place, does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::config::{RecordTimes, WorkerInfo};

/// A worker is slow if it needs so many times the median for a record.
const SLOW_FACTOR: f64 = 2.0;
/// Time that is measured before workers are compared.
const MEASURE_TIME: Duration = Duration::from_secs(1);
/// Of an epoch in which a member was away, only so much does not count: an epoch may take days.
const SETTLE_TIME: Duration = Duration::from_mins(1);
/// Tasks move only if what remains would take at most this share of its time. Less is within what a busy machine varies.
const WORTHWHILE_SHARE: f64 = 0.75;

/// What the workers have reported since the training began, or since the last member was away.
#[derive(Debug)]
pub(crate) struct SlowWorkers {
    since: Instant,
    compared_at: Instant,
    /// By worker: records, and the seconds in which its tasks computed.
    sums: BTreeMap<u32, (u64, f64)>,
    /// Members whose connections have ended.
    away: BTreeSet<u32>,
    /// When a member was lost or came back, unless an epoch has ended since: what workers report does not count.
    disturbed_at: Option<Instant>,
}

/// The slowest worker, and what its tasks could gain elsewhere.
#[derive(Debug, PartialEq)]
pub(crate) struct SlowWorker {
    pub worker: u32,
    /// Its time for a record, in medians.
    pub factor: f64,
    /// The time of all workers with the tasks spread by speed, as a share of the present one.
    pub share: f64,
    /// The times of all workers that were measured.
    pub times: RecordTimes,
}

impl SlowWorker {
    /// Whether it pays to move its tasks, after training for `elapsed`. What remains is taken to be as long as what was
    /// done, so that a wrong guess costs at most a share of the whole time. `cost`: the time of a checkpoint and another
    /// start.
    pub(crate) fn is_worth_moving(&self, elapsed: Duration, cost: Duration) -> bool {
        self.share <= WORTHWHILE_SHARE && elapsed.as_secs_f64() * (1.0 - self.share) > cost.as_secs_f64()
    }
}

impl SlowWorkers {
    pub(crate) fn new(now: Instant) -> Self {
        let (sums, away) = (BTreeMap::new(), BTreeSet::new());
        Self { since: now, compared_at: now, sums, away, disturbed_at: None }
    }

    /// The tasks begin. `goes_on`: after an earlier run.
    pub(crate) fn begin(&mut self, now: Instant, goes_on: bool) {
        (self.since, self.compared_at) = (now, now);
        if goes_on {
            self.disturb(now);
        }
    }

    /// The connection of a member has ended.
    pub(crate) fn on_away(&mut self, now: Instant, member: u32) {
        self.away.insert(member);
        self.disturb(now);
    }

    /// A member is back, or another one has taken its place.
    pub(crate) fn on_back(&mut self, now: Instant, member: u32) {
        self.away.remove(&member);
        self.disturb(now);
    }

    fn disturb(&mut self, now: Instant) {
        self.sums.clear();
        self.disturbed_at = Some(now);
    }

    /// All tasks have ended an epoch, and have reported the time until then.
    pub(crate) fn on_epoch_ended(&mut self, now: Instant) {
        if self.away.is_empty() && self.disturbed_at.take().is_some() {
            self.compared_at = now;
        }
    }

    pub(crate) fn add(&mut self, worker: u32, records: u64, busy_s: f64) {
        if self.disturbed_at.is_some() {
            return;
        }
        let sum = self.sums.entry(worker).or_default();
        sum.0 += records;
        sum.1 += busy_s;
    }

    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    /// Whether it is time to compare the workers.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        if let Some(since) = self.disturbed_at {
            if now.saturating_duration_since(since) >= SETTLE_TIME {
                self.on_epoch_ended(now);
            }
            return false;
        }
        now.saturating_duration_since(self.compared_at) >= MEASURE_TIME
    }

    /// Compares the workers if it is time to. `task_counts`: each worker with its number of tasks. Returns the slowest one, if it is slow.
    pub(crate) fn compare(
        &mut self,
        now: Instant,
        workers: &[WorkerInfo],
        task_counts: &[(u32, u32)],
    ) -> Option<SlowWorker> {
        if !self.is_due(now) {
            return None;
        }
        self.compared_at = now;
        let measured: Vec<(&WorkerInfo, u32, f64)> = task_counts
            .iter()
            .filter_map(|&(worker, tasks)| {
                let info = workers.iter().find(|info| info.id == worker)?;
                let (records, busy_s) = self.sums.get(&worker).filter(|sum| sum.0 > 0)?;
                // Tasks that share a core each need longer.
                let crowd = (f64::from(tasks) / f64::from(info.slots)).max(1.0);
                Some((info, tasks, busy_s / *records as f64 / crowd))
            })
            .collect();
        if measured.len() < task_counts.len() || measured.len() < 2 {
            return None;
        }
        let median = lower_median(measured.iter().map(|(_, _, time)| *time));
        let (slowest, _, time) = measured.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
        let factor = time / median;
        if factor < SLOW_FACTOR {
            return None;
        }
        let speeds: Vec<(f64, u32)> = measured.iter().map(|(info, _, time)| (*time, info.slots)).collect();
        let counts: Vec<u32> = measured.iter().map(|(_, tasks, _)| *tasks).collect();
        let task_count = counts.iter().sum();
        let share = duration(&speeds, &spread(task_count, &speeds)) / duration(&speeds, &counts);
        let times = measured.iter().filter_map(|(info, _, time)| Some((info.name.clone()?, *time))).collect();
        Some(SlowWorker { worker: slowest.id, factor, share, times })
    }
}

/// The median; of an even number of values the smaller of the two in the middle, so that of two workers one can be slow.
pub(crate) fn lower_median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// Time of a worker for a record of each of its tasks.
fn time_of((time, slots): (f64, u32), tasks: u32) -> f64 {
    if tasks == 0 { 0.0 } else { time * (f64::from(tasks) / f64::from(slots)).max(1.0) }
}

/// Time of all workers together: the slowest one counts.
fn duration(speeds: &[(f64, u32)], counts: &[u32]) -> f64 {
    speeds.iter().zip(counts).map(|(speed, count)| time_of(*speed, *count)).fold(0.0, f64::max)
}

/// Spreads tasks over workers with these times for a record and slots, so that the last one to end is as early as
/// possible: each task goes to the worker that would end first with it, or has the fewest per slot.
pub(crate) fn spread(task_count: u32, speeds: &[(f64, u32)]) -> Vec<u32> {
    let mut counts = vec![0; speeds.len()];
    for _ in 0..task_count {
        let key = |i: usize| {
            let with = counts[i] + 1;
            (time_of(speeds[i], with), f64::from(with) / f64::from(speeds[i].1))
        };
        let best = (0..speeds.len()).min_by(|a, b| {
            let (a, b) = (key(*a), key(*b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        if let Some(best) = best {
            counts[best] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(
        times: &[f64],
        tasks_each: u32,
        slots: u32,
    ) -> (SlowWorkers, Vec<WorkerInfo>, Vec<(u32, u32)>) {
        let mut slow = SlowWorkers::new(Instant::now());
        let ids = 0..times.len() as u32;
        for (worker, time) in ids.clone().zip(times) {
            slow.add(worker, 1000, 1000.0 * time);
        }
        let info = |id| WorkerInfo { id, name: Some(format!("w{id}")), slots };
        (slow, ids.clone().map(info).collect(), ids.map(|id| (id, tasks_each)).collect())
    }

    fn compare(times: &[f64], tasks_each: u32, slots: u32) -> Option<SlowWorker> {
        let (mut slow, workers, shares) = cluster(times, tasks_each, slots);
        let now = slow.since + MEASURE_TIME;
        assert_eq!(slow.compare(slow.since, &workers, &shares), None, "too early");
        slow.compare(now, &workers, &shares)
    }

    #[test]
    fn tasks_go_to_those_who_end_first_and_a_slow_worker_gets_none() {
        assert_eq!(spread(8, &[(1.0, 1), (1.0, 1), (1.0, 1), (5.0, 1)]), [3, 3, 2, 0]);
        assert_eq!(spread(8, &[(1.0, 1), (2.0, 1), (1.0, 1)]), [3, 2, 3]);
        assert_eq!(spread(4, &[(1.0, 4), (1.0, 4)]), [2, 2], "free slots are filled evenly");
        assert_eq!(spread(5, &[(1.0, 2), (1.0, 8)]), [1, 4]);
        assert_eq!(spread(2, &[]), [0; 0]);
    }

    #[test]
    fn equal_workers_are_not_slow_and_one_of_two_can_be() {
        assert_eq!(compare(&[1.0, 1.1, 0.9, 1.9], 2, 1), None);
        let found = compare(&[1.0, 5.0], 1, 1).unwrap();
        assert_eq!((found.worker, found.factor, found.share), (1, 5.0, 0.4));
        let found = compare(&[1.0, 1.0, 1.0, 5.0], 2, 1).unwrap();
        assert_eq!((found.worker, found.factor, found.share), (3, 5.0, 0.3));
        assert_eq!(found.times.len(), 4);
    }

    #[test]
    fn tasks_that_share_slots_do_not_make_a_worker_slow() {
        let (mut slow, mut workers, mut shares) = cluster(&[1.0, 1.0, 3.0], 1, 1);
        shares[2].1 = 3;
        let now = slow.since + MEASURE_TIME;
        assert_eq!(slow.compare(now, &workers, &shares), None);
        workers[2].slots = 3;
        let found = slow.compare(now + MEASURE_TIME, &workers, &shares).unwrap();
        assert_eq!((found.worker, found.factor), (2, 3.0));
    }

    #[test]
    fn without_a_measurement_of_all_workers_nothing_is_said() {
        let (mut slow, workers, shares) = cluster(&[1.0, 5.0], 1, 1);
        slow.sums.remove(&0);
        assert_eq!(slow.compare(slow.since + MEASURE_TIME, &workers, &shares), None);
        assert_eq!(compare(&[1.0], 1, 1), None);
    }

    #[test]
    fn the_epoch_in_which_a_member_was_away_does_not_count() {
        let (mut slow, workers, shares) = cluster(&[1.0, 1.0], 1, 1);
        let at = |seconds| slow.since + Duration::from_secs(seconds);
        let times = [2, 4, 6, 8, 10, 12].map(at);
        let settled = at(12) + SETTLE_TIME;
        let report = |slow: &mut SlowWorkers, second: f64| {
            slow.add(0, 1000, 1000.0);
            slow.add(1, 1000, 1000.0 * second);
        };
        // A server is lost; what the workers reported until another takes over, and until the epoch ends, does not count.
        slow.on_away(times[0], 7);
        report(&mut slow, 50.0);
        assert_eq!(slow.compare(times[1], &workers, &shares), None, "while it is away");
        slow.on_epoch_ended(times[1]);
        report(&mut slow, 50.0);
        assert_eq!(slow.compare(times[2], &workers, &shares), None, "an epoch that ends while it is away");
        slow.on_back(times[2], 7);
        report(&mut slow, 50.0);
        assert_eq!(slow.compare(times[3], &workers, &shares), None, "in the same epoch");
        slow.on_epoch_ended(times[3]);
        report(&mut slow, 1.5);
        assert_eq!(slow.compare(times[4], &workers, &shares), None, "the workers are equal");
        report(&mut slow, 9.0);
        assert_eq!(slow.compare(times[5], &workers, &shares).map(|found| found.worker), Some(1));
        // A long epoch counts again after a while.
        slow.on_back(times[5], 7);
        assert_eq!(slow.compare(settled, &workers, &shares), None);
        report(&mut slow, 5.0);
        let found = slow.compare(settled + MEASURE_TIME, &workers, &shares).unwrap();
        assert_eq!((found.worker, found.factor), (1, 5.0));
    }

    #[test]
    fn a_run_after_a_loss_is_measured_from_its_second_epoch() {
        let (mut slow, workers, shares) = cluster(&[1.0, 5.0], 1, 1);
        let (start, later) = (slow.since, slow.since + MEASURE_TIME);
        slow.begin(start, true);
        slow.add(0, 1000, 1000.0);
        slow.add(1, 1000, 5000.0);
        assert_eq!(slow.compare(later, &workers, &shares), None);
        slow.on_epoch_ended(later);
        slow.add(0, 1000, 1000.0);
        slow.add(1, 1000, 3000.0);
        assert_eq!(slow.compare(later, &workers, &shares), None, "too early");
        let found = slow.compare(later + MEASURE_TIME, &workers, &shares).unwrap();
        assert_eq!((found.worker, found.factor), (1, 3.0));
    }

    #[test]
    fn a_move_must_pay() {
        let found = compare(&[1.0, 1.0, 1.0, 5.0], 2, 1).unwrap();
        let seconds = Duration::from_secs;
        assert!(found.is_worth_moving(seconds(10), seconds(6)));
        assert!(!found.is_worth_moving(seconds(10), seconds(8)));
        let little = SlowWorker { share: 0.8, ..found };
        assert!(!little.is_worth_moving(seconds(1000), seconds(1)));
    }
}
