//! The number of tasks of a run. It is part of the job: under BSP another number of tasks gives another model.

use data::Source;
use job::TrainJob;

/// Input sizes at which `auto` doubles the number of tasks. Below the first size a second thread does not pay off. More
/// tasks compute more at once, but a step waits for all of them and merges the pushes of all of them: two cores take
/// half as long again with four tasks as with two. So the number grows slowly, and users with many cores set it
/// themselves.
const SIZE_BOUNDS_BYTES: [u64; 6] = [32 << 20, 1 << 30, 8 << 30, 64 << 30, 512 << 30, 4 << 40];

/// Returns the number of tasks: the requested number; or one chosen by the size of the input, which is at most the
/// number of its splits. It depends on nothing else, so the same command gives the same model on any machine.
pub fn task_count(job: &TrainJob, source: &Source) -> u32 {
    if let Some(count) = job.run_options.tasks {
        return count as u32;
    }
    let owners = owner_count(job);
    let wanted = auto_count(size_bytes(job, source)).div_ceil(owners) as usize;
    let parts = source.splits(wanted).iter().filter(|splits| !splits.is_empty()).count();
    (parts.max(1) as u64 * owners) as u32
}

/// The size of the data; where each worker has its own, the first worker takes its part for as large as the others'.
pub fn size_bytes(job: &TrainJob, source: &Source) -> Option<u64> {
    source.size_bytes().map(|bytes| bytes.saturating_mul(owner_count(job)))
}

/// The number of processes that have data of their own.
fn owner_count(job: &TrainJob) -> u64 {
    job.size.filter(|_| job.is_data_local).map_or(1, |size| u64::from(size.workers))
}

/// Returns 1 below 32 MiB, 2 below 1 GiB, 4 below 8 GiB, and so on up to 64; 1 when the size is not known.
fn auto_count(size_bytes: Option<u64>) -> u64 {
    1 << SIZE_BOUNDS_BYTES.iter().filter(|bound| size_bytes.is_some_and(|bytes| bytes >= **bound)).count()
}

/// Explains the number of tasks for people.
pub fn explain(job: &TrainJob, count: u32, source: &Source) -> String {
    let plural = if count == 1 { "task" } else { "tasks" };
    match (job.run_options.tasks, size_bytes(job, source)) {
        (Some(_), _) => format!("{count} {plural}"),
        (None, Some(bytes)) => format!("{count} {plural} (auto, for {})", driver::amounts::bytes(bytes)),
        (None, None) => format!("{count} {plural} (auto, standard input is not split)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tasks_grows_with_the_input_alone() {
        let sizes = [0, 31 << 20, 32 << 20, 1023 << 20, 1 << 30, 8 << 30, 64 << 30, u64::MAX];
        assert_eq!(sizes.map(|bytes| auto_count(Some(bytes))), [1, 1, 2, 2, 4, 8, 16, 64]);
        assert_eq!(auto_count(None), 1);
    }
}
