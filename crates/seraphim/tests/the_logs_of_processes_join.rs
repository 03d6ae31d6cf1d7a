//! A request of a task has one identity in the logs of the worker that asks and of the server that answers; what is slow is
//! logged by both without being asked for.
#![cfg(unix)]

mod common;

use std::collections::BTreeSet;

use common::cluster::{Cluster, Process};
use common::{Folder, clicks};
use serde_json::Value;

/// Pause of the slow worker before a batch: longer than what is called slow.
const PAUSE_MS: &str = "1300";

/// What a process has logged as JSON, by fields.
fn log(mut process: Process) -> Vec<Value> {
    process.kill();
    let (_, _, text) = process.end();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.map(|line| line["fields"].clone()).collect()
}

/// The lines of a message, as lists of some fields.
fn lines(log: &[Value], message: &str, kind: &str, fields: &[&str]) -> BTreeSet<Vec<u64>> {
    let wanted = log.iter().filter(|line| line["message"] == message && line["kind"] == kind);
    wanted
        .map(|line| {
            fields.iter().map(|field| line[field].as_u64().unwrap_or_else(|| panic!("{line}"))).collect()
        })
        .collect()
}

/// What each process of a job has logged.
struct Logs {
    worker: Vec<Value>,
    /// Of the worker that pauses.
    other: Vec<Value>,
    server: Vec<Value>,
    master: Vec<Value>,
}

fn run(folder: &Folder, level: &str, pause_ms: &str) -> Logs {
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let of_master = ["--log", level, "--log-format", "json"];
    let mut cluster = Cluster::start_all(1, 2, &of_master, |kind, number| {
        let pause = if kind == "worker" && number == 1 { pause_ms } else { "0" };
        let flags = ["--log", level, "--log-format", "json", "--pause-ms", pause];
        flags[..if kind == "worker" { 6 } else { 4 }].iter().map(ToString::to_string).collect()
    });
    let model = folder.path("model");
    let fixed =
        ["lr", "--data", &data, "--model", &model, "--tasks", "2", "--servers", "1", "--workers", "2"];
    let job = [&fixed[..], &["--set", "epochs=1", "--set", "batch_size=500"]].concat();
    let (code, _, error) = cluster.submit(&job).end();
    assert_eq!(code, Some(0), "{error}");
    let other = log(cluster.workers.remove(1));
    let (worker, server) = (log(cluster.workers.remove(0)), log(cluster.servers.remove(0)));
    Logs { worker, other, server, master: log(cluster.master) }
}

#[test]
fn every_request_has_one_identity_in_the_logs_of_worker_and_server() {
    let Logs { worker, other, server, master } = run(&Folder::new(), "debug", "0");
    let asked = ["job", "task", "request", "lane"];
    let named = ["job", "task", "clock", "index", "lane"];
    for (kind, fields) in [("Pull", &asked[..]), ("Barrier", &asked), ("Leave", &asked), ("Push", &named)] {
        let mut sent = lines(&worker, "request sent", kind, fields);
        assert!(!sent.is_empty(), "{kind}");
        sent.extend(lines(&other, "request sent", kind, fields));
        assert_eq!(sent, lines(&server, "request came", kind, fields), "{kind}");
    }
    let answered = lines(&worker, "answer came", "Pulled", &asked);
    assert_eq!(answered, lines(&worker, "request sent", "Pull", &asked), "each pull has its answer");
    let control = ["member", "request", "job"];
    for (said, heard, kind) in [
        ("said to the master", "heard of a member", "FromTask"),
        ("said to a member", "heard of the master", "ToTask"),
    ] {
        let of_members = if kind == "FromTask" { said } else { heard };
        let mut members = lines(&worker, of_members, kind, &control);
        members.extend(lines(&other, of_members, kind, &control));
        let of_master = if kind == "FromTask" { heard } else { said };
        assert!(!members.is_empty(), "{kind}");
        assert_eq!(members, lines(&master, of_master, kind, &control), "{kind}");
    }
}

#[test]
fn a_slow_request_is_logged_at_both_ends() {
    let Logs { worker, server, .. } = run(&Folder::new(), "info", PAUSE_MS);
    let identity = ["job", "task", "request", "lane"];
    let waited = lines(&worker, "answered slowly", "Pulled", &identity);
    let held = lines(&server, "request was held for other tasks", "Pull", &identity);
    assert!(!waited.is_empty(), "the fast worker waits for the slow one: {worker:?}");
    assert!(waited.is_subset(&held), "{waited:?} was held: {held:?}");
    let line = worker.iter().find(|line| line["message"] == "answered slowly").expect("it is there");
    assert!(line["held_ms"].as_u64() >= Some(1000) && line["took_ms"].as_u64() >= Some(1000), "{line}");
    assert!(lines(&worker, "request sent", "Pull", &identity).is_empty(), "at info nothing else of requests");
}
