//! Everything that others do to a cluster has a defined end with a clear message: jobs that do not fit, masters that
//! are missing or go away, and clients that send garbage, use another version or open ten thousand connections.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::common::cluster::Cluster;
use crate::common::metrics::{get, http};
use crate::common::{Folder, bytes_of, clicks, fail, succeed};
use math::random::{Purpose, stream};
use rpc::Message;
use rpc::message::{Hello, Role};

/// Promised time until a client reports a missing master.
const NO_MASTER_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait for the answer of a server to an unauthenticated connection.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Number of connections that one client opens to each port.
const CONNECTIONS: usize = 10_000;
/// Pause of a slow worker before a batch, so that a job runs during the test.
const SLOW_MS: u64 = 20;

/// A job of some seconds with that slow worker.
fn job<'a>(data: &'a str, model: &'a str) -> Vec<&'a str> {
    let fixed = ["lr", "--data", data, "--model", model, "--tasks", "2", "--servers", "1", "--workers", "2"];
    [&fixed[..], &["--set", "epochs=120", "--set", "batch_size=128"]].concat()
}

/// Trains the model of the job without a cluster and returns its path.
fn alone(folder: &Folder, data: &str) -> String {
    let model = folder.path("alone");
    let mut arguments = vec!["train"];
    arguments.extend(job(data, &model).into_iter().filter(|word| !["--servers", "--workers"].contains(word)));
    // Removes the numbers of servers and workers, whose flags are gone already.
    arguments.drain(8..10);
    succeed(&arguments);
    model
}

fn place(cluster: &Cluster) -> String {
    let status = cluster.wait_until(|_| true);
    let members = status["members"].as_array().expect("it is a list");
    let server = members.iter().find(|entry| entry["member"]["kind"] == "server").expect("there is one");
    let address = server["member"]["addresses"][0].as_str().expect("it says where it is");
    address.trim_start_matches("tcp:").to_owned()
}

fn running(cluster: &Cluster) {
    cluster.wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64().is_some_and(|n| n > 0));
}

#[test]
fn a_job_larger_than_the_memory_of_its_servers_is_refused_with_the_sum_before_training() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let cluster = Cluster::start_with(2, 1, |kind, _| match kind {
        "server" => ["--memory-limit", "1MiB"].map(String::from).to_vec(),
        _ => Vec::new(),
    });
    let submit = |model: &str, dimensions: &str| {
        let fixed = [
            "lr",
            "--data",
            &data,
            "--model",
            model,
            "--servers",
            "2",
            "--workers",
            "1",
            "--set",
            dimensions,
            "--set",
            "optimizer=ftrl",
        ];
        cluster.submit(&fixed).end()
    };
    let model = folder.path("model");
    // FTRL stores three numbers of 4 bytes for each of 10 million features.
    let (code, _, error) = submit(&model, "dimensions=10000000");
    assert_eq!(code, Some(2), "{error}");
    for part in ["114.4 MiB", "weights", "intercept", "2 servers", "2.0 MiB", "--memory-limit"] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    assert!(!std::path::Path::new(&model).exists());
    let (code, _, error) = submit(&model, "dimensions=60");
    assert_eq!(code, Some(0), "one that fits is trained: {error}");
}

#[test]
fn a_master_killed_in_mid_job_is_waited_for_and_then_all_end_and_say_so() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let model = folder.path("model");
    let mut cluster = Cluster::start(2, 2, SLOW_MS);
    let mut arguments = job(&data, &model);
    arguments.extend(["--set", "epochs=10000"]);
    arguments[10] = "2";
    let client = cluster.submit(&arguments);
    running(&cluster);
    cluster.master.kill();
    let (code, _, error) = client.end();
    assert_eq!(code, Some(5), "{error}");
    for mut member in cluster.servers.drain(..).chain(cluster.workers.drain(..)) {
        member.wait_for("lost the connection to the master");
        let (code, _, error) = member.end();
        assert_eq!(code, Some(5), "{error}");
        assert!(error.contains("is lost") && error.contains(&cluster.address), "{error}");
    }
    assert!(!std::path::Path::new(&model).exists(), "no half of a model");
}

