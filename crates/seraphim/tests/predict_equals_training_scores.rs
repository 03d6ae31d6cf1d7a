//! Promise: `evaluate` and `predict` return the same bits as validation in training.

#![allow(clippy::items_after_statements, reason = "a tolerance stands where it is used")]

mod common;

use common::{Folder, clicks, number, succeed};

#[test]
fn metrics_of_the_last_epoch_are_those_of_the_saved_model() {
    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(3000, 1));
    let (model, report) = (folder.path("model"), folder.path("report.json"));
    // One task, so that both commands add the sums over records in the same order.
    let data = ["--data", &train, "--validate", &train, "--tasks", "1"];
    succeed(&[&["train", "lr", "--model", &model, "--report", &report][..], &data].concat());
    let evaluated = succeed(&["evaluate", "--model", &model, "--data", &train, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    let last = report["epochs"].as_array().unwrap().last().unwrap()["validation"].to_string();
    for metric in ["auc", "accuracy"] {
        let of = |json: &str, prefix: &str| number(json, &format!("{prefix}/{metric}"));
        assert_eq!(of(&evaluated, "/metrics").to_bits(), of(&last, "").to_bits(), "{metric}");
    }
    /// Sums over batches of other sizes are rounded differently: a few units in the last place of a mean.
    const ROUNDING: f64 = 1e-13;
    let difference = number(&evaluated, "/metrics/log_loss") - number(&last, "/log_loss");
    assert!(difference.abs() < ROUNDING, "{difference}");
}

#[test]
fn the_score_of_a_record_hangs_on_no_neighbour() {
    let folder = Folder::new();
    let text = clicks(500, 2);
    let train = folder.write("train.libsvm", &text);
    let model = folder.path("model");
    succeed(&["train", "lr", "--data", &train, "--model", &model]);
    let all = succeed(&["predict", "--model", &model, "--data", &train, "--output", "-"]);
    let alone = folder.write("alone.libsvm", text.lines().nth(77).unwrap());
    let one = succeed(&["predict", "--model", &model, "--data", &alone, "--output", "-"]);
    assert_eq!(one.lines().nth(1), all.lines().nth(78));
}
