//! Which failure of the tasks of a job is told: see [`crate::run::failure`].

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use master::Event;
use rpc::message::{Member, MemberKind};

use super::{Course, FromWorker, LOOK_EVERY, ToWorker};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::failure::Rank;

/// Longest wait for tasks that may fail before the batch at which one has failed.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

impl Course<'_> {
    pub(super) fn failed_at(&self, worker: u32, error: &str, exit: u8) -> Error {
        Error::Cluster { text: format!("worker {}: {error}", self.name(worker)), exit: Exit::from_code(exit) }
    }

    /// A task has failed. Others may be about to, and which is told must not depend on who was faster: all go on to where the
    /// first has failed.
    pub(super) fn settle(&mut self, mut rank: Rank, mut error: Error) -> Error {
        let deadline = Instant::now() + SETTLE_LIMIT;
        for worker in &self.link.workers {
            self.send(worker.id, &ToWorker::Settle { position: rank.limit() });
        }
        let mut settled = BTreeSet::new();
        while settled.len() < self.link.workers.len() && Instant::now() < deadline {
            match self.link.receive(LOOK_EVERY) {
                Event::FromTask { worker, body } => match serde_json::from_value(body) {
                    Ok(FromWorker::Settled {}) => drop(settled.insert(worker)),
                    Ok(FromWorker::Failed { error: text, exit, rank: Some(other) }) if other < rank => {
                        (rank, error) = (other, self.failed_at(worker, &text, exit));
                    }
                    _ => {}
                },
                // What the tasks say now may follow from that.
                Event::Gone { member, reason } => return gone(&member, &reason),
                Event::Cancelled => self.cancelled = true,
                Event::Session { .. } | Event::Back { .. } | Event::Nothing => {}
            }
        }
        error
    }

    /// What has ended the job: the loss of a member, when there was one, and not what followed from it.
    pub(super) fn cause(&self, error: Error) -> Error {
        while self.link.member_is_gone.is_raised() {
            match self.link.receive(Duration::ZERO) {
                Event::Gone { member, reason } => return gone(&member, &reason),
                Event::Nothing | Event::Cancelled => break,
                Event::FromTask { .. } | Event::Session { .. } | Event::Back { .. } => {}
            }
        }
        error
    }
}

pub(super) fn gone(member: &Member, reason: &str) -> Error {
    let place = match &member.kind {
        MemberKind::Server { addresses, .. } => format!(" at {}", addresses.join(", ")),
        MemberKind::Worker { .. } => String::new(),
    };
    let text = format!("{}{place} is gone in the middle of the job: {reason}", member.name);
    Error::Cluster { text, exit: Exit::Io }
}
