//! List matrices on two servers: edges appended and sealed, lists pulled, against dense rows of as many bytes; and the memory
//! of sealed lists against plain compressed sparse rows.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use matrix::{
    Agent, Axis, Consistency, ElementType, Initializer, Keys, ListMatrix, ListSelection, LocalConfig,
    LocalStore, MatrixId, MatrixSpec, Partitioner, PushRule, Selection, Storage, Values, ValuesMut,
};
use serde_json::{Value, json};
use worker::RemoteAgent;

use super::wire::{ChildServer, close, median, open_job, timed};

const ROWS: u64 = 1_000_000;
const EDGES_OF_ROW: u64 = 10;
const PARTITIONS: u32 = 16;
const ROUNDS: usize = 5;
/// Rows that are pulled at a time, from a matrix with so many entries a row.
const PULLED_ROWS: u64 = 100_000;
const PULLED_ENTRIES: u64 = 20;
/// Columns of dense rows with the bytes of one edge, a key and a value: 12.
const COLUMNS_OF_EDGE: u64 = 3;
const LISTS: MatrixId = MatrixId(0);
const DENSE: MatrixId = MatrixId(1);
/// Rows of one append and of one push.
const BLOCK_ROWS: u64 = 20_000;

fn specs(rows: u64, entries: u64) -> Vec<MatrixSpec> {
    let dense = MatrixSpec {
        name: "dense".into(),
        element: ElementType::F32,
        rows,
        columns: entries * COLUMNS_OF_EDGE,
        axis: Axis::Row,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: PARTITIONS },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    };
    vec![ListMatrix::spec("lists", ElementType::F32, 1, PushRule::Add, PARTITIONS), dense]
}

/// The neighbours of a row, in no order.
fn neighbours(row: u64, count: u64) -> Vec<u64> {
    (0..count).map(|i| math::hash::mix64(row * count + i) % ROWS).collect()
}

fn fill(agent: &mut dyn Agent, rows: u64, entries: u64) -> Result<()> {
    let lists = ListMatrix::new(LISTS, &specs(rows, entries)[0])?;
    for start in (0..rows).step_by(BLOCK_ROWS as usize) {
        let mut block = lists.block();
        for row in start..rows.min(start + BLOCK_ROWS) {
            block.push_list(row, &neighbours(row, entries), &vec![1.0f32; entries as usize]);
        }
        lists.append(agent, &block)?;
    }
    Ok(lists.seal(agent)?)
}

fn push_dense(agent: &mut dyn Agent, rows: u64, columns: u64) -> Result<()> {
    for start in (0..rows).step_by(BLOCK_ROWS as usize) {
        let end = rows.min(start + BLOCK_ROWS);
        // The lists are made while they are appended; these rows too.
        let made: Vec<f32> =
            (start * columns..end * columns).map(|i| (math::hash::mix64(i) & 1) as f32).collect();
        agent.push(DENSE, Selection::Rows(Keys::Range(start, end)), Values::F32(&made))?;
    }
    let first = Selection::Rows(Keys::Range(0, 1));
    // The answer proves that the pushes have arrived.
    Ok(agent.pull(DENSE, first, ValuesMut::F32(&mut vec![0.0; columns as usize]))?)
}

/// All figures as JSON: seconds of ours, of the peer, and their ratio as the share of the peer's rate.
pub(super) fn run() -> Result<Value> {
    let servers = [ChildServer::start("wire-server")?, ChildServer::start("wire-server")?];
    let (mut appends, mut pushes, mut pulls, mut dense_pulls) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS as u32 {
        let job = 30 + 2 * round;
        let layout = open_job(job, &servers, specs(ROWS, EDGES_OF_ROW), 1)?;
        let mut agent = RemoteAgent::new(layout, 0, &[])?;
        appends.push(timed(|| fill(&mut agent, ROWS, EDGES_OF_ROW))?);
        pushes.push(timed(|| push_dense(&mut agent, ROWS, EDGES_OF_ROW * COLUMNS_OF_EDGE))?);
        agent.finish()?;
        close(job, &servers)?;

        let specs = specs(2 * PULLED_ROWS, PULLED_ENTRIES);
        let lists = ListMatrix::new(LISTS, &specs[0])?;
        let mut agent = RemoteAgent::new(open_job(job + 1, &servers, specs, 1)?, 0, &[])?;
        fill(&mut agent, 2 * PULLED_ROWS, PULLED_ENTRIES)?;
        let keys: Vec<u64> = (0..2 * PULLED_ROWS).step_by(2).collect();
        let mut out = vec![0.0f32; (PULLED_ROWS * PULLED_ENTRIES * COLUMNS_OF_EDGE) as usize];
        let dense = Selection::Rows(Keys::Sorted(&keys));
        for _ in 0..ROUNDS {
            let mut pull = || lists.pull(&mut agent, &ListSelection::Rows(&keys)).map(drop);
            pulls.push(timed(|| Ok(pull()?))?);
            dense_pulls.push(timed(|| Ok(agent.pull(DENSE, dense, ValuesMut::F32(&mut out))?))?);
        }
        agent.finish()?;
        close(job + 1, &servers)?;
    }
    let beside = |ours: Vec<f64>, peer: Vec<f64>| {
        let ratios = ours.iter().zip(&peer).map(|(ours, peer)| peer / ours).collect();
        json!([median(ours), median(peer), median(ratios)])
    };
    Ok(json!({
        "append": beside(appends, pushes),
        "pull": beside(pulls, dense_pulls),
        "memory": memory()?,
    }))
}

/// Bytes of sealed lists, of plain compressed sparse rows, and their ratio.
fn memory() -> Result<Value> {
    let mut store = LocalStore::new(LocalConfig { task_count: 1, wait_limit: Duration::from_mins(1) });
    store.create(specs(ROWS, EDGES_OF_ROW).swap_remove(0))?;
    let store = Arc::new(store);
    fill(&mut store.agent(0), ROWS, EDGES_OF_ROW)?;
    let counts = store.count_rows(LISTS)?;
    let plain = (counts.rows * 8 + counts.entries * (8 + 4)) as f64;
    let sealed = store.stats().matrices[0].size_bytes as f64;
    Ok(json!([sealed, plain, sealed / plain]))
}
