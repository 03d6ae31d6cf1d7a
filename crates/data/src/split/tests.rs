//! Tests of `split.rs`.

use super::*;

fn whole(file: usize, bytes: u64) -> SplitCandidate {
    SplitCandidate::Whole { file, bytes }
}

/// The records of each task: (file, row group, first, one past the last).
fn records(units: &[(usize, usize, u64, u64)], task_count: usize) -> Vec<Vec<(usize, usize, u64, u64)>> {
    let piece =
        |(file, number, size_bytes, record_count): &(usize, usize, u64, u64)| SplitCandidate::RowGroup {
            file: *file,
            number: *number,
            row_group: RowGroup { size_bytes: *size_bytes, record_count: *record_count },
        };
    let tasks = assign_splits(&units.iter().map(piece).collect::<Vec<_>>(), task_count);
    let record = |split: Split| match split.range {
        SplitRange::Records { row_group: unit, records } => (split.file, unit, records.start, records.end),
        part => panic!("{part:?} of a format in blocks"),
    };
    tasks.into_iter().map(|task| task.into_iter().map(record).collect()).collect()
}

#[test]
fn a_unit_is_cut_at_quarters() {
    assert_eq!(records(&[(0, 0, 100, 10)], 2), [[(0, 0, 0, 5)], [(0, 0, 5, 10)]]);
    assert_eq!(records(&[(0, 0, 100, 10)], 3), [[(0, 0, 0, 2)], [(0, 0, 2, 7)], [(0, 0, 7, 10)]]);
    let eight: Vec<usize> = records(&[(0, 0, 100, 10)], 8).iter().map(Vec::len).collect();
    assert_eq!(eight.iter().sum::<usize>(), 4);
}

#[test]
fn units_of_all_files_are_one_run() {
    let units = [(0, 0, 10, 4), (0, 1, 10, 4), (1, 0, 20, 8)];
    assert_eq!(records(&units, 2), [vec![(0, 0, 0, 4), (0, 1, 0, 4)], vec![(1, 0, 0, 8)]]);
    let three = records(&units, 3);
    assert_eq!(
        three,
        [vec![(0, 0, 0, 4), (0, 1, 0, 1)], vec![(0, 1, 1, 4), (1, 0, 0, 2)], vec![(1, 0, 2, 8)]]
    );
}

#[test]
fn each_record_of_units_of_any_size_goes_to_one_task() {
    let units = [(0, 0, 0, 3), (0, 1, u64::MAX, 7), (1, 0, 5, 0), (2, 0, u64::MAX, u64::MAX), (2, 1, 1, 1)];
    for task_count in 1..9 {
        let mut next: Vec<u64> = vec![0; units.len()];
        for (file, number, first, end) in records(&units, task_count).into_iter().flatten() {
            let unit = units.iter().position(|unit| (unit.0, unit.1) == (file, number)).expect("a unit");
            assert_eq!((next[unit], first < end), (first, true), "{task_count} tasks");
            next[unit] = end;
        }
        assert_eq!(next, units.map(|unit| unit.3), "{task_count} tasks");
    }
}

#[test]
fn bytes_of_all_files_are_one_run() {
    let splits = assign_splits(
        &[SplitCandidate::Bytes { file: 0, bytes: 10 }, SplitCandidate::Bytes { file: 1, bytes: 5 }],
        3,
    );
    let ranges: Vec<Vec<(usize, SplitRange)>> =
        splits.into_iter().map(|task| task.into_iter().map(|s| (s.file, s.range)).collect()).collect();
    assert_eq!(
        ranges,
        [
            vec![(0, SplitRange::Bytes(0..5))],
            vec![(0, SplitRange::Bytes(5..10))],
            vec![(1, SplitRange::Bytes(0..5))]
        ]
    );
}

#[test]
fn what_stays_together_is_spread_by_size_in_file_order() {
    let splits = assign_splits(&[whole(0, 3), whole(1, 5), whole(2, 3), whole(3, 1)], 2);
    let files: Vec<Vec<usize>> =
        splits.into_iter().map(|t| t.into_iter().map(|s| s.file).collect()).collect();
    assert_eq!(files, [vec![1, 3], vec![0, 2]]);
}

#[test]
fn one_input_of_unknown_size_goes_to_the_first_task() {
    let splits = assign_splits(&[whole(0, 0)], 3);
    assert_eq!(splits.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0]);
}
