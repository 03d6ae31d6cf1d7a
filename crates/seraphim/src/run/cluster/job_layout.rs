//! The layout of a job: which lanes own its partitions, and which workers run its tasks.

use std::collections::BTreeMap;
use std::ops::Range;

use algo::Job;
use data::{BadLinePolicy, BadLineTotal};
use master::JobLink;
use matrix::MatrixSpec;
use rpc::WireType;
use rpc::message::{Member, MemberKind};
use worker::{JobLayout, LaneAddress, assign_partitions, can_be_rounded};

use crate::error::Error;
use crate::job::TrainJob;
use crate::run::memory_check::check_memory;

/// Number of partitions of each matrix per lane, so that placement can change without splitting partitions.
const PARTITIONS_PER_LANE: u32 = 4;
/// Maximum number of unacknowledged bytes from a task to a lane.
const WINDOW_BYTES: u64 = 8 << 20;

/// Returns the layout of the parameters: partitions in equal blocks over all lanes of all servers of the job.
pub(super) fn layout(
    link: &JobLink,
    job: &TrainJob,
    algorithm: &dyn Job,
    model: &algo::Model,
    task_count: u32,
) -> Result<JobLayout, Error> {
    let mut lanes = Vec::new();
    let mut memory = 0u64;
    for server in &link.servers {
        if let MemberKind::Server { addresses, lanes: count, memory_limit_bytes } = &server.kind {
            let place =
                |lane| LaneAddress { addresses: addresses.clone(), lane, server: server.name.clone() };
            lanes.extend((0..*count).map(place));
            memory = memory.saturating_add(*memory_limit_bytes);
        }
    }
    let partitions = lanes.len() as u32 * PARTITIONS_PER_LANE;
    let matrices = algorithm.matrices(model, job.consistency, partitions, job.seed)?;
    let holders = format!("the {} servers together", link.servers.len());
    check_memory(&matrices, memory, &holders, "start more servers, or servers with a higher --memory-limit")?;
    let owners = matrices
        .iter()
        .map(|spec| assign_partitions(spec.partitioner.partition_count(), lanes.len() as u16))
        .collect();
    // The optimizer's vectors after them must be exact, because a line search depends on their last digits.
    let may_be_rounded = model.matrix_count();
    let wire = |(i, spec): (usize, &MatrixSpec)| {
        if i < may_be_rounded && can_be_rounded(spec) { job.wire } else { WireType::F32 }
    };
    let wire = matrices.iter().enumerate().map(wire).collect();
    Ok(JobLayout {
        job: link.job,
        task_count,
        wait_limit: job.wait_limit,
        window_bytes: WINDOW_BYTES,
        wire,
        prefetch: job.prefetch,
        cache_bytes: job.cache_bytes,
        matrices,
        lanes,
        owners,
        home: 0,
    })
}

/// A worker and the range of its tasks.
pub(super) struct WorkerTasks {
    pub(super) worker: u32,
    pub(super) tasks: Range<u32>,
}

/// Checks the limit of bad lines over all tasks of the job. `of_workers` has the bad lines of each worker's tasks, in
/// training and in validation, when all of them have reported the epoch.
pub(super) fn check_bad_lines(
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

/// Assigns tasks to workers in contiguous blocks.
pub(super) fn assign_tasks(workers: &[Member], task_count: u32) -> Vec<WorkerTasks> {
    let count = workers.len() as u32;
    let bound = |i: u32| (u64::from(task_count) * u64::from(i) / u64::from(count)) as u32;
    workers
        .iter()
        .zip(0u32..)
        .map(|(member, i)| WorkerTasks { worker: member.id, tasks: bound(i)..bound(i + 1) })
        .filter(|share| !share.tasks.is_empty())
        .collect()
}
