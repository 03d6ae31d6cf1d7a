//! Why a file is no module of functions.

use matrix::FunctionFault;

/// Why a module was refused. Texts are to be read behind the name of the file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields say what the text says; each variant has its sentence")]
pub enum Error {
    /// A file that cannot be read.
    #[error("the file cannot be read: {reason}")]
    File { reason: String },

    /// A file above the limit.
    #[error(
        "the module has {actual} bytes, at most {limit} are allowed: build with optimization and without names"
    )]
    TooLarge { actual: usize, limit: usize },

    /// Not WebAssembly, or a module that does not hold.
    #[error("no valid WebAssembly module: {reason}")]
    NotWasm { reason: String },

    /// Something wanted from outside.
    #[error(
        "the module imports {}: functions get nothing from outside; build for wasm32-unknown-unknown, without WASI",
        names.join(", ")
    )]
    Imports { names: Vec<String> },

    /// An export that lacks or has another type.
    #[error("export {name:?} is {actual}, expected {expected}")]
    Export { name: String, actual: String, expected: String },

    /// No function in it.
    #[error(
        "the module exports no function: expected at least one export change:NAME:TYPE, read:NAME:TYPE or \
         terms:NAME:TYPE, TYPE f32, f64 or i64"
    )]
    Empty,

    /// An instance that could not be made.
    #[error("the module cannot be started: {reason}")]
    Start { reason: String },

    /// A machine without what wasmtime needs.
    #[error("WebAssembly does not run on this machine: {reason}")]
    Machine { reason: String },

    /// A name that is taken, or empty.
    #[error("{0}")]
    Table(#[from] FunctionFault),
}

impl Error {
    pub(crate) fn export(name: &str, actual: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Export { name: name.to_owned(), actual: actual.into(), expected: expected.into() }
    }
}
