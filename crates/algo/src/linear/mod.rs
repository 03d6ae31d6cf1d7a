//! Linear models: `score = b + sum_j w_j x_j`, fitted by minimizing a loss of score and label. Logistic regression,
//! linear SVM, softmax, least squares and Huber regression are one trainer; the [`loss`] is the difference.
//!
//! **Sources.** H. Brendan `McMahan` et al., "Ad click prediction: a view from the trenches", KDD 2013: algorithm 1 (FTRL-Proximal per
//! coordinate, the default push rule) and section 5 (progressive validation: a record is scored before it is learned).
//! Losses: see [`loss`].
//!
//! **Notation.** n records of a batch, d distinct features in it, k classes (1 but for softmax). X: n x d, sparse;
//! w: d x k; b: k; slopes s: n x k, the derivative of the loss in the score.
//!
//! **Matrices.**
//!
//! | matrix | shape | element | push rule |
//! |---|---|---|---|
//! | `weights` | features x k, sparse by hash (dense by range with `dimensions`) | f32 | `optimizer` |
//! | `intercept` | 1 x k, dense | f32 | `optimizer` without l1 and l2 |
//! | `moments`, with `standardize` | features x 3: share of records with the feature, mean, mean of squares | f64 | add |
//!
//! **A step** of a task: pull `w[columns of the batch]` and `b`; scores `X w + b`; slopes; gradient `X' s`, merged per
//! feature; push it; tick.
//!
//! **Where we differ.** The paper updates after every record; here the gradients of a batch are summed per feature and
//! applied as one, which costs no quality on sparse data (measured up to 8,192 records on 1 M x 10 M synthetic clicks)
//! and makes one pull and push of what were many. With SGD and momentum the mean is pushed instead of the sum, because
//! their step grows with the gradient and the best rate would hang on the batch size; adaptive rules divide by the size
//! of past gradients, so for them the factor cancels.
//!
//! **Cost** of a step of e entries: 2 e k multiply-adds; 4 d k bytes pulled and as many pushed.

pub mod loss;
mod model;
mod params;
mod prepare;
mod score;
pub mod step;
mod table;
#[cfg(test)]
mod tests;
mod train;

use std::collections::BTreeMap;

use data::{BatchSize, LabelRule, Shuffle};
use matrix::{Consistency, MatrixSpec};

pub use model::{Model, Standardize};
pub use params::{ClassWeights, Params};
pub use score::LinearScorer;
pub use table::{AUTO_EPOCHS_LIMIT, AUTO_RECORD_VISITS};

use crate::algorithm::{self, Algorithm, DataFacts, DataNeeds, Epochs, Job, TrainTask};
use crate::error::Error;
use crate::param::Checked;
use crate::stopping::EarlyStopping;
use loss::Loss;

/// Most classes of softmax: a row of weights is one f32 a class.
pub const CLASS_LIMIT: usize = 4096;

/// The linear rows of the table of algorithms.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "lr",
        title: "Logistic regression: probability of label 1",
        parameters: table::LR,
        configure: |given| Linear::configure("lr", table::LR, given, |_| Loss::Logistic),
    },
    Algorithm {
        name: "svm",
        title: "Linear support vector machine: hinge or squared hinge loss",
        parameters: table::SVM,
        configure: |given| {
            Linear::configure("svm", table::SVM, given, |checked| match checked.text("loss") {
                "squared_hinge" => Loss::SquaredHinge,
                _ => Loss::Hinge,
            })
        },
    },
    Algorithm {
        name: "softmax",
        title: "Softmax regression: probabilities of several classes",
        parameters: table::SOFTMAX,
        configure: |given| Linear::configure("softmax", table::SOFTMAX, given, |_| Loss::Softmax),
    },
    Algorithm {
        name: "linear",
        title: "Linear regression: least squares",
        parameters: table::LINEAR,
        configure: |given| Linear::configure("linear", table::LINEAR, given, |_| Loss::Squared),
    },
    Algorithm {
        name: "huber",
        title: "Robust linear regression: Huber loss",
        parameters: table::HUBER,
        configure: |given| {
            let delta = |checked: &Checked| Loss::Huber { delta: checked.real("delta") };
            Linear::configure("huber", table::HUBER, given, delta)
        },
    },
];

