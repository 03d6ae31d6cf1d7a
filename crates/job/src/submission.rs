//! Jobs for servers and workers. The command line checks a submission before it sends it, and the master checks every
//! submission that it receives.

use std::path::Path;

use algo::Families;
use control::JobSubmission;
use control::limits::WORKER_GROUP_BYTES;
use control::text::{is_worker_group, plain};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::keys::{KeyKind, TASK_LIMIT, find, is_word};
use crate::raw::RawJob;
use crate::{RunOptions, ScoringJob, TrainJob};

/// A checked job of any command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "one job exists at a time")]
pub enum CheckedJob {
    Train(TrainJob),
    Score(ScoringJob),
}

impl CheckedJob {
    /// Checks the settings of a raw job of any command.
    pub fn check(raw: &RawJob, families: &Families) -> Result<Self, Error> {
        Ok(match ScoringJob::check(raw)? {
            Some(job) => Self::Score(job),
            None => Self::Train(TrainJob::check(raw, families)?),
        })
    }

    /// The number of servers and the number of workers with which it is submitted.
    pub fn size(&self) -> (u32, u32) {
        let (servers, workers) = self.wanted();
        (servers.or(workers).unwrap_or(1), workers.unwrap_or(1))
    }

    /// One line about it, for people.
    pub fn title(&self) -> String {
        match self {
            Self::Train(job) => format!("{} on {}", job.algorithm, job.input.data.join(", ")),
            Self::Score(job) => {
                let (command, model) = (job.command().name(), job.model().display());
                format!("{command} with {model} on {}", job.input().data.join(", "))
            }
        }
    }

    pub fn run_options(&self) -> RunOptions {
        match self {
            Self::Train(job) => job.run_options,
            Self::Score(job) => job.run_options(),
        }
    }

    /// The numbers of servers and workers, as far as the job names them.
    fn wanted(&self) -> (Option<u32>, Option<u32>) {
        match self {
            Self::Train(job) => (job.size.map(|size| size.servers), job.size.map(|size| size.workers)),
            Self::Score(job) => (job.members().servers, job.members().workers),
        }
    }
}

/// The folder to which the members of a job resolve relative paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathBase {
    /// The folder of the submitting process, which started the members.
    Same,
    /// Unknown folders: paths must be absolute.
    Unknown,
}

/// Checks a submission.
pub fn check(order: &JobSubmission, folder: PathBase, families: &Families) -> Result<CheckedJob, Error> {
    let raw = RawJob::from_submitted(&order.spec)?;
    let job = CheckedJob::check(&raw, families)?;
    check_size(order, &job)?;
    check_group(&order.worker_group)?;
    check_paths(&raw, folder)?;
    Ok(job)
}

fn check_size(order: &JobSubmission, job: &CheckedJob) -> Result<(), Error> {
    let (servers, workers) = job.wanted();
    for (name, number, other) in [("servers", order.servers, servers), ("workers", order.workers, workers)] {
        if !(1..=TASK_LIMIT).contains(&u64::from(number)) {
            let expected = format!("a whole number in [1, {TASK_LIMIT}]");
            return Err(Error::BadValue { place: name.into(), actual: number.to_string(), expected });
        }
        if let Some(other) = other.filter(|other| *other != number) {
            return Err(Error::InvalidRequest {
                what: format!("the job has {other} {name}, but it is submitted with {number}"),
                advice: "give the same number in both places".into(),
            });
        }
    }
    Ok(())
}

/// The group is printed in one line of the status of its job.
fn check_group(group: &str) -> Result<(), Error> {
    if !is_worker_group(group) {
        return Err(Error::BadValue {
            place: "worker_group".into(),
            actual: plain(group, WORKER_GROUP_BYTES),
            expected: format!("a text of at most {WORKER_GROUP_BYTES} bytes without control characters"),
        });
    }
    Ok(())
}

fn check_paths(raw: &RawJob, folder: PathBase) -> Result<(), Error> {
    for (name, paths) in raw.texts() {
        let Some(key) = find(raw.command, &name) else { continue };
        let is_of_members =
            matches!(key.kind, KeyKind::Path | KeyKind::List) && !RawJob::is_client_side(&name);
        for path in paths.iter().filter(|_| is_of_members) {
            if path == "-" {
                return Err(standard_stream(&name));
            }
            if folder == PathBase::Unknown && !is_absolute(path) && !is_word(&name, path) {
                return Err(Error::BadValue {
                    place: name,
                    actual: path.clone(),
                    expected: "an absolute path, as in /data/train.libsvm: workers run in other folders"
                        .into(),
                });
            }
        }
    }
    Ok(())
}

