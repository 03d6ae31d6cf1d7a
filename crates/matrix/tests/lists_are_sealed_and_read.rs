//! List matrices: filled by several tasks, sealed, and read; the same lists for any partitions and any pages.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{W, store_of};
use matrix::lists::owner_of;
use matrix::{
    Agent, Element, ElementType, Error, Keys, ListMatrix, ListSelection, LocalAgent, LocalStore, MatrixSpec,
    PushRule, RowBlock, Selection, Storage, Values,
};
use proptest::prelude::*;

const ALL: ListSelection<'_> = ListSelection::Range(0, u64::MAX);

fn spec(rule: PushRule, partition_count: u32) -> MatrixSpec {
    ListMatrix::spec("ratings", ElementType::F32, 1, rule, partition_count)
}

/// The agents of the tasks, each on a thread of its own.
fn each_task(store: &Arc<LocalStore>, task_count: u32, run: impl Fn(&mut LocalAgent) + Sync) {
    std::thread::scope(|scope| {
        for task in 0..task_count {
            let run = &run;
            scope.spawn(move || run(&mut store.agent(task)));
        }
    });
}

fn block(rows: &[(u64, u64, f32)]) -> RowBlock {
    let mut block = RowBlock::no_lists(ElementType::F32);
    for (row, entry, value) in rows {
        block.push_list(*row, &[*entry], &[*value]);
    }
    block
}

/// The entries of all rows.
fn entries(block: &RowBlock) -> Vec<(u64, u64, f32)> {
    let values = f32::slice(block.values.as_values()).expect("f32");
    let rows =
        block.rows().flat_map(|(row, range)| range.map(move |at| (row, block.entries()[at], values[at])));
    rows.collect()
}

fn filled(rule: PushRule, partitions: u32, parts: &[Vec<(u64, u64, f32)>]) -> (Arc<LocalStore>, ListMatrix) {
    let spec = spec(rule, partitions);
    let lists = ListMatrix::new(W, &spec).expect("lists");
    let tasks = parts.len() as u32;
    let store = store_of(tasks, [spec]);
    each_task(&store, tasks, |agent| {
        let own = &parts[agent.task() as usize];
        let (first, second) = own.split_at(own.len() / 2);
        lists.append(agent, &block(first)).expect("they fit");
        agent.tick().expect("a tick");
        lists.append(agent, &block(second)).expect("they fit");
        lists.seal(agent).expect("they are sealed");
    });
    (store, lists)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn lists_are_those_of_a_map_for_any_rule_and_partitions(
        parts in prop::collection::vec(prop::collection::vec((0u64..12, 0u64..9, -8i8..8), 0..40), 1..4),
        partitions in 1u32..6,
    ) {
        let parts: Vec<Vec<(u64, u64, f32)>> = parts
            .into_iter()
            .map(|part| part.into_iter().map(|(row, entry, value)| (row, entry, f32::from(value))).collect())
            .collect();
        for (rule, merge) in [
            (PushRule::Add, (|a, b| a + b) as fn(f32, f32) -> f32),
            (PushRule::Assign, |_, b| b),
            (PushRule::Max, f32::max),
        ] {
            let mut expected: BTreeMap<(u64, u64), f32> = BTreeMap::new();
            for (row, entry, value) in parts.iter().flatten() {
                expected.entry((*row, *entry)).and_modify(|old| *old = merge(*old, *value)).or_insert(*value);
            }
            let expected: Vec<_> = expected.into_iter().map(|((row, entry), value)| (row, entry, value)).collect();
            let (store, lists) = filled(rule, partitions, &parts);
            let mut agent = store.agent(0);
            prop_assert_eq!(&entries(&lists.pull(&mut agent, &ALL).unwrap()), &expected);
            let some = [2, 3, 50];
            let listed = lists.pull(&mut agent, &ListSelection::Rows(&some)).unwrap();
            prop_assert_eq!(&listed.keys, &some, "a row without entries is there, and empty");
            let of_some: Vec<_> = expected.iter().copied().filter(|(row, ..)| some.contains(row)).collect();
            prop_assert_eq!(entries(&listed), of_some);
            let mut owned = Vec::new();
            for task in 0..3 {
                let own = lists.pull(&mut agent, &ListSelection::Owned { task, task_count: 3 }).unwrap();
                prop_assert!(own.keys.iter().all(|row| owner_of(*row, 3) == task));
                owned.extend(entries(&own));
            }
            owned.sort_by_key(|(row, entry, _)| (*row, *entry));
            prop_assert_eq!(owned, expected, "each row belongs to one task");
        }
    }
}

