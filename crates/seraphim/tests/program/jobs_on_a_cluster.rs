//! A running cluster accepts jobs, lists them, stops them, and reports the cause when a member dies.

use crate::common::cluster::{Cluster, Process};
use crate::common::{Folder, bytes_of, clicks, fail, succeed};

fn arguments<'a>(data: &'a str, model: &'a str) -> Vec<&'a str> {
    vec!["lr", "--data", data, "--model", model, "--tasks", "2", "--servers", "2", "--workers", "2"]
}

#[test]
fn jobs_run_one_after_the_other_and_at_once() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let cluster = Cluster::start(2, 2, 0);
    let alone = folder.path("alone");
    succeed(&["train", "lr", "--data", &data, "--model", &alone, "--tasks", "2"]);
    let models = ["a", "b", "c"].map(|name| folder.path(name));
    let first = cluster.submit(&arguments(&data, &models[0]));
    let (code, out, error) = first.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("model saved in"), "{out}");
    let jobs = [&models[1], &models[2]].map(|model| cluster.submit(&arguments(&data, model)));
    for job in jobs {
        let (code, _, error) = job.end();
        assert_eq!(code, Some(0), "{error}");
    }
    for model in &models {
        assert_eq!(bytes_of(model), bytes_of(&alone));
    }
    let status = cluster.wait_until(|_| true);
    assert_eq!(status["members"].as_array().map(Vec::len), Some(4));
    let states: Vec<&str> =
        status["jobs"].as_array().into_iter().flatten().filter_map(|job| job["state"].as_str()).collect();
    assert_eq!(states, ["done", "done", "done"]);
}

/// A job that does not end by itself during a test.
fn long<'a>(data: &'a str, model: &'a str) -> Vec<&'a str> {
    let more = ["--set", "epochs=10000", "--wait-limit", "20", "--restarts", "0"];
    [&arguments(data, model)[..], &more].concat()
}

/// The same job on one server and one worker.
fn long_on_one<'a>(data: &'a str, model: &'a str) -> Vec<&'a str> {
    let mut arguments = long(data, model);
    (arguments[8], arguments[10]) = ("1", "1");
    arguments
}

fn running(cluster: &Cluster) {
    cluster.wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64().is_some_and(|n| n > 0));
}

#[test]
fn a_cancelled_job_saves_what_it_has() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let model = folder.path("model");
    let cluster = Cluster::start(2, 2, 1);
    let job = cluster.submit(&long(&data, &model));
    running(&cluster);
    assert!(succeed(&["cancel", "1", "--master", &cluster.address]).contains("asked to stop"));
    let (_, out, error) = job.end();
    assert!(std::path::Path::new(&model).join("model.json").is_file(), "{out}{error}");
    cluster.wait_until(|status| status["jobs"][0]["state"] == "cancelled");
    let text = succeed(&["status", "--master", &cluster.address]);
    assert!(text.contains("cancelled") && text.contains(" of 10000, "), "{text}");
    assert!(text.contains(&format!("the model so far is in {model}")), "{text}");
    let detail = succeed(&["status", "1", "--master", &cluster.address]);
    assert!(detail.contains("training ") && detail.contains("model so far is saved in"), "{detail}");
    assert!(fail(2, &["cancel", "9", "--master", &cluster.address]).contains('9'));
}

