//! What clients of a cluster of processes can do over gRPC: run commands with a token, check the health of all
//! processes, and submit jobs from other languages.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::cluster::{Cluster, Process};
use crate::common::metrics::http;
use crate::common::{Folder, bytes_of, clicks, fail, succeed};
use control::{Client, Code, JobState, JobSubmission, SubmissionId};
use serde_json::{Value, json};

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(20);

/// A client of the process whose frames are at `place`.
fn client(place: &str) -> Client {
    let frames: rpc::Address = place.parse().expect("it is an address");
    Client::new(frames.http().expect("it has a next port"), b"")
}

#[test]
fn the_commands_need_the_token_of_the_master_and_say_so() {
    let folder = Folder::new();
    let (right, wrong) = (folder.write("right", "secret\n"), folder.write("wrong", "sesame\n"));
    let mut master = Process::start(&["master", "--listen", "127.0.0.1:0", "--token-file", &right]);
    let line = master.wait_for("master is ready");
    let at = line.find("127.0.0.1:").unwrap_or_else(|| panic!("no address in {line}"));
    let place: String = line[at..].chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
    let data = folder.write("train.libsvm", clicks(50, 1));
    let model = folder.path("model");
    let submit = ["submit", "lr", "--data", &data, "--model", &model];
    for command in [&["status"][..], &["cancel", "1"], &submit] {
        let there = [command, &["--master", &place]].concat();
        let error = fail(2, &there);
        assert!(error.contains("a token is required") && error.contains(&http(&place)), "{error}");
        let error = fail(2, &[&there[..], &["--token-file", &wrong]].concat());
        assert!(error.contains("not the one of this cluster"), "{error}");
    }
    let with = ["--master", &place, "--token-file", &right];
    assert!(succeed(&[&["status"][..], &with].concat()).contains("0 jobs"), "nothing was submitted");
    let number = succeed(&[&submit[..], &with, &["--detach"]].concat());
    assert_eq!(number, "1\n");
    assert!(succeed(&[&["cancel", "1"][..], &with].concat()).contains("asked to stop"));
    let error = fail(2, &[&["cancel", "9"][..], &with].concat());
    assert!(error.contains("no job 9"), "{error}");
}

#[test]
fn a_report_of_submit_replaces_nothing_that_it_should_not() {
    let folder = Folder::new();
    let text = clicks(50, 1);
    let data = folder.write("train.libsvm", &text);
    let (model, stranger) = (folder.path("model"), folder.write("notes.txt", "mine"));
    let submit = |report: &str, more: &[&str]| {
        let job = ["submit", "lr", "--data", &data, "--model", &model, "--report", report];
        // No master is running: all of these errors come before the master is contacted.
        fail(2, &[&job[..], &["--master", "127.0.0.1:1"], more].concat())
    };
    for more in [&[][..], &["--overwrite"]] {
        assert!(submit(&data, more).contains("which is read"));
        assert!(submit(&model, more).contains("is the folder of the model"));
        assert!(submit(&format!("{model}/model.json"), more).contains("lies inside the model"));
    }
    assert!(submit(&stranger, &[]).contains("already exists"));
    assert!(submit(&stranger, &["--overwrite"]).contains("is not a report"));
    assert!(submit(&folder.path("report.json"), &["--detach"]).contains("does not wait"));
    assert_eq!(std::fs::read_to_string(&data).expect("it is still there"), text);
    assert_eq!(std::fs::read_to_string(&stranger).expect("it is still there"), "mine");
}

#[test]
fn masters_servers_and_workers_answer_for_their_health() {
    let cluster = Cluster::start(1, 1, 0);
    let http =
        |status: &Value, at: usize| status["members"][at]["report"]["http"][0].as_str().map(str::to_owned);
    let status = cluster.wait_until(|status| http(status, 0).is_some() && http(status, 1).is_some());
    let server = status["members"][0]["member"]["addresses"][0].as_str().expect("it says where it is");
    // Processes of this machine find a Unix socket beside the TCP address.
    let socket = status["members"][0]["member"]["addresses"][1].as_str().expect("it offers a second place");
    assert!(socket.starts_with("unix:"), "{socket}");
    for place in [server, socket, &cluster.address] {
        assert!(client(place).is_well(LIMIT).expect("health is answered"), "{place}");
    }
    for member in 0..2 {
        let address: rpc::Address =
            http(&status, member).expect("it says where").parse().expect("an address");
        assert!(Client::new(address, b"").is_well(LIMIT).expect("health is answered"), "{member}");
    }
    let error = client(server).status(LIMIT).expect_err("a server has no jobs").to_string();
    assert!(error.contains("this process is not a master"), "{error}");
}

#[test]
fn whoever_takes_the_wrong_port_is_told_so() {
    let cluster = Cluster::start(0, 0, 0);
    let (frames, http) = (cluster.address.as_str(), http(&cluster.address));
    let (code, _, error) = Process::start(&["worker", "--master", &http]).end();
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("this is an HTTP port") && error.contains("the port before it"), "{error}");
    let error = fail(5, &["status", "--http", frames]);
    assert!(error.contains("does not speak gRPC") && error.contains("at the next port"), "{error}");
    assert!(succeed(&["status", "--http", &http]).contains("0 jobs"));
    let mut browser = TcpStream::connect(frames).expect("it takes connections");
    browser.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("it reads");
    let mut text = String::new();
    browser.read_to_string(&mut text).expect("it answers");
    assert!(text.starts_with("HTTP/1.1 421 ") && text.ends_with(&format!(" are at tcp:{http}\n")), "{text}");
}

