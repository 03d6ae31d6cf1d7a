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
use crate::state::LaneState;

/// The connections from which the messages seem to come; they end with the replay.
const FIRST_CONNECTION: ConnectionId = 1 << 63;

/// Bytes of one read of a log.
const READ_BYTES: usize = 1 << 20;

/// Gives the messages of a log to a lane.
pub(crate) struct Replay<'a> {
    lane: &'a mut LaneState,
    tool: ConnectionId,
    tasks: BTreeMap<(JobId, u32), ReplayedTask>,
    sessions: BTreeMap<JobId, ConnectionId>,
    last_connection: ConnectionId,
    effects: Vec<Effect>,
    /// The memory limit of the lane, which has accepted all of this once: it does not count meanwhile.
    memory_limit_bytes: u64,
    /// Number of messages so far.
    pub(crate) count: u64,
}

/// Who sends a message.
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

impl<'a> Replay<'a> {
    pub(crate) fn new(lane: &'a mut LaneState) -> Self {
        let tool = FIRST_CONNECTION;
        lane.connections.insert(tool, Connection::new(Role::Tool, 0));
        let memory_limit_bytes = std::mem::replace(&mut lane.config.memory_limit_bytes, u64::MAX);
        Self {
            lane,
            tool,
            tasks: BTreeMap::new(),
            sessions: BTreeMap::new(),
            last_connection: tool,
            effects: Vec::new(),
            memory_limit_bytes,
            count: 0,
        }
    }

    pub(crate) fn lane(&mut self) -> &mut LaneState {
        self.lane
    }

    /// Repeats a change. The error says what does not fit.
    pub(crate) fn apply(&mut self, mut message: Message) -> Result<(), String> {
        let at = match self.sender_of(&message) {
            Sender::Tool => self.tool,
            Sender::Session(job) => self.session(job),
            Sender::Task(job, task) => {
                let entry = self.task(job, task)?;
                if let Message::Push(push) = &mut message {
                    entry.resolve_keys(&push.runs, &mut push.keys)?;
                }
                entry.connection
            }
        };
        let is_function = matches!(message, Message::PushFunction(_) | Message::TryFunction(_));
        let kind = message.kind_name();
        let now = Duration::ZERO;
        self.lane.handle(now, at, self.count, message, &mut self.effects);
        self.lane.run_ready(now, &mut self.effects);
        self.count += 1;
        let fault = self.effects.drain(..).find_map(|effect| match effect {
            Effect::Send { connection, message: Message::Fault(fault) } if connection == at => Some(fault),
            _ => None,
        });
        // A function that failed fails again.
        if let Some(fault) = fault.filter(|fault| !(is_function && fault.kind == FaultKind::Function)) {
            return Err(format!("{kind} (change {}): {}", self.count, fault.text));
        }
        if self.lane.jobs.values().any(|job| !job.deferred_requests.is_empty()) {
            return Err(format!("{kind} (change {}) would have to wait for another one", self.count));
        }
        Ok(())
    }

    /// Ends the connections. The tasks open others.
    pub(crate) fn finish(self) {
        for at in self.tool..=self.last_connection {
            self.lane.remove_connection(Duration::ZERO, at);
        }
        self.lane.config.memory_limit_bytes = self.memory_limit_bytes;
        self.lane.count_memory();
    }

    /// Who sends such a message.
    fn sender_of(&self, message: &Message) -> Sender {
        let of = |job, task| match self.lane.jobs.get(&job) {
            Some(open) if open.open_request.task_count == 0 => Sender::Session(job),
            _ => Sender::Task(job, task),
        };
        match message {
            Message::Push(push) => of(push.job, push.task),
            Message::PushFunction(push) => of(push.job, push.task),
            Message::TryFunction(ask) => of(ask.job, ask.task),
            Message::Tick(tick) => of(tick.job, tick.task),
            Message::Barrier(barrier) => of(barrier.job, barrier.task),
            Message::PushStaged(push) => Sender::Session(push.job),
            Message::Commit(commit) => Sender::Session(commit.job),
            Message::CommitFunction(commit) => Sender::Session(commit.job),
            Message::CloseToken(close) => Sender::Session(close.job),
            _ => Sender::Tool,
        }
    }

    fn session(&mut self, job: JobId) -> ConnectionId {
        *self.sessions.entry(job).or_insert_with(|| {
            self.last_connection += 1;
            let limit = self.lane.config.key_list_limit_bytes;
            self.lane.connections.insert(self.last_connection, Connection::new(Role::Session { job }, limit));
            self.last_connection
        })
    }

    fn task(&mut self, job: JobId, task: u32) -> Result<&mut ReplayedTask, String> {
        let last = &mut self.last_connection;
        let open = self.lane.jobs.get_mut(&job);
        let place = open.and_then(|open| open.connections.get_mut(task as usize));
        let Some(place) = place else { return Err(format!("job {job} has no task {task}")) };
        let entry = self.tasks.entry((job, task)).or_insert_with(|| {
            *last += 1;
            ReplayedTask { connection: *last, lists: VecDeque::new() }
        });
        *place = Some(entry.connection);
        let connections = &mut self.lane.connections;
        connections.entry(entry.connection).or_insert_with(|| {
            Connection::new(Role::Task { job, task }, self.lane.config.key_list_limit_bytes)
        });
        Ok(entry)
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
    let mut bytes = 0;
    loop {
        while let Some(frame) = reader.frame().map_err(|error| format!("byte {bytes}: {error}"))? {
            let length = frame.header.frame_bytes();
            let message = Message::from_frame(frame).map_err(|error| format!("byte {bytes}: {error}"))?;
            replay.apply(message).map_err(|problem| format!("byte {bytes}: {problem}"))?;
            bytes += length;
        }
        match source.read(reader.space()).map_err(|error| error.to_string())? {
            0 => break,
            count => reader.advance(count),
        }
    }
    let count = replay.count;
    replay.finish();
    Ok((count, bytes))
}
