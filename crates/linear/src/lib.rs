//! Linear models: `score = b + sum_j w_j x_j`, fitted by minimizing a loss of score and label. Logistic regression,
//! linear SVM, softmax, least squares and Huber regression share one trainer; they differ in the [`loss`](algo::loss).
//!
//! **Sources.** H. Brendan `McMahan` et al., "Ad click prediction: a view from the trenches", KDD 2013: algorithm 1
//! (FTRL-Proximal per coordinate, the default push rule) and section 5 (progressive validation: a record is scored
//! before it is learned). For losses see [`algo::loss`].
//!
//! **Notation.** n records of a batch, d distinct features in it, k classes (1 except for softmax). X: n x d, sparse;
//! w: d x k; b: k; slopes s: n x k, the derivative of the loss in the score.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `weights` | features x k, sparse by hash (dense by range with `dimensions`) | f32 | `optimizer` |
//! | `intercept` | 1 x k, dense | f32 | `optimizer` without l1 and l2 |
//! | `moments`, if `standardize` | features x 3: share of records with the feature, mean, mean square | f64 | add |
//!
//! **A step** of a task: pull `w[columns of the batch]` and `b`; compute scores `X w + b`, slopes, and the gradient `X'
//! s`, merged per feature; push the gradient; tick.
//!
//! **Where we differ.** The paper updates after every record. Here the gradients of a batch are summed per feature and
//! applied as one; this costs no quality on sparse data (measured up to 8,192 records on 1 M x 10 M synthetic clicks)
//! and needs one pull and one push per batch. SGD and momentum push the mean instead of the sum, because their step
//! grows with the gradient and the best rate would depend on the batch size; adaptive rules divide by the size of past
//! gradients, so for them the factor cancels.
//!
//! **All records.** With `lbfgs`, `owlqn`, `gd`, `svrg` and `admm` a step sees all records (`full_batch/`). They use
//! two more matrices, `numbers` and `vectors`, after these; `weights` and `intercept` are then assigned from the
//! vectors.
//!
//! **Cost** of a step with e entries: 2 e k multiply-adds; 4 d k bytes pulled and as many pushed.

mod auto;
mod choices;
mod coefficients;
pub mod descent;
mod full_batch;
mod model;
mod optimizer;
mod param_table;
mod params;
mod scan;
mod score;
#[cfg(test)]
mod tests;
mod train;

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{KeyLimit, LabelRule};
use matrix::MatrixSpec;

pub use algo::scaling::{ScaledColumns, Standardize};
pub use model::Model;
pub use param_table::{AUTO_EPOCHS_LIMIT, AUTO_RECORD_VISITS, HUBER, LINEAR, LR, SOFTMAX, SVM};
pub use params::{ClassWeights, Params};
pub use score::LinearScorer;

use algo::advice::{Remedies, TrainingReport};
use algo::error::Error;
use algo::family::{self, AlgorithmRow, Family};
use algo::job::{DataFacts, DataProfile, Job, Needs, Resolution, TableLayout, TrainTask};
use algo::labels::{LabelScale, TrainingLabels};
use algo::loss::Loss;
use algo::param::CheckedParams;
use algo::param::common::RecordScaling;
use algo::param::remedies::GradientSettings;
use algo::task_loop::{Learner, TaskState};
use choices::{ColumnScaling, MarginLoss};
use optimizer::Training;
use param_table::{DELTA, L1, L2, LEARNING_RATE, LOSS, NORMALIZE, STANDARDIZE};

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

/// Largest number of classes of softmax: a row of weights has one f32 per class.
pub const CLASS_LIMIT: usize = 4096;

/// A class whose records count this many times is the most likely cause of a divergence.
const LARGE_CLASS_WEIGHT: f64 = 1e6;

/// A job of a linear model.
#[derive(Clone, Debug)]
pub struct Linear {
    /// The settings as the user gave them.
    given_settings: BTreeMap<String, String>,
    table: &'static [algo::ParamSpec],
    checked_params: CheckedParams,
    loss: Loss,
    params: Params,
}

impl Linear {
    /// Unknown names and values out of range are errors.
    fn configure(
        algorithm: &'static str,
        table: &'static [algo::ParamSpec],
        given: &BTreeMap<String, String>,
        loss: fn(&CheckedParams) -> Loss,
    ) -> Result<Arc<dyn Job>, Error> {
        let checked = CheckedParams::new(algorithm, table, given)?;
        let loss = loss(&checked);
        let params = params::params(&checked, loss)?;
        Ok(Arc::new(Self { given_settings: given.clone(), table, checked_params: checked, loss, params }))
    }

    /// The largest weight of a class, with its label, if it most likely makes training diverge.
    fn large_class_weight(&self) -> Option<&(String, f64)> {
        let ClassWeights::Given(weights) = &self.params.class_weights else { return None };
        weights.iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, weight)| *weight > LARGE_CLASS_WEIGHT)
    }

    /// Whether the labels of all records must be known, to count them or to look up those that the user names.
    fn needs_label_scan(&self) -> bool {
        self.params.class_weights != ClassWeights::None || self.params.positive_label.is_some()
    }

    fn classes(&self, facts: &DataFacts) -> Result<Vec<f32>, Error> {
        match self.loss {
            Loss::Logistic | Loss::Hinge | Loss::SquaredHinge => Ok(vec![0.0, 1.0]),
            Loss::Squared | Loss::Huber { .. } => Ok(Vec::new()),
            Loss::Softmax => match facts.classes.as_slice() {
                [] => Err(Error::NoRecords),
                [label] => Err(Error::OneClass { record_count: facts.record_count, label: *label }),
                classes if classes.len() > CLASS_LIMIT => {
                    Err(Error::ClassCount { actual: classes.len(), limit: CLASS_LIMIT })
                }
                classes => Ok(classes.to_vec()),
            },
        }
    }

    /// Push rules learn labels scaled to mean 0 and deviation 1, so that their steps do not grow with the labels.
    /// Full-batch optimizers find the scale by themselves, and with an intercept learn centred labels: the intercept, in
    /// single precision, then has the digits in which labels differ.
    fn label_scale(&self, facts: &DataFacts) -> Option<LabelScale> {
        let (mean, deviation) = (facts.label_mean, facts.label_deviation);
        match self.params.training.descent() {
            _ if !self.loss.is_real() => None,
            Some(_) => self.params.intercept.then_some(LabelScale { mean, deviation: 1.0 }),
            None => (deviation > 0.0).then_some(LabelScale { mean, deviation }),
        }
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
            key_limit: params.dimensions.map(|limit| KeyLimit { limit, setting: model::DIMENSIONS }),
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
