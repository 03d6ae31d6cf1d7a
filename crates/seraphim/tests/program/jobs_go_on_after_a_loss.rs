//! Promise: a job that loses servers or workers, killed or frozen, goes on from its last checkpoint with others, and a
//! bsp job ends in the same bytes as an undisturbed one. What a frozen process does when it wakes reaches nothing.
#![cfg(unix)]

use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::cluster::{Cluster, Process, signal};
use crate::common::disturbed::{Local, Submitted, World, ends_well, newest, submit, wait_until};
use crate::common::metrics::{get, value};
use crate::common::{bytes_of, fail, succeed};

#[test]
fn a_killed_server_or_worker_is_started_again_and_the_bytes_are_the_same() {
    survives_kills(&World::new());
}

/// Their histograms are at the servers, and tasks wait for each other many times in a tree.
#[test]
fn trees_of_a_killed_server_or_worker_have_the_same_bytes() {
    survives_kills(&World::of("gbdt", &["--set", "iterations=150", "--set", "objective=logistic"]));
}

/// Their counts are at the servers, and the topics of tokens at the tasks; both are from one moment when the job goes on.
#[test]
fn topics_of_a_killed_server_or_worker_have_the_same_bytes() {
    survives_kills(&World::of("lda", &["--set", "sweeps=600", "--set", "topics=30"]));
}

/// The same with the sampler of many topics, whose rows travel packed.
#[test]
fn many_topics_of_a_killed_server_or_worker_have_the_same_bytes() {
    survives_kills(&World::of("lda", &["--set", "sweeps=400", "--set", "topics=200"]));
}

/// Their pairs are in lists at the servers, which a checkpoint has too.
#[test]
fn factors_of_a_killed_server_or_worker_have_the_same_bytes() {
    let pairs = (0..150u64).flat_map(|user| (0..40).map(move |item| (user, item)));
    let rated = pairs.filter(|(user, item)| (user * 7 + item * 3) % 4 > 0);
    let lines = rated.map(|(user, item)| format!("user{user},item{item},{}\n", 1 + (user * item + user) % 5));
    let data = std::iter::once("user,item,rating\n".to_owned()).chain(lines).collect();
    let settings = &["--set", "iterations=1500", "--set", "factors=8"];
    survives_kills(&World::with_data("als", settings, ("ratings.csv", data)));
}

