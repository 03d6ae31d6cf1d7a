//! What the program knows of the family: its row, its job and its model.

use std::sync::Arc;

use algo::advice::TrainingReport;
use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family, MissingTable, NO_COEFFICIENTS, RecordNeeds};
use algo::job::{DataFacts, DataProfile, Job, Needs, Output, Resolution, Scorer, TableLayout, TrainTask};
use algo::labels::{LabelScale, TrainingLabels};
use algo::param::CheckedParams;
use algo::param::remedies::GradientSettings;
use algo::scaling::{MOMENT_COLUMNS, ScaledColumns, Standardize};
use algo::task_loop::{Learner, TaskState};
use data::{BatchSize, LabelRule};
use matrix::{ElementType, Initializer, MatrixSpec, Partitioner, PushRule, Storage};
use serde_json::Value;

use super::job::Factorization;
use super::model::Model;
use super::params::{self, Params};
use super::score::FactorizationScorer;
use super::{auto, train};

/// Factorization machines.
pub const FAMILY: Family = Family {
    name: "factorization",
    algorithms: &[
        AlgorithmRow {
            name: "fm",
            title: "Factorization machine: weights of features and of their pairs",
            parameters: params::FM,
            configure: |given| Ok(Arc::new(Factorization::new("fm", params::FM, given)?)),
        },
        AlgorithmRow {
            name: "ffm",
            title: "Field-aware factorization machine: pairs weighted by the fields of both features",
            parameters: params::FFM,
            configure: |given| Ok(Arc::new(Factorization::new("ffm", params::FFM, given)?)),
        },
    ],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: |_| Ok(()),
};

impl Job for Factorization {
    fn settings(&self) -> &CheckedParams {
        &self.checked
    }

    fn resolve_settings(
        &self,
        known: &DataProfile<'_>,
        previous: Option<&dyn family::Model>,
    ) -> Result<Resolution, Error> {
        Ok(auto::resolve_settings(self, known, previous.map(|model| model.of()).transpose()?))
    }

    fn needs(&self) -> Needs {
        let params = &self.params;
        Needs {
            label_rule: if self.is_real() { LabelRule::Real } else { LabelRule::Binary { positive: None } },
            scan: self.is_real() || self.has_fields || params.standardize || params.positive_label.is_some(),
            keep_zeros: self.checked.text(&params::STANDARDIZE) != "false",
            subtracts_origins: true,
            uses_fields: self.has_fields,
            epochs: params.epochs,
            batch_size: params.batch_size.map_or(BatchSize::Growing, BatchSize::Fixed),
            shuffle: params.shuffle,
            validation_share: params.validation_share,
            early_stopping: params.early_stopping.clone(),
            saves_within_epochs: true,
            positive_label: params.positive_label.clone(),
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
        let scale = LabelScale { mean: facts.label_mean, deviation: facts.label_deviation };
        let mut model = Model {
            algorithm: self.checked.algorithm().to_owned(),
            loss: self.params.loss,
            factors: self.params.factors,
            fields: self.fields(facts, previous)?,
            standardize: self.params.standardize.then(|| Standardize::by_deviation(facts)),
            scaled_columns: ScaledColumns::default(),
            normalize: self.params.normalize,
            positive_label,
            label_scale: Some(scale).filter(|scale| self.is_real() && scale.deviation > 0.0),
        };
        if model.standardize.is_some() {
            model.scaled_columns = ScaledColumns::of_data(facts);
        }
        if let Some(previous) = previous {
            model.label_scale = previous.label_scale;
            model.scaled_columns = previous.scaled_columns;
            labels.check_same_positive(positive_label, previous.positive_label)?;
        }
        Ok(Arc::new(model))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let partition_count = layout.partition_count;
        let params = &self.params;
        let mut specs = model.matrices(partition_count);
        specs[0].rule = params.weights_rule;
        specs[1].rule = params.intercept_rule;
        specs[2].rule = params.factors_rule;
        if let Some(moments) = specs.get_mut(3) {
            moments.rule = PushRule::Add;
        }
        specs[2].initializer = Initializer::NormalOnFirstPush { deviation: params.deviation };
        if params.admission > 1 {
            let rule = PushRule::Add;
            specs.push(MatrixSpec::sparse("sightings", ElementType::F32, 1, rule, partition_count));
        }
        Ok(specs)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        train::begin(self, task, saved)
    }

    fn divergence_advice(&self) -> String {
        let Params { learning_rate, linear_learning_rate, l2, standardize, normalize, .. } = self.params;
        let scale = if standardize || normalize { "" } else { ", or scale the columns (standardize=true)" };
        format!(
            "Lower learning_rate (now {learning_rate:?}) and linear_learning_rate (now {linear_learning_rate:?}), or \
             raise l2 (now {l2:?}){scale}"
        )
    }

    fn advice(&self, report: &TrainingReport<'_>) -> Vec<String> {
        const SETTINGS: GradientSettings = GradientSettings {
            l1: &params::L1,
            l2: &params::L2,
            learning_rate: &params::LEARNING_RATE,
            standardize: &params::STANDARDIZE,
            normalize: &params::NORMALIZE,
        };
        SETTINGS.remedies(&self.checked, false).notices(report)
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
        let of_features = |name, columns| {
            MatrixSpec::sparse(name, ElementType::F32, columns, PushRule::Assign, partition_count)
        };
        let partitioner = Partitioner::Range { partition_count: 1 };
        let mut specs = vec![
            of_features("weights", 1),
            MatrixSpec { rows: 1, storage: Storage::Dense, partitioner, ..of_features("intercept", 1) },
            of_features("factors", self.shape().width() as u64),
        ];
        if self.standardize.is_some() {
            specs.push(MatrixSpec { element: ElementType::F64, ..of_features("moments", MOMENT_COLUMNS) });
        }
        specs
    }

    fn output(&self) -> Output {
        if self.loss.is_real() { Output::Value } else { Output::Probability }
    }

    fn record_needs(&self) -> RecordNeeds {
        RecordNeeds {
            keep_zeros: self.standardize == Some(Standardize::Center),
            field_limit: self.fields,
            ..RecordNeeds::of(&self.output(), self.positive_label)
        }
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("algorithm", self.algorithm.clone()),
            ("loss", self.loss.name().to_owned()),
            ("k", self.factors.to_string()),
            ("standardize", format!("{:?}", self.standardize)),
            ("normalize", self.normalize.to_string()),
        ]
    }

    fn missing_table(&self) -> Option<MissingTable> {
        Some(NO_COEFFICIENTS)
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(FactorizationScorer::new(self))
    }
}
