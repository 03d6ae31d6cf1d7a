//! What authors write: [`Algorithm`] and its [`Loop`]; and the types of its job and its model.

use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::functions::RowFunctions;
use super::settings::Settings;
use super::table::{Record, Table};
use crate::advice::{Remedies, TrainingReport};
use crate::error::Error;
use crate::family::{AlgorithmRow, Family, Model};
use crate::job::{DataFacts, Job, Needs, Output, TrainTask};
use crate::param::{CheckedParams, ParamValues};
use crate::task_loop::{Learner, TaskState};

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
    /// [`super::BySteps`] or [`super::ByRounds`].
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
            configure: configure::<Self>,
        }],
        load: load::<Self>,
        functions: |table| Self::functions().register(Self::NAME, table),
    };
}

/// How an algorithm is trained.
pub trait Loop<A: Algorithm<Loop = Self>>: Sized {
    /// Whether a training continues from the tables of an earlier model (`--from`).
    const CONTINUES: bool = false;

    /// What the loop requires besides what the algorithm needs.
    fn complete(needs: Needs) -> Needs;

    /// Refuses tables that the loop cannot train.
    fn check_tables(_tables: &[Table]) -> Result<(), Error> {
        Ok(())
    }

    /// The tables that the loop needs.
    fn work_tables() -> Vec<Table> {
        Vec::new()
    }

    fn begin<'a>(
        job: &'a AlgorithmJob<A>,
        task: &mut TrainTask<'a>,
        saved: Option<&TaskState>,
    ) -> Result<Box<dyn Learner + 'a>, Error>;
}

/// [`crate::family::AlgorithmRow::configure`] of an algorithm.
fn configure<A: Algorithm>(given: &ParamValues) -> Result<Arc<dyn Job>, Error> {
    let checked = CheckedParams::new(A::NAME, A::Settings::TABLE, given)?;
    let settings = A::Settings::read(&checked);
    Ok(Arc::new(AlgorithmJob::<A> { checked, settings }))
}

/// [`crate::family::Family::load`] of an algorithm.
fn load<A: Algorithm>(fields: &Value) -> Result<Arc<dyn Model>, serde_json::Error> {
    Ok(Arc::new(AlgorithmModel(serde_json::from_value::<A>(fields.clone())?)))
}

/// The job of an algorithm with its settings.
#[derive(Debug)]
pub struct AlgorithmJob<A: Algorithm> {
    pub(super) checked: CheckedParams,
    pub(super) settings: A::Settings,
}

impl<A: Algorithm> AlgorithmJob<A> {
    /// The tables of the algorithm, then those of the loop.
    pub(super) fn tables(&self, model: &A) -> Vec<Table> {
        let mut tables = model.tables(Some(&self.settings));
        tables.extend(A::Loop::work_tables());
        tables
    }
}

/// The model of an algorithm, without its tables.
#[derive(Clone, Debug)]
pub struct AlgorithmModel<A>(pub(super) A);
