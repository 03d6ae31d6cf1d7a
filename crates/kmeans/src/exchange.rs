//! What the tasks tell each other: records that all of them need, and choices among the records of all.

use matrix::Agent;

use super::points::{Points, SparsePoint};
use algo::batch_loop::check_weight;
use algo::error::Error;

/// Numbers of one all-reduce; longer lists travel in parts.
const PART_SIZE: usize = 1 << 20;

/// Sums of any length over all tasks.
fn all_reduce(agent: &mut dyn Agent, values: &mut [f64]) -> Result<(), Error> {
    for part in values.chunks_mut(PART_SIZE) {
        agent.all_reduce(part)?;
    }
    Ok(())
}

/// The value of each task, in the order of tasks.
pub(super) fn gather(agent: &mut dyn Agent, value: f64) -> Result<Vec<f64>, Error> {
    let mut values = vec![0.0; agent.task_count() as usize];
    values[agent.task() as usize] = value;
    all_reduce(agent, &mut values)?;
    Ok(values)
}

/// The weight of the records of all tasks.
///
/// # Errors
/// [`Error::NoRecords`] and [`Error::NoWeight`], the same at every task.
pub(super) fn weight_sum(agent: &mut dyn Agent, own: &Points) -> Result<f64, Error> {
    let mut sums = [own.count() as f64, own.all_weights().sum()];
    agent.all_reduce(&mut sums)?;
    check_weight(sums[0] as u64, sums[1])?;
    Ok(sums[1])
}

/// The points of all tasks, in the order of tasks, at every task.
pub(super) fn gather_points(agent: &mut dyn Agent, own: &[SparsePoint]) -> Result<Vec<SparsePoint>, Error> {
    let mut packed = Vec::new();
    for point in own {
        packed.push(point.keys.len() as f64);
        for (key, value) in point.keys.iter().zip(&point.values) {
            // A key may have 64 bits; a double holds 53.
            packed.extend([(key >> 32) as f64, (key & u64::from(u32::MAX)) as f64, f64::from(*value)]);
        }
    }
    let lengths = gather(agent, packed.len() as f64)?;
    let start: f64 = lengths[..agent.task() as usize].iter().sum();
    let mut all = vec![0.0; lengths.iter().sum::<f64>() as usize];
    all[start as usize..][..packed.len()].copy_from_slice(&packed);
    all_reduce(agent, &mut all)?;
    Ok(unpack(&all))
}

fn unpack(mut packed: &[f64]) -> Vec<SparsePoint> {
    let mut points = Vec::new();
    while let Some((&count, rest)) = packed.split_first() {
        let (entries, rest) = rest.split_at(3 * count as usize);
        let key = |entry: &[f64]| (entry[0] as u64) << 32 | entry[1] as u64;
        points.push(SparsePoint {
            keys: entries.chunks_exact(3).map(key).collect(),
            values: entries.chunks_exact(3).map(|entry| entry[2] as f32).collect(),
        });
        packed = rest;
    }
    points
}

/// The position at which the running sum of `weights` passes `target`; the last one with a weight if rounding kept the
/// sum below it. `None` if no weight is above 0.
pub(super) fn position_of(weights: impl Iterator<Item = f64>, mut target: f64) -> Option<usize> {
    let mut last = None;
    for (i, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
        last = Some(i);
        if target < weight {
            break;
        }
        target -= weight;
    }
    last
}
