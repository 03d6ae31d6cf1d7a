//! Chooses which failure of a job's tasks is reported: see [`crate::failure`].

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use job::Exit;

use crate::driver::Driver;
use crate::error::Error;
use crate::failure::FailureRank;
use crate::messages::ToWorker;
use crate::phase::{Failing, Phase};

/// Maximum wait for tasks that may fail before the batch of the first failure.
const FIRST_FAILURE_LIMIT: Duration = Duration::from_secs(3);

impl Driver {
    /// The name of a worker in messages to the user.
    pub fn worker_name(&self, worker: u32) -> String {
        let info = self.config.workers.iter().find(|info| info.id == worker);
        info.and_then(|info| info.name.clone()).unwrap_or_else(|| worker.to_string())
    }

    /// The error of a worker in terms of the job.
    pub fn worker_error(
        &self,
        worker: u32,
        task: Option<u32>,
        error: &str,
        (exit, is_loss): (u8, bool),
    ) -> Error {
        let is_named = self.config.workers.iter().any(|info| info.id == worker && info.name.is_some());
        let text = match (is_named, task) {
            (true, Some(task)) => format!("worker {}: task {task} failed: {error}", self.worker_name(worker)),
            (true, None) => format!("worker {}: {error}", self.worker_name(worker)),
            (false, _) => error.to_owned(),
        };
        if is_loss { Error::Lost { text } } else { Error::Cluster { text, exit: Exit::from_code(exit) } }
    }

    /// Handles a failure. If it is that of a task, other tasks may be about to fail, and the reported failure must not
    /// depend on which task is faster, so all tasks read on to the position of the failure.
    pub fn on_failed(&mut self, now: Instant, error: Error, rank: Option<FailureRank>) -> Result<(), Error> {
        let Some(rank) = rank else {
            return match &self.phase {
                // This failure is a consequence of the first one.
                Phase::Failing(_) => Ok(()),
                _ => Err(error),
            };
        };
        match &mut self.phase {
            Phase::Ended => {}
            Phase::Failing(failing) => {
                if rank < failing.rank {
                    (failing.rank, failing.error) = (rank, error);
                }
            }
            _ => {
                self.end_saves();
                let (finished, deadline) = (BTreeSet::new(), now + FIRST_FAILURE_LIMIT);
                self.phase = Phase::Failing(Failing { rank, error, finished, deadline });
                self.send_to_all(&ToWorker::FinishReading { position: rank.limit() });
            }
        }
        Ok(())
    }

    pub fn on_reading_finished(&mut self, worker: u32) {
        if let Phase::Failing(failing) = &mut self.phase {
            failing.finished.insert(worker);
        }
    }

    /// Ends the job with the first failure, when no task can fail before it, or when that takes too long.
    pub fn check_failing(&mut self, now: Instant) -> Result<(), Error> {
        let worker_count = self.config.workers.len();
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Failing(failing) if failing.finished.len() == worker_count || now >= failing.deadline => {
                Err(failing.error)
            }
            phase => {
                self.phase = phase;
                Ok(())
            }
        }
    }
}
