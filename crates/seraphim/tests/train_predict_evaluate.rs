//! Promise: one command trains, a second evaluates, a third predicts, and what they say fits together.

#![allow(clippy::items_after_statements, reason = "a tolerance stands where it is used")]

mod common;

use common::{Folder, clicks, number, real_data, succeed};

#[test]
fn a_model_is_trained_evaluated_and_predicts() {
    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(4000, 1));
    let test = folder.write("test.libsvm", clicks(1000, 2));
    let (model, scores) = (folder.path("model"), folder.path("scores.csv"));
    succeed(&["train", "lr", "--data", &train, "--validate", &test, "--model", &model]);
    let metrics = succeed(&["evaluate", "--model", &model, "--data", &test, "--json"]);
    // The true model has about .83; a model that has learnt nothing has .5.
    assert!(number(&metrics, "/metrics/auc") > 0.75, "{metrics}");
    succeed(&["predict", "--model", &model, "--data", &test, "--output", &scores]);
    let text = std::fs::read_to_string(&scores).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("label,score"));
    assert_eq!(lines.clone().count(), 1000);
    let labels: Vec<char> = lines.clone().filter_map(|line| line.chars().next()).collect();
    let expected: Vec<char> = clicks(1000, 2).lines().filter_map(|line| line.chars().next()).collect();
    assert_eq!(labels, expected, "scores are in the order of the data");
    let inspected = succeed(&["inspect", &model]);
    assert!(inspected.contains("lr model") && inspected.contains("largest weights"), "{inspected}");
}

#[test]
fn prediction_hangs_on_no_number_of_tasks() {
    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(2000, 3));
    let model = folder.path("model");
    succeed(&["train", "lr", "--data", &train, "--model", &model]);
    let one = succeed(&["predict", "--model", &model, "--data", &train, "--output", "-", "--tasks", "1"]);
    let three = succeed(&["predict", "--model", &model, "--data", &train, "--output", "-", "--tasks", "3"]);
    assert_eq!(one, three);
}

#[test]
fn training_on_is_the_same_as_training_longer() {
    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(2000, 4));
    let (once, twice, on) = (folder.path("once"), folder.path("twice"), folder.path("on"));
    let common = ["train", "lr", "--data", &train, "--tasks", "2", "--set", "shuffle=none"];
    let run = |extra: &[&str]| succeed(&[&common[..], extra].concat());
    run(&["--model", &once, "--set", "epochs=1"]);
    run(&["--model", &twice, "--set", "epochs=2"]);
    run(&["--model", &on, "--set", "epochs=1", "--from", &once]);
    let weights = |model: &str| std::fs::read(format!("{model}/weights.safetensors")).unwrap();
    assert_eq!(weights(&on), weights(&twice), "the optimizer's state came along");
}

#[test]
fn a9a_is_learnt_without_any_setting() {
    let Some(data) = real_data("a9a") else { return };
    /// The best known is .9022; the promise is to be within .001 of it.
    const AUC: f64 = 0.9012;
    let folder = Folder::new();
    let model = folder.path("model");
    let file = |name: &str| data.join(name).to_str().unwrap().to_owned();
    succeed(&["train", "lr", "--data", &file("train.libsvm.gz"), "--model", &model]);
    let metrics = succeed(&["evaluate", "--model", &model, "--data", &file("test.libsvm.gz"), "--json"]);
    assert!(number(&metrics, "/metrics/auc") >= AUC, "{metrics}");
}
