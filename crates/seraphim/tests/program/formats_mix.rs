//! Promise: data after training may have another format, as long as both formats identify features in the same way.

#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::parquet_file::write_lists;
use crate::common::{Folder, clicks, fail, number, succeed, train_everywhere};

const DATA: i32 = 3;

#[test]
fn a_model_of_text_is_validated_and_evaluated_on_parquet() {
    let folder = Folder::new();
    folder.write("train.libsvm", clicks(2000, 1));
    let text = clicks(500, 2);
    folder.write("test.libsvm", &text);
    write_lists(&folder.path("test.parquet"), &text);
    let file = |name: &str| folder.path(name);
    let (model, report) = (folder.path("model"), folder.path("report.json"));
    let files = ["lr", "--data", &file("train.libsvm"), "--validate", &file("test.parquet")];
    train_everywhere(&folder, &[&files[..], &["--tasks", "3"]].concat());
    succeed(&[&["train", "--model", &model, "--report", &report][..], &files].concat());
    let auc = |name: &str| {
        number(&succeed(&["evaluate", "--model", &model, "--data", &file(name), "--json"]), "/metrics/auc")
    };
    assert_eq!(auc("test.parquet").to_bits(), auc("test.libsvm").to_bits());
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    let last = report["epochs"].as_array().unwrap().last().unwrap();
    assert_eq!(last["validation"]["auc"].as_f64().unwrap().to_bits(), auc("test.libsvm").to_bits());
}

#[test]
fn a_model_of_parquet_has_the_bytes_of_the_same_text() {
    let folder = Folder::new();
    let text = clicks(3000, 1);
    let mut inputs = vec![folder.write("train.libsvm", &text)];
    inputs.push(folder.path("train.parquet"));
    write_lists(&inputs[1], &text);
    let models = inputs.iter().enumerate().map(|(number, data)| {
        let model = folder.path(&format!("model{number}"));
        succeed(&["train", "lr", "--data", data, "--tasks", "1", "--model", &model]);
        std::fs::read(std::path::Path::new(&model).join("weights.safetensors")).unwrap()
    });
    let models: Vec<Vec<u8>> = models.collect();
    assert!(models[0] == models[1], "the models differ");
}

#[test]
fn columns_are_the_same_in_csv_and_parquet() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(300, 1));
    let model = folder.path("first");
    succeed(&["train", "lr", "--data", &data, "--model", &model]);
    let scores = |name: &str| {
        let output = folder.path(name);
        succeed(&["predict", "--model", &model, "--data", &data, "--output", &output]);
        output
    };
    let (text, binary) = (scores("scores.csv"), scores("scores.parquet"));
    let second = folder.path("second");
    let files = ["lr", "--data", &text, "--validate", &binary];
    train_everywhere(&folder, &[&files[..], &["--tasks", "3"]].concat());
    succeed(&[&["train", "--model", &second][..], &files].concat());
    let evaluate = |data: &str| succeed(&["evaluate", "--model", &second, "--data", data, "--json"]);
    let auc = |data: &str| number(&evaluate(data), "/metrics/auc").to_bits();
    assert_eq!(auc(&text), auc(&binary));
}

#[test]
fn text_without_a_telling_name_is_of_the_format_of_training() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(300, 1));
    let plain = folder.write("b.txt", "1 3 7\n0 30 41\n");
    let model = folder.path("model");
    succeed(&["train", "lr", "--data", &data, "--validate", &plain, "--model", &model]);
}

#[test]
fn features_that_are_known_otherwise_are_refused() {
    let folder = Folder::new();
    let sparse = folder.write("a.libsvm", clicks(300, 1));
    let table = folder.write("a.csv", "x,y\n1,0\n2,1\n3,1\n0,0\n");
    let hashed = folder.write("a.vw", "1 | a b\n-1 | c d\n");
    let model = folder.path("model");
    for (data, other) in [(&sparse, &table), (&table, &sparse), (&sparse, &hashed), (&hashed, &sparse)] {
        let arguments = ["train", "lr", "--data", data, "--validate", other, "--model", &model];
        let error = fail(DATA, &arguments);
        assert!(error.contains(other.as_str()) && error.contains("whose features are"), "{error}");
    }
}
