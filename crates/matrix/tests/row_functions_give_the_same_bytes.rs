//! Folds and changes of rows equal a plain loop, to the byte, in one process and on lanes, for any partitioner.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use math::exact_sum::ExactSum;
use matrix::function::{RowChange, RowFold, unpack};
use matrix::{
    Agent, Consistency, ElementType, FunctionCall, FunctionTable, KeyRun, Keys, LocalAgent, LocalConfig,
    LocalStore, Matrix, MatrixId, MatrixSpec, Partitioner, PushId, PushRule, RowPositions, Selection, Values,
    ValuesMut, merge_partial_answers,
};
use proptest::prelude::*;

const M: MatrixId = MatrixId(0);
const COLUMNS: usize = 2;

/// Rows by key.
type Rows = BTreeMap<u64, [f64; COLUMNS]>;

fn terms(argument: &[f64], key: u64, row: &[f64]) -> [f64; 2] {
    [row[0] * argument[0], if key.is_multiple_of(2) { row[1] } else { 0.0 }]
}

fn change(argument: &[f64], key: u64, row: &mut [f64]) {
    row[1] = row[0] * argument[0] + key as f64;
    row[0] = -row[0];
}

fn table() -> FunctionTable {
    let mut table = FunctionTable::builtin();
    table.add_row_fold(RowFold::new("terms", terms)).unwrap();
    table.add_row_change(RowChange::new("change", change)).unwrap();
    table.add_row_change(RowChange::new("divide", |_, _, row| row[0] = 1.0 / row[0])).unwrap();
    table.add_row_change(RowChange::new("panic", |_, _, _| panic!("on purpose"))).unwrap();
    table
}

fn spec(partitioner: Partitioner, consistency: Consistency) -> MatrixSpec {
    let count = partitioner.partition_count();
    let sparse = MatrixSpec::sparse("rows", ElementType::F64, COLUMNS as u64, PushRule::Add, count);
    MatrixSpec { partitioner, consistency, ..sparse }
}

fn agent(spec: &MatrixSpec, rows: &Rows) -> LocalAgent {
    let config = LocalConfig { task_count: 1, wait_limit: Duration::from_secs(5) };
    let mut store = LocalStore::with_functions(config, table());
    store.create(spec.clone()).unwrap();
    let mut agent = Arc::new(store).agent(0);
    let (keys, values) = flat(rows);
    agent.push(M, Selection::Rows(Keys::Sorted(&keys)), Values::F64(&values)).unwrap();
    agent
}

fn flat(rows: &Rows) -> (Vec<u64>, Vec<f64>) {
    (rows.keys().copied().collect(), rows.values().flatten().copied().collect())
}

fn read(agent: &mut LocalAgent, rows: &Rows) -> Vec<f64> {
    let (keys, mut values) = flat(rows);
    agent.pull(M, Selection::Rows(Keys::Sorted(&keys)), ValuesMut::F64(&mut values)).unwrap();
    values
}

