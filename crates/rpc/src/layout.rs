//! The layout of a job: which lanes have its parameters. The starter of the job makes it once, and it is the same for
//! all tasks.

use std::time::Duration;

use matrix::{ElementType, FunctionTable, MatrixSpec, Prefetch};
use serde::{Deserialize, Serialize};

use crate::message::{JobId, Member, MemberKind, SessionLane, Standby};
use crate::{ROW_BYTES, WireType};

/// A lane of a server and its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneAddress {
    /// Addresses of the server in the format of `rpc::transport::Address`. The first that can be reached is used.
    pub addresses: Vec<String>,
    /// Number of the lane within its server.
    pub lane: u16,
    /// Name of the server in messages; empty if it has none.
    #[serde(default)]
    pub server: String,
    /// The lane that has a replica of this one, if the job is replicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<Standby>,
}

impl LaneAddress {
    /// A lane of a server without a name, without a standby.
    pub fn new(addresses: Vec<String>, lane: u16) -> Self {
        Self { addresses, lane, server: String::new(), standby: None }
    }
}

impl From<SessionLane> for LaneAddress {
    fn from(SessionLane { addresses, lane, standby }: SessionLane) -> Self {
        Self { standby, ..Self::new(addresses, lane) }
    }
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

/// The lanes of all partitions, and everything else that an agent must know of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobLayout {
    pub job: JobId,
    /// Number of tasks of the job.
    pub task_count: u32,
    /// Longest time for which a task waits for other tasks, and for a server without a connection.
    pub wait_limit: Duration,
    /// Most bytes of pushes that a lane has not acknowledged, and of pulls under way to one lane. A single frame may be
    /// larger.
    pub window_bytes: u64,
    /// By matrix id.
    pub matrices: Vec<MatrixSpec>,
    /// All lanes of the job. An agent names lanes by their index in this list.
    pub lanes: Vec<LaneAddress>,
    /// For each matrix and each partition, the lane that owns it.
    pub owners: Vec<Vec<u16>>,
    /// The lane that computes the sums of all-reduces.
    pub home: u16,
    /// For each matrix, the encoding of its values in pulls and pushes. If empty, no values are rounded. Only values of
    /// `f32` matrices whose pushes add up can be rounded.
    #[serde(default)]
    pub wire: Vec<WireType>,
    /// When its tasks send prefetches.
    #[serde(default)]
    pub prefetch: Prefetch,
}

/// An error of a layout.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LayoutError {
    /// The spec of a matrix is invalid.
    #[error(transparent)]
    Matrix(#[from] matrix::Error),
    /// The values of a matrix cannot be rounded as requested.
    #[error(
        "matrix {matrix:?} of {element:?} with rule {rule:?} cannot be sent as {wire}: only f32 whose pushes add up \
         can be rounded, send it as f32"
    )]
    Wire {
        /// Name of the matrix.
        matrix: String,
        /// Type of its elements.
        element: ElementType,
        /// Its push rule.
        rule: &'static str,
        /// The requested encoding.
        wire: &'static str,
    },
    /// A number is out of range, or does not fit the others.
    #[error("layout of job {job}: {what} is {actual}, expected {expected}")]
    Field {
        job: JobId,
        /// What the number counts.
        what: String,
        /// The number.
        actual: u64,
        /// The allowed range.
        expected: String,
    },
}

impl JobLayout {
    /// The wait limit for requests, in milliseconds. It is at least 1, because 0 means no limit.
    pub fn wait_ms(&self) -> u32 {
        u32::try_from(self.wait_limit.as_millis()).unwrap_or(u32::MAX).max(1)
    }

    /// Checks that every partition has a lane, that every lane has an address, and that every number is in range.
    /// `functions` has the partitioners that the process knows.
    pub fn check(&self, functions: &FunctionTable) -> Result<(), LayoutError> {
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
            spec.check(functions)?;
            if spec.row_bytes() > ROW_BYTES as u64 {
                let what = format!("the bytes of a row of matrix {:?} with its slots", spec.name);
                return fault(what, spec.row_bytes(), format!("at most {ROW_BYTES}, the limit of a frame"));
            }
            let count = spec.partitioner.partition_count();
            if owners.len() as u64 != u64::from(count) {
                let what = format!("the number of owners of matrix {:?}", spec.name);
                return fault(what, owners.len() as u64, format!("{count}, one for each partition"));
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
            let expected = format!("{}, one for each matrix, or none", self.matrices.len());
            let what = "the number of wire types".into();
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

    /// The encoding of the values of a matrix.
    pub fn wire_of(&self, matrix: usize) -> WireType {
        if self.matrices[matrix].element == ElementType::I32 {
            return WireType::Packed;
        }
        self.wire.get(matrix).copied().unwrap_or_default()
    }

    /// For each matrix, the partitions of a lane, ascending, as `OpenJob` has them.
    pub fn lane_partitions(&self, lane: u16) -> Vec<Vec<u32>> {
        (0..self.owners.len()).map(|matrix| self.lane_partitions_of(matrix, lane)).collect()
    }

    /// The partitions of a matrix that a lane owns, ascending.
    pub fn lane_partitions_of(&self, matrix: usize, lane: u16) -> Vec<u32> {
        let owners = (0u32..).zip(&self.owners[matrix]);
        owners.filter(|(_, owner)| **owner == lane).map(|(partition, _)| partition).collect()
    }
}

/// Whether the values of a matrix may be rounded: they are `f32`, and the residual of one push can be added to the
/// next.
pub fn can_be_rounded(spec: &MatrixSpec) -> bool {
    spec.element == ElementType::F32 && spec.rule.is_additive()
}

/// The lane of each of `partition_count` partitions. Each lane gets a contiguous block, so that a range of keys has few
/// lanes. The sizes of the blocks differ by at most one, so that no lane has more than its share. If there are fewer
/// partitions than lanes, some lanes get none.
///
/// # Panics
/// When there is no lane.
pub fn assign_partitions(partition_count: u32, lane_count: u16) -> Vec<u16> {
    assert!(lane_count > 0, "partitions need a lane");
    let lane = |i: u32| (u64::from(i) * u64::from(lane_count) / u64::from(partition_count)) as u16;
    (0..partition_count).map(lane).collect()
}

/// The standby of each lane of these servers, in the order of servers and lanes: a lane of the next server, which has its lanes for copies after
/// its own ones.
///
/// # Errors
/// If there are fewer than two servers, or their numbers of lanes differ: the text says what is needed.
pub fn standbys_of(servers: &[Member]) -> Result<Vec<Standby>, String> {
    let counts = servers.iter().filter_map(|server| match &server.kind {
        MemberKind::Server { lanes, addresses, .. } => Some((server, *lanes, addresses)),
        MemberKind::Worker { .. } => None,
    });
    let all: Vec<(&Member, u16, &Vec<String>)> = counts.collect();
    if all.len() < 2 || all.iter().any(|(_, count, _)| *count != all[0].1) {
        let names: Vec<&str> = all.iter().map(|(server, ..)| server.name.as_str()).collect();
        return Err(format!(
            "replicas need at least two servers, all with the same --lanes: each has a replica of the partitions of another \
             one; there are {}",
            names.join(", ")
        ));
    }
    let next = (0..all.len()).map(|i| (all[i], all[(i + 1) % all.len()]));
    let standbys = next.flat_map(|((primary, count, _), (server, _, addresses))| {
        (0..count).map(move |lane| Standby {
            primary: primary.name.clone(),
            server: server.name.clone(),
            addresses: addresses.clone(),
            lane: count + lane,
        })
    });
    Ok(standbys.collect())
}
