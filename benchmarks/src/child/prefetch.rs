//! What prefetching gains when the servers are far away. Two tasks of this process train an epoch of logistic
//! regression over clicks on two servers, behind relays that delay every byte in each direction.

use std::path::Path;
use std::time::{Duration, Instant};

use algo::{Coordinator, EpochDecision, EpochReport, StepDecision, TrainTask};
use anyhow::{Context as _, Result, bail};
use data::{BatchStream, LookAhead, Shuffle, TaskData};
use matrix::{Agent, Consistency, Prefetch};
use serde_json::{Value, json};
use worker::{PrefetchCounts, RemoteAgent};

use super::relay;
use super::wire::{ChildServer, close, open_job};

const TASKS: u32 = 2;
const TABLES: algo::TableLayout = algo::TableLayout { partition_count: PARTITIONS, task_count: TASKS };
const JOB: u32 = 1;
const PARTITIONS: u32 = 8;

/// A coordinator that lets the epoch run to its end.
struct NullCoordinator;

impl Coordinator for NullCoordinator {
    fn report_progress(&self, _task: u32, _record_count: u64, _loss_sum: f64) -> StepDecision {
        StepDecision::Continue
    }

    fn report_epoch(&self, _report: EpochReport) -> Result<EpochDecision, algo::Error> {
        Ok(EpochDecision::Stop)
    }
}

/// What one task measured.
struct TaskTimes {
    seconds: f64,
    wait_s: f64,
    steps: u64,
    prefetches: PrefetchCounts,
}

/// Seconds of an epoch, the share of it that tasks waited, and the counts of prefetched pulls. `delay_ms` is added in
/// each direction, so a round trip takes twice as long.
pub(super) fn run(consistency: &str, prefetch: &str, delay_ms: &str, file: &Path) -> Result<Value> {
    let delay = Duration::from_millis(delay_ms.parse().context("milliseconds of delay")?);
    let consistency = match consistency {
        "bsp" => Consistency::Bsp,
        "ssp" => Consistency::Ssp { staleness: 4 },
        _ => bail!("unknown consistency {consistency:?}: bsp or ssp"),
    };
    let prefetch = match prefetch {
        "off" => Prefetch::Off,
        "exact" => Prefetch::Exact,
        _ => bail!("unknown prefetch {prefetch:?}: off or exact"),
    };
    let servers = [ChildServer::start("wire-server")?, ChildServer::start("wire-server")?];
    let job = families::all().configure("lr", &std::iter::once(("epochs", "1")).collect())?;
    let model = job.model(&algo::DataFacts::default(), None)?;
    let matrices = job.training_matrices(&*model, consistency, TABLES, 1)?;
    let mut layout = open_job(JOB, &servers, matrices, TASKS)?;
    layout.prefetch = prefetch;
    for (lane, server) in layout.lanes.iter_mut().zip(&servers) {
        let target = server.address.trim_start_matches("tcp:").to_owned();
        lane.addresses = vec![format!("tcp:{}", relay::start(target, delay)?)];
    }
    let source = super::source(file)?;
    let done = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..TASKS)
            .zip(source.splits(TASKS as usize))
            .map(|(task, splits)| {
                let (layout, source, job, model) = (layout.clone(), &source, &job, &*model);
                scope.spawn(move || -> Result<TaskTimes> {
                    let reader = source.reader(splits)?;
                    let size = job.needs().batch_size;
                    let mut data = TaskData::new(reader, None, Shuffle::None, 1, task.into(), size);
                    let mut agent = RemoteAgent::new(layout, task, &[])?;
                    let start = Instant::now();
                    let mut train = |data: &mut dyn BatchStream| {
                        let agent = &mut agent;
                        let (validation, coordinator, resumed, seed) = (None, &NullCoordinator, false, 1);
                        let task = TrainTask { agent, data, validation, coordinator, model, resumed, seed };
                        algo::train(&**job, task, None)
                    };
                    match prefetch {
                        Prefetch::Off => train(&mut data)?,
                        Prefetch::Exact => train(&mut LookAhead::new(&mut data))?,
                    }
                    let seconds = start.elapsed().as_secs_f64();
                    let wait_s = agent.stats().wait_ns as f64 / 1e9;
                    Ok(TaskTimes {
                        seconds,
                        wait_s,
                        steps: agent.clock(),
                        prefetches: agent.prefetch_counts(),
                    })
                })
            })
            .collect();
        tasks.into_iter().map(|task| task.join().expect("a task does not panic")).collect::<Result<Vec<_>>>()
    })?;
    close(JOB, &servers)?;
    let slowest = done.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)).context("there are tasks")?;
    let sum = |of: fn(&TaskTimes) -> f64| done.iter().map(of).sum::<f64>();
    Ok(json!({
        "seconds": slowest.seconds,
        "wait_share": sum(|task| task.wait_s) / sum(|task| task.seconds),
        "step_ms": 1e3 * slowest.seconds / slowest.steps as f64,
        "steps": slowest.steps,
        "sent": slowest.prefetches.sent,
        "used": slowest.prefetches.used,
    }))
}
