//! Where the parameters of a job lie, and where its tasks run.

use std::ops::Range;

use algo::Job;
use master::JobLink;
use matrix::{MatrixSpec, Storage};
use rpc::WireType;
use rpc::message::{Member, MemberKind};
use worker::{JobLayout, LaneAddress, can_be_rounded, spread};

use crate::error::Error;
use crate::job::TrainJob;

/// Partitions a lane has of each matrix: placement can change without cutting.
const PARTITIONS_A_LANE: u32 = 4;
/// Most bytes that a task sends to a lane without hearing that they have come.
const WINDOW_BYTES: u64 = 8 << 20;

/// Where the parameters of a job lie: partitions in even blocks over all lanes of all its servers.
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
    let partitions = lanes.len() as u32 * PARTITIONS_A_LANE;
    let matrices = algorithm.matrices(model, job.consistency, partitions, job.seed)?;
    check_memory(&matrices, memory, &link.servers)?;
    let owners =
        matrices.iter().map(|spec| spread(spec.partitioner.partition_count(), lanes.len() as u16)).collect();
    // The vectors of an optimizer behind them must be exact: a line search sees the last digits.
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

/// A worker with its tasks.
pub(super) struct Crew {
    pub(super) worker: u32,
    pub(super) tasks: Range<u32>,
}

/// Tasks of workers, in blocks.
pub(super) fn crews(workers: &[Member], task_count: u32) -> Vec<Crew> {
    let count = workers.len() as u32;
    let bound = |i: u32| (u64::from(task_count) * u64::from(i) / u64::from(count)) as u32;
    workers
        .iter()
        .zip(0u32..)
        .map(|(member, i)| Crew { worker: member.id, tasks: bound(i)..bound(i + 1) })
        .filter(|crew| !crew.tasks.is_empty())
        .collect()
}

/// Refuses what cannot fit: dense matrices take all their rows from the start.
fn check_memory(matrices: &[MatrixSpec], limit: u64, servers: &[Member]) -> Result<(), Error> {
    let bytes = |spec: &MatrixSpec| {
        let width = spec.rule.row_width(spec.columns_of_table()) as u128;
        let size = if spec.element == matrix::ElementType::F32 { 4 } else { 8 };
        u128::from(spec.key_bound()) * spec.table_count() as u128 * width * size
    };
    let dense: Vec<&MatrixSpec> = matrices.iter().filter(|spec| spec.storage == Storage::Dense).collect();
    let sum: u128 = dense.iter().map(|spec| bytes(spec)).sum();
    if sum <= u128::from(limit) {
        return Ok(());
    }
    let parts: Vec<String> = dense
        .iter()
        .map(|spec| format!("{} {}", spec.name, crate::progress::bytes(bytes(spec) as u64)))
        .collect();
    let limit = crate::progress::bytes(limit);
    Err(Error::Request {
        what: format!(
            "the matrices take {} ({}), the {} servers together may hold {limit}",
            crate::progress::bytes(u64::try_from(sum).unwrap_or(u64::MAX)),
            parts.join(" + "),
            servers.len()
        ),
        advice: "start more servers, or servers with a higher --memory-limit".into(),
    })
}
