//! Which failure of the tasks of a job is told: see [`crate::run::failure`].

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use master::JobEvent;
use rpc::message::{Member, MemberKind};

use super::{FromWorker, JobRun, POLL_INTERVAL, ToWorker};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::failure::FailureRank;

/// Longest wait for tasks that may fail before the batch at which one has failed.
const FIRST_FAILURE_LIMIT: Duration = Duration::from_secs(3);

impl JobRun<'_> {
    pub(super) fn failed_at(&self, worker: u32, error: &str, exit: u8) -> Error {
        Error::Cluster { text: format!("worker {}: {error}", self.name(worker)), exit: Exit::from_code(exit) }
    }

    /// A task has failed. Others may be about to, and which is told must not depend on who was faster: all go on to where the
    /// first has failed.
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
                // What the tasks say now may follow from that.
                JobEvent::MemberLost { member, reason } => return member_lost_error(&member, &reason),
                JobEvent::Cancelled => self.cancelled = true,
                JobEvent::Session { .. } | JobEvent::MemberReconnected { .. } | JobEvent::Timeout => {}
            }
        }
        error
    }

    /// What has ended the job: the loss of a member, when there was one, and not what followed from it.
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
    let text = format!("{}{place} is gone in the middle of the job: {reason}", member.name);
    Error::Cluster { text, exit: Exit::Io }
}
