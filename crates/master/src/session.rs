//! One session of the parameter service: its matrices, the placement of their partitions, and the requests that wait.
//!
//! Invariants: each call to its runner has requesters that wait for it; the number of a matrix is never used again; a
//! matrix is in the map from when all lanes have created it until its host drops it.

use std::collections::BTreeMap;
use std::time::Duration;

use matrix::{Consistency, FunctionTable, MatrixSpec};
use rpc::message::{
    FaultKind, JobId, Member, MemberKind, Message, RequestId, SessionLane, SessionMap, SessionMatrix, Standby,
};
use rpc::service::ConnectionId;

use crate::runner::{JobEvent, SessionCommand};

/// Longest name of a session or of one of its matrices, in bytes.
const NAME_LIMIT: usize = 200;
/// Most matrices of a session at once.
const MATRIX_LIMIT: usize = 1024;
/// Most matrices of a session over its life.
const NUMBER_LIMIT: u32 = 1 << 16;
/// Most requests of a session that wait for its runner.
const WAITING_LIMIT: usize = 256;
/// A request that waits for an answer.
pub(crate) type Requester = (ConnectionId, RequestId);

/// Why a request is not granted.
pub(crate) struct Refusal(pub(crate) FaultKind, pub(crate) String);

/// A session that has not ended.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) lease: Duration,
    pub(crate) received_at: Duration,
    /// When the session became suspected: its lease ends within one heartbeat of members.
    suspected_at: Option<Duration>,
    lanes: Vec<SessionLane>,
    matrices: BTreeMap<u32, MatrixEntry>,
    next_matrix: u32,
    /// Calls to the runner that are not answered yet.
    calls: BTreeMap<u64, SessionCall>,
    next_call: u64,
    /// Whether the runner was told to end.
    pub(crate) is_ending: bool,
    pub(crate) close_requesters: Vec<Requester>,
}

#[derive(Debug)]
struct MatrixEntry {
    spec: MatrixSpec,
    owners: Vec<u16>,
    is_ready: bool,
}

#[derive(Debug)]
pub(crate) struct SessionCall {
    pub(crate) kind: SessionCallKind,
    pub(crate) requesters: Vec<Requester>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionCallKind {
    Open,
    Create(u32),
    Drop(u32),
    Checkpoint,
}

impl Session {
    /// A session that its runner is about to open, as call 0, for the request `opener`.
    pub(crate) fn new(now: Duration, lease: Duration, lanes: Vec<SessionLane>, opener: Requester) -> Self {
        let mut session = Self {
            lease,
            received_at: now,
            suspected_at: None,
            lanes,
            matrices: BTreeMap::new(),
            next_matrix: 0,
            calls: BTreeMap::new(),
            next_call: 0,
            is_ending: false,
            close_requesters: Vec::new(),
        };
        session.add_call(SessionCallKind::Open, opener);
        session
    }

    pub(crate) fn renew_lease(&mut self, now: Duration) {
        self.received_at = self.received_at.max(now);
        self.suspected_at = None;
    }

    /// When the session becomes suspected, or its lease is over. There are two checks of the time, as for members: a
    /// master that was suspended itself reads the messages that hosts sent meanwhile before it ends their sessions.
    pub(crate) fn next_check(&self, heartbeat: Duration) -> Option<Duration> {
        let end = self.received_at + self.lease;
        let due = self
            .suspected_at
            .map_or(end.saturating_sub(heartbeat), |suspected_at| end.max(suspected_at + heartbeat));
        (!self.is_ending).then_some(due)
    }

    /// Called when the check is due. Returns whether the lease is over; otherwise the session is suspected from now on, or
    /// lives on because its host waits for an answer.
    pub(crate) fn check_lease(&mut self, now: Duration) -> bool {
        if !self.calls.is_empty() {
            self.renew_lease(now);
            return false;
        }
        self.suspected_at.replace(self.suspected_at.unwrap_or(now)).is_some()
    }

    pub(crate) fn map(&self, job: JobId, request: RequestId) -> Message {
        let ready = self.matrices.iter().filter(|(_, made)| made.is_ready);
        let matrices = ready.map(|(matrix, made)| SessionMatrix {
            matrix: *matrix,
            spec: made.spec.clone(),
            owners: made.owners.clone(),
        });
        Message::SessionMap(SessionMap {
            request,
            job,
            lease_ms: self.lease.as_millis() as u64,
            lanes: self.lanes.clone(),
            matrices: matrices.collect(),
        })
    }

