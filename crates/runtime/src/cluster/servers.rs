//! Access to whole matrices on all lanes of a job, for code that is not a task.

use std::sync::Arc;
use std::time::Duration;

use driver::{Error, SnapshotPurpose};
use job::Exit;
use matrix::{FunctionTable, RowBlock, RowCounts};
use model::MatrixSource;
use rpc::Message;
use rpc::layout::JobLayout;
use rpc::message::{
    Base64Bytes, CloseJob, DropRows, Durability, Export, ExportPage, FaultKind, Import, KeepRows, OpenJob,
    RequestId, RestoreRows, Role, ScanRows, Stats, StatsReply, TaskStats, TaskStatus,
};
use worker::RetryPolicy;

use crate::cluster::lane_clients::LaneClients;

/// Maximum wait for an answer: a lane may copy or sort all its rows for one.
const ANSWER_LIMIT: Duration = Duration::from_mins(5);
/// Maximum wait for all lanes together to free a job. A lane that is blocked frees the job later.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);
/// Like [`CLOSE_LIMIT`] for a failed job: the failure is reported without waiting for a server that does not answer.
const FAILED_CLOSE_LIMIT: Duration = Duration::from_secs(1);
/// With at most so many rows left, a lane is asked for more together with another that has none left.
const FEW_ROWS: usize = 1 << 14;
/// Size of the keys and values in one frame of an import.
const PAGE_BYTES: usize = 2 << 20;
/// Most entries of lists in one frame of an import, which has up to three numbers for each.
const PAGE_ENTRIES: usize = PAGE_BYTES / size_of::<u64>() / 3;

/// Connections to all lanes of a job.
pub struct Servers {
    layout: JobLayout,
    durability: Durability,
    functions: Arc<FunctionTable>,
    lanes: LaneClients,
    /// The matrix that is being read.
    reading: Option<MatrixReading>,
}

/// The first key of a page, and the number of entries of its list that were read.
type PageStart = (u64, u64);

/// How far a matrix was read: a page of each lane.
struct MatrixReading {
    matrix: u32,
    /// The first key that was not returned.
    from: u64,
    /// For each lane the rows that were not returned, and where the page after them begins.
    lanes: Vec<(RowBlock, Option<PageStart>)>,
}

impl MatrixReading {
    /// The lanes that are asked for a page: as soon as one has no rows left, all that have few, so that they work in
    /// parallel.
    fn lanes_to_read(&self) -> Vec<usize> {
        let is_due = |&lane: &usize| {
            let (rows, next) = &self.lanes[lane];
            next.is_some() && rows.keys.len() <= FEW_ROWS
        };
        // The row at which the next page begins may be cut, so it is not there yet.
        let has_no_whole_row = |(rows, next): &(RowBlock, Option<PageStart>)| {
            next.is_some_and(|(key, _)| rows.keys.first().is_none_or(|first| *first >= key))
        };
        if self.lanes.iter().any(has_no_whole_row) {
            (0..self.lanes.len()).filter(is_due).collect()
        } else {
            Vec::new()
        }
    }
}

impl MatrixSource<Error> for Servers {
    fn count_rows(&mut self, matrix: usize) -> Result<RowCounts, Error> {
        let mut counts = RowCounts::default();
        let all: Vec<usize> = (0..self.lanes.count()).collect();
        let has_lists = self.layout.matrices[matrix].storage.has_lists();
        for page in self.pages(&all, matrix as u32, &vec![(0, 0); all.len()])? {
            counts.rows += page.row_count;
            counts.nonzero_rows += if has_lists { page.row_count } else { page.nonzero_count };
            counts.entries += if has_lists { page.nonzero_count } else { 0 };
        }
        Ok(counts)
    }

    fn rows_from(&mut self, matrix: usize, key: u64) -> Result<RowBlock, Error> {
        let matrix = matrix as u32;
        let spec = self.layout.matrices[matrix as usize].clone();
        let mut reading = self.take_reading(matrix, key);
        loop {
            let due = reading.lanes_to_read();
            if due.is_empty() {
                break;
            }
            let from: Vec<PageStart> = due.iter().filter_map(|lane| reading.lanes[*lane].1).collect();
            for (lane, page) in due.iter().zip(self.pages(&due, matrix, &from)?) {
                let (rows, next) = &mut reading.lanes[*lane];
                *next = page.next.map(|key| (key, page.next_skip));
                rows.append(&RowBlock::from_sections(&spec, page.keys, page.values, true)?);
            }
        }
        // Every lane has the rows below the first key that some lane has not sent.
        let nexts = reading.lanes.iter().filter_map(|(_, next)| *next);
        let end = nexts.map(|(key, _)| key).min().unwrap_or(u64::MAX);
        let parts = reading.lanes.iter_mut().map(|(rows, _)| {
            let count = rows.keys.partition_point(|key| *key < end);
            let rest = rows.slice(count..rows.keys.len());
            let mut part = std::mem::replace(rows, rest);
            part.truncate(count);
            part
        });
        let rows = RowBlock::merge(&spec, parts.collect());
        reading.from = rows.keys.last().map_or(key, |last| last + 1);
        self.reading = Some(reading);
        Ok(rows)
    }
}