fn survives_kills(world: &World) {
    for (name, victims) in
        [("server", &["server-1"][..]), ("worker", &["worker-0"]), ("two", &["server-0", "worker-1"])]
    {
        let mut job = Local::start(world, name, &[]);
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
fn a_run_after_a_loss_refuses_data_that_have_changed() {
    let world = World::new();
    let whole = std::fs::read_to_string(&world.data).expect("it was written");
    let mut reversed: Vec<&str> = whole.lines().collect();
    reversed.reverse();
    for (name, text) in
        [("longer", format!("{whole}1 5:1\n")), ("other", format!("{}\n", reversed.join("\n")))]
    {
        for every in ["20ms", "off"] {
            std::fs::write(&world.data, &whole).expect("it is ours");
            let name = format!("{name}-{every}");
            let mut job = Local::with_checkpoints(&world, &name, every, &[]);
            let mut out = job.child.stderr.take().expect("it is piped");
            if every == "off" {
                // The first line is told when the data were inspected.
                assert!(out.read(&mut [0; 1]).expect("it is text") > 0);
            } else {
                job.wait_for_checkpoint(1);
            }
            // In one moment: a reader of the old file reads it to its end.
            let changed = format!("{}.changed", world.data);
            std::fs::write(&changed, &text).expect("it is ours");
            std::fs::rename(&changed, &world.data).expect("it is ours");
            signal(job.pid("worker-1"), "-KILL");
            let mut said = String::new();
            out.read_to_string(&mut said).expect("it is text");
            assert_eq!(job.child.wait().expect("it is a child").code(), Some(3), "{said}");
            assert!(said.contains("the data are not those of"), "{name}: {said}");
            assert!(!Path::new(&job.model).exists());
        }
    }
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

#[test]
fn a_killed_server_with_a_log_goes_on_and_no_task_goes_back() {
    let world = World::new();
    for durability in ["log", "synced-log"] {
        let mut job = Local::start(&world, durability, &["--durability", durability]);
        for victims in [&["server-1"][..], &["server-0", "server-1"]] {
            job.wait_for_checkpoint(newest(&job.folder) + 1);
            for victim in victims {
                signal(job.pid(victim), "-KILL");
            }
        }
        let said = job.end();
        let back = said.lines().filter(|line| line.contains("no task goes back"));
        assert_eq!(back.count(), 3, "{said}");
        assert!(!said.contains("run 2 of the job"), "{said}");
        let logs = std::fs::read_dir(world.folder.path("")).expect("it exists").map_while(Result::ok);
        let logs = logs.filter(|entry| entry.file_name().to_string_lossy().contains("write-ahead"));
        assert_eq!(logs.count(), 0, "the logs end with the job");
    }
}

#[test]
fn a_killed_worker_of_a_job_with_logs_goes_on_from_the_checkpoint() {
    let world = World::new();
    let mut job = Local::start(&world, "model", &["--durability", "log"]);
    job.wait_for_checkpoint(2);
    for victim in ["worker-0", "server-1"] {
        signal(job.pid(victim), "-KILL");
    }
    let said = job.end();
    assert!(said.contains("run 2 of the job begins"), "{said}");
}

/// A cluster of two workers and two servers with write-ahead logs in `logs`, and flags of its master.
fn with_logs(logs: &str, of_master: &[&str]) -> Cluster {
    let mut cluster = Cluster::start_all(0, 2, of_master, |_, _| Vec::new());
    for number in 0..2 {
        let mut server = cluster.server_with_log(logs, number);
        server.wait_for("joined");
        cluster.servers.push(server);
    }
    cluster
}

/// Waits until a member has told the master where its HTTP is.
fn http_of(cluster: &Cluster, name: &str) -> String {
    let address_of = |status: &serde_json::Value| {
        let mut members = status["members"].as_array().into_iter().flatten();
        let member = members.find(|entry| entry["member"]["name"] == name)?;
        member["report"]["http"][0].as_str().map(|place| place.trim_start_matches("tcp:").to_owned())
    };
    let status = cluster.wait_until(|status| address_of(status).is_some());
    address_of(&status).expect("it was found")
}

#[test]
fn a_server_of_a_cluster_that_is_started_again_with_its_log_finds_its_job() {
    let world = World::new();
    let (model, folder) = (world.folder.path("model"), world.folder.path("saved"));
    let logs = world.folder.path("logs");
    let mut cluster = with_logs(&logs, &["--lease", "30"]);
    let client = cluster.submit(&[&world.words(&model, &folder)[..], &["--durability", "log"]].concat());
    wait_until("no checkpoint", || newest(&folder) > 1);
    let http = http_of(&cluster, "server-0");
    cluster.servers[0].kill();
    // Something else takes the port of its HTTP. It is away for longer than the lease that members have otherwise.
    let _taken = TcpListener::bind(&http).expect("the port of a process that was killed");
    let away = Instant::now();
    wait_until("it is away", || away.elapsed() > Duration::from_secs(6));
    cluster.servers[0] = cluster.server_with_log(&logs, 0);
    cluster.servers[0].wait_for("the port for HTTP is taken");
    cluster.servers[0].wait_for("has read its write-ahead log");
    let said = ends_well(&world, client, &model);
    assert!(said.contains("server-0 is back after") && !said.contains("run 2"), "{said}");
}

#[test]
fn a_server_that_was_away_for_too_long_does_not_disturb_the_job_that_went_on() {
    let world = World::new();
    let (model, folder) = (world.folder.path("model"), world.folder.path("saved"));
    let logs = world.folder.path("logs");
    let mut cluster = Cluster::start(1, 2, 0);
    let mut server = cluster.server_with_log(&logs, 9);
    server.wait_for("joined");
    // A server without a log: the job may not ask for one.
    let refused = cluster.submit(&[&world.words(&model, &folder)[..], &["--durability", "log"]].concat());
    let (code, _, error) = refused.end();
    assert!(code != Some(0) && error.contains("--write-ahead-log DIR"), "{error}");
    let client = cluster.submit(&world.words(&model, &folder));
    wait_until("no checkpoint", || newest(&folder) > 1);
    server.kill();
    cluster.add_server();
    wait_until("the job goes on without it", || {
        let text = succeed(&["status", "2", "--master", &cluster.address]);
        text.contains("run 2 of the job begins")
    });
    let mut back = cluster.server_with_log(&logs, 9);
    back.wait_for("joined");
    ends_well(&world, client, &model);
}

#[test]
fn a_server_that_was_away_for_too_long_gives_back_what_it_has_read_from_its_log() {
    let world = World::new();
    let (model, folder) = (world.folder.path("model"), world.folder.path("saved"));
    let logs = world.folder.path("logs");
    let mut cluster = with_logs(&logs, &[]);
    let client = cluster.submit(&[&world.words(&model, &folder)[..], &["--durability", "log"]].concat());
    wait_until("no checkpoint", || newest(&folder) > 1);
    cluster.servers[1].kill();
    let mut other = cluster.server_with_log(&logs, 7);
    other.wait_for("joined");
    wait_until("the job goes on without it", || {
        succeed(&["status", "1", "--master", &cluster.address]).contains("run 2 of the job begins")
    });
    let mut back = cluster.server_with_log(&logs, 1);
    back.wait_for("has read its write-ahead log");
    let place = http_of(&cluster, "server-1");
    wait_until("it holds rows of the first run", || {
        value(&get(&place, "/metrics"), "seraphim_memory_bytes", &[]) == 0.0
    });
    ends_well(&world, client, &model);
}

#[test]
fn a_log_that_cannot_be_used_is_an_error_that_says_why() {
    let world = World::new();
    let fixed = ["train", "lr", "--data", &world.data, "--model", &world.folder.path("model")];
    let error = fail(2, &[&fixed[..], &["--durability", "log"]].concat());
    assert!(error.contains("--durability log in one process"), "{error}");
    let file = world.folder.write("file", "no folder");
    let error = fail(5, &["server", "--master", "127.0.0.1:1", "--write-ahead-log", &file]);
    assert!(error.contains("write-ahead log") && error.contains(&file), "{error}");
}

#[test]
fn a_server_whose_log_is_damaged_begins_without_it_and_the_job_goes_on_from_its_checkpoint() {
    let world = World::new();
    let mut job = Local::start(&world, "model", &["--durability", "log"]);
    job.wait_for_checkpoint(2);
    let pid = job.pid("server-1");
    signal(pid, "-STOP");
    let folder = std::fs::read_dir(world.folder.path("")).expect("it exists").map_while(Result::ok);
    let logs =
        folder.map(|entry| entry.path().join("server-1")).find(|path| path.join("identity.json").exists());
    let files =
        std::fs::read_dir(logs.expect("the server has a log")).expect("it exists").map_while(Result::ok);
    let log = files.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "log"));
    let log = log.expect("a lane has a segment");
    let mut bytes = std::fs::read(&log).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, bytes).expect("it can be written");
    signal(pid, "-KILL");
    let said = job.end();
    assert!(said.contains("write-ahead log") && said.contains("run 2 of the job begins"), "{said}");
}
