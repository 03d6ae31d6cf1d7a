//! Chooses which failure of a job's tasks is reported: see [`crate::run::failure`].

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use master::JobEvent;
use rpc::message::{Member, MemberKind};

use super::{FromWorker, JobRun, POLL_INTERVAL, ToWorker};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::failure::FailureRank;

/// Maximum wait for tasks that may fail before the batch of the first failure.
const FIRST_FAILURE_LIMIT: Duration = Duration::from_secs(3);

impl JobRun<'_> {
    pub(super) fn failed_at(&self, worker: u32, error: &str, exit: u8) -> Error {
        Error::Cluster { text: format!("worker {}: {error}", self.name(worker)), exit: Exit::from_code(exit) }
    }

    /// Handles the failure of a task. Other tasks may be about to fail, and the reported failure must not depend on
    /// which task is faster, so all tasks read on to the position of the failure.
    pub(super) fn first_failure(&mut self, mut rank: FailureRank, mut error: Error) -> Error {
        let deadline = Instant::now() + FIRST_FAILURE_LIMIT;
        for worker in &self.link.workers {
            self.send(worker.id, &ToWorker::Settle { position: rank.limit() });
        }
        let mut settled = BTreeSet::new();
        while settled.len() < self.link.workers.len() && Instant::now() < deadline {
            match self.link.receive(POLL_INTERVAL) {
                JobEvent::FromTask { worker, body } => match serde_json::from_value(body) {
                    Ok(FromWorker::Settled {}) => drop(settled.insert(worker)),
                    Ok(FromWorker::Failed { error: text, exit, rank: Some(other) }) if other < rank => {
                        (rank, error) = (other, self.failed_at(worker, &text, exit));
                    }
                    _ => {}
                },
                // Later failures of tasks may be consequences of this loss.
                JobEvent::MemberLost { member, reason } => return member_lost_error(&member, &reason),
                JobEvent::Cancelled => self.cancelled = true,
                JobEvent::Session { .. } | JobEvent::MemberReconnected { .. } | JobEvent::Timeout => {}
            }
        }
        error
    }

    /// Returns the root cause of a job's end: the loss of a member, if there was one, and not its consequences.
    pub(super) fn root_cause(&self, error: Error) -> Error {
        while self.link.member_lost.is_raised() {
            match self.link.receive(Duration::ZERO) {
                JobEvent::MemberLost { member, reason } => return member_lost_error(&member, &reason),
                JobEvent::Timeout | JobEvent::Cancelled => break,
                JobEvent::FromTask { .. } | JobEvent::Session { .. } | JobEvent::MemberReconnected { .. } => {
                }
            }
        }
        error
    }
}

pub(super) fn member_lost_error(member: &Member, reason: &str) -> Error {
    let place = match &member.kind {
        MemberKind::Server { addresses, .. } => format!(" at {}", addresses.join(", ")),
        MemberKind::Worker { .. } => String::new(),
    };
    let text = format!("{}{place} was lost during the job: {reason}", member.name);
    Error::Cluster { text, exit: Exit::Io }
}
