//! Promise: `evaluate` and `predict` return the same bits as validation in training.

#![allow(clippy::items_after_statements, reason = "a tolerance stands where it is used")]

use crate::common::{Folder, clicks, number, succeed};

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

/// A table with a column of words, and a label that depends on both columns.
fn table(records: u64) -> String {
    let words = ["north", "east", "south", "west"];
    let line = |i: u64| {
        let (word, x) = (i * 7 % 4, i * 31 % 100);
        let label = ["no", "yes", "maybe"][((word * 30 + x) / 70) as usize];
        format!("{},{x},{label}\n", words[word as usize])
    };
    std::iter::once("place,size,label\n".to_owned()).chain((0..records).map(line)).collect()
}

#[test]
fn scores_and_metrics_are_the_same_when_servers_hold_the_model() {
    let folder = Folder::new();
    let sparse = folder.write("a.libsvm", clicks(3000, 3));
    let words = folder.write("words.csv", table(900));
    let numbers = folder.write(
        "numbers.csv",
        table(900).replace("north", "1").replace("east", "2").replace("south", "3").replace("west", "4"),
    );
    for (algorithm, data, settings) in [
        ("lr", &sparse, &["--set", "standardize=true"][..]),
        ("lr", &sparse, &["--set", "dimensions=1000", "--set", "optimizer=lbfgs"]),
        ("softmax", &words, &["--label", "label"]),
        ("fm", &sparse, &["--set", "k=4", "--set", "epochs=2"]),
        ("gbdt", &sparse, &["--set", "iterations=9"]),
        ("gbdt", &words, &["--label", "label", "--set", "iterations=9", "--set", "objective=softmax"]),
        ("kmeans", &numbers, &["--set", "k=3", "--skip-columns", "label"]),
    ] {
        let model = folder.path("model");
        let train = ["train", algorithm, "--data", data, "--model", &model, "--overwrite", "--quiet"];
        succeed(&[&train[..], settings].concat());
        let mut scores = Vec::new();
        for servers in [&[][..], &["--servers", "1"], &["--servers", "3", "--threads", "3"]] {
            let (csv, parquet) = (folder.path("scores.csv"), folder.path("scores.parquet"));
            for output in [&csv, &parquet] {
                let predict = [
                    "predict",
                    "--model",
                    &model,
                    "--data",
                    data,
                    "--output",
                    output,
                    "--overwrite",
                    "--quiet",
                ];
                succeed(&[&predict[..], servers].concat());
            }
            let evaluate = ["evaluate", "--model", &model, "--data", data, "--json"];
            let metrics = succeed(&[&evaluate[..], servers].concat());
            scores.push((std::fs::read(csv).unwrap(), std::fs::read(parquet).unwrap(), metrics));
        }
        assert!(scores[0].0.len() > 1000, "{algorithm}");
        assert!(scores.iter().all(|other| *other == scores[0]), "{algorithm} {settings:?}");
    }
    let error = crate::common::fail(
        2,
        &["predict", "--model", "m", "--data", &sparse, "--output", "-", "--servers", "0"],
    );
    assert!(error.contains("--servers") && error.contains("a whole number in [1, 1024]"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_dies_ends_the_prediction_with_its_name() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(2000, 3));
    let model = folder.path("model");
    succeed(&["train", "lr", "--data", &data, "--model", &model, "--quiet"]);
    // The prediction goes on until its standard input ends.
    let predict = ["predict", "--model", &model, "--data", "-", "--format", "libsvm", "--output", "-"];
    let mut child = crate::common::command(&[&predict[..], &["--servers", "1", "--quiet"]].concat())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = clicks(20_000, 4);
    std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let server = loop {
        let children = std::fs::read_to_string(&children).unwrap_or_default();
        match children.split_whitespace().next() {
            Some(server) => break server.to_owned(),
            None => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    assert!(std::process::Command::new("kill").args(["-9", &server]).status().unwrap().success());
    // These records cannot be scored any more.
    let _ = std::io::Write::write_all(&mut input, text.as_bytes());
    drop(input);
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{error}");
    assert!(error.contains("server-0 ended unexpectedly"), "{error}");
}
