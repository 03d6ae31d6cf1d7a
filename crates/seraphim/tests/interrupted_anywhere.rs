//! Promise: Ctrl-C before the first step saves nothing and says so; a second one ends at once and says what was saved;
//! one during validation ends it at the next batch; generated files are whole or absent.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStderr, Command, Stdio};

use common::{Folder, clicks, command};

/// A run that scans standard input, and does not end before more is written.
struct Scanning {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Scanning {
    /// When this comes back, the run has read more than `kib` without a pipe's room, so it listens to signals.
    fn start(folder: &Folder, kib: usize) -> Self {
        let (model, set) = (folder.path("model"), "class_weights=balanced");
        let arguments = ["train", "lr", "--data", "-", "--model", &model, "--tasks", "1", "--set", set];
        let mut child = command(&arguments);
        child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut scanning = Self { child, said };
        let lines = clicks(10_000, 1);
        for _ in 0..=(kib << 10) / lines.len() {
            scanning.child.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
        }
        scanning
    }

    /// Reads what it says until a line holds `words`.
    fn hear(&mut self, words: &str) {
        let heard = self.said.by_ref().map_while(Result::ok).any(|line| line.contains(words));
        assert!(heard, "it ended without saying {words:?}");
    }

    fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

fn is_empty(folder: &Folder) -> bool {
    std::fs::read_dir(folder.path("")).unwrap().next().is_none()
}

#[test]
fn the_first_one_during_the_scan_saves_nothing() {
    let folder = Folder::new();
    // More than the 4 MiB that are looked at before the format is known: then the run greets, and reads on.
    let mut run = Scanning::start(&folder, 6 << 10);
    run.hear("training lr");
    run.interrupt();
    run.hear("stopping at the next step");
    // The next batch is where it stops; when it has stopped, nobody reads any more.
    let _ = run.child.stdin.take().unwrap().write_all(clicks(50_000, 2).as_bytes());
    run.hear("no model was written");
    assert_eq!(run.child.wait().unwrap().code(), Some(130));
    assert!(is_empty(&folder));
}

#[test]
fn the_second_one_ends_at_once() {
    let folder = Folder::new();
    // Less than is looked at before the format is known: it waits for the rest, which never comes.
    let mut run = Scanning::start(&folder, 512);
    run.interrupt();
    run.hear("stopping at the next step");
    run.interrupt();
    run.hear("ended at once; nothing was saved");
    assert_eq!(run.child.wait().unwrap().code(), Some(130));
    assert!(is_empty(&folder));
}

#[test]
fn the_first_one_during_validation_ends_it_at_the_next_batch() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(500, 1));
    let (model, report) = (folder.path("model"), folder.path("report.json"));
    let files = ["train", "lr", "--data", &data, "--validate", "-", "--model", &model, "--report", &report];
    let mut child = command(&[&files[..], &["--tasks", "1", "--set", "epochs=1"]].concat());
    child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut run = Scanning { child, said };
    // More than the 4 MiB that are looked at before training: when all is taken, validation reads.
    let lines = clicks(50_000, 2);
    for _ in 0..=(6 << 20) / lines.len() {
        run.child.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    }
    run.interrupt();
    run.hear("stopping at the next step");
    // The next batch is where it stops, long before these end: nobody reads any more.
    let mut input = run.child.stdin.take().unwrap();
    let mut taken = 0;
    while taken < 50 && input.write_all(lines.as_bytes()).is_ok() {
        taken += 1;
    }
    drop(input);
    run.said.by_ref().for_each(drop);
    assert_eq!(run.child.wait().unwrap().code(), Some(130));
    assert!(taken < 50, "it read all that there was");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["ended_by"], "interrupted");
    assert_eq!(report["epochs"][0]["records"], 500);
    assert!(report["epochs"][0]["validation"].is_null(), "half a validation is none: {report}");
    assert!(std::path::Path::new(&model).is_dir(), "the model is saved");
}

#[test]
fn generated_files_are_whole_or_absent() {
    for signals in [1, 2] {
        let folder = Folder::new();
        // More records than anybody waits for: only the signal can end it.
        let size = ["--rows", "1000000000", "--dimensions", "5000", "--nonzeros", "10", "--threads", "1"];
        let formats = ["--format", if cfg!(feature = "parquet") { "libsvm,parquet" } else { "libsvm" }];
        let output = folder.path("");
        let mut child = command(&[&["generate", "ctr", "--output", &output][..], &size, &formats].concat());
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // A file that has begun proves that the run listens to signals.
        while is_empty(&folder) {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it wrote");
            std::thread::yield_now();
        }
        for _ in 0..signals {
            let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            assert!(sent.success(), "the child is not waited for yet");
        }
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
        assert!(is_empty(&folder), "{said}");
    }
}
