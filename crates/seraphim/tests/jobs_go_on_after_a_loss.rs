//! Promise: a job that loses servers or workers, killed or frozen, goes on from its last checkpoint with others, and a
//! bsp job ends in the same bytes as an undisturbed one. What a frozen process does when it wakes reaches nothing.
#![cfg(unix)]

mod common;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::cluster::{Cluster, Process};
use common::{Folder, bytes_of, clicks, command, succeed};

/// Longest wait for a state of a process.
const PATIENCE: Duration = Duration::from_secs(90);

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number of the newest checkpoint in a folder; 0: there is none.
fn newest(folder: &str) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let whole = entries.map_while(Result::ok).filter(|entry| entry.path().join("manifest").exists());
    whole.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).max().unwrap_or(0)
}

/// A job of some seconds, with what it gives when nothing happens.
struct World {
    folder: Folder,
    data: String,
    whole: Vec<(PathBuf, Vec<u8>)>,
}

const EPOCHS: &str = "epochs=150";

impl World {
    fn new() -> Self {
        let folder = Folder::new();
        let data = folder.write("train.libsvm", clicks(3000, 1));
        let model = folder.path("whole");
        let fixed = ["train", "lr", "--data", &data, "--model", &model, "--tasks", "3", "--quiet"];
        succeed(&[&fixed[..], &["--set", EPOCHS, "--set", "batch_size=100"]].concat());
        let whole = bytes_of(&model);
        Self { folder, data, whole }
    }

    fn words<'a>(&'a self, model: &'a str, folder: &'a str) -> Vec<&'a str> {
        let fixed = ["lr", "--data", &self.data, "--model", model, "--tasks", "3"];
        let checkpoints = ["--checkpoints", folder, "--checkpoint-every", "20ms"];
        let settings = ["--set", EPOCHS, "--set", "batch_size=100", "--servers", "2", "--workers", "2"];
        [&fixed[..], &checkpoints, &settings].concat()
    }
}

/// The processes that a process has started, by their names.
fn children(of: &Child) -> Vec<(String, u32)> {
    let path = format!("/proc/{0}/task", of.id());
    let threads = std::fs::read_dir(path).into_iter().flatten().map_while(Result::ok);
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let text: String = lists.collect();
    let name_of = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<String> =
            words.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into()).collect();
        let at = words.iter().position(|word| word == "--name")?;
        Some((words.get(at + 1)?.clone(), pid))
    };
    text.split_whitespace().filter_map(|pid| name_of(pid.parse().ok()?)).collect()
}

fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.expect("kill is on every system").success(), "{name} {pid}");
}

/// A job on servers and workers that the command itself has started.
struct Local<'a> {
    world: &'a World,
    child: Child,
    folder: String,
    model: String,
}

