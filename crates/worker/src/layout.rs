//! Where the parameters of a job lie. Made once by whoever starts the job, the same for all its tasks.

use std::time::Duration;

use matrix::{ElementType, MatrixSpec};
use rpc::message::JobId;
use rpc::{ROW_BYTES, WireType};
use serde::{Deserialize, Serialize};

/// A lane of a server, and where to find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneAddress {
    /// Where the server takes connections, as `rpc::transport::Address` reads them; the first that can be reached is used.
    pub addresses: Vec<String>,
    /// The lane within its server.
    pub lane: u16,
    /// The name of its server, for people; empty where it has none.
    #[serde(default)]
    pub server: String,
}

impl std::fmt::Display for LaneAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = self.addresses.first().map_or("without an address", String::as_str);
        match self.server.as_str() {
            "" => write!(f, "{address} (lane {})", self.lane),
            server => write!(f, "{server} at {address} (lane {})", self.lane),
        }
    }
}

/// What a task asks of the servers before it needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prefetch {
    /// Nothing.
    Off,
    /// What the next step reads, behind the tick of this one. Reads see what they would see without it.
    #[default]
    Exact,
    /// What the next step reads, before this one computes, so that its answer misses the pushes of this step: a task need
    /// not see its last own pushes. Weaker than what is promised otherwise, and good enough for optimizer rules, which
    /// only take a step from a slightly older point. What others have pushed is as fresh as the consistency says. Under
    /// BSP no read may miss anything: there it is `Exact`.
    Stale,
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
    /// For each matrix, how its values travel in pulls and pushes; empty: all as they are. Only values of `f32` matrices
    /// whose pushes add up can be rounded.
    #[serde(default)]
    pub wire: Vec<WireType>,
    /// What its tasks ask ahead.
    #[serde(default)]
    pub prefetch: Prefetch,
    /// Most bytes of rows that each task keeps to serve its pulls while they are fresh enough; 0: none. Shared out evenly
    /// over the matrices. Under ASP nothing is kept: no row would ever be read again.
    #[serde(default)]
    pub cache_bytes: u64,
}

/// A layout that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LayoutError {
    /// A matrix that cannot be.
    #[error(transparent)]
    Matrix(#[from] matrix::Error),
    /// A matrix whose values cannot travel as is wanted.
    #[error(
        "matrix {matrix:?} of {element:?} with rule {rule:?} cannot travel as {wire}: only f32 whose pushes add up is \
         rounded, send it as f32"
    )]
    Wire {
        /// The matrix.
        matrix: String,
        /// Type of its elements.
        element: ElementType,
        /// How its pushes merge.
        rule: &'static str,
        /// How its values were to travel.
        wire: &'static str,
    },
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
            if spec.row_bytes() > ROW_BYTES as u64 {
                let what = format!("the bytes of a row of matrix {:?} with its slots", spec.name);
                return fault(what, spec.row_bytes(), format!("at most {ROW_BYTES}, what a frame holds"));
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
        self.check_wire()
    }

    fn check_wire(&self) -> Result<(), LayoutError> {
        if !self.wire.is_empty() && self.wire.len() != self.matrices.len() {
            let (job, actual) = (self.job, self.wire.len() as u64);
            let expected = format!("{}, one a matrix, or none", self.matrices.len());
            let what = "the number of forms in which values travel".into();
            return Err(LayoutError::Field { job, what, actual, expected });
        }
        for (spec, wire) in self.matrices.iter().zip(&self.wire) {
            if *wire != WireType::F32 && !can_be_rounded(spec) {
                let (matrix, element, rule) = (spec.name.clone(), spec.element, spec.rule.name());
                return Err(LayoutError::Wire { matrix, element, rule, wire: wire.name() });
            }
        }
        Ok(())
    }

    /// How the values of a matrix travel.
    pub fn wire_of(&self, matrix: usize) -> WireType {
        self.wire.get(matrix).copied().unwrap_or_default()
    }

    /// For each matrix the partitions of a lane, ascending: what `OpenJob` says to it.
    pub fn lane_partitions(&self, lane: u16) -> Vec<Vec<u32>> {
        (0..self.owners.len()).map(|matrix| self.lane_partitions_of(matrix, lane)).collect()
    }

    /// The partitions of a matrix that a lane holds, ascending.
    pub(crate) fn lane_partitions_of(&self, matrix: usize, lane: u16) -> Vec<u32> {
        let owners = (0u32..).zip(&self.owners[matrix]);
        owners.filter(|(_, owner)| **owner == lane).map(|(partition, _)| partition).collect()
    }
}

/// Whether values of a matrix may travel rounded: they are of `f32`, and what is taken from one push can be added to the
/// next.
pub fn can_be_rounded(spec: &MatrixSpec) -> bool {
    spec.element == ElementType::F32 && spec.rule.is_additive()
}

/// The lane of each of `partition_count` partitions: contiguous blocks, so that a range of keys meets few lanes, whose
/// sizes differ by at most one, so that no lane carries more than its part. With fewer partitions than lanes some lanes
/// hold nothing.
///
/// # Panics
/// When there is no lane.
pub fn assign_partitions(partition_count: u32, lane_count: u16) -> Vec<u16> {
    assert!(lane_count > 0, "partitions need a lane");
    let lane = |i: u32| (u64::from(i) * u64::from(lane_count) / u64::from(partition_count)) as u16;
    (0..partition_count).map(lane).collect()
}

#[cfg(test)]
mod tests;
