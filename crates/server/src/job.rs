//! A job on a lane: its matrices, the clocks and push positions of its tasks, and its deferred requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use matrix::clock::{Clock, ClockTable};
use matrix::{FunctionTable, Matrix, Snapshot};
use rpc::message::{
    Done, FaultKind, JobId, Message, OpenJob, Pull, PullFunction, PushPosition, RequestId, SNAPSHOT_LIMIT,
    TryFunction,
};

use crate::barrier::JobBarrier;
use crate::injected_fault::InjectedFault;
use crate::job_lifecycle::modules_bytes;
use crate::refusal::Refusal;
use crate::rows::ExportCache;
use crate::staged_chunks::StagedChunks;
use crate::state::LaneState;
use crate::stats::JobStats;
use rpc::service::{ConnectionId, Effect};

/// A job that is open on this lane.
#[derive(Debug)]
pub(crate) struct Job {
    /// The request that opened the job, with request id 0.
    pub(crate) open_request: OpenJob,
    pub(crate) matrices: Vec<Matrix>,
    /// The functions of the server and of the modules of the job. None if the job brings no modules.
    pub(crate) functions: Option<Arc<FunctionTable>>,
    /// Numbers of dropped matrices. Their entries in `matrices` are empty.
    pub(crate) dropped_matrices: BTreeSet<u32>,
    /// Chunks that attempts of a foreign host have staged and not committed.
    pub(crate) staged_chunks: StagedChunks,
    pub(crate) clock_table: ClockTable,
    /// Indexed by task: the current connection, and the position after the last applied push.
    pub(crate) connections: Vec<Option<ConnectionId>>,
    pub(crate) marks: Vec<PushPosition>,
    /// By task: the last push function that failed when it was pushed or tried, with the reason, for tasks that repeat
    /// the request.
    pub(crate) function_faults: BTreeMap<u32, (PushPosition, Refusal)>,
    /// Deferred pulls and pushes, by arrival.
    pub(crate) deferred_requests: BTreeMap<u64, DeferredRequest>,
    pub(crate) barrier: JobBarrier,
    /// The matrix that was exported last, until it changes.
    pub(crate) export_cache: Option<ExportCache>,
    /// By number; each has all matrices that existed when it was taken.
    pub(crate) snapshots: [Option<Vec<Snapshot>>; SNAPSHOT_LIMIT as usize],
    pub(crate) stats: JobStats,
}

/// A request that waits for the smallest clock.
#[derive(Debug)]
pub(crate) struct DeferredRequest {
    pub(crate) connection: ConnectionId,
    pub(crate) needed_clock: Clock,
    pub(crate) since: Duration,
    /// The time at which the task stops waiting, if that is before the wait limit of the job.
    pub(crate) task_deadline: Option<Duration>,
    pub(crate) task: u32,
    pub(crate) clock: Clock,
    pub(crate) request: RequestId,
    pub(crate) matrix: u32,
    pub(crate) bytes: u64,
    pub(crate) call: DeferredCall,
}

impl DeferredRequest {
    /// The time at which the wait ends: the wait limit of the job or the deadline of the task, whichever is earlier.
    pub(crate) fn expires_at(&self, limit: Duration) -> Duration {
        let end = self.since + limit;
        self.task_deadline.map_or(end, |until| until.min(end))
    }
}

/// The deferred request itself.
#[derive(Debug)]
pub(crate) enum DeferredCall {
    Pull(Pull),
    PullFunction(PullFunction),
    TryFunction(TryFunction),
    /// The push is the first request in the queue of its connection.
    Push,
}

impl Job {
    pub(crate) fn new(opened: OpenJob, matrices: Vec<Matrix>, functions: Option<Arc<FunctionTable>>) -> Self {
        let count = opened.task_count as usize;
        Self {
            matrices,
            functions,
            dropped_matrices: BTreeSet::new(),
            staged_chunks: StagedChunks::default(),
            clock_table: ClockTable::new(opened.task_count),
            connections: vec![None; count],
            marks: vec![PushPosition::default(); count],
            function_faults: BTreeMap::new(),
            deferred_requests: BTreeMap::new(),
            barrier: JobBarrier::new(opened.task_count),
            export_cache: None,
            snapshots: Default::default(),
            stats: JobStats::default(),
            open_request: opened,
        }
    }

    pub(crate) fn wait_limit(&self) -> Duration {
        Duration::from_millis(self.open_request.wait_limit_ms)
    }

