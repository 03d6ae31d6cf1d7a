//! What the program knows of the family: its row, its job and its model.

use std::sync::Arc;

use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family, ModelFacts, TextFormat};
use algo::job::{DataFacts, Epochs, Job, Needs, Output, Scorer, TableLayout, TrainTask};
use algo::metric::MetricAccumulator;
use algo::metric::named::{MergeRule, NamedAccumulator, NamedMetric};
use algo::param::CheckedParams;
use algo::task_loop::{Learner, TaskState};
use data::{BatchSize, Shuffle};
use matrix::{Agent, ElementType, MatrixSpec, PushRule};
use serde_json::Value;

use super::job::Lda;
use super::model::Model;
use super::params::PARAMETERS;
use super::score::TopicScorer;
use super::{functions, train};

/// Topics of documents.
pub const FAMILY: Family = Family {
    name: "topics",
    algorithms: &[AlgorithmRow {
        name: "lda",
        title: "LDA: topics of documents (latent Dirichlet allocation)",
        parameters: &PARAMETERS,
        configure: |given| Ok(Arc::new(Lda::new(given)?)),
    }],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: functions::register,
};

/// Documents that are read at once.
const READ_SIZE: usize = 4096;

impl Job for Lda {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn needs(&self) -> Needs {
        Needs {
            uses_labels: false,
            // The tasks keep the documents in a form of their own.
            epochs: Epochs::Fixed(1),
            batch_size: BatchSize::Fixed(READ_SIZE),
            shuffle: Shuffle::None,
            repeats_validation: true,
            requires_bsp: true,
            ..Needs::default()
        }
    }

    fn model(
        &self,
        _: &DataFacts,
        previous: Option<&dyn family::Model>,
    ) -> Result<Arc<dyn family::Model>, Error> {
        if previous.is_some() {
            return Err(Error::unsuitable(
                "lda cannot go on from a model, which has no topics of the tokens of its documents: train without --from on \
                 all documents. A training that was interrupted goes on from its checkpoint",
            ));
        }
        let (inference_sweeps, inference_seed) = (self.inference_sweeps, self.inference_seed);
        Ok(Arc::new(Model { topics: self.topics, inference_sweeps, inference_seed }))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        // A task alone writes its rows, and several add up theirs.
        let rule = if layout.task_count == 1 { PushRule::Assign } else { PushRule::Add };
        let own: &Model = model.of()?;
        let mut specs = own.matrices_with(rule, layout.partition_count);
        specs.push(MatrixSpec::sparse("words", ElementType::I64, 1, PushRule::Add, layout.partition_count));
        Ok(specs)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        train::begin(self, task, saved)
    }
}

impl family::Model for Model {
    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> Value {
        serde_json::to_value(self).expect("a model has no keys but texts")
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        self.matrices_with(PushRule::Assign, partition_count)
    }

    fn output(&self) -> Output {
        Output::Columns((0..self.topics).map(|topic| format!("topic_{topic}")).collect())
    }

    fn column_names(&self, matrix: &str, count: usize) -> Vec<String> {
        let word = if matrix == "top_words" { "word" } else { "topic" };
        let mut names: Vec<String> = (0..count).map(|number| format!("{word}_{number}")).collect();
        if matrix == "prior" {
            names.truncate(self.topics);
            names.extend(["beta", "vocabulary"].map(str::to_owned));
        }
        names
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![("topics", self.topics.to_string())]
    }

    fn bound_tables(&self) -> Option<&'static str> {
        Some("the table 'totals' has the sums of the columns of 'topics'")
    }

    fn has_feature_rows(&self, matrix: &str) -> bool {
        matrix == "topics"
    }

    fn document(
        &self,
        format: TextFormat,
        facts: &ModelFacts<'_>,
        agent: &mut dyn Agent,
    ) -> Option<Result<String, Error>> {
        matches!(format, TextFormat::Text { tree: None }).then(|| self.text(facts, agent))
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(TopicScorer::new(self))
    }

    fn metric_accumulator(&self) -> MetricAccumulator {
        let metrics = vec![NamedMetric::new("perplexity", MergeRule::ExpMean)];
        MetricAccumulator::Named(NamedAccumulator { metrics, ..NamedAccumulator::default() })
    }
}
