//! What the program knows of the family: its row, its job and its model.

use std::sync::Arc;

use algo::advice::{Remedies, TrainingReport};
use algo::error::Error;
use algo::family::{self, AlgorithmRow, DerivedTable, Family, MissingTable, NO_COEFFICIENTS, RecordNeeds};
use algo::job::{DataFacts, DataProfile, Job, Needs, Output, Resolution, Scorer, TableLayout, TrainTask};
use algo::labels::TrainingLabels;
use algo::loss::Loss;
use algo::param::CheckedParams;
use algo::param::common::RecordScaling;
use algo::param::remedies::GradientSettings;
use algo::scaling::{ScaledColumns, Standardize};
use algo::task_loop::{Learner, TaskState};
use data::{KeyLimit, LabelRule};
use matrix::{MatrixSpec, PushRule};
use serde_json::Value;

use super::choices::{ColumnScaling, MarginLoss};
use super::coefficients::Coefficients;
use super::job::Linear;
use super::model::{DIMENSIONS, Model};
use super::optimizer::Training;
use super::optimizer_params::{L1, L2, LEARNING_RATE};
use super::param_table::{DELTA, HUBER, LINEAR, LOSS, LR, NORMALIZE, SOFTMAX, STANDARDIZE, SVM};
use super::params::ClassWeights;
use super::score::LinearScorer;
use super::{auto, full_batch, train};
use crate::descent;

/// Linear models.
pub const FAMILY: Family = Family {
    name: "linear",
    algorithms: &[
        AlgorithmRow {
            name: "lr",
            title: "Logistic regression: probability of label 1",
            parameters: LR,
            configure: |given| Linear::configure("lr", LR, given, |_| Loss::Logistic),
        },
        AlgorithmRow {
            name: "svm",
            title: "Linear support vector machine: squared hinge or hinge loss",
            parameters: SVM,
            configure: |given| Linear::configure("svm", SVM, given, margin_loss),
        },
        AlgorithmRow {
            name: "softmax",
            title: "Softmax regression: probabilities of several classes",
            parameters: SOFTMAX,
            configure: |given| Linear::configure("softmax", SOFTMAX, given, |_| Loss::Softmax),
        },
        AlgorithmRow {
            name: "linear",
            title: "Linear regression: least squares",
            parameters: LINEAR,
            configure: |given| Linear::configure("linear", LINEAR, given, |_| Loss::Squared),
        },
        AlgorithmRow {
            name: "huber",
            title: "Robust linear regression: Huber loss",
            parameters: HUBER,
            configure: |given| {
                Linear::configure("huber", HUBER, given, |checked| Loss::Huber {
                    delta: checked.real(&DELTA),
                })
            },
        },
    ],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: descent::function::register,
};

fn margin_loss(checked: &CheckedParams) -> Loss {
    match checked.choice(&LOSS) {
        MarginLoss::Hinge => Loss::Hinge,
        MarginLoss::SquaredHinge => Loss::SquaredHinge,
    }
}

impl Job for Linear {
    fn settings(&self) -> &CheckedParams {
        &self.checked_params
    }

    fn resolve_settings(
        &self,
        known: &DataProfile<'_>,
        previous: Option<&dyn family::Model>,
    ) -> Result<Resolution, Error> {
        auto::resolve_settings(self, known, previous.map(|model| model.of()).transpose()?)
    }

