//! Specs and helpers for tests.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::sync::Arc;
use std::time::Duration;

use matrix::{
    Agent, Axis, Consistency, ElementType, Error, Initializer, Keys, LocalAgent, LocalConfig, LocalStore,
    MatrixId, MatrixSpec, Partitioner, PushRule, Schedule, Selection, Storage, Values, ValuesMut,
};

/// Much longer than any wait in these tests on a busy machine.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_mins(2);

pub(crate) const W: MatrixId = MatrixId(0);

pub(crate) fn spec(element: ElementType, rule: PushRule, consistency: Consistency) -> MatrixSpec {
    MatrixSpec {
        name: "w".into(),
        element,
        rows: 1 << 63,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count: 4 },
        initializer: Initializer::Zero,
        rule,
        consistency,
        seed: 5,
    }
}

/// Returns the spec of a few long rows in ranges of columns.
pub(crate) fn long(rows: u64, columns: u64, partition_count: u32) -> MatrixSpec {
    MatrixSpec {
        name: "long".into(),
        element: ElementType::F32,
        rows,
        columns,
        axis: Axis::Column,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count },
        initializer: Initializer::Zero,
        rule: PushRule::Assign,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

pub(crate) fn ftrl() -> PushRule {
    PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.1, l2: 0.5 }
}

pub(crate) fn adam() -> PushRule {
    let schedule = Schedule::InverseTime { decay: 0.1, start: 0 };
    PushRule::Adam { rate: 0.1, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, schedule, l1: 0.0, l2: 0.01 }
}

pub(crate) fn store_of(task_count: u32, specs: impl IntoIterator<Item = MatrixSpec>) -> Arc<LocalStore> {
    store_with(task_count, WAIT_LIMIT, specs)
}

pub(crate) fn store_with(
    task_count: u32,
    wait_limit: Duration,
    specs: impl IntoIterator<Item = MatrixSpec>,
) -> Arc<LocalStore> {
    let mut store = LocalStore::new(LocalConfig { task_count, wait_limit });
    for spec in specs {
        store.create(spec).expect("a good spec");
    }
    Arc::new(store)
}

pub(crate) fn pull_f32(agent: &mut LocalAgent, keys: &[u64], columns: usize) -> Result<Vec<f32>, Error> {
    let mut out = vec![f32::NAN; keys.len() * columns];
    agent.pull(W, Selection::Rows(Keys::Sorted(keys)), ValuesMut::F32(&mut out))?;
    Ok(out)
}

pub(crate) fn push_f32(agent: &mut LocalAgent, keys: &[u64], values: &[f32]) -> Result<(), Error> {
    agent.push(W, Selection::Rows(Keys::Sorted(keys)), Values::F32(values))
}

pub(crate) fn pull_i64(agent: &mut LocalAgent, keys: &[u64]) -> Result<Vec<i64>, Error> {
    let mut out = vec![i64::MIN; keys.len()];
    agent.pull(W, Selection::Rows(Keys::Sorted(keys)), ValuesMut::I64(&mut out))?;
    Ok(out)
}

pub(crate) fn push_i64(agent: &mut LocalAgent, keys: &[u64], values: &[i64]) -> Result<(), Error> {
    agent.push(W, Selection::Rows(Keys::Sorted(keys)), Values::I64(values))
}
