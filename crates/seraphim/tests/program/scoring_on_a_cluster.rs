//! Promise: a cluster scores as this process does. `submit predict` and `submit evaluate`, a job file with `command`, and
//! the JSON of other clients run on its servers and workers; a member that is lost ends the job with its name.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::cluster::Cluster;
use crate::common::disturbed::wait_until;
use crate::common::{Folder, bytes_of, clicks, number, succeed};

/// A folder with a model and data in four files.
fn prepared() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    for i in 0..4 {
        folder.write(&format!("data/{i}.libsvm"), clicks(300, i));
    }
    let (model, data) = (folder.path("model"), folder.path("data"));
    succeed(&["train", "lr", "--quiet", "--data", &data, "--model", &model]);
    folder
}

#[test]
fn submitted_scores_and_metrics_are_those_of_one_process() {
    let folder = prepared();
    let (model, data, here) = (folder.path("model"), folder.path("data"), folder.path("here.csv"));
    let read = ["--model", &model, "--data", &data];
    succeed(&[&["predict", "--output", &here, "--quiet"], &read[..]].concat());
    let metrics = succeed(&[&["evaluate", "--json"], &read[..]].concat());
    let cluster = Cluster::start(2, 2, 0);
    let there = folder.path("there.csv");
    let members = ["--servers", "2", "--workers", "2", "--threads", "1"];
    let predict = [&["predict", "--output", &there, "--json"], &read[..], &members].concat();
    let (code, out, error) = cluster.submit(&predict).end();
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(number(&out, "/records") as u64, 1200, "{out}");
    assert!(error.contains("is running"), "{error}");
    assert!(std::fs::read(&there).unwrap() == std::fs::read(&here).unwrap());
    let (code, out, error) = cluster.submit(&[&["evaluate", "--json"], &read[..], &members].concat()).end();
    assert_eq!((code, out.as_str()), (Some(0), metrics.as_str()), "{error}");
    let (code, _, error) = cluster.submit(&predict).end();
    assert!(code == Some(2) && error.contains("there.csv already exists"), "{error}");
    // The same from a job file, whose keys are those of its command.
    let file = format!(
        "command = \"predict\"\nmodel = {model:?}\ndata = [{data:?}]\noutput = {there:?}\noverwrite = true\n"
    );
    let file = folder.write("job.toml", file);
    let (code, _, error) = cluster.submit(&[file.as_str(), "--quiet"]).end();
    assert_eq!(code, Some(0), "{error}");
    assert!(std::fs::read(&there).unwrap() == std::fs::read(&here).unwrap());
    let error = crate::common::fail(2, &["submit", &file, "--seed", "3", "--master", &cluster.address]);
    assert!(error.contains("seed") && error.contains("predict"), "{error}");
    let error = crate::common::fail(2, &["train", &file]);
    assert!(error.contains("command = \"predict\""), "{error}");
    let error = crate::common::fail(
        2,
        &[&["submit", "predict", "--output", "-", "--master", &cluster.address], &read[..]].concat(),
    );
    assert!(error.contains("output: workers cannot"), "{error}");
    let status = succeed(&["status", "--json", "--master", &cluster.address]);
    assert!(status.contains("predict with"), "{status}");
    let of_job = |job: &str| succeed(&["status", job, "--master", &cluster.address]);
    assert!(of_job("1").contains("1200 scores written to"), "{}", of_job("1"));
    assert!(of_job("2").contains("log_loss"), "{}", of_job("2"));
}

#[test]
fn a_folder_of_scores_has_a_part_of_each_worker() {
    let folder = prepared();
    let cluster = Cluster::start(1, 3, 0);
    let (model, data, output) = (folder.path("model"), folder.path("data"), folder.path("scores/"));
    let submit = [
        "predict",
        "--quiet",
        "--model",
        &model,
        "--data",
        &data,
        "--output",
        &output,
        "--workers",
        "3",
        "--servers",
        "1",
    ];
    let (code, _, error) = cluster.submit(&submit).end();
    assert_eq!(code, Some(0), "{error}");
    let lines: Vec<usize> =
        bytes_of(&output).iter().map(|(_, part)| String::from_utf8_lossy(part).lines().count()).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines.iter().sum::<usize>(), 1200 + 3, "each part has a header");
}

/// Submits a prediction whose data are a pipe that stays open. Returns the client and the pipe.
#[cfg(target_os = "linux")]
fn endless(folder: &Folder, cluster: &Cluster) -> (crate::common::cluster::Process, std::fs::File) {
    use std::io::Write as _;

    let (model, pipe, output) = (folder.path("model"), folder.path("pipe.libsvm"), folder.path("scores.csv"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let submit = ["predict", "--model", &model, "--data", &pipe, "--output", &output, "--servers", "2"];
    let client = cluster.submit(&submit);
    let mut input = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let text = clicks(20_000, 4);
    // The pipe holds less than this, so the worker has read most of it when it is written: it scores.
    input.write_all(text.repeat(2).as_bytes()).unwrap();
    (client, input)
}

#[cfg(target_os = "linux")]
#[test]
fn a_member_that_is_lost_ends_the_job_with_its_name_and_leaves_nothing() {
    use std::io::Write as _;

    for victim in ["server-1", "worker-0"] {
        let folder = prepared();
        let mut cluster = Cluster::start(2, 1, 0);
        let (client, mut input) = endless(&folder, &cluster);
        match victim {
            "server-1" => cluster.servers[1].kill(),
            _ => cluster.workers[0].kill(),
        }
        let text = clicks(20_000, 4);
        while input.write_all(text.as_bytes()).is_ok() {}
        let (code, _, error) = client.end();
        assert!(code != Some(0) && error.contains(victim), "{error}");
        assert!(!std::path::Path::new(&folder.path("scores.csv")).exists());
        if victim == "server-1" {
            // The client may end first.
            wait_until("worker-0 removes its part of the output", || {
                let mut left = std::fs::read_dir(folder.path("")).unwrap();
                !left.any(|entry| entry.unwrap().file_name().to_string_lossy().contains(".part"))
            });
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_cancelled_job_leaves_nothing() {
    use std::io::Write as _;

    let folder = prepared();
    let cluster = Cluster::start(2, 1, 0);
    let (client, mut input) = endless(&folder, &cluster);
    succeed(&["cancel", "1", "--master", &cluster.address]);
    let text = clicks(20_000, 4);
    while input.write_all(text.as_bytes()).is_ok() {}
    let (code, _, error) = client.end();
    assert!(code != Some(0) && error.contains("scoring was not finished"), "{error}");
    cluster.wait_until(|status| status["jobs"][0]["state"] == "cancelled");
    assert!(!std::path::Path::new(&folder.path("scores.csv")).exists());
    // The worker is free for other jobs.
    let (model, data) = (folder.path("model"), folder.path("data"));
    let (code, _, error) = cluster.submit(&["evaluate", "--model", &model, "--data", &data]).end();
    assert_eq!(code, Some(0), "{error}");
}
