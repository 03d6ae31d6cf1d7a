//! KMeans: k centres such that the sum of the squared distances of the records from their nearest centres is small.
//!
//! **Sources.** Lloyd, "Least squares quantization in PCM", 1982 (`method=lloyd`); Sculley, "Web-scale k-means
//! clustering", WWW 2010, algorithm 1 (`method=mini_batch`); the first centres: see `seeding`; `distance=cosine` is the
//! spherical k-means of Dhillon and Modha, 2001: records and centres have the length 1.
//!
//! **Notation.** n records of a task, d features that occur in them, k centres. X: n x d; C: d x k; S: d x k, the sums of
//! the records of each cluster by weight; N: k, the weights.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `centres` | features x k, sparse by hash | f32 | assign |
//! | `norms` | 1 x k: `|c|^2` | f64 | assign |
//! | `sums`, in training | features x k, sparse by hash: S | f64 | add |
//! | `counts`, in training | 1 x k: N | f64 | add |
//! | `owners`, in training | features x 1: the first task that has the feature | i64 | min |
//!
//! **An iteration** of a task: pull S of its features and N; C = S / N; assign the records whose nearest centre may have
//! changed; push the changes of S and N; tick. S and N are sums, so every task sees the same centres, and mini-batches
//! are the same with records that are only added: S / N is then the running mean of algorithm 1.
//!
//! **Cost** of an iteration: at most 2 n d k multiply-adds, fewer as clusters come to rest; 8 d k bytes pulled and as
//! many pushed.

mod exchange;
mod lloyd;
mod mini_batch;
mod points;
mod score;
mod seeding;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{BatchSize, Shuffle};
use matrix::{ElementType, MatrixId, MatrixSpec, Partitioner, PushRule, Storage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use score::ClusterScorer;

use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family, RecordNeeds};
use algo::job::{DataFacts, Epochs, Job, Needs, Output, Scorer, TableLayout, TrainTask};
use algo::metric::MetricAccumulator;
use algo::metric::named::{MergeRule, NamedAccumulator, NamedMetric};
use algo::param::{Bounds, CheckedParams, Choice, ParamKind, words};
use algo::task_loop::{Learner, TaskState};

/// Clusters of records.
pub const FAMILY: Family = Family {
    name: "kmeans",
    algorithms: &[AlgorithmRow {
        name: "kmeans",
        title: "KMeans: clusters of records around their means",
        parameters: &PARAMETERS,
        configure: |given| Ok(Arc::new(KMeans::new(given)?)),
    }],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: |_| Ok(()),
};

algo::choices! {
    /// How records are assigned and centres moved.
    enum Method {
        Lloyd = "lloyd": "all records at each step, kept in memory; exact", reads MAX_ITERATIONS, TOLERANCE;
        MiniBatch = "mini_batch": "a batch at each step, for data of any size", reads EPOCHS, BATCH_SIZE;
    }

    /// How the first centres are chosen.
    enum Seeding {
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
    const PARAMETERS = [
        /// Number of clusters
        CLUSTERS = "k": ParamKind::Integer { low: 1, high: CLUSTER_LIMIT }, "8", "clusters";
        /// Method
        METHOD = "method": ParamKind::Choice(words::<Method>), "lloyd";
        /// Distance of a record from a centre
        DISTANCE = "distance": ParamKind::Choice(words::<Distance>), "euclidean";
        /// Choice of the first centres among the records; kmeans|| reads the data less often, for large k
        SEEDING = "init": ParamKind::Choice(words::<Seeding>), "kmeans++";
        /// Largest number of iterations
        MAX_ITERATIONS = "max_iterations": ParamKind::Integer { low: 1, high: 1_000_000 }, "300", "iterations";
        /// Training ends when an iteration lowers the inertia by no more than this share of it
        TOLERANCE = "tolerance": ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::OpenHigh }, "0.000001";
        /// Passes over the data
        EPOCHS = "epochs": ParamKind::Integer { low: 1, high: 1_000_000 }, "4", "passes";
        /// Records per step
        BATCH_SIZE = "batch_size": ParamKind::Integer { low: 1, high: 1 << 20 }, "1024", "records";
    ];
}

/// Largest k: a row of centres has one f32 per cluster.
const CLUSTER_LIMIT: u64 = 65_536;
/// Records that are read at once by a method that keeps all in memory.
const READ_SIZE: usize = 4096;

/// A job of KMeans.
#[derive(Clone, Debug)]
struct KMeans {
    checked: CheckedParams,
    clusters: usize,
    method: Method,
    distance: Distance,
    seeding: Seeding,
    max_iterations: u64,
    tolerance: f64,
    epochs: u64,
    batch_size: usize,
}

