//! How long pulls and pushes wait because of a snapshot of their matrix, which is read meanwhile: 10 million rows of
//! FTRL-Proximal, two tasks under ASP, in the store of this process and on two servers. And how much of such a matrix an
//! incremental checkpoint has after a hundredth of its buckets has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use math::random::{Purpose, stream};
use matrix::{
    Agent, ElementType, Keys, LocalConfig, LocalStore, MatrixId, MatrixSpec, PushRule, Selection, Values,
    ValuesMut,
};
use rpc::message::{DropRows, Hello, KeepRows, Message, Role, ScanRows};
use rpc::transport::{Receiver, Sender};
use serde_json::{Value, json};
use worker::RemoteAgent;

use super::wire::{ChildServer, open_job};

const ROWS: u64 = 10_000_000;
const TASKS: u32 = 2;
/// As `train` chooses them for two tasks in one process.
const PARTITIONS: u32 = 16;
/// And for two servers of one lane.
const SERVED_PARTITIONS: u32 = 8;
const BATCH_KEYS: u64 = 10_000;
const FILL_KEYS: u64 = 100_000;
const WEIGHTS: MatrixId = MatrixId(0);
const JOB: u32 = 1;
const WAIT_LIMIT: Duration = Duration::from_mins(1);
const SNAPSHOTS: usize = 4;
/// Time without a snapshot before each of them.
const PAUSE: Duration = Duration::from_millis(700);

fn spec(partition_count: u32) -> MatrixSpec {
    let rule = PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.1, l2: 0.5 };
    MatrixSpec { rows: ROWS, ..MatrixSpec::sparse("weights", ElementType::F32, 1, rule, partition_count) }
}

/// The longest pull or push of each of the two times, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Longest {
    undisturbed: f64,
    with_snapshot: f64,
}

/// All figures as JSON: in milliseconds, and a share.
pub(super) fn run() -> Result<Value> {
    let local = in_process()?;
    let served = on_servers()?;
    Ok(json!({
        "process_ms": local.with_snapshot,
        "process_undisturbed_ms": local.undisturbed,
        "servers_ms": served.with_snapshot,
        "servers_undisturbed_ms": served.undisturbed,
        "changed_share": changed_share()?,
    }))
}

/// The share of the bytes of all rows that the rows have which count as changed after one bucket in a hundred has changed.
/// All rows have the same size.
fn changed_share() -> Result<f64> {
    const BUCKET_BYTES: u64 = 64;
    let mut store = LocalStore::new(LocalConfig { task_count: 1, wait_limit: WAIT_LIMIT });
    store.create(spec(PARTITIONS))?;
    let store = Arc::new(store);
    let mut agent = store.agent(0);
    fill(&mut agent)?;
    drop(store.snapshot_with_changes(WEIGHTS)?);
    let count = store.stats().matrices[0].size_bytes / BUCKET_BYTES / 100;
    let mut random = stream(1, Purpose::Test, 0, 1);
    let mut keys: Vec<u64> = (0..count).map(|_| random.below(ROWS)).collect();
    keys.sort_unstable();
    keys.dedup();
    agent.push(WEIGHTS, Selection::Rows(Keys::Sorted(&keys)), Values::F32(&vec![0.5; keys.len()]))?;
    let snapshot = store.snapshot_with_changes(WEIGHTS)?;
    let row_count = |rows: &matrix::Snapshot| -> u64 {
        (0..rows.block_count()).map(|block| rows.block(block).keys.len() as u64).sum()
    };
    Ok(row_count(&snapshot.changes()) as f64 / row_count(&snapshot) as f64)
}

/// Pushes to all rows.
fn fill(agent: &mut dyn Agent) -> Result<()> {
    for start in (0..ROWS).step_by(FILL_KEYS as usize) {
        let all = Selection::Rows(Keys::Range(start, start + FILL_KEYS));
        agent.push(WEIGHTS, all, Values::F32(&vec![0.5; FILL_KEYS as usize]))?;
    }
    Ok(())
}

fn in_process() -> Result<Longest> {
    let mut store = LocalStore::new(LocalConfig { task_count: TASKS, wait_limit: WAIT_LIMIT });
    store.create(spec(PARTITIONS))?;
    let store = Arc::new(store);
    let agents = (0..TASKS).map(|task| Box::new(store.agent(task)) as Box<dyn Agent>).collect();
    measure(agents, || {
        let snapshot = store.snapshot(WEIGHTS)?;
        Ok((0..snapshot.block_count()).map(|block| snapshot.block(block).keys.len() as u64).sum())
    })
}

