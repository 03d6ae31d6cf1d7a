//! The runner of a session of the parameter service: it executes the commands of the master on all lanes, and frees the
//! session on all lanes when it ends for any reason.

use std::sync::Arc;
use std::time::Duration;

use driver::{Error, SnapshotPurpose};
use job::Exit;
use master::{JobEvent, JobLink, SessionCommand, lanes_of, owners_of};
use matrix::{FunctionTable, Prefetch};
use rpc::Message;
use rpc::layout::{JobLayout, LaneAddress, standbys_of};
use rpc::message::{
    AddMatrix, CloseJob, DropMatrix, DropRows, Durability, Fault, FaultKind, OpenJob, RequestId, Role,
    Standby,
};
use serde_json::{Value, json};

use crate::cluster::lane_clients::{LaneClients, retry_policy};
use crate::cluster::servers::Servers;
use crate::cluster::session_checkpoints::{SavedMatrices, SessionCheckpoints, SessionSpec};

/// Maximum wait for an answer: a lane may have to allocate gigabytes.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);
/// Maximum wait for an event before the next call of `receive`.
const RECEIVE_LIMIT: Duration = Duration::from_mins(1);
/// Nothing waits in a session, but a job requires a limit.
const WAIT_LIMIT_MS: u64 = 60_000;

/// Runs a session from its opening to its end.
pub(super) fn serve(
    link: &JobLink,
    token: &[u8],
    functions: &Arc<FunctionTable>,
    checkpoints: Option<String>,
) -> Result<Value, Error> {
    let durability = link.spec["durability"].as_str().and_then(Durability::named).unwrap_or_default();
    let mut checkpoints = SessionCheckpoints::new(checkpoints, link.title.clone());
    let saved = match link.spec["checkpoint"].as_str() {
        None | Some("") => None,
        Some(name) => match checkpoints.find(name) {
            Ok(saved) => Some(saved),
            Err(fault) => {
                let text = fault.text.clone();
                link.answer_session(0, Err(fault));
                return Err(ended(format!("it cannot be opened: {text}")));
            }
        },
    };
    let mut lanes = Lanes::connect(link, token, durability)?;
    let job = link.job;
    let standbys = lanes.standbys();
    let opened = lanes.request_all(|lane, request| {
        Message::OpenJob(OpenJob {
            request,
            job,
            task_count: 0,
            wait_limit_ms: WAIT_LIMIT_MS,
            durability,
            standby: standbys[lane].clone(),
            matrices: Vec::new(),
            owned_partitions: Vec::new(),
            home: false,
            modules: Vec::new(),
        })
    });
    let result = match opened {
        Ok(Ok(())) => {
            lanes.connections.set_open(job);
            if durability == Durability::Replica {
                link.set_replicated();
            }
            match saved.map_or(Ok(Ok(())), |saved| restore(link, &mut lanes, &saved, functions)) {
                Ok(Ok(())) => {
                    link.answer_session(0, Ok(()));
                    handle_requests(link, &mut lanes, &checkpoints)
                }
                Ok(Err(fault)) => {
                    let text = fault.text.clone();
                    link.answer_session(0, Err(fault));
                    Err(ended(format!("it cannot begin with its checkpoint: {text}")))
                }
                Err(error) => Err(error),
            }
        }
        Ok(Err(fault)) => Err(ended(format!("it cannot be opened: {}", fault.text))),
        Err(error) => Err(error),
    };
    let reason = result.as_ref().err().map_or("its host has closed it".to_owned(), Error::to_string);
    // A lane that is lost needs no closing.
    let freed = lanes.request_all(|_, request| {
        Message::CloseJob(CloseJob { request, job, reason: format!("session {job} has ended: {reason}") })
    });
    if let Err(error) = freed {
        tracing::warn!(session = job, %error, "could not close the session on a lane");
    }
    result.map(|()| json!({ "ended": reason }))
}

