//! A master that runs one job and ends with it, for supervisors that start a cluster for a job. It writes how the job ended
//! into a file: what ends without that file has died, and is started again.

use std::time::{Duration, Instant};

use control::client::Client;
use control::request::{JobState, JobStatus};
use driver::Error;
use rpc::stop::Stop;
use rpc::transport::Address;

/// Time between two looks at the job.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Longest wait for an answer of the own master.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long the master stays after the end of the job, so that clients hear of it.
const GRACE: Duration = Duration::from_secs(2);
/// How long it waits for a job to be submitted.
const SUBMISSION_LIMIT: Duration = Duration::from_mins(10);

/// The file of a result: the first line is `succeeded`, `failed` or `cancelled`, the rest is for people.
#[derive(Clone, Debug)]
pub struct ResultFile {
    pub location: String,
}

impl ResultFile {
    /// Watches the master at this HTTP address until its job has ended, writes the file, and raises `is_written` and then `stop`.
    pub(super) fn watch(self, http: Address, token: &[u8], is_written: &Stop, stop: &Stop) {
        let (client, begun) = (Client::new(http, token), Instant::now());
        let mut result = None;
        while result.is_none() {
            if stop.wait(POLL_INTERVAL) {
                return;
            }
            let Ok(status) = client.status(ANSWER_LIMIT) else { continue };
            result = match status.jobs.last() {
                Some(job) => result_of(job),
                None if begun.elapsed() >= SUBMISSION_LIMIT => {
                    Some(format!("failed\nno job was submitted within {} s\n", SUBMISSION_LIMIT.as_secs()))
                }
                None => None,
            };
        }
        match self.write(&result.unwrap_or_default()) {
            Ok(()) => is_written.raise(),
            Err(error) => {
                tracing::error!(%error, "the result of the job cannot be written: the supervisor will start this master again");
            }
        }
        stop.wait(GRACE);
        stop.raise();
    }

    fn write(&self, text: &str) -> Result<(), Error> {
        if std::fs::metadata(&self.location).is_ok_and(|file| file.is_file()) {
            // A supervisor has made it for this process alone, and may have mounted it: it cannot be replaced.
            return std::fs::write(&self.location, text).map_err(Error::io("write", &self.location));
        }
        let (store, name) = store::open_folder_of(&self.location).map_err(model::Error::Store)?;
        Ok(store.write(name, text.as_bytes()).map_err(model::Error::Store)?)
    }
}

/// The text of the file; none if the job has not ended.
fn result_of(job: &JobStatus) -> Option<String> {
    let word = match job.state {
        JobState::Queued | JobState::Running => return None,
        JobState::Done => "succeeded",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    };
    let more = match &job.error {
        Some(error) => error.clone(),
        None => job.progress["model"]["path"].as_str().or(job.progress["model"].as_str()).map_or_else(
            || job.title.clone(),
            |model| format!("{}: the model is saved in {model}", job.title),
        ),
    };
    Some(format!("{word}\n{more}\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_result_says_how_the_job_ended_and_why() {
        let job = |state, error: Option<&str>| JobStatus {
            id: 1,
            title: "m of lr".into(),
            state,
            progress: json!({"model": "hdfs://h/m"}),
            error: error.map(str::to_owned),
        };
        assert_eq!(result_of(&job(JobState::Running, None)), None);
        assert_eq!(
            result_of(&job(JobState::Done, None)).unwrap(),
            "succeeded\nm of lr: the model is saved in hdfs://h/m\n"
        );
        let failed = result_of(&job(JobState::Failed, Some("no data"))).unwrap();
        assert_eq!(failed, "failed\nno data\n");
        assert!(result_of(&job(JobState::Cancelled, None)).unwrap().starts_with("cancelled\n"));
    }
}
