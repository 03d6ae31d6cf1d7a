//! The layout of a job: where its partitions are, and which workers run its tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use algo::TableLayout;
use data::{BadLinePolicy, BadLineTotal};
use job::TrainJob;
use matrix::{MatrixSpec, Prefetch};
use rpc::WireType;
use rpc::layout::{JobLayout, LaneAddress, assign_partitions, can_be_rounded};
use rpc::message::{Durability, JobId, Member, MemberKind};

use crate::config::{DriverConfig, ParameterPlace, WorkerInfo};
use crate::error::Error;
use crate::memory_check::check_memory;
use crate::phase::WorkerTasks;
use crate::slow_workers::{lower_median, spread};

/// Number of partitions of each matrix per lane, so that placement can change without splitting partitions.
const PARTITIONS_PER_LANE: u32 = 4;
/// Partitions of each matrix per task that computes at the same time in one process: with so many, two tasks seldom
/// need the same partition at once. A single task has one partition. The bytes of the model do not depend on this
/// number.
const PARTITIONS_PER_TASK: u32 = 8;
/// Maximum number of unacknowledged bytes from a task to a lane.
const WINDOW_BYTES: u64 = 8 << 20;

/// Nothing waits while a model is only read, but a layout needs a limit.
const SCORING_WAIT_LIMIT: Duration = Duration::from_mins(10);

/// Returns the layout of the parameters: partitions in equal blocks over all lanes of all servers of the job.
pub(crate) fn layout(
    config: &DriverConfig,
    (job, algorithm): (&TrainJob, &dyn algo::Job),
    model: &dyn algo::Model,
    task_count: u32,
) -> Result<JobLayout, Error> {
    let is_replicated = job.durability == Durability::Replica;
    let mut lanes = config.parameters.lanes();
    if is_replicated {
        config.parameters.add_standbys(&mut lanes)?;
    }
    let partition_count = config.parameters.partition_count(lanes.len() as u32, task_count);
    let tables = TableLayout { partition_count, task_count };
    let matrices = algorithm.training_matrices(model, job.consistency, tables, job.seed)?;
    config.parameters.check_memory(&matrices, if is_replicated { 2 } else { 1 })?;
    let owners_of =
        |spec: &MatrixSpec| assign_partitions(spec.partitioner.partition_count(), lanes.len() as u16);
    let is_remote = !lanes.is_empty();
    let owners = matrices.iter().filter(|_| is_remote).map(owners_of).collect();
    // The optimizer's vectors after them must be exact, because a line search depends on their last digits.
    let may_be_rounded = model.matrix_count();
    let wire = |(i, spec): (usize, &MatrixSpec)| {
        if i < may_be_rounded && can_be_rounded(spec) { job.wire } else { WireType::F32 }
    };
    let wire = matrices.iter().enumerate().map(wire).collect();
    Ok(JobLayout {
        job: config.job,
        task_count,
        wait_limit: job.wait_limit,
        window_bytes: WINDOW_BYTES,
        wire,
        prefetch: job.prefetch,
        matrices,
        lanes,
        owners,
        home: 0,
    })
}

/// Returns the layout of the parameters of a model that is only read, with values that travel unchanged.
pub(crate) fn scoring_layout(
    job: JobId,
    place: &ParameterPlace,
    model: &dyn algo::Model,
    task_count: u32,
) -> Result<JobLayout, Error> {
    let lanes = place.lanes();
    let matrices = model.matrices(place.partition_count(lanes.len() as u32, task_count));
    place.check_memory(&matrices, 1)?;
    let owners =
        |spec: &MatrixSpec| assign_partitions(spec.partitioner.partition_count(), lanes.len() as u16);
    Ok(JobLayout {
        job,
        task_count,
        wait_limit: SCORING_WAIT_LIMIT,
        window_bytes: WINDOW_BYTES,
        wire: vec![WireType::F32; matrices.len()],
        prefetch: Prefetch::Off,
        owners: matrices.iter().map(owners).collect(),
        matrices,
        lanes,
        home: 0,
    })
}

impl ParameterPlace {
    /// Returns all lanes of the servers; none in one process.
    fn lanes(&self) -> Vec<LaneAddress> {
        let mut lanes = Vec::new();
        let Self::Servers(servers) = self else { return lanes };
        for server in servers {
            if let MemberKind::Server { addresses, lanes: count, .. } = &server.kind {
                let place = |lane| LaneAddress {
                    addresses: addresses.clone(),
                    lane,
                    server: server.name.clone(),
                    standby: None,
                };
                lanes.extend((0..*count).map(place));
            }
        }
        lanes
    }