impl Servers {
    /// Connects to all lanes as a tool.
    pub fn connect(layout: &JobLayout, token: &[u8]) -> Result<Self, Error> {
        Self::connect_as(Role::Tool, layout, token, RetryPolicy::default())
    }

    /// Connects to all lanes with this role, see `LaneClients::connect`.
    pub fn connect_as(
        role: Role,
        layout: &JobLayout,
        token: &[u8],
        policy: RetryPolicy,
    ) -> Result<Self, Error> {
        let lanes = LaneClients::connect(role, &layout.lanes, token, policy)?;
        let (layout, functions) = (layout.clone(), Arc::default());
        Ok(Self { layout, durability: Durability::Checkpoint, functions, lanes, reading: None })
    }

    /// Returns the same connections; rows are imported where the partitioners of these functions place them.
    #[must_use]
    pub fn with_functions(self, functions: Arc<FunctionTable>) -> Self {
        Self { functions, ..self }
    }

    /// Returns the same connections; the job is opened only where there is so much of it when a server has died.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sends a request to all lanes; a fault is an error.
    fn request_all(
        &mut self,
        message: impl FnMut(usize, RequestId) -> Message,
    ) -> Result<Vec<Message>, Error> {
        let replies = self.lanes.request_all(ANSWER_LIMIT, message);
        replies.into_iter().enumerate().map(|(lane, reply)| self.refuse_fault(lane, reply?)).collect()
    }

    fn refuse_fault(&self, lane: usize, reply: Message) -> Result<Message, Error> {
        match reply {
            Message::Fault(fault) => {
                let text = format!("server {}: {}", self.lanes.lane(lane), fault.text);
                Err(Error::of_server(text, fault.kind.is_loss()))
            }
            message => Ok(message),
        }
    }

    /// Creates the matrices of the job on all lanes.
    pub fn open_job(&mut self) -> Result<(), Error> {
        self.open_job_with(&[])
    }

    /// Like [`Self::open_job`], for a job with WebAssembly modules.
    pub fn open_job_with(&mut self, modules: &[Base64Bytes]) -> Result<(), Error> {
        let (layout, durability) = (self.layout.clone(), self.durability);
        self.request_all(|lane, request| {
            Message::OpenJob(OpenJob {
                request,
                job: layout.job,
                task_count: layout.task_count,
                wait_limit_ms: layout.wait_limit.as_millis() as u64,
                matrices: layout.matrices.clone(),
                owned_partitions: layout.lane_partitions(lane as u16),
                home: lane == usize::from(layout.home),
                modules: modules.to_vec(),
                durability,
                standby: layout.lanes[lane].standby.clone(),
            })
        })
        .map(drop)?;
        self.lanes.set_open(self.layout.job);
        Ok(())
    }

    /// Frees the job on all lanes that are reachable; processes that wait at a lane receive `reason`. Returns the error
    /// of the first lane that was not reachable or did not answer in time.
    pub fn close_job(&mut self, reason: &str) -> Result<(), Error> {
        self.close_within(CLOSE_LIMIT, reason)
    }

    /// Like [`Self::close_job`] for a failed job: waits for answers only one second.
    pub fn close_failed_job(&mut self, reason: &str) -> Result<(), Error> {
        self.close_within(FAILED_CLOSE_LIMIT, reason)
    }

    fn close_within(&mut self, limit: Duration, reason: &str) -> Result<(), Error> {
        // The lanes must be notified even if the job was cancelled.
        self.lanes.policy.is_cancelled = Box::new(|| false);
        let job = self.layout.job;
        let close = |_, request| Message::CloseJob(CloseJob { request, job, reason: reason.to_owned() });
        let replies = self.lanes.request_all(limit, close);
        let accepted = replies.into_iter().enumerate().map(|(lane, reply)| self.refuse_fault(lane, reply?));
        accepted.map(|reply| reply.map(drop)).find(Result::is_err).unwrap_or(Ok(()))
    }

    /// Takes a snapshot of all rows. Those of the lanes are of one moment if nobody pushes meanwhile.
    pub fn take_snapshot(&mut self, purpose: SnapshotPurpose) -> Result<(), Error> {
        let (job, snapshot) = (self.layout.job, purpose as u32);
        let keep =
            |_, request| Message::KeepRows(KeepRows { request, job, snapshot, records_changes: false });
        self.request_all(keep).map(drop)
    }

