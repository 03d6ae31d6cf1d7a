//! Promise: a master with `--state` that dies, or is stopped, is replaced by one with the same folder, which goes on with
//! its jobs: a bsp job ends in the same bytes, whoever waits for it learns of its end, and queued jobs run.
#![cfg(unix)]

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::cluster::Cluster;
use crate::common::service::spec;
use crate::common::{Folder, bytes_of, clicks, fail, succeed};
use worker::ParameterSession;

/// So many that three masters can be stopped before the end, and so few that a slow machine reaches the end in time.
const EPOCHS: &str = "epochs=300";

struct World {
    folder: Folder,
    data: String,
    state: String,
    cluster: Cluster,
}

impl World {
    fn new() -> Self {
        let folder = Folder::new();
        let data = folder.write("train.libsvm", clicks(3000, 1));
        let state = folder.path("state");
        let patient = |_: &str, _| vec!["--lost-limit".into(), "20".into()];
        let cluster = Cluster::start_all(2, 2, &["--state", &state], patient);
        Self { folder, data, state, cluster }
    }

    fn words<'a>(&'a self, model: &'a str) -> Vec<&'a str> {
        let fixed = ["lr", "--data", &self.data, "--model", model, "--tasks", "3", "--set", EPOCHS];
        [&fixed[..], &["--set", "batch_size=100"]].concat()
    }

    fn whole(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let model = self.folder.path("whole");
        succeed(&[&["train", "--quiet"][..], &self.words(&model)].concat());
        bytes_of(&model)
    }

    fn wait_for_checkpoint(&self, job: usize, number: u64) {
        self.cluster.wait_until(|status| {
            let job = &status["jobs"][job - 1];
            assert!(job["state"] != "done", "the job ended before its checkpoint");
            job["progress"]["checkpoint"]["number"].as_u64() > Some(number)
        });
    }
}

const ON_SERVERS: [&str; 6] = ["--servers", "2", "--workers", "2", "--checkpoint-every", "30ms"];

#[test]
fn the_jobs_of_a_killed_master_go_on_and_their_client_learns_of_the_end() {
    let mut world = World::new();
    let whole = world.whole();
    let (model, queued) = (world.folder.path("model"), world.folder.path("queued"));
    let fixed = [&world.words(&model)[..], &ON_SERVERS, &["--lost-limit", "20"]].concat();
    let words = [&["submit"], &fixed[..], &["--master", &world.cluster.address]].concat();
    let mut client = crate::common::cluster::Process::start(&words);
    world.wait_for_checkpoint(1, 1);
    let more = ["--servers", "3", "--workers", "2", "--detach", "--master", &world.cluster.address];
    assert_eq!(succeed(&[&["submit"], &world.words(&queued)[..], &more].concat()), "2\n");
    world.cluster.master.kill();
    client.wait_for("is lost, with job 1");
    let start = Instant::now();
    let state = world.state.clone();
    world.cluster.restart_master(&["--state", &state]);
    world.cluster.wait_until(|status| status["jobs"][0]["state"] == "running");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let (code, out, error) = client.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("model saved in"), "{out}");
    assert!(error.contains("continuing from checkpoint"), "{error}");
    assert!(bytes_of(&model) == whole, "other bytes: {error}");
    // The queued job still waits for its third server.
    let status = world.cluster.wait_until(|status| status["jobs"][0]["state"] == "done");
    assert_eq!(status["jobs"][1]["state"], "queued", "{status}");
    world.cluster.add_server();
    world.cluster.wait_until(|status| status["jobs"][1]["state"] == "done");
    assert!(bytes_of(&queued) == whole, "other bytes");
}