#[test]
fn ctrl_c_at_submit_leaves_the_job_and_says_so_and_status_shows_its_epoch_and_loss() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let model = folder.path("model");
    let cluster = Cluster::start(1, 1, 1);
    let job = cluster.submit(&long_on_one(&data, &model));
    let progress = |status: &serde_json::Value| status["jobs"][0]["progress"].clone();
    cluster.wait_until(|status| {
        let progress = progress(status);
        progress["loss"].as_f64().is_some_and(|loss| loss > 0.0) && progress["epoch_count"] == 10_000
    });
    let text = succeed(&["status", "--master", &cluster.address]);
    assert!(
        text.contains("  epoch ") && text.contains(" of 10000, ") && text.contains(", loss 0."),
        "{text}"
    );
    job.signal("-INT");
    let (code, _, error) = job.end();
    assert_eq!(code, Some(130), "{error}");
    let says = format!("job 1 continues; `seraphim cancel 1 --master {}` stops it", cluster.address);
    assert!(error.contains(&says), "{error}");
    assert_eq!(cluster.wait_until(|_| true)["jobs"][0]["state"], "running");
    succeed(&["cancel", "1", "--master", &cluster.address]);
    cluster.wait_until(|status| status["jobs"][0]["state"] == "cancelled");
    assert!(std::path::Path::new(&model).join("model.json").is_file());
}

#[test]
fn an_interrupt_of_a_command_with_cancel_on_exit_cancels_the_job() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let model = folder.path("model");
    let cluster = Cluster::start(1, 1, 1);
    let mut arguments = long_on_one(&data, &model);
    arguments.push("--cancel-on-exit");
    for (number, signal) in ["-INT", "-TERM"].into_iter().enumerate() {
        let model = format!("{model}-{number}");
        let place = arguments.iter().position(|word| *word == "--model").expect("it is there") + 1;
        let with_model = [&arguments[..place], &[&model], &arguments[place + 1..]].concat();
        let job = cluster.submit(&with_model);
        cluster.wait_until(|status| {
            status["jobs"][number]["progress"]["loss"].as_f64().is_some_and(|loss| loss > 0.0)
        });
        job.signal(signal);
        let (code, _, error) = job.end();
        assert_eq!(code, Some(130), "{error}");
        assert!(error.contains("cancelling the job"), "{error}");
        assert_eq!(cluster.wait_until(|_| true)["jobs"][number]["state"], "cancelled");
        assert!(std::path::Path::new(&model).join("model.json").is_file());
    }
    // A job that waits for members has nothing to save.
    (arguments[8], arguments[10]) = ("9", "1");
    let job = cluster.submit(&arguments);
    cluster.wait_until(|status| status["jobs"][2]["progress"]["waits_for"].is_string());
    job.signal("-TERM");
    let (code, _, error) = job.end();
    assert_eq!(code, Some(130), "{error}");
    assert!(error.contains("job 3 was cancelled before it began: there is no result"), "{error}");
    let both = [&arguments[..], &["--detach"]].concat();
    let (code, _, error) = cluster.submit(&both).end();
    assert_eq!(code, Some(2), "{error}");
}

#[test]
fn whoever_waits_for_a_job_whose_master_dies_is_told_where_its_state_will_be() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let mut cluster = Cluster::start(2, 2, 1);
    let model = folder.path("model");
    let job = cluster.submit(&long(&data, &model));
    running(&cluster);
    cluster.master.kill();
    let (code, _, error) = job.end();
    assert_eq!(code, Some(5), "{error}");
    for part in ["is lost, with job 1", &format!("--resume {model}.checkpoints"), "--lost-limit"] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
}

#[test]
fn a_server_that_is_killed_ends_a_job_without_restarts_with_its_name() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let mut cluster = Cluster::start(2, 2, 1);
    let job = cluster.submit(&long(&data, &folder.path("model")));
    running(&cluster);
    cluster.servers[1].kill();
    let (code, _, error) = job.end();
    assert_ne!(code, Some(0), "{error}");
    assert!(error.contains("server-1"), "{error}");
    cluster.wait_until(|status| status["jobs"][0]["state"] == "failed");
}

