//! Promise: workers that have data of their own train the model that one process trains from all of these data.
#![cfg(unix)]

use std::fmt::Write;

use crate::common::cluster::{Cluster, Process};
use crate::common::{Folder, clicks, succeed};

const SETTINGS: [&str; 6] = ["--set", "epochs=4", "--set", "batch_size=100", "--seed", "3"];

/// Two halves of the same size in bytes, so that two tasks of one process have one each.
fn same_size(mut halves: [String; 2]) -> [String; 2] {
    let longest = halves.iter().map(String::len).max().expect("there are two");
    for half in &mut halves {
        // Blank lines are no records.
        for _ in half.len()..longest {
            writeln!(half).expect("a string takes everything");
        }
    }
    halves
}

/// Records with columns of numbers and of names.
fn people(seed: u64) -> String {
    let record = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        format!("{},{},town {}\n", words[0], words.len(), words[1])
    };
    format!("label,size,town\n{}", clicks(1000, seed).lines().map(record).collect::<String>())
}

/// Writes the half of each of two workers as `rows/part.ENDING`, and its validation data.
fn write_halves(folder: &Folder, ending: &str, halves: &[String; 2]) {
    for (worker, half) in halves.iter().enumerate() {
        std::fs::create_dir_all(folder.path(&format!("worker-{worker}/rows"))).expect("it is a new folder");
        folder.write(&format!("worker-{worker}/rows/part.{ending}"), half);
        folder.write(&format!("worker-{worker}/more.libsvm"), clicks(200, 3 + worker as u64));
    }
}

fn start(folder: &Folder, servers: usize, of_master: &[&str]) -> Cluster {
    Cluster::start_all(servers, 2, of_master, |kind, number| match kind {
        "worker" => vec!["--local-data".into(), folder.path(&format!("worker-{number}"))],
        _ => Vec::new(),
    })
}

const JOB: [&str; 9] =
    ["lr", "--data", "worker://rows", "--model", "worker://model", "--workers", "2", "--servers", "1"];

/// The weights of the only model that a worker has saved in its own folder.
fn saved(folder: &Folder) -> Vec<u8> {
    let path = |worker| folder.path(&format!("worker-{worker}/model/weights.safetensors"));
    let mut models: Vec<Vec<u8>> = (0..2).filter_map(|worker| std::fs::read(path(worker)).ok()).collect();
    assert_eq!(models.len(), 1, "one worker saves the model");
    models.remove(0)
}

/// The weights of a model that one process trains on both halves.
fn whole(folder: &Folder, ending: &str, halves: &[String; 2], settings: &[&str]) -> Vec<u8> {
    std::fs::create_dir(folder.path("all")).expect("it is a new folder");
    for (number, half) in halves.iter().enumerate() {
        folder.write(&format!("all/{number}.{ending}"), half);
    }
    let (all, model) = (folder.path("all"), folder.path("whole"));
    succeed(&[&["train", "lr", "--data", &all, "--model", &model, "--tasks", "2"][..], settings].concat());
    std::fs::read(format!("{model}/weights.safetensors")).expect("the model was written")
}

#[test]
fn the_model_is_that_of_all_data_in_one_process() {
    for (ending, halves) in [("libsvm", [clicks(1000, 1), clicks(1000, 2)]), ("csv", [people(1), people(2)])]
    {
        let (folder, halves) = (Folder::new(), same_size(halves));
        write_halves(&folder, ending, &halves);
        let cluster = start(&folder, 1, &[]);
        let (code, out, said) = cluster.submit(&[&JOB[..], &SETTINGS].concat()).end();
        assert_eq!(code, Some(0), "{said}");
        assert!(saved(&folder) == whole(&folder, ending, &halves, &SETTINGS), "{ending}: {out}{said}");
    }
}

#[test]
fn a_job_of_a_group_runs_on_its_workers_only() {
    let (folder, halves) = (Folder::new(), same_size([clicks(1000, 1), clicks(1000, 2)]));
    write_halves(&folder, "libsvm", &halves);
    // The last two workers have the data and are a group.
    let cluster = Cluster::start_with(1, 4, |kind, number| {
        let data = folder.path(&format!("worker-{}", number.saturating_sub(2)));
        let flags = ["--local-data", &data, "--worker-group", "clicks"].map(str::to_owned);
        if kind == "worker" && number >= 2 { flags.to_vec() } else { Vec::new() }
    });
    let (code, out, said) =
        cluster.submit(&[&JOB[..], &SETTINGS, &["--worker-group", "clicks"]].concat()).end();
    assert_eq!(code, Some(0), "{said}");
    assert!(saved(&folder) == whole(&folder, "libsvm", &halves, &SETTINGS), "{out}{said}");
    let shown = succeed(&["status", "--master", &cluster.address]);
    assert_eq!(shown.matches("slots, worker group \"clicks\"").count(), 2, "{shown}");
    let waiting = cluster.submit(&[&JOB[..], &["--worker-group", "others"]].concat());
    cluster.wait_until(|status| {
        let waits_for = status["jobs"][1]["progress"]["waits_for"].as_str().unwrap_or_default();
        waits_for.contains("0 of 2 workers of group \"others\"")
    });
    succeed(&["cancel", "2", "--master", &cluster.address]);
    let (_, _, said) = waiting.end();
    assert!(said.contains("cancelled"), "{said}");
}

