//! What a lane may continue with after an input.

use std::collections::BTreeSet;

use rpc::message::JobId;
use rpc::service::ConnectionId;

/// Connections whose queues may continue, and jobs whose deferred requests may be answered because a clock has changed.
/// Both are empty between two inputs of the lane.
#[derive(Debug, Default)]
pub(crate) struct ReadyWork {
    runnable_connections: BTreeSet<ConnectionId>,
    changed_jobs: BTreeSet<JobId>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadyItem {
    /// The queue of this connection.
    Connection(ConnectionId),
    /// The deferred requests of this job.
    Job(JobId),
}

impl ReadyWork {
    pub(crate) fn add_connection(&mut self, connection: ConnectionId) {
        self.runnable_connections.insert(connection);
    }

    pub(crate) fn add_job(&mut self, job: JobId) {
        self.changed_jobs.insert(job);
    }

    pub(crate) fn remove_connection(&mut self, connection: ConnectionId) {
        self.runnable_connections.remove(&connection);
    }

    pub(crate) fn remove_job(&mut self, job: JobId) {
        self.changed_jobs.remove(&job);
    }

    /// What is next. Queues come before jobs, because their requests arrived earlier.
    pub(crate) fn first(&self) -> Option<ReadyItem> {
        let connection =
            self.runnable_connections.first().map(|connection| ReadyItem::Connection(*connection));
        connection.or_else(|| self.changed_jobs.first().map(|job| ReadyItem::Job(*job)))
    }
}
