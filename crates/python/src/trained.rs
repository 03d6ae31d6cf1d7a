//! Training, and trained models.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use engine::algo::Output;
use engine::interrupt::Interrupt;
use engine::{Flow, LoadedRecommender, Training};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::command::program;
use crate::error::exception;
use crate::records::Records;
use crate::run::interruptible;

type Settings = Vec<(String, String)>;
type ScoresOfPython<'py> = (Vec<String>, Bound<'py, PyArray2<f64>>, Vec<String>);
type TableOfPython<'py> =
    (Vec<String>, Option<Vec<String>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray2<f64>>);
type Lists = Vec<Vec<(String, f64)>>;

/// A model in memory.
#[pyclass(frozen, module = "seraphim._native")]
pub(crate) struct TrainedModel(engine::TrainedModel);

/// Trains. Returns the model, and the exception that has ended the training early, if there was one.
///
/// `settings` are parameters of the algorithm, `options` keys of a job file; `on_epoch` gets each epoch as JSON, and ends
/// the training if it returns true.
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    algorithm: &str,
    settings: Settings,
    options: Settings,
    data: &Records,
    validation: Option<&Records>,
    from_model: Option<PathBuf>,
    on_epoch: Option<Py<PyAny>>,
) -> PyResult<(TrainedModel, Option<PyErr>)> {
    let interrupt = Interrupt::new();
    let mut training = Training::new(algorithm).stopped_by(&interrupt).with_program(&program(py)?);
    training = settings.iter().fold(training, |training, (name, value)| training.set(name, value));
    training = options.iter().fold(training, |training, (key, value)| training.option(key, value));
    if let Some(validation) = validation {
        training = training.validate(&validation.0);
    }
    if let Some(from) = from_model {
        training = training.from_model(from);
    }
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    if let Some(callback) = on_epoch {
        let raised = Arc::clone(&raised);
        training = training.on_epoch(move |line| {
            let line = serde_json::to_string(line).expect("an epoch is plain data");
            let answer = Python::attach(|py| callback.call1(py, (line,))?.is_truthy(py));
            let is_end = answer.unwrap_or_else(|error| {
                raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                true
            });
            if is_end { Flow::Stop } else { Flow::Continue }
        });
    }
    let (result, signal) = interruptible(py, &interrupt, || training.run(&data.0));
    let exception_of_run = raised.lock().unwrap_or_else(PoisonError::into_inner).take().or(signal);
    match (result, exception_of_run) {
        (Ok(model), raised) => Ok((TrainedModel(model), raised)),
        // What stopped the run says more than that it was stopped.
        (Err(engine::Error::Interrupted { .. }), Some(raised)) => Err(raised),
        (Err(error), _) => Err(exception(error)),
    }
}

#[pymethods]
impl TrainedModel {
    /// Reads a model directory.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| engine::TrainedModel::load(path)).map(Self).map_err(exception)
    }

    /// Reads a model directory, which may be removed then.
    #[staticmethod]
    fn load_into_memory(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| engine::TrainedModel::load_into_memory(path)).map(Self).map_err(exception)
    }

    /// Writes the model directory.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        py.detach(|| self.0.save(path, overwrite)).map_err(exception)
    }

    /// The manifest as JSON.
    fn manifest(&self) -> String {
        serde_json::to_string(self.0.manifest()).expect("a manifest is plain data")
    }

    /// The report of the training as JSON; none for a model that was loaded.
    fn report(&self) -> Option<String> {
        self.0.report().map(|report| serde_json::to_string(report).expect("a report is plain data"))
    }

    /// What a prediction is: a word, and the labels of the classes for `classes`, or names for `columns`.
    fn output(&self) -> (&'static str, Vec<f32>, Vec<String>) {
        match self.0.output() {
            Output::None => ("none", Vec::new(), Vec::new()),
            Output::Probability => ("probability", Vec::new(), Vec::new()),
            Output::Margin => ("margin", Vec::new(), Vec::new()),
            Output::Value => ("value", Vec::new(), Vec::new()),
            Output::Classes(classes) => ("classes", classes, Vec::new()),
            Output::Columns(names) => ("columns", Vec::new(), names),
        }
    }

    /// The names of the numbers, the numbers of all records, and notices. `options` are keys of `seraphim predict`.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        data: &Records,
        options: Settings,
    ) -> PyResult<ScoresOfPython<'py>> {
        let options: Vec<(&str, &str)> =
            options.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let scores = py.detach(|| self.0.predict_with(&data.0, &options)).map_err(exception)?;
        let width = scores.columns.len();
        let rows = scores.values.len() / width.max(1);
        let values = scores.values.into_pyarray(py).reshape([rows, width])?;
        Ok((scores.columns, values, scores.notices))
    }

    /// The metrics of labelled records as JSON. `options` are keys of `seraphim evaluate`.
    fn evaluate(&self, py: Python<'_>, data: &Records, options: Settings) -> PyResult<String> {
        let options: Vec<(&str, &str)> =
            options.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let evaluation = py.detach(|| self.0.evaluate_with(&data.0, &options)).map_err(exception)?;
        Ok(serde_json::to_string(&evaluation).expect("an evaluation is plain data"))
    }

    /// The names of the tables of the model.
    fn tables(&self) -> Vec<String> {
        self.0.table_names()
    }

    /// The names of the columns of a table, the names of its rows if they are features, their keys, and the values.
    fn table<'py>(&self, py: Python<'py>, name: Option<&str>) -> PyResult<TableOfPython<'py>> {
        let table = py.detach(|| self.0.table(name)).map_err(exception)?;
        let (rows, values) = (table.keys.len(), table.values);
        let width = values.len().checked_div(rows).unwrap_or(0);
        let values = values.into_pyarray(py).reshape([rows, width])?;
        Ok((table.columns, table.names, table.keys.into_pyarray(py), values))
    }

    /// The model for recommendations.
    fn recommender(&self, py: Python<'_>) -> PyResult<Recommender> {
        py.detach(|| self.0.recommender()).map(Recommender).map_err(exception)
    }
}

/// The best items of users, and similar items.
#[pyclass(frozen, module = "seraphim._native")]
pub(crate) struct Recommender(LoadedRecommender);

#[pymethods]
impl Recommender {
    fn recommend(&self, py: Python<'_>, users: Vec<String>, n: usize) -> PyResult<Lists> {
        let users: Vec<&str> = users.iter().map(String::as_str).collect();
        py.detach(|| self.0.recommend(&users, n)).map_err(exception)
    }

    fn similar(&self, py: Python<'_>, items: Vec<String>, n: usize) -> Lists {
        let items: Vec<&str> = items.iter().map(String::as_str).collect();
        py.detach(|| self.0.similar(&items, n))
    }
}
