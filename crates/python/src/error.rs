//! Errors as exceptions: one type for each kind of fault, in `seraphim.errors`.

use engine::{Error, Exit};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The exception of an error. Its text is that of the command line.
pub(crate) fn exception(error: Error) -> PyErr {
    let name = match error.exit() {
        Exit::Usage => "SettingError",
        Exit::Data => "DataError",
        Exit::Model => "ModelError",
        Exit::Io => "StorageError",
        Exit::Interrupted => "InterruptedRunError",
        Exit::Done | Exit::Internal => "InternalError",
    };
    named(name, error.to_string())
}

pub(crate) fn named(name: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("seraphim.errors").and_then(|module| module.getattr(name));
        match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
            Ok(class) => PyErr::from_type(class, text),
            Err(error) => error,
        }
    })
}

/// What arrays or columns of the caller are wrong.
pub(crate) fn data_error(text: impl Into<String>) -> PyErr {
    named("DataError", text.into())
}
