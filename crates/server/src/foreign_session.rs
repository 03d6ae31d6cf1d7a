//! Sessions of foreign hosts. They are jobs without tasks: matrices are added and dropped, and requests never wait.

use std::time::Duration;

use matrix::{FunctionCall, FunctionTable, Matrix, MatrixSpec, Partitioner, PushId, Storage};
use rpc::message::{
    AddMatrix, DropMatrix, FaultKind, JobId, Message, Pull, PullFunction, Push, PushFunction, Role,
    TryFunction,
};
use rpc::service::{ConnectionId, Effect};

use crate::key_lists::TableId;
use crate::pull::check_wire;
use crate::push::{NO_KEYS, NO_VALUES, merge};
use crate::refusal::Refusal;
use crate::state::LaneState;

/// Most matrices that a session may add: their numbers are below it.
const MATRIX_LIMIT: u32 = 1 << 16;

impl LaneState {
    /// Whether a connection belongs to a session.
    pub(crate) fn is_of_session(&self, at: ConnectionId) -> bool {
        self.connections.get(&at).is_some_and(|connection| matches!(connection.role, Role::Session { .. }))
    }

    /// Checks that a job is an open session.
    pub(crate) fn check_session_is_open(&mut self, job: JobId) -> Result<(), Refusal> {
        if self.job(job)?.open_request.task_count == 0 {
            return Ok(());
        }
        let text = format!("job {job} is not a session: it has tasks, and only they pull and push");
        Err(Refusal::new(FaultKind::Invalid, text))
    }

    /// Checks that a request comes from the session that it names.
    pub(crate) fn check_session(&mut self, at: ConnectionId, job: JobId) -> Result<(), Refusal> {
        match self.connections.get(&at).map(|connection| connection.role) {
            Some(Role::Session { job: own }) if own == job => self.job(job).map(drop),
            Some(Role::Session { job: own }) => {
                let text =
                    format!("the request names session {job}, but its connection belongs to session {own}");
                Err(Refusal::new(FaultKind::Invalid, text))
            }
            _ => Err(Refusal::new(
                FaultKind::Invalid,
                "only a session may send this request: set its role in the hello",
            )),
        }
    }

    pub(crate) fn pull_of_session(&mut self, at: ConnectionId, pull: Pull, out: &mut Vec<Effect>) {
        let checked = self.check_session(at, pull.job).and_then(|()| {
            let matrix = self.job(pull.job)?.matrix(pull.matrix)?;
            check_wire(matrix.spec(), pull.wire)
        });
        match checked {
            Ok(()) => self.serve_pull(at, pull, Duration::ZERO, out),
            Err(refusal) => self.refuse(at, pull.request, refusal, out),
        }
    }

    /// Merges a push at once. A push of a session has no push id: if it is sent twice, it is merged twice.
    pub(crate) fn push_of_session(&mut self, at: ConnectionId, mut push: Push, out: &mut Vec<Effect>) {
        let Push { request, job, matrix, table, .. } = push;
        let result = self.check_session(at, job).and_then(|()| self.check_memory(push.values.len()));
        let result = result.and_then(|()| self.merge_for_session(at, &mut push));
        match result {
            Ok(()) => self.reply_done(at, request, job, out),
            Err(refusal) => {
                let what = format!("push (matrix {matrix}, table {table})");
                self.refuse(at, request, refusal.with_context(what), out);
            }
        }
    }

    fn merge_for_session(&mut self, at: ConnectionId, push: &mut Push) -> Result<(), Refusal> {
        let place = TableId { job: push.job, matrix: push.matrix, table: push.table };
        let (runs, keys) = (std::mem::take(&mut push.runs), std::mem::replace(&mut push.keys, NO_KEYS));
        let value_count = push.values.len();
        let (Some(connection), Some(open)) = (self.connections.get_mut(&at), self.jobs.get_mut(&push.job))
        else {
            return Ok(());
        };
        let mut list = connection.key_lists.take(runs, keys)?;
        let mut recorder = self.recorder.as_mut();
        let recorded = recorder.as_mut().and_then(|recorder| recorder.record_push(push, &mut list, None));
        let values = std::mem::replace(&mut push.values, NO_VALUES);
        let merged =
            open.matrix(place.matrix).and_then(|matrix| merge(matrix, place, &mut list, push, values));
        connection.key_lists.put(list);
        if let (Err(_), Some(recorded), Some(recorder)) = (&merged, recorded, recorder) {
            recorder.take_back(recorded);
        }
        merged?;
        open.stats.push_count += 1;
        open.invalidate_export(place.matrix);
        self.memory.add_elements(value_count);
        Ok(())
    }

    pub(crate) fn pull_function_of_session(
        &mut self,
        at: ConnectionId,
        pull: &PullFunction,
        out: &mut Vec<Effect>,
    ) {
        match self.check_session(at, pull.job) {
            Ok(()) => self.serve_pull_function(at, pull, Duration::ZERO, out),
            Err(refusal) => self.refuse(at, pull.request, refusal, out),
        }
    }

    /// Runs functions at once. Like a push of a session they have no push id: if they are sent twice, they run twice.
    pub(crate) fn push_function_of_session(
        &mut self,
        at: ConnectionId,
        push: &PushFunction,
        out: &mut Vec<Effect>,
    ) {
        let done = self.check_session(at, push.job);
        let done = done.and_then(|()| self.push_functions_for_session(push.job, push.matrix, &push.calls));
        // One that has failed may have changed rows before: it does the same again.
        let has_run = match &done {
            Ok(()) => true,
            Err(refusal) => refusal.kind == FaultKind::Function,
        };
        if let Some(recorder) = self.recorder.as_mut().filter(|_| has_run) {
            recorder.record(&Message::PushFunction(push.clone()));
        }
        match done {
            Ok(()) => self.reply_done(at, push.request, push.job, out),
            Err(refusal) => self.refuse(at, push.request, refusal, out),
        }
    }

