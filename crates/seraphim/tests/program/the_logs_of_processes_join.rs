//! A request of a task has one identity in the logs of the worker that sends it and of the server that answers it. Both
//! log slow requests at the default level.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::common::cluster::{Cluster, PATIENCE, Process, Slowness};
use crate::common::{Folder, clicks};
use serde_json::Value;

/// How long the slow worker stands still, in milliseconds: longer than the threshold for slow requests.
const PAUSE_MS: u64 = 1300;
/// How long it runs between two pauses: long enough to begin with the job.
const RUN_MS: u64 = 100;

/// Lines of a log, each as the values of some of its fields.
type Lines = BTreeSet<Vec<u64>>;

/// The fields of the lines that a process has logged as JSON so far.
fn log(process: &mut Process) -> Vec<Value> {
    let lines = process.so_far().iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.map(|line| line["fields"].clone()).collect()
}

/// Selects the lines with this message and kind; returns these fields of each.
fn lines(log: &[Value], message: &str, kind: &str, fields: &[&str]) -> Lines {
    let wanted = log.iter().filter(|line| line["message"] == message && line["kind"] == kind);
    wanted
        .map(|line| {
            fields.iter().map(|field| line[field].as_u64().unwrap_or_else(|| panic!("{line}"))).collect()
        })
        .collect()
}

/// What each process of a job has logged so far.
struct Logs {
    worker: Vec<Value>,
    /// Log of the worker that pauses.
    other: Vec<Value>,
    server: Vec<Value>,
    master: Vec<Value>,
}

impl Logs {
    fn of(cluster: &mut Cluster) -> Self {
        let [worker, other] = &mut cluster.workers[..] else { panic!("two workers") };
        Self {
            worker: log(worker),
            other: log(other),
            server: log(&mut cluster.servers[0]),
            master: log(&mut cluster.master),
        }
    }

    /// Lines of both workers.
    fn of_workers(&self, message: &str, kind: &str, fields: &[&str]) -> Lines {
        &lines(&self.worker, message, kind, fields) | &lines(&self.other, message, kind, fields)
    }

    /// Pairs of what one end has logged and what the other end should have logged, with a name.
    fn both_ends(&self) -> Vec<(&'static str, Lines, Lines)> {
        let asked = ["job", "task", "request", "lane"];
        let named = ["job", "task", "clock", "index", "lane"];
        let control = ["member", "request", "job"];
        let (sent, came) = ("request sent", "request received");
        let requests = [("Pull", &asked[..]), ("Barrier", &asked), ("Leave", &asked), ("Push", &named)];
        let mut both: Vec<_> = requests
            .into_iter()
            .map(|(kind, by)| (kind, self.of_workers(sent, kind, by), lines(&self.server, came, kind, by)))
            .collect();
        for (request, answer) in [("Pull", "Pulled"), ("Barrier", "Released")] {
            let requests = self.of_workers(sent, request, &asked);
            both.push((answer, requests, self.of_workers("response received", answer, &asked)));
        }
        for (kind, of_members, of_master) in [
            ("FromTask", "sent to the master", "received from a member"),
            ("ToTask", "received from the master", "sent to a member"),
        ] {
            let members = self.of_workers(of_members, kind, &control);
            both.push((kind, members, lines(&self.master, of_master, kind, &control)));
        }
        both
    }
}

/// Runs a job of two workers to its end. The cluster stays alive because the last log lines may still be missing.
fn run(folder: &Folder, level: &str, pause_ms: u64, epochs: u32) -> Cluster {
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let of_master = ["--log", level, "--log-format", "json"];
    let mut cluster =
        Cluster::start_all(1, 2, &of_master, |_, _| of_master.iter().map(ToString::to_string).collect());
    if pause_ms > 0 {
        cluster.slowness = Some(Slowness::start(&cluster.workers[1..], RUN_MS, pause_ms));
    }
    let epochs = format!("epochs={epochs}");
    let model = folder.path("model");
    let fixed =
        ["lr", "--data", &data, "--model", &model, "--tasks", "2", "--servers", "1", "--workers", "2"];
    let job = [&fixed[..], &["--set", &epochs, "--set", "batch_size=500"]].concat();
    let (code, _, error) = cluster.submit(&job).end();
    assert_eq!(code, Some(0), "{error}");
    cluster
}

/// Reads the logs until `wanted` accepts them or [`PATIENCE`] has passed.
fn settled(cluster: &mut Cluster, wanted: impl Fn(&Logs) -> bool) -> Logs {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let logs = Logs::of(cluster);
        if wanted(&logs) || Instant::now() > deadline {
            return logs;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_request_has_one_identity_in_the_logs_of_worker_and_server() {
    let mut cluster = run(&Folder::new(), "debug", 0, 1);
    let logs = settled(&mut cluster, |logs| logs.both_ends().iter().all(|(_, one, other)| one == other));
    for (kind, one, other) in logs.both_ends() {
        assert!(!one.is_empty(), "{kind}");
        assert_eq!(one, other, "{kind}");
    }
}

#[test]
fn a_slow_request_is_logged_at_both_ends() {
    let identity = ["job", "task", "request", "lane"];
    let waited = |logs: &Logs| lines(&logs.worker, "slow response", "Pulled", &identity);
    let held = |logs: &Logs| lines(&logs.server, "request was deferred for other tasks", "Pull", &identity);
    let mut cluster = run(&Folder::new(), "info", PAUSE_MS, 200);
    let logs = settled(&mut cluster, |logs| {
        let waited = waited(logs);
        !waited.is_empty() && waited.is_subset(&held(logs))
    });
    let (waited, held, worker) = (waited(&logs), held(&logs), &logs.worker);
    assert!(!waited.is_empty(), "the fast worker waits for the slow one: {worker:?}");
    assert!(waited.is_subset(&held), "{waited:?} was held: {held:?}");
    let line = worker.iter().find(|line| line["message"] == "slow response").expect("it is there");
    assert!(line["deferred_ms"].as_u64() >= Some(1000) && line["took_ms"].as_u64() >= Some(1000), "{line}");
    assert!(lines(worker, "request sent", "Pull", &identity).is_empty(), "at info nothing else of requests");
}
