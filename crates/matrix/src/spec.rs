//! The declared structure of a matrix.

use serde::{Deserialize, Serialize};

use crate::clock::Consistency;
use crate::element::ElementType;
use crate::rule::PushRule;

/// Along what a matrix is cut into partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Each row id owns a short vector.
    Row,
    /// A few very long rows, cut into column ranges.
    Column,
}

/// How a partition stores its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// Contiguous arrays over a contiguous key range.
    Dense,
    /// Open addressing over arbitrary keys; a row is created when it is first pushed.
    Sparse,
}

/// From a key to a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Partitioner {
    /// Equal contiguous ranges of keys.
    Range {
        /// Number of partitions.
        partition_count: u32,
    },
    /// By the mixed key (`math::hash::mix64`).
    Hash {
        /// Number of partitions.
        partition_count: u32,
    },
    /// The caller's own ranges: partition `i` holds the keys `starts[i]..starts[i + 1]`, the last one up to the end.
    Explicit {
        /// First key of each partition, ascending, beginning with 0.
        starts: Vec<u64>,
    },
}

/// The first values of rows, the same wherever and whenever a row is created: a function of the seed, the matrix and
/// the row alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Initializer {
    /// 0.
    Zero,
    /// One value everywhere.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform in `[low, high)`.
    Uniform {
        /// Smallest.
        low: f64,
        /// Bound.
        high: f64,
    },
    /// Normal with mean 0.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
}

/// The declared structure of a matrix: `rows x columns` of one element type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixSpec {
    /// Name, unique in the job.
    pub name: String,
    /// Type of the elements.
    pub element: ElementType,
    /// Number of rows; keys of rows are below it. `1 << 63` when it is not known.
    pub rows: u64,
    /// Number of columns.
    pub columns: u64,
    /// Along what it is partitioned.
    pub axis: Axis,
    /// How it is stored.
    pub storage: Storage,
    /// From key to partition.
    pub partitioner: Partitioner,
    /// First values.
    pub initializer: Initializer,
    /// How pushes merge.
    pub rule: PushRule,
    /// What reads may miss.
    pub consistency: Consistency,
    /// Seed of the initializer.
    pub seed: u64,
}
