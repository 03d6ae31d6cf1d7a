//! A session of the parameter service: matrices on servers for a loop of a program's own. It has no clocks: a pull sees
//! every push that was answered before it, of this session on any connection.
//!
//! A session lives as long as its lease is renewed, which a thread of its own does; then its matrices are freed.

mod error;
mod options;
mod renewal;
mod request;

use std::collections::BTreeMap;
use std::time::Duration;

use matrix::function::unpack;
use matrix::{
    FunctionCall, FunctionTable, KeyRuns, MatrixId, MatrixSpec, Placement, Selection, Values, ValuesMut,
    merge_partial_answers,
};
use rpc::message::{
    AskMap, CheckpointSession, CloseSession, CloseToken, Commit, CreateMatrix, DropMatrix, KeyList,
    OpenSession, Pull, PullFunction, Push, PushFunction, PushStaged, RequestId, Role, SessionMap,
    TryFunction,
};
use rpc::{Message, WireType, WireValues};

use crate::lane_client::LaneClient;
use crate::lane_keys::{LaneKeys, split_by_lane};

pub use error::SessionError;
pub use options::{PushIdentity, SessionOptions};
use renewal::Renewal;
use request::{ask, ask_done, connect_to_master, map_of, receive, send};
use rpc::layout::LaneAddress;

/// The lease is renewed after this fraction (1/n) of its time.
const RENEWALS: u32 = 4;

/// A matrix of the session.
struct SessionMatrix {
    spec: MatrixSpec,
    placement: Placement,
    /// The partitions of each lane, ascending.
    lane_partitions: Vec<Vec<u32>>,
}

/// A session with the parameter service. One thread uses it; several threads open a session each, or join one by its
/// number.
pub struct ParameterSession {
    master: LaneClient,
    /// Each connects with its first request.
    lanes: Vec<LaneClient>,
    token: Vec<u8>,
    map: SessionMap,
    matrices: BTreeMap<u32, SessionMatrix>,
    functions: FunctionTable,
    /// The keys of the last pull or push, which was one of the matrix `routed`.
    key_runs: KeyRuns,
    routed: Option<MatrixId>,
    last_request: RequestId,
    /// Ends the renewal when it is dropped; none if another process renews the lease.
    renewal: Option<Renewal>,
}

impl ParameterSession {
    /// Opens a session at the master that listens at `address` (`host:port`, `tcp:host:port` or `unix:path`). People
    /// see it under `name`. `token` is that of the cluster, empty if it has none. It renews its lease until it is closed
    /// or dropped.
    pub fn open(address: &str, token: &[u8], name: &str) -> Result<Self, SessionError> {
        Self::open_with(address, token, name, &SessionOptions::default())
    }

    /// Like [`Self::open`], with other options than the defaults.
    pub fn open_with(
        address: &str,
        token: &[u8],
        name: &str,
        options: &SessionOptions,
    ) -> Result<Self, SessionError> {
        let (name, durability) = (name.to_owned(), options.durability);
        let checkpoint = options.checkpoint.clone().unwrap_or_default();
        let ask = OpenSession { request: 2, name, lease_ms: 0, servers: 0, durability, checkpoint };
        let mut session = Self::connect(address, token, Message::OpenSession(ask))?;
        let master = connect_to_master(address, token)?;
        let pause = Duration::from_millis(session.map.lease_ms) / RENEWALS;
        session.renewal = Some(Renewal::start(master, pause, session.map.job));
        Ok(session)
    }

    /// Joins the session `job`, which another process has opened and renews.
    pub fn join(address: &str, token: &[u8], job: u32) -> Result<Self, SessionError> {
        Self::connect(address, token, Message::AskMap(AskMap { request: 2, job }))
    }

    fn connect(address: &str, token: &[u8], first: Message) -> Result<Self, SessionError> {
        let mut master = connect_to_master(address, token)?;
        let map = ask(&mut master, first, 2, map_of)?;
        let mut session = Self {
            master,
            lanes: Vec::new(),
            token: token.to_vec(),
            map,
            matrices: BTreeMap::new(),
            functions: FunctionTable::builtin(),
            key_runs: KeyRuns::default(),
            routed: None,
            last_request: 2,
            renewal: None,
        };
        session.read_map();
        Ok(session)
    }