impl KMeans {
    fn new(given: &BTreeMap<String, String>) -> Result<Self, Error> {
        let checked = CheckedParams::new("kmeans", &PARAMETERS, given)?;
        Ok(Self {
            clusters: checked.integer(&CLUSTERS) as usize,
            method: checked.choice(&METHOD),
            distance: checked.choice(&DISTANCE),
            seeding: checked.choice(&SEEDING),
            max_iterations: checked.integer(&MAX_ITERATIONS),
            tolerance: checked.real(&TOLERANCE),
            epochs: checked.integer(&EPOCHS),
            batch_size: checked.integer(&BATCH_SIZE) as usize,
            checked,
        })
    }
}

/// A model without its matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Number of clusters.
    pub clusters: usize,
    pub distance: Distance,
}

impl Model {
    const CENTRES: MatrixId = MatrixId(0);
    const NORMS: MatrixId = MatrixId(1);
    const SUMS: MatrixId = MatrixId(2);
    const COUNTS: MatrixId = MatrixId(3);
    const OWNERS: MatrixId = MatrixId(4);

    /// A matrix with a row for each feature.
    fn of_features(
        &self,
        name: &str,
        element: ElementType,
        rule: PushRule,
        partition_count: u32,
    ) -> MatrixSpec {
        MatrixSpec::sparse(name, element, self.clusters as u64, rule, partition_count)
    }

    /// A matrix of one row.
    fn of_clusters(&self, name: &str, rule: PushRule) -> MatrixSpec {
        let partitioner = Partitioner::Range { partition_count: 1 };
        let spec = self.of_features(name, ElementType::F64, rule, 1);
        MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..spec }
    }
}

/// The metrics of clusters, in this order.
fn metrics() -> Vec<NamedMetric> {
    vec![
        NamedMetric::new("inertia", MergeRule::Sum),
        NamedMetric::new("simplified_silhouette", MergeRule::Mean),
    ]
}

fn accumulator() -> MetricAccumulator {
    MetricAccumulator::Named(NamedAccumulator { metrics: metrics(), ..NamedAccumulator::default() })
}

fn empty_notice(empty: usize, clusters: usize) -> String {
    format!(
        "{empty} of {clusters} clusters have no records: the data have fewer distinct records than clusters; choose a \
         smaller k"
    )
}

impl family::Model for Model {
    fn column_names(&self, matrix: &str, count: usize) -> Vec<String> {
        match (matrix, count) {
            (_, 1) => vec!["value".to_owned()],
            _ => (0..count).map(|cluster| format!("cluster_{cluster}")).collect(),
        }
    }

    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> Value {
        serde_json::to_value(self).expect("a model has no keys but texts")
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        vec![
            self.of_features("centres", ElementType::F32, PushRule::Assign, partition_count),
            self.of_clusters("norms", PushRule::Assign),
        ]
    }

    fn output(&self) -> Output {
        Output::Columns(["cluster", "distance"].map(str::to_owned).to_vec())
    }

    fn record_needs(&self) -> RecordNeeds {
        let requires_entries = self.distance == Distance::Cosine;
        RecordNeeds { requires_entries, ..RecordNeeds::of(&self.output(), None) }
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![("k", self.clusters.to_string()), ("distance", self.distance.name().to_owned())]
    }

    fn bound_tables(&self) -> Option<&'static str> {
        Some("the table 'norms' has the squared lengths of the columns of 'centres'")
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(ClusterScorer::new(self))
    }

    fn metric_accumulator(&self) -> MetricAccumulator {
        accumulator()
    }
}

impl Job for KMeans {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn needs(&self) -> Needs {
        let (epochs, size) = match self.method {
            // The tasks keep the records in a form of their own.
            Method::Lloyd => (1, READ_SIZE),
            Method::MiniBatch => (self.epochs, self.batch_size),
        };
        Needs {
            uses_labels: false,
            requires_entries: self.distance == Distance::Cosine,
            repeats_validation: self.method == Method::Lloyd,
            saves_within_epochs: self.method == Method::MiniBatch,
            epochs: Epochs::Fixed(epochs),
            batch_size: BatchSize::Fixed(size),
            shuffle: if epochs > 1 { Shuffle::Batches } else { Shuffle::None },
            ..Needs::default()
        }
    }

    fn model(&self, _: &DataFacts, _: Option<&dyn family::Model>) -> Result<Arc<dyn family::Model>, Error> {
        Ok(Arc::new(Model { clusters: self.clusters, distance: self.distance }))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let partition_count = layout.partition_count;
        let own: &Model = model.of()?;
        let mut specs = model.matrices(partition_count);
        let owners = own.of_features("owners", ElementType::I64, PushRule::Min, partition_count);
        specs.push(own.of_features("sums", ElementType::F64, PushRule::Add, partition_count));
        specs.push(own.of_clusters("counts", PushRule::Add));
        specs.push(MatrixSpec { columns: 1, ..owners });
        Ok(specs)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        match self.method {
            Method::Lloyd => lloyd::begin(self, task, saved),
            Method::MiniBatch => mini_batch::begin(self, task, saved),
        }
    }
    fn divergence_advice(&self) -> String {
        "The squared distances of the records are too large: scale the features".to_owned()
    }
}