#[test]
fn a_row_longer_than_a_page_comes_whole() {
    let long: Vec<(u64, u64, f32)> = (0..300_000u64).map(|i| (7, i * 3, i as f32)).collect();
    // So many partitions that each answers little at once.
    let (store, lists) = filled(PushRule::Add, 1000, &[long.clone(), vec![(3, 1, 1.0), (9, 1, 2.0)]]);
    let mut agent = store.agent(0);
    let all = entries(&lists.pull(&mut agent, &ALL).expect("all"));
    assert_eq!(all.len(), long.len() + 2);
    assert_eq!(all[1..=long.len()], long);
    let lengths = lists.lengths(&mut agent, &ALL).expect("lengths");
    assert_eq!(lengths, [(3, 1), (7, 300_000), (9, 1)]);
}

#[test]
fn lists_go_out_and_come_back() {
    // One long row, cut by blocks of a snapshot and pages of an export, among short ones.
    let mut rows: Vec<(u64, u64, f32)> = (0..200_000u64).map(|i| (50, i, i as f32)).collect();
    rows.extend((0..3000u64).map(|i| (i % 97, 1_000_000 + i, 0.5)));
    let (store, lists) = filled(PushRule::Add, 5, &[rows]);
    let all = store.export(W).expect("all rows");
    assert_eq!(all, lists.pull(&mut store.agent(0), &ALL).expect("all lists"));
    let counts = store.count_rows(W).expect("counts");
    assert_eq!((counts.rows, counts.entries), (97, 203_000));
    let snapshot = store.snapshot_with_changes(W).expect("a snapshot");
    assert!(snapshot.block_count() > 3, "a row is cut");
    let other = store_of(1, [spec(PushRule::Add, 3)]);
    other.import_block(W, &RowBlock::none(snapshot.spec()), Some(0)).expect("it fits");
    // The blocks are in no order, and one comes again, as after a loss: its values are not added up.
    for block in (0..snapshot.block_count()).rev().chain([1]) {
        other.import_block(W, &snapshot.block(block), None).expect("it fits");
    }
    assert_eq!(other.export(W).expect("all rows"), all);
    assert_eq!(lists.lengths(&mut other.agent(0), &ListSelection::Rows(&[50])), Ok(vec![(50, 200_031)]));
    let again = store.snapshot_with_changes(W).expect("a snapshot");
    assert_eq!((again.changes().block_count(), snapshot.changes().block_count() > 0), (0, true));
    store.restore(W, &snapshot).expect("what it had");
    assert_eq!(store.export(W).expect("all rows"), all);
}

#[test]
fn a_snapshot_before_the_seal_is_refused_and_imported_lists_may_be_appended_to() {
    let lists_spec = spec(PushRule::Add, 2);
    let lists = ListMatrix::new(W, &lists_spec).expect("lists");
    let store = store_of(1, [lists_spec.clone()]);
    let mut agent = store.agent(0);
    lists.append(&mut agent, &block(&[(1, 2, 0.5)])).expect("it fits");
    let error = store.snapshot(W).expect_err("not sealed").to_string();
    assert!(error.contains("not sealed"), "{error}");
    let store = store_of(1, [lists_spec]);
    let mut agent = store.agent(0);
    store.import(W, &block(&[(1, 2, 0.5), (3, 4, 1.0)])).expect("it fits");
    lists.append(&mut agent, &block(&[(1, 2, 0.25), (1, 9, 1.0)])).expect("a training goes on");
    lists.seal(&mut agent).expect("sealed");
    let all = lists.pull(&mut agent, &ALL).expect("all");
    assert_eq!(entries(&all), [(1, 2, 0.75), (1, 9, 1.0), (3, 4, 1.0)]);
}

#[test]
fn functions_see_rows() {
    let rows = vec![(1, 2, 0.5), (1, 4, 3.0), (1, 6, 3.0), (2, 4, 1.0), (2, 6, -1.0), (2, 7, 9.0)];
    let (store, lists) = filled(PushRule::Add, 3, &[rows]);
    let mut agent = store.agent(0);
    assert_eq!(lists.sums(&mut agent, &ALL), Ok(vec![(1, 6.5), (2, 9.0)]));
    let list: Vec<u64> =
        lists.pull(&mut agent, &ListSelection::Rows(&[1])).expect("a row").entries().to_vec();
    assert_eq!(lists.overlaps(&mut agent, &ListSelection::Rows(&[2]), &list), Ok(vec![(2, 2)]));
    let best = lists.best(&mut agent, &ALL, 2).expect("the best two");
    assert_eq!(entries(&best), [(1, 4, 3.0), (1, 6, 3.0), (2, 7, 9.0), (2, 4, 1.0)], "equal values by key");
}

