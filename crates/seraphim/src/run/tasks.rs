//! How many tasks a run has. The number is part of the job: under BSP another number of tasks is another model.

use data::Source;

/// With `auto`, a task has at least so much input: less is not worth a thread.
const MIN_TASK_BYTES: u64 = 16 << 20;

/// The number of tasks: as asked, or one a core but none with less than 16 MiB of input, and never more than the input
/// has parts.
pub fn task_count(asked: Option<u64>, source: &Source, cores: usize) -> u32 {
    if let Some(count) = asked {
        return count as u32;
    }
    let by_size = source.size_bytes().map_or(1, |bytes| bytes / MIN_TASK_BYTES).max(1);
    let wanted = by_size.min(cores as u64) as usize;
    let parts = source.splits(wanted).iter().filter(|splits| !splits.is_empty()).count();
    parts.max(1) as u32
}

/// How the number came about, for people.
pub fn explain(asked: Option<u64>, count: u32, source: &Source) -> String {
    let plural = if count == 1 { "task" } else { "tasks" };
    match (asked, source.size_bytes()) {
        (Some(_), _) => format!("{count} {plural}"),
        (None, Some(bytes)) => format!("{count} {plural} (auto, for {})", crate::progress::bytes(bytes)),
        (None, None) => format!("{count} {plural} (auto, standard input is not split)"),
    }
}