/// The error of a job that would read or write a stream of the command.
fn standard_stream(key: &str) -> Error {
    let (what, advice) = if key == "output" {
        (
            "workers cannot write to the standard output of this command",
            "name a file that every worker can write",
        )
    } else {
        (
            "workers cannot read the standard input of this command",
            "write the data to files that every worker can read",
        )
    };
    Error::InvalidRequest { what: format!("{key}: {what}"), advice: advice.into() }
}

/// Whether a path or URL means the same in every folder.
pub fn is_absolute(path: &str) -> bool {
    path.contains("://") || Path::new(path).is_absolute()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Exit;

    fn order(spec: Value, servers: u32, workers: u32) -> JobSubmission {
        JobSubmission { title: String::new(), spec, servers, workers, worker_group: String::new() }
    }

    fn refused(order: &JobSubmission) -> String {
        let error = check(order, PathBase::Unknown, &families::all()).expect_err("it cannot be");
        assert_eq!(error.exit(), Exit::Usage, "{error}");
        error.to_string()
    }

    #[test]
    fn a_submission_that_cannot_run_is_refused_with_its_field() {
        let good = json!({ "algorithm": "lr", "data": ["/d/x"], "model": "/d/m" });
        assert!(check(&order(good.clone(), 1, 2), PathBase::Unknown, &families::all()).is_ok());
        for (servers, workers, field) in [(0, 1, "servers"), (1, 0, "workers"), (1, 100_000, "workers")] {
            let text = refused(&order(good.clone(), servers, workers));
            assert!(text.contains(field) && text.contains("in [1, 1024]"), "{text}");
        }
        for group in ["two\nlines", &"long".repeat(100)] {
            let text = refused(&JobSubmission { worker_group: group.into(), ..order(good.clone(), 1, 1) });
            assert!(text.contains("worker_group") && text.contains("at most 200 bytes"), "{text}");
        }
        for (key, value) in [("data", json!(["x"])), ("model", json!("m")), ("from", json!("old"))] {
            let mut spec = good.clone();
            spec[key] = value;
            let text = refused(&order(spec.clone(), 1, 1));
            assert!(text.contains(key) && text.contains("an absolute path"), "{text}");
            assert!(check(&order(spec, 1, 1), PathBase::Same, &families::all()).is_ok());
        }
        for (key, value, part) in [
            ("data", json!(["-"]), "standard input"),
            ("algorithm", json!("lrr"), "lrr"),
            ("set", json!({ "learning_rat": 1 }), "learning_rat"),
            ("servers", json!(3), "3 servers"),
            ("nothing", json!(1), "nothing"),
        ] {
            let mut spec = good.clone();
            spec[key] = value;
            let text = refused(&order(spec, 1, 1));
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_job_that_scores_has_the_keys_of_its_command() {
        let good = json!({ "command": "predict", "model": "/d/m", "data": ["/d/x"], "output": "/d/scores/" });
        let checked = check(&order(good.clone(), 2, 3), PathBase::Unknown, &families::all());
        let Ok(CheckedJob::Score(ScoringJob::Predict(job))) = checked else { panic!("it is a prediction") };
        assert_eq!(job.output.to_str(), Some("/d/scores/"));
        let evaluation = json!({ "command": "evaluate", "model": "/d/m", "data": "/d/x", "threshold": 0.25 });
        assert!(check(&order(evaluation, 1, 1), PathBase::Unknown, &families::all()).is_ok());
        for (key, value, part) in [
            ("output", json!("-"), "output: workers cannot write"),
            ("output", json!("scores.csv"), "an absolute path"),
            ("data", json!(["-"]), "data: workers cannot read"),
            ("workers", json!(2), "2 workers, but it is submitted with 1"),
            ("algorithm", json!("lr"), "algorithm"),
            ("epochs", json!(3), "epochs"),
            ("threshold", json!(0.5), "threshold"),
            ("command", json!("predictt"), "train, predict, evaluate"),
        ] {
            let mut spec = good.clone();
            spec[key] = value;
            let text = refused(&order(spec, 1, 1));
            assert!(text.contains(part), "{text}");
        }
    }
}