    fn add_call(&mut self, what: SessionCallKind, requester: Requester) -> u64 {
        let call = self.next_call;
        self.next_call += 1;
        self.calls.insert(call, SessionCall { kind: what, requesters: vec![requester] });
        call
    }

    /// Adds the requester to an open call of this kind; returns whether there is one.
    fn join_call(&mut self, what: SessionCallKind, requester: Requester) -> bool {
        let call = self.calls.values_mut().find(|call| call.kind == what);
        call.map(|call| call.requesters.push(requester)).is_some()
    }

    /// The session with these standbys of its lanes, in their order; none if it is not replicated.
    pub(crate) fn with_standbys(mut self, standbys: Vec<Standby>) -> Self {
        for (lane, standby) in self.lanes.iter_mut().zip(standbys) {
            lane.standby = Some(standby);
        }
        self
    }

    /// The event that makes the runner end.
    pub(crate) fn close(&mut self, reason: Option<String>) -> JobEvent {
        self.is_ending = true;
        JobEvent::Session { call: self.next_call, command: SessionCommand::Close { reason } }
    }

    /// The matrices that the runner has made from a checkpoint while it opened the session.
    pub(crate) fn set_restored(&mut self, specs: Vec<MatrixSpec>) {
        for spec in specs {
            let owners = owners_of(&spec, self.lanes.len());
            self.matrices.insert(self.next_matrix, MatrixEntry { spec, owners, is_ready: true });
            self.next_matrix += 1;
        }
    }

    /// Has the runner write a checkpoint.
    pub(crate) fn checkpoint(&mut self, name: String, requester: Requester) -> Result<JobEvent, Refusal> {
        check_checkpoint_name(&name)?;
        self.check_waiting()?;
        let call = self.add_call(SessionCallKind::Checkpoint, requester);
        Ok(JobEvent::Session { call, command: SessionCommand::Checkpoint { name } })
    }

    /// Handles the answer of the runner to a call. Returns the call with the requesters that wait for it.
    pub(crate) fn on_reply(&mut self, call: u64, is_done: bool) -> Option<SessionCall> {
        let call = self.calls.remove(&call)?;
        if let SessionCallKind::Create(matrix) = call.kind {
            if !is_done {
                self.matrices.remove(&matrix);
            } else if let Some(made) = self.matrices.get_mut(&matrix) {
                made.is_ready = true;
            }
        }
        Some(call)
    }

    /// All requesters that wait: those of calls, and those of the close.
    pub(crate) fn into_requesters(self) -> (Vec<Requester>, Vec<Requester>) {
        (self.calls.into_values().flat_map(|call| call.requesters).collect(), self.close_requesters)
    }

    fn check_waiting(&self) -> Result<(), Refusal> {
        let waiting: usize = self.calls.values().map(|call| call.requesters.len()).sum();
        if waiting < WAITING_LIMIT {
            return Ok(());
        }
        Err(Refusal(
            FaultKind::Busy,
            format!("{waiting} requests of the session wait for servers, the limit"),
        ))
    }

    /// Creates a matrix. The status has the event for the runner, unless the matrix exists already.
    pub(crate) fn create(
        &mut self,
        spec: MatrixSpec,
        requester: Requester,
        functions: &FunctionTable,
    ) -> Result<CallStatus, Refusal> {
        let same_name = self.matrices.iter().find(|(_, made)| made.spec.name == spec.name);
        if let Some((id, known)) = same_name {
            let (id, is_ready) = (*id, known.is_ready);
            if known.spec != spec {
                let text = format!(
                    "matrix {:?} exists with another spec: drop it first, or choose another name",
                    spec.name
                );
                return Err(Refusal(FaultKind::Invalid, text));
            }
            self.check_waiting()?;
            return Ok(if !is_ready && self.join_call(SessionCallKind::Create(id), requester) {
                CallStatus::Joined
            } else {
                CallStatus::AlreadyDone
            });
        }
        check_spec(&spec, functions)?;
        self.check_waiting()?;
        if self.matrices.len() >= MATRIX_LIMIT || self.next_matrix >= NUMBER_LIMIT {
            let text = format!(
                "the session has {} matrices, and {} were created since it was opened; the limits are \
                 {MATRIX_LIMIT} and {NUMBER_LIMIT}",
                self.matrices.len(),
                self.next_matrix
            );
            return Err(Refusal(FaultKind::TooLarge, text));
        }
        let matrix = self.next_matrix;
        self.next_matrix += 1;
        let owners = owners_of(&spec, self.lanes.len());
        self.matrices
            .insert(matrix, MatrixEntry { spec: spec.clone(), owners: owners.clone(), is_ready: false });
        let call = self.add_call(SessionCallKind::Create(matrix), requester);
        Ok(CallStatus::Started(JobEvent::Session {
            call,
            command: SessionCommand::Add { matrix, spec: Box::new(spec), owners },
        }))
    }

