//! When a server dies or its lease expires, its jobs without restarts end soon. The other servers free the memory of these jobs, and so does
//! the server that comes back. The workers end the tasks of these jobs, whatever the tasks wait for. They accept new jobs,
//! and they stop on request.
#![cfg(unix)]

use std::time::{Duration, Instant};

use crate::common::cluster::{Cluster, PATIENCE, Process};
use crate::common::metrics::{get, http, value};
use crate::common::{Folder, clicks};
use serde_json::Value;

/// Longest time until the client of the job gets the error: the lease, one poll, and the wait for a paused server.
const END_LIMIT: Duration = Duration::from_secs(12);

/// A cluster of two servers and two workers, with a job that does not end by itself.
struct UnderWay {
    folder: Folder,
    data: String,
    cluster: Cluster,
    client: Process,
    /// Where the servers serve metrics.
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
        http(member["member"]["addresses"][0].as_str().expect("an address"))
    };
    let places = vec![place("server-0"), place("server-1")];
    assert!(places.iter().all(|place| held_bytes(place) > 0.0), "both hold parameters");
    UnderWay { folder, data, cluster, client, places }
}

fn job<'a>(data: &'a str, model: &'a str, epochs: &'a str) -> Vec<&'a str> {
    let fixed = ["lr", "--data", data, "--model", model, "--tasks", "2", "--servers", "2", "--workers", "2"];
    [&fixed[..], &["--set", epochs, "--set", "batch_size=100", "--restarts", "0"]].concat()
}

/// Bytes of parameters on a server.
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
    cluster.servers[0].signal("-STOP");
    let start = Instant::now();
    cluster.wait_until(|status| server_count(status) == 1);
    let (code, _, error) = client.end();
    cluster.servers[0].signal("-CONT");
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("server-0") && error.contains("was lost"), "{error}");
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
    cluster.workers[0].signal("-STOP");
    let (code, _, error) = client.end();
    cluster.workers[0].signal("-CONT");
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("worker-0") && error.contains("was lost"), "{error}");
    for place in &places {
        holds_nothing(place);
    }
    cluster.wait_until(|status| status["members"].as_array().map(Vec::len) == Some(4));
    let [back, other] = &cluster.workers[..] else { panic!("there are two workers") };
    threads_fall_to(number_of(other, "Threads:"), back);
    let (code, _, error) = cluster.submit(&job(&data, &folder.path("next"), "epochs=2")).end();
    assert_eq!(code, Some(0), "{error}");
}

/// Reads a number from `/proc/PID/status`.
fn number_of(process: &Process, key: &str) -> u64 {
    let path = format!("/proc/{}/status", process.child.id());
    let text = std::fs::read_to_string(path).expect("it lives");
    let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("the system tells it");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("it is a number")
}

/// Waits until a process has at most this many threads.
fn threads_fall_to(count: u64, process: &Process) {
    let start = Instant::now();
    while number_of(process, "Threads:") > count {
        let now = number_of(process, "Threads:");
        assert!(start.elapsed() < PATIENCE, "{now} threads, expected {count}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A job of two tasks on one server and one worker that does not end by itself.
fn on_one_server<'a>(data: &'a str, model: &'a str, epochs: &'a str) -> Vec<&'a str> {
    let mut arguments = job(data, model, epochs);
    (arguments[8], arguments[10]) = ("1", "1");
    arguments
}

fn run_on_one_server(cluster: &Cluster, data: &str, model: &str) {
    let (code, _, error) = cluster.submit(&on_one_server(data, model, "epochs=2")).end();
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn four_lost_servers_leave_neither_threads_nor_memory_in_the_worker_which_takes_new_jobs() {
    /// Memory that the allocator keeps, and records of a job that was in the middle of a step.
    const SLACK_KIB: u64 = 16 << 10;
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(20_000, 1));
    let mut cluster = Cluster::start(4, 1, 1);
    run_on_one_server(&cluster, &data, &folder.path("first"));
    let worker = &cluster.workers[0];
    let (threads, memory) = (number_of(worker, "Threads:"), number_of(worker, "VmRSS:"));
    let models: Vec<String> = (0..4).map(|i| folder.path(&format!("lost-{i}"))).collect();
    let clients: Vec<Process> =
        models.iter().map(|model| cluster.submit(&on_one_server(&data, model, "epochs=100000"))).collect();
    cluster.wait_until(|status| {
        let jobs = status["jobs"].as_array().expect("it is a list");
        jobs.len() == 5 && jobs[1..].iter().all(|job| job["progress"]["records"].as_u64() > Some(0))
    });
    assert!(number_of(worker, "Threads:") > threads, "the tasks of four jobs run");
    for server in &mut cluster.servers {
        server.kill();
    }
    let mut named = Vec::new();
    for client in clients {
        let (code, _, error) = client.end();
        assert_eq!(code, Some(5), "{error}");
        named.extend((0..4).filter(|i| error.contains(&format!("server-{i} at "))));
    }
    named.sort_unstable();
    assert_eq!(named, [0, 1, 2, 3], "each failure names the server that was lost");
    let worker = &cluster.workers[0];
    threads_fall_to(threads, worker);
    let now = number_of(worker, "VmRSS:");
    assert!(now < memory + SLACK_KIB, "{now} KiB, {memory} KiB before the losses");
    cluster.add_server();
    run_on_one_server(&cluster, &data, &folder.path("next"));
}

#[test]
fn a_worker_whose_tasks_wait_for_a_lost_server_ends_when_it_is_told() {
    /// Longest time until a worker has stopped: it leaves the master and ends its threads.
    const STOP_LIMIT: Duration = Duration::from_secs(8);
    let UnderWay { mut cluster, client, .. } = under_way();
    cluster.servers[0].kill();
    let worker = cluster.workers.remove(0);
    let start = Instant::now();
    worker.signal("-TERM");
    let (code, _, error) = worker.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(start.elapsed() < STOP_LIMIT, "{:?}", start.elapsed());
    let (code, _, error) = client.end();
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("worker-0") || error.contains("server-0"), "{error}");
}
