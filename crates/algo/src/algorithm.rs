//! The table of algorithms, and the interface of a job of any of them. This is the only file that knows all families;
//! the families do not depend on it.

use std::collections::BTreeMap;

use data::{BatchStream, LabelRule};
use matrix::{Agent, Consistency, FunctionTable, MatrixSpec};
use serde::{Deserialize, Serialize};

use crate::descent;
use crate::error::Error;
use crate::job::{self, score_all};
pub use crate::job::{
    DataFacts, DataNeeds, DataProfile, Epochs, Output, Resolution, ResolvedSettings, Scorer,
};
use crate::linear::{self, Linear};
use crate::metric::MetricAccumulator;
use crate::param::{self, ParamSpec, nearest};
use crate::stopping::EarlyStopping;

/// One task of a job of any family.
pub type TrainTask<'a> = job::TrainTask<'a, Model>;

/// Checks the parameters of one algorithm.
pub type Configure = fn(&BTreeMap<String, String>) -> Result<Box<dyn Job>, Error>;

/// A row of the table.
#[derive(Debug)]
pub struct Algorithm {
    /// The name as typed on the command line.
    pub name: &'static str,
    pub title: &'static str,
    pub parameters: &'static [ParamSpec],
    /// Checks the parameters; unknown names and values out of range are errors.
    pub configure: Configure,
}

impl Algorithm {
    /// The meaning of a parameter, with the choices that read it and those that it offers.
    pub fn help_text(&self, spec: &ParamSpec) -> String {
        param::help_text(self.parameters, spec)
    }
}

pub fn algorithms() -> &'static [Algorithm] {
    ALGORITHMS
}

/// Creates the table of all PS functions: the built-in ones and those of the algorithms. Every process of a job has it.
pub fn functions() -> FunctionTable {
    let mut table = FunctionTable::builtin();
    descent::function::register(&mut table).expect("the names of the functions differ");
    table
}

const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "lr",
        title: "Logistic regression: probability of label 1",
        parameters: linear::LR,
        configure: |given| Ok(Box::new(Linear::lr(given)?)),
    },
    Algorithm {
        name: "svm",
        title: "Linear support vector machine: hinge or squared hinge loss",
        parameters: linear::SVM,
        configure: |given| Ok(Box::new(Linear::svm(given)?)),
    },
    Algorithm {
        name: "softmax",
        title: "Softmax regression: probabilities of several classes",
        parameters: linear::SOFTMAX,
        configure: |given| Ok(Box::new(Linear::softmax(given)?)),
    },
    Algorithm {
        name: "linear",
        title: "Linear regression: least squares",
        parameters: linear::LINEAR,
        configure: |given| Ok(Box::new(Linear::least_squares(given)?)),
    },
    Algorithm {
        name: "huber",
        title: "Robust linear regression: Huber loss",
        parameters: linear::HUBER,
        configure: |given| Ok(Box::new(Linear::huber(given)?)),
    },
];

/// The row of `name`, or an error that suggests the nearest name.
pub fn algorithm(name: &str) -> Result<&'static Algorithm, Error> {
    let names = || algorithms().iter().map(|row| row.name);
    algorithms().iter().find(|row| row.name == name).ok_or_else(|| Error::UnknownAlgorithm {
        name: name.to_owned(),
        nearest: nearest(name, names()),
        known: names().collect::<Vec<_>>().join(", "),
    })
}

/// What scoring needs besides the matrices. It is saved with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum Model {
    /// Any of the linear models.
    Linear(linear::Model),
}

impl Model {
    /// The matrices for prediction: in the order of [`Job::matrices`], with the same names and shapes, without
    /// optimizer slots, and with ASP consistency.
    pub fn matrices(&self, partition_count: u32) -> Vec<MatrixSpec> {
        match self {
            Self::Linear(model) => model.matrices_to_predict(partition_count),
        }
    }

    /// The number of matrices of the model. A job may create more after them; those belong to its optimizer and are not
    /// saved.
    pub fn matrix_count(&self) -> usize {
        self.matrices(1).len()
    }

    /// What the numbers of a prediction mean.
    pub fn output(&self) -> Output {
        match self {
            Self::Linear(model) => model.output(),
        }
    }

