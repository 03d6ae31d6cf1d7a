//! What runs a job. Each job has one thread between the state machine and its runner, which reaches the members of the job
//! through a [`JobLink`].

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use control::JobSubmission;
use matrix::MatrixSpec;
use rpc::message::control::Member;
use rpc::message::{Base64Bytes, Fault, JobId};
use rpc::stop::Stop;
use serde_json::Value;

use crate::input::InputSender;
use crate::runner::{JobEvent, JobResult, RunnerReport};

/// Runs jobs. The process calls it once a job, each on a thread of its own. A panic fails the job.
pub trait Runner: Send + Sync {
    /// Runs a job from its start to its end. The error is shown to users.
    fn run(&self, link: JobLink) -> Result<JobResult, String>;

    /// Runs a session of the parameter service: opens it on all its lanes, reports that as the answer to call 0, and
    /// carries out each [`JobEvent::Session`] until it gets `Close`.
    fn serve_session(&self, link: JobLink) -> Result<JobResult, String> {
        Err(format!("{}: this master has no parameter service", link.title))
    }

    /// Checks a job before it is accepted, and returns it in the form in which it is recorded and run. The error is returned
    /// to the client that submits it.
    fn check(&self, submission: &JobSubmission) -> Result<Value, String> {
        Ok(submission.spec.clone())
    }
}

/// A running job, as its runner sees it.
#[derive(Debug)]
pub struct JobLink {
    pub job: JobId,
    /// The number by which the members know the job. A job that goes on with other members has a new one, so what a
    /// frozen process of the earlier run still sends reaches nothing.
    pub run: JobId,
    /// One line, for people.
    pub title: String,
    /// The job as it was submitted.
    pub spec: Value,
    /// What the runner of the same job has reported last under an earlier master ([`Self::record`]); null if there was none.
    pub recorded: Value,
    /// As many as were requested, by number.
    pub servers: Vec<Member>,
    /// As many as were requested, by name.
    pub workers: Vec<Member>,
    pub(crate) losses: Arc<Mutex<Losses>>,
    pub(crate) is_session: bool,
    pub(crate) events: Receiver<JobEvent>,
    pub(crate) input_sender: InputSender,
}

impl JobLink {
    /// Raised with the first [`JobEvent::MemberLost`] of this run, for a runner that waits for something else.
    pub fn member_lost(&self) -> Stop {
        self.losses().ends_run.clone()
    }

    /// From now on the servers of this run have replicas of each other's partitions: each has those of the one before it
    /// in [`Self::servers`], the first one those of the last. The loss of a server whose partitions another one still has is
    /// [`JobEvent::ServerTakesOver`].
    pub fn set_replicated(&self) {
        self.losses().replicas = self.servers.iter().map(|server| (server.clone(), true)).collect();
    }

    /// Tells of the name of a server whether it is lost and another one has its partitions.
    pub fn lost_servers(&self) -> impl Fn(&str) -> bool + Send + 'static {
        let losses = Arc::clone(&self.losses);
        move |name| losses.lock().unwrap_or_else(PoisonError::into_inner).lost_servers.contains(name)
    }

    fn losses(&self) -> MutexGuard<'_, Losses> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the members of the run back and asks for others. The answer is [`JobEvent::Members`], as soon as enough
    /// members are connected.
    pub fn replace_members(&self) {
        self.input_sender.report(self.job, RunnerReport::ReplaceMembers);
    }

    /// Continues with the members of a [`JobEvent::Members`].
    pub fn set_members(&mut self, run: JobId, servers: Vec<Member>, workers: Vec<Member>) {
        (self.run, self.servers, self.workers) = (run, servers, sorted_by_name(workers));
    }

    /// Sends a message to a worker of the job. It arrives once and in order, unless the worker is lost, which is an
    /// event.
    pub fn send(&self, worker: u32, body: Base64Bytes) {
        self.input_sender.report(self.job, RunnerReport::ToTask { worker, body });
    }

    /// The next event, or [`JobEvent::Timeout`] after `timeout`. When the master has ended, every call returns
    /// [`JobEvent::Cancelled`].
    pub fn receive(&self, timeout: Duration) -> JobEvent {
        match self.events.recv_timeout(timeout) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => JobEvent::Timeout,
            Err(RecvTimeoutError::Disconnected) => JobEvent::Cancelled,
        }
    }

    /// Reports the matrices of a session that its runner has made from a checkpoint, by their numbers from 0, with the owners
    /// of [`crate::owners_of`]. Before the answer to call 0.
    pub fn set_session_restored(&self, specs: Vec<MatrixSpec>) {
        self.input_sender.report(self.job, RunnerReport::SessionRestored(specs));
    }

    /// Reports the result of a call of a session.
    pub fn answer_session(&self, call: u64, result: Result<(), Fault>) {
        self.input_sender.report(self.job, RunnerReport::SessionReply { call, result });
    }

    /// Records what the runner wants to find again when the job goes on under another master.
    pub fn record(&self, value: Value) {
        self.input_sender.report(self.job, RunnerReport::Record(value));
    }

    /// Reports the progress that users see.
    pub fn progress(&self, value: Value) {
        self.input_sender.report(self.job, RunnerReport::Progress(value));
    }
}

