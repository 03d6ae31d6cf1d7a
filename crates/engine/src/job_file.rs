//! Job files, and the files that a job names.

use std::path::Path;

use job::{Modules, RawJob};

use driver::Error;
pub use runtime::modules::{extend_table, read_modules};
pub use runtime::saved_job::saved_job;

/// Reads a job file. It has the keys of its `command`; for `train`, the default, also `algorithm` and the table `[set]`.
pub fn read_job_file(path: &Path) -> Result<RawJob, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
    Ok(RawJob::from_toml(&text, path)?)
}

/// Returns the job with the modules of its key `functions`. Only the program that submits the job reads their files.
pub fn with_modules(job: RawJob) -> Result<RawJob, Error> {
    let modules: Modules = read_modules(job.module_files())?;
    Ok(job.with_modules(modules)?)
}