    pub(crate) fn drop_matrix(&mut self, matrix: u32, requester: Requester) -> Result<CallStatus, Refusal> {
        self.check_waiting()?;
        if self.matrices.get(&matrix).is_some_and(|made| !made.is_ready) {
            let text = format!("matrix {matrix} is being created: drop it after that request is answered");
            return Err(Refusal(FaultKind::Busy, text));
        }
        if self.matrices.remove(&matrix).is_some() {
            let call = self.add_call(SessionCallKind::Drop(matrix), requester);
            return Ok(CallStatus::Started(JobEvent::Session {
                call,
                command: SessionCommand::Drop { matrix },
            }));
        }
        if self.join_call(SessionCallKind::Drop(matrix), requester) {
            return Ok(CallStatus::Joined);
        }
        if matrix < self.next_matrix {
            return Ok(CallStatus::AlreadyDone);
        }
        let text = format!("no matrix {matrix}: numbers of this session are below {}", self.next_matrix);
        Err(Refusal(FaultKind::NotFound, text))
    }
}

/// The status of a request that the runner carries out.
pub(crate) enum CallStatus {
    /// The request changes nothing.
    AlreadyDone,
    /// An earlier request asks for the same; this one waits with it.
    Joined,
    /// The event has to be sent to the runner.
    Started(JobEvent),
}

/// All lanes of these servers, in their order. Partitions of a session name a lane by its position in this list.
pub fn lanes_of(servers: &[Member]) -> Vec<SessionLane> {
    let mut all = Vec::new();
    for server in servers {
        if let MemberKind::Server { addresses, lanes, .. } = &server.kind {
            let place = |lane| SessionLane { addresses: addresses.clone(), lane, standby: None };
            all.extend((0..*lanes).map(place));
        }
    }
    all
}

/// The lane of each partition of a matrix of a session: blocks of nearly equal size.
pub fn owners_of(spec: &MatrixSpec, lane_count: usize) -> Vec<u16> {
    let partition_count = spec.partitioner.partition_count();
    let lane = |i: u32| (u64::from(i) * lane_count as u64 / u64::from(partition_count)) as u16;
    (0..partition_count).map(lane).collect()
}

pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    if (1..=NAME_LIMIT).contains(&name.len()) {
        return Ok(());
    }
    let text = format!("the name of {what} has {} bytes, expected 1 to {NAME_LIMIT}", name.len());
    Err(Refusal(FaultKind::Invalid, text))
}

/// Checks the name of checkpoints, which is that of a folder.
pub(crate) fn check_checkpoint_name(name: &str) -> Result<(), Refusal> {
    check_name("a checkpoint", name)?;
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if name.chars().all(is_allowed) && !name.starts_with('.') {
        return Ok(());
    }
    let text = format!(
        "the name of a checkpoint is {name:?}, expected letters, digits, \"-\", \"_\" and \".\", and no \".\" at the \
         beginning: it is the name of a folder"
    );
    Err(Refusal(FaultKind::Invalid, text))
}

fn check_spec(spec: &MatrixSpec, functions: &FunctionTable) -> Result<(), Refusal> {
    check_name("a matrix", &spec.name)?;
    spec.check(functions).map_err(|error| Refusal(FaultKind::Invalid, error.to_string()))?;
    if spec.consistency == Consistency::Asp {
        return Ok(());
    }
    let text = format!(
        "matrix {:?}: consistency is {:?}, expected \"asp\": a session has no clocks, so nothing can wait for them",
        spec.name, spec.consistency
    );
    Err(Refusal(FaultKind::Invalid, text))
}
