//! What the program knows of the family: its row, its job and its model.

use std::sync::Arc;

use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family, RecordNeeds};
use algo::job::{DataFacts, Epochs, Job, Needs, Output, Scorer, TableLayout, TrainTask};
use algo::metric::MetricAccumulator;
use algo::param::{CheckedParams, Choice};
use algo::task_loop::{Learner, TaskState};
use data::{BatchSize, Shuffle};
use matrix::{ElementType, MatrixSpec, PushRule};
use serde_json::Value;

use super::job::KMeans;
use super::model::{Model, accumulator};
use super::params::{Distance, Method, PARAMETERS};
use super::score::ClusterScorer;
use super::{lloyd, mini_batch};

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

/// Records that are read at once by a method that keeps all in memory.
const READ_SIZE: usize = 4096;

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
