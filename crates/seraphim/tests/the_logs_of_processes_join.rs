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

fn run(folder: &Folder, level: &str, pause_ms: &str) -> (Vec<Value>, Vec<Value>, Vec<Value>) {
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let mut cluster = Cluster::start_with(1, 2, |kind, number| {
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
    let slow = log(cluster.workers.remove(1));
    (log(cluster.workers.remove(0)), slow, log(cluster.servers.remove(0)))
}

#[test]
fn every_request_has_one_identity_in_the_logs_of_worker_and_server() {
    let (worker, other, server) = run(&Folder::new(), "debug", "0");
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
}

#[test]
fn a_slow_request_is_logged_at_both_ends() {
    let (worker, _, server) = run(&Folder::new(), "info", PAUSE_MS);
    let identity = ["job", "task", "request", "lane"];
    let waited = lines(&worker, "answered slowly", "Pulled", &identity);
    let held = lines(&server, "request was held for other tasks", "Pull", &identity);
    assert!(!waited.is_empty(), "the fast worker waits for the slow one: {worker:?}");
    assert!(waited.is_subset(&held), "{waited:?} was held: {held:?}");
    let line = worker.iter().find(|line| line["message"] == "answered slowly").expect("it is there");
    assert!(line["held_ms"].as_u64() >= Some(1000) && line["took_ms"].as_u64() >= Some(1000), "{line}");
    assert!(lines(&worker, "request sent", "Pull", &identity).is_empty(), "at info nothing else of requests");
}
