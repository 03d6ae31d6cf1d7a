//! Measures the cost of pull and push with FTRL in nanoseconds for each key: power-law keys over 10 million ids, in
//! batches of 50,000 sorted distinct keys. In the second pass all rows exist.
//!
//! `cargo run --release -p matrix --example pull_push [tasks] [partitions] [bsp|ssp|asp]`
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use math::random::{Purpose, stream};
use matrix::{
    Agent, Axis, Consistency, ElementType, Initializer, Keys, LocalConfig, LocalStore, MatrixId, MatrixSpec,
    Partitioner, PushRule, Selection, Storage, Values, ValuesMut,
};

const IDS: f64 = 10e6;
const BATCH_KEYS: usize = 50_000;
const BATCHES: u64 = 120;

fn main() -> Result<(), matrix::Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: u32| arguments.get(i).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (task_count, partition_count) = (number(0, 1), number(1, 16));
    let consistency = match arguments.get(2).map_or("asp", String::as_str) {
        "bsp" => Consistency::Bsp,
        "ssp" => Consistency::Ssp { staleness: 4 },
        _ => Consistency::Asp,
    };
    let batches: Vec<Vec<Vec<u64>>> = (0..task_count).map(batches).collect();
    let store = store(task_count, partition_count, consistency)?;
    std::thread::scope(|scope| {
        let tasks = (0..).zip(&batches).map(|(task, batches)| {
            let store = &store;
            scope.spawn(move || run(store, task, batches))
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            match task.join() {
                Ok(Ok(lines)) => println!("{}", lines.join("\n")),
                Ok(Err(error)) => println!("{error}"),
                Err(_) => println!("a task panicked"),
            }
        }
    });
    let stats = store.stats();
    let (matrix, waits) = (&stats.matrices[0], stats.waits);
    let bytes = matrix.size_bytes as f64 / matrix.rows as f64;
    println!("{} rows, {:.1} MB, {bytes:.1} bytes a row", matrix.rows, matrix.size_bytes as f64 / 1e6);
    println!("{} waits, {:.1} ms", waits.count, waits.nanoseconds as f64 / 1e6);
    let start = busy_time();
    let exported = store.export(MatrixId(0))?;
    println!(
        "export of {} rows: {:.1} ms",
        exported.keys.len(),
        busy_time().saturating_sub(start).as_secs_f64() * 1e3
    );
    let start = busy_time();
    store.import(MatrixId(0), &exported)?;
    println!("import: {:.1} ms", busy_time().saturating_sub(start).as_secs_f64() * 1e3);
    Ok(())
}

/// Returns batches of log-uniform ids: the density of id `i` falls as `1 / i`. The ids are spread over the range as
/// hashed names would be.
fn batches(task: u32) -> Vec<Vec<u64>> {
    (0..BATCHES)
        .map(|batch| {
            let mut random = stream(1, Purpose::Test, u64::from(task), batch);
            let mut keys: Vec<u64> = (0..BATCH_KEYS * 8 / 5)
                .map(|_| (IDS.powf(random.uniform()) as u64).wrapping_mul(7_368_787) % IDS as u64)
                .collect();
            while keys.len() < BATCH_KEYS * 2 {
                keys.push(random.below(IDS as u64 / 3));
            }
            keys.sort_unstable();
            keys.dedup();
            keys.truncate(BATCH_KEYS);
            keys
        })
        .collect()
}

/// CPU time of this thread, which does not depend on the load of the machine; wall clock where it is not available.
fn busy_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = told.and_then(|text| text.split(' ').next()?.parse().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

fn store(
    task_count: u32,
    partition_count: u32,
    consistency: Consistency,
) -> Result<Arc<LocalStore>, matrix::Error> {
    let mut store = LocalStore::new(LocalConfig { task_count, wait_limit: Duration::from_mins(1) });
    store.create(MatrixSpec {
        name: "weights".into(),
        element: ElementType::F32,
        rows: 1 << 63,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count },
        initializer: Initializer::Zero,
        rule: PushRule::FtrlProximal { alpha: 0.1, beta: 1.0, l1: 0.0, l2: 0.0 },
        consistency,
        seed: 1,
    })?;
    Ok(Arc::new(store))
}

fn run(store: &Arc<LocalStore>, task: u32, batches: &[Vec<u64>]) -> Result<Vec<String>, matrix::Error> {
    let mut agent = store.agent(task);
    let mut lines = Vec::new();
    let mut values = Vec::new();
    for pass in 1..=2 {
        let (mut pull, mut push) = (Duration::ZERO, Duration::ZERO);
        for keys in batches {
            values.resize(keys.len(), 0f32);
            let start = busy_time();
            agent.pull(MatrixId(0), Selection::Rows(Keys::Sorted(keys)), ValuesMut::F32(&mut values))?;
            pull += busy_time().saturating_sub(start);
            for (value, key) in values.iter_mut().zip(keys) {
                *value = *value * 0.5 + ((key & 7) as f32 - 3.5);
            }
            let start = busy_time();
            agent.push(MatrixId(0), Selection::Rows(Keys::Sorted(keys)), Values::F32(&values))?;
            agent.tick()?;
            push += busy_time().saturating_sub(start);
        }
        let keys: usize = batches.iter().map(Vec::len).sum();
        let each = |time: Duration| time.as_secs_f64() * 1e9 / keys as f64;
        lines.push(format!(
            "task {task}, pass {pass}: pull {:.1} ns a key, push {:.1} ns a key",
            each(pull),
            each(push)
        ));
    }
    Ok(lines)
}