fn partitioners() -> impl Strategy<Value = Partitioner> {
    (0u8..3, 1u32..9).prop_map(|(kind, partition_count)| match kind {
        0 => Partitioner::Hash { partition_count },
        1 => Partitioner::Range { partition_count },
        _ => Partitioner::Explicit { starts: (0..u64::from(partition_count)).map(|i| i * i * 7).collect() },
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn they_equal_a_plain_loop(
        partitioner in partitioners(),
        rows in prop::collection::btree_map(0u64..1000, prop::array::uniform2(-1e6f64..1e6), 1..60),
        argument in -3.0f64..3.0,
    ) {
        let spec = spec(partitioner, Consistency::Bsp);
        let mut plain = rows.clone();
        for (key, row) in &mut plain {
            change(&[argument], *key, row);
        }
        let mut sums = [ExactSum::default(), ExactSum::default()];
        for (key, row) in &plain {
            sums.iter_mut().zip(terms(&[argument], *key, row)).for_each(|(sum, term)| assert!(sum.add(term)));
        }
        let expected: Vec<f64> = sums.into_iter().map(ExactSum::value).collect();
        let (fold, change) = (FunctionCall::of_rows("terms", &[argument]), FunctionCall::of_rows("change", &[argument]));

        // In one process, the change is staged until the clock has ended.
        let mut agent = agent(&spec, &rows);
        agent.push_function(M, std::slice::from_ref(&change)).unwrap();
        agent.tick().unwrap();
        prop_assert_eq!(read(&mut agent, &rows), flat(&plain).1);
        prop_assert_eq!(unpack::<Vec<f64>>(&agent.pull_function(M, &fold).unwrap()).unwrap(), expected.clone());

        // On a lane for each partition.
        let functions = table();
        let placement = spec.placement(&functions).unwrap();
        let mut parts = Vec::new();
        for partition in 0..spec.partitioner.partition_count() {
            let mut lane = Matrix::new(spec.clone(), &[partition], &functions).unwrap();
            let own: Rows = rows.clone().into_iter().filter(|(key, _)| placement.partition_of(*key) == partition as usize).collect();
            let (keys, values) = flat(&own);
            let run = KeyRun { partition, table: 0, keys: &keys };
            let id = |index| PushId { clock: 0, task: 0, index };
            lane.push(run, &mut RowPositions::default(), id(0), Values::F64(&values)).unwrap();
            lane.push_function(&functions, std::slice::from_ref(&change), id(1)).unwrap();
            parts.extend(lane.pull_function(&functions, &fold, 1).unwrap());
        }
        parts.reverse();
        let answer = merge_partial_answers(&functions, &spec, &fold, parts).unwrap();
        prop_assert_eq!(unpack::<Vec<f64>>(&answer).unwrap(), expected);
    }
}

#[test]
fn a_change_that_fails_leaves_the_rows_of_its_partition() {
    let rows = Rows::from([(1, [2.0, 0.0]), (5, [0.0, 3.0]), (9, [4.0, 0.0])]);
    let mut agent = agent(&spec(Partitioner::Hash { partition_count: 1 }, Consistency::Asp), &rows);
    let mut fails =
        |name| agent.push_function(M, &[FunctionCall::of_rows(name, &[])]).unwrap_err().to_string();
    let text = fails("divide");
    assert!(text.contains("divide") && text.contains("the key 5 is not finite"), "{text}");
    assert!(fails("panic").contains("on purpose"));
    assert_eq!(read(&mut agent, &rows), flat(&rows).1);
    let text = agent.pull_function(M, &FunctionCall::of_rows("terms", &[f64::MAX])).unwrap_err().to_string();
    assert!(text.contains("terms") && text.contains("key"), "{text}");
}

#[test]
fn what_is_no_call_of_all_rows_is_refused() {
    let rows = Rows::from([(1, [2.0, 0.0])]);
    let mut agent = agent(&spec(Partitioner::Hash { partition_count: 2 }, Consistency::Asp), &rows);
    let named = FunctionCall { from: vec![0], ..FunctionCall::of_rows("terms", &[1.0]) };
    assert!(agent.pull_function(M, &named).unwrap_err().to_string().contains("visits all rows"));
    let (call, other) = (FunctionCall::of_rows("change", &[1.0]), FunctionCall::of_rows("change", &[2.0]));
    let text = agent.push_function(M, &[call.clone(), other]).unwrap_err().to_string();
    assert!(text.contains("a call of its own"), "{text}");
    assert!(agent.pull_function(M, &call).unwrap_err().to_string().contains("push function"));
    let slots = MatrixSpec {
        rule: PushRule::Momentum {
            rate: 0.1,
            momentum: 0.9,
            schedule: matrix::Schedule::Constant,
            l1: 0.0,
            l2: 0.0,
        },
        ..spec(Partitioner::Hash { partition_count: 1 }, Consistency::Asp)
    };
    let text = table().check_push(&slots, std::slice::from_ref(&call)).unwrap_err().to_string();
    assert!(text.contains("keeps slots"), "{text}");
    let columns = MatrixSpec { axis: matrix::Axis::Column, ..slots };
    assert!(table().check_push(&MatrixSpec { rule: PushRule::Add, ..columns }, &[call]).is_err());
}
