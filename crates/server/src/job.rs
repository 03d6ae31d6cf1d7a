//! A job on a lane: its matrices, the clocks and marks of its tasks, and who waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use matrix::clock::{Clock, ClockTable};
use matrix::{Exported, FunctionTable, HeldMatrix};
use rpc::message::{
    Done, FaultKind, JobId, Mark, Message, OpenJob, Pull, PullFunction, RequestId, TryFunction,
};

use crate::barrier::Barriers;
use crate::broken::Broken;
use crate::open::modules_bytes;
use crate::refusal::Refusal;
use crate::staged::Staged;
use crate::state::LaneState;
use crate::stats::JobStats;
use rpc::service::{ConnectionId, Effect};

/// A job that is open.
#[derive(Debug)]
pub(crate) struct Job {
    /// What it was opened with, request 0.
    pub(crate) opened: OpenJob,
    pub(crate) matrices: Vec<HeldMatrix>,
    /// With those of the modules that it brought; none: those of the server.
    pub(crate) functions: Option<Arc<FunctionTable>>,
    /// Numbers of matrices that are not there any more; what stands in their places is empty.
    pub(crate) dropped: BTreeSet<u32>,
    /// What attempts of a foreign host have not committed.
    pub(crate) staged: Staged,
    pub(crate) table: ClockTable,
    /// By task: the connection on which it speaks now, how far its pushes have come.
    pub(crate) connections: Vec<Option<ConnectionId>>,
    pub(crate) marks: Vec<Mark>,
    /// By task: the last push function that failed, or was tried and would have, and why, for who asks again.
    pub(crate) function_faults: BTreeMap<u32, (Mark, Refusal)>,
    /// Pulls and pushes that wait, by arrival.
    pub(crate) held: BTreeMap<u64, Held>,
    pub(crate) barriers: Barriers,
    /// The matrix that was asked for last, while nothing has changed it.
    pub(crate) exported: Option<(u32, Exported)>,
    /// The copy for early stopping.
    pub(crate) kept: Option<Vec<Exported>>,
    pub(crate) stats: JobStats,
}

/// A request that waits for m.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) connection: ConnectionId,
    pub(crate) needed: Clock,
    pub(crate) since: Duration,
    /// When who asked no longer waits, if that is before the limit of the job.
    pub(crate) until: Option<Duration>,
    pub(crate) task: u32,
    pub(crate) clock: Clock,
    pub(crate) request: RequestId,
    pub(crate) matrix: u32,
    pub(crate) bytes: u64,
    pub(crate) what: HeldWhat,
}

impl Held {
    /// When it is no longer held: at the limit of the job, or when who asked no longer waits.
    pub(crate) fn gives_up_at(&self, limit: Duration) -> Duration {
        let end = self.since + limit;
        self.until.map_or(end, |until| until.min(end))
    }
}

/// Which request.
#[derive(Debug)]
pub(crate) enum HeldWhat {
    Pull(Pull),
    PullFunction(PullFunction),
    TryFunction(TryFunction),
    /// The first in the queue of its connection.
    Push,
}

impl Job {
    pub(crate) fn new(
        opened: OpenJob,
        matrices: Vec<HeldMatrix>,
        functions: Option<Arc<FunctionTable>>,
    ) -> Self {
        let count = opened.task_count as usize;
        Self {
            matrices,
            functions,
            dropped: BTreeSet::new(),
            staged: Staged::default(),
            table: ClockTable::new(opened.task_count),
            connections: vec![None; count],
            marks: vec![Mark::default(); count],
            function_faults: BTreeMap::new(),
            held: BTreeMap::new(),
            barriers: Barriers::new(opened.task_count),
            exported: None,
            kept: None,
            stats: JobStats::default(),
            opened,
        }
    }

    pub(crate) fn wait_limit(&self) -> Duration {
        Duration::from_millis(self.opened.wait_limit_ms)
    }

