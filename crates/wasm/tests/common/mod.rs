//! A store with the functions of a module, and helpers.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::sync::Arc;
use std::time::Duration;

use matrix::function::value::{FunctionValue, pack, unpack};
use matrix::{
    Agent as _, Axis, Consistency, ElementType, Error, FunctionCall, FunctionTable, Initializer, Keys,
    LocalAgent, LocalConfig, LocalStore, MatrixId, MatrixSpec, Partitioner, PushRule, Selection, Storage,
    Values, ValuesMut,
};
use wasm::{Limits, Module};

pub(crate) const M: MatrixId = MatrixId(0);

/// Several blocks, the last of them short, and not a multiple of any SIMD width.
pub(crate) const COLUMNS: u64 = 20_011;

/// Much longer than any wait in these tests on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_mins(2);

pub(crate) fn module_with(text: &str, limits: &Limits) -> Result<Module, wasm::Error> {
    wasm::load(&wat::parse_str(text).expect("good text"), limits)
}

pub(crate) fn module(text: &str) -> Module {
    module_with(text, &Limits::default()).expect("a good module")
}

/// Returns an agent of a matrix with four rows of `element` in `partition_count` partitions.
pub(crate) fn agent_of(module: &Module, element: ElementType, partition_count: u32) -> LocalAgent {
    let mut table = FunctionTable::builtin();
    module.register(&mut table).expect("names that differ");
    let mut store = LocalStore::with_functions(LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT }, table);
    store
        .create(MatrixSpec {
            name: "long".into(),
            element,
            rows: 4,
            columns: COLUMNS,
            axis: Axis::Column,
            storage: Storage::Dense,
            partitioner: Partitioner::Range { partition_count },
            initializer: Initializer::Zero,
            rule: PushRule::Assign,
            consistency: Consistency::Asp,
            seed: 1,
        })
        .expect("a good spec");
    Arc::new(store).agent(0)
}

pub(crate) fn push_call(name: &str, from: &[u32], into: &[u32], argument: &[f64]) -> FunctionCall {
    FunctionCall {
        name: name.into(),
        version: 1,
        from: from.to_vec(),
        into: into.to_vec(),
        argument: pack(&argument.to_vec()),
    }
}

/// Calls a push function of a module.
pub(crate) fn change(
    agent: &mut LocalAgent,
    name: &str,
    from: &[u32],
    into: &[u32],
    argument: &[f64],
) -> Result<(), Error> {
    agent.push_function(M, &[push_call(name, from, into, argument)])
}

/// Calls a pull function of a module.
pub(crate) fn ask<T: FunctionValue>(
    agent: &mut LocalAgent,
    name: &str,
    from: &[u32],
    argument: &[f64],
) -> Result<T, Error> {
    let bytes = agent.pull_function(M, &push_call(name, from, &[], argument))?;
    Ok(unpack(&bytes).expect("an answer of this type"))
}

fn all(row: u32) -> Selection<'static> {
    Selection::Columns { row, keys: Keys::Range(0, COLUMNS) }
}

pub(crate) fn fill(agent: &mut LocalAgent, row: u32, values: Values<'_>) {
    agent.push(M, all(row), values).expect("a row of this type");
    agent.tick().expect("a tick");
}

pub(crate) fn f32_row(agent: &mut LocalAgent, row: u32) -> Vec<f32> {
    let mut out = vec![f32::NAN; COLUMNS as usize];
    agent.pull(M, all(row), ValuesMut::F32(&mut out)).expect("a row of this type");
    out
}

pub(crate) fn f64_row(agent: &mut LocalAgent, row: u32) -> Vec<f64> {
    let mut out = vec![f64::NAN; COLUMNS as usize];
    agent.pull(M, all(row), ValuesMut::F64(&mut out)).expect("a row of this type");
    out
}

/// Numbers of both signs that have no exact binary representation.
pub(crate) fn numbers(seed: f64) -> Vec<f64> {
    (0..COLUMNS).map(|i| (i as f64 * 0.37 + seed).sin() * 3.0).collect()
}
