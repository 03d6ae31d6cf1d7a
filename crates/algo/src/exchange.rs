//! What the tasks of a training tell each other: sums of integers, so that they are the same however the
//! records are divided, and maxima.

use matrix::Agent;

use crate::error::Error;

/// Sums over all tasks; of a single task they are its own.
pub struct Exchange<'a> {
    pub agent: &'a mut dyn Agent,
}

/// A sum is sent in two parts, so that doubles add them without rounding.
const PART_BITS: u32 = 31;

impl<'a> Exchange<'a> {
    /// With the other tasks of this agent's job.
    pub fn new(agent: &'a mut dyn Agent) -> Self {
        Self { agent }
    }

    /// Replaces integers below 2^62 by their sums over all tasks, which must be below 2^62 too.
    pub fn sum(&mut self, values: &mut [i64]) -> Result<(), Error> {
        if self.agent.task_count() == 1 {
            return Ok(());
        }
        let mask = (1i64 << PART_BITS) - 1;
        let mut parts: Vec<f64> =
            values.iter().flat_map(|value| [(value >> PART_BITS) as f64, (value & mask) as f64]).collect();
        self.agent.all_reduce(&mut parts)?;
        for (value, [high, low]) in values.iter_mut().zip(parts.as_chunks::<2>().0) {
            *value = ((*high as i64) << PART_BITS) + *low as i64;
        }
        Ok(())
    }

    /// Replaces numbers of at least 0 by the largest of all tasks.
    pub fn max<const N: usize>(&mut self, values: &mut [f64; N]) -> Result<(), Error> {
        let (task, count) = (self.agent.task() as usize, self.agent.task_count() as usize);
        let mut all = vec![0.0; N * count];
        all[task * N..][..N].copy_from_slice(values);
        self.agent.all_reduce(&mut all)?;
        for own in all.as_chunks::<N>().0 {
            values.iter_mut().zip(own).for_each(|(value, own)| *value = value.max(*own));
        }
        Ok(())
    }
}
