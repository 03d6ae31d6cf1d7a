//! Matrices for loops of a program's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::cluster::{ParameterSession, PushIdentity};
use engine::matrix::{
    Agent, Axis, Element, ElementType, FunctionTable, Keys, MatrixId, MatrixSpec, Selection, Values,
    ValuesMut,
};
use engine::parameters::ParameterStore;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArrayDyn};
use pyo3::prelude::*;

use crate::command::program;
use crate::error::{data_error, exception};

/// The matrices of a loop, in this process or on servers of this machine.
#[pyclass(frozen, module = "seraphim._native")]
pub(crate) struct Store {
    parameters: ParameterStore,
    specs: Arc<[MatrixSpec]>,
    functions: FunctionTable,
}

/// The access of a task to the matrices.
#[pyclass(frozen, module = "seraphim._native")]
pub(crate) struct TaskAgent {
    agent: Mutex<Box<dyn Agent>>,
    specs: Arc<[MatrixSpec]>,
    functions: FunctionTable,
}

fn matrix_exception(error: impl Into<engine::Error>) -> PyErr {
    exception(error.into())
}

#[pymethods]
impl Store {
    /// Creates matrices, whose specs are JSON.
    #[new]
    fn new(py: Python<'_>, specs: Vec<String>, task_count: u32, server_count: u32) -> PyResult<Self> {
        let spec = |text: &String| {
            serde_json::from_str::<MatrixSpec>(text).map_err(|error| data_error(error.to_string()))
        };
        let specs = specs.iter().map(spec).collect::<PyResult<Vec<_>>>()?;
        let (functions, program) = (FunctionTable::builtin(), program(py)?);
        let (matrices, table) = (specs.clone(), functions.clone());
        let parameters = py
            .detach(|| ParameterStore::new(matrices, task_count, server_count, table, &program))
            .map_err(exception)?;
        Ok(Self { parameters, specs: specs.into(), functions })
    }

    fn agent(&self, py: Python<'_>, task: u32) -> PyResult<TaskAgent> {
        let agent = Mutex::new(py.detach(|| self.parameters.agent(task)).map_err(exception)?);
        Ok(TaskAgent { agent, specs: Arc::clone(&self.specs), functions: self.functions.clone() })
    }

    /// Ends the waits of all tasks.
    fn stop(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.parameters.stop(reason));
    }
}

impl TaskAgent {
    fn lock(&self) -> MutexGuard<'_, Box<dyn Agent>> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn Agent) -> Result<T, engine::matrix::Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&mut **self.lock())).map_err(matrix_exception)
    }
}

/// Runs `$body` with the type of this element under the name `$type`.
macro_rules! with_type {
    ($element:expr, $type:ident => $body:expr) => {
        with_type!($element, $type, $body, F32 f32, F64 f64, I64 i64, I32 i32, U32 u32)
    };
    ($element:expr, $type:ident, $body:expr, $($variant:ident $own:ty),*) => {
        match $element {
            $(ElementType::$variant => {
                type $type = $own;
                $body
            })*
        }
    };
}

fn selection<'a>(spec: &MatrixSpec, row: u32, keys: &'a [u64]) -> Selection<'a> {
    match spec.axis {
        Axis::Row => Selection::Rows(Keys::Sorted(keys)),
        Axis::Column => Selection::Columns { row, keys: Keys::Sorted(keys) },
    }
}

/// An array for the values of these keys, which `pull` fills.
fn pulled<'py>(
    py: Python<'py>,
    spec: &MatrixSpec,
    row: u32,
    keys: &PyReadonlyArray1<'py, u64>,
    pull: impl FnOnce(Selection<'_>, ValuesMut<'_>) -> Result<(), engine::Error> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = keys.as_slice()?;
    with_type!(spec.element, T => {
        let mut values = vec![T::ZERO; keys.len() * spec.columns_of_table()];
        py.detach(|| pull(selection(spec, row, keys), T::values_mut(&mut values))).map_err(exception)?;
        Ok(values.into_pyarray(py).into_any())
    })
}

/// Passes the values of these keys to `push`.
fn pushed<R: Send>(
    py: Python<'_>,
    spec: &MatrixSpec,
    row: u32,
    keys: &PyReadonlyArray1<'_, u64>,
    values: &Bound<'_, PyAny>,
    push: impl FnOnce(Selection<'_>, Values<'_>) -> Result<R, engine::Error> + Send,
) -> PyResult<R> {
    let keys = keys.as_slice()?;
    with_type!(spec.element, T => {
        let values = values.extract::<PyReadonlyArrayDyn<'_, T>>()?;
        let values = T::values(values.as_slice()?);
        py.detach(|| push(selection(spec, row, keys), values)).map_err(exception)
    })
}