/// Creates the matrices of a checkpoint, and sends its rows to them.
fn restore(
    link: &JobLink,
    lanes: &mut Lanes,
    saved: &SavedMatrices,
    functions: &Arc<FunctionTable>,
) -> Result<Result<(), Fault>, Error> {
    for (matrix, spec) in (0..).zip(&saved.specs) {
        if let Err(fault) = lanes.add(matrix, spec, &owners_of(spec, lanes.connections.count()))? {
            return Ok(Err(fault));
        }
    }
    saved.restore(&mut lanes.servers(link)?.with_functions(Arc::clone(functions)))?;
    link.set_session_restored(saved.specs.clone());
    Ok(Ok(()))
}

/// Executes commands until the session must end.
fn handle_requests(link: &JobLink, lanes: &mut Lanes, checkpoints: &SessionCheckpoints) -> Result<(), Error> {
    loop {
        match link.receive(RECEIVE_LIMIT) {
            JobEvent::Session { call, command } => match command {
                SessionCommand::Add { matrix, spec, owners } => {
                    let result = lanes.add(matrix, &spec, &owners)?;
                    link.answer_session(call, result);
                }
                SessionCommand::Drop { matrix } => {
                    let result = lanes.drop_matrix(matrix)?;
                    link.answer_session(call, result);
                }
                SessionCommand::Checkpoint { name } => {
                    // On connections of their own: after an error they are of no more use.
                    let written = lanes.servers(link).map_err(|error| busy(&error));
                    let written = written
                        .and_then(|mut servers| checkpoints.write(&name, &lanes.matrices(), &mut servers));
                    lanes.drop_snapshot()?;
                    link.answer_session(call, written);
                }
                SessionCommand::Close { reason } => {
                    return reason.map_or(Ok(()), |reason| Err(ended(reason)));
                }
            },
            JobEvent::MemberLost { member, reason } => {
                return Err(ended(format!("server {} is lost: {reason}", member.name)));
            }
            JobEvent::ServerTakesOver { lost, reason, by } => {
                tracing::warn!(
                    session = link.job,
                    lost = lost.name,
                    reason,
                    by,
                    "a server of a session is lost: the server with its replica has taken over"
                );
            }
            JobEvent::Cancelled => return Err(ended("it was cancelled, or the service has ended".into())),
            JobEvent::FromTask { .. }
            | JobEvent::MemberDisconnected { .. }
            | JobEvent::MemberReconnected { .. }
            | JobEvent::Members { .. }
            | JobEvent::CheckpointRequested
            | JobEvent::Timeout => {}
        }
    }
}

/// A server that cannot be reached may come back, or its standby takes over.
fn busy(error: &Error) -> Fault {
    Fault { request: 0, kind: FaultKind::Busy, text: error.to_string(), retry_after_ms: 0 }
}

fn ended(text: String) -> Error {
    Error::Cluster { text, exit: Exit::Io }
}

/// Connections to all lanes of the session.
struct Lanes {
    job: u32,
    token: Vec<u8>,
    connections: LaneClients,
    /// Every matrix that was made, by its number.
    made: Vec<MadeMatrix>,
}

struct MadeMatrix {
    spec: matrix::MatrixSpec,
    /// The lane of each partition.
    owners: Vec<u16>,
    is_dropped: bool,
}

impl Lanes {
    fn connect(link: &JobLink, token: &[u8], durability: Durability) -> Result<Self, Error> {
        let mut lanes: Vec<LaneAddress> =
            lanes_of(&link.servers).into_iter().map(LaneAddress::from).collect();
        if durability == Durability::Replica {
            for (lane, standby) in lanes.iter_mut().zip(standbys_of(&link.servers).map_err(ended)?) {
                lane.server.clone_from(&standby.primary);
                lane.standby = Some(standby);
            }
        }
        let connections = LaneClients::connect(Role::Tool, &lanes, token, retry_policy(link))?;
        Ok(Self { job: link.job, token: token.to_vec(), connections, made: Vec::new() })
    }

