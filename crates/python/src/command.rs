//! The command line, and what it lists.

use std::path::PathBuf;

use engine::Tables;
use engine::program::Program;
use pyo3::prelude::*;

/// Every algorithm with its parameters, as JSON.
#[pyfunction]
pub(crate) fn algorithms() -> String {
    engine::algorithms::as_json(&Tables::default().families).to_string()
}

/// This package as a program: the interpreter with its command line.
pub(crate) fn program(py: Python<'_>) -> PyResult<Program> {
    let interpreter: PathBuf = py.import("sys")?.getattr("executable")?.extract()?;
    Ok(Program::new(interpreter, vec!["-m".to_owned(), "seraphim".to_owned()]))
}

/// Runs `seraphim` with these arguments, the name of the program first, and returns its exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<String>) -> PyResult<u8> {
    let program = program(py)?;
    Ok(py.detach(|| seraphim::cli::run_arguments(arguments, &Tables::default(), &program) as u8))
}
