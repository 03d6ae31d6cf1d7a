//! Promise: Ctrl-C before the first step saves nothing and reports that, also while the run waits for standard input. A
//! second Ctrl-C ends the run at once and reports what was saved. A killed run leaves the old model or the new one.
//! Ctrl-C during validation ends it at the next batch. Generated files are complete or absent.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, clicks, command};

/// A run that scans standard input and does not end before more input comes.
struct Scanning {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Scanning {
    /// After this returns, the run has read `kib` of input apart from what the pipe buffers, so its signal handler is
    /// installed.
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

    /// Reads standard error until a line contains `words`.
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
    // More than the 4 MiB that the run inspects to detect the format. Then it prints its first line and reads on.
    let mut run = Scanning::start(&folder, 6 << 10);
    run.hear("training lr");
    run.interrupt();
    run.hear("stopping at the next step");
    // The run stops at the next batch and reads no more, so the write may fail.
    let _ = run.child.stdin.take().unwrap().write_all(clicks(50_000, 2).as_bytes());
    run.hear("no model was written");
    assert_eq!(run.child.wait().unwrap().code(), Some(130));
    assert!(is_empty(&folder));
}

#[test]
fn the_first_one_while_standard_input_is_waited_for_ends_it() {
    // Less and more input than the run inspects to detect the format. It waits for the rest, which never comes.
    for kib in [512, 6 << 10] {
        let folder = Folder::new();
        let mut run = Scanning::start(&folder, kib);
        run.interrupt();
        run.hear("no model was written");
        assert_eq!(run.child.wait().unwrap().code(), Some(130));
        assert!(is_empty(&folder));
    }
}

#[test]
fn a_stream_that_has_trained_a_model_is_saved_although_nothing_more_comes() {
    let folder = Folder::new();
    let model = folder.path("model");
    let arguments = ["train", "lr", "--data", "-", "--model", &model, "--set", "epochs=1"];
    let mut child = command(&arguments);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut run = Scanning { child, said };
    let lines = clicks(50_000, 1);
    for _ in 0..=(6 << 20) / lines.len() {
        run.child.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    }
    run.child.stdin.as_mut().unwrap().write_all(b"1 half of a li").unwrap();
    run.hear("training lr");
    run.interrupt();
    run.hear("stopping at the next step");
    run.said.by_ref().for_each(drop);
    let mut said = String::new();
    run.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(run.child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("the model so far is saved"), "{said}");
}

#[cfg(unix)]
#[test]
fn the_second_one_ends_at_once() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = command(&["train", "lr", "--data", &pipe, "--model", &folder.path("model")]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    // This returns when the run has opened the pipe. By then its signal handler is installed, and it waits for input
    // that never comes.
    let _writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let mut run = Scanning { child, said };
    run.interrupt();
    run.hear("stopping at the next step");
    run.interrupt();
    run.hear("ended at once; nothing was saved");
    assert_eq!(run.child.wait().unwrap().code(), Some(130));
    std::fs::remove_file(pipe).unwrap();
    assert!(is_empty(&folder));
}

#[cfg(unix)]
#[test]
fn at_every_moment_there_is_the_old_model_or_the_new_one() {
    let folder = Folder::new();
    let data = folder.write("a.libsvm", clicks(300, 1));
    let model = folder.path("model");
    let train =
        ["train", "lr", "--data", &data, "--model", &model, "--overwrite", "--quiet", "--set", "epochs=1"];
    crate::common::succeed(&train);
    let done = &std::sync::atomic::AtomicBool::new(false);
    let missing = std::thread::scope(|scope| {
        let missing = scope.spawn(|| {
            let manifest = std::path::Path::new(&model).join("model.json");
            let mut missing = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                missing += u32::from(!manifest.exists());
            }
            missing
        });
        for wait_ms in 0..20 {
            let mut child = command(&train).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // The time of death varies; it may be before, during or after the writing.
            let deadline = Instant::now() + Duration::from_millis(wait_ms * 4);
            while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            let _ = child.kill();
            child.wait().unwrap();
        }
        crate::common::succeed(&train);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        missing.join().unwrap()
    });
    assert_eq!(missing, 0, "the manifest was not there");
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.libsvm", "model"], "what the killed ones have left is removed by the next");
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
    // More than the 4 MiB that the run inspects before training. When the pipe has taken all of it, validation is
    // reading.
    let lines = clicks(50_000, 2);
    for _ in 0..=(6 << 20) / lines.len() {
        run.child.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    }
    run.interrupt();
    run.hear("stopping at the next step");
    // The run stops at the next batch, long before this input ends.
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

/// Processes that `parent` started and that are alive.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_child = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let mut fields = after_name.split_whitespace();
        fields.next() != Some("Z") && fields.next() == Some(&parent.to_string())
    };
    processes.filter(is_child).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn servers_and_workers_end_with_the_command_that_is_killed() {
    /// The processes end at once; the limit allows for a busy machine.
    const LIMIT: Duration = Duration::from_secs(10);
    let folder = Folder::new();
    let (data, model) = (folder.write("train.libsvm", clicks(2000, 1)), folder.path("model"));
    let fixed = ["train", "lr", "--data", &data, "--model", &model, "--servers", "1", "--workers", "1"];
    let mut command = command(&[&fixed[..], &["--set", "epochs=1000000"]].concat());
    let mut leader = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(leader.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("epoch 1/")), "it has begun");
    let children = children(leader.id());
    assert_eq!(children.len(), 2);
    leader.kill().unwrap();
    leader.wait().unwrap();
    let start = Instant::now();
    let lives = |process: &u32| {
        std::fs::read_to_string(format!("/proc/{process}/cmdline"))
            .is_ok_and(|words| words.contains("--end-with-parent"))
    };
    while children.iter().any(lives) {
        assert!(start.elapsed() < LIMIT, "they live on");
        std::thread::yield_now();
    }
    assert!(!std::path::Path::new(&model).exists());
}

#[test]
fn generated_files_are_whole_or_absent() {
    for signals in [1, 2] {
        let folder = Folder::new();
        // So many records that only the signal can end the run.
        let size = ["--rows", "1000000000", "--dimensions", "5000", "--nonzeros", "10", "--threads", "1"];
        let formats = ["--format", if cfg!(feature = "parquet") { "libsvm,parquet" } else { "libsvm" }];
        let output = folder.path("");
        let mut child = command(&[&["generate", "ctr", "--output", &output][..], &size, &formats].concat());
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // A file that exists proves that the signal handler is installed.
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