#[test]
fn who_waits_for_a_job_waits_through_a_stop_of_the_master() {
    let mut world = World::new();
    let model = world.folder.path("model");
    let fixed = [&world.words(&model)[..], &ON_SERVERS, &["--lost-limit", "20"]].concat();
    let words = [&["submit"], &fixed[..], &["--master", &world.cluster.address]].concat();
    let mut client = crate::common::cluster::Process::start(&words);
    world.wait_for_checkpoint(1, 1);
    world.cluster.master.signal("-TERM");
    client.wait_for("is lost, with job 1");
    world.cluster.master.child.wait().expect("it is a child");
    let state = world.state.clone();
    world.cluster.restart_master(&["--state", &state]);
    let (code, out, error) = client.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("model saved in") && !error.contains("the limit of"), "{out} {error}");
}

#[test]
fn a_master_that_is_stopped_leaves_its_jobs_to_the_next_one_again_and_again() {
    let mut world = World::new();
    let whole = world.whole();
    let model = world.folder.path("model");
    let words = [&["submit"], &world.words(&model)[..], &ON_SERVERS, &["--detach"]].concat();
    succeed(&[&words[..], &["--master", &world.cluster.address]].concat());
    let (state, mut last) = (world.state.clone(), 1);
    for signal in ["-INT", "-KILL", "-TERM"] {
        world.wait_for_checkpoint(1, last);
        let status = world.cluster.wait_until(|_| true);
        last = status["jobs"][0]["progress"]["checkpoint"]["number"].as_u64().unwrap_or(last);
        world.cluster.master.signal(signal);
        world.cluster.master.child.wait().expect("it is a child");
        world.cluster.restart_master(&["--state", &state]);
    }
    world.cluster.wait_until(|status| status["jobs"][0]["state"] == "done");
    assert!(bytes_of(&model) == whole, "other bytes");
}

#[test]
fn a_session_ends_with_its_master_and_holds_no_server_up() {
    let mut world = World::new();
    let mut session = ParameterSession::open(&world.cluster.address, &[], "loop").expect("it has servers");
    session.create_matrix(&spec("w", 10)).expect("the spec is good");
    world.cluster.master.kill();
    let (state, start) = (world.state.clone(), Instant::now());
    world.cluster.restart_master(&["--state", &state]);
    world.cluster.wait_until(|status| status["members"].as_array().map(Vec::len) == Some(4));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let model = world.folder.path("model");
    let (code, _, error) = world.cluster.submit(&[&world.words(&model)[..], &ON_SERVERS].concat()).end();
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn a_job_that_cannot_be_recorded_fails_with_the_reason_and_the_next_one_runs() {
    let world = World::new();
    let jobs = Path::new(&world.state).join("jobs");
    // Nothing can be written below a file.
    std::fs::write(&jobs, "").expect("the folder is ours");
    let submit = |model: &str| {
        let words = [&world.words(model)[..], &["--servers", "2", "--workers", "2"]].concat();
        world.cluster.submit(&words).end()
    };
    let model = world.folder.path("model");
    let (code, _, error) = submit(&model);
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("the state in") && error.contains("cannot be written"), "{error}");
    assert!(!Path::new(&model).exists());
    std::fs::remove_file(&jobs).expect("it is ours");
    let (code, _, error) = submit(&model);
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_with_the_reason() {
    let world = World::new();
    let start = ["master", "--listen", "127.0.0.1:0", "--state"];
    let error = fail(5, &[&start[..], &[&world.state]].concat());
    assert!(error.contains("is in use") && error.contains("another master runs with it"), "{error}");
    let file = world.folder.write("file", "");
    let error = fail(5, &[&start[..], &[&file]].concat());
    assert!(error.contains("cannot be created"), "{error}");
    let damaged = world.folder.path("damaged");
    std::fs::create_dir_all(Path::new(&damaged).join("jobs/00000001")).expect("the folder is ours");
    std::fs::write(Path::new(&damaged).join("jobs/00000001/job.json"), "{\"job\": ").expect("it is ours");
    let error = fail(5, &[&start[..], &[&damaged]].concat());
    assert!(error.contains("job.json") && error.contains("Move it away"), "{error}");
}
