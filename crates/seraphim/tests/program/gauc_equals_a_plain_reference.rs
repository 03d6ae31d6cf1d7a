//! Promise: with a group column, reports contain the AUC within groups. The test compares it with a count of pairs over
//! the scores that `predict` writes, for training (scores before the update), validation and `evaluate`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::{Folder, clicks, number, succeed};

/// Tolerance for sums of about ten groups in another order.
const TOLERANCE: f64 = 1e-12;
const GROUP_COUNT: usize = 12;

/// Group of a record. The sizes differ widely, so that the weights of groups matter; group 11 has one record only.
fn group(record: usize) -> usize {
    if record == 0 { GROUP_COUNT - 1 } else { (record * record) % 37 % (GROUP_COUNT - 1) }
}

/// Records with their groups as `qid` of libsvm.
fn grouped(records: u64, seed: u64) -> String {
    let lines = clicks(records, seed);
    let with_group = lines.lines().enumerate().map(|(i, line)| {
        let (label, entries) = line.split_once(' ').unwrap();
        format!("{label} qid:{} {entries}\n", group(i))
    });
    with_group.collect()
}

/// `sum_g n_g AUC_g / sum_g n_g` over the groups with both classes. The AUC is the share of ordered pairs; ties count
/// one half.
fn reference(scores: &str) -> f64 {
    let records: Vec<(f64, f64)> = scores
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(label, score)| (label.parse().unwrap(), score.parse().unwrap()))
        .collect();
    let (mut sum, mut count) = (0.0, 0.0);
    for g in 0..GROUP_COUNT {
        let mine = || records.iter().enumerate().filter(|(i, _)| group(*i) == g).map(|(_, record)| *record);
        let of = |label: f64| mine().filter(move |record| record.0 == label).map(|record| record.1);
        let pair = |p: f64, n: f64| {
            if p > n {
                1.0
            } else if p < n {
                0.0
            } else {
                0.5
            }
        };
        let ordered: f64 = of(1.0).flat_map(|p| of(0.0).map(move |n| pair(p, n))).sum();
        let pairs = (of(1.0).count() * of(0.0).count()) as f64;
        if pairs > 0.0 {
            sum += mine().count() as f64 * ordered / pairs;
            count += mine().count() as f64;
        }
    }
    sum / count
}

fn assert_close(actual: f64, expected: f64, what: &str) {
    assert!((actual - expected).abs() < TOLERANCE, "{what}: {actual}, reference {expected}");
}

#[test]
fn gauc_of_training_validation_and_evaluate() {
    let folder = Folder::new();
    let (train, test) =
        (folder.write("a.libsvm", grouped(900, 1)), folder.write("b.libsvm", grouped(600, 2)));
    let report = folder.path("report.json");
    let run = |model: &str, tasks: &str, set: &[&str]| {
        let files = ["train", "lr", "--data", &train, "--validate", &test, "--model", model];
        let options = ["--group", "qid", "--tasks", tasks, "--report", &report, "--overwrite"];
        succeed(&[&files[..], &options, set].concat());
        std::fs::read_to_string(&report).unwrap()
    };
    let predicted =
        |model: &str, data: &str| succeed(&["predict", "--model", model, "--data", data, "--output", "-"]);
    // With one batch per epoch, the scores of epoch 1 before its update are those of the model after epoch 0.
    let whole = ["--set", "batch_size=1000", "--set", "epochs=1"];
    let (model, longer) = (folder.path("model"), folder.path("longer"));
    run(&model, "1", &whole);
    let expected = reference(&predicted(&model, &train));
    let told = run(&longer, "1", &[&whole[..], &["--set", "epochs=2"]].concat());
    assert_close(number(&told, "/epochs/1/training/gauc"), expected, "training");

    // Records of a group belong to different tasks; they meet when the partial results are merged.
    let told = run(&model, "3", &["--set", "epochs=2"]);
    let expected = reference(&predicted(&model, &test));
    assert_close(number(&told, "/epochs/1/validation/gauc"), expected, "validation");
    assert!((expected - number(&told, "/epochs/1/validation/auc")).abs() > 1e-4, "auc is another number");
    let metrics = succeed(&["evaluate", "--model", &model, "--data", &test, "--group", "qid", "--json"]);
    assert_close(number(&metrics, "/metrics/gauc"), expected, "evaluate");
}