#[test]
fn a_job_of_a_client_in_another_language_gives_the_same_model() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let (alone, model) = (folder.path("alone"), folder.path("model"));
    succeed(&["train", "lr", "--data", &data, "--model", &alone, "--tasks", "2", "--set", "epochs=2"]);
    let cluster = Cluster::start(1, 2, 0);
    let spec =
        json!({ "algorithm": "lr", "data": [data], "model": model, "tasks": 2, "set": { "epochs": 2 } });
    let order = JobSubmission {
        title: "from elsewhere".into(),
        spec,
        servers: 1,
        workers: 2,
        worker_group: String::new(),
    };
    let client = client(&cluster.address);
    let job = client.submit(SubmissionId::random(), &order, LIMIT).expect("the job is taken");
    let mut last = None;
    let see = |status: &control::JobStatus| {
        last = Some((status.state, status.error.clone()));
        true
    };
    client.watch(job, see).expect("the job ends");
    assert_eq!(last, Some((JobState::Done, None)));
    assert!(bytes_of(&model) == bytes_of(&alone), "the model has other bytes");
    let unknown = JobSubmission { spec: json!({ "algorithm": "lr", "dta": "x" }), ..order };
    let error = client.submit(SubmissionId::random(), &unknown, LIMIT).expect_err("there is no such key");
    let (_, text) = error.refusal().expect("the master answers");
    assert!(text.contains("dta") && text.contains("did you mean"), "{text}");
}

#[test]
fn the_master_refuses_what_cannot_run_whoever_submits_it() {
    let cluster = Cluster::start(0, 0, 0);
    let client = client(&cluster.address);
    let good = json!({ "algorithm": "lr", "data": ["/d/x"], "model": "/d/m" });
    let with = |key: &str, value: Value| {
        let mut spec = good.clone();
        spec[key] = value;
        spec
    };
    for (spec, servers, workers, part) in [
        (good.clone(), 1, 0, "workers"),
        (good.clone(), 0, 1, "servers"),
        (with("data", json!(["x"])), 1, 1, "an absolute path"),
        (with("model", json!("m")), 1, 1, "an absolute path"),
        (with("algorithm", json!("lrr")), 1, 1, "lrr"),
        (with("seed", json!("x")), 1, 1, "seed"),
    ] {
        let order = JobSubmission { title: "t".into(), spec, servers, workers, worker_group: String::new() };
        let error = client.submit(SubmissionId::random(), &order, LIMIT).expect_err("it cannot run");
        let (code, text) = error.refusal().expect("the master answers");
        assert!(code == Code::InvalidArgument && text.contains(part), "{code:?} {text}");
    }
    assert!(succeed(&["status", "--master", &cluster.address]).contains("0 jobs"));
}

#[test]
fn members_are_and_do_what_their_flags_say() {
    let folder = Folder::new();
    let cluster = Cluster::start(0, 0, 0);
    let http = folder.path("server.http");
    let start = |kind: &str, more: &[&str]| {
        let mut process = Process::start(&[&[kind, "--master", &cluster.address], more].concat());
        process.wait_for("joined");
        process
    };
    let place = format!("unix:{http}");
    let server = [
        "--name",
        "shop",
        "--listen",
        "127.0.0.1:0",
        "--lanes",
        "3",
        "--memory-limit",
        "1MiB",
        "--http",
        &place,
    ];
    let server = start("server", &server);
    let worker = start("worker", &["--name", "hand", "--worker-group", "night"]);
    cluster.wait_until(|status| (0..2).all(|at| status["members"][at]["report"]["http"].is_array()));
    let status = succeed(&["status", "--master", &cluster.address]);
    let line =
        |name: &str| status.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
    let shop = line("shop ");
    assert!(shop.contains("server  3 lanes, at most 1.0 MiB, at tcp:127.0.0.1:"), "{status}");
    assert!(shop.contains(&format!("HTTP at {place}  (")), "{status}");
    assert!(line("hand ").contains(", worker group \"night\", HTTP at tcp:127.0.0.1:"), "{status}");
    assert!(Client::new(place.parse().unwrap(), b"").is_well(LIMIT).expect("health is answered"));
    // Sparse weights whose number is not known before the training.
    let row = |i: u64| {
        let features: Vec<String> = (1..=20).map(|j| format!("{}:1", i * 20 + j)).collect();
        format!("{} {}\n", i % 2, features.join(" "))
    };
    let data = folder.write("wide.libsvm", (0..4000).map(row).collect::<String>());
    let job = ["lr", "--data", &data, "--model", &folder.path("model"), "--set", "optimizer=ftrl"];
    let more = ["--worker-group", "night", "--set", "standardize=false"];
    let (code, _, error) = cluster.submit(&[&job[..], &more].concat()).end();
    assert_eq!(code, Some(5), "{error}");
    // A third of a mebibyte.
    for part in ["server shop", "take ", "(job 1: ", "memory limit of its server is 349525", "--memory-limit"]
    {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    for (process, leaves) in
        [(server, "stopping: this server leaves"), (worker, "stopping: this worker leaves")]
    {
        process.signal("-INT");
        let (code, _, said) = process.end();
        assert!(code == Some(0) && said.contains(leaves), "{code:?}: {said}");
    }
}
