//! Promise: `predict` and `evaluate` give the same bytes in this process and on any servers and workers, and fail in the
//! same way. A server or worker that dies ends the command with its name, and nothing is left of the scores.

#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;

use crate::common::parquet_file::{self, Table};
use crate::common::{DEPLOYMENTS, Folder, clicks, fail, gzip, number, succeed};

/// What one run has written.
#[derive(PartialEq)]
struct Scored {
    csv: Vec<u8>,
    parquet: Vec<u8>,
    metrics: String,
}

/// Scores `data` with a model in one deployment, with flags of `predict` and of both commands.
fn scored(folder: &Folder, data: &str, of_predict: &[&str], of_both: &[&str], deployment: &[&str]) -> Scored {
    let model = folder.path("model");
    let read = [&["--model", &model, "--data", data][..], of_both, deployment].concat();
    let predict = |output: &str| {
        let output = folder.path(output);
        let fixed = ["predict", "--output", &output, "--overwrite", "--quiet"];
        succeed(&[&fixed[..], of_predict, &read].concat());
        output
    };
    let (csv, parquet) = (predict("scores.csv"), predict("scores.parquet"));
    let csv = std::fs::read(csv).unwrap();
    assert!(parts_of(&predict("parts/"), "csv") == csv, "{deployment:?}: a folder of parts");
    let metrics = succeed(&[&["evaluate", "--json"][..], &read].concat());
    Scored { csv, parquet: std::fs::read(parquet).unwrap(), metrics }
}

/// Joins the parts in a folder, each of which has a header.
fn parts_of(folder: &str, ending: &str) -> Vec<u8> {
    let mut joined = Vec::new();
    for (i, (name, bytes)) in crate::common::bytes_of(folder).into_iter().enumerate() {
        assert_eq!(name.to_str(), Some(format!("part-{i:05}.{ending}").as_str()));
        let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        joined.extend(&bytes[if i == 0 { 0 } else { header }..]);
    }
    joined
}

/// Trains a model and checks that its scores and metrics are the same everywhere.
fn same_everywhere(train: &[&str], data: &str, of_predict: &[&str], of_both: &[&str]) {
    let folder = Folder::new();
    let model = folder.path("model");
    succeed(&[&["train", "--quiet", "--model", &model, "--tasks", "1"], train].concat());
    let alone = scored(&folder, data, of_predict, of_both, &[]);
    assert!(alone.csv.len() > 1000, "{train:?}");
    for deployment in &DEPLOYMENTS[1..] {
        let other = scored(&folder, data, of_predict, of_both, deployment);
        assert_eq!(other.metrics, alone.metrics, "{train:?} {deployment:?}");
        assert!(other == alone, "{train:?} {deployment:?}");
    }
    let mut files: Vec<_> =
        crate::common::bytes_of_files(&folder).into_iter().map(|(name, _)| name).collect();
    files.retain(|name| !["scores.csv", "scores.parquet"].iter().any(|kept| name.ends_with(kept)));
    assert!(files.is_empty(), "left: {files:?}");
}

#[test]
fn a_folder_of_text_plain_and_compressed() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    let texts: Vec<String> = (0..5).map(|i| clicks(400, i)).collect();
    for (i, text) in texts.iter().enumerate() {
        match i % 2 {
            0 => folder.write(&format!("data/{i}.libsvm"), text),
            _ => folder.write(&format!("data/{i}.libsvm.gz"), gzip(text)),
        };
    }
    let data = folder.path("data");
    same_everywhere(&["lr", "--data", &data, "--set", "standardize=true"], &data, &[], &[]);
    same_everywhere(&["fm", "--data", &data, "--set", "k=4", "--set", "epochs=2"], &data, &[], &[]);
    let packed = folder.write("one.libsvm.gz", gzip(texts.concat()));
    same_everywhere(&["lr", "--data", &data], &packed, &[], &["--threads", "3"]);
}

#[test]
fn a_file_of_several_chunks() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(350_000, 1));
    assert!(std::fs::metadata(&data).unwrap().len() > 2 * (4 << 20), "each chunk has 4 MiB");
    let train =
        ["lr", "--data", &data, "--set", "dimensions=1000", "--set", "optimizer=sgd", "--set", "epochs=1"];
    same_everywhere(&train, &data, &[], &[]);
    same_everywhere(&train, &data, &[], &["--tasks", "5"]);
}

/// Records with names: the label depends on the place and the size.
fn table(count: u64, seed: u64) -> Table {
    let mut table = Table::default();
    for i in (0..count).map(|i| i * 7 + seed) {
        table.labels.push(i32::from(i % 3 == 0));
        table.colors.push(["red", "green, dark", "blue"][(i % 3) as usize].to_owned());
        table.towns.push(format!("town {}", i % 20));
        table.sizes.push((i % 8) as f64 / 4.0);
    }
    table
}