    /// Like [`Self::take_snapshot`]; false if a lane has not enough memory. Then there is no snapshot. `records_changes`: the
    /// next one knows what has changed since this one.
    pub fn try_take_snapshot(
        &mut self,
        purpose: SnapshotPurpose,
        records_changes: bool,
    ) -> Result<bool, Error> {
        let (job, snapshot) = (self.layout.job, purpose as u32);
        let keep = |_, request| Message::KeepRows(KeepRows { request, job, snapshot, records_changes });
        let mut is_kept = true;
        for (lane, reply) in self.lanes.request_all(ANSWER_LIMIT, keep).into_iter().enumerate() {
            match reply? {
                Message::Fault(fault) if fault.kind == FaultKind::TooLarge => is_kept = false,
                reply => drop(self.refuse_fault(lane, reply)?),
            }
        }
        if !is_kept {
            self.drop_snapshot(purpose)?;
        }
        Ok(is_kept)
    }

    /// Replaces all rows by those of a snapshot.
    pub fn restore_snapshot(&mut self, purpose: SnapshotPurpose) -> Result<(), Error> {
        let (job, snapshot) = (self.layout.job, purpose as u32);
        self.request_all(|_, request| Message::RestoreRows(RestoreRows { request, job, snapshot })).map(drop)
    }

    /// Frees a snapshot.
    pub fn drop_snapshot(&mut self, purpose: SnapshotPurpose) -> Result<(), Error> {
        let (job, snapshot) = (self.layout.job, purpose as u32);
        self.request_all(|_, request| Message::DropRows(DropRows { request, job, snapshot })).map(drop)
    }

    /// Gives the rows of a snapshot to `write`, or only those that may have changed, in blocks, in no order. The lanes
    /// prepare the next blocks meanwhile. After an error of `write`, answers are still to come: these connections are of no
    /// more use.
    pub fn scan(
        &mut self,
        matrix: u32,
        purpose: SnapshotPurpose,
        only_changed: bool,
        write: &mut dyn FnMut(&RowBlock) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (job, snapshot) = (self.layout.job, purpose as u32);
        let spec = self.layout.matrices[matrix as usize].clone();
        let mut due: Vec<(usize, u64)> = (0..self.lanes.count()).map(|lane| (lane, 0)).collect();
        let mut pages = Vec::new();
        while !due.is_empty() || !pages.is_empty() {
            let lanes: Vec<usize> = due.iter().map(|(lane, _)| *lane).collect();
            let mut blocks = due.iter();
            let sent = self.lanes.send_some(&lanes, |_, request| {
                let block = blocks.next().expect("one block for each lane").1;
                Message::ScanRows(ScanRows { request, job, matrix, snapshot, block, only_changed })
            });
            for ExportPage { keys, values, .. } in pages.drain(..) {
                write(&RowBlock::from_sections(&spec, keys, values, true)?)?;
            }
            let replies = self.lanes.receive_some(&lanes, sent, ANSWER_LIMIT);
            due.clear();
            for (lane, reply) in lanes.into_iter().zip(replies) {
                let page = self.page_of(lane, reply)?;
                due.extend(page.next.map(|next| (lane, next)));
                pages.push(page);
            }
        }
        Ok(())
    }

