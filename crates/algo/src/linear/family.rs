//! The row of the family: its algorithms, and a linear model as the rest of the program sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use data::LabelRule;
use matrix::{Consistency, MatrixSpec};
use serde_json::Value;

use super::{HUBER, LINEAR, LR, Linear, LinearScorer, Model, SOFTMAX, SVM, Standardize};
use crate::coefficients::CoefficientRule;
use crate::descent;
use crate::error::Error;
use crate::family::{self, AlgorithmRow, Family};
use crate::job::{DataFacts, DataNeeds, DataProfile, Job, Output, Resolution, Scorer, TrainTask};
use crate::metric::MetricAccumulator;
use crate::stopping::EarlyStopping;
use crate::task_loop::{Learner, TaskState};

/// Linear models.
pub const FAMILY: Family = Family {
    name: "linear",
    algorithms: &[
        AlgorithmRow {
            name: "lr",
            title: "Logistic regression: probability of label 1",
            parameters: LR,
            configure: |given| Ok(Arc::new(Linear::lr(given)?)),
        },
        AlgorithmRow {
            name: "svm",
            title: "Linear support vector machine: squared hinge or hinge loss",
            parameters: SVM,
            configure: |given| Ok(Arc::new(Linear::svm(given)?)),
        },
        AlgorithmRow {
            name: "softmax",
            title: "Softmax regression: probabilities of several classes",
            parameters: SOFTMAX,
            configure: |given| Ok(Arc::new(Linear::softmax(given)?)),
        },
        AlgorithmRow {
            name: "linear",
            title: "Linear regression: least squares",
            parameters: LINEAR,
            configure: |given| Ok(Arc::new(Linear::least_squares(given)?)),
        },
        AlgorithmRow {
            name: "huber",
            title: "Robust linear regression: Huber loss",
            parameters: HUBER,
            configure: |given| Ok(Arc::new(Linear::huber(given)?)),
        },
    ],
    load: |fields| Ok(Arc::new(serde_json::from_value::<Model>(fields.clone())?)),
    functions: descent::function::register,
};

impl family::Model for Model {
    fn has_feature_rows(&self, matrix: &str) -> bool {
        matrix != "intercept"
    }

    fn coefficients(&self) -> Option<CoefficientRule> {
        let rule = CoefficientRule { scaling: self.scaling(), label_scale: self.label_scale };
        // Records of unit length are no linear function of their values.
        (!self.normalize).then_some(rule)
    }

    fn family(&self) -> &'static str {
        FAMILY.name
    }

    fn save(&self) -> Value {
        serde_json::to_value(self).expect("a model has no keys but texts")
    }

    fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        self.matrices_to_predict(partition_count)
    }

    fn output(&self) -> Output {
        self.output()
    }

    fn label_rule(&self) -> LabelRule {
        self.label_rule()
    }

    fn keep_zeros(&self) -> bool {
        self.standardize == Some(Standardize::Center)
    }

    fn key_limit(&self) -> Option<u64> {
        self.dimensions
    }

    fn scorer(&self) -> Box<dyn Scorer> {
        Box::new(LinearScorer::new(self))
    }

    fn metric_accumulator(&self) -> MetricAccumulator {
        self.metric_accumulator()
    }
}

impl Job for Linear {
    fn algorithm(&self) -> &'static str {
        self.algorithm()
    }

    fn settings(&self) -> BTreeMap<&'static str, String> {
        self.settings()
    }

    fn resolve_settings(
        &self,
        known: &DataProfile<'_>,
        previous: Option<&dyn family::Model>,
    ) -> Result<Resolution, Error> {
        self.resolve_settings(known, previous.map(|model| model.of()).transpose()?)
    }

    fn data_needs(&self) -> DataNeeds {
        self.data_needs()
    }

    fn label_rule(&self, names: &[String]) -> Result<LabelRule, Error> {
        self.label_rule(names)
    }

    fn model(
        &self,
        facts: &DataFacts,
        previous: Option<&dyn family::Model>,
    ) -> Result<Arc<dyn family::Model>, Error> {
        let previous = previous.map(|model| model.of()).transpose()?;
        Ok(Arc::new(self.model(facts, previous)?))
    }

    fn matrices(
        &self,
        model: &dyn family::Model,
        consistency: Consistency,
        partition_count: u32,
        seed: u64,
    ) -> Result<Vec<MatrixSpec>, Error> {
        Ok(self.matrices(model.of()?, consistency, partition_count, seed))
    }

    fn saves_within_epochs(&self) -> bool {
        matches!(self.params.training, super::Training::Push(_))
    }

    fn begin<'a>(
        &'a self,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error> {
        self.begin(task, saved)
    }

    fn divergence_advice(&self) -> String {
        self.divergence_advice()
    }

    fn stopping(&self) -> Option<EarlyStopping> {
        self.stopping()
    }
}
