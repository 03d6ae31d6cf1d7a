//! Export and import of matrices: round trips, refused rows, and the shapes of matrices.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::*;
use matrix::*;

fn train(store: &std::sync::Arc<LocalStore>, steps: u64) -> RowBlock {
    let mut agent = store.join().unwrap();
    for step in 0..steps {
        let keys: Vec<u64> = (0..50).map(|i| i * 7 + step % 3).collect();
        let weights = pull_f32(&mut agent, &keys, 2).unwrap();
        let gradient: Vec<f32> = weights.iter().zip(0..).map(|(w, i)| w - (i % 5) as f32).collect();
        push_f32(&mut agent, &keys, &gradient).unwrap();
        agent.tick().unwrap();
    }
    agent.finish().unwrap();
    store.export(W).unwrap()
}

fn with_columns(rule: PushRule, partition_count: u32) -> MatrixSpec {
    let mut spec = spec(ElementType::F32, rule, Consistency::Asp);
    spec.columns = 2;
    spec.initializer = Initializer::Normal { deviation: 0.5 };
    spec.partitioner = Partitioner::Hash { partition_count };
    spec
}

#[test]
fn training_goes_on_from_an_export_as_if_it_had_not_been_interrupted() {
    for rule in [ftrl(), adam()] {
        let whole = store_of(1, [with_columns(rule, 4)]);
        let half = train(&whole, 10);
        let names: Vec<_> = half.slots.iter().map(|slot| slot.0.as_str()).collect();
        assert_eq!(names, rule.slots().iter().map(|slot| slot.name).collect::<Vec<_>>());
        let resumed = store_of(1, [with_columns(rule, 9)]);
        train(&resumed, 3);
        resumed.import(W, &half).unwrap();
        assert_eq!(resumed.export(W).unwrap(), half, "what was there before is gone");
        // Adam's schedule depends on the clock: the tasks that join start at 10 and at 3.
        if rule == ftrl() {
            assert_eq!(train(&resumed, 10), train(&whole, 10));
        }
    }
}

#[test]
fn ranges_together_have_the_rows_of_the_whole_matrix() {
    let store = store_of(1, [with_columns(adam(), 5)]);
    let whole = train(&store, 9);
    for limit in [1, 7, whole.keys.len() - 1, whole.keys.len(), 1000] {
        let (mut from, mut keys, mut values) = (0, Vec::new(), Vec::new());
        loop {
            let part = store.export_range(W, ExportRange { from, limit }).unwrap();
            let Some(last) = part.keys.last() else { break };
            assert!(part.keys.len() <= limit && part.slots.len() == whole.slots.len());
            from = last + 1;
            keys.extend_from_slice(&part.keys);
            let OwnedValues::F32(part) = part.values else { panic!() };
            values.extend(part);
        }
        assert_eq!((keys, OwnedValues::F32(values)), (whole.keys.clone(), whole.values.clone()), "{limit}");
    }
    let range = ExportRange { from: whole.keys[3], limit: 2 };
    let part = store.export_range(W, range).unwrap();
    assert_eq!(part.keys, whole.keys[3..5]);
    let (OwnedValues::F32(some), OwnedValues::F32(all)) = (&part.slots[0].1, &whole.slots[0].1) else {
        panic!()
    };
    assert_eq!(some.as_slice(), &all[6..10], "the slots of these rows");
}

#[test]
fn what_is_staged_counts_as_memory() {
    let store = store_of(1, [MatrixSpec { consistency: Consistency::Bsp, ..with_columns(PushRule::Add, 1) }]);
    let mut agent = store.join().unwrap();
    let keys: Vec<u64> = (0..1000).collect();
    let before = store.stats().matrices[0].size_bytes;
    push_f32(&mut agent, &keys, &[1.0; 2000]).unwrap();
    let grown = store.stats().matrices[0].size_bytes - before;
    // A key of 8 bytes and two values of 4.
    assert!(grown >= 16_000, "{grown}");
}

#[test]
fn rows_that_are_not_zero_are_counted() {
    let store =
        store_of(1, [MatrixSpec { initializer: Initializer::Zero, ..with_columns(PushRule::Add, 3) }]);
    let mut agent = store.join().unwrap();
    push_f32(&mut agent, &[4, 7, 9], &[0.0, 0.0, 0.0, -1.0, 0.0, 0.0]).unwrap();
    push_f32(&mut agent, &[9], &[-0.0, 0.0]).unwrap();
    agent.finish().unwrap();
    assert_eq!(store.count_rows(W).unwrap(), RowCounts { rows: 3, nonzero_rows: 1, entries: 0 });
}

/// z is the weight times a constant, in single precision.
const ROUNDING: f32 = 1e-6;

