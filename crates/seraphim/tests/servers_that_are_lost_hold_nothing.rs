//! A server that dies, or stands still until it is taken for dead, ends the jobs that it was part of, soon; the other servers
//! give back what they held of them, and so does the one that comes back.
#![cfg(unix)]

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

use common::cluster::{Cluster, PATIENCE, Process};
use common::metrics::{get, value};
use common::{Folder, clicks};
use serde_json::Value;

/// Whoever waits for the job hears of the loss within so long: the lease, a look, and what a server that stands still is
/// waited for.
const END_LIMIT: Duration = Duration::from_secs(25);

/// Two servers, two workers, and a job that does not end by itself.
struct UnderWay {
    folder: Folder,
    data: String,
    cluster: Cluster,
    client: Process,
    /// Where the servers show metrics.
    places: Vec<String>,
}

fn under_way() -> UnderWay {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let cluster = Cluster::start(2, 2, 5);
    let client = cluster.submit(&job(&data, &folder.path("model"), "epochs=10000"));
    let status = cluster
        .wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64().is_some_and(|n| n > 4000));
    let members = status["members"].as_array().expect("it is a list");
    let place = |name: &str| {
        let member = members.iter().find(|entry| entry["member"]["name"] == name).expect("it is there");
        member["member"]["addresses"][0].as_str().expect("an address").trim_start_matches("tcp:").to_owned()
    };
    let places = vec![place("server-0"), place("server-1")];
    assert!(places.iter().all(|place| held_bytes(place) > 0.0), "both hold parameters");
    UnderWay { folder, data, cluster, client, places }
}

fn job<'a>(data: &'a str, model: &'a str, epochs: &'a str) -> Vec<&'a str> {
    let fixed = ["lr", "--data", data, "--model", model, "--tasks", "2", "--servers", "2", "--workers", "2"];
    [&fixed[..], &["--set", epochs, "--set", "batch_size=100"]].concat()
}

/// Bytes of parameters at a server.
fn held_bytes(place: &str) -> f64 {
    value(&get(place, "/metrics"), "seraphim_memory_bytes", &[])
}

fn holds_nothing(place: &str) {
    let start = Instant::now();
    while held_bytes(place) > 0.0 {
        assert!(start.elapsed() < PATIENCE, "{place} still holds {} bytes", held_bytes(place));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(process: &Process, name: &str) {
    let pid = process.child.id().to_string();
    let sent = Command::new("kill").args([name, &pid]).status().expect("kill is a tool of every system");
    assert!(sent.success(), "{sent}");
}

fn server_count(status: &Value) -> usize {
    let members = status["members"].as_array().expect("it is a list");
    members.iter().filter(|entry| entry["member"]["kind"] == "server").count()
}

#[test]
fn when_a_server_is_killed_the_other_gives_back_what_it_held() {
    let UnderWay { mut cluster, client, places, .. } = under_way();
    cluster.servers[0].kill();
    let start = Instant::now();
    let (code, _, error) = client.end();
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("server-0"), "{error}");
    assert!(start.elapsed() < END_LIMIT, "{:?}", start.elapsed());
    holds_nothing(&places[1]);
}

#[test]
fn a_server_that_was_taken_for_dead_comes_back_with_nothing_and_serves() {
    let UnderWay { folder, data, cluster, client, places } = under_way();
    signal(&cluster.servers[0], "-STOP");
    let start = Instant::now();
    cluster.wait_until(|status| server_count(status) == 1);
    let (code, _, error) = client.end();
    signal(&cluster.servers[0], "-CONT");
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("server-0") && error.contains("is gone"), "{error}");
    assert!(start.elapsed() < END_LIMIT, "{:?}", start.elapsed());
    holds_nothing(&places[1]);
    cluster.wait_until(|status| server_count(status) == 2);
    holds_nothing(&places[0]);
    let (code, _, error) = cluster.submit(&job(&data, &folder.path("next"), "epochs=2")).end();
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn a_worker_that_was_taken_for_dead_comes_back_and_works() {
    let UnderWay { folder, data, cluster, client, places } = under_way();
    signal(&cluster.workers[0], "-STOP");
    let (code, _, error) = client.end();
    signal(&cluster.workers[0], "-CONT");
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("worker-0") && error.contains("is gone"), "{error}");
    for place in &places {
        holds_nothing(place);
    }
    cluster.wait_until(|status| status["members"].as_array().map(Vec::len) == Some(4));
    let (code, _, error) = cluster.submit(&job(&data, &folder.path("next"), "epochs=2")).end();
    assert_eq!(code, Some(0), "{error}");
}
