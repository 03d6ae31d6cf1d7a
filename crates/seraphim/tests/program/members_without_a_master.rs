//! A master that dies without `--state` takes its jobs with it: the members end and name the checkpoint from which the
//! training goes on, to the same bytes. Members of a master that is started anew join it and serve its jobs.
#![cfg(unix)]

use std::path::Path;

use crate::common::cluster::{Cluster, Process};
use crate::common::{Folder, bytes_of, clicks, succeed};

/// Settings of a job that lasts until its master is killed.
const SETTINGS: [&str; 8] =
    ["--tasks", "3", "--set", "epochs=300", "--set", "batch_size=100", "--checkpoint-every", "100ticks"];

/// A running job on two servers and two workers, and the client that waits for it.
struct RunningJob {
    folder: Folder,
    data: String,
    model: String,
    cluster: Cluster,
    client: Process,
}

impl RunningJob {
    /// Waits for its first checkpoint.
    fn start() -> Self {
        let folder = Folder::new();
        let data = folder.write("train.libsvm", clicks(2000, 1));
        let model = folder.path("model");
        let cluster = Cluster::start(2, 2, 5);
        let fixed = ["lr", "--data", &data, "--model", &model, "--servers", "2", "--workers", "2"];
        let client = cluster.submit(&[&fixed[..], &SETTINGS].concat());
        let first = folder.path("model.checkpoints/00000001/manifest");
        cluster.wait_until(|_| Path::new(&first).exists());
        Self { folder, data, model, cluster, client }
    }
}

/// Trains in one process with the same settings; returns the model.
fn alone(folder: &Folder, data: &str, more: &[&str]) -> String {
    let model = folder.path("alone");
    succeed(&[&["train", "lr", "--data", data, "--model", &model], &SETTINGS[..], more].concat());
    model
}

#[test]
fn members_name_the_checkpoint_from_which_the_training_goes_on() {
    let mut job = RunningJob::start();
    job.cluster.master.kill();
    let place = format!("--resume {}.checkpoints", job.model);
    let (code, _, error) = job.client.end();
    assert!(code == Some(5) && error.contains(&place), "{code:?}: {error}");
    for mut member in job.cluster.servers.drain(..).chain(job.cluster.workers.drain(..)) {
        let is_worker = member.said[0].contains("worker");
        member.wait_for("lost the connection to the master");
        let (code, _, error) = member.end();
        assert!(code == Some(5) && error.contains("is lost"), "{code:?}: {error}");
        assert!(!is_worker || error.contains(&place), "{error}");
        assert!(is_worker || error.contains("jobs [1] were open on this server"), "{error}");
    }
    assert!(!Path::new(&job.model).exists(), "no half of a model");
    let checkpoints = format!("{}.checkpoints", job.model);
    succeed(&["train", "--resume", &checkpoints]);
    let alone = alone(&job.folder, &job.data, &[]);
    assert!(bytes_of(&job.model) == bytes_of(&alone), "the model has other bytes");
}

#[test]
fn members_of_a_master_that_is_started_anew_serve_it() {
    let mut job = RunningJob::start();
    job.cluster.master.kill();
    job.cluster.restart_master(&[]);
    let (code, _, error) = job.client.end();
    assert!(code == Some(5) && error.contains("the master at"), "{code:?}: {error}");
    job.cluster.wait_until(|status| status["members"].as_array().map(Vec::len) == Some(4));
    // The job has the number of the one that has ended.
    let short = ["--set", "epochs=2"];
    let alone = alone(&job.folder, &job.data, &short);
    let again = job.folder.path("again");
    let fixed = ["lr", "--data", &job.data, "--model", &again, "--servers", "2", "--workers", "2"];
    let (code, _, error) = job.cluster.submit(&[&fixed[..], &SETTINGS, &short].concat()).end();
    assert_eq!(code, Some(0), "{error}");
    assert!(bytes_of(&again) == bytes_of(&alone), "the model has other bytes");
}
