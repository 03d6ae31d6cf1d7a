//! The parameters of KMeans.

use algo::param::{Bounds, ParamKind, words};
use serde::{Deserialize, Serialize};

algo::choices! {
    /// How records are assigned and centres moved.
    pub(super) enum Method {
        Lloyd = "lloyd": "all records at each step, kept in memory; exact", reads MAX_ITERATIONS, TOLERANCE;
        MiniBatch = "mini_batch": "a batch at each step, for data of any size", reads EPOCHS, BATCH_SIZE;
    }

    /// How the first centres are chosen.
    pub(super) enum Seeding {
        PlusPlus = "kmeans++";
        Parallel = "kmeans||";
        Random = "random";
    }

    /// What is near.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Distance {
        /// `|x - c|`.
        Euclidean = "euclidean";
        /// `1 - x . c / (|x| |c|)`.
        Cosine = "cosine";
    }
}

algo::params! {
    pub(super) const PARAMETERS = [
        /// Number of clusters
        pub(super) CLUSTERS = "k": ParamKind::Integer { low: 1, high: CLUSTER_LIMIT }, "8", "clusters";
        /// Method
        pub(super) METHOD = "method": ParamKind::Choice(words::<Method>), "lloyd";
        /// Distance of a record from a centre
        pub(super) DISTANCE = "distance": ParamKind::Choice(words::<Distance>), "euclidean";
        /// Choice of the first centres among the records; kmeans|| reads the data less often, for large k
        pub(super) SEEDING = "init": ParamKind::Choice(words::<Seeding>), "kmeans++";
        /// Largest number of iterations
        pub(super) MAX_ITERATIONS = "max_iterations": ParamKind::Integer { low: 1, high: 1_000_000 }, "300", "iterations";
        /// Training ends when an iteration lowers the inertia by no more than this share of it
        pub(super) TOLERANCE = "tolerance": ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::OpenHigh }, "0.000001";
        /// Passes over the data
        pub(super) EPOCHS = "epochs": ParamKind::Integer { low: 1, high: 1_000_000 }, "4", "passes";
        /// Records per step
        pub(super) BATCH_SIZE = "batch_size": ParamKind::Integer { low: 1, high: 1 << 20 }, "1024", "records";
    ];
}

/// Largest k: a row of centres has one f32 per cluster.
const CLUSTER_LIMIT: u64 = 65_536;