#[test]
fn a_name_of_a_group_is_a_short_text() {
    let cluster = Cluster::start(1, 1, 0);
    for group in ["", "two\nlines", &"long".repeat(100)] {
        let (code, _, said) = cluster.submit(&[&JOB[..], &["--worker-group", group]].concat()).end();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("--worker-group <NAME>") && said.contains("1 to 200 bytes"), "{said}");
        let worker = ["worker", "--master", &cluster.address, "--worker-group", group];
        let (code, _, said) = Process::start(&worker).end();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("--worker-group <NAME>") && said.contains("1 to 200 bytes"), "{said}");
    }
}

#[test]
fn validation_data_are_those_of_each_worker_too() {
    let folder = Folder::new();
    write_halves(&folder, "libsvm", &[clicks(1000, 1), clicks(1000, 2)]);
    let cluster = start(&folder, 1, &[]);
    let more = ["--validate", "worker://more.libsvm", "--json"];
    let (code, out, said) = cluster.submit(&[&JOB[..], &SETTINGS, &more].concat()).end();
    assert_eq!(code, Some(0), "{said}");
    assert!(out.contains("\"validation\": {"), "{out}");
}

#[test]
fn with_a_log_the_job_goes_on_when_its_server_dies() {
    let (folder, halves) = (Folder::new(), same_size([clicks(1000, 1), clicks(1000, 2)]));
    write_halves(&folder, "libsvm", &halves);
    let mut cluster = start(&folder, 0, &["--lease", "30"]);
    let mut server = cluster.server_with_log(&folder.path("logs"), 0);
    server.wait_for("joined");
    let long = ["--set", "epochs=300", "--set", "batch_size=50", "--set", "optimizer=adagrad"];
    let client = cluster.submit(&[&JOB[..], &long, &["--durability", "log"]].concat());
    cluster.wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64() > Some(5000));
    server.kill();
    server = cluster.server_with_log(&folder.path("logs"), 0);
    server.wait_for("has read its write-ahead log");
    let (code, _, said) = client.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("server-0 is back after"), "{said}");
    assert!(saved(&folder) == whole(&folder, "libsvm", &halves, &long), "other bytes: {said}");
    // The worker processes of the cluster end before the server that they use.
    cluster.workers.clear();
}

#[test]
fn files_that_a_worker_does_not_have_end_the_job_with_their_path() {
    let folder = Folder::new();
    write_halves(&folder, "libsvm", &[clicks(1000, 1), clicks(1000, 2)]);
    let cluster = start(&folder, 1, &[]);
    std::fs::remove_dir_all(folder.path("worker-1/rows")).unwrap();
    let (code, _, said) = cluster.submit(&JOB).end();
    assert_ne!(code, Some(0));
    assert!(said.contains(&folder.path("worker-1/rows")), "{said}");
    let uneven = [&JOB[..], &["--tasks", "3"]].concat();
    let (_, _, said) = cluster.submit(&uneven).end();
    assert!(said.contains("3 tasks cannot be divided equally among 2 workers"), "{said}");
    let scores =
        ["predict", "--data", "worker://rows", "--model", "/tmp/m", "--output", "/tmp/o/", "--workers", "2"];
    let (_, _, said) = cluster.submit(&scores).end();
    assert!(said.contains("worker:// names files that only one worker has"), "{said}");
}

#[test]
fn a_label_that_the_first_worker_does_not_have_is_an_error_with_its_line() {
    let folder = Folder::new();
    let halves = ["label,size\nno,1\nyes,2\n".to_owned(), "label,size\nno,1\nmaybe,2\n".to_owned()];
    write_halves(&folder, "csv", &halves);
    let cluster = start(&folder, 1, &[]);
    let (code, _, said) = cluster.submit(&[&["softmax"], &JOB[1..]].concat()).end();
    assert_ne!(code, Some(0));
    assert!(said.contains("worker-1/rows/part.csv:3") && said.contains("maybe"), "{said}");
}

#[test]
fn a_lost_worker_ends_the_job_and_a_worker_without_a_folder_refuses_it() {
    let folder = Folder::new();
    write_halves(&folder, "libsvm", &[clicks(1000, 1), clicks(1000, 2)]);
    let mut cluster = start(&folder, 1, &[]);
    let long = ["--set", "epochs=100000", "--set", "batch_size=10"];
    let client = cluster.submit(&[&JOB[..], &long].concat());
    cluster.wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64() > Some(0));
    cluster.workers[1].kill();
    let (code, _, said) = client.end();
    assert_ne!(code, Some(0));
    assert!(said.contains("worker-1"), "{said}");
    cluster.add_worker();
    let (code, _, said) = cluster.submit(&[&JOB[..], &["--set", "epochs=2"]].concat()).end();
    assert_ne!(code, Some(0));
    assert!(said.contains("start each worker of the job with --local-data DIR"), "{said}");
}
