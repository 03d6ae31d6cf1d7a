//! `LambdaRank` (Burges, "From `RankNet` to `LambdaRank` to `LambdaMART`", 2010) as in LightGBM: the gradient of a pair of records of
//! a group is that of its logistic loss, times what NDCG changes if the two change slots.
//!
//! A group is all records with its name, wherever they are. Where a group lies in several tasks, these tell each other its
//! grades, and its scores before each iteration, so that a group has the same gradients for any division of the records.

use data::Batch;
use math::elementary::{ln_1p, sigmoid};

use super::Slopes;
use super::metrics::check_groups;
use algo::error::Error;
use algo::exchange::Exchange;
use algo::metric::MetricAccumulator;
use algo::metric::ndcg::{discount, gain, largest_dcg, ndcg};

/// Added to the distance of two scores by which the weight of a pair is divided.
const LEAST_DISTANCE: f64 = 0.01;

/// The numbers of this task in a list of those of all tasks.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Position {
    /// Numbers of the tasks before this one.
    pub(in super::super) before: usize,
    /// Numbers of all tasks.
    pub(in super::super) total: usize,
}

/// The position of this task, one of `task_count`, which has `own` numbers.
pub(in super::super) fn position_of(
    own: usize,
    (task, task_count): (usize, usize),
    exchange: &mut Exchange<'_>,
) -> Result<Position, Error> {
    let mut counts = vec![0i64; task_count];
    counts[task] = own as i64;
    exchange.sum(&mut counts)?;
    let sum = |counts: &[i64]| counts.iter().sum::<i64>() as usize;
    Ok(Position { before: sum(&counts[..task]), total: sum(&counts) })
}

/// The numbers of all tasks, one task after another.
fn gather(own: &[u64], position: Position, exchange: &mut Exchange<'_>) -> Result<Vec<u64>, Error> {
    if position.total == 0 {
        return Ok(Vec::new());
    }
    let mut halves = vec![0i64; 2 * position.total];
    let slots = halves[2 * position.before..].as_chunks_mut::<2>().0;
    for (halves, number) in slots.iter_mut().zip(own) {
        *halves = [(number >> 32) as i64, (number & u64::from(u32::MAX)) as i64];
    }
    exchange.sum(&mut halves)?;
    Ok(halves.as_chunks::<2>().0.iter().map(|[high, low]| ((*high as u64) << 32) | *low as u64).collect())
}

/// The groups that have records of this task.
pub(in super::super) struct Ranking {
    /// Records of a group that are looked at.
    truncation: usize,
    /// Records of this task.
    own_count: usize,
    /// The records of one group after another, in the order of the data. Those from `own_count` on are in other tasks.
    members: Vec<u32>,
    /// Where each group ends among the members.
    ends: Vec<usize>,
    /// Of the records of this task, then of those of all tasks in groups that lie in several.
    grades: Vec<f64>,
    scores: Vec<f64>,
    /// Records of this task in groups that lie in several, and their position among those of all tasks.
    shared: Vec<u32>,
    position: Position,
}

impl Ranking {
    /// Finds the groups; `task` is the number of this task and of all tasks.
    pub(in super::super) fn new(
        truncation: u64,
        columns: &Batch,
        task: (usize, usize),
        exchange: &mut Exchange<'_>,
    ) -> Result<Self, Error> {
        check_groups(columns)?;
        let own_count = columns.labels.len();
        let own = || (0..own_count).filter(|r| columns.weight(*r) > 0.0);
        let mut distinct: Vec<u64> = own().map(|r| columns.groups[r]).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let position = position_of(distinct.len(), task, exchange)?;
        let mut all = gather(&distinct, position, exchange)?;
        all.sort_unstable();
        let in_several: Vec<u64> =
            all.chunk_by(|a, b| a == b).filter(|copies| copies.len() > 1).map(|copies| copies[0]).collect();
        let is_shared = |r: &usize| in_several.binary_search(&columns.groups[*r]).is_ok();
        let shared: Vec<u32> = own().filter(is_shared).map(|r| r as u32).collect();
        let position = position_of(shared.len(), task, exchange)?;
        let mut gathered = |of: &dyn Fn(usize) -> u64| {
            let numbers: Vec<u64> = shared.iter().map(|r| of(*r as usize)).collect();
            gather(&numbers, position, exchange)
        };
        let groups = gathered(&|r| columns.groups[r])?;
        let grades = gathered(&|r| columns.labels[r].to_bits())?;
        // Group, position in the order of the data, record. A group is either whole here or among those of all tasks.
        let mut entries: Vec<(u64, usize, u32)> =
            own().filter(|r| !is_shared(r)).map(|r| (columns.groups[r], r, r as u32)).collect();
        entries.extend(groups.iter().enumerate().map(|(at, group)| {
            let own = at.checked_sub(position.before).and_then(|at| shared.get(at));
            (*group, at, own.copied().unwrap_or((own_count + at) as u32))
        }));
        entries.sort_unstable();
        let (mut members, mut ends) = (Vec::new(), Vec::new());
        for group in entries.chunk_by(|a, b| a.0 == b.0) {
            if group.iter().any(|entry| (entry.2 as usize) < own_count) {
                members.extend(group.iter().map(|entry| entry.2));
                ends.push(members.len());
            }
        }
        let grades = columns.labels.iter().copied().chain(grades.into_iter().map(f64::from_bits)).collect();
        let truncation = truncation as usize;
        Ok(Self { truncation, own_count, members, ends, grades, scores: Vec::new(), shared, position })
    }