#[test]
fn tables_with_names_and_columns_that_are_copied() {
    let folder = Folder::new();
    for format in ["csv", "parquet"] {
        std::fs::create_dir(folder.path(format)).unwrap();
    }
    for part in 0..3 {
        let table = table(150, part);
        parquet_file::write(&folder.path(&format!("parquet/{part}.parquet")), &table);
        let mut text = String::from("id,label,color,size,town\n");
        for (i, label) in table.labels.iter().enumerate() {
            let (color, size, town) = (&table.colors[i], table.sizes[i], &table.towns[i]);
            let class = ["no", "yes", "maybe"][*label as usize + i % 2];
            writeln!(text, "{part}-{i},{class},\"{color}\",{size},{town}").unwrap();
        }
        folder.write(&format!("csv/{part}.csv"), text);
    }
    let (csv, parquet) = (folder.path("csv"), folder.path("parquet"));
    let train = ["softmax", "--data", &csv, "--label", "label", "--skip-columns", "id"];
    same_everywhere(&train, &csv, &["--keep-columns", "id,color"], &[]);
    same_everywhere(
        &["lr", "--data", &parquet, "--label", "label"],
        &parquet,
        &["--keep-columns", "size,town"],
        &[],
    );
    let numbers = ["kmeans", "--data", &parquet, "--set", "k=3", "--skip-columns", "label,color,town"];
    same_everywhere(&numbers, &parquet, &[], &[]);
}

/// A folder with a model and data whose third file has bad lines.
fn with_bad_lines() -> Folder {
    let folder = Folder::new();
    let good = folder.write("good.libsvm", clicks(600, 5));
    succeed(&["train", "lr", "--quiet", "--data", &good, "--model", &folder.path("model")]);
    std::fs::create_dir(folder.path("bad")).unwrap();
    for i in 0..4 {
        let bad = if i >= 2 { "1 3:x\n0 4:y\n" } else { "" };
        folder.write(&format!("bad/{i}.libsvm"), format!("{}{bad}{}", clicks(50, i), clicks(50, 10 + i)));
    }
    folder
}