    pub(crate) fn matrix(&mut self, id: u32) -> Result<&mut Matrix, Refusal> {
        if self.dropped_matrices.contains(&id) {
            let text = format!("matrix {id} ({:?}) was dropped", self.name_of(id));
            return Err(Refusal::new(FaultKind::NotFound, text));
        }
        let count = self.matrices.len();
        self.matrices.get_mut(id as usize).ok_or_else(|| matrix::Error::NoSuchMatrix { id, count }.into())
    }

    pub(crate) fn name_of(&self, id: u32) -> &str {
        self.matrices.get(id as usize).map_or("?", |matrix| &matrix.spec().name)
    }

    pub(crate) fn mark(&self, task: u32) -> PushPosition {
        self.marks.get(task as usize).copied().unwrap_or_default()
    }

    /// The smallest clock for answers; `u64::MAX` when no task is live.
    pub(crate) fn minimum_or_max(&self) -> u64 {
        self.clock_table.minimum().unwrap_or(u64::MAX)
    }

    /// Drops the cached export of a matrix that changes.
    pub(crate) fn invalidate_export(&mut self, matrix: u32) {
        if self.export_cache.as_ref().is_some_and(|cache| cache.matrix == matrix) {
            self.export_cache = None;
        }
    }

    /// Drops a cached export with staged pushes: the smallest clock may have risen, and then more pushes are visible.
    pub(crate) fn invalidate_staged_export(&mut self) {
        let stages = |id: u32| self.matrices[id as usize].spec().consistency.stages_pushes();
        if self.export_cache.as_ref().is_some_and(|cache| stages(cache.matrix)) {
            self.export_cache = None;
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let rows: u64 = self.matrices.iter().map(Matrix::size_bytes).sum();
        let snapshots_of =
            |matrix: usize| self.snapshots.iter().flatten().filter_map(move |all| all.get(matrix));
        let snapshot_bytes: u64 = (0..)
            .zip(&self.matrices)
            .map(|(number, matrix)| matrix.snapshot_bytes(snapshots_of(number)))
            .sum();
        rows + snapshot_bytes + modules_bytes(&self.open_request)
    }
}

impl LaneState {
    /// Drops a deferred push from the queue of its connection, so that the requests behind it continue.
    pub(crate) fn unblock_connection(&mut self, deferred: &DeferredRequest) {
        let DeferredCall::Push = deferred.call else { return };
        if let Some(connection) = self.connections.get_mut(&deferred.connection) {
            connection.is_blocked = false;
            self.deferred_bytes -= connection.pop_front().map_or(0, |queued| queued.bytes);
            self.ready.add_connection(deferred.connection);
        }
    }

    pub(crate) fn job_functions(&mut self, job: JobId) -> Result<Arc<FunctionTable>, Refusal> {
        let own = self.job(job)?.functions.clone();
        Ok(own.unwrap_or_else(|| Arc::clone(&self.functions)))
    }

    pub(crate) fn job(&mut self, job: JobId) -> Result<&mut Job, Refusal> {
        match self.jobs.get_mut(&job) {
            Some(job) => Ok(job),
            None => Err(match self.closed_jobs.reason(job) {
                Some(reason) => Refusal::new(FaultKind::Stopped, format!("job {job} was ended: {reason}")),
                None => Refusal::new(FaultKind::NoSuchJob, format!("job {job} is not open here")),
            }),
        }
    }

    /// Whether the smallest clock, as this lane computes it, is at least `needed`.
    pub(crate) fn has_reached(&self, job: &Job, needed: Clock) -> bool {
        if self.config.injects(InjectedFault::StalenessIgnored) {
            return true;
        }
        if self.config.injects(InjectedFault::MinimumByCommits) {
            let count = job.clock_table.task_count();
            let sum: u64 = (0..count).filter_map(|task| job.clock_table.last_clock(task)).sum();
            return job.clock_table.minimum().is_none() || sum / u64::from(count.max(1)) >= needed;
        }
        job.clock_table.minimum().is_none_or(|m| m >= needed)
    }

    /// Answers with `Done`, unless the request id is 0.
    pub(crate) fn reply_done(
        &mut self,
        at: ConnectionId,
        request: RequestId,
        job: JobId,
        out: &mut Vec<Effect>,
    ) {
        if request == 0 {
            return;
        }
        let (mut minimum, mut applied) = (u64::MAX, PushPosition::default());
        if let Some(open) = self.jobs.get(&job) {
            minimum = open.minimum_or_max();
            applied = self
                .task_at(at)
                .filter(|(of, _)| *of == job)
                .map(|(_, task)| open.mark(task))
                .unwrap_or_default();
        }
        out.push(Effect::Send { connection: at, message: Message::Done(Done { request, minimum, applied }) });
    }
}