#[test]
fn a_job_for_a_master_that_is_not_there_is_refused_at_once() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(50, 1));
    let model = folder.path("model");
    let submit = ["submit", "lr", "--data", &data, "--model", &model, "--master", "127.0.0.1:1"];
    for arguments in
        [&submit[..], &["status", "--master", "127.0.0.1:1"], &["cancel", "1", "--master", "127.0.0.1:1"]]
    {
        let start = Instant::now();
        let error = fail(5, arguments);
        assert!(start.elapsed() < NO_MASTER_LIMIT, "{arguments:?} took {:?}", start.elapsed());
        assert!(error.contains("127.0.0.1:2: cannot connect") && error.contains("refused"), "{error}");
        assert!(error.contains("the port after the one of its members"), "{error}");
    }
}

fn hello() -> Vec<u8> {
    let hello = Hello { request: 7, token: Vec::new(), role: Role::Tool, lane: 0 };
    let mut bytes = Vec::new();
    rpc::codec::put_frame(&Message::Hello(hello), true, &rpc::FrameLimits::default(), &mut bytes)
        .expect("a hello is short");
    bytes
}

/// Sends only these bytes; returns what arrives until the server closes the connection.
fn say(place: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(place).expect("the server takes it");
    stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("it is a socket");
    // The server may close the connection before all bytes are written.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn rubbish_on_the_port_of_a_server_does_no_harm_to_a_job() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let alone = alone(&folder, &data);
    let cluster = Cluster::start(1, 2, SLOW_MS);
    let model = folder.path("model");
    let client = cluster.submit(&job(&data, &model));
    running(&cluster);
    let place = place(&cluster);
    let mut random = stream(1, Purpose::Test, 0, 0);
    for round in 0..60u64 {
        let mut bytes: Vec<u8> = (0..random.below(5000)).map(|_| random.below(256) as u8).collect();
        match round % 4 {
            0 => {}
            1 => drop(bytes.splice(..0, *b"SRPH\x01\x00")),
            2 => drop(bytes.splice(..0, *b"GET /")),
            // After a valid hello.
            _ => drop(bytes.splice(..0, hello())),
        }
        say(&place, &bytes);
    }
    // A frame whose header claims the largest possible length of a section.
    let mut claims = hello();
    claims[40..44].fill(0xff);
    let sum = crc32c::crc32c(&claims[..60]);
    claims[60..64].copy_from_slice(&sum.to_le_bytes());
    let answer = say(&place, &claims);
    assert!(contains(&answer, "too_large"), "{}", String::from_utf8_lossy(&answer));
    let metrics = get(&http(&place), "/metrics");
    for counter in ["seraphim_rpc_refused_hello_total", "seraphim_rpc_closed_bad_frame_total"] {
        let line = metrics.lines().find(|line| line.starts_with(counter)).unwrap_or_default();
        let count: u64 = line.rsplit(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
        assert!(count > 0, "{counter}: {line:?}");
    }
    assert_eq!(cluster.wait_until(|_| true)["jobs"][0]["state"], "running", "all of it while the job ran");
    let (code, _, error) = client.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(bytes_of(&model) == bytes_of(&alone), "the model has other bytes");
}

#[test]
fn another_version_of_the_protocol_is_told_so() {
    let cluster = Cluster::start(1, 0, 0);
    let mut frame = hello();
    frame[4..6].copy_from_slice(&3u16.to_le_bytes());
    let sum = crc32c::crc32c(&frame[..60]);
    frame[60..64].copy_from_slice(&sum.to_le_bytes());
    for place in [place(&cluster), cluster.address.clone()] {
        let answer = say(&place, &frame);
        let text = String::from_utf8_lossy(&answer);
        assert!(contains(&answer, "bad_version") && contains(&answer, "version 3"), "{text}");
    }
}

#[test]
fn ten_thousand_connections_to_each_port_of_a_server_do_no_harm_to_a_job() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let alone = alone(&folder, &data);
    let cluster = Cluster::start(1, 2, SLOW_MS);
    let model = folder.path("model");
    let client = cluster.submit(&job(&data, &model));
    running(&cluster);
    let frames = place(&cluster);
    let places = [http(&frames), frames];
    let (mut held, mut opened) = (Vec::new(), 0);
    while opened < 2 * CONNECTIONS {
        match TcpStream::connect(&places[opened % 2]) {
            Ok(stream) => {
                held.push(stream);
                opened += 1;
            }
            // The limit of open files of this process is reached: half of them are closed.
            Err(error) => {
                assert!(!held.is_empty(), "after {opened}: {error}");
                held.drain(..held.len().div_ceil(2));
            }
        }
    }
    assert_eq!(cluster.wait_until(|_| true)["jobs"][0]["state"], "running", "all of it while the job ran");
    let (code, _, error) = client.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(bytes_of(&model) == bytes_of(&alone), "the model has other bytes");
    drop(held);
}
