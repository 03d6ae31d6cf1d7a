//! Makes a lane what it was, from the messages that have changed it.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::time::Duration;

use rpc::message::{FaultKind, JobId, KeyList, PartitionRun, Role};
use rpc::reader::FrameReader;
use rpc::service::{ConnectionId, Effect};
use rpc::{FrameLimits, Message};

use super::recorder::LIST_COUNT;
use crate::connection::Connection;
use crate::job::Job;
use crate::state::LaneState;

/// The first of the connections from which the messages seem to come; they end with the replay.
const FIRST_CONNECTION: ConnectionId = 1 << 63;

/// Bytes of one read of a log.
const READ_BYTES: usize = 1 << 20;

/// Gives messages that have changed one lane to another. Every call is about the same lane.
pub(crate) struct Replay {
    tool: ConnectionId,
    tasks: BTreeMap<(JobId, u32), ReplayedTask>,
    sessions: BTreeMap<JobId, ConnectionId>,
    effects: Vec<Effect>,
    /// Number of messages so far.
    pub(crate) count: u64,
}

/// Who sends a message.
#[derive(Clone, Copy)]
enum Sender {
    Tool,
    Task(JobId, u32),
    Session(JobId),
}

/// A task as the log knows it.
struct ReplayedTask {
    connection: ConnectionId,
    /// The lists of its last pushes, the last one at the end.
    lists: VecDeque<ListedKeys>,
}

struct ListedKeys {
    digest: u128,
    runs: Vec<PartitionRun>,
    keys: Vec<u64>,
}

impl Replay {
    pub(crate) fn new(lane: &mut LaneState) -> Self {
        let tool = connect(lane, Role::Tool);
        Self { tool, tasks: BTreeMap::new(), sessions: BTreeMap::new(), effects: Vec::new(), count: 0 }
    }

    /// Repeats a change. The error says what does not fit. The lane that has sent it has accepted it, so the memory limit
    /// does not count.
    pub(crate) fn apply(
        &mut self,
        lane: &mut LaneState,
        now: Duration,
        message: Message,
    ) -> Result<(), String> {
        let limit = std::mem::replace(&mut lane.config.memory_limit_bytes, u64::MAX);
        let applied = self.apply_without_limit(lane, now, message);
        lane.config.memory_limit_bytes = limit;
        applied
    }

    fn apply_without_limit(
        &mut self,
        lane: &mut LaneState,
        now: Duration,
        mut message: Message,
    ) -> Result<(), String> {
        let sender = sender_of(lane, &message);
        let at = match sender {
            Sender::Tool => self.tool,
            Sender::Session(job) => self.session(lane, job),
            Sender::Task(job, task) => {
                let entry = self.task(lane, job, task)?;
                if let Message::Push(push) = &mut message {
                    entry.resolve_keys(&push.runs, &mut push.keys)?;
                }
                entry.connection
            }
        };
        let is_function = matches!(message, Message::PushFunction(_) | Message::TryFunction(_));
        let kind = message.kind_name();
        lane.handle(now, at, self.count, message, &mut self.effects);
        lane.run_ready(now, &mut self.effects);
        self.count += 1;
        let fault = self.effects.drain(..).find_map(|effect| match effect {
            Effect::Send { connection, message: Message::Fault(fault) } if connection == at => Some(fault),
            _ => None,
        });
        // A function that failed fails again.
        if let Some(fault) = fault.filter(|fault| !(is_function && fault.kind == FaultKind::Function)) {
            return Err(format!("{kind} (change {}): {}", self.count, fault.text));
        }
        let job = match sender {
            Sender::Tool => None,
            Sender::Session(job) | Sender::Task(job, _) => lane.jobs.get(&job),
        };
        if job.is_some_and(|job| !job.deferred_requests.is_empty()) {
            return Err(format!("{kind} (change {}) would have to wait for another one", self.count));
        }
        Ok(())
    }

    /// Ends the connections. The tasks open others.
    pub(crate) fn finish(self, lane: &mut LaneState) {
        let tasks = self.tasks.into_values().map(|task| task.connection);
        for at in std::iter::once(self.tool).chain(tasks).chain(self.sessions.into_values()) {
            lane.remove_connection(Duration::ZERO, at);
        }
        lane.count_memory();
    }

