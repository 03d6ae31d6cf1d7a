//! Promise: with `--durability replica` a server may die or freeze at any moment, and another one has its partitions: the
//! job ends in the same bytes, and no task goes back.
#![cfg(unix)]

use std::time::{Duration, Instant};

use crate::common::cluster::{Cluster, signal};
use crate::common::disturbed::{Local, World, ends_well, newest, wait_until};
use crate::common::{bytes_of, fail, succeed};

const REPLICA: [&str; 2] = ["--durability", "replica"];

#[test]
fn a_killed_server_is_replaced_by_its_replica_and_no_task_goes_back() {
    let world = World::new();
    for victim in ["server-0", "server-1"] {
        let mut job = Local::start(&world, victim, &REPLICA);
        job.wait_for_checkpoint(2);
        signal(job.pid(victim), "-KILL");
        let said = job.end();
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("no task goes back")).collect();
        assert_eq!(lines.len(), 1, "{said}");
        assert!(lines[0].contains(&format!("{victim} is lost")), "{said}");
        assert!(!said.contains("run 2"), "{said}");
        assert!(!said.contains("times as long for a record"), "a worker that waited is not slow: {said}");
    }
}

#[test]
fn with_no_checkpoint_at_all_a_killed_server_costs_nothing() {
    let world = World::new();
    let model = world.folder.path("model");
    let mut words = world.words(&model, "");
    words.retain(|word| !["--checkpoints", "", "--checkpoint-every", "20ms"].contains(word));
    let cluster = Cluster::start(2, 2, 0);
    let mut client = cluster.submit(&[&words[..], &REPLICA].concat());
    client.wait_for("epoch");
    cluster.servers[1].signal("-KILL");
    let said = ends_well(&world, client, &model);
    assert!(said.contains("no task goes back") && !said.contains("run 2"), "{said}");
}

#[test]
fn a_frozen_server_is_replaced_by_its_replica_and_reaches_nothing_when_it_wakes() {
    let world = World::new();
    let (model, folder) = (world.folder.path("model"), world.folder.path("saved"));
    let cluster = Cluster::start_all(2, 2, &["--lease", "1"], |_, _| Vec::new());
    let client = cluster.submit(&[&world.words(&model, &folder)[..], &REPLICA].concat());
    wait_until("no checkpoint", || newest(&folder) > 1);
    cluster.servers[0].signal("-STOP");
    let before = newest(&folder);
    wait_until("the job does not go on", || newest(&folder) > before + 3);
    cluster.servers[0].signal("-CONT");
    let said = ends_well(&world, client, &model);
    assert!(said.contains("no task goes back") && !said.contains("run 2"), "{said}");
}

#[test]
fn of_three_servers_two_may_die_one_after_the_other_and_the_second_time_the_job_goes_back() {
    let world = World { servers: "3", ..World::new() };
    let mut job = Local::start(&world, "three", &REPLICA);
    for victim in ["server-0", "server-1"] {
        job.wait_for_checkpoint(newest(&job.folder) + 1);
        signal(job.pid(victim), "-KILL");
    }
    let said = job.end();
    let survived = said.lines().filter(|line| line.contains("no task goes back")).count();
    let went_back = said.lines().filter(|line| line.contains("run 2 of the job begins")).count();
    assert!(survived >= 1 && went_back == 1, "{said}");
}

#[test]
fn a_worker_that_dies_beside_replicas_goes_on_from_the_checkpoint() {
    let world = World::new();
    let mut job = Local::start(&world, "model", &REPLICA);
    job.wait_for_checkpoint(2);
    signal(job.pid("worker-0"), "-KILL");
    let said = job.end();
    assert!(said.contains("run 2 of the job begins"), "{said}");
}

#[test]
fn both_servers_at_once_are_more_than_replicas_survive_and_the_checkpoint_is_there() {
    let world = World::new();
    let mut job = Local::start(&world, "model", &REPLICA);
    job.wait_for_checkpoint(2);
    for victim in ["server-0", "server-1"] {
        signal(job.pid(victim), "-KILL");
    }
    let said = job.end();
    assert!(said.contains("run 2 of the job begins"), "{said}");
}

#[test]
fn a_job_goes_on_soon_after_a_takeover() {
    let world = World::new();
    let mut job = Local::start(&world, "model", &REPLICA);
    job.wait_for_checkpoint(2);
    signal(job.pid("server-1"), "-KILL");
    let killed = Instant::now();
    // One may have been under way. The time without other load is that of the benchmark `takeover`.
    let before = newest(&job.folder);
    while newest(&job.folder) < before + 2 && job.child.try_wait().expect("it is a child").is_none() {
        assert!(killed.elapsed() < Duration::from_secs(30), "the job does not go on");
        std::thread::sleep(Duration::from_millis(5));
    }
    job.end();
}

#[test]
fn replicas_need_two_equal_servers_without_a_log() {
    let world = World::new();
    let model = world.folder.path("model");
    let fixed = ["train", "lr", "--data", &world.data, "--model", &model];
    let error = fail(2, &[&fixed[..], &REPLICA].concat());
    assert!(error.contains("--durability replica in one process"), "{error}");
    let error = fail(2, &[&fixed[..], &REPLICA, &["--servers", "1", "--workers", "1"]].concat());
    assert!(error.contains("at least two servers"), "{error}");
    let mut cluster = Cluster::start(0, 1, 0);
    for number in 0..2 {
        let mut server = cluster.server_with_log(&world.folder.path("logs"), number);
        server.wait_for("joined");
        cluster.servers.push(server);
    }
    let words = ["lr", "--data", &world.data, "--model", &model, "--servers", "2", "--workers", "1"];
    let (code, _, error) = cluster.submit(&[&words[..], &REPLICA].concat()).end();
    assert!(code != Some(0) && error.contains("this server has a write-ahead log"), "{error}");
    // The job that fails leaves nothing behind.
    succeed(&[&["submit"], &words[..], &["--master", &cluster.address, "--quiet"]].concat());
    assert!(!bytes_of(&model).is_empty());
}
