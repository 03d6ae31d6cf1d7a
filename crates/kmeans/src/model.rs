//! What scoring with clusters needs besides the matrices, saved with them as JSON; and the metrics.

use algo::metric::MetricAccumulator;
use algo::metric::named::{MergeRule, NamedAccumulator, NamedMetric};
use matrix::{ElementType, MatrixId, MatrixSpec, Partitioner, PushRule, Storage};
use serde::{Deserialize, Serialize};

use super::params::Distance;

/// A model without its matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Number of clusters.
    pub clusters: usize,
    pub distance: Distance,
}

impl Model {
    pub(super) const CENTRES: MatrixId = MatrixId(0);
    pub(super) const NORMS: MatrixId = MatrixId(1);
    pub(super) const SUMS: MatrixId = MatrixId(2);
    pub(super) const COUNTS: MatrixId = MatrixId(3);
    pub(super) const OWNERS: MatrixId = MatrixId(4);

    /// A matrix with a row for each feature.
    pub(super) fn of_features(
        &self,
        name: &str,
        element: ElementType,
        rule: PushRule,
        partition_count: u32,
    ) -> MatrixSpec {
        MatrixSpec::sparse(name, element, self.clusters as u64, rule, partition_count)
    }

    /// A matrix of one row.
    pub(super) fn of_clusters(&self, name: &str, rule: PushRule) -> MatrixSpec {
        let partitioner = Partitioner::Range { partition_count: 1 };
        let spec = self.of_features(name, ElementType::F64, rule, 1);
        MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..spec }
    }
}

/// The metrics of clusters, in this order.
pub(super) fn metrics() -> Vec<NamedMetric> {
    vec![
        NamedMetric::new("inertia", MergeRule::Sum),
        NamedMetric::new("simplified_silhouette", MergeRule::Mean),
    ]
}

pub(super) fn accumulator() -> MetricAccumulator {
    MetricAccumulator::Named(NamedAccumulator { metrics: metrics(), ..NamedAccumulator::default() })
}

pub(super) fn empty_notice(empty: usize, clusters: usize) -> String {
    format!(
        "{empty} of {clusters} clusters have no records: the data have fewer distinct records than clusters; choose a \
         smaller k"
    )
}
