//! The native part of the Python package `seraphim`: it turns arrays, tables and settings of Python into those of [`engine`], and
//! results back. No rule about data, settings or models is written here.
//!
//! | module | contents |
//! |---|---|
//! | `error` | errors as exceptions of `seraphim.errors` |
//! | `arrays` | numpy arrays as buffers, without a copy |
//! | `table` | columns and Arrow streams as record batches |
//! | `records` | the records of a training, prediction or evaluation |
//! | `run` | work beside the interpreter, which Ctrl-C and callbacks can stop |
//! | `trained` | training, and trained models |
//! | `parameters` | matrices for loops of a program's own |
//! | `command` | the command line |

#![allow(clippy::format_push_string, reason = "texts for people are short; format! reads best")]
#![allow(unsafe_code, reason = "memory that Python owns is read where it is")]
#![allow(clippy::needless_pass_by_value, reason = "functions that Python calls own their arguments")]
#![allow(clippy::trivially_copy_pass_by_ref, reason = "methods that Python calls take references")]

mod arrays;
mod command;
mod error;
mod parameters;
mod records;
mod run;
mod table;
mod trained;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::command::{algorithms, run_command};
    #[pymodule_export]
    use crate::parameters::{Session, Store, TaskAgent};
    #[pymodule_export]
    use crate::records::Records;
    #[pymodule_export]
    use crate::trained::{Recommender, TrainedModel, train};

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
