//! Paths `worker://NAME`: each worker has files of its own, in the folder that `seraphim worker --local-data` names.
//!
//! A job whose data are such files has as many tasks on each worker, and the tasks of a worker share its files. So records
//! that lie on many machines need no file system that all of them see.

use std::path::{Component, Path};

use crate::checkpoints::{CheckpointEvery, CheckpointSettings};
use crate::error::Error;
use crate::training::{SlowWorkerPolicy, TrainJob};

/// What such a path begins with.
pub const PREFIX: &str = "worker://";

/// Whether a path is a file of each worker.
pub fn is_local(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Checks the job, and chooses the settings that its files leave open. Without data of workers it changes nothing.
pub fn check(job: &mut TrainJob, given_restarts: Option<u32>) -> Result<(), Error> {
    let inputs = || job.input.data.iter().chain(&job.validate);
    let count = inputs().filter(|path| is_local(path)).count();
    let refused = |what: String, advice: &str| Err(Error::InvalidRequest { what, advice: advice.into() });
    let model = job.model.display().to_string();
    let from = job.from.as_deref().map(|path| path.display().to_string());
    let paths = inputs().cloned().chain([model.clone()]).chain(from.clone());
    if let Some(path) = paths.filter(|path| is_local(path)).find(|path| !has_plain_name(path)) {
        return refused(
            format!("{path} names no file within the folder of a worker"),
            "write worker:// and a relative path without `..`, as in worker://rows",
        );
    }
    if count == 0
        && let Some(path) = [Some(model), from].into_iter().flatten().find(|path| is_local(path))
    {
        return refused(
            format!("{path} is a file of one worker, and the data are not"),
            "name a folder that all workers can reach, or give worker:// data",
        );
    }
    job.is_data_local = count > 0;
    if !job.is_data_local {
        return Ok(());
    }
    if count < inputs().count() {
        return refused(
            "some data are worker://, and others are not".into(),
            "give all data and all validation data as worker:// or none",
        );
    }
    let Some(size) = job.size else {
        return refused(
            "worker:// names files of the workers of a cluster, and this job runs in one process".into(),
            "use `seraphim submit` with --workers, and workers that were started with --local-data",
        );
    };
    if let Some(tasks) = job.run_options.tasks.filter(|tasks| tasks % u64::from(size.workers) != 0) {
        return refused(
            format!(
                "{tasks} tasks cannot be divided equally among {} workers, which have data of their own",
                size.workers
            ),
            "give a multiple of the number of workers as --tasks",
        );
    }
    if job.slow_worker == SlowWorkerPolicy::Move {
        return refused("slow_worker: move needs data that all workers can read".into(), "use warn or off");
    }
    if given_restarts.is_some_and(|restarts| restarts > 0) {
        return refused(
            "restarts: the data of a lost worker are lost with it".into(),
            "leave --restarts out, and start the job again with new workers",
        );
    }
    job.restarts = 0;
    refuse_checkpoints(&mut job.checkpoints)
}

/// Switches checkpoints off. Another run might give the tasks of a worker, and with them the states of these tasks, to a
/// worker with other data.
fn refuse_checkpoints(checkpoints: &mut CheckpointSettings) -> Result<(), Error> {
    let is_wanted = checkpoints.is_asked_for || checkpoints.resume.is_some();
    checkpoints.every = CheckpointEvery::Off;
    if is_wanted {
        return Err(Error::InvalidRequest {
            what: "checkpoints of a job whose workers have data of their own: they would not know which worker had which data"
                .into(),
            advice: "leave checkpoint_every, checkpoints and resume out; --durability log keeps the job going when a server dies"
                .into(),
        });
    }
    Ok(())
}

/// Whether the path after the prefix stays within the folder.
fn has_plain_name(path: &str) -> bool {
    let name = Path::new(path.strip_prefix(PREFIX).unwrap_or(path));
    let mut components = name.components().peekable();
    components.peek().is_some() && components.all(|component| matches!(component, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::raw::RawJob;

    fn job(changes: &Value) -> Result<TrainJob, Error> {
        let mut job = json!({
            "algorithm": "lr", "data": ["worker://rows"], "model": "worker://model", "workers": 2, "tasks": "4",
        });
        for (key, value) in changes.as_object().expect("an object") {
            job[key] = value.clone();
        }
        TrainJob::check(&RawJob::from_submitted(&job)?, &families::all())
    }

    #[test]
    fn a_job_with_data_of_workers_has_settings_that_fit() {
        let job = job(&json!({})).unwrap();
        assert!(job.is_data_local);
        assert_eq!((job.restarts, job.checkpoints.every), (0, CheckpointEvery::Off));
        let shared = self::job(&json!({ "model": "/shared/model", "checkpoint_every": "off" })).unwrap();
        assert_eq!(shared.checkpoints.every, CheckpointEvery::Off);
        let usual = self::job(&json!({ "data": ["/rows"], "model": "/model" })).unwrap();
        assert!(!usual.is_data_local && usual.restarts > 0);
    }

    #[test]
    fn what_does_not_fit_data_of_workers_is_refused() {
        for (changes, part) in [
            (json!({ "data": ["worker://rows", "/more"] }), "some data are worker://"),
            (json!({ "validate": ["/more"] }), "some data are worker://"),
            (json!({ "data": ["/rows"] }), "worker://model is a file of one worker, and the data are not"),
            (
                json!({ "data": ["/rows"], "model": "/m", "from": "worker://old" }),
                "worker://old is a file of one worker",
            ),
            (json!({ "data": ["worker://../rows"] }), "worker://../rows names no file within"),
            (json!({ "data": ["worker:///etc"] }), "worker:///etc names no file within"),
            (json!({ "model": "worker://" }), "worker:// names no file within"),
            (json!({ "from": "worker://a/../../b" }), "names no file within"),
            (json!({ "tasks": "3" }), "3 tasks cannot be divided equally among 2 workers"),
            (json!({ "slow_worker": "move" }), "slow_worker: move"),
            (json!({ "restarts": 1 }), "the data of a lost worker are lost with it"),
            (
                json!({ "checkpoint_every": "5s" }),
                "checkpoints of a job whose workers have data of their own",
            ),
            (
                json!({ "checkpoints": "/shared/place" }),
                "checkpoints of a job whose workers have data of their own",
            ),
            (json!({ "resume": "latest" }), "checkpoints of a job whose workers have data of their own"),
        ] {
            let error = job(&changes).expect_err(part).to_string();
            assert!(error.contains(part), "{changes}: {error}");
        }
        let raw = json!({ "algorithm": "lr", "data": ["worker://rows"], "model": "/m" });
        let alone = TrainJob::check(&RawJob::from_submitted(&raw).unwrap(), &families::all());
        assert!(alone.expect_err("one process").to_string().contains("this job runs in one process"));
    }
}