    /// Takes over the scores of an iteration.
    pub(in super::super) fn update(
        &mut self,
        scores: &[f64],
        exchange: &mut Exchange<'_>,
    ) -> Result<(), Error> {
        let own: Vec<u64> = self.shared.iter().map(|r| scores[*r as usize].to_bits()).collect();
        let others = gather(&own, self.position, exchange)?;
        self.scores.clear();
        self.scores.extend_from_slice(scores);
        self.scores.extend(others.into_iter().map(f64::from_bits));
        Ok(())
    }

    /// The records of each group.
    fn groups(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.members[start..*end])
    }

    /// The positions in a group by descending score; of equal scores the first record comes first.
    fn ranked(&self, group: &[u32]) -> Vec<usize> {
        let score = |at: &usize| self.scores[group[*at] as usize];
        let mut order: Vec<usize> = (0..group.len()).collect();
        order.sort_by(|a, b| score(b).total_cmp(&score(a)));
        order
    }

    /// Adds 1 - NDCG of the groups to the loss: a group counts in the task that has its first record.
    pub(in super::super) fn add_losses(&self, parts: &mut MetricAccumulator) {
        let parts = parts.loss_mut();
        parts.record_count += self.own_count as u64;
        for group in self.groups().filter(|group| (group[0] as usize) < self.own_count) {
            let ranked: Vec<f64> =
                self.ranked(group).into_iter().map(|at| self.grades[group[at] as usize]).collect();
            parts.weight_sum += 1.0;
            parts.loss_sum += 1.0 - ndcg(&ranked, self.truncation);
        }
    }

    /// Sets the gradients and hessians of the records of this task.
    pub(in super::super) fn slopes(&self, columns: &Batch, out: &mut Slopes) {
        out.gradients.clear();
        out.gradients.resize(self.own_count, 0.0);
        out.hessians.clear();
        out.hessians.resize(self.own_count, 0.0);
        let longest = self.groups().map(<[u32]>::len).max().unwrap_or_default();
        let discounts: Vec<f64> = (0..longest).map(discount).collect();
        for group in self.groups() {
            let of = |numbers: &[f64]| group.iter().map(|r| numbers[*r as usize]).collect::<Vec<f64>>();
            let (scores, grades) = (of(&self.scores), of(&self.grades));
            let slopes = group_slopes(&scores, &grades, &self.ranked(group), self.truncation, &discounts);
            for (&r, (gradient, hessian)) in group.iter().zip(slopes) {
                let r = r as usize;
                if r < self.own_count {
                    let weight = f64::from(columns.weight(r));
                    (out.gradients[r], out.hessians[r]) = (weight * gradient, weight * hessian);
                }
            }
        }
    }
}

