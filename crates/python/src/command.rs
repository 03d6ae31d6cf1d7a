//! The command line, and what it lists.

use engine::Tables;
use pyo3::prelude::*;

/// Every algorithm with its parameters, as JSON.
#[pyfunction]
pub(crate) fn algorithms() -> String {
    engine::algorithms::as_json(&Tables::default().families).to_string()
}

/// Runs `seraphim` with these arguments, the name of the program first, and returns its exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| seraphim::cli::run_arguments(arguments, &Tables::default()) as u8)
}
