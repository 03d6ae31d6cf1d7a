//! What a run depends on: formats, families of algorithms, PS functions, whether the user wants it to stop, and the program.

use std::path::Path;
use std::sync::Arc;

use algo::Families;
use data::FormatTable;
use driver::Error;
use matrix::FunctionTable;
use model::Manifest;

use crate::interrupt::Interrupt;
use crate::program::Program;

/// The dependencies of a run.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The formats of input files.
    pub formats: &'a FormatTable,
    /// The families of algorithms.
    pub families: &'a Families,
    /// The PS functions that tasks may call, also on servers.
    pub functions: &'a FunctionTable,
    pub interrupt: &'a Interrupt,
    /// What servers and workers of this machine are processes of.
    pub program: &'a Program,
}

/// Restores the model of a model directory as its family knows it.
pub fn load_model(
    path: &Path,
    manifest: &Manifest,
    families: &Families,
) -> Result<Arc<dyn algo::Model>, Error> {
    families.load(&manifest.model).map_err(|error| {
        let (path, what) = (path.into(), error.to_string());
        model::Error::BadModel { path, what }.into()
    })
}