/// Gradient and hessian of each record of a group, whose positions by descending score are `ranked`.
fn group_slopes(
    scores: &[f64],
    grades: &[f64],
    ranked: &[usize],
    truncation: usize,
    discounts: &[f64],
) -> Vec<(f64, f64)> {
    let mut out = vec![(0.0, 0.0); scores.len()];
    let largest = largest_dcg(grades, truncation);
    if largest <= 0.0 {
        return out;
    }
    let is_spread = scores[ranked[0]] != scores[ranked[ranked.len() - 1]];
    let mut sum = 0.0;
    for (rank, &first) in ranked.iter().enumerate().take(truncation) {
        for (other_rank, &second) in ranked.iter().enumerate().skip(rank + 1) {
            if grades[first] == grades[second] {
                continue;
            }
            let (high, low) = if grades[first] > grades[second] { (first, second) } else { (second, first) };
            let distance = scores[high] - scores[low];
            let gains = gain(grades[high]) - gain(grades[low]);
            let mut change = gains * (discounts[rank] - discounts[other_rank]).abs() / largest;
            if is_spread {
                change /= LEAST_DISTANCE + distance.abs();
            }
            let p = sigmoid(-distance);
            let (slope, hessian) = (change * p, change * p * (1.0 - p));
            out[high].0 -= slope;
            out[low].0 += slope;
            out[high].1 += hessian;
            out[low].1 += hessian;
            sum += 2.0 * slope;
        }
    }
    if sum > 0.0 {
        // Large groups have many pairs: their sum counts by its logarithm.
        let factor = ln_1p(sum) / std::f64::consts::LN_2 / sum;
        for (gradient, hessian) in &mut out {
            *gradient *= factor;
            *hessian *= factor;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use math::random::{Purpose, stream};

    use super::*;

    /// Central differences of losses below 100 with step 1e-6.
    const STEP: f64 = 1e-6;
    const TOLERANCE: f64 = 1e-6;

    /// The logistic losses of all pairs of which one is among the first, each with its weight at `at`, the scores where
    /// gradients are taken, and the factor of the group.
    fn loss(scores: &[f64], at: &[f64], grades: &[f64], ranked: &[usize], truncation: usize) -> f64 {
        let largest = largest_dcg(grades, truncation);
        let is_spread = at.iter().any(|score| *score != at[0]);
        let rank_of = |r: usize| ranked.iter().position(|other| *other == r).unwrap();
        let (mut sum, mut slopes) = (0.0, 0.0);
        for high in 0..scores.len() {
            for low in 0..scores.len() {
                let (rank, other) = (rank_of(high), rank_of(low));
                if grades[high] > grades[low] && rank.min(other) < truncation {
                    let gains = 2f64.powf(grades[high]) - 2f64.powf(grades[low]);
                    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
                    let mut weight = gains * (discount(rank) - discount(other)).abs() / largest;
                    if is_spread {
                        weight /= 0.01 + (at[high] - at[low]).abs();
                    }
                    sum += weight * (1.0 + (scores[low] - scores[high]).exp()).ln();
                    slopes += 2.0 * weight / (1.0 + (at[high] - at[low]).exp());
                }
            }
        }
        sum * (1.0 + slopes).log2() / slopes
    }

    #[test]
    fn gradients_are_the_derivatives_of_the_losses_of_pairs() {
        let mut random = stream(1, Purpose::Test, 0, 0);
        for round in 0..40 {
            let count = 2 + random.below(9) as usize;
            let mut grades: Vec<f64> = (0..count).map(|_| random.below(4) as f64).collect();
            (grades[0], grades[1]) = (0.0, 3.0);
            // In some rounds all scores are equal, as before the first tree.
            let scores: Vec<f64> =
                (0..count).map(|_| if round % 4 == 0 { 0.5 } else { random.normal() }).collect();
            let truncation = 1 + random.below(4) as usize;
            let mut ranked: Vec<usize> = (0..count).collect();
            ranked.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            let discounts: Vec<f64> = (0..count).map(discount).collect();
            let found = group_slopes(&scores, &grades, &ranked, truncation, &discounts);
            for r in 0..count {
                let value = |step: f64| {
                    let mut moved = scores.clone();
                    moved[r] += step;
                    loss(&moved, &scores, &grades, &ranked, truncation)
                };
                let expected = (value(STEP) - value(-STEP)) / (2.0 * STEP);
                let difference = (found[r].0 - expected).abs();
                assert!(difference < TOLERANCE * expected.abs().max(1.0), "{} {expected}", found[r].0);
                assert!(found[r].1 >= 0.0);
            }
        }
    }

    #[test]
    fn a_group_of_one_and_one_of_equal_grades_have_no_gradients() {
        assert_eq!(group_slopes(&[3.0], &[2.0], &[0], 30, &[1.0]), [(0.0, 0.0)]);
        let equal = group_slopes(&[3.0, 1.0], &[2.0, 2.0], &[0, 1], 30, &[1.0, 0.6]);
        assert_eq!(equal, [(0.0, 0.0); 2]);
        assert_eq!(group_slopes(&[3.0, 1.0], &[0.0, 0.0], &[0, 1], 30, &[1.0, 0.6]), [(0.0, 0.0); 2]);
    }
}