impl<'a> Local<'a> {
    fn start(world: &'a World, name: &str, more: &[&str]) -> Self {
        let (model, folder) = (world.folder.path(name), world.folder.path(&format!("{name}.saved")));
        let words = [&["train"], &world.words(&model, &folder)[..], more].concat();
        let child = command(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        Self { world, child: child.expect("the binary was built"), folder, model }
    }

    /// Waits for a checkpoint that is newer than `number`.
    fn wait_for_checkpoint(&mut self, number: u64) {
        wait_until("no new checkpoint", || {
            assert!(self.child.try_wait().expect("it is a child").is_none(), "the job ended early");
            newest(&self.folder) > number
        });
    }

    fn pid(&self, name: &str) -> u32 {
        let mut found = None;
        wait_until(name, || {
            found = children(&self.child).into_iter().find(|(known, _)| known == name);
            found.is_some()
        });
        found.expect("it was found").1
    }

    /// Waits for the end; returns what it said.
    fn end(&mut self) -> String {
        let mut error = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut error).expect("it is text");
        let status = self.child.wait().expect("it is a child");
        assert!(status.success(), "{status}: {error}");
        assert!(bytes_of(&self.model) == self.world.whole, "other bytes: {error}");
        error
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_killed_server_or_worker_is_started_again_and_the_bytes_are_the_same() {
    let world = World::new();
    for (name, victims) in
        [("server", &["server-1"][..]), ("worker", &["worker-0"]), ("two", &["server-0", "worker-1"])]
    {
        let mut job = Local::start(&world, name, &[]);
        job.wait_for_checkpoint(2);
        for victim in victims {
            signal(job.pid(victim), "-KILL");
        }
        let said = job.end();
        assert!(
            said.contains("was lost during the job") && said.contains("run 2 of the job begins"),
            "{said}"
        );
        assert!(said.contains("continuing from checkpoint"), "{said}");
        assert!(said.contains("ended unexpectedly") && said.contains("It is started again"), "{said}");
    }
}

#[test]
fn processes_that_are_killed_again_and_again_delay_the_job_and_change_nothing() {
    let world = World::new();
    let mut job = Local::start(&world, "model", &["--restarts", "100"]);
    let mut last = 0;
    for victim in ["worker-0", "server-0", "worker-1", "server-1", "worker-0"] {
        job.wait_for_checkpoint(last + 2);
        signal(job.pid(victim), "-KILL");
        last = newest(&job.folder);
    }
    job.end();
}

#[test]
fn without_restarts_the_job_fails_and_says_who_was_lost() {
    let world = World::new();
    let mut job = Local::start(&world, "model", &["--restarts", "0"]);
    job.wait_for_checkpoint(1);
    signal(job.pid("server-1"), "-KILL");
    let mut error = String::new();
    job.child.stderr.take().expect("it is piped").read_to_string(&mut error).expect("it is text");
    assert!(!job.child.wait().expect("it is a child").success());
    assert!(error.contains("server-1"), "{error}");
    assert!(!Path::new(&job.model).exists());
    // The work is not lost.
    let words =
        [&["train"], &world.words(&job.model, &job.folder)[..], &["--resume", "latest", "--quiet"]].concat();
    succeed(&words);
    assert!(bytes_of(&job.model) == world.whole);
}

/// A job on a cluster whose members somebody else starts.
struct Submitted {
    cluster: Cluster,
    client: Process,
    folder: String,
    model: String,
}

fn submit(world: &World, servers: usize, workers: usize) -> Submitted {
    let (model, folder) = (world.folder.path("model"), world.folder.path("saved"));
    let cluster = Cluster::start(servers, workers, 0);
    let client = cluster.submit(&world.words(&model, &folder));
    wait_until("no checkpoint", || newest(&folder) > 1);
    Submitted { cluster, client, folder, model }
}

fn ends_well(world: &World, client: Process, model: &str) {
    let start = Instant::now();
    let (mut client, mut status) = (client, None);
    while status.is_none() {
        assert!(start.elapsed() < PATIENCE, "the job does not end: {:#?}", client.so_far());
        status = client.child.try_wait().expect("it is a child");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (code, _, error) = client.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(bytes_of(model) == world.whole, "other bytes: {error}");
}

#[test]
fn a_job_of_a_cluster_waits_for_a_member_that_takes_the_place_of_a_killed_one() {
    let world = World::new();
    let Submitted { mut cluster, client, model, .. } = submit(&world, 2, 2);
    cluster.servers[1].kill();
    cluster.servers.pop();
    cluster.wait_until(|status| {
        let waits_for = status["jobs"][0]["progress"]["waits_for"].as_str();
        waits_for.is_some_and(|text| text.contains("run 2") && text.contains("server-1"))
    });
    cluster.add_server();
    ends_well(&world, client, &model);
}

/// Freezes a member while another one of its kind is there, so that the job goes on as soon as its lease is over.
fn freeze(add: impl Fn(&mut Cluster), member: impl Fn(&Cluster) -> &Process) {
    let world = World::new();
    let Submitted { mut cluster, client, folder, model } = submit(&world, 2, 2);
    add(&mut cluster);
    member(&cluster).signal("-STOP");
    let before = newest(&folder);
    wait_until("the job does not go on", || newest(&folder) > before + 3);
    member(&cluster).signal("-CONT");
    ends_well(&world, client, &model);
}

#[test]
fn a_frozen_server_is_replaced_and_reaches_nothing_when_it_wakes() {
    freeze(Cluster::add_server, |cluster| &cluster.servers[0]);
}

#[test]
fn a_frozen_worker_is_replaced_and_reaches_nothing_when_it_wakes() {
    freeze(Cluster::add_worker, |cluster| &cluster.workers[1]);
}

#[test]
fn a_job_that_waits_for_a_member_can_be_cancelled() {
    let world = World::new();
    let Submitted { mut cluster, client, model, .. } = submit(&world, 2, 2);
    cluster.workers[0].kill();
    cluster.wait_until(|status| {
        status["jobs"][0]["progress"]["waits_for"]
            .as_str()
            .is_some_and(|text| text.contains("worker-0 was lost"))
    });
    succeed(&["cancel", "1", "--master", &cluster.address]);
    let (code, _, error) = client.end();
    assert!(code != Some(0), "{error}");
    assert!(!Path::new(&model).exists());
}
