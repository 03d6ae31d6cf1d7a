//! Snapshots: what they have, whatever is pushed later, and how they are restored.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::sync::Arc;

use common::*;
use matrix::function::zip::Zip;
use matrix::*;
use proptest::prelude::*;

/// Matrices of each kind of storage: narrow and wide sparse rows, dense rows, long rows.
fn kinds() -> Vec<MatrixSpec> {
    let sparse = |rule, columns| {
        let base = spec(ElementType::F32, rule, Consistency::Asp);
        let initializer = Initializer::Normal { deviation: 0.5 };
        MatrixSpec { columns, initializer, rows: 50_000, ..base }
    };
    let dense = MatrixSpec {
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: 3 },
        rows: 30_000,
        ..sparse(ftrl(), 2)
    };
    let long = MatrixSpec { rule: ftrl(), ..long(3, 40_000, 4) };
    let narrow = [PushRule::Add, ftrl()].map(|rule| sparse(rule, 1));
    [&narrow[..], &[sparse(adam(), 5), dense, long]].concat()
}

/// Pushes to some keys.
fn push(store: &Arc<LocalStore>, seed: u64) {
    let spec = store.specs().next().unwrap().clone();
    let bound = spec.key_bound();
    let keys: Vec<u64> = (0..4_000).map(|i| (i * 7 + seed * 13) % bound).collect();
    let mut keys = keys;
    keys.sort_unstable();
    keys.dedup();
    let values: Vec<f32> =
        (0..keys.len() * spec.columns_of_table()).map(|i| (i % 7) as f32 + seed as f32).collect();
    let mut agent = store.join().unwrap();
    let selection = match spec.axis {
        Axis::Row => Selection::Rows(Keys::Sorted(&keys)),
        Axis::Column => Selection::Columns { row: (seed % 3) as u32, keys: Keys::Sorted(&keys) },
    };
    agent.push(W, selection, Values::F32(&values)).unwrap();
    agent.finish().unwrap();
}

/// All rows of a snapshot, in the order of their keys.
fn rows_of(snapshot: &Snapshot, spec: &MatrixSpec) -> RowBlock {
    let gathered = store_of(1, [spec.clone()]);
    gathered.import(W, &RowBlock::none(spec)).unwrap();
    let mut row_count = 0;
    for block in 0..snapshot.block_count() {
        let rows = snapshot.block(block);
        row_count += rows.keys.len() as u64;
        gathered.import_block(W, &rows, None).unwrap();
    }
    assert_eq!(row_count, snapshot.row_count(), "{}: each row is in one block", spec.name);
    gathered.export(W).unwrap()
}

#[test]
fn a_snapshot_has_the_rows_of_its_moment_and_is_restored() {
    for spec in kinds() {
        let store = store_of(1, [spec.clone()]);
        let empty = store.snapshot(W).unwrap();
        for seed in 0..4 {
            push(&store, seed);
        }
        let before = store.export(W).unwrap();
        let snapshot = store.snapshot(W).unwrap();
        // Many new keys, so that tables grow.
        for seed in 4..30 {
            push(&store, seed);
        }
        let after = store.export(W).unwrap();
        assert_ne!(after, before);
        assert_eq!(rows_of(&snapshot, &spec), before, "{spec:?}");
        let later = store.snapshot(W).unwrap();
        store.restore(W, &snapshot).unwrap();
        assert_eq!(store.export(W).unwrap(), before, "{spec:?}");
        // What is pushed after a restoration changes no snapshot, and the same pushes give the same rows.
        for seed in 4..30 {
            push(&store, seed);
        }
        if spec.rule != adam() {
            assert_eq!(store.export(W).unwrap(), after, "{spec:?}");
        }
        assert_eq!(rows_of(&snapshot, &spec), before, "{spec:?}");
        assert_eq!(rows_of(&later, &spec), after, "{spec:?}");
        store.restore(W, &empty).unwrap();
        let none = store_of(1, [spec.clone()]);
        assert_eq!(store.export(W).unwrap(), none.export(W).unwrap(), "{spec:?}");
    }
}

