//! What durability costs: pushes a second to two servers without a log, with one, with one that is synced to the disk before
//! each acknowledgement, and with a replica on the other server. Two tasks under SSP push 100 of a million rows and tick after each ten pushes, as fast
//! as the servers acknowledge.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use math::random::{Purpose, stream};
use matrix::{Agent, Consistency, ElementType, Keys, MatrixId, MatrixSpec, PushRule, Selection, Values};
use rpc::message::Durability;
use serde_json::{Value, json};
use worker::RemoteAgent;

use super::wire::{ChildServer, median, open_job_with};

const ROWS: u64 = 1_000_000;
const KEYS: usize = 100;
const PUSHES: u32 = 20_000;
const PUSHES_OF_A_STEP: u32 = 10;
/// The steps repeat so many lists of keys, as the epochs of a training do.
const KEY_LISTS: usize = 500;
const TASKS: u32 = 2;
const ROUNDS: usize = 5;

/// Pushes a second of each mode, the median of rounds in turns.
pub(super) fn run(folder: &Path) -> Result<Value> {
    let mut rates = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for (mode, rates) in rates.iter_mut().enumerate() {
            rates.push(rate(mode, folder)?);
        }
    }
    let [none, log, synced, replica] = rates.map(median);
    let ratios = json!({ "log": log / none, "synced_log": synced / none, "replica": replica / none });
    eprintln!("{none:.0} pushes a second without durability");
    Ok(ratios)
}

fn rate(mode: usize, folder: &Path) -> Result<f64> {
    let _ = std::fs::remove_dir_all(folder);
    let start_server = |number: usize| {
        let folder = folder.join(number.to_string());
        let folder = folder.to_str().context("the folder has a name of text")?;
        ChildServer::start_with(&["wire-server", folder, "synced"][..[1, 2, 3, 1][mode]])
    };
    let servers = [start_server(0)?, start_server(1)?];
    let rule = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.1, l2: 0.5 };
    let consistency = Consistency::Ssp { staleness: 4 };
    let spec = MatrixSpec::sparse("weights", ElementType::F32, 1, rule, 8);
    let durability = if mode == 3 { Durability::Replica } else { Durability::Checkpoint };
    let matrices = vec![MatrixSpec { rows: ROWS, consistency, ..spec }];
    let layout = open_job_with(1, &servers, matrices, TASKS, durability)?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let agents: Result<Vec<_>> =
            (0..TASKS).map(|task| Ok(RemoteAgent::new(layout.clone(), task, &[])?)).collect();
        let tasks: Vec<_> =
            (0..TASKS).zip(agents?).map(|(task, agent)| scope.spawn(move || push(agent, task))).collect();
        tasks.into_iter().try_for_each(|task| task.join().expect("a task does not panic"))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    drop(servers);
    let _ = std::fs::remove_dir_all(folder);
    Ok(f64::from(TASKS * PUSHES) / seconds)
}

fn push(mut agent: RemoteAgent, task: u32) -> Result<()> {
    let mut random = stream(1, Purpose::Generate, u64::from(task), 0);
    let mut list = || {
        let mut keys: Vec<u64> = (0..KEYS).map(|_| random.below(ROWS)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    };
    let lists: Vec<Vec<u64>> = (0..KEY_LISTS).map(|_| list()).collect();
    let values = vec![0.01f32; KEYS];
    for index in 0..PUSHES {
        let keys = &lists[index as usize % KEY_LISTS];
        let selection = Selection::Rows(Keys::Sorted(keys));
        agent.push(MatrixId(0), selection, Values::F32(&values[..keys.len()]))?;
        if (index + 1) % PUSHES_OF_A_STEP == 0 {
            agent.tick()?;
        }
    }
    Ok(agent.finish()?)
}