#[test]
fn a_worker_that_is_killed_ends_a_job_without_restarts_with_its_name_and_the_cluster_goes_on() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let mut cluster = Cluster::start(1, 2, 1);
    let mut arguments = long(&data, "model");
    let model = folder.path("model");
    arguments[4] = &model;
    arguments[8] = "1";
    let job = cluster.submit(&arguments);
    running(&cluster);
    cluster.workers[1].kill();
    let (code, _, error) = job.end();
    assert_ne!(code, Some(0), "{error}");
    assert!(error.contains("worker-1"), "{error}");
    let next = folder.path("next");
    let small = ["lr", "--data", &data, "--model", &next, "--tasks", "2", "--servers", "1", "--workers", "1"];
    let (code, _, error) = cluster.submit(&small).end();
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn members_without_a_master_say_so_and_end() {
    for kind in ["server", "worker"] {
        let start = std::time::Instant::now();
        let (code, _, error) = Process::start(&[kind, "--master", "127.0.0.1:1"]).end();
        assert_eq!(code, Some(5), "{error}");
        assert!(error.contains("127.0.0.1:1") && error.contains("master"), "{error}");
        assert!(start.elapsed().as_secs() < 10);
    }
}

#[test]
fn members_wait_for_a_master_that_is_gone_and_then_end() {
    let mut cluster = Cluster::start(1, 1, 0);
    cluster.master.kill();
    for mut member in cluster.servers.drain(..).chain(cluster.workers.drain(..)) {
        member.wait_for("is lost");
        let (code, _, error) = member.end();
        assert_eq!(code, Some(5), "{error}");
    }
}

#[test]
fn two_members_of_one_name_a_wrong_token_a_port_in_use() {
    let cluster = Cluster::start(1, 0, 0);
    let address = cluster.address.as_str();
    let (code, _, error) = Process::start(&["worker", "--master", address, "--name", "server-0"]).end();
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("server-0"), "{error}");
    let (code, _, error) = Process::start(&["master", "--listen", address]).end();
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains(address), "{error}");
    let folder = Folder::new();
    let token = folder.write("token", "secret\n");
    let (code, _, error) = Process::start(&["worker", "--master", address, "--token-file", &token]).end();
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("token"), "{error}");
    let open = fail(2, &["master", "--listen", "0.0.0.0:0"]);
    assert!(open.contains("--token-file"), "{open}");
}

#[test]
fn a_job_whose_data_no_worker_can_read_is_refused_before_anything_is_made() {
    let folder = Folder::new();
    let cluster = Cluster::start(1, 1, 0);
    let model = folder.path("model");
    let (code, _, error) = cluster.submit(&["lr", "--data", "nowhere/*.libsvm", "--model", &model]).end();
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn status_says_who_waits_for_whom() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let model = folder.path("model");
    let cluster = Cluster::start(2, 2, 200);
    let job = cluster.submit(&[&long(&data, &model)[..], &["--set", "batch_size=100"]].concat());
    let fast_waits = |status: &serde_json::Value| {
        let progress = &status["jobs"][0]["progress"];
        let tasks = progress["tasks"].as_array()?;
        let wait = tasks[0]["wait"].as_object()?;
        let is_for_slow = wait["waits_for"] == 1 && tasks[0]["worker"] == "worker-0";
        let weights = &progress["matrices"][0];
        let has_size = weights["rows"].as_u64() > Some(0) && weights["bytes"].as_u64() > Some(0);
        (is_for_slow && has_size && tasks[1]["wait"].is_null() && tasks[1]["worker"] == "worker-1")
            .then_some(())
    };
    cluster.wait_until(|status| fast_waits(status).is_some());
    let text = succeed(&["status", "--master", &cluster.address]);
    for part in
        ["matrix weights: ", "8 partitions", "task 0 on worker-0: clock ", "task 1 on worker-1: clock "]
    {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    succeed(&["cancel", "1", "--master", &cluster.address]);
    job.end();
}

#[test]
fn a_low_limit_of_open_files_is_raised() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let program = env!("CARGO_BIN_EXE_seraphim");
    let job =
        format!("train lr --data {data} --model {} --tasks 60 --servers 2 --workers 1", folder.path("model"));
    // Each of the 60 tasks has a connection to each of the two servers.
    let script = format!("ulimit -S -n 40; exec {program} {job} --quiet --set epochs=1");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("there is a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