    /// The same session with other functions than the built-in ones. The master and the servers must have the same.
    #[must_use]
    pub fn with_functions(mut self, functions: FunctionTable) -> Self {
        self.functions = functions;
        self.read_map();
        self
    }

    /// The number of the session, by which others join it.
    pub fn job(&self) -> u32 {
        self.map.job
    }

    /// Creates a matrix, whose consistency must be ASP. If the session has one of this name and spec, that is returned.
    pub fn create_matrix(&mut self, spec: &MatrixSpec) -> Result<MatrixId, SessionError> {
        spec.check(&self.functions)?;
        let (request, job) = (self.next_request(), self.map.job);
        let create = CreateMatrix { request, job, spec: Box::new(spec.clone()) };
        self.map = ask(&mut self.master, Message::CreateMatrix(create), request, map_of)?;
        self.read_map();
        self.matrix(&spec.name)
    }

    /// Frees a matrix.
    pub fn drop_matrix(&mut self, matrix: MatrixId) -> Result<(), SessionError> {
        let (request, job) = (self.next_request(), self.map.job);
        let drop_matrix = DropMatrix { request, job, matrix: matrix.0 };
        ask_done(&mut self.master, Message::DropMatrix(drop_matrix), request)?;
        self.matrices.remove(&matrix.0);
        Ok(())
    }

    /// Writes a checkpoint of all matrices under a name, from which [`SessionOptions::checkpoint`] opens another session. It
    /// has each push that was answered before the call; of pushes during the call it has some, each as a whole on each lane.
    /// The last two checkpoints under a name are kept.
    ///
    /// # Errors
    /// The service has no folder for checkpoints, the name belongs to another session, or the store refuses; then the
    /// checkpoints before this one are as they were.
    pub fn checkpoint(&mut self, name: &str) -> Result<(), SessionError> {
        let (request, job, name) = (self.next_request(), self.map.job, name.to_owned());
        let checkpoint = Message::CheckpointSession(CheckpointSession { request, job, name });
        ask_done(&mut self.master, checkpoint, request)
    }

