//! What the program knows of the family: its row, its job and its model.

use std::sync::Arc;

use algo::error::Error;
use algo::family::{
    self, AlgorithmRow, Family, MissingTable, ModelFacts, NO_COEFFICIENTS, RecordNeeds, TextFormat,
};
use algo::job::{
    DataFacts, DataProfile, Epochs, Explanation, Job, Needs, Output, Resolution, Scorer, TableLayout,
    TrainTask,
};
use algo::labels::TrainingLabels;
use algo::metric::MetricAccumulator;
use algo::metric::ndcg::RankingAccumulator;
use algo::param::CheckedParams;
use algo::task_loop::{Learner, TaskState};
use data::{BatchSize, LabelRule, Shuffle};
use matrix::{Agent, ElementType, MatrixSpec, Partitioner, PushRule, Storage};
use serde_json::Value;

use super::constraints::Constraints;
use super::explain::explained;
use super::histogram::{partitions, store};
use super::model::{IMPORTANCE_COLUMNS, Model};
use super::objective::Objective;
use super::params::{self, Params};
use super::render::render;
use super::scoring::{TreeScorer, pull_trees};
use super::tree::{NODE_COLUMN_NAMES, NODE_COLUMNS};
use super::{auto, bins, train};

/// Boosted trees.
pub const FAMILY: Family = Family {
    name: "trees",
    algorithms: &[AlgorithmRow {
        name: "gbdt",
        title: "Gradient boosted decision trees",
        parameters: &params::PARAMETERS,
        configure: |given| {
            let (checked, params) = params::check(given)?;
            Ok(Arc::new(Gbdt { checked, params }))
        },
    }],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: partitions::register,
};

/// Records that are read at once.
const READ_SIZE: usize = 4096;

/// A job of boosted trees.
#[derive(Clone, Debug)]
struct Gbdt {
    checked: CheckedParams,
    params: Params,
}

impl Job for Gbdt {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn resolve_settings(
        &self,
        known: &DataProfile<'_>,
        previous: Option<&dyn family::Model>,
    ) -> Result<Resolution, Error> {
        Ok(auto::resolve_settings(
            &self.checked,
            &self.params,
            known,
            previous.map(|model| model.of()).transpose()?,
        ))
    }

    fn needs(&self) -> Needs {
        Needs {
            label_rule: self.params.objective.map_or(LabelRule::Any, |objective| objective.label_rule(None)),
            positive_label: self.params.positive_label.clone(),
            scan: true,
            quantiles: true,
            uses_fields: true,
            keep_zeros: true,
            // The tasks keep the records in a form of their own.
            epochs: Epochs::Fixed(1),
            batch_size: BatchSize::Fixed(READ_SIZE),
            shuffle: Shuffle::None,
            repeats_validation: true,
            validation_share: self.params.validation_share,
            early_stopping: self.params.early_stopping.clone(),
            requires_bsp: true,
            ..Needs::default()
        }
    }

    fn model(
        &self,
        facts: &DataFacts,
        previous: Option<&dyn family::Model>,
    ) -> Result<Arc<dyn family::Model>, Error> {
        let previous: Option<&Model> = previous.map(|model| model.of()).transpose()?;
        let labels = TrainingLabels::new(facts);
        let positive_label = self.needs().positive(&labels)?;
        let survey = facts.survey.as_ref().expect("the job needs quantiles");
        let objective = self.params.objective.expect("the settings are resolved before a model is made");
        let classes = match objective {
            Objective::Logistic { .. } => vec![0.0, 1.0],
            Objective::Softmax => facts.classes.clone(),
            _ => Vec::new(),
        };
        let features = bins::make(survey, facts.dense, self.params.max_bins)?;
        let mut model = Model {
            constraints: Constraints::default(),
            objective,
            classes,
            positive_label,
            is_table: facts.dense,
            leaves: self.params.leaves,
            features,
            is_imported: false,
        };
        if let Some(previous) = previous {
            if previous.is_imported {
                let reason = "training cannot go on from an imported model, whose bins are not known: train without --from"
                    .to_owned();
                return Err(Error::UnsuitableData { reason });
            }
            labels.check_same_positive(positive_label, previous.positive_label)?;
            model.classes.clone_from(&previous.classes);
            model.features.clone_from(&previous.features);
        }
        let columns = (&params::MONOTONE, &params::INTERACTIONS);
        model.constraints = Constraints::new(&self.checked, columns, facts, survey, &model.features)?;
        Ok(Arc::new(model))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let mut matrices = model.matrices(layout.partition_count);
        if layout.task_count > 1 {
            let model: &Model = model.of()?;
            if model.leaves > partitions::LEAF_LIMIT {
                let expected =
                    format!("at most {} for several tasks; train with --tasks 1", partitions::LEAF_LIMIT);
                return Err(self.checked.invalid_value(&params::LEAVES, expected));
            }
            let slots = store::slot_count(model.leaves as usize);
            matrices.push(partitions::spec(&model.features().bin_starts(), slots, layout.partition_count));
        }
        Ok(matrices)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        train::begin(&self.params, task, saved)
    }
}