    fn session(&mut self, lane: &mut LaneState, job: JobId) -> ConnectionId {
        *self.sessions.entry(job).or_insert_with(|| connect(lane, Role::Session { job }))
    }

    fn task(&mut self, lane: &mut LaneState, job: JobId, task: u32) -> Result<&mut ReplayedTask, String> {
        let is_known = |open: &Job| (task as usize) < open.connections.len();
        if !lane.jobs.get(&job).is_some_and(is_known) {
            return Err(format!("job {job} has no task {task}"));
        }
        let entry = self.tasks.entry((job, task)).or_insert_with(|| ReplayedTask {
            connection: connect(lane, Role::Task { job, task }),
            lists: VecDeque::new(),
        });
        if let Some(open) = lane.jobs.get_mut(&job) {
            open.connections[task as usize] = Some(entry.connection);
        }
        Ok(entry)
    }
}

/// A connection from which messages seem to come.
fn connect(lane: &mut LaneState, role: Role) -> ConnectionId {
    let at = FIRST_CONNECTION + lane.replay_connection_count;
    lane.replay_connection_count += 1;
    lane.connections.insert(at, Connection::new(role, lane.config.key_list_limit_bytes));
    at
}

/// Who sends such a message.
fn sender_of(lane: &LaneState, message: &Message) -> Sender {
    let of = |job, task| match lane.jobs.get(&job) {
        Some(open) if open.open_request.task_count == 0 => Sender::Session(job),
        _ => Sender::Task(job, task),
    };
    match message {
        Message::Push(push) => of(push.job, push.task),
        Message::PushFunction(push) => of(push.job, push.task),
        Message::TryFunction(attempt) => of(attempt.job, attempt.task),
        Message::Tick(tick) => of(tick.job, tick.task),
        Message::Barrier(barrier) => of(barrier.job, barrier.task),
        Message::PushStaged(push) => Sender::Session(push.job),
        Message::Commit(commit) => Sender::Session(commit.job),
        Message::CommitFunction(commit) => Sender::Session(commit.job),
        Message::CloseToken(close) => Sender::Session(close.job),
        _ => Sender::Tool,
    }
}

impl ReplayedTask {
    /// Puts the keys in the place of their digest, and remembers them.
    fn resolve_keys(&mut self, runs: &[PartitionRun], keys: &mut KeyList) -> Result<(), String> {
        let list = match keys {
            KeyList::Range { .. } => return Ok(()),
            KeyList::Listed(listed) => {
                let digest = KeyList::digest(runs, listed);
                self.lists.retain(|list| list.digest != digest);
                ListedKeys { digest, runs: runs.to_vec(), keys: listed.clone() }
            }
            KeyList::Cached { digest, .. } => {
                let known = self.lists.iter().rposition(|list| list.digest == *digest && list.runs == runs);
                let known = known.and_then(|at| self.lists.remove(at));
                let list = known.ok_or_else(|| format!("the key list {digest:032x} is missing"))?;
                *keys = KeyList::Listed(list.keys.clone());
                list
            }
        };
        self.lists.push_back(list);
        if self.lists.len() > LIST_COUNT + 1 {
            self.lists.pop_front();
        }
        Ok(())
    }
}

/// Gives the frames of a log to a lane. The last one may be incomplete. Returns the number of messages and of their bytes;
/// the error says why the lane is not what it was.
pub(crate) fn replay_frames(mut source: impl Read, lane: &mut LaneState) -> Result<(u64, u64), String> {
    let mut reader = FrameReader::new(FrameLimits::default(), READ_BYTES);
    let mut replay = Replay::new(lane);
    let now = Duration::ZERO;
    let mut bytes = 0;
    loop {
        while let Some(frame) = reader.frame().map_err(|error| format!("byte {bytes}: {error}"))? {
            let length = frame.header.frame_bytes();
            let message = Message::from_frame(frame).map_err(|error| format!("byte {bytes}: {error}"))?;
            replay.apply(lane, now, message).map_err(|problem| format!("byte {bytes}: {problem}"))?;
            bytes += length;
        }
        match source.read(reader.space()).map_err(|error| error.to_string())? {
            0 => break,
            count => reader.advance(count),
        }
    }
    let count = replay.count;
    replay.finish(lane);
    Ok((count, bytes))
}