    /// The matrices that are there.
    fn matrices(&self) -> Vec<SessionSpec> {
        let made = (0..).zip(&self.made).filter(|(_, made)| !made.is_dropped);
        made.map(|(number, made)| (number, made.spec.clone())).collect()
    }

    /// Connections for whole matrices.
    fn servers(&self, link: &JobLink) -> Result<Servers, Error> {
        let (matrices, owners) =
            self.made.iter().map(|made| (made.spec.clone(), made.owners.clone())).unzip();
        let layout = JobLayout {
            job: self.job,
            task_count: 0,
            wait_limit: ANSWER_LIMIT,
            window_bytes: 0,
            matrices,
            lanes: (0..self.connections.count()).map(|lane| self.connections.lane(lane).clone()).collect(),
            owners,
            home: 0,
            wire: Vec::new(),
            prefetch: Prefetch::default(),
        };
        Servers::connect_as(Role::JobTool { job: self.job }, &layout, &self.token, retry_policy(link))
    }

    /// The standby of each lane, if it has one.
    fn standbys(&self) -> Vec<Option<Standby>> {
        let all = 0..self.connections.count();
        all.map(|lane| self.connections.lane(lane).standby.clone()).collect()
    }

    /// Sends a request to all lanes. Returns the first refusal, or an error if a connection is lost.
    fn request_all(
        &mut self,
        message: impl FnMut(usize, RequestId) -> Message,
    ) -> Result<Result<(), Fault>, Error> {
        let replies = self.connections.request_all(ANSWER_LIMIT, message);
        let replies = replies.into_iter().collect::<Result<Vec<Message>, Error>>()?;
        let fault = |reply| if let Message::Fault(fault) = reply { Some(fault) } else { None };
        Ok(replies.into_iter().find_map(fault).map_or(Ok(()), Err))
    }

    /// Adds a matrix on all lanes or, after a refusal, on none.
    fn add(
        &mut self,
        matrix: u32,
        spec: &matrix::MatrixSpec,
        owners: &[u16],
    ) -> Result<Result<(), Fault>, Error> {
        let job = self.job;
        let owned_by = |lane: usize| {
            let owned = owners.iter().enumerate().filter(|(_, owner)| usize::from(**owner) == lane);
            owned.map(|(partition, _)| partition as u32).collect()
        };
        let added = self.request_all(|lane, request| {
            Message::AddMatrix(AddMatrix {
                request,
                job,
                matrix,
                spec: Box::new(spec.clone()),
                owned_partitions: owned_by(lane),
            })
        })?;
        if let Err(fault) = added {
            return match self.drop_matrix(matrix)? {
                Ok(()) => Ok(Err(fault)),
                Err(other) => Ok(Err(Fault {
                    kind: FaultKind::Internal,
                    text: format!("{}; undoing it failed too: {}", fault.text, other.text),
                    ..fault
                })),
            };
        }
        let made = |is_dropped| MadeMatrix { spec: spec.clone(), owners: owners.to_vec(), is_dropped };
        // A number that was left out belongs to a matrix that a lane has refused.
        self.made.resize_with(matrix as usize, || made(true));
        self.made.push(made(false));
        Ok(Ok(()))
    }

    /// Frees the snapshot of a checkpoint, also on lanes that have none.
    fn drop_snapshot(&mut self) -> Result<(), Error> {
        let (job, snapshot) = (self.job, SnapshotPurpose::Checkpoint as u32);
        self.request_all(|_, request| Message::DropRows(DropRows { request, job, snapshot })).map(drop)
    }

    fn drop_matrix(&mut self, matrix: u32) -> Result<Result<(), Fault>, Error> {
        let job = self.job;
        if let Some(made) = self.made.get_mut(matrix as usize) {
            made.is_dropped = true;
        }
        self.request_all(|_, request| Message::DropMatrix(DropMatrix { request, job, matrix }))
    }
}
