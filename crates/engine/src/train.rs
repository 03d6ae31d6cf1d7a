//! Trains a checked job: in this process, or on servers and workers of this machine, which are started for it.

use std::sync::Arc;

use driver::progress::ProgressListener;
use driver::report::Report;
use job::TrainJob;
use runtime::cluster::launch;
use runtime::{Environment, local};

use driver::Error;

/// Trains, and writes the model. `progress` learns of it, unless the job is quiet.
pub fn train(
    job: &TrainJob,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
) -> Result<Report, Error> {
    match job.size {
        None => local::train(job, environment, progress),
        Some(size) => launch::train(job, size, environment, progress),
    }
}
