//! One session of the parameter service: which matrices it has, where their partitions lie, who waits for what.
//!
//! Invariants: each call to its runner has those who wait for it; a number of a matrix is never used again; a matrix is in the
//! map when all lanes have made it, and until its host wants it dropped.

use std::collections::BTreeMap;
use std::time::Duration;

use matrix::{Consistency, MatrixSpec};
use rpc::message::{
    FaultKind, JobId, Member, MemberKind, Message, RequestId, SessionLane, SessionMap, SessionMatrix,
};
use rpc::service::ConnectionId;

use crate::runner::{JobEvent, SessionCommand};

/// Longest name of a session or of one of its matrices, in bytes.
const NAME_LIMIT: usize = 200;
/// Most matrices of a session at once, and numbers that it may use.
const MATRIX_LIMIT: usize = 1024;
const NUMBER_LIMIT: u32 = 1 << 16;
/// Most requests of a session that wait for its runner.
const WAITING_LIMIT: usize = 256;
/// Who waits for an answer.
pub(crate) type Requester = (ConnectionId, RequestId);

/// Why something is not granted.
pub(crate) struct Refusal(pub(crate) FaultKind, pub(crate) String);

/// A session that lives.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) lease: Duration,
    pub(crate) received_at: Duration,
    /// Since when it is missed: its lease is over but for one heartbeat of members.
    suspected_at: Option<Duration>,
    lanes: Vec<SessionLane>,
    matrices: BTreeMap<u32, MatrixEntry>,
    next_matrix: u32,
    /// What the runner has been asked and not answered yet.
    calls: BTreeMap<u64, SessionCall>,
    next_call: u64,
    /// The runner has been told to end.
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
}

impl Session {
    /// One that its runner is about to open, for `opener`: that is call 0.
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

    /// When its lease is over, or its host is missed. In two looks at the time, as with members: a master that stood still
    /// reads what hosts said meanwhile before it ends their sessions.
    pub(crate) fn next_check(&self, heartbeat: Duration) -> Option<Duration> {
        let end = self.received_at + self.lease;
        let due = self
            .suspected_at
            .map_or(end.saturating_sub(heartbeat), |missed_at| end.max(missed_at + heartbeat));
        (!self.is_ending).then_some(due)
    }

    /// Its due time has come: whether its lease is over, and its host not only missed from now on.
    pub(crate) fn check_lease(&mut self, now: Duration) -> bool {
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

    fn add_call(&mut self, what: SessionCallKind, asker: Requester) -> u64 {
        let call = self.next_call;
        self.next_call += 1;
        self.calls.insert(call, SessionCall { kind: what, requesters: vec![asker] });
        call
    }

    /// Waits with those who asked the same.
    fn join_call(&mut self, what: SessionCallKind, asker: Requester) -> bool {
        let call = self.calls.values_mut().find(|call| call.kind == what);
        call.map(|call| call.requesters.push(asker)).is_some()
    }

    /// What its runner is told to end with.
    pub(crate) fn close(&mut self, reason: Option<String>) -> JobEvent {
        self.is_ending = true;
        JobEvent::Session { call: self.next_call, command: SessionCommand::Close { reason } }
    }

    /// Its runner has done, or could not do, what it was asked. Who waits for that.
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

    /// All who wait.
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

    /// What the runner is to be told of a new matrix; nothing when it is there.
    pub(crate) fn create(&mut self, spec: MatrixSpec, asker: Requester) -> Result<CallStatus, Refusal> {
        let same_name = self.matrices.iter().find(|(_, made)| made.spec.name == spec.name);
        if let Some((id, known)) = same_name {
            let (id, is_ready) = (*id, known.is_ready);
            if known.spec != spec {
                let text = format!(
                    "matrix {:?} is there with another spec: drop it first, or choose another name",
                    spec.name
                );
                return Err(Refusal(FaultKind::Invalid, text));
            }
            self.check_waiting()?;
            return Ok(if !is_ready && self.join_call(SessionCallKind::Create(id), asker) {
                CallStatus::Joined
            } else {
                CallStatus::AlreadyDone
            });
        }
        check_spec(&spec)?;
        self.check_waiting()?;
        if self.matrices.len() >= MATRIX_LIMIT || self.next_matrix >= NUMBER_LIMIT {
            let text = format!(
                "{} matrices, and {} since the session was opened; the limits are {MATRIX_LIMIT} and {NUMBER_LIMIT}",
                self.matrices.len(),
                self.next_matrix
            );
            return Err(Refusal(FaultKind::TooLarge, text));
        }
        let matrix = self.next_matrix;
        self.next_matrix += 1;
        let owners = blocks(spec.partitioner.partition_count(), self.lanes.len());
        self.matrices
            .insert(matrix, MatrixEntry { spec: spec.clone(), owners: owners.clone(), is_ready: false });
        let call = self.add_call(SessionCallKind::Create(matrix), asker);
        Ok(CallStatus::Started(JobEvent::Session {
            call,
            command: SessionCommand::Add { matrix, spec: Box::new(spec), owners },
        }))
    }

    pub(crate) fn drop_matrix(&mut self, matrix: u32, asker: Requester) -> Result<CallStatus, Refusal> {
        self.check_waiting()?;
        if self.matrices.get(&matrix).is_some_and(|made| !made.is_ready) {
            let text = format!("matrix {matrix} is being made: drop it when that is answered");
            return Err(Refusal(FaultKind::Busy, text));
        }
        if self.matrices.remove(&matrix).is_some() {
            let call = self.add_call(SessionCallKind::Drop(matrix), asker);
            return Ok(CallStatus::Started(JobEvent::Session {
                call,
                command: SessionCommand::Drop { matrix },
            }));
        }
        if self.join_call(SessionCallKind::Drop(matrix), asker) {
            return Ok(CallStatus::Joined);
        }
        if matrix < self.next_matrix {
            return Ok(CallStatus::AlreadyDone);
        }
        let text = format!("no matrix {matrix}: numbers of this session are below {}", self.next_matrix);
        Err(Refusal(FaultKind::NotFound, text))
    }
}

/// What comes of a wish.
pub(crate) enum CallStatus {
    /// It is so already.
    AlreadyDone,
    /// Somebody has asked for it.
    Joined,
    /// The runner is to be told.
    Started(JobEvent),
}

/// All lanes of these servers, in their order: what partitions of a session are numbered by.
pub fn lanes_of(servers: &[Member]) -> Vec<SessionLane> {
    let mut all = Vec::new();
    for server in servers {
        if let MemberKind::Server { addresses, lanes, .. } = &server.kind {
            all.extend((0..*lanes).map(|lane| SessionLane { addresses: addresses.clone(), lane }));
        }
    }
    all
}

/// Partitions in even blocks over the lanes.
fn blocks(partition_count: u32, lane_count: usize) -> Vec<u16> {
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

fn check_spec(spec: &MatrixSpec) -> Result<(), Refusal> {
    check_name("a matrix", &spec.name)?;
    spec.check().map_err(|error| Refusal(FaultKind::Invalid, error.to_string()))?;
    if spec.consistency == Consistency::Asp {
        return Ok(());
    }
    let text = format!(
        "matrix {:?}: consistency is {:?}, expected \"asp\": a session has no clocks, so nothing can wait for them",
        spec.name, spec.consistency
    );
    Err(Refusal(FaultKind::Invalid, text))
}