#[test]
fn weights_alone_are_enough_to_go_on_with_ftrl() {
    let store = store_of(1, [with_columns(ftrl(), 4)]);
    let mut weights = train(&store, 10);
    weights.slots.clear();
    store.import(W, &weights).unwrap();
    let mut agent = store.agent(0);
    let zeros = vec![0.0; weights.keys.len() * 2];
    push_f32(&mut agent, &weights.keys, &zeros).unwrap();
    let (OwnedValues::F32(before), after) = (weights.values, pull_f32(&mut agent, &weights.keys, 2).unwrap())
    else {
        panic!("an f32 matrix");
    };
    assert!(before.iter().zip(&after).all(|(a, b)| (a - b).abs() <= ROUNDING * a.abs().max(1.0)));
}

#[test]
fn an_agent_that_remembers_rows_is_not_fooled_by_an_import() {
    let store = store_of(1, [spec(ElementType::F32, PushRule::Add, Consistency::Asp)]);
    let mut agent = store.agent(0);
    push_f32(&mut agent, &[5, 6, 7], &[1.0, 2.0, 3.0]).unwrap();
    assert_eq!(pull_f32(&mut agent, &[5, 6, 7], 1).unwrap(), [1.0, 2.0, 3.0]);
    let rows = RowBlock::of_values(vec![1, 7], OwnedValues::F32(vec![8.0, 9.0]));
    store.import(W, &rows).unwrap();
    push_f32(&mut agent, &[5, 6, 7], &[1.0, 1.0, 1.0]).unwrap();
    assert_eq!(pull_f32(&mut agent, &[1, 5, 6, 7], 1).unwrap(), [8.0, 1.0, 1.0, 10.0]);
}

#[test]
fn an_agent_that_remembers_rows_is_not_fooled_by_rows_that_come_beside_them() {
    let sparse = MatrixSpec {
        partitioner: Partitioner::Hash { partition_count: 1 },
        ..spec(ElementType::F32, PushRule::Add, Consistency::Asp)
    };
    let store = store_of(1, [sparse]);
    let mut agent = store.agent(0);
    push_f32(&mut agent, &[5, 6, 7], &[1.0, 2.0, 3.0]).unwrap();
    assert_eq!(pull_f32(&mut agent, &[5, 6, 7, 900], 1).unwrap(), [1.0, 2.0, 3.0, 0.0]);
    let keys: Vec<u64> = (8..1000).collect();
    let values = OwnedValues::F32(keys.iter().map(|key| *key as f32).collect());
    store.import_block(W, &RowBlock::of_values(keys, values), None).unwrap();
    assert_eq!(pull_f32(&mut agent, &[5, 6, 7, 900], 1).unwrap(), [1.0, 2.0, 3.0, 900.0]);
    push_f32(&mut agent, &[5, 6, 7, 900], &[1.0; 4]).unwrap();
    assert_eq!(pull_f32(&mut agent, &[5, 6, 7, 900], 1).unwrap(), [2.0, 3.0, 4.0, 901.0]);
    let other = pull_f32(&mut store.agent(0), &[5, 6, 7, 8, 900], 1).unwrap();
    assert_eq!(other, [2.0, 3.0, 4.0, 8.0, 901.0]);
}

#[test]
fn first_values_are_the_same_for_any_storage_and_number_of_partitions() {
    let read = |storage, partitioner| {
        let mut spec = with_columns(PushRule::Add, 1);
        (spec.rows, spec.storage, spec.partitioner) = (100, storage, partitioner);
        let store = store_of(1, [spec]);
        let mut out = vec![0.0; 200];
        let mut agent = store.agent(0);
        agent.pull(W, Selection::Rows(Keys::Range(0, 100)), ValuesMut::F32(&mut out)).unwrap();
        push_f32(&mut agent, &[3, 50], &[0.0; 4]).unwrap();
        assert_eq!(pull_f32(&mut agent, &[50], 2).unwrap(), out[100..102], "a row is born as it was read");
        out
    };
    let base = read(Storage::Sparse, Partitioner::Hash { partition_count: 1 });
    assert!(base.iter().any(|w| *w != base[0]));
    assert_eq!(read(Storage::Sparse, Partitioner::Hash { partition_count: 13 }), base);
    assert_eq!(read(Storage::Sparse, Partitioner::Range { partition_count: 4 }), base);
    assert_eq!(read(Storage::Dense, Partitioner::Range { partition_count: 3 }), base);
    assert_eq!(read(Storage::Dense, Partitioner::Explicit { starts: vec![0, 99] }), base);
}

