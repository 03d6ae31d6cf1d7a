//! Promise: one model, everywhere. A BSP job gives the same bytes in one process and on any number of servers and workers.

mod common;

use std::path::PathBuf;

use common::{Folder, bytes_of, clicks, succeed};

/// Every algorithm family that lays its matrices out differently, and what happens between epochs.
const JOBS: &[(&str, &[&str])] = &[
    ("lr", &["--set", "epochs=2"]),
    ("lr", &["--set", "optimizer=adam", "--set", "epochs=1", "--consistency", "bsp"]),
    ("lr", &["--set", "epochs=6", "--set", "early_stopping=1", "--set", "validation_share=0.2"]),
    ("softmax", &["--set", "epochs=2"]),
    ("lr", &["--set", "optimizer=lbfgs", "--set", "l2=1", "--set", "max_iterations=5"]),
    ("lr", &["--set", "optimizer=owlqn", "--set", "l1=1", "--set", "max_iterations=5"]),
    ("lr", &["--set", "optimizer=admm", "--set", "l1=0.5", "--set", "l2=1", "--set", "max_iterations=5"]),
    ("softmax", &["--set", "optimizer=svrg", "--set", "l2=1", "--set", "max_iterations=3"]),
];

fn train(
    folder: &Folder,
    name: &str,
    algorithm: &str,
    settings: &[&str],
    size: &[&str],
) -> Vec<(PathBuf, Vec<u8>)> {
    let (data, model) = (folder.path("train.libsvm"), folder.path(name));
    let fixed = ["train", algorithm, "--data", &data, "--model", &model, "--tasks", "4", "--quiet"];
    succeed(&[&fixed[..], settings, size].concat());
    bytes_of(&model)
}

#[test]
fn a_bsp_job_gives_the_same_bytes_on_any_number_of_servers_and_workers() {
    for (i, (algorithm, settings)) in JOBS.iter().enumerate() {
        let folder = Folder::new();
        folder.write("train.libsvm", clicks(3000, 1));
        let alone = train(&folder, "alone", algorithm, settings, &[]);
        for (servers, workers) in [("1", "1"), ("3", "2"), ("2", "4")] {
            let size = ["--servers", servers, "--workers", workers];
            let name = format!("on_{servers}_{workers}");
            let model = train(&folder, &name, algorithm, settings, &size);
            assert!(
                model == alone,
                "job {i}, {algorithm} on {servers} servers and {workers} workers: other bytes"
            );
        }
    }
}

#[test]
fn training_on_from_a_model_gives_the_same_bytes_too() {
    let folder = Folder::new();
    folder.write("train.libsvm", clicks(2000, 2));
    train(&folder, "first", "lr", &["--set", "epochs=1"], &[]);
    let from = folder.path("first");
    let settings = ["--set", "epochs=1", "--from", &from];
    let alone = train(&folder, "alone", "lr", &settings, &[]);
    let model = train(&folder, "on_servers", "lr", &settings, &["--servers", "2", "--workers", "2"]);
    assert!(model == alone);
}
