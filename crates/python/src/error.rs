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
    named(name, in_python(&error.to_string()))
}

/// A text of the command line with keywords for flags: `--group COLUMN` becomes `group=COLUMN`, and `--set k=3` becomes `k=3`.
fn in_python(text: &str) -> String {
    let is_value = |word: &str| word.chars().all(|c| c.is_ascii_uppercase() || "=|,.)".contains(c));
    let words: Vec<&str> = text.split(' ').collect();
    let mut out = String::with_capacity(text.len());
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1);
        let start = word.find(|c: char| c != '(' && c != '`').unwrap_or(0);
        let (before, flag) = word.split_at(start);
        match flag.strip_prefix("--").filter(|flag| flag.starts_with(|c: char| c.is_ascii_lowercase())) {
            Some("set") => out += before,
            Some(flag) => {
                let joint = if next.is_some_and(|next| is_value(next)) { "=" } else { " " };
                out += &format!("{before}{}{joint}", flag.replace('-', "_"));
            }
            None => out += &format!("{word} "),
        }
    }
    out.pop();
    out
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
