//! The servers of a job as the tasks of a worker reach them.

use std::sync::Arc;

use driver::{Error, SnapshotPurpose};
use matrix::{Agent, FunctionTable, RowBlock};
use rpc::layout::JobLayout;
use rpc::message::Role;
use worker::{CancellationToken, RemoteAgent, RetryPolicy};

use crate::cluster::metrics_endpoint::WorkerMetrics;
use crate::cluster::servers::Servers;
use crate::worker::{MatrixAccess, TaskParameters};

/// Connections to the servers of a job.
pub(super) struct ServerConnections {
    token: Vec<u8>,
    functions: Arc<FunctionTable>,
    metrics: WorkerMetrics,
    cancellation: CancellationToken,
}

impl ServerConnections {
    pub(super) fn new(token: Vec<u8>, functions: Arc<FunctionTable>, metrics: WorkerMetrics) -> Self {
        Self { token, functions, metrics, cancellation: CancellationToken::default() }
    }

    /// The master has lost a server: if a standby has its partitions, the tasks go on there.
    pub(super) fn on_server_lost(&self, server: &str) {
        self.cancellation.on_server_lost(server);
    }
}

impl TaskParameters for ServerConnections {
    fn agent(
        &self,
        layout: &JobLayout,
        task: u32,
        functions: &FunctionTable,
    ) -> Result<Box<dyn Agent>, Error> {
        let agent = RemoteAgent::with_functions(layout.clone(), task, &self.token, functions.clone())
            .map_err(Error::process)?
            .with_cancellation(self.cancellation.clone());
        self.metrics.add_task(layout.job, task, agent.shared_stats(), layout.lanes.len());
        Ok(Box::new(agent))
    }

    fn open(&self, layout: &JobLayout) -> Result<Box<dyn MatrixAccess>, Error> {
        let (token, losses) = (self.cancellation.clone(), self.cancellation.clone());
        let policy =
            RetryPolicy::until(move || token.is_cancelled(), move |server| losses.is_server_lost(server));
        let servers = Servers::connect_as(Role::JobTool { job: layout.job }, layout, &self.token, policy)?;
        Ok(Box::new(servers.with_functions(Arc::clone(&self.functions))))
    }

    /// The agent of a failed task is kept, so its clock no longer advances, and the driver ends the job.
    fn on_task_failed(&self, _task: u32, _reason: &str) {}

    fn cancel(&self, reason: &str) {
        self.cancellation.cancel(reason);
    }
}

impl MatrixAccess for Servers {
    fn import(&mut self, matrix: u32, rows: &RowBlock, replace: Option<u64>) -> Result<(), Error> {
        Self::import(self, matrix, rows, replace)
    }

    fn read_snapshot(
        &mut self,
        matrix: u32,
        only_changed: bool,
        write: &mut dyn FnMut(&RowBlock) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.scan(matrix, SnapshotPurpose::Checkpoint, only_changed, write)
    }
}