    /// The matrix of this name, perhaps created by another process.
    pub fn matrix(&mut self, name: &str) -> Result<MatrixId, SessionError> {
        if self.find(name).is_none() {
            let (request, job) = (self.next_request(), self.map.job);
            self.map = ask(&mut self.master, Message::AskMap(AskMap { request, job }), request, map_of)?;
            self.read_map();
        }
        self.find(name).ok_or_else(|| SessionError::UnknownMatrix {
            name: name.to_owned(),
            known: self.matrices.values().map(|one| one.spec.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    fn find(&self, name: &str) -> Option<MatrixId> {
        let mut all = self.matrices.iter();
        all.find(|(_, matrix)| matrix.spec.name == name).map(|(number, _)| MatrixId(*number))
    }

    /// Reads rows: all columns of each key, in the order of the selection.
    pub fn pull(
        &mut self,
        matrix: MatrixId,
        selection: Selection<'_>,
        mut out: ValuesMut<'_>,
    ) -> Result<(), SessionError> {
        let all_lane_keys = self.split(matrix, selection, out.len())?;
        self.entry(matrix)?.spec.check_element(out.element_type())?;
        let requests = self.send_lane_keys(matrix, &all_lane_keys, |session, lane_keys, request| {
            Message::Pull(Pull {
                request,
                job: session.map.job,
                task: 0,
                clock: 0,
                matrix: matrix.0,
                table: session.key_runs.table(),
                wait_ms: 0,
                runs: lane_keys.runs(),
                keys: KeyList::Listed(lane_keys.all_keys(&session.key_runs)),
                wire: WireType::F32,
            })
        })?;
        let columns = self.matrices[&matrix.0].spec.columns_of_table();
        self.receive_lane_keys(&all_lane_keys, &requests, |key_runs, lane_keys, answer| {
            let Message::Pulled(pulled) = answer else { return false };
            let WireValues::Exact(values) = &pulled.values else { return false };
            lane_keys.scatter(key_runs, columns, values, &mut out)
        })
    }

    /// Pushes values: all columns of each key, in the order of the selection. When it returns, every later pull sees
    /// them. If a connection breaks meanwhile, it is not known which lanes have applied them: [`Self::push_once`] may be
    /// repeated.
    pub fn push(
        &mut self,
        matrix: MatrixId,
        selection: Selection<'_>,
        values: Values<'_>,
    ) -> Result<(), SessionError> {
        let all_lane_keys = self.split_push(matrix, selection, values)?;
        let columns = self.matrices[&matrix.0].spec.columns_of_table();
        let requests = self.send_lane_keys(matrix, &all_lane_keys, |session, lane_keys, request| {
            Message::Push(Push {
                request,
                job: session.map.job,
                task: 0,
                clock: 0,
                index: 0,
                matrix: matrix.0,
                table: session.key_runs.table(),
                runs: lane_keys.runs(),
                keys: KeyList::Listed(lane_keys.all_keys(&session.key_runs)),
                values: lane_keys.gather(&session.key_runs, columns, values).into(),
            })
        })?;
        self.receive_lane_keys(&all_lane_keys, &requests, |_, _, answer| matches!(answer, Message::Done(_)))
    }

    /// Pushes values that count once: of all attempts at a part of a token, that which commits first. Returns whether
    /// this attempt counts at every lane; if not, another one does, at some or all of them.
    ///
    /// # Errors
    /// Also if the token was closed.
    pub fn push_once(
        &mut self,
        matrix: MatrixId,
        selection: Selection<'_>,
        values: Values<'_>,
        identity: PushIdentity,
    ) -> Result<bool, SessionError> {
        let PushIdentity { token, part, attempt } = identity;
        let all_lane_keys = self.split_push(matrix, selection, values)?;
        let columns = self.matrices[&matrix.0].spec.columns_of_table();
        let mut chunks = BTreeMap::new();
        for lane in self.lanes_of(matrix)? {
            chunks.insert(lane as u16, 0u32);
        }
        let requests = self.send_lane_keys(matrix, &all_lane_keys, |session, lane_keys, request| {
            let chunk = chunks.entry(lane_keys.lane).or_default();
            *chunk += 1;
            Message::PushStaged(PushStaged {
                request,
                job: session.map.job,
                token,
                part,
                attempt,
                chunk: *chunk - 1,
                matrix: matrix.0,
                table: session.key_runs.table(),
                runs: lane_keys.runs(),
                keys: KeyList::Listed(lane_keys.all_keys(&session.key_runs)),
                values: lane_keys.gather(&session.key_runs, columns, values),
            })
        })?;
        self.receive_lane_keys(&all_lane_keys, &requests, |_, _, answer| matches!(answer, Message::Done(_)))?;
        let answers = self.ask_lanes(matrix, |job, lane, request| {
            let chunks = chunks[&(lane as u16)];
            Message::Commit(Commit { request, job, matrix: matrix.0, token, part, attempt, chunks })
        })?;
        Ok(answers
            .iter()
            .all(|(_, answer)| matches!(answer, Message::Committed(one) if one.attempt == attempt)))
    }

    /// Refuses all later attempts of this token and those below it, and frees what they have staged.
    pub fn close_token(&mut self, matrix: MatrixId, token: u64) -> Result<(), SessionError> {
        self.ask_lanes(matrix, |job, _, request| {
            Message::CloseToken(CloseToken { request, job, matrix: matrix.0, token })
        })
        .map(drop)
    }

    /// Runs a pull function on the rows `from` at the partitions, and merges its answers.
    pub fn pull_function<F: matrix::PullFunction>(
        &mut self,
        matrix: MatrixId,
        function: &F,
        from: &[u32],
        argument: &F::Argument,
    ) -> Result<F::Answer, SessionError> {
        let call = FunctionCall::pull(function, from, argument);
        self.functions.check_pull(&self.entry(matrix)?.spec, &call)?;
        let answers = self.ask_lanes(matrix, |job, _, request| {
            let (task, clock, wait_ms, call) = (0, 0, 0, call.clone());
            Message::PullFunction(PullFunction { request, job, task, clock, matrix: matrix.0, wait_ms, call })
        })?;
        let mut parts = Vec::new();
        for (lane, answer) in answers {
            let Message::PulledFunction(pulled) = answer else {
                return Err(SessionError::unexpected(&self.lanes[lane]));
            };
            parts.extend(pulled.parts);
        }
        let spec = &self.entry(matrix)?.spec;
        let merged = merge_partial_answers(&self.functions, spec, &call, parts)?;
        Ok(unpack(&merged).map_err(|fault| matrix::Error::function(&spec.name, &call.name, fault))?)
    }

    /// Runs push functions at the partitions, one directly after the other. If they may fail and several lanes have
    /// partitions, all lanes try them before the first one is changed.
    pub fn push_function(&mut self, matrix: MatrixId, calls: &[FunctionCall]) -> Result<(), SessionError> {
        let tries_first = self.functions.check_push(&self.entry(matrix)?.spec, calls)?;
        if tries_first && self.lanes_of(matrix)?.len() > 1 {
            self.ask_lanes(matrix, |job, _, request| {
                let (task, clock, index, wait_ms, calls) = (0, 0, 0, 0, calls.to_vec());
                let matrix = matrix.0;
                Message::TryFunction(TryFunction { request, job, task, clock, index, matrix, wait_ms, calls })
            })?;
        }
        self.ask_lanes(matrix, |job, _, request| {
            let (task, clock, index, calls) = (0, 0, 0, calls.to_vec());
            Message::PushFunction(PushFunction { request, job, task, clock, index, matrix: matrix.0, calls })
        })
        .map(drop)
    }

    /// Ends the session and frees its matrices. A session that is dropped instead ends with its lease.
    pub fn close(mut self) -> Result<(), SessionError> {
        drop(self.renewal.take());
        let (request, job) = (self.next_request(), self.map.job);
        ask_done(&mut self.master, Message::CloseSession(CloseSession { request, job }), request)
    }

    fn next_request(&mut self) -> RequestId {
        self.last_request += 1;
        self.last_request
    }

    /// Takes over the matrices of the map.
    fn read_map(&mut self) {
        let lane_count = self.map.lanes.len();
        let role = Role::Session { job: self.map.job };
        let mut clients = std::mem::take(&mut self.lanes).into_iter();
        for lane in &self.map.lanes {
            let address = LaneAddress::from(lane.clone());
            let client = clients.next().filter(|client| *client.address() == address);
            self.lanes.push(client.unwrap_or_else(|| LaneClient::new(address, role, &self.token)));
        }
        self.matrices = BTreeMap::new();
        for entry in &self.map.matrices {
            // Another program may have made it, with a partitioner that this one does not have.
            let Ok(placement) = entry.spec.placement(&self.functions) else { continue };
            let mut lane_partitions = vec![Vec::new(); lane_count];
            for (partition, lane) in (0u32..).zip(&entry.owners) {
                lane_partitions[usize::from(*lane)].push(partition);
            }
            let matrix = SessionMatrix { spec: entry.spec.clone(), placement, lane_partitions };
            self.matrices.insert(entry.matrix, matrix);
        }
    }

    fn entry(&self, matrix: MatrixId) -> Result<&SessionMatrix, SessionError> {
        let count = self.matrices.len();
        self.matrices.get(&matrix.0).ok_or_else(|| matrix::Error::NoSuchMatrix { id: matrix.0, count }.into())
    }

    /// Splits the keys of a selection by lane; `value_count` is the number of values that go with them.
    fn split(
        &mut self,
        matrix: MatrixId,
        selection: Selection<'_>,
        value_count: usize,
    ) -> Result<Vec<LaneKeys>, SessionError> {
        let mut key_runs = std::mem::take(&mut self.key_runs);
        if self.routed.replace(matrix) != Some(matrix) {
            // Another matrix has other partitions for the same keys.
            key_runs = KeyRuns::default();
        }
        let entry = self.entry(matrix)?;
        key_runs.set(&entry.spec, &entry.placement, selection)?;
        let expected = key_runs.key_count() * entry.spec.columns_of_table();
        if value_count != expected {
            let (name, actual) = (entry.spec.name.clone(), value_count);
            return Err(matrix::Error::ValueCount { matrix: name, expected, actual }.into());
        }
        let all_lane_keys = split_by_lane(&key_runs, &entry.spec, &entry.lane_partitions);
        self.key_runs = key_runs;
        Ok(all_lane_keys)
    }

    /// Like [`Self::split`], for values that must be finite and of the type of the matrix.
    fn split_push(
        &mut self,
        matrix: MatrixId,
        selection: Selection<'_>,
        values: Values<'_>,
    ) -> Result<Vec<LaneKeys>, SessionError> {
        let all_lane_keys = self.split(matrix, selection, values.len())?;
        let spec = &self.matrices[&matrix.0].spec;
        spec.check_element(values.element_type())?;
        spec.check_finite(values, |i| self.key_runs.key(i))?;
        Ok(all_lane_keys)
    }

    /// Sends a request for each lane's keys; returns their numbers.
    fn send_lane_keys(
        &mut self,
        matrix: MatrixId,
        all_lane_keys: &[LaneKeys],
        mut message: impl FnMut(&Self, &LaneKeys, RequestId) -> Message,
    ) -> Result<Vec<RequestId>, SessionError> {
        self.entry(matrix)?;
        let mut requests = Vec::with_capacity(all_lane_keys.len());
        for lane_keys in all_lane_keys {
            let request = self.next_request();
            let message = message(self, lane_keys, request);
            send(&mut self.lanes[usize::from(lane_keys.lane)], message)?;
            requests.push(request);
        }
        Ok(requests)
    }

    /// Receives the answer for each lane's keys, also those after a refusal, so that the connections can be used again. `take`
    /// returns false for an answer that does not fit.
    fn receive_lane_keys(
        &mut self,
        all_lane_keys: &[LaneKeys],
        requests: &[RequestId],
        mut take: impl FnMut(&KeyRuns, &LaneKeys, &Message) -> bool,
    ) -> Result<(), SessionError> {
        let mut result = Ok(());
        for (lane_keys, request) in all_lane_keys.iter().zip(requests) {
            let lane = usize::from(lane_keys.lane);
            let taken = match receive(&mut self.lanes[lane], *request) {
                Ok(answer) if take(&self.key_runs, lane_keys, &answer) => Ok(()),
                Ok(_) => Err(SessionError::unexpected(&self.lanes[lane])),
                Err(error) => Err(error),
            };
            result = result.and(taken);
        }
        result
    }

    /// The lanes with partitions of a matrix.
    fn lanes_of(&self, matrix: MatrixId) -> Result<Vec<usize>, SessionError> {
        let partitions = self.entry(matrix)?.lane_partitions.iter().enumerate();
        Ok(partitions.filter(|(_, own)| !own.is_empty()).map(|(lane, _)| lane).collect())
    }

    /// Sends a request to all lanes with partitions of a matrix; returns their answers, or the first refusal.
    fn ask_lanes(
        &mut self,
        matrix: MatrixId,
        mut message: impl FnMut(u32, usize, RequestId) -> Message,
    ) -> Result<Vec<(usize, Message)>, SessionError> {
        let lanes = self.lanes_of(matrix)?;
        let (request, job) = (self.next_request(), self.map.job);
        for &lane in &lanes {
            let message = message(job, lane, request);
            send(&mut self.lanes[lane], message)?;
        }
        let mut answers = Vec::new();
        for lane in lanes {
            answers.push(receive(&mut self.lanes[lane], request).map(|answer| (lane, answer)));
        }
        answers.into_iter().collect()
    }
}