    pub(crate) fn matrix(&mut self, id: u32) -> Result<&mut HeldMatrix, Refusal> {
        if self.dropped.contains(&id) {
            let text = format!("matrix {id} ({:?}) was dropped", self.name_of(id));
            return Err(Refusal::new(FaultKind::NotFound, text));
        }
        let count = self.matrices.len();
        self.matrices.get_mut(id as usize).ok_or_else(|| matrix::Error::NoSuchMatrix { id, count }.into())
    }

    pub(crate) fn name_of(&self, id: u32) -> &str {
        self.matrices.get(id as usize).map_or("?", |matrix| &matrix.spec().name)
    }

    pub(crate) fn mark(&self, task: u32) -> Mark {
        self.marks.get(task as usize).copied().unwrap_or_default()
    }

    /// m, for answers.
    pub(crate) fn minimum_or_max(&self) -> u64 {
        self.table.minimum().unwrap_or(u64::MAX)
    }

    /// Forgets what was exported of a matrix that changes now.
    pub(crate) fn changes(&mut self, matrix: u32) {
        if self.exported.as_ref().is_some_and(|(exported, _)| *exported == matrix) {
            self.exported = None;
        }
    }

    /// m may have risen: what is staged below it is visible now.
    pub(crate) fn forget_export_of_staged(&mut self) {
        let stages = |id: u32| self.matrices[id as usize].spec().consistency.stages_pushes();
        if self.exported.as_ref().is_some_and(|(exported, _)| stages(*exported)) {
            self.exported = None;
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let rows: u64 = self.matrices.iter().map(HeldMatrix::bytes).sum();
        let kept: u64 = self.kept.iter().flatten().map(exported_bytes).sum();
        rows + kept + modules_bytes(&self.opened)
    }
}

pub(crate) fn exported_bytes(rows: &Exported) -> u64 {
    let bytes = |values: &matrix::OwnedValues| values.len() * values.element_type().size();
    let slots: usize = rows.slots.iter().map(|(_, values)| bytes(values)).sum();
    (rows.keys.len() * 8 + bytes(&rows.values) + slots) as u64
}

impl LaneState {
    /// A held push that is given up: what waits behind it on its connection goes on.
    pub(crate) fn unhold(&mut self, held: &Held) {
        let HeldWhat::Push = held.what else { return };
        if let Some(connection) = self.connections.get_mut(&held.connection) {
            connection.blocked = false;
            self.held_bytes -= connection.pop_front().map_or(0, |queued| queued.bytes);
            self.runnable.insert(held.connection);
        }
    }

    /// The functions that a job may call.
    pub(crate) fn functions_at(&mut self, job: JobId) -> Result<Arc<FunctionTable>, Refusal> {
        let own = self.job(job)?.functions.clone();
        Ok(own.unwrap_or_else(|| Arc::clone(&self.functions)))
    }

    pub(crate) fn job(&mut self, job: JobId) -> Result<&mut Job, Refusal> {
        match self.jobs.get_mut(&job) {
            Some(job) => Ok(job),
            None => Err(match self.closed.get(&job) {
                Some(reason) => Refusal::new(FaultKind::Stopped, format!("job {job} was ended: {reason}")),
                None => Refusal::new(FaultKind::NoSuchJob, format!("job {job} is not open here")),
            }),
        }
    }

    /// Whether m as the lane counts it is at least `needed`.
    pub(crate) fn has_come(&self, job: &Job, needed: Clock) -> bool {
        if self.config.lacks(Broken::StalenessIgnored) {
            return true;
        }
        if self.config.lacks(Broken::MinimumByCommits) {
            let count = job.table.task_count();
            let sum: u64 = (0..count).filter_map(|task| job.table.last_clock(task)).sum();
            return job.table.minimum().is_none() || sum / u64::from(count.max(1)) >= needed;
        }
        job.table.minimum().is_none_or(|m| m >= needed)
    }

    /// Answers `Done`, if an answer is wanted.
    pub(crate) fn done(&mut self, at: ConnectionId, request: RequestId, job: JobId, out: &mut Vec<Effect>) {
        if request == 0 {
            return;
        }
        let (mut minimum, mut applied) = (u64::MAX, Mark::default());
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
