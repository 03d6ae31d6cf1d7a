//! While a job runs, `GET /metrics` on the HTTP ports of master, server and worker returns the metrics that docs/watching.md
//! lists, and no others, in the text format of Prometheus.
#![cfg(unix)]

use std::collections::BTreeSet;

use crate::common::cluster::Cluster;
use crate::common::metrics::{ANSWER_LIMIT, get, http, value};
use crate::common::{Folder, clicks, succeed};

/// The page that lists the metrics.
const PAGE: &str = include_str!("../../../../docs/watching.md");

/// Names of metrics in an answer.
fn shown(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(['{', ' ']).next()).filter(|name| !name.is_empty()).collect()
}

/// Names that the page lists in rows of its tables.
fn listed() -> BTreeSet<&'static str> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split(['`', '{']).next()).filter(|name| name.starts_with("seraphim_")).collect()
}

#[test]
fn master_server_and_worker_show_what_the_page_lists() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let model = folder.path("model");
    let cluster = Cluster::start(1, 2, 2);
    let job = [
        &["lr", "--data", &data, "--model", &model, "--tasks", "2", "--servers", "1", "--workers", "2"][..],
        &["--consistency", "ssp:1", "--set", "epochs=10000", "--set", "batch_size=128"],
    ];
    let client = cluster.submit(&job.concat());
    let status = cluster
        .wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64().is_some_and(|n| n > 4000));
    let members = status["members"].as_array().expect("it is a list");
    let server = members.iter().find(|entry| entry["member"]["kind"] == "server").expect("there is one");
    let place = server["member"]["addresses"][0].as_str().expect("it says where").trim_start_matches("tcp:");
    // Makes a request that the server refuses, so that its counter is not 0.
    let _ = rpc_refusal(place);
    let (of_server, of_master) = (get(&http(place), "/metrics"), get(&http(&cluster.address), "/metrics"));
    for name in ["pulls_total", "pushes_total", "task_clock", "waits_total", "wait_seconds_total"] {
        let count = value(&of_server, &format!("seraphim_{name}"), &["job=\"1\""]);
        assert!(count > 0.0, "{name} is {count} in {of_server}");
    }
    for kind in ["pull", "push", "tick"] {
        let count = value(&of_server, "seraphim_requests_total", &[&format!("kind=\"{kind}\"")]);
        assert!(count > 0.0, "{kind} is {count} in {of_server}");
    }
    let beyond = value(&of_server, "seraphim_pull_staleness_count", &[])
        - value(&of_server, "seraphim_pull_staleness_bucket", &["le=\"1.0\""]);
    assert!(beyond.abs() < f64::EPSILON, "no pull beyond SSP(1): {of_server}");
    assert!(value(&of_server, "seraphim_memory_bytes", &[]) > 0.0, "{of_server}");
    assert!(value(&of_server, "seraphim_rpc_bytes_in_total", &[]) > 0.0, "{of_server}");
    for (name, label, count) in [
        ("members", "kind=\"server\"", 1.0),
        ("members", "kind=\"worker\"", 2.0),
        ("jobs", "state=\"running\"", 1.0),
    ] {
        assert_eq!(value(&of_master, &format!("seraphim_master_{name}"), &[label]), count, "{of_master}");
    }
    assert!(value(&of_master, "seraphim_master_heartbeats_total", &[]) > 0.0, "{of_master}");
    let of_workers: Vec<String> = ["worker-0", "worker-1"]
        .iter()
        .map(|name| {
            let worker = members.iter().find(|entry| entry["member"]["name"] == *name).expect("it is there");
            let place = worker["report"]["http"][0].as_str().expect("it says where");
            let place = place.trim_start_matches("tcp:");
            assert_eq!(get(place, "/health"), "ok\n");
            get(place, "/metrics")
        })
        .collect();
    check_workers(&of_workers);
    let shown: BTreeSet<&str> =
        [&of_server, &of_master, &of_workers[0]].into_iter().flat_map(|text| shown(text)).collect();
    let listed = listed();
    let unlisted: Vec<_> = shown.difference(&listed).collect();
    let missing: Vec<_> = listed.difference(&shown).collect();
    assert!(
        unlisted.is_empty() && missing.is_empty(),
        "not on the page: {unlisted:?}; only there: {missing:?}"
    );
    for place in [http(place), http(&cluster.address)] {
        assert_eq!(get(&place, "/health"), "ok\n");
    }
    succeed(&["cancel", "1", "--master", &cluster.address]);
    client.end();
}

/// Checks the metrics of both workers. The first worker is the fast one: it waits for tasks, not for the network.
fn check_workers(texts: &[String]) {
    for (task, text) in ["task=\"0\"", "task=\"1\""].iter().zip(texts) {
        for name in ["steps_total", "records_total", "task_clock", "sent_bytes_total", "received_bytes_total"]
        {
            let count = value(text, &format!("seraphim_worker_{name}"), &["job=\"1\"", task]);
            assert!(count > 0.0, "{name} is {count} in {text}");
        }
        for kind in ["pull", "push", "tick"] {
            let count = value(text, "seraphim_worker_requests_total", &[&format!("kind=\"{kind}\"")]);
            assert!(count > 0.0, "{kind} is {count} in {text}");
        }
        let records = value(text, "seraphim_worker_records_total", &[]);
        let steps = value(text, "seraphim_worker_steps_total", &[]);
        assert!(records <= 128.0 * steps, "{records} records in {steps} steps of 128");
        let beyond = value(text, "seraphim_worker_pull_staleness_count", &[])
            - value(text, "seraphim_worker_pull_staleness_bucket", &["le=\"1.0\""]);
        assert!(beyond.abs() < f64::EPSILON, "no pull beyond SSP(1): {text}");
        assert_eq!(value(text, "seraphim_worker_reconnects_total", &[]), 0.0, "{text}");
    }
    let waits = |text: &str, what: &str| {
        value(text, "seraphim_worker_wait_seconds_total", &[&format!("for=\"{what}\"")])
    };
    let (fast, slow) = (waits(&texts[0], "tasks"), waits(&texts[1], "tasks"));
    assert!(fast > 2.0 * slow, "the fast task waits {fast} s for the other, the slow one {slow} s");
    assert!(waits(&texts[0], "network") > 0.0, "{}", texts[0]);
}

/// Asks a server for a job that does not exist.
fn rpc_refusal(place: &str) -> Option<rpc::Message> {
    let address: rpc::Address = place.parse().ok()?;
    let hello =
        rpc::message::Hello { request: 1, token: Vec::new(), role: rpc::message::Role::Tool, lane: 0 };
    let (mut sender, mut receiver, _) = rpc::open(&address, ANSWER_LIMIT, &hello).ok()?;
    sender.send(&rpc::Message::Stats(rpc::message::Stats { request: 2, job: 99 })).ok()?;
    receiver.receive().ok()
}