#[pymethods]
impl TaskAgent {
    /// The values of ascending keys, one after the other. `row` is read of a matrix of long rows.
    fn pull<'py>(
        &self,
        py: Python<'py>,
        matrix: u32,
        row: u32,
        keys: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        pulled(py, &self.specs[matrix as usize], row, &keys, |selection, out| {
            Ok(self.lock().pull(MatrixId(matrix), selection, out)?)
        })
    }

    /// Pushes values of ascending keys, one after the other.
    fn push(
        &self,
        py: Python<'_>,
        matrix: u32,
        row: u32,
        keys: PyReadonlyArray1<'_, u64>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        pushed(py, &self.specs[matrix as usize], row, &keys, values, |selection, values| {
            Ok(self.lock().push(MatrixId(matrix), selection, values)?)
        })
    }

    /// The answer of a pull function as JSON.
    fn pull_function(
        &self,
        py: Python<'_>,
        matrix: u32,
        name: &str,
        from: Vec<u32>,
        argument: &str,
    ) -> PyResult<String> {
        let call = self.call(matrix, name, &from, &[], argument)?;
        let answer = self.run(py, |agent| agent.pull_function(MatrixId(matrix), &call))?;
        let answer = self.functions.answer_as_json(&call, &answer);
        let spec = &self.specs[matrix as usize];
        let answer = answer
            .map_err(|fault| matrix_exception(engine::matrix::Error::function(&spec.name, name, fault)))?;
        Ok(answer.to_string())
    }

    /// Runs a push function.
    fn push_function(
        &self,
        py: Python<'_>,
        matrix: u32,
        name: &str,
        from: Vec<u32>,
        into: Vec<u32>,
        argument: &str,
    ) -> PyResult<()> {
        let call = self.call(matrix, name, &from, &into, argument)?;
        self.run(py, |agent| agent.push_function(MatrixId(matrix), &[call]))
    }

    fn tick(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |agent| agent.tick())
    }

    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |agent| agent.barrier())
    }

    /// The sums over all tasks.
    fn all_reduce<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut values = values.as_slice()?.to_vec();
        self.run(py, |agent| agent.all_reduce(&mut values))?;
        Ok(values.into_pyarray(py))
    }

    fn clock(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, |agent| Ok(agent.clock()))
    }

    /// Ends the task: from now on it does not hold back the others.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |agent| agent.finish())
    }
}

impl TaskAgent {
    fn call(
        &self,
        matrix: u32,
        name: &str,
        from: &[u32],
        into: &[u32],
        argument: &str,
    ) -> PyResult<engine::matrix::FunctionCall> {
        let argument = serde_json::from_str(argument).map_err(|error| data_error(error.to_string()))?;
        let spec = &self.specs[matrix as usize];
        self.functions
            .call_from_json(name, from, into, &argument)
            .map_err(|fault| matrix_exception(engine::matrix::Error::function(&spec.name, name, fault)))
    }
}

/// Matrices on the servers of a parameter service or a cluster. It has no clocks.
#[pyclass(frozen, module = "seraphim._native")]
pub(crate) struct Session {
    connection: Mutex<ParameterSession>,
    specs: Mutex<BTreeMap<u32, MatrixSpec>>,
}

impl Session {
    fn lock(&self) -> MutexGuard<'_, ParameterSession> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spec(&self, matrix: u32) -> MatrixSpec {
        self.specs.lock().unwrap_or_else(PoisonError::into_inner)[&matrix].clone()
    }
}

#[pymethods]
impl Session {
    /// Opens a session, or joins one by its number.
    #[new]
    fn new(py: Python<'_>, address: &str, token: &[u8], name: &str, job: Option<u32>) -> PyResult<Self> {
        let opened = py.detach(|| match job {
            None => ParameterSession::open(address, token, name),
            Some(job) => ParameterSession::join(address, token, job),
        });
        let connection = Mutex::new(opened.map_err(engine::Error::process).map_err(exception)?);
        Ok(Self { connection, specs: Mutex::default() })
    }

    fn job(&self) -> u32 {
        self.lock().job()
    }

    /// Creates a matrix, whose spec is JSON, or finds the one of the same name and spec.
    fn create_matrix(&self, py: Python<'_>, spec: &str) -> PyResult<u32> {
        let spec: MatrixSpec = serde_json::from_str(spec).map_err(|error| data_error(error.to_string()))?;
        let created = py.detach(|| self.lock().create_matrix(&spec));
        let matrix = created.map_err(engine::Error::process).map_err(exception)?.0;
        self.specs.lock().unwrap_or_else(PoisonError::into_inner).insert(matrix, spec);
        Ok(matrix)
    }

    fn pull<'py>(
        &self,
        py: Python<'py>,
        matrix: u32,
        row: u32,
        keys: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        pulled(py, &self.spec(matrix), row, &keys, |selection, out| {
            self.lock().pull(MatrixId(matrix), selection, out).map_err(engine::Error::process)
        })
    }

    fn push(
        &self,
        py: Python<'_>,
        matrix: u32,
        row: u32,
        keys: PyReadonlyArray1<'_, u64>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        pushed(py, &self.spec(matrix), row, &keys, values, |selection, values| {
            self.lock().push(MatrixId(matrix), selection, values).map_err(engine::Error::process)
        })
    }

    /// Pushes values of which one attempt at a part of a token counts. Returns whether it is this one.
    fn push_once(
        &self,
        py: Python<'_>,
        matrix: u32,
        keys: PyReadonlyArray1<'_, u64>,
        values: &Bound<'_, PyAny>,
        identity: (u64, u32, u64),
    ) -> PyResult<bool> {
        let (token, part, attempt) = identity;
        pushed(py, &self.spec(matrix), 0, &keys, values, |selection, values| {
            let identity = PushIdentity { token, part, attempt };
            let counts = self.lock().push_once(MatrixId(matrix), selection, values, identity);
            counts.map_err(engine::Error::process)
        })
    }

    /// Refuses all later attempts of a token and those below it.
    fn close_token(&self, py: Python<'_>, matrix: u32, token: u64) -> PyResult<()> {
        let closed = py.detach(|| self.lock().close_token(MatrixId(matrix), token));
        closed.map_err(engine::Error::process).map_err(exception)
    }
}