    /// Returns the counters of each lane.
    pub fn stats(&mut self) -> Result<Vec<StatsReply>, Error> {
        let job = self.layout.job;
        let answers = self.request_all(|_, request| Message::Stats(Stats { request, job }))?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| if let Message::StatsReply(reply) = answer { Some(reply) } else { None })
            .collect())
    }

    /// Returns all rows of a matrix, ascending.
    pub fn export(&mut self, matrix: u32) -> Result<RowBlock, Error> {
        let mut rows = self.rows_from(matrix as usize, 0)?;
        while let Some(last) = rows.keys.last() {
            let more = self.rows_from(matrix as usize, last + 1)?;
            if more.keys.is_empty() {
                break;
            }
            rows.append(&more);
        }
        Ok(rows)
    }

    /// Returns rows of a matrix on each of these lanes, from a key on, and an entry of its list.
    fn pages(&mut self, lanes: &[usize], matrix: u32, from: &[PageStart]) -> Result<Vec<ExportPage>, Error> {
        let job = self.layout.job;
        let mut keys = from.iter();
        let replies = self.lanes.request_some(lanes, ANSWER_LIMIT, |_, request| {
            let (from, skip) = *keys.next().expect("one key for each lane");
            Message::Export(Export { request, job, matrix, from, skip })
        });
        lanes.iter().zip(replies).map(|(lane, reply)| self.page_of(*lane, reply)).collect()
    }

    fn page_of(&self, lane: usize, reply: Result<Message, Error>) -> Result<ExportPage, Error> {
        let Message::ExportPage(page) = self.refuse_fault(lane, reply?)? else {
            let address = self.layout.lanes[lane].to_string();
            let text = format!("server {address} sent an unexpected reply to a request for rows");
            return Err(Error::Cluster { text, exit: Exit::Internal });
        };
        Ok(page)
    }

    /// Returns what was read of a matrix, or a new beginning if `from` is not where it goes on.
    fn take_reading(&mut self, matrix: u32, from: u64) -> MatrixReading {
        let last = self.reading.take().filter(|reading| (reading.matrix, reading.from) == (matrix, from));
        last.unwrap_or_else(|| {
            let spec = &self.layout.matrices[matrix as usize];
            let empty = || RowBlock::none(spec);
            let lanes = (0..self.lanes.count()).map(|_| (empty(), Some((from, 0)))).collect();
            MatrixReading { matrix, from, lanes }
        })
    }

    /// Sets rows of a matrix. If `replace` is given, all rows that it had are removed before, and room is made for so many.
    pub fn import(&mut self, matrix: u32, rows: &RowBlock, replace: Option<u64>) -> Result<(), Error> {
        if rows.entries().len() > PAGE_ENTRIES {
            let mut pieces = rows.split_lists(PAGE_ENTRIES).into_iter();
            let first = pieces.next().unwrap_or_else(|| rows.clone());
            self.import_rows(matrix, &first, replace)?;
            return pieces.try_for_each(|piece| self.import_rows(matrix, &piece, None));
        }
        self.import_rows(matrix, rows, replace)
    }

    /// Does the same for rows of which a list fits a frame.
    fn import_rows(&mut self, matrix: u32, rows: &RowBlock, replace: Option<u64>) -> Result<(), Error> {
        let spec = self.layout.matrices[matrix as usize].clone();
        let job = self.layout.job;
        let placement = spec.placement(&self.functions)?;
        let bound = spec.key_bound();
        let owners = &self.layout.owners[matrix as usize];
        let mut own = vec![Vec::new(); self.lanes.count()];
        for (i, key) in rows.keys.iter().enumerate() {
            own[usize::from(owners[placement.partition_of(key % bound)])].push(i);
        }
        let width = rows.values.len() / rows.keys.len().max(1);
        let page =
            if rows.lists.is_some() { usize::MAX } else { (PAGE_BYTES / (8 * (1 + 4 * width))).max(1) };
        let with_slots = !rows.slots.is_empty();
        let mut pages: Vec<_> = own.iter().map(|positions| positions.chunks(page)).collect();
        let mut first = replace.is_some();
        loop {
            let next: Vec<_> = pages.iter_mut().map(Iterator::next).collect();
            let due: Vec<usize> = (0..next.len()).filter(|lane| first || next[*lane].is_some()).collect();
            if due.is_empty() {
                return Ok(());
            }
            let row_count = replace.unwrap_or(0);
            let replies = self.lanes.request_some(&due, ANSWER_LIMIT, |lane, request| {
                let (keys, values) = rows.pick(next[lane].unwrap_or_default()).into_sections();
                Message::Import(Import { request, job, matrix, first, row_count, with_slots, keys, values })
            });
            for (lane, reply) in due.into_iter().zip(replies) {
                self.refuse_fault(lane, reply?)?;
            }
            first = false;
        }
    }
}

/// Returns the tasks of a job as all its lanes together see them: a task has left when it has left every lane, and is
/// connected when it is connected to every lane that it has not left. Its wait is the longest and its clock the smallest.
pub fn tasks_of(replies: &[StatsReply]) -> Vec<TaskStats> {
    let Some((first, others)) = replies.split_first() else { return Vec::new() };
    let mut tasks = first.tasks.clone();
    for other in others {
        tasks.iter_mut().zip(&other.tasks).for_each(|(task, other)| merge_task(task, other));
    }
    tasks
}

fn merge_task(task: &mut TaskStats, other: &TaskStats) {
    let left = TaskStatus::Left;
    task.connected = match (task.state == left, other.state == left) {
        (true, _) => other.connected,
        (false, true) => task.connected,
        (false, false) => task.connected && other.connected,
    };
    if task.state == left || (task.state == TaskStatus::AtBarrier && other.state != left) {
        task.state = other.state;
    }
    task.clock = task.clock.min(other.clock);
    let waited = |task: &TaskStats| task.wait.map(|wait| wait.waited_ms);
    if waited(other) > waited(task) {
        task.wait = other.wait;
    }
}
