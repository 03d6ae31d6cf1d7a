//! The folder of a worker for paths `worker://NAME`.

use std::path::PathBuf;

use driver::Error;
use job::TrainJob;
use job::local_data::PREFIX;

/// The folder of a worker for such paths; none if it has none.
#[derive(Clone, Debug, Default)]
pub struct LocalData(Option<PathBuf>);

impl LocalData {
    /// # Errors
    /// If there is no such folder.
    pub fn new(folder: Option<PathBuf>) -> Result<Self, Error> {
        if let Some(folder) = &folder {
            std::fs::read_dir(folder).map_err(Error::io("read --local-data", folder))?;
        }
        Ok(Self(folder))
    }

    /// Returns the path on this machine; other paths are unchanged.
    pub fn resolve(&self, path: &str) -> Result<String, Error> {
        let Some(name) = path.strip_prefix(PREFIX) else { return Ok(path.to_owned()) };
        let Some(folder) = &self.0 else {
            return Err(Error::request(
                format!("{path}: this worker has no folder for such files"),
                "start each worker of the job with --local-data DIR, and train with `seraphim submit`",
            ));
        };
        Ok(folder.join(name).display().to_string())
    }

    /// Replaces the paths of a job.
    pub fn resolve_job(&self, job: &mut TrainJob) -> Result<(), Error> {
        for input in job.input.data.iter_mut().chain(&mut job.validate) {
            *input = self.resolve(input)?;
        }
        for path in [&mut job.model].into_iter().chain(&mut job.from) {
            *path = self.resolve(&path.display().to_string())?.into();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use job::RawJob;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_worker_finds_such_paths_in_its_folder() {
        let local = LocalData(Some("/tmp/seven".into()));
        assert_eq!(local.resolve("worker://rows/a.arrow").unwrap(), "/tmp/seven/rows/a.arrow");
        assert_eq!(local.resolve("/rows").unwrap(), "/rows");
        let error =
            LocalData::default().resolve("worker://rows").expect_err("there is no folder").to_string();
        assert!(error.contains("worker://rows") && error.contains("--local-data"), "{error}");
        let raw = json!({
            "algorithm": "lr", "data": ["worker://rows"], "model": "worker://model", "workers": 2, "tasks": "4",
            "validate": ["worker://more"], "from": "worker://old",
        });
        let mut resolved = TrainJob::check(&RawJob::from_submitted(&raw).unwrap(), &families::all()).unwrap();
        local.resolve_job(&mut resolved).unwrap();
        assert_eq!(resolved.input.data, ["/tmp/seven/rows"]);
        assert_eq!(resolved.validate, ["/tmp/seven/more"]);
        assert_eq!(resolved.model, Path::new("/tmp/seven/model"));
        assert_eq!(resolved.from.as_deref(), Some(Path::new("/tmp/seven/old")));
    }
}
