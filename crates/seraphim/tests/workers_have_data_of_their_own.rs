//! Promise: workers that have data of their own train the model that one process trains from all of these data.
#![cfg(unix)]

mod common;

use std::fmt::Write;

use common::cluster::Cluster;
use common::{Folder, clicks, succeed};

const SETTINGS: [&str; 6] = ["--set", "epochs=4", "--set", "batch_size=100", "--seed", "3"];

/// Two halves of the same size in bytes, so that two tasks of one process have one each.
fn halves() -> [String; 2] {
    let mut halves = [clicks(1000, 1), clicks(1000, 2)];
    let longest = halves.iter().map(String::len).max().expect("there are two");
    for half in &mut halves {
        // Blank lines are no records.
        for _ in half.len()..longest {
            writeln!(half).expect("a string takes everything");
        }
    }
    halves
}

/// Two workers, each with its half as `rows/part.libsvm`, and the same validation data.
fn start(folder: &Folder) -> Cluster {
    for (worker, half) in halves().iter().enumerate() {
        std::fs::create_dir_all(folder.path(&format!("worker-{worker}/rows"))).expect("it is a new folder");
        folder.write(&format!("worker-{worker}/rows/part.libsvm"), half);
        folder.write(&format!("worker-{worker}/more.libsvm"), clicks(200, 3 + worker as u64));
    }
    Cluster::start_with(1, 2, |kind, number| match kind {
        "worker" => vec!["--local-data".into(), folder.path(&format!("worker-{number}"))],
        _ => Vec::new(),
    })
}

#[test]
fn the_model_is_that_of_all_data_in_one_process() {
    let folder = Folder::new();
    let cluster = start(&folder);
    std::fs::create_dir(folder.path("all")).unwrap();
    for (number, half) in halves().iter().enumerate() {
        folder.write(&format!("all/{number}.libsvm"), half);
    }
    let (all, whole) = (folder.path("all"), folder.path("whole"));
    succeed(&[&["train", "lr", "--data", &all, "--model", &whole, "--tasks", "2"][..], &SETTINGS].concat());
    let local =
        ["lr", "--data", "worker://rows", "--model", "worker://model", "--workers", "2", "--servers", "1"];
    let (code, out, said) = cluster.submit(&[&local[..], &SETTINGS].concat()).end();
    assert_eq!(code, Some(0), "{said}");
    // One worker has saved the model in its own folder.
    let models: Vec<String> =
        (0..2).map(|worker| folder.path(&format!("worker-{worker}/model/weights.safetensors"))).collect();
    let written: Vec<Vec<u8>> = models.iter().filter_map(|path| std::fs::read(path).ok()).collect();
    let expected = std::fs::read(format!("{whole}/weights.safetensors")).unwrap();
    assert!(written == [expected], "{out}{said}");
    // A second job with validation data, which are those of each worker too.
    let more = ["--validate", "worker://more.libsvm", "--overwrite"];
    let (code, out, said) = cluster.submit(&[&local[..], &SETTINGS, &more].concat()).end();
    assert_eq!(code, Some(0), "{said}");
    assert!(out.contains("validation"), "{out}");
}

#[test]
fn files_that_a_worker_does_not_have_end_the_job_with_their_path() {
    let folder = Folder::new();
    let cluster = start(&folder);
    std::fs::remove_dir_all(folder.path("worker-1/rows")).unwrap();
    let job =
        ["lr", "--data", "worker://rows", "--model", "worker://model", "--workers", "2", "--servers", "1"];
    let (code, _, said) = cluster.submit(&job).end();
    assert_ne!(code, Some(0));
    assert!(said.contains(&folder.path("worker-1/rows")), "{said}");
    let uneven = [&job[..], &["--tasks", "3"]].concat();
    let (_, _, said) = cluster.submit(&uneven).end();
    assert!(said.contains("3 tasks cannot be divided equally among 2 workers"), "{said}");
    let scores =
        ["predict", "--data", "worker://rows", "--model", "/tmp/m", "--output", "/tmp/o/", "--workers", "2"];
    let (_, _, said) = cluster.submit(&scores).end();
    assert!(said.contains("worker:// names files that only one worker has"), "{said}");
}

#[test]
fn a_lost_worker_ends_the_job_and_a_worker_without_a_folder_refuses_it() {
    let folder = Folder::new();
    let mut cluster = start(&folder);
    let job =
        ["lr", "--data", "worker://rows", "--model", "worker://model", "--workers", "2", "--servers", "1"];
    let long = ["--set", "epochs=100000", "--set", "batch_size=10"];
    let client = cluster.submit(&[&job[..], &long].concat());
    cluster.wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64() > Some(0));
    cluster.workers[1].kill();
    let (code, _, said) = client.end();
    assert_ne!(code, Some(0));
    assert!(said.contains("worker-1"), "{said}");
    cluster.add_worker();
    let (code, _, said) = cluster.submit(&[&job[..], &["--set", "epochs=2"]].concat()).end();
    assert_ne!(code, Some(0));
    assert!(said.contains("start each worker of the job with --local-data DIR"), "{said}");
}