    pub(crate) fn try_function_of_session(
        &mut self,
        at: ConnectionId,
        ask: &TryFunction,
        out: &mut Vec<Effect>,
    ) {
        let tried = self.check_session(at, ask.job);
        match tried.and_then(|()| self.try_functions_for_session(ask.job, ask.matrix, &ask.calls)) {
            Ok(()) => self.reply_done(at, ask.request, ask.job, out),
            Err(refusal) => self.refuse(at, ask.request, refusal, out),
        }
    }

    /// Checks whether functions could run on a matrix of a session, and changes nothing.
    pub(crate) fn try_functions_for_session(
        &mut self,
        job: JobId,
        matrix: u32,
        calls: &[FunctionCall],
    ) -> Result<(), Refusal> {
        let functions = self.job_functions(job)?;
        Ok(self.job(job)?.matrix(matrix)?.try_function(&functions, calls)?)
    }

    /// Runs functions on a matrix of a session.
    pub(crate) fn push_functions_for_session(
        &mut self,
        job: JobId,
        matrix: u32,
        calls: &[FunctionCall],
    ) -> Result<(), Refusal> {
        self.check_memory(0)?;
        let functions = self.job_functions(job)?;
        let open = self.job(job)?;
        open.matrix(matrix)?.push_function(&functions, calls, PushId::default())?;
        open.stats.push_count += 1;
        open.stats.push_function_count += 1;
        open.invalidate_export(matrix);
        Ok(())
    }

    /// Adds a matrix to an open job. Nothing happens if the matrix exists with the same spec.
    pub(crate) fn add_matrix(&mut self, at: ConnectionId, add: AddMatrix, out: &mut Vec<Effect>) {
        let (request, job) = (add.request, add.job);
        let name = add.spec.name.clone();
        match self.create_matrix(add) {
            Ok(()) => self.reply_done(at, request, job, out),
            Err(refusal) => self.refuse(at, request, refusal.with_context(format!("matrix {name:?}")), out),
        }
    }

    fn create_matrix(&mut self, add: AddMatrix) -> Result<(), Refusal> {
        let AddMatrix { job, matrix, spec, owned_partitions, .. } = add;
        let open = self.job(job)?;
        if let Some(known) = open.matrices.get(matrix as usize) {
            if !open.dropped_matrices.contains(&matrix) && known.spec() == &*spec {
                return Ok(());
            }
            let text =
                format!("number {matrix} was used for another matrix of job {job}: use a larger number");
            return Err(Refusal::new(FaultKind::Invalid, text));
        }
        if matrix >= MATRIX_LIMIT {
            let text = format!("the number of the matrix is {matrix}, expected below {MATRIX_LIMIT}");
            return Err(Refusal::new(FaultKind::TooLarge, text));
        }
        let names =
            open.matrices.iter().enumerate().filter(|(i, _)| !open.dropped_matrices.contains(&(*i as u32)));
        if names.into_iter().any(|(_, other)| other.spec().name == spec.name) {
            return Err(matrix::Error::DuplicateName { matrix: spec.name.clone() }.into());
        }
        spec.check(&self.functions)?;
        let copies = self.jobs.get(&job).map_or(1, |open| self.copies_of(&open.open_request));
        self.check_matrix_memory(&[&spec], &[&owned_partitions[..]], 0, copies)?;
        let made = Matrix::new(*spec, &owned_partitions, &self.functions)?;
        let open = self.job(job)?;
        while open.matrices.len() < matrix as usize {
            // Another lane refused this matrix, so this lane never got it.
            open.dropped_matrices.insert(open.matrices.len() as u32);
            open.matrices.push(empty_matrix(made.spec())?);
        }
        open.matrices.push(made);
        self.count_memory();
        Ok(())
    }

    /// Frees a matrix. Nothing happens if it is dropped already.
    pub(crate) fn drop_matrix(&mut self, at: ConnectionId, drop: DropMatrix, out: &mut Vec<Effect>) {
        let DropMatrix { request, job, matrix } = drop;
        match self.free_matrix(job, matrix) {
            Ok(()) => {
                self.count_memory();
                self.reply_done(at, request, job, out);
            }
            Err(refusal) => self.refuse(at, request, refusal, out),
        }
    }

    fn free_matrix(&mut self, job: JobId, matrix: u32) -> Result<(), Refusal> {
        self.check_session_is_open(job)?;
        let open = self.job(job)?;
        let Some(dropped) = open.matrices.get_mut(matrix as usize) else { return Ok(()) };
        if open.dropped_matrices.insert(matrix) {
            *dropped = empty_matrix(dropped.spec())?;
            open.invalidate_export(matrix);
            open.staged_chunks.remove_matrix(matrix);
        }
        Ok(())
    }
}

/// Stands in the place of a dropped matrix: it has the name, and takes almost no memory.
fn empty_matrix(of: &MatrixSpec) -> Result<Matrix, Refusal> {
    let spec = MatrixSpec {
        storage: Storage::Sparse,
        partitioner: Partitioner::Range { partition_count: 1 },
        ..of.clone()
    };
    Ok(Matrix::new(spec, &[], &FunctionTable::builtin())?)
}