const IMPORTANCE_COLUMN_NAMES: [&str; IMPORTANCE_COLUMNS] = ["splits", "gain", "feature"];

impl family::Model for Model {
    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> Value {
        serde_json::to_value(self).expect("a model has no keys but texts")
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        let table = |name: &str, element, columns, rule| {
            MatrixSpec::sparse(name, element, columns, rule, partition_count)
        };
        let ensemble = table("ensemble", ElementType::F64, 1 + self.width() as u64, PushRule::Assign);
        let partitioner = Partitioner::Range { partition_count: 1 };
        vec![
            table("importances", ElementType::F64, IMPORTANCE_COLUMNS as u64, PushRule::Add),
            MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..ensemble },
            table("nodes", ElementType::F64, NODE_COLUMNS as u64, PushRule::Assign),
            table("categories", ElementType::I64, 1, PushRule::Assign),
        ]
    }

    fn column_names(&self, matrix: &str, count: usize) -> Vec<String> {
        let names: Vec<&str> = match matrix {
            "importances" => IMPORTANCE_COLUMN_NAMES.to_vec(),
            "nodes" => NODE_COLUMN_NAMES.to_vec(),
            _ => Vec::new(),
        };
        if names.len() == count {
            return names.into_iter().map(str::to_owned).collect();
        }
        (0..count)
            .map(|column| if column == 0 { "value".to_owned() } else { format!("value_{column}") })
            .collect()
    }

    fn output(&self) -> Output {
        self.objective.output(&self.classes)
    }

    fn record_needs(&self) -> RecordNeeds {
        RecordNeeds {
            keep_zeros: true,
            label_rule: self.objective.label_rule(self.positive_label),
            ..RecordNeeds::of(&self.output(), self.positive_label)
        }
    }

    fn metric_accumulator(&self) -> MetricAccumulator {
        match self.objective {
            Objective::LambdaRank { truncation } => {
                MetricAccumulator::Ranking(RankingAccumulator::new(truncation as usize))
            }
            _ => MetricAccumulator::of(&self.output()),
        }
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![("objective", self.objective.name().to_owned()), ("leaves", self.leaves.to_string())]
    }

    fn explained(
        &self,
        explanation: Explanation,
        facts: &ModelFacts<'_>,
    ) -> Option<Result<Arc<dyn family::Model>, Error>> {
        Some(explained(self, explanation, facts))
    }

    fn document(
        &self,
        format: TextFormat,
        facts: &ModelFacts<'_>,
        agent: &mut dyn Agent,
    ) -> Option<Result<String, Error>> {
        let mut trees = Vec::new();
        let base = pull_trees(self, agent, |tree| trees.push(tree.clone()));
        Some(base.and_then(|base| render(self, facts, format, (&base, &trees))))
    }

    fn missing_table(&self) -> Option<MissingTable> {
        Some(NO_COEFFICIENTS)
    }

    fn bound_tables(&self) -> Option<&'static str> {
        Some("the tables of trees refer to each other")
    }

    fn has_feature_rows(&self, matrix: &str) -> bool {
        matrix == "importances"
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(TreeScorer::new(self))
    }
}
