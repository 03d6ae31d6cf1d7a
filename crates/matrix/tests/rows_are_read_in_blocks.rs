//! `MatrixRows` reads whole rows by number and block by block.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use matrix::{
    Agent, Axis, Consistency, ElementType, Error, Initializer, LocalAgent, LocalConfig, LocalStore,
    MatrixRows, MatrixSpec, OwnedValues, Partitioner, PushRule, Storage, Values,
};

fn spec(axis: Axis) -> MatrixSpec {
    MatrixSpec {
        name: "factors".into(),
        element: ElementType::F32,
        rows: 1000,
        columns: 3,
        axis,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: 3 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

fn start() -> (LocalAgent, MatrixRows) {
    let mut store = LocalStore::new(LocalConfig { task_count: 1, wait_limit: Duration::from_secs(1) });
    let matrix = store.create(spec(Axis::Row)).unwrap();
    (Arc::new(store).agent(0), MatrixRows::new(matrix, &spec(Axis::Row)).unwrap())
}

#[test]
fn rows_are_got_and_updated_by_number() {
    let (mut agent, rows) = start();
    rows.update(&mut agent, &[3, 999], Values::F32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
    rows.update(&mut agent, &[3], Values::F32(&[0.5, 0.5, 0.5])).unwrap();
    let got = rows.get(&mut agent, &[2, 3, 999]).unwrap();
    assert_eq!(got, OwnedValues::F32(vec![0.0, 0.0, 0.0, 1.5, 2.5, 3.5, 4.0, 5.0, 6.0]));
    let error = rows.update(&mut agent, &[3], Values::F32(&[1.0; 2])).unwrap_err();
    assert!(matches!(error, Error::ValueCount { expected: 3, actual: 2, .. }), "{error}");
    assert!(matches!(rows.get(&mut agent, &[1000]), Err(Error::KeyOutOfRange { key: 1000, .. })));
    assert!(matches!(rows.get(&mut agent, &[4, 4]), Err(Error::KeysNotAscending { .. })));
}

#[test]
fn blocks_come_in_order_and_none_is_left_out() {
    let (mut agent, rows) = start();
    let numbers: Vec<u64> = (0..1000).step_by(7).collect();
    let values: Vec<f32> = numbers.iter().flat_map(|n| [*n as f32, 0.0, -1.0]).collect();
    rows.update(&mut agent, &numbers, Values::F32(&values)).unwrap();
    for (block_len, in_flight) in [(1, 2), (10, 0), (10, 3), (143, 1), (5000, 9), (usize::MAX, usize::MAX)] {
        let mut blocks = rows.blocks(&numbers, block_len, in_flight);
        let (mut seen, mut read) = (Vec::new(), Vec::new());
        while let Some((numbers, values)) = blocks.next(&mut agent).unwrap() {
            assert!(numbers.len() <= block_len);
            seen.extend_from_slice(numbers);
            let OwnedValues::F32(values) = values else { panic!("f32") };
            read.extend(values);
        }
        assert_eq!(
            (seen, read),
            (numbers.clone(), values.clone()),
            "{block_len} rows, {in_flight} in flight"
        );
    }
    assert_eq!(rows.blocks(&[], 10, 1).next(&mut agent).unwrap(), None);
    agent.finish().unwrap();
}

#[test]
fn a_matrix_by_column_has_no_rows_to_give() {
    let error = MatrixRows::new(matrix::MatrixId(0), &spec(Axis::Column)).unwrap_err();
    assert!(matches!(error, Error::WrongAxis { asked: "row", .. }), "{error}");
}