fn on_servers() -> Result<Longest> {
    let servers = [ChildServer::start("wire-server")?, ChildServer::start("wire-server")?];
    let layout = open_job(JOB, &servers, vec![spec(SERVED_PARTITIONS)], TASKS)?;
    let agents: Result<Vec<_>> = (0..TASKS)
        .map(|task| Ok(Box::new(RemoteAgent::new(layout.clone(), task, &[])?) as Box<dyn Agent>))
        .collect();
    let mut lanes = servers.iter().map(connect).collect::<Result<Vec<_>>>()?;
    measure(agents?, || {
        let keep = Message::KeepRows(KeepRows { request: 2, job: JOB, snapshot: 1, records_changes: false });
        for lane in &mut lanes {
            request(lane, &keep)?;
        }
        let mut row_count = 0;
        for lane in &mut lanes {
            row_count += scan(lane)?;
        }
        let drop = Message::DropRows(DropRows { request: 3, job: JOB, snapshot: 1 });
        for lane in &mut lanes {
            request(lane, &drop)?;
        }
        Ok(row_count)
    })
}

type Lane = (Sender, Receiver);

fn connect(server: &ChildServer) -> Result<Lane> {
    let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
    let (sender, receiver, _) = rpc::open(&server.address.parse()?, Duration::from_secs(5), &hello)?;
    Ok((sender, receiver))
}

fn request((sender, receiver): &mut Lane, message: &Message) -> Result<Message> {
    sender.send(message)?;
    match receiver.receive()? {
        Message::Fault(fault) => bail!("the server refused {message:?}: {}", fault.text),
        answer => Ok(answer),
    }
}

/// Reads the snapshot of a lane; returns its number of rows.
fn scan(lane: &mut Lane) -> Result<u64> {
    let (mut row_count, mut next) = (0, Some(0));
    while let Some(block) = next {
        let scan = ScanRows { request: 2, job: JOB, matrix: 0, snapshot: 1, block, only_changed: false };
        let Message::ExportPage(page) = request(lane, &Message::ScanRows(scan))? else {
            bail!("the answer is no page");
        };
        row_count += page.keys.len() as u64;
        next = page.next;
    }
    Ok(row_count)
}

/// Measures pulls and pushes of all agents while `snapshot` takes one and reads it, again and again.
fn measure(mut agents: Vec<Box<dyn Agent>>, mut snapshot: impl FnMut() -> Result<u64>) -> Result<Longest> {
    fill(&mut *agents[0])?;
    // Odd while there is a snapshot.
    let (changes, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (changes, is_over) = (&changes, &is_over);
        let tasks: Vec<_> = (0u64..)
            .zip(agents)
            .map(|(task, agent)| scope.spawn(move || longest(agent, task, changes, is_over)))
            .collect();
        let mut take_all = || {
            for _ in 0..SNAPSHOTS {
                std::thread::sleep(PAUSE);
                changes.fetch_add(1, Ordering::SeqCst);
                let row_count = snapshot()?;
                changes.fetch_add(1, Ordering::SeqCst);
                anyhow::ensure!(row_count == ROWS, "the snapshot has {row_count} rows");
            }
            Ok(())
        };
        let taken = take_all();
        is_over.store(true, Ordering::SeqCst);
        let mut all = Longest::default();
        for task in tasks {
            let own = task.join().ok().context("a task panicked")??;
            all.undisturbed = all.undisturbed.max(own.undisturbed);
            all.with_snapshot = all.with_snapshot.max(own.with_snapshot);
        }
        taken.map(|()| all)
    })
}

/// Pulls and pushes until all is over.
fn longest(
    mut agent: Box<dyn Agent>,
    task: u64,
    changes: &AtomicU64,
    is_over: &AtomicBool,
) -> Result<Longest> {
    let mut random = stream(1, Purpose::Test, task, 0);
    let mut longest = Longest::default();
    let mut weights = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        let mut keys: Vec<u64> = (0..BATCH_KEYS).map(|_| random.below(ROWS)).collect();
        keys.sort_unstable();
        keys.dedup();
        weights.resize(keys.len(), 0.0);
        let rows = Selection::Rows(Keys::Sorted(&keys));
        let before = changes.load(Ordering::SeqCst);
        let start = Instant::now();
        agent.pull(WEIGHTS, rows, ValuesMut::F32(&mut weights))?;
        let pulled = Instant::now();
        agent.push(WEIGHTS, rows, Values::F32(&weights))?;
        let pushed = pulled.elapsed();
        let time = (pulled - start).max(pushed).as_secs_f64() * 1e3;
        if before % 2 == 1 || changes.load(Ordering::SeqCst) != before {
            longest.with_snapshot = longest.with_snapshot.max(time);
        } else {
            longest.undisturbed = longest.undisturbed.max(time);
        }
    }
    agent.finish()?;
    Ok(longest)
}