    fn needs(&self) -> Needs {
        let params = &self.params;
        let scales_columns = params.column_scaling.is_some_and(|scaling| scaling != ColumnScaling::None);
        let steps_see_all = params.training.descent().is_some();
        Needs {
            label_rule: match self.loss {
                Loss::Logistic | Loss::Hinge | Loss::SquaredHinge => LabelRule::Binary { positive: None },
                Loss::Softmax => LabelRule::Class,
                Loss::Squared | Loss::Huber { .. } => LabelRule::Real,
            },
            scan: scales_columns
                || self.needs_label_scan()
                || self.loss == Loss::Softmax
                || self.loss.is_real()
                || steps_see_all,
            count_features: steps_see_all,
            epochs: params.epochs,
            batch_size: params.batch_size,
            shuffle: params.shuffle,
            keep_zeros: params.column_scaling.is_none_or(|scaling| scaling == ColumnScaling::Deviation),
            subtracts_origins: params.intercept,
            key_limit: params.dimensions.map(|limit| KeyLimit { limit, setting: DIMENSIONS }),
            validation_share: params.validation_share,
            early_stopping: params.early_stopping.clone(),
            saves_within_epochs: !steps_see_all,
            requires_bsp: steps_see_all,
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
        let positive = self.needs().positive(&labels)?;
        let mut model = Model {
            algorithm: self.checked_params.algorithm().to_owned(),
            loss: self.loss,
            classes: self.classes(facts)?,
            positive_label: positive,
            class_weights: Vec::new(),
            intercept: self.params.intercept,
            standardize: match self.params.column_scaling {
                Some(ColumnScaling::Deviation) => Some(Standardize::by_deviation(facts)),
                Some(ColumnScaling::Entries) => Some(Standardize::Entries),
                Some(ColumnScaling::Idf) => Some(Standardize::Idf),
                Some(ColumnScaling::None) | None => None,
            },
            scaled_columns: ScaledColumns::default(),
            normalize: self.params.record_scaling == Some(RecordScaling::L2),
            dimensions: self.params.dimensions,
            numbered: self.params.training.descent().map(|_| facts.feature_count),
            label_scale: self.label_scale(facts),
        };
        if model.standardize.is_some() {
            model.scaled_columns = ScaledColumns::of_data(facts);
        }
        if let Some(previous) = previous {
            // New data may lack some classes of the model; a class that the model lacks is an error.
            for &class in &model.classes {
                previous.class_of(f64::from(class))?;
            }
            model.classes.clone_from(&previous.classes);
            model.label_scale = previous.label_scale;
            model.scaled_columns = previous.scaled_columns;
            labels.check_same_positive(positive, previous.positive_label)?;
        }
        if let ClassWeights::Given(pairs) = &self.params.class_weights {
            let classes = if self.loss.is_binary() { None } else { Some(model.classes.as_slice()) };
            model.class_weights = labels.weights(pairs, classes, positive)?;
        }
        Ok(Arc::new(model))
    }

    fn matrices(&self, model: &dyn family::Model, layout: TableLayout) -> Result<Vec<MatrixSpec>, Error> {
        let partition_count = layout.partition_count;
        let model: &Model = model.of()?;
        let rules = self.params.training.rules();
        let mut specs = model.matrices_with(rules, partition_count);
        if let Some(settings) = self.params.training.descent() {
            specs.extend(full_batch::matrices(model, settings, partition_count));
        }
        Ok(specs)
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        match &self.params.training {
            Training::Push(push) => train::begin(self, push.gradient, task, saved),
            Training::Descent(settings) => full_batch::descent::begin(self, settings, task, saved),
            Training::Svrg(settings) => full_batch::svrg::begin(self, settings, task, saved),
            Training::Admm(settings, consensus) => {
                full_batch::admm::begin(self, settings, consensus, task, saved)
            }
        }
    }

    fn divergence_advice(&self) -> String {
        if let Some((label, weight)) = self.large_class_weight() {
            return format!("Give smaller class_weights (that of {label} is {weight:e})");
        }
        let rate = self.params.learning_rate;
        match self.params.column_scaling {
            Some(ColumnScaling::Deviation | ColumnScaling::Entries) => {
                format!(
                    "Lower learning_rate (now {rate}), or leave out the records with values that are far too large"
                )
            }
            Some(ColumnScaling::None | ColumnScaling::Idf) | None => {
                format!("Standardize the columns (standardize=true), or lower learning_rate (now {rate})")
            }
        }
    }

    fn advice(&self, report: &TrainingReport<'_>) -> Vec<String> {
        const SETTINGS: GradientSettings = GradientSettings {
            l1: &L1,
            l2: &L2,
            learning_rate: &LEARNING_RATE,
            standardize: &STANDARDIZE,
            normalize: &NORMALIZE,
        };
        let steps_see_all = self.params.training.descent().is_some();
        let is_reweighted = self.params.class_weights != ClassWeights::None;
        Remedies { is_reweighted, ..SETTINGS.remedies(&self.checked_params, steps_see_all) }.notices(report)
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
        let rules = (PushRule::Assign, PushRule::Assign);
        let mut specs = self.matrices_with(rules, partition_count);
        for spec in &mut specs {
            spec.rule = PushRule::Assign;
        }
        specs
    }

    fn output(&self) -> Output {
        match self.loss {
            Loss::Logistic => Output::Probability,
            Loss::Hinge | Loss::SquaredHinge => Output::Margin,
            Loss::Squared | Loss::Huber { .. } => Output::Value,
            Loss::Softmax => Output::Classes(self.classes.clone()),
        }
    }

    fn record_needs(&self) -> RecordNeeds {
        RecordNeeds {
            keep_zeros: self.standardize == Some(Standardize::Center),
            key_limit: self.dimensions.map(|limit| KeyLimit { limit, setting: DIMENSIONS }),
            ..RecordNeeds::of(&self.output(), self.positive_label)
        }
    }

    fn fixed_settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("loss", self.loss.name().to_owned()),
            ("classes", format!("{:?}", self.classes)),
            ("intercept", self.intercept.to_string()),
            ("standardize", fact_text(self.standardize)),
            ("normalize", self.normalize.to_string()),
            ("dimensions", fact_text(self.dimensions)),
        ]
    }

    fn derived_table(&self) -> Option<Box<dyn DerivedTable>> {
        let (scaling, label_scale) = (self.scaling(), self.label_scale);
        // Records of unit length are no linear function of their values.
        (!self.normalize).then(|| Box::new(Coefficients { scaling, label_scale, lost: Vec::new() }) as _)
    }

    fn missing_table(&self) -> Option<MissingTable> {
        self.normalize.then_some(NO_COEFFICIENTS)
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(LinearScorer::new(self))
    }
}

/// Formats an optional property for a message.
fn fact_text<T: std::fmt::Debug>(fact: Option<T>) -> String {
    fact.map_or_else(|| "none".to_owned(), |fact| format!("{fact:?}").to_lowercase())
}