/// What happens to a matrix with snapshots.
#[derive(Clone, Debug)]
enum Change {
    /// Pushes to so many keys from a first one on, this far from each other.
    Push {
        first: u64,
        step: u64,
        count: u64,
    },
    Take,
    /// Takes one that records changes, and brings a copy up to date with what has changed since the one before.
    Follow,
    /// Drops one of the snapshots.
    Drop(usize),
    Restore(usize),
    /// Removes all rows.
    Clear,
}

fn change() -> impl Strategy<Value = Change> {
    let keys = (0u64..40_000, prop_oneof![Just(1u64), 1u64..90], prop_oneof![1u64..40, 1_000u64..4_000]);
    let push = keys.prop_map(|(first, step, count)| Change::Push { first, step, count });
    let (drop, restore) = ((0usize..4).prop_map(Change::Drop), (0usize..4).prop_map(Change::Restore));
    prop_oneof![6 => push, 3 => Just(Change::Take), 3 => Just(Change::Follow), 1 => drop, 1 => restore, 1 => Just(Change::Clear)]
}

fn check_snapshots(spec: &MatrixSpec, changes: &[Change]) -> Result<(), TestCaseError> {
    let store = store_of(1, [spec.clone()]);
    let mut agent = store.join().unwrap();
    let mut taken: Vec<(Snapshot, RowBlock)> = Vec::new();
    // Rows that have vanished are no changes of rows: after those the copy begins again.
    let (copy, mut rows_vanished) = (store_of(1, [spec.clone()]), true);
    let bound = spec.key_bound();
    for change in changes {
        match change {
            Change::Push { first, step, count } => {
                let keys: Vec<u64> =
                    (0..*count).map(|i| first + i * step).take_while(|key| *key < bound).collect();
                let values: Vec<f32> = (0..keys.len() * spec.columns_of_table()).map(|i| i as f32).collect();
                let selection = match spec.axis {
                    Axis::Row => Selection::Rows(Keys::Sorted(&keys)),
                    Axis::Column => Selection::Columns { row: (step % 3) as u32, keys: Keys::Sorted(&keys) },
                };
                agent.push(W, selection, Values::F32(&values)).unwrap();
            }
            Change::Take => taken.push((store.snapshot(W).unwrap(), store.export(W).unwrap())),
            Change::Follow => {
                if std::mem::take(&mut rows_vanished) {
                    copy.import(W, &RowBlock::none(spec)).unwrap();
                }
                let changes = store.snapshot_with_changes(W).unwrap().changes();
                let blocks = (0..changes.block_count()).map(|block| changes.block(block));
                blocks.for_each(|rows| copy.import_block(W, &rows, None).unwrap());
                prop_assert_eq!(copy.export(W).unwrap(), store.export(W).unwrap());
            }
            Change::Drop(i) if *i < taken.len() => drop(taken.remove(*i)),
            Change::Restore(i) if *i < taken.len() => {
                rows_vanished = true;
                store.restore(W, &taken[*i].0).unwrap();
                prop_assert_eq!(&store.export(W).unwrap(), &taken[*i].1);
            }
            Change::Drop(_) | Change::Restore(_) => {}
            Change::Clear => {
                rows_vanished = true;
                store.import(W, &RowBlock::none(spec)).unwrap();
            }
        }
    }
    for (snapshot, expected) in &taken {
        prop_assert_eq!(&rows_of(snapshot, spec), expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A snapshot has the rows of its moment after any changes, beside any others. Keys above 2^32 make rows wide.
    #[test]
    fn snapshots_keep_their_rows_through_any_changes(
        kind in 0..kinds().len(),
        far in prop::bool::ANY,
        changes in prop::collection::vec(change(), 1..24),
    ) {
        let mut spec = kinds()[kind].clone();
        let mut changes = changes;
        if far && spec.storage == Storage::Sparse {
            spec.rows = 1 << 40;
            for change in changes.iter_mut().skip(6) {
                if let Change::Push { step, .. } = change {
                    *step <<= 20;
                }
            }
        }
        check_snapshots(&spec, &changes)?;
    }
}

#[test]
fn the_changes_between_two_snapshots_are_little_more_than_what_was_pushed() {
    for (kind, spec) in kinds().into_iter().enumerate() {
        let store = store_of(1, [spec.clone()]);
        let keys: Vec<u64> = (0..spec.key_bound().min(50_000)).collect();
        let push = |keys: &[u64]| {
            let selection = match spec.axis {
                Axis::Row => Selection::Rows(Keys::Sorted(keys)),
                Axis::Column => Selection::Columns { row: 1, keys: Keys::Sorted(keys) },
            };
            let values = vec![1.0; keys.len() * spec.columns_of_table()];
            let mut agent = store.join().unwrap();
            agent.push(W, selection, Values::F32(&values)).unwrap();
            agent.finish().unwrap();
        };
        push(&keys);
        let rows_of_changes = |snapshot: &Snapshot| {
            let changes = snapshot.changes();
            (0..changes.block_count()).map(|block| changes.block(block).keys.len()).sum::<usize>()
        };
        let first = store.snapshot_with_changes(W).unwrap();
        let all = rows_of_changes(&first);
        assert_eq!(all as u64, first.row_count(), "{kind}: nothing is known of what was before");
        push(&keys[100..103]);
        let changed = rows_of_changes(&store.snapshot_with_changes(W).unwrap());
        assert!((3..all / 30).contains(&changed), "{kind}: {changed} of {all} rows");
        let unchanged = store.snapshot_with_changes(W).unwrap();
        assert_eq!((rows_of_changes(&unchanged), unchanged.changes().block_count()), (0, 0), "{kind}");
    }
}

#[test]
fn what_is_staged_below_the_smallest_clock_is_in_a_snapshot_and_the_rest_is_not() {
    let mut staged = spec(ElementType::F32, PushRule::Add, Consistency::Bsp);
    staged.rows = 100;
    let store = store_of(1, [staged.clone()]);
    let mut agent = store.agent(0);
    push_f32(&mut agent, &[3], &[1.0]).unwrap();
    agent.tick().unwrap();
    push_f32(&mut agent, &[3], &[10.0]).unwrap();
    let snapshot = store.snapshot(W).unwrap();
    agent.tick().unwrap();
    assert_eq!(rows_of(&snapshot, &staged).values, OwnedValues::F32(vec![1.0]));
    assert_eq!(pull_f32(&mut agent, &[3], 1).unwrap(), [11.0]);
    push_f32(&mut agent, &[3], &[100.0]).unwrap();
    store.restore(W, &snapshot).unwrap();
    agent.tick().unwrap();
    assert_eq!(pull_f32(&mut agent, &[3], 1).unwrap(), [1.0], "what was staged is discarded");
}

#[test]
fn a_matrix_with_room_for_its_rows_takes_the_blocks_of_a_snapshot_without_growing() {
    let spec = MatrixSpec { rows: 1 << 20, ..spec(ElementType::F32, ftrl(), Consistency::Asp) };
    let store = store_of(1, [spec.clone()]);
    let mut agent = store.agent(0);
    let keys: Vec<u64> = (0..300_000).map(|i| i * 3).collect();
    push_f32(&mut agent, &keys, &vec![1.0; keys.len()]).unwrap();
    let snapshot = store.snapshot(W).unwrap();
    assert!(snapshot.block_count() > 5);
    let whole = store.export(W).unwrap();
    for expected in [0, snapshot.row_count(), 1] {
        let copy = store_of(1, [spec.clone()]);
        copy.import_block(W, &RowBlock::none(&spec), Some(expected)).unwrap();
        let room = copy.stats().matrices[0].size_bytes;
        for block in 0..snapshot.block_count() {
            copy.import_block(W, &snapshot.block(block), None).unwrap();
        }
        assert_eq!(copy.export(W).unwrap(), whole, "{expected} rows expected");
        let grown = copy.stats().matrices[0].size_bytes != room;
        assert_eq!(grown, expected < 2, "{expected} rows expected");
    }
}

#[test]
fn memory_of_snapshots_is_counted_once_and_only_for_what_the_matrix_has_no_more() {
    let narrow = MatrixSpec { rows: 1_000_000, ..spec(ElementType::F32, ftrl(), Consistency::Asp) };
    let matrix = Matrix::new(narrow, &[0, 1, 2, 3], &FunctionTable::builtin()).unwrap();
    let rows = |keys: std::ops::Range<u64>| {
        let values = OwnedValues::F32(vec![1.0; keys.clone().count()]);
        RowBlock::of_values(keys.collect(), values)
    };
    matrix.import(&rows(0..200_000), Some(400_000)).unwrap();
    let size = matrix.size_bytes();
    let [first, second] = [0, 1].map(|_| matrix.snapshot(0).unwrap());
    assert_eq!(matrix.snapshot_bytes([&first, &second]), 0, "nothing is copied yet");
    matrix.import(&rows(7..8), None).unwrap();
    let one = matrix.snapshot_bytes([&first]);
    assert!(one > 0 && one < size / 20, "a page is copied: {one} of {size} bytes");
    matrix.import(&rows(0..200_000), None).unwrap();
    let all = matrix.snapshot_bytes([&first]);
    assert!((size..size + size / 10).contains(&all), "each page is copied once: {all} of {size} bytes");
    matrix.import(&rows(0..200_000), None).unwrap();
    assert_eq!(matrix.snapshot_bytes([&first]), all);
    // The tables grow: both snapshots have the old ones.
    let before = matrix.snapshot_bytes([&first, &second]);
    for start in 1..5 {
        matrix.import(&rows(start * 200_000..(start + 1) * 200_000), None).unwrap();
    }
    assert!(matrix.size_bytes() >= 2 * size, "they have grown");
    assert_eq!(matrix.snapshot_bytes([&first, &second]), before + size, "they share the arrays");
    matrix.restore(&first).unwrap();
    drop(second);
    assert_eq!(matrix.snapshot_bytes([&first]), 0, "the matrix has its rows again");
}

#[test]
#[should_panic(expected = "the snapshot is that of another matrix")]
fn a_snapshot_of_another_matrix_is_not_restored() {
    let one = store_of(1, [spec(ElementType::F32, PushRule::Add, Consistency::Asp)]);
    let other = store_of(1, [spec(ElementType::F32, ftrl(), Consistency::Asp)]);
    other.restore(W, &one.snapshot(W).unwrap()).unwrap();
}

/// A function that overwrites a row gives it new memory: the snapshot still has the old values.
#[test]
fn a_snapshot_has_a_row_as_it_was_before_a_function_has_overwritten_it() {
    let spec = MatrixSpec { initializer: Initializer::Constant { value: 2.0 }, ..long(3, 40_000, 4) };
    let store = store_of(1, [spec.clone()]);
    let first = store.snapshot(W).unwrap();
    let before = rows_of(&first, &spec);
    let mut agent = store.join().unwrap();
    let double = FunctionCall::push(&Zip::Add, &[0, 0], &[1], &());
    agent.push_function(W, std::slice::from_ref(&double)).unwrap();
    agent.push_function(W, &[double, FunctionCall::push(&Zip::Add, &[1, 1], &[1], &())]).unwrap();
    agent.finish().unwrap();
    assert_eq!(rows_of(&first, &spec), before);
    let after = rows_of(&store.snapshot(W).unwrap(), &spec);
    let OwnedValues::F32(values) = after.values else { panic!("f32") };
    assert_eq!(values[..40_000], vec![2.0; 40_000]);
    assert_eq!(values[40_000..80_000], vec![8.0; 40_000]);
    store.restore(W, &first).unwrap();
    assert_eq!(store.export(W).unwrap(), before);
}
