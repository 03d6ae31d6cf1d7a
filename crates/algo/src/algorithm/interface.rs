//! An algorithm on one page: the interface that authors write against. From one impl of [`Algorithm`] follow the row of the
//! family, the job, the model, the scorer and the learner.
//!
//! | module | what it holds |
//! |---|---|
//! | `settings` | typed settings, from one table in [`crate::settings!`] |
//! | `table` | the tables of an algorithm, and their rows at the records of a batch |
//! | `steps` | [`Steps`]: an algorithm that learns batch by batch |
//! | `rounds` | [`Rounds`]: an algorithm that passes over its own form of the data, such as a graph |
//! | `functions` | functions that run at the servers, over the rows of a table |
//! | `row` | what follows from an impl |

mod functions;
mod rounds;
mod row;
mod settings;
mod steps;
mod table;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::advice::{Remedies, TrainingReport};
use crate::error::Error;
use crate::family::{AlgorithmRow, Family};
use crate::job::{DataFacts, Needs, Output};

pub use functions::RowFunctions;
/// What a push does to a row, for the tables of an algorithm.
pub use matrix::PushRule;
pub use rounds::{ByRounds, Edge, KeyRows, Round, Rounds, Task};
pub use row::{AlgorithmJob, AlgorithmModel, Loop};
pub use settings::Settings;
#[doc(hidden)]
pub use settings::{SettingType, real};
pub use steps::{BySteps, Changes, Steps};
pub use table::{Record, Table, adagrad};

/// An algorithm, and what its models remember besides their tables: the fields of the value are in `model.json`.
pub trait Algorithm: Clone + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// The name on the command line and in `model.json`.
    const NAME: &'static str;
    /// What it is, as `seraphim algorithms` lists it.
    const TITLE: &'static str;
    /// What [`Self::predict`] gives for a record. An algorithm without predictions refuses `predict`, `evaluate` and
    /// `--validate`.
    const OUTPUT: Output = Output::None;
    type Settings: Settings;
    /// [`BySteps`] or [`ByRounds`].
    type Loop: Loop<Self>;

    /// What the training requires of the data. [`Needs::default`] is one pass over records with real labels.
    fn needs(_settings: &Self::Settings) -> Needs {
        Needs::default()
    }

    /// A new model, without its tables. With `before`, training continues from that model.
    ///
    /// # Errors
    /// [`Error::unsuitable`] if the data or the earlier model do not fit.
    fn new(settings: &Self::Settings, facts: &DataFacts, before: Option<&Self>) -> Result<Self, Error>;

    /// The tables of the model, and those that only its training has ([`Table::work`]). `settings` is `None` for a model
    /// that is loaded; the tables of the model then have the same names and columns.
    fn tables(&self, settings: Option<&Self::Settings>) -> Vec<Table>;

    /// The output of this model, if it is not the same for all: classes, or columns with names that are computed.
    fn output(&self) -> Output {
        Self::OUTPUT
    }

    /// The functions that run at the servers.
    fn functions() -> RowFunctions {
        RowFunctions::none()
    }

    /// Pushes the prediction of a record: as many numbers as [`Self::output`] has.
    fn predict(&self, _record: &Record<'_>, _out: &mut Vec<f64>) {}

    /// What a user can change if the numbers of a training are no longer finite.
    fn divergence_advice(_settings: &Self::Settings) -> String {
        "Lower the step sizes, or scale the values".to_owned()
    }

    /// Notices about a training that has ended: what its losses say, and what may help.
    fn advice(settings: &Self::Settings, report: &TrainingReport<'_>) -> Vec<String> {
        if Self::needs(settings).uses_labels { Remedies::default().notices(report) } else { Vec::new() }
    }

    /// The family of this algorithm, for the table of families of a program.
    const FAMILY: Family = Family {
        name: Self::NAME,
        algorithms: &[AlgorithmRow {
            name: Self::NAME,
            title: Self::TITLE,
            parameters: <Self::Settings as Settings>::TABLE,
            configure: row::configure::<Self>,
        }],
        load: row::load::<Self>,
        functions: |table| Self::functions().register(Self::NAME, table),
    };
}

#[cfg(test)]
mod tests;
