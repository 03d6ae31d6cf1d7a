//! Opening and closing of connections.

use std::time::Duration;

use rpc::message::{FaultKind, Hello, JobId, Message, PushPosition, Role, Welcome};

use crate::connection::Connection;
use crate::refusal::Refusal;
use crate::state::LaneState;
use rpc::service::{ConnectionId, Effect};

impl LaneState {
    /// Opens a connection. It replaces the earlier connection of the same task.
    pub(crate) fn on_hello(&mut self, now: Duration, at: ConnectionId, hello: &Hello, out: &mut Vec<Effect>) {
        let refusal = if self.connections.contains_key(&at) {
            Some(Refusal::new(FaultKind::BadFrame, "a second hello on one connection"))
        } else {
            self.check_role(hello.role).err()
        };
        if let Some(refusal) = refusal {
            self.refuse(at, hello.request, refusal, out);
            self.close(now, at, out);
            return;
        }
        let (mut applied, mut clock, mut minimum) = (PushPosition::default(), 0, u64::MAX);
        if let Role::Task { job, task } = hello.role {
            let old = self.jobs.get_mut(&job).and_then(|job| job.connections[task as usize].replace(at));
            if let Some(old) = old {
                self.close(now, old, out);
            }
            if let Some(open) = self.jobs.get_mut(&job) {
                open.connections[task as usize] = Some(at);
                applied = open.mark(task);
                clock = open.clock_table.last_clock(task).unwrap_or(0);
                minimum = open.minimum_or_max();
            }
        }
        self.connections.insert(at, Connection::new(hello.role, self.config.key_list_limit_bytes));
        let welcome = Welcome {
            request: hello.request,
            incarnation: self.config.incarnation,
            lanes: self.config.lanes,
            window_bytes: self.config.window_bytes,
            applied,
            clock,
            minimum,
        };
        out.push(Effect::Send { connection: at, message: Message::Welcome(welcome) });
    }

    fn check_role(&mut self, role: Role) -> Result<(), Refusal> {
        match role {
            Role::Tool => Ok(()),
            Role::JobTool { job } => self.job(job).map(drop),
            Role::Primary { .. } => Err(Refusal::new(
                FaultKind::Invalid,
                "this lane is no standby: a primary connects to the lane that its job names",
            )),
            Role::Session { job } => self.check_session_is_open(job),
            Role::Member => Err(Refusal::new(
                FaultKind::Invalid,
                "members register with the master, and this is a server",
            )),
            Role::Task { job, task } => {
                let count = self.job(job)?.clock_table.task_count();
                if task < count {
                    return Ok(());
                }
                let text = format!("job {job} has no task {task}: it has {count}, numbered from 0");
                Err(Refusal::new(FaultKind::NotFound, text))
            }
        }
    }

    /// Closes a connection and removes its state.
    pub(crate) fn close(&mut self, now: Duration, at: ConnectionId, out: &mut Vec<Effect>) {
        out.push(Effect::Close { connection: at });
        self.remove_connection(now, at);
    }

    /// Removes a connection with its deferred requests: its task sends them again over the next connection.
    pub(crate) fn remove_connection(&mut self, now: Duration, at: ConnectionId) {
        let Some(connection) = self.connections.remove(&at) else { return };
        self.ready.remove_connection(at);
        self.deferred_bytes -= connection.queued_bytes;
        let Role::Task { job, task } = connection.role else { return };
        let Some(job) = self.jobs.get_mut(&job) else { return };
        let mut dropped_bytes = 0;
        let stats = &mut job.stats;
        job.deferred_requests.retain(|_, deferred| {
            let stays = deferred.connection != at;
            if !stays {
                stats.count_wait(now.saturating_sub(deferred.since));
                dropped_bytes += deferred.bytes;
            }
            stays
        });
        self.deferred_bytes -= dropped_bytes;
        job.barrier.remove_waiter(at);
        let connection = &mut job.connections[task as usize];
        if *connection == Some(at) {
            *connection = None;
        }
    }

    /// The job and task of a connection.
    pub(crate) fn task_at(&self, at: ConnectionId) -> Option<(JobId, u32)> {
        match self.connections.get(&at)?.role {
            Role::Task { job, task } => Some((job, task)),
            Role::Tool
            | Role::JobTool { .. }
            | Role::Session { .. }
            | Role::Member
            | Role::Primary { .. } => None,
        }
    }

    /// Checks that a request comes from the task that it names.
    pub(crate) fn check_task(&self, at: ConnectionId, job: JobId, task: u32) -> Result<(), Refusal> {
        match self.task_at(at) {
            Some(known) if known == (job, task) => Ok(()),
            Some((own_job, own)) => {
                let text = format!(
                    "the request names task {task} of job {job}, but its connection belongs to task {own} \
                     of job {own_job}"
                );
                Err(Refusal::new(FaultKind::Invalid, text))
            }
            None => Err(Refusal::new(
                FaultKind::Invalid,
                "only a task may send this request: set its role in the hello",
            )),
        }
    }
}
