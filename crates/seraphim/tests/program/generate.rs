//! Promise: generated data have the same bytes on every machine, and their best model is known.

#![allow(clippy::items_after_statements, reason = "a tolerance stands where it is used")]

use crate::common::{Folder, number, succeed};

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let folder = Folder::new();
    let run = |name: &str, threads: &str| {
        let out = folder.path(name);
        let size = ["--rows", "25000", "--test-rows", "100", "--dimensions", "5000", "--nonzeros", "10"];
        succeed(&[&["generate", "ctr", "--output", &out, "--threads", threads][..], &size].concat());
        std::fs::read(format!("{out}/train.libsvm")).unwrap()
    };
    let one = run("one", "1");
    assert!(one == run("three", "3"));
    assert_eq!(std::str::from_utf8(&one).unwrap().lines().count(), 25000);
    // Made by another program for the same numbers, in Python (numpy 2.4.6). It computes the AUC by sorting the scores.
    const CRC_32: u32 = 0xd59004a4;
    const BAYES: [(&str, f64); 3] =
        [("auc", 0.6904612883763864), ("log_loss", 0.5500145511209958), ("positives", 0.28496)];
    /// The other library has another logarithm and another order of sums.
    const ROUNDING: f64 = 1e-9;
    let mut crc = flate2::Crc::new();
    crc.update(&one);
    assert_eq!(crc.sum(), CRC_32);
    let meta = std::fs::read_to_string(folder.path("one/meta.json")).unwrap();
    for (name, expected) in BAYES {
        let actual = number(&meta, &format!("/train_bayes/{name}"));
        assert!((actual - expected).abs() < ROUNDING, "{name}: {actual}, not {expected}");
    }
}

#[test]
#[cfg(feature = "parquet")]
fn text_and_parquet_hold_the_same_records() {
    let folder = Folder::new();
    let out = folder.path("out");
    let size = ["--rows", "3000", "--test-rows", "0", "--dimensions", "5000", "--nonzeros", "10"];
    succeed(&[&["generate", "ctr", "--output", &out, "--format", "libsvm,parquet"][..], &size].concat());
    let train = |file: &str, model: &str| {
        let data = format!("{out}/{file}");
        let report = folder.path("report.json");
        let files = [
            "train",
            "lr",
            "--data",
            &data,
            "--model",
            &folder.path(model),
            "--report",
            &report,
            "--overwrite",
        ];
        succeed(&[&files[..], &["--set", "epochs=1"]].concat());
        number(&std::fs::read_to_string(report).unwrap(), "/epochs/0/training/auc")
    };
    // Ids begin with 1 in text and with 0 in Parquet, so the models differ only in their keys.
    assert_eq!(train("train.libsvm", "text").to_bits(), train("train.parquet", "parquet").to_bits());
}
