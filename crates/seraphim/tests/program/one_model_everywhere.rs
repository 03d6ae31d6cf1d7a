//! Promise: a BSP job gives the same model bytes in one process and on any number of servers and workers.

use std::path::PathBuf;

use crate::common::{DEPLOYMENTS, Folder, bytes_of, clicks, number, succeed, train_everywhere};

/// Every family of algorithms with another layout of matrices, and settings that act between epochs.
const JOBS: &[(&str, &[&str])] = &[
    ("lr", &[]),
    ("linear", &["--set", "learning_rate=1"]),
    ("lr", &["--set", "epochs=2"]),
    ("lr", &["--set", "optimizer=adam", "--set", "epochs=1", "--consistency", "bsp"]),
    ("lr", &["--set", "epochs=6", "--set", "early_stopping=1", "--set", "validation_share=0.2"]),
    ("softmax", &["--set", "epochs=2"]),
    ("lr", &["--set", "optimizer=lbfgs", "--set", "l2=1", "--set", "max_iterations=5"]),
    ("lr", &["--set", "optimizer=owlqn", "--set", "l1=1", "--set", "max_iterations=5"]),
    ("lr", &["--set", "optimizer=admm", "--set", "l1=0.5", "--set", "l2=1", "--set", "max_iterations=5"]),
    ("softmax", &["--set", "optimizer=svrg", "--set", "l2=1", "--set", "max_iterations=3"]),
    ("gbdt", &["--set", "iterations=8"]),
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

/// Every push rule, with a schedule where it reads one, in orders that depend on the number of the epoch.
const RULES: &[&[&str]] = &[
    &["optimizer=ftrl", "shuffle=batches"],
    &["optimizer=sgd", "schedule=exponential", "schedule_decay=0.5", "shuffle=records"],
    &["optimizer=momentum", "schedule=warm_restarts", "schedule_every=7", "shuffle=batches"],
    &["optimizer=adagrad", "schedule=inverse_time", "schedule_decay=0.3", "shuffle=none"],
    &[
        "optimizer=rmsprop",
        "schedule=warm_restarts",
        "schedule_every=5",
        "standardize=true",
        "shuffle=batches",
    ],
    &["optimizer=adam", "schedule=exponential", "schedule_decay=0.9", "schedule_every=3", "shuffle=records"],
    &["optimizer=adadelta", "class_weights=balanced", "shuffle=records"],
];

#[test]
fn two_epochs_and_two_more_are_four_epochs_to_the_byte() {
    let folder = Folder::new();
    folder.write("train.libsvm", clicks(1500, 3));
    for (i, rule) in RULES.iter().enumerate() {
        let settings = |epochs: &'static str| -> Vec<&str> {
            ["--set", epochs].into_iter().chain(rule.iter().flat_map(|setting| ["--set", setting])).collect()
        };
        let state = |name: &str, settings: &[&str], size: &[&str]| {
            let files = train(&folder, &format!("{name}_{i}"), "lr", settings, size);
            let of_the_run = |name: &PathBuf| name.to_str() == Some("model.json");
            files.into_iter().filter(|(name, _)| !of_the_run(name)).collect::<Vec<_>>()
        };
        let four = state("four", &settings("epochs=4"), &[]);
        let two = state("two", &settings("epochs=2"), &[]);
        assert!(two != four);
        let from = folder.path(&format!("two_{i}"));
        let on = [settings("epochs=2"), vec!["--from", &from]].concat();
        assert!(state("on", &on, &[]) == four, "{rule:?}");
        let on_servers = state("on_servers", &on, &["--servers", "2", "--workers", "2"]);
        assert!(on_servers == four, "{rule:?} on servers");
        // Also continues from the model of the servers, one epoch after the other.
        let three = [settings("epochs=1"), vec!["--from", &from]].concat();
        state("three", &three, &["--servers", "1", "--workers", "2"]);
        let from = folder.path(&format!("three_{i}"));
        let last = [settings("epochs=1"), vec!["--from", &from]].concat();
        assert!(state("last", &last, &[]) == four, "{rule:?}, one epoch at a time");
    }
}

