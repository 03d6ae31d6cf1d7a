//! Splits: which part of the input each task reads.
//!
//! All plain files together are one run of `S` bytes; task `t` of `T` takes bytes `[t*S/T, (t+1)*S/T)`. A record belongs
//! to the split in which its first byte lies. What cannot be cut (compressed files, row groups) goes whole, largest
//! first, to the task with the least so far.

use std::ops::Range;

/// A part of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Position of the file among the inputs.
    pub file: usize,
    /// Which part.
    pub part: Part,
    /// Bytes of the file that this part covers, for progress.
    pub size_bytes: u64,
}

/// What of a file a split covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The lines that begin in this range of bytes.
    Bytes(Range<u64>),
    /// All of it, front to back.
    Whole,
    /// One unit of a format in blocks (a row group of Parquet).
    Unit(usize),
}

/// What there is to divide.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// A file that can be cut at any byte.
    Bytes { file: usize, bytes: u64 },
    /// Something that stays together.
    Fixed { file: usize, part: Part, bytes: u64 },
}

/// The splits of each task, each task's in the order of the pieces.
pub(crate) fn divide(pieces: &[Piece], task_count: usize) -> Vec<Vec<Split>> {
    assert!(task_count > 0, "splits for no task");
    let mut tasks: Vec<Vec<(usize, Split)>> = vec![Vec::new(); task_count];
    let mut loads = vec![0u64; task_count];
    cut_bytes(pieces, &mut tasks, &mut loads);
    spread_fixed(pieces, &mut tasks, &mut loads);
    for task in &mut tasks {
        task.sort_by_key(|(piece, _)| *piece);
    }
    tasks.into_iter().map(|task| task.into_iter().map(|(_, split)| split).collect()).collect()
}

fn cut_bytes(pieces: &[Piece], tasks: &mut [Vec<(usize, Split)>], loads: &mut [u64]) {
    let sizes = pieces.iter().map(|piece| match piece {
        Piece::Bytes { bytes, .. } => *bytes,
        Piece::Fixed { .. } => 0,
    });
    let total: u64 = sizes.sum();
    let count = tasks.len() as u128;
    let bound = |task: usize| (u128::from(total) * task as u128 / count) as u64;
    let mut before = 0;
    for (position, piece) in pieces.iter().enumerate() {
        let Piece::Bytes { file, bytes } = *piece else { continue };
        for task in 0..tasks.len() {
            let start = bound(task).clamp(before, before + bytes) - before;
            let end = bound(task + 1).clamp(before, before + bytes) - before;
            if start < end {
                let split = Split { file, part: Part::Bytes(start..end), size_bytes: end - start };
                tasks[task].push((position, split));
                loads[task] += end - start;
            }
        }
        before += bytes;
    }
}

fn spread_fixed(pieces: &[Piece], tasks: &mut [Vec<(usize, Split)>], loads: &mut [u64]) {
    let mut fixed: Vec<(usize, &Piece)> = pieces.iter().enumerate().collect();
    fixed.sort_by_key(|(_, piece)| match piece {
        Piece::Fixed { bytes, .. } => std::cmp::Reverse(*bytes),
        Piece::Bytes { .. } => std::cmp::Reverse(0),
    });
    for (position, piece) in fixed {
        let Piece::Fixed { file, part, bytes } = piece else { continue };
        let task = (0..tasks.len()).min_by_key(|task| loads[*task]).expect("there is a task");
        tasks[task].push((position, Split { file: *file, part: part.clone(), size_bytes: *bytes }));
        loads[task] += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(file: usize, bytes: u64) -> Piece {
        Piece::Fixed { file, part: Part::Whole, bytes }
    }

    #[test]
    fn bytes_of_all_files_are_one_run() {
        let splits = divide(&[Piece::Bytes { file: 0, bytes: 10 }, Piece::Bytes { file: 1, bytes: 5 }], 3);
        let ranges: Vec<Vec<(usize, Part)>> =
            splits.into_iter().map(|task| task.into_iter().map(|s| (s.file, s.part)).collect()).collect();
        assert_eq!(
            ranges,
            [vec![(0, Part::Bytes(0..5))], vec![(0, Part::Bytes(5..10))], vec![(1, Part::Bytes(0..5))]]
        );
    }

    #[test]
    fn what_stays_together_is_spread_by_size_in_file_order() {
        let splits = divide(&[fixed(0, 3), fixed(1, 5), fixed(2, 3), fixed(3, 1)], 2);
        let files: Vec<Vec<usize>> =
            splits.into_iter().map(|t| t.into_iter().map(|s| s.file).collect()).collect();
        assert_eq!(files, [vec![1, 3], vec![0, 2]]);
    }

    #[test]
    fn one_input_of_unknown_size_goes_to_the_first_task() {
        let splits = divide(&[fixed(0, 0)], 3);
        assert_eq!(splits.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0]);
    }
}
