//! Why the last jobs were closed, so that late requests get the reason.

use std::collections::BTreeMap;

use rpc::message::JobId;
use serde::{Deserialize, Serialize};

/// Most closed jobs whose reasons are kept.
const COUNT_LIMIT: usize = 64;

/// The reasons for which jobs were closed, at most 64. Jobs with the largest numbers stay: those are the last ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ClosedJobs {
    reasons: BTreeMap<JobId, String>,
}

impl ClosedJobs {
    pub(crate) fn add(&mut self, job: JobId, reason: String) {
        self.reasons.insert(job, reason);
        while self.reasons.len() > COUNT_LIMIT {
            self.reasons.pop_first();
        }
    }

    /// Forgets a job, which is opened again.
    pub(crate) fn remove(&mut self, job: JobId) {
        self.reasons.remove(&job);
    }

    /// Why a job was closed, or `None` if it was not, or is forgotten.
    pub(crate) fn reason(&self, job: JobId) -> Option<&str> {
        self.reasons.get(&job).map(String::as_str)
    }
}