#[test]
fn new_data_are_read_in_their_own_order_and_the_schedule_goes_on() {
    let folder = Folder::new();
    folder.write("train.libsvm", clicks(1500, 4));
    let rule = ["--set", "optimizer=sgd", "--set", "schedule=exponential", "--set", "schedule_decay=0.5"];
    let with = |more: &[&'static str]| [&rule[..], more].concat();
    train(&folder, "first", "lr", &with(&["--set", "epochs=2"]), &[]);
    let from = folder.path("first");
    let copy = folder.write("copy.libsvm", clicks(1500, 4));
    let on = |name: &str, data: &str| {
        let model = folder.path(name);
        let fixed = ["train", "lr", "--data", data, "--model", &model, "--tasks", "4", "--quiet"];
        let more = ["--set", "epochs=1", "--from", &from];
        succeed(&[&fixed[..], &rule, &more].concat());
        let text = std::fs::read_to_string(format!("{model}/model.json")).unwrap();
        let model: serde_json::Value = serde_json::from_str(&text).unwrap();
        model["trained"]["position"].clone()
    };
    let (same, new) = (on("same", &folder.path("train.libsvm")), on("new", &copy));
    assert_eq!((same["epochs"].as_u64(), new["epochs"].as_u64()), (Some(3), Some(1)));
    assert_eq!(same["clock"], new["clock"], "the schedule follows the steps of all runs");
}

/// Long steps on few records: epoch by epoch the weights fit these records better and other records worse.
#[test]
fn early_stopping_ends_with_the_weights_of_the_best_epoch_everywhere() {
    // Sums over batches of another size are rounded differently, in the last digits of a mean of 400 losses.
    const ROUNDING: f64 = 1e-12;
    let folder = Folder::new();
    let (data, other) = (folder.write("a.libsvm", clicks(200, 1)), folder.write("b.libsvm", clicks(400, 2)));
    let (model, report) = (folder.path("model"), folder.path("report.json"));
    let settings = ["--set", "optimizer=sgd", "--set", "learning_rate=2", "--set", "batch_size=10"];
    let stopping = ["--set", "epochs=30", "--set", "early_stopping=3", "--set", "shuffle=none"];
    let files = ["lr", "--data", &data, "--validate", &other, "--tasks", "3"];
    let arguments = [&files[..], &settings, &stopping].concat();
    train_everywhere(&folder, &arguments);
    for deployment in DEPLOYMENTS {
        let told = ["train", "--overwrite", "--model", &model, "--report", &report];
        succeed(&[&told, &arguments[..], deployment].concat());
        let report = std::fs::read_to_string(&report).expect("it was written");
        let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
        let losses: Vec<f64> = report["epochs"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|epoch| epoch["validation"]["loss"].as_f64().expect("a loss"))
            .collect();
        let best = (0..losses.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b])).expect("an epoch");
        assert_eq!(report["best_epoch"].as_u64(), Some(best as u64), "{losses:?}");
        assert_eq!(losses.len(), best + 4, "three worse epochs, then it stops: {losses:?}");
        let saved = succeed(&["evaluate", "--model", &model, "--data", &other, "--json"]);
        let saved = number(&saved, "/metrics/loss");
        assert!((saved - losses[best]).abs() < ROUNDING, "{deployment:?}: {saved} in {losses:?}");
    }
}

#[test]
fn the_number_of_tasks_follows_the_size_of_the_data_alone() {
    let folder = Folder::new();
    // Comments count as bytes of the input too: 33 MiB give two tasks.
    let padding = format!("# {}\n", "-".repeat(1021)).repeat(33 << 10);
    let data = folder.write("train.libsvm", format!("{}{padding}{}", clicks(300, 1), clicks(300, 2)));
    let train = |name: &str, how: &[&str]| {
        let model = folder.path(name);
        let fixed = ["train", "lr", "--data", &data, "--model", &model, "--quiet", "--set", "epochs=2"];
        succeed(&[&fixed[..], how].concat());
        bytes_of(&model)
    };
    let one = train("one", &["--threads", "1"]);
    let manifest = std::fs::read_to_string(folder.path("one/model.json")).expect("the model has a manifest");
    assert!(manifest.contains("\"tasks\": 2"), "{manifest}");
    for (name, how) in [
        ("many", &["--threads", "7"][..]),
        ("spread", &["--servers", "2", "--workers", "2"]),
        ("alone", &["--servers", "1", "--workers", "1", "--threads", "3"]),
    ] {
        assert!(train(name, how) == one, "{name}: other bytes");
    }
}
