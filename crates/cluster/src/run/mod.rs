//! Runs of jobs. A training job has one [`driver`] and one or more [`worker`]s, in one process ([`local`]) or on a
//! [`cluster`].

pub mod apply;
pub mod cluster;
pub mod coverage;
mod coverage_agent;
pub mod driver;
pub mod evaluate;
mod explain;
pub mod export;
pub mod failure;
pub mod import;
mod input;
pub mod local;
#[cfg(feature = "parquet")]
mod parquet;
pub mod predict;
pub mod recommend;
mod resume;
mod run_info;
pub mod score;
mod score_output;
pub mod task_count;
pub mod task_streams;
pub mod totals;
pub mod worker;

pub use self::explain::{TextJob, export_text};
pub use self::run_info::data_digests;
pub use self::worker::data_files::SAMPLED_BYTES;

use std::path::Path;
use std::sync::Arc;

use algo::Families;
use data::FormatTable;
use matrix::FunctionTable;
use model::Manifest;

use crate::error::Error;
use crate::interrupt::Interrupt;

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
}

/// Restores the model of a model directory as its family knows it.
pub(crate) fn load_model(
    path: &Path,
    manifest: &Manifest,
    families: &Families,
) -> Result<Arc<dyn algo::Model>, Error> {
    families.load(&manifest.model).map_err(|error| {
        let (path, what) = (path.into(), error.to_string());
        model::Error::BadModel { path, what }.into()
    })
}
