//! Splits: which part of the input each task reads.
//!
//! All plain files together are one sequence of `S` bytes; task `t` of `T` takes bytes `[t*S/T, (t+1)*S/T)`. A record
//! belongs to the split in which its first byte lies. Row groups of Parquet form one sequence in the same way; they are
//! cut between records, at quarters. A file that cannot be cut (a compressed one) goes whole to the task with the
//! fewest bytes so far, largest file first.

use std::ops::Range;

/// What one task reads of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Position of the file among the inputs.
    pub file: usize,
    pub range: SplitRange,
    /// Bytes of the file that this split covers, for progress.
    pub size_bytes: u64,
}

/// The range of a file that a split covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitRange {
    /// The lines that begin in this range of bytes.
    Bytes(Range<u64>),
    /// The whole file.
    Whole,
    /// Records of one row group, numbered from 0 in it.
    Records {
        /// Number of the row group in the file.
        row_group: usize,
        records: Range<u64>,
    },
}

impl SplitRange {
    /// Sorts the splits of one file.
    pub(crate) fn sort_key(&self) -> (usize, u64) {
        match self {
            Self::Bytes(range) => (0, range.start),
            Self::Whole => (0, 0),
            Self::Records { row_group: unit, records } => (*unit, records.start),
        }
    }
}

/// A part of a Parquet file that can be read without the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// Its bytes in the file.
    pub size_bytes: u64,
    pub record_count: u64,
}

/// A row group is cut at multiples of its size over this number. A task that begins within a row group decodes the
/// records before its own: four tasks on one row group decode 0, 1, 2 and 3 quarters besides their own, and more tasks
/// do not add to that.
const CUTS_PER_ROW_GROUP: u128 = 4;

/// What the splitter divides.
#[derive(Clone, Debug)]
pub(crate) enum SplitCandidate {
    /// A file that can be cut at any byte.
    Bytes { file: usize, bytes: u64 },
    /// A row group, by its number in the file.
    RowGroup { file: usize, number: usize, row_group: RowGroup },
    /// A file that cannot be cut.
    Whole { file: usize, bytes: u64 },
}

/// Returns the splits of each task; those of one task are in the order of `candidates`.
pub(crate) fn assign_splits(candidates: &[SplitCandidate], task_count: usize) -> Vec<Vec<Split>> {
    assert!(task_count > 0, "splits for no task");
    let mut tasks: Vec<Vec<(usize, Split)>> = vec![Vec::new(); task_count];
    let mut loads = vec![0u64; task_count];
    split_bytes(candidates, &mut tasks, &mut loads);
    split_row_groups(candidates, &mut tasks);
    assign_whole_files(candidates, &mut tasks, &mut loads);
    for task in &mut tasks {
        task.sort_by_key(|(candidate, _)| *candidate);
    }
    tasks.into_iter().map(|task| task.into_iter().map(|(_, split)| split).collect()).collect()
}

fn split_bytes(candidates: &[SplitCandidate], tasks: &mut [Vec<(usize, Split)>], loads: &mut [u64]) {
    let sizes = candidates.iter().map(|candidate| match candidate {
        SplitCandidate::Bytes { bytes, .. } => *bytes,
        SplitCandidate::RowGroup { .. } | SplitCandidate::Whole { .. } => 0,
    });
    let total: u64 = sizes.sum();
    let count = tasks.len() as u128;
    let bound = |task: usize| (u128::from(total) * task as u128 / count) as u64;
    let mut before = 0;
    for (position, candidate) in candidates.iter().enumerate() {
        let SplitCandidate::Bytes { file, bytes } = *candidate else { continue };
        for task in 0..tasks.len() {
            let start = bound(task).clamp(before, before + bytes) - before;
            let end = bound(task + 1).clamp(before, before + bytes) - before;
            if start < end {
                let split = Split { file, range: SplitRange::Bytes(start..end), size_bytes: end - start };
                tasks[task].push((position, split));
                loads[task] += end - start;
            }
        }
        before += bytes;
    }
}

fn split_row_groups(candidates: &[SplitCandidate], tasks: &mut [Vec<(usize, Split)>]) {
    // Sizes come from the file, which may say that a row group with records has no bytes.
    let size = |unit: &RowGroup| u128::from(unit.size_bytes).max(1);
    let total: u128 =
        candidates
            .iter()
            .map(|candidate| {
                if let SplitCandidate::RowGroup { row_group: unit, .. } = candidate { size(unit) } else { 0 }
            })
            .sum();
    let count = tasks.len() as u128;
    let mut before = 0;
    for (position, candidate) in candidates.iter().enumerate() {
        let SplitCandidate::RowGroup { file, number, row_group: unit } = candidate else { continue };
        let size = size(unit);
        let cut = |task: usize, amount: u64| {
            let inside = (total * task as u128 / count).clamp(before, before + size) - before;
            let quarters = (2 * inside * CUTS_PER_ROW_GROUP + size) / (2 * size);
            (u128::from(amount) * quarters / CUTS_PER_ROW_GROUP) as u64
        };
        for (task, splits) in tasks.iter_mut().enumerate() {
            let records = cut(task, unit.record_count)..cut(task + 1, unit.record_count);
            if !records.is_empty() {
                let size_bytes = cut(task + 1, unit.size_bytes) - cut(task, unit.size_bytes);
                let part = SplitRange::Records { row_group: *number, records };
                splits.push((position, Split { file: *file, range: part, size_bytes }));
            }
        }
        before += size;
    }
}

fn assign_whole_files(candidates: &[SplitCandidate], tasks: &mut [Vec<(usize, Split)>], loads: &mut [u64]) {
    let whole = |(position, candidate): (usize, &SplitCandidate)| match candidate {
        SplitCandidate::Whole { file, bytes } => Some((position, *file, *bytes)),
        SplitCandidate::Bytes { .. } | SplitCandidate::RowGroup { .. } => None,
    };
    let mut files: Vec<(usize, usize, u64)> = candidates.iter().enumerate().filter_map(whole).collect();
    files.sort_by_key(|(_, _, bytes)| std::cmp::Reverse(*bytes));
    for (position, file, size_bytes) in files {
        let task = (0..tasks.len()).min_by_key(|task| loads[*task]).expect("there is a task");
        tasks[task].push((position, Split { file, range: SplitRange::Whole, size_bytes }));
        loads[task] += size_bytes;
    }
}

#[cfg(test)]
mod tests;