#[test]
fn bad_lines_are_counted_over_all_workers() {
    let folder = with_bad_lines();
    let (model, data, output) = (folder.path("model"), folder.path("bad"), folder.path("scores.csv"));
    let mut reports = Vec::new();
    for deployment in DEPLOYMENTS {
        let predict = ["predict", "--model", &model, "--data", &data, "--output", &output, "--json"];
        let with = |more: &[&'static str]| [&predict[..], more, deployment].concat();
        let error = fail(3, &with(&[]));
        assert!(error.contains("2.libsvm:51:"), "{deployment:?}: {error}");
        let error = fail(3, &with(&["--bad-lines", "skip=3"]));
        assert!(
            error.contains("4 bad lines") || error.contains("limit of 3") || error.contains("skip=3"),
            "{error}"
        );
        assert!(!std::path::Path::new(&output).exists(), "{deployment:?}");
        let report = succeed(&with(&["--bad-lines", "skip=4"]));
        assert_eq!(number(&report, "/bad_lines") as u64, 4, "{report}");
        assert_eq!(number(&report, "/records") as u64, 400, "{report}");
        reports.push((report, std::fs::read(&output).unwrap()));
        std::fs::remove_file(&output).unwrap();
        let evaluate = ["evaluate", "--model", &model, "--data", &data, "--bad-lines", "skip=3"];
        fail(3, &[&evaluate[..], deployment].concat());
    }
    assert!(reports.iter().all(|report| *report == reports[0]));
    let left: Vec<_> =
        std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn what_cannot_be_scored_is_refused_as_in_one_process() {
    let folder = with_bad_lines();
    let (model, good) = (folder.path("model"), folder.path("good.libsvm"));
    let (there, empty) =
        (folder.write("there.csv", "label,score\n1,0.5\n"), folder.write("empty.libsvm", ""));
    let (other, thesis) = (folder.path("others/"), folder.path("none.csv"));
    std::fs::create_dir(&other).unwrap();
    folder.write("others/thesis.txt", "years of work");
    let predict = |data: &str, output: &str, more: &[&str]| -> Vec<String> {
        let fixed = ["predict", "--quiet", "--model", &model, "--data", data, "--output", output];
        fixed.iter().chain(more).map(|&text| text.to_owned()).collect()
    };
    let evaluate = |data: &str, more: &[&str]| -> Vec<String> {
        let fixed = ["evaluate", "--model", &model, "--data", data];
        fixed.iter().chain(more).map(|&text| text.to_owned()).collect()
    };
    for (code, arguments, part) in [
        (2, predict(&good, &there, &[]), "there.csv already exists"),
        (2, predict(&good, &good, &["--overwrite"]), "which is read"),
        (2, predict(&good, &other, &[]), "already exists"),
        (2, predict(&good, &other, &["--overwrite"]), "thesis.txt"),
        (2, predict(&good, &folder.path("model/scores.csv"), &[]), "inside the model"),
        (1, predict(&good, &folder.path("nowhere/scores.csv"), &[]), "nowhere/scores.csv"),
        (2, predict(&good, &folder.path("model/"), &["--overwrite"]), "which is read"),
        (2, evaluate(&good, &["--threshold", "2"]), "is not a probability"),
        (3, predict(&empty, &thesis, &[]), "no records"),
        (3, evaluate(&empty, &[]), "no records"),
        (2, predict(&folder.path("nowhere.libsvm"), &thesis, &[]), "nowhere.libsvm"),
    ] {
        let mut codes = Vec::new();
        for deployment in DEPLOYMENTS {
            let arguments: Vec<&str> =
                arguments.iter().map(String::as_str).chain(deployment.iter().copied()).collect();
            let output = crate::common::seraphim(&arguments);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(error.contains(part), "{arguments:?}: {error}");
            codes.push(output.status.code());
        }
        assert!(codes.iter().all(|of| *of == codes[0]), "{arguments:?}: {codes:?}, about {code}");
    }
    assert_eq!(std::fs::read_to_string(folder.path("others/thesis.txt")).unwrap(), "years of work");
    for (data, output, part) in
        [(good.as_str(), "-", "output: workers cannot"), ("-", "s.csv", "data: workers cannot")]
    {
        let error =
            fail(2, &["predict", "--model", &model, "--data", data, "--output", output, "--workers", "1"]);
        assert!(error.contains(part), "{error}");
    }
}

/// Ends a process of a prediction that cannot end by itself, because its data are a pipe that stays open: a member with
/// this name, or the command itself. Returns the exit code and the errors of the command, which leaves nothing.
#[cfg(target_os = "linux")]
fn ended_early(victim: Option<&str>, signal: &str) -> (Option<i32>, String) {
    use std::io::Write as _;
    use std::process::Stdio;

    let folder = Folder::new();
    let train = folder.write("train.libsvm", clicks(600, 5));
    let (model, pipe, output) = (folder.path("model"), folder.path("pipe.libsvm"), folder.path("scores.csv"));
    succeed(&["train", "lr", "--quiet", "--data", &train, "--model", &model]);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let predict = ["predict", "--quiet", "--model", &model, "--data", &pipe, "--output", &output];
    let predict = [&predict[..], &["--servers", "2", "--workers", "1"]].concat();
    let child = crate::common::command(&predict).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let text = clicks(20_000, 4);
    input.write_all(text.as_bytes()).unwrap();
    let pid = victim.map_or_else(|| child.id().to_string(), |name| child_named(child.id(), name));
    // The pipe holds less than this, so the worker has read most of it: it scores.
    input.write_all(text.as_bytes()).unwrap();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
    // Whoever still reads needs records to find out that a server is lost.
    while input.write_all(text.as_bytes()).is_ok() {}
    let left = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&left.stderr);
    let files = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert_eq!(files, ["model", "pipe.libsvm", "train.libsvm"], "{error}");
    (left.status.code(), error.into_owned())
}

/// Returns the number of the child process that was started with `--name NAME`.
#[cfg(target_os = "linux")]
fn child_named(parent: u32, name: &str) -> String {
    let is_named = |pid: &&str| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').any(|word| word == name)
    };
    let deadline = std::time::Instant::now() + crate::common::cluster::PATIENCE;
    loop {
        assert!(std::time::Instant::now() < deadline, "no process {name}");
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).unwrap();
        let children =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
        let all: Vec<String> = children.collect();
        if let Some(pid) = all.iter().flat_map(|pids| pids.split_whitespace()).find(is_named) {
            return pid.to_owned();
        }
        std::thread::yield_now();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_or_worker_that_dies_ends_the_prediction_with_its_name_and_leaves_nothing() {
    for victim in ["worker-0", "server-1"] {
        let (code, error) = ended_early(Some(victim), "-9");
        assert!(code != Some(0) && error.contains(victim), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_the_prediction_and_leaves_nothing() {
    let (code, error) = ended_early(None, "-INT");
    assert!(code == Some(130) && error.contains("scoring was not finished"), "{code:?} {error}");
}
