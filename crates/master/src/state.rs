//! The master as a pure state machine. Its inputs are messages of members, requests of clients, reports of runners, and
//! the time; its outputs are frames, answers to clients and commands to runners (`dispatch.rs`).
//!
//! Invariants: names are unique among the alive members; a connection belongs to at most one member and a member has at
//! most one connection; a job that runs has exactly one runner, from `StartJob` until the runner's `Ended`.

use std::collections::BTreeMap;
use std::sync::Arc;

use control::{CallResult, ClientId, ClientResponse};
use matrix::FunctionTable;
use rpc::Message;
use rpc::message::{Control, ControlBody, Fault, FaultKind, JobId, RequestId};
use rpc::service::{ConnectionId, Effect};

use crate::counts::Counts;
use crate::jobs::Jobs;
use crate::members::Members;
use crate::record::{RecordChange, Records};
use crate::runner::RunnerCommand;
use crate::session::Session;
use crate::settings::Settings;

/// Alive members, queued and running jobs, and watchers.
#[derive(Debug)]
pub struct MasterState {
    pub(crate) settings: Settings,
    /// Their partitioners are those that specs of sessions may name.
    pub(crate) functions: Arc<FunctionTable>,
    pub(crate) incarnation: u64,
    pub(crate) members: Members,
    pub(crate) jobs: Jobs,
    pub(crate) sessions: BTreeMap<JobId, Session>,
    pub(crate) commands: Vec<RunnerCommand>,
    pub(crate) responses: Vec<(ClientId, CallResult)>,
    pub(crate) counts: Counts,
    pub(crate) changes: Vec<RecordChange>,
    /// The runs of an earlier master whose jobs go on with other runs.
    pub(crate) continued_runs: Vec<JobId>,
}

impl MasterState {
    /// `incarnation` must differ from that of every earlier process at this address.
    ///
    /// # Panics
    /// If `settings` were not checked.
    pub fn new(settings: Settings, incarnation: u64) -> Self {
        assert_eq!(settings.check(), Ok(()), "settings are checked by the process");
        Self {
            settings,
            functions: Arc::new(FunctionTable::builtin()),
            incarnation,
            members: Members::default(),
            jobs: Jobs::default(),
            sessions: BTreeMap::new(),
            commands: Vec::new(),
            responses: Vec::new(),
            counts: Counts::default(),
            changes: Vec::new(),
            continued_runs: Vec::new(),
        }
    }

    /// Replaces the functions.
    #[must_use]
    pub fn with_functions(self, functions: FunctionTable) -> Self {
        Self { functions: Arc::new(functions), ..self }
    }

    /// Takes over the jobs of an earlier master, before the first message. Those that ran wait for members again.
    pub fn restore(&mut self, records: Records) {
        self.continued_runs = self.jobs.restore(records);
        self.take_changes();
    }

    /// The changes since the last call that a new master must know, in order.
    pub fn take_changes(&mut self) -> Vec<RecordChange> {
        let id = self.jobs.take_last_id().map(|id| RecordChange::LastId { id });
        id.into_iter().chain(std::mem::take(&mut self.changes)).collect()
    }

    /// The commands to runners since the last call, in order.
    pub fn take_commands(&mut self) -> Vec<RunnerCommand> {
        std::mem::take(&mut self.commands)
    }

    /// The answers to clients since the last call, in order.
    pub fn take_responses(&mut self) -> Vec<(ClientId, CallResult)> {
        std::mem::take(&mut self.responses)
    }

    pub(crate) fn answer(&mut self, client: ClientId, answer: ClientResponse) {
        self.responses.push((client, Ok(answer)));
    }

    /// Answers a client with a fault.
    pub(crate) fn refuse_client(&mut self, client: ClientId, kind: FaultKind, text: String) {
        self.counts.refused += 1;
        self.responses.push((client, Err(Fault { request: 0, kind, text, retry_after_ms: 0 })));
    }

    /// Answers a request with a fault.
    pub(crate) fn refuse(
        &mut self,
        connection: ConnectionId,
        request: RequestId,
        kind: FaultKind,
        text: String,
        out: &mut Vec<Effect>,
    ) {
        self.counts.refused += 1;
        let fault = Fault { request, kind, text, retry_after_ms: 0 };
        out.push(Effect::Send { connection, message: Message::Fault(fault) });
    }
}

/// The effect that sends a control frame.
pub(crate) fn control_effect(connection: ConnectionId, request: RequestId, body: ControlBody) -> Effect {
    Effect::Send { connection, message: Message::Control(Control { request, body }) }
}