/// The losses of one run, which its runner shares with the process.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Raised with the first loss that the run does not survive.
    pub(crate) ends_run: Stop,
    /// The servers of a replicated job, each with whether another one has its partitions too.
    replicas: Vec<(Member, bool)>,
    /// The servers whose partitions another one has taken over.
    lost_servers: BTreeSet<String>,
}

impl Losses {
    /// Records the loss of a member. Returns the name of the server that takes its partitions over, if there is one.
    pub(crate) fn survive(&mut self, lost: &Member) -> Option<String> {
        let count = self.replicas.len();
        let at = self.replicas.iter().position(|(server, is_safe)| server.id == lost.id && *is_safe)?;
        // The next one has now the only copy of these partitions, and the one before that of its own ones.
        for near in [at, (at + 1) % count, (at + count - 1) % count] {
            self.replicas[near].1 = false;
        }
        self.lost_servers.insert(lost.name.clone());
        Some(self.replicas[(at + 1) % count].0.name.clone())
    }
}

/// Workers in the order of their names, so that the tasks of a worker do not depend on the order in which workers joined.
pub(crate) fn sorted_by_name(mut workers: Vec<Member>) -> Vec<Member> {
    workers.sort_by(|a, b| a.name.cmp(&b.name));
    workers
}

#[cfg(test)]
mod tests {
    use rpc::message::control::MemberKind;

    use super::*;

    fn server(id: u32) -> Member {
        let kind = MemberKind::Server { addresses: Vec::new(), lanes: 1, memory_limit_bytes: 1 };
        Member { id, name: format!("server-{id}"), incarnation: 1, kind, host: String::new() }
    }

    fn losses(count: u32) -> Losses {
        Losses { replicas: (0..count).map(|id| (server(id), true)).collect(), ..Losses::default() }
    }

    #[test]
    fn a_run_survives_losses_as_long_as_each_partition_is_somewhere() {
        let mut two = losses(2);
        assert_eq!(two.survive(&server(1)), Some("server-0".to_owned()));
        assert_eq!(two.survive(&server(0)), None, "it had the only copy of everything");
        let mut five = losses(5);
        assert_eq!(
            five.survive(&server(4)),
            Some("server-0".to_owned()),
            "the last one is before the first one"
        );
        assert_eq!(five.survive(&server(0)), None, "it had the only copy of the partitions of the last one");
        assert_eq!(five.survive(&server(3)), None, "its standby is lost");
        assert_eq!(losses(0).survive(&server(0)), None, "the job is not replicated");
        let mut six = losses(6);
        assert_eq!(six.survive(&server(0)), Some("server-1".to_owned()));
        assert_eq!(six.survive(&server(3)), Some("server-4".to_owned()), "far from the first loss");
        assert_eq!(six.survive(&server(9)), None, "a worker");
        assert!(six.lost_servers.contains("server-3") && !six.lost_servers.contains("server-4"));
    }
}