#[test]
fn what_does_not_suit_lists_is_refused() {
    let lists_spec = spec(PushRule::Add, 2);
    let lists = ListMatrix::new(W, &lists_spec).expect("lists");
    let store = store_of(1, [lists_spec.clone()]);
    let mut agent = store.agent(0);
    let text = |error: Error| error.to_string();
    let read = lists.pull(&mut agent, &ALL).map(drop).map_err(text);
    assert!(read.as_ref().is_err_and(|text| text.contains("not sealed")), "{read:?}");
    let bad = lists.append(&mut agent, &block(&[(1, 2, f32::NAN)])).map_err(text);
    assert!(bad.as_ref().is_err_and(|text| text.contains("NaN as the value of entry 2 of row 1")), "{bad:?}");
    let mut lies = block(&[(1, 2, 0.5)]);
    lies.lists.as_mut().expect("lists").lengths[0] = 3;
    assert!(lists.append(&mut agent, &lies).is_err(), "the lengths do not add up");
    lists.append(&mut agent, &block(&[(1, 2, 0.5)])).expect("it fits");
    let pushed = agent.push(W, Selection::Rows(Keys::Sorted(&[1])), Values::F32(&[1.0])).map_err(text);
    assert!(pushed.as_ref().is_err_and(|text| text.contains("its rows are lists")), "{pushed:?}");
    lists.seal(&mut agent).expect("sealed");
    let late = lists.append(&mut agent, &block(&[(1, 3, 0.5)])).map_err(text);
    assert!(late.as_ref().is_err_and(|text| text.contains("are sealed")), "{late:?}");
    let falling = lists.pull(&mut agent, &ListSelection::Rows(&[4, 1])).map_err(text);
    assert!(falling.is_err(), "rows of a selection ascend");
    let functions = matrix::FunctionTable::builtin();
    for (bad, word) in [
        (MatrixSpec { columns: 2, ..lists_spec.clone() }, "columns"),
        (MatrixSpec { consistency: matrix::Consistency::Bsp, ..lists_spec.clone() }, "consistency"),
        (MatrixSpec { axis: matrix::Axis::Column, columns: 1, rows: 4, ..lists_spec }, "axis"),
    ] {
        let refused = bad.check(&functions).map_err(text);
        assert!(refused.as_ref().is_err_and(|text| text.contains(word)), "{refused:?}");
    }
}

#[test]
fn equal_keys_and_sums_out_of_range_are_errors_of_the_seal() {
    let unique = MatrixSpec { storage: Storage::UniqueList, ..spec(PushRule::Assign, 2) };
    let lists = ListMatrix::new(W, &unique).expect("lists");
    let store = store_of(1, [unique]);
    let mut agent = store.agent(0);
    lists.append(&mut agent, &block(&[(5, 2, 0.5), (5, 3, 1.0), (5, 2, 0.5)])).expect("it fits");
    let error = lists.seal(&mut agent).expect_err("an entry twice").to_string();
    assert!(error.contains("row 5 has the entry 2 twice"), "{error}");

    let counts = ListMatrix::spec("counts", ElementType::I32, 1, PushRule::Add, 2);
    let lists = ListMatrix::new(W, &counts).expect("lists");
    let store = store_of(1, [counts]);
    let mut agent = store.agent(0);
    let mut large = lists.block();
    large.push_list(3, &[1, 1], &[i32::MAX, 1]);
    lists.append(&mut agent, &large).expect("it fits");
    let error = lists.seal(&mut agent).expect_err("too large").to_string();
    assert!(error.contains("the entries 1 of row 3 has left the range of i32"), "{error}");
}

#[test]
fn entries_may_have_keys_alone() {
    let keys = ListMatrix::spec("neighbours", ElementType::F32, 0, PushRule::Assign, 2);
    let lists = ListMatrix::new(W, &keys).expect("lists");
    let store = store_of(1, [keys]);
    let mut agent = store.agent(0);
    let mut edges = lists.block();
    edges.push_list::<f32>(1, &[9, 3, 9], &[]);
    lists.append(&mut agent, &edges).expect("it fits");
    lists.seal(&mut agent).expect("sealed");
    let read = lists.owned(&mut agent).expect("all rows of the only task");
    assert_eq!((&read.keys[..], read.entries(), read.values.len()), (&[1][..], &[3, 9][..], 0));
    assert!(lists.sums(&mut agent, &ALL).is_err(), "there are no values");
}
