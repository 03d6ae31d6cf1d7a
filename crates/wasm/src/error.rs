//! Errors of loading a module of functions.

use matrix::FunctionFault;

/// Why a module was refused. The texts are written to follow the name of the file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields say what the text says; each variant has its sentence")]
pub enum Error {
    /// The file cannot be read.
    #[error("the file cannot be read: {reason}")]
    File { reason: String },

    /// The file is larger than the limit.
    #[error(
        "the module has {actual} bytes, at most {limit} are allowed: build with optimization and without names"
    )]
    TooLarge { actual: usize, limit: usize },

    /// The file is not WebAssembly, or the module is not valid.
    #[error("no valid WebAssembly module: {reason}")]
    NotWasm { reason: String },

    /// The module imports something.
    #[error(
        "the module imports {}: modules may not import anything; build for wasm32-unknown-unknown, without WASI",
        names.join(", ")
    )]
    Imports { names: Vec<String> },

    /// An export is missing or has another type.
    #[error("export {name:?} is {actual}, expected {expected}")]
    Export { name: String, actual: String, expected: String },

    /// The module exports no function.
    #[error(
        "the module exports no function: expected at least one export change:NAME:TYPE, read:NAME:TYPE or \
         terms:NAME:TYPE, TYPE f32, f64 or i64"
    )]
    Empty,

    /// The module cannot be instantiated.
    #[error("the module cannot be started: {reason}")]
    Start { reason: String },

    /// The machine lacks something that wasmtime needs.
    #[error("WebAssembly does not run on this machine: {reason}")]
    Machine { reason: String },

    /// The name of a function is taken or empty.
    #[error("{0}")]
    Table(#[from] FunctionFault),
}

impl Error {
    pub(crate) fn export(name: &str, actual: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Export { name: name.to_owned(), actual: actual.into(), expected: expected.into() }
    }
}
