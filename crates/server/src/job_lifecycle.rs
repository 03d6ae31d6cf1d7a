//! Opening and closing jobs. Both requests may be repeated.

use std::sync::Arc;

use matrix::{FunctionTable, Matrix};
use rpc::ROW_BYTES;
use rpc::message::{Base64Bytes, CloseJob, Durability, FaultKind, OpenJob};
use rpc::service::{ConnectionId, Effect};

use crate::job::Job;
use crate::refusal::Refusal;
use crate::state::LaneState;

/// Most tasks of a job.
const TASK_LIMIT: u32 = 1 << 16;

/// Bytes of the modules that a job brings.
pub(crate) fn modules_bytes(open: &OpenJob) -> u64 {
    open.modules.iter().map(|module| module.0.len() as u64).sum()
}

impl LaneState {
    pub(crate) fn open_job(&mut self, at: ConnectionId, mut open: OpenJob, out: &mut Vec<Effect>) {
        let request = std::mem::take(&mut open.request);
        let job = open.job;
        let result = match self.jobs.get(&job) {
            Some(known) if known.open_request == open => Ok(()),
            Some(_) => {
                let text = format!("job {job} is open with other contents: use another number");
                Err(Refusal::new(FaultKind::Invalid, text))
            }
            None => self.create_job(open),
        };
        match result {
            Ok(()) => self.reply_done(at, request, job, out),
            Err(refusal) => self.refuse(at, request, refusal.with_context(format_args!("job {job}")), out),
        }
    }

    fn create_job(&mut self, open: OpenJob) -> Result<(), Refusal> {
        let job = open.job;
        if open.task_count > TASK_LIMIT {
            let text = format!("{} tasks, the limit is {TASK_LIMIT}", open.task_count);
            return Err(Refusal::new(FaultKind::TooLarge, text));
        }
        self.check_durability(&open)?;
        if open.owned_partitions.len() != open.matrices.len() {
            let (lists, matrices) = (open.owned_partitions.len(), open.matrices.len());
            let text = format!("{lists} lists of partitions for {matrices} matrices, expected one for each");
            return Err(Refusal::new(FaultKind::Invalid, text));
        }
        for (i, spec) in open.matrices.iter().enumerate() {
            spec.check(&self.functions)?;
            if open.matrices[..i].iter().any(|other| other.name == spec.name) {
                return Err(matrix::Error::DuplicateName { matrix: spec.name.clone() }.into());
            }
            let bytes = spec.row_bytes();
            if bytes > ROW_BYTES as u64 {
                let text = format!(
                    "a row of matrix {:?} has {bytes} bytes with its slots, the limit is {ROW_BYTES}: make it narrower, \
                     or partition it by column",
                    spec.name
                );
                return Err(Refusal::new(FaultKind::TooLarge, text));
            }
        }
        let (specs, owned_partitions): (Vec<_>, Vec<_>) =
            open.matrices.iter().zip(open.owned_partitions.iter().map(Vec::as_slice)).unzip();
        let copies = self.copies_of(&open);
        self.check_matrix_memory(&specs, &owned_partitions, modules_bytes(&open), copies)?;
        let matrices = open.matrices.iter().zip(&open.owned_partitions);
        let matrices = matrices.map(|(spec, owned)| Matrix::new(spec.clone(), owned, &self.functions));
        let matrices = matrices.collect::<Result<Vec<_>, _>>()?;
        let functions = self.load_functions(&open.modules)?;
        self.closed_jobs.remove(job);
        let is_session = open.task_count == 0;
        self.jobs.insert(job, Job::new(open, matrices, functions));
        self.open_jobs.add(job, is_session);
        self.count_memory();
        Ok(())
    }

    /// Refuses a job that asks for more than there is of this lane when its process has died.
    fn check_durability(&self, open: &OpenJob) -> Result<(), Refusal> {
        let (asked, own) = (open.durability, self.durability);
        let problem = match asked {
            Durability::Replica if open.standby.is_none() => {
                "no standby is named: it needs at least two servers"
            }
            _ if own.covers(asked) => return Ok(()),
            Durability::Replica => {
                "this server has a write-ahead log, in which no replicated job is kept: ask for durability=log, or start \
                 the servers without --write-ahead-log"
            }
            _ if own == Durability::Log => {
                "the write-ahead log of this server is not synced: start the server with --sync-log, or ask for \
                 durability=log"
            }
            _ => {
                "this server has no write-ahead log: start the server with --write-ahead-log DIR (for synced-log also \
                 with --sync-log), or ask for durability=replica or checkpoint"
            }
        };
        Err(Refusal::new(
            FaultKind::Invalid,
            format!("it asks for durability={}, and {problem}", asked.name()),
        ))
    }

    /// The function table of a job with modules. None if it brings no modules and uses the functions of the server.
    fn load_functions(&self, modules: &[Base64Bytes]) -> Result<Option<Arc<FunctionTable>>, Refusal> {
        if modules.is_empty() {
            return Ok(None);
        }
        let Some(made) = &self.module_cache else {
            let text = "this server was built without WebAssembly modules, and the job has some: start a server that \
                        was built with them (feature `wasm`)";
            return Err(Refusal::new(FaultKind::Invalid, text));
        };
        let table = made.table(&self.functions, modules);
        table.map(Some).map_err(|text| Refusal::new(FaultKind::Invalid, text))
    }

    pub(crate) fn close_job(&mut self, at: ConnectionId, close: CloseJob, out: &mut Vec<Effect>) {
        let CloseJob { request, job, reason } = close;
        if let Some(mut closed) = self.jobs.remove(&job) {
            for deferred in std::mem::take(&mut closed.deferred_requests).into_values() {
                self.deferred_bytes -= deferred.bytes;
                self.unblock_connection(&deferred);
                let refusal = Refusal::new(FaultKind::Stopped, reason.clone());
                self.refuse(deferred.connection, deferred.request, refusal, out);
            }
            for (connection, request) in closed.barrier.take_waiters() {
                let refusal = Refusal::new(FaultKind::Stopped, reason.clone());
                self.refuse(connection, request, refusal, out);
            }
            self.closed_jobs.add(job, reason);
            self.open_jobs.remove(job);
            self.count_memory();
        }
        self.reply_done(at, request, job, out);
    }
}
