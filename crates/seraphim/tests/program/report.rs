//! Promise: `--report` contains every metric of every epoch, settings, timings and memory.

use crate::common::{Folder, clicks, number, succeed};

#[test]
fn the_report_is_complete() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(2000, 1));
    let test = folder.write("b.libsvm", clicks(500, 2));
    let path = folder.path("report.json");
    let options =
        ["--tasks", "2", "--seed", "5", "--consistency", "ssp:2", "--set", "epochs=3", "--report", &path];
    let files = ["train", "lr", "--data", &data, "--validate", &test, "--model", &folder.path("model")];
    succeed(&[&files[..], &options].concat());
    let report = std::fs::read_to_string(&path).unwrap();
    for (pointer, expected) in [
        ("/seed", 5.0),
        ("/tasks", 2.0),
        ("/input/records", 2000.0),
        ("/epochs/2/records", 2000.0),
        ("/epochs/2/epoch", 2.0),
    ] {
        assert_eq!(number(&report, pointer), expected, "{pointer}");
    }
    for pointer in
        ["/epochs/0/training/auc", "/epochs/2/validation/log_loss", "/timings/train_s", "/records_per_second"]
    {
        assert!(number(&report, pointer) > 0.0, "{pointer}");
    }
    if cfg!(target_os = "linux") {
        assert!(number(&report, "/peak_memory_bytes") > 1e6);
    }
    let value: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(value["consistency"], "ssp:2");
    assert_eq!(value["ended_by"], "finished");
    assert!(value["settings"]["learning_rate"].is_string());
    assert!(value.pointer("/store/matrices/0/staleness").is_some(), "{}", value["store"]);
}

#[test]
fn the_table_of_algorithms_is_there_for_machines() {
    let all: serde_json::Value = serde_json::from_str(&succeed(&["algorithms", "--json"])).unwrap();
    let names: Vec<_> =
        all.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect();
    assert!(
        ["lr", "svm", "softmax", "linear", "huber"].iter().all(|name| names.iter().any(|n| n == name)),
        "{names:?}"
    );
    assert!(succeed(&["algorithms", "lr"]).contains("learning_rate"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(succeed(&["completions", shell]).contains("seraphim"));
    }
}