#[test]
fn by_column_a_few_long_rows_are_cut_into_column_ranges() {
    for (storage, consistency) in [(Storage::Dense, Consistency::Asp), (Storage::Sparse, Consistency::Bsp)] {
        let mut spec = spec(ElementType::F64, PushRule::Add, consistency);
        (spec.rows, spec.columns, spec.axis, spec.storage) = (3, 1_000, Axis::Column, storage);
        spec.partitioner = Partitioner::Range { partition_count: 7 };
        let store = store_of(1, [spec]);
        let mut agent = store.agent(0);
        for row in 0..3u32 {
            let values: Vec<f64> = (0..1_000).map(|i| f64::from(row * 1_000 + i)).collect();
            let part = Selection::Columns { row, keys: Keys::Range(0, 1_000) };
            agent.push(W, part, Values::F64(&values)).unwrap();
        }
        agent.tick().unwrap();
        let mut out = [0.0; 3];
        let part = Selection::Columns { row: 2, keys: Keys::Sorted(&[0, 500, 999]) };
        agent.pull(W, part, ValuesMut::F64(&mut out)).unwrap();
        assert_eq!(out, [2_000.0, 2_500.0, 2_999.0]);
        agent.finish().unwrap();
        let exported = store.export(W).unwrap();
        assert_eq!(exported.keys, (0..3_000).collect::<Vec<_>>(), "row * columns + column");
        assert_eq!(exported.values, OwnedValues::F64((0..3_000).map(f64::from).collect()));
        store.import(W, &exported).unwrap();
        assert_eq!(store.export(W).unwrap(), exported);
    }
}

#[test]
fn a_push_that_is_not_finite_is_refused_whole_and_counted() {
    for consistency in [Consistency::Bsp, Consistency::Asp] {
        let store =
            store_of(1, [with_columns(PushRule::Add, 4)].map(|spec| MatrixSpec { consistency, ..spec }));
        let mut agent = store.agent(0);
        for at in 0..4 {
            let mut values = [1.0, 2.0, 3.0, 4.0];
            values[at] = f32::NAN;
            let error = push_f32(&mut agent, &[4, 9], &values).unwrap_err();
            let (key, column) = ([4, 9][at / 2], at as u64 % 2);
            assert!(
                matches!(error, Error::NonFinite { key: k, column: c, .. } if (k, c) == (key, column)),
                "{error}"
            );
        }
        agent.tick().unwrap();
        agent.finish().unwrap();
        assert_eq!(store.export(W).unwrap().keys, [0; 0], "nothing of it was applied");
        let stats = &store.stats().matrices[0];
        assert_eq!((stats.refused_push_count, stats.push_count), (4, 0));
    }
}

#[test]
fn calls_that_do_not_fit_the_matrix_say_how() {
    let mut small = spec(ElementType::F32, PushRule::Add, Consistency::Asp);
    small.rows = 10;
    let store = store_of(1, [small]);
    let mut agent = store.agent(0);
    assert!(matches!(
        push_f32(&mut agent, &[3, 10], &[0.0; 2]),
        Err(Error::KeyOutOfRange { key: 10, bound: 10, .. })
    ));
    assert!(matches!(push_f32(&mut agent, &[3, 3], &[0.0; 2]), Err(Error::KeysNotAscending { .. })));
    assert!(matches!(push_i64(&mut agent, &[3], &[0]), Err(Error::ElementType { .. })));
    let part = Selection::Columns { row: 0, keys: Keys::Range(0, 1) };
    assert!(matches!(agent.push(W, part, Values::F32(&[0.0])), Err(Error::WrongAxis { .. })));
    let part = Selection::Rows(Keys::Range(0, 1));
    assert!(matches!(
        agent.push(MatrixId(4), part, Values::F32(&[0.0])),
        Err(Error::NoSuchMatrix { id: 4, count: 1 })
    ));
    push_f32(&mut agent, &[], &[]).unwrap();
    let mut double = LocalStore::new(LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT });
    double.create(spec(ElementType::F32, PushRule::Add, Consistency::Asp)).unwrap();
    let again = double.create(spec(ElementType::F32, PushRule::Add, Consistency::Asp));
    assert!(matches!(again, Err(Error::DuplicateName { .. })));
}

#[test]
fn an_import_that_does_not_fit_is_refused_and_changes_nothing() {
    let store = store_of(1, [with_columns(ftrl(), 4)]);
    let good = train(&store, 3);
    let refused = |change: fn(&mut RowBlock)| {
        let mut rows = good.clone();
        change(&mut rows);
        assert!(matches!(store.import(W, &rows), Err(Error::Import { .. })));
        assert_eq!(store.export(W).unwrap(), good);
    };
    refused(|rows| rows.keys[1] = rows.keys[0]);
    refused(|rows| *rows.keys.last_mut().unwrap() = 1 << 63);
    refused(|rows| rows.keys.truncate(1));
    refused(|rows| rows.slots[0].0 = "v".into());
    refused(|rows| rows.slots[1].1 = OwnedValues::F32(vec![0.0]));
    refused(|rows| rows.values = OwnedValues::F64(vec![0.0; rows.values.len()]));
    refused(|rows| rows.values = OwnedValues::F32(vec![f32::INFINITY; rows.values.len()]));
}