/// A job of a linear model.
#[derive(Clone, Debug)]
pub struct Linear {
    checked: Checked,
    loss: Loss,
    params: Params,
}

impl Linear {
    fn configure(
        algorithm: &'static str,
        table: &'static [crate::ParamSpec],
        given: &BTreeMap<String, String>,
        loss: impl Fn(&Checked) -> Loss,
    ) -> Result<Box<dyn Job>, Error> {
        let checked = Checked::new(algorithm, table, given)?;
        let loss = loss(&checked);
        let params = params::params(&checked, loss)?;
        Ok(Box::new(Self { checked, loss, params }))
    }

    /// Whether `record_count` records of one task already decide that there is one epoch only.
    fn needs_one_epoch(&self, record_count: u64) -> bool {
        match self.params.epochs {
            Epochs::Fixed(count) => count == 1,
            Epochs::Auto { record_visits, .. } => record_count >= record_visits,
        }
    }

    fn balanced(&self) -> bool {
        self.params.class_weights == ClassWeights::Balanced
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
}

impl Job for Linear {
    fn algorithm(&self) -> &'static str {
        self.checked.algorithm()
    }

    fn settings(&self) -> BTreeMap<&'static str, String> {
        self.checked.values().clone()
    }

    fn data_needs(&self) -> DataNeeds {
        let standardize = self.checked.flag("standardize");
        DataNeeds {
            label_rule: match self.loss {
                Loss::Logistic | Loss::Hinge | Loss::SquaredHinge => {
                    LabelRule::Binary { positive: self.params.positive_label }
                }
                Loss::Softmax => LabelRule::Class,
                Loss::Squared | Loss::Huber { .. } => LabelRule::Real,
            },
            scan: standardize || self.balanced() || self.loss == Loss::Softmax,
            epochs: self.params.epochs,
            batch_size: self
                .checked
                .auto_integer("batch_size")
                .map_or(BatchSize::Growing, |size| BatchSize::Fixed(size as usize)),
            shuffle: match self.checked.text("shuffle") {
                "none" => Shuffle::None,
                "records" => Shuffle::Records,
                _ => Shuffle::Batches,
            },
            keep_zeros: standardize,
            validation_share: self.checked.real("validation_share"),
            validation_required: self.checked.integer("early_stopping") > 0,
        }
    }

    fn model(
        &self,
        facts: &DataFacts,
        previous: Option<&algorithm::Model>,
    ) -> Result<algorithm::Model, Error> {
        let mode = if facts.dense { Standardize::Center } else { Standardize::Scale };
        let mut model = Model {
            algorithm: self.checked.algorithm().to_owned(),
            loss: self.loss,
            classes: self.classes(facts)?,
            positive_label: self.params.positive_label,
            intercept: self.checked.flag("intercept"),
            standardize: self.checked.flag("standardize").then_some(mode),
            normalize: self.checked.text("normalize") == "l2",
            dimensions: self.checked.auto_integer("dimensions"),
        };
        if let Some(algorithm::Model::Linear(previous)) = previous {
            // New data may lack some classes of the model; a class that the model lacks is an error.
            for &class in &model.classes {
                previous.class_of(class)?;
            }
            model.classes.clone_from(&previous.classes);
            model.check_continues(previous)?;
        }
        Ok(algorithm::Model::Linear(model))
    }

    fn matrices(
        &self,
        model: &algorithm::Model,
        consistency: Consistency,
        partition_count: u32,
        seed: u64,
    ) -> Result<Vec<MatrixSpec>, Error> {
        let algorithm::Model::Linear(model) = model;
        let rules = (self.params.rule, self.params.intercept_rule);
        Ok(model.matrices(rules, consistency, partition_count, seed))
    }

    fn train(&self, task: TrainTask<'_>) -> Result<(), Error> {
        train::train(self, task)
    }

    fn stopping(&self) -> Option<EarlyStopping> {
        match self.checked.integer("early_stopping") {
            0 => None,
            patience => Some(EarlyStopping::new(patience)),
        }
    }
}
