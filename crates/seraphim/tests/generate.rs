//! Promise: generated data are the same bytes everywhere, and their best model is known.

mod common;

use common::{Folder, number, succeed};

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
    let meta = std::fs::read_to_string(folder.path("one/meta.json")).unwrap();
    assert!((0.5..1.0).contains(&number(&meta, "/train_bayes/auc")), "{meta}");
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
    // Ids begin with 1 in text and with 0 in Parquet, so the models differ in their keys only.
    assert_eq!(train("train.libsvm", "text").to_bits(), train("train.parquet", "parquet").to_bits());
}