    /// How labels become numbers when data are evaluated with this model.
    pub fn label_rule(&self) -> LabelRule {
        match self {
            Self::Linear(model) => model.label_rule(),
        }
    }

    /// Whether zeros of dense formats must be kept as entries.
    pub fn keep_zeros(&self) -> bool {
        match self {
            Self::Linear(model) => model.standardize == Some(linear::Standardize::Center),
        }
    }

    /// Feature numbers must be below this limit; `None` allows any number.
    pub fn key_limit(&self) -> Option<u64> {
        match self {
            Self::Linear(model) => model.dimensions,
        }
    }

    /// A scorer with its own scratch memory; each thread needs one.
    pub fn scorer(&self) -> Box<dyn Scorer> {
        match self {
            Self::Linear(model) => Box::new(linear::LinearScorer::new(model)),
        }
    }

    /// An empty metric accumulator for this kind of model.
    pub fn metric_accumulator(&self) -> MetricAccumulator {
        match self {
            Self::Linear(model) => model.metric_accumulator(),
        }
    }
}

/// Computes the metrics over all batches of a stream (its epoch 0).
pub fn evaluate(
    model: &Model,
    agent: &mut dyn Agent,
    stream: &mut dyn BatchStream,
) -> Result<MetricAccumulator, Error> {
    score_all(model.scorer().as_mut(), model.metric_accumulator(), agent, stream)
}

/// Checked parameters of one algorithm. The caller goes through these steps in order: `resolve_settings`, and a new job
/// from the resolved settings; `data_needs`; open the data; `label_rule`; `model`; `matrices`; create them in that
/// order as `MatrixId(0)`, `MatrixId(1)`, ...; `train` on the thread of each task; save the model with the matrices.
pub trait Job: Send + Sync {
    fn algorithm(&self) -> &'static str;

    /// Every parameter with its value in force.
    fn settings(&self) -> BTreeMap<&'static str, String>;

    /// Chooses values for the settings that are left open. With `previous`, training continues from that model. If the
    /// data must be surveyed first, they are opened with the `data_needs` of this unresolved job.
    fn resolve_settings(
        &self,
        known: &DataProfile<'_>,
        previous: Option<&Model>,
    ) -> Result<Resolution, Error>;

    /// What the job requires of the data.
    fn data_needs(&self) -> DataNeeds;

    /// How labels become numbers, once the names in the label column are known. `names` is empty if labels are numbers.
    fn label_rule(&self, names: &[String]) -> Result<LabelRule, Error>;

    /// The model without its matrices. With `previous`, training continues from that model, which must be compatible.
    fn model(&self, facts: &DataFacts, previous: Option<&Model>) -> Result<Model, Error>;

    /// The matrices, in order of creation.
    fn matrices(
        &self,
        model: &Model,
        consistency: Consistency,
        partition_count: u32,
        seed: u64,
    ) -> Result<Vec<MatrixSpec>, Error>;

    /// The training loop of one task, on its own thread. It ends with `agent.finish()`.
    fn train(&self, task: TrainTask<'_>) -> Result<(), Error>;

    /// The rule for early stopping; `None` if it is off.
    fn stopping(&self) -> Option<EarlyStopping>;
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
        previous: Option<&Model>,
    ) -> Result<Resolution, Error> {
        self.resolve_settings(known, previous.map(|Model::Linear(model)| model))
    }

    fn data_needs(&self) -> DataNeeds {
        self.data_needs()
    }

    fn label_rule(&self, names: &[String]) -> Result<LabelRule, Error> {
        self.label_rule(names)
    }

    fn model(&self, facts: &DataFacts, previous: Option<&Model>) -> Result<Model, Error> {
        let previous = previous.map(|Model::Linear(model)| model);
        self.model(facts, previous).map(Model::Linear)
    }

    fn matrices(
        &self,
        model: &Model,
        consistency: Consistency,
        partition_count: u32,
        seed: u64,
    ) -> Result<Vec<MatrixSpec>, Error> {
        let Model::Linear(model) = model;
        Ok(self.matrices(model, consistency, partition_count, seed))
    }

    fn train(&self, task: TrainTask<'_>) -> Result<(), Error> {
        let Model::Linear(model) = task.model;
        self.train(task.with_model(model))
    }

    fn stopping(&self) -> Option<EarlyStopping> {
        self.stopping()
    }
}