    /// Gives each lane its standby: a lane of the next server. A server has its lanes for copies after its own ones.
    fn add_standbys(&self, lanes: &mut [LaneAddress]) -> Result<(), Error> {
        let Self::Servers(servers) = self else { return Ok(()) };
        let standbys =
            rpc::layout::standbys_of(servers).map_err(|text| Error::request("--durability replica", text))?;
        for (lane, standby) in lanes.iter_mut().zip(standbys) {
            lane.standby = Some(standby);
        }
        Ok(())
    }

    /// Returns the number of partitions of each matrix.
    fn partition_count(&self, lane_count: u32, task_count: u32) -> u32 {
        match self {
            Self::Process { threads, .. } if task_count.min(*threads) <= 1 => 1,
            Self::Process { threads, .. } => PARTITIONS_PER_TASK * task_count.min(*threads),
            Self::Servers(_) => PARTITIONS_PER_LANE * lane_count,
        }
    }

    /// Refuses matrices that do not fit `copies` times.
    fn check_memory(&self, matrices: &[MatrixSpec], copies: u64) -> Result<(), Error> {
        match self {
            Self::Process { memory_bytes, .. } => {
                let Some(limit) = *memory_bytes else { return Ok(()) };
                let advice = "leave dimensions out, so that only features that occur take memory; or give --servers \
                              on machines with more memory";
                check_memory(matrices, limit, "this machine", advice)
            }
            Self::Servers(servers) => {
                let limit_of = |server: &Member| match &server.kind {
                    MemberKind::Server { memory_limit_bytes, .. } => *memory_limit_bytes,
                    MemberKind::Worker { .. } => 0,
                };
                let limit = servers.iter().map(limit_of).fold(0, u64::saturating_add);
                let limit = limit / copies;
                let twice = if copies > 1 { ", which have everything twice," } else { "" };
                let holders = format!("the {} servers together{twice}", servers.len());
                let advice = "start more servers, or servers with a higher --memory-limit";
                check_memory(matrices, limit, &holders, advice)
            }
        }
    }
}

/// Checks the limit of bad lines over all tasks of the job. `of_workers` has the bad lines of each worker's tasks, in
/// training and in validation, when all of them have reported the epoch.
pub(crate) fn check_bad_lines(
    rule: BadLinePolicy,
    worker_tasks: &[WorkerTasks],
    of_workers: &BTreeMap<u32, [BadLineTotal; 2]>,
) -> Result<(), data::Error> {
    for of_what in 0..2 {
        let mut total = BadLineTotal::default();
        let in_order = worker_tasks.iter().filter_map(|share| of_workers.get(&share.worker));
        in_order.for_each(|totals| total.add(&totals[of_what]));
        rule.check(&total)?;
    }
    Ok(())
}

/// Assigns tasks to workers in contiguous blocks: of equal size, or by the times for a record that were measured.
pub(crate) fn assign_tasks(config: &DriverConfig, task_count: u32) -> Vec<WorkerTasks> {
    let DriverConfig { workers, record_times, .. } = config;
    let counts = if record_times.is_empty() {
        let count = workers.len() as u64;
        let bound = |i: u64| (u64::from(task_count) * i / count) as u32;
        (0..count).map(|i| bound(i + 1) - bound(i)).collect()
    } else {
        let median = lower_median(record_times.values().copied());
        let time_of = |info: &WorkerInfo| {
            let time = info.name.as_ref().and_then(|name| record_times.get(name)).copied();
            (time.unwrap_or(median), info.slots)
        };
        spread(task_count, &workers.iter().map(time_of).collect::<Vec<_>>())
    };
    let mut first = 0;
    let shares = workers.iter().zip(counts).map(|(info, count)| {
        let tasks = first..first + count;
        first += count;
        WorkerTasks { worker: info.id, tasks }
    });
    shares.filter(|share| !share.tasks.is_empty()).collect()
}

/// Lets the push rules begin so many clocks later.
pub(crate) fn with_start_clock(mut specs: Vec<MatrixSpec>, clock: u64) -> Vec<MatrixSpec> {
    for spec in &mut specs {
        spec.rule = spec.rule.after(clock);
    }
    specs
}
