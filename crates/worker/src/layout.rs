//! Where the parameters of a job lie. Made once by whoever starts the job, the same for all its tasks.

use std::time::Duration;

use matrix::MatrixSpec;
use rpc::CHUNK_BYTES;
use rpc::message::JobId;
use serde::{Deserialize, Serialize};

use crate::plan::element_size;

/// A lane of a server, and where to find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneAddress {
    /// Where the server takes connections, as `rpc::transport::Address` reads them; the first that can be reached is used.
    pub addresses: Vec<String>,
    /// The lane within its server.
    pub lane: u16,
}

impl std::fmt::Display for LaneAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = self.addresses.first().map_or("without an address", String::as_str);
        write!(f, "{address} (lane {})", self.lane)
    }
}

/// Which lane holds which partition, and all else that an agent must know of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobLayout {
    /// The job.
    pub job: JobId,
    /// Its tasks.
    pub task_count: u32,
    /// Longest wait of a task for others, and for a server that is lost.
    pub wait_limit: Duration,
    /// Most bytes of pushes that a lane has not confirmed, and of pulls under way to one lane. A single frame may be
    /// larger.
    pub window_bytes: u64,
    /// By matrix id.
    pub matrices: Vec<MatrixSpec>,
    /// All lanes of the job. Indices of this list name lanes everywhere in an agent.
    pub lanes: Vec<LaneAddress>,
    /// For each matrix, for each partition, the lane that holds it.
    pub owners: Vec<Vec<u16>>,
    /// The lane that makes the sums of all-reduces.
    pub home: u16,
    /// Whether a prefetched pull may be used although its task has pushed to the matrix since. It then misses those
    /// pushes, so that a task need not see its own: weaker than what is promised otherwise, and good enough for
    /// optimizer rules, which only take a step from a slightly older point.
    #[serde(default)]
    pub prefetch_ignores_own_pushes: bool,
}

/// A layout that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LayoutError {
    /// A matrix that cannot be.
    #[error(transparent)]
    Matrix(#[from] matrix::Error),
    /// A number that does not fit the others.
    #[error("layout of job {job}: {what} is {actual}, expected {expected}")]
    Field {
        /// The job.
        job: JobId,
        /// What is wrong.
        what: String,
        /// What it is.
        actual: u64,
        /// What it may be.
        expected: String,
    },
}

impl JobLayout {
    /// The wait limit as it stands in requests: at least 1, for 0 means none.
    pub(crate) fn wait_ms(&self) -> u32 {
        u32::try_from(self.wait_limit.as_millis()).unwrap_or(u32::MAX).max(1)
    }

    /// Checks that every partition has a lane, every lane an address, and every number a meaning.
    pub fn check(&self) -> Result<(), LayoutError> {
        let fault = |what: String, actual: u64, expected: String| {
            Err(LayoutError::Field { job: self.job, what, actual, expected })
        };
        let lane_count = self.lanes.len();
        if lane_count == 0 || lane_count > usize::from(u16::MAX) {
            return fault("the number of lanes".into(), lane_count as u64, format!("1 to {}", u16::MAX));
        }
        if self.task_count == 0 {
            return fault("task_count".into(), 0, "at least 1".into());
        }
        if self.window_bytes == 0 {
            return fault("window_bytes".into(), 0, "at least 1".into());
        }
        if usize::from(self.home) >= lane_count {
            return fault("home".into(), u64::from(self.home), format!("below {lane_count}"));
        }
        if let Some(i) = self.lanes.iter().position(|lane| lane.addresses.is_empty()) {
            return fault(format!("the number of addresses of lane {i}"), 0, "at least 1".into());
        }
        if self.owners.len() != self.matrices.len() {
            let what = "the number of matrices with owners".into();
            return fault(what, self.owners.len() as u64, self.matrices.len().to_string());
        }
        for (spec, owners) in self.matrices.iter().zip(&self.owners) {
            spec.check()?;
            let row_bytes = spec.columns_of_table() * element_size(spec.element);
            if row_bytes > CHUNK_BYTES {
                let what = format!("the bytes of a row of matrix {:?}", spec.name);
                return fault(what, row_bytes as u64, format!("at most {CHUNK_BYTES}, what a frame holds"));
            }
            let count = spec.partitioner.partition_count();
            if owners.len() as u64 != u64::from(count) {
                let what = format!("the number of owners of matrix {:?}", spec.name);
                return fault(what, owners.len() as u64, format!("{count}, one a partition"));
            }
            if let Some(owner) = owners.iter().find(|owner| usize::from(**owner) >= lane_count) {
                let what = format!("an owner of matrix {:?}", spec.name);
                return fault(what, u64::from(*owner), format!("below {lane_count}"));
            }
        }
        Ok(())
    }

    /// For each matrix the partitions of a lane, ascending: what `OpenJob` says to it.
    pub fn held_by(&self, lane: u16) -> Vec<Vec<u32>> {
        (0..self.owners.len()).map(|matrix| self.held_of(matrix, lane)).collect()
    }

    /// The partitions of a matrix that a lane holds, ascending.
    pub(crate) fn held_of(&self, matrix: usize, lane: u16) -> Vec<u32> {
        let owners = (0u32..).zip(&self.owners[matrix]);
        owners.filter(|(_, owner)| **owner == lane).map(|(partition, _)| partition).collect()
    }
}

/// The lane of each of `partition_count` partitions: contiguous blocks, so that a range of keys meets few lanes, whose
/// sizes differ by at most one, so that no lane carries more than its part. With fewer partitions than lanes some lanes
/// hold nothing.
///
/// # Panics
/// When there is no lane.
pub fn spread(partition_count: u32, lane_count: u16) -> Vec<u16> {
    assert!(lane_count > 0, "partitions need a lane");
    let lane = |i: u32| (u64::from(i) * u64::from(lane_count) / u64::from(partition_count)) as u16;
    (0..partition_count).map(lane).collect()
}

#[cfg(test)]
mod tests;
