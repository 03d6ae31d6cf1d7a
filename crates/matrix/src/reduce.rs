//! The sum of an all-reduce. It is computed in the order of tasks, so that it does not depend on the order of arrival.

use crate::error::Error;

/// Sums the contributions of the tasks, task 0 first; the sum is empty when there is no contribution. Takes the
/// contributions out of `parts`.
pub fn sum_in_task_order(parts: &mut [Option<Vec<f64>>]) -> Result<Vec<f64>, Error> {
    let mut given = parts.iter_mut().zip(0u32..).filter_map(|(part, task)| Some((task, part.take()?)));
    let Some((first_task, mut sum)) = given.next() else { return Ok(Vec::new()) };
    for (task, part) in given {
        if part.len() != sum.len() {
            let (first_len, len) = (sum.len(), part.len());
            return Err(Error::ReduceLength { first_task, first_len, task, len });
        }
        for (into, next) in sum.iter_mut().zip(part) {
            *into += next;
        }
    }
    Ok(sum)
}
