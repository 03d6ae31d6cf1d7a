//! Promise: a job runs as an application of YARN with one command, and a container that dies does not end it: the model has the bytes of
//! one process. `cargo xtask yarn` starts YARN and runs the tests that need it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, bytes_of, clicks, command, fail, succeed};

/// Longest wait for a process of an application.
const LIMIT: Duration = Duration::from_mins(2);

/// The addresses of the ResourceManager and of the Application Master that were made for this test.
fn yarn() -> (String, String) {
    let variable = |name: &str| std::env::var(name).expect("`cargo xtask yarn` runs this test");
    (variable("SERAPHIM_YARN"), variable("SERAPHIM_YARN_JAR"))
}

/// The processes of a role of an application.
fn processes(role: &str, stage: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_meant = |number: &u32| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let has_stage = String::from_utf8_lossy(&line).contains(stage);
        has_stage
            && words.first().is_some_and(|word| word.ends_with(b"seraphim"))
            && words.get(1) == Some(&role.as_bytes())
    };
    numbers.filter(is_meant).collect()
}

fn wait_for<T>(what: &str, child: &mut Child, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < LIMIT, "{what} has not come");
        assert!(child.try_wait().unwrap().is_none(), "the command has ended before {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn kill(process: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
    assert!(killed.success());
}

#[test]
#[ignore = "`cargo xtask yarn` starts YARN and runs this test"]
fn a_killed_container_of_each_role_comes_back_and_the_model_has_the_bytes_of_one_process() {
    let (url, jar) = yarn();
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(3000, 1));
    let (whole, model) = (folder.path("whole"), folder.path("model"));
    let stage = format!("file://{}", folder.path("stages"));
    let fixed = ["lr", "--data", &data, "--tasks", "2", "--set", "epochs=3000", "--quiet"];
    succeed(&[&["train"], &fixed[..], &["--model", &whole]].concat());
    let on_yarn = ["--yarn", &url, "--yarn-jar", &jar, "--stage", &stage, "--servers", "2", "--workers", "2"];
    let small = ["--server-memory", "256MiB", "--worker-memory", "256MiB", "--master-memory", "256MiB"];
    let checkpoints = ["--checkpoint-every", "1s", "--model", &model];
    let words = [&["submit"], &fixed[..], &on_yarn, &small, &checkpoints].concat();
    let mut child = command(&words).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
    let has_checkpoint = || Path::new(&format!("{model}.checkpoints")).exists().then_some(());
    wait_for("the first checkpoint", &mut child, has_checkpoint);
    for role in ["server", "worker", "master"] {
        let killed = processes(role, &stage)[0];
        kill(killed);
        let is_back = || {
            let present = processes(role, &stage);
            let wanted = if role == "master" { 1 } else { 2 };
            (present.len() == wanted && !present.contains(&killed)).then_some(())
        };
        wait_for(role, &mut child, is_back);
    }
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(bytes_of(&model) == bytes_of(&whole), "other bytes");
    let (here, there) = (folder.path("here.csv"), folder.path("there.csv"));
    let predict = ["predict", "--model", &model, "--data", &data, "--quiet", "--output"];
    succeed(&[&predict[..], &[&here]].concat());
    succeed(&[&["submit"], &predict[..], &[&there], &on_yarn, &small].concat());
    assert!(std::fs::read(here).unwrap() == std::fs::read(there).unwrap(), "other scores");
    let start = Instant::now();
    while std::fs::read_dir(folder.path("stages")).unwrap().next().is_some() {
        assert!(start.elapsed() < LIMIT, "the stage is left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "`cargo xtask yarn` starts YARN and runs this test"]
fn what_yarn_does_not_give_is_said_in_plain_words() {
    let (url, jar) = yarn();
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(100, 1));
    let (model, stages) = (folder.path("model"), folder.path("stages"));
    let stage = format!("file://{stages}");
    let fixed = ["submit", "lr", "--data", &data, "--model", &model, "--yarn", &url, "--stage", &stage];
    let large = fail(2, &[&fixed[..], &["--yarn-jar", &jar, "--server-memory", "1TiB"]].concat());
    assert!(large.contains("1048576 MiB") && large.contains("--server-memory"), "{large}");
    let queue = fail(5, &[&fixed[..], &["--yarn-jar", &jar, "--queue", "nowhere"]].concat());
    assert!(queue.contains("nowhere") && queue.contains("FAILED"), "{queue}");
    let absent = fail(5, &[&fixed[..], &["--yarn-jar", &folder.path("no.jar")]].concat());
    assert!(absent.contains("no.jar") && absent.contains("--yarn-jar"), "{absent}");
    let is_empty = |path: &str| std::fs::read_dir(path).map_or(true, |mut all| all.next().is_none());
    assert!(is_empty(&stages) && is_empty(&model), "something is left");
}

#[test]
fn a_resource_manager_that_is_not_there_is_named() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(100, 1));
    let words =
        ["submit", "lr", "--data", &data, "--model", &folder.path("m"), "--yarn", "http://127.0.0.1:1"];
    let error = fail(5, &words);
    assert!(error.contains("http://127.0.0.1:1") && error.contains("--yarn"), "{error}");
    let error = fail(2, &[&words[..], &["--servers", "0"]].concat());
    assert!(error.contains("--servers"), "{error}");
    let error = fail(2, &[&words[..], &["--worker-group", "mine"]].concat());
    assert!(error.contains("--worker-group") && error.contains("cannot be used with"), "{error}");
    let error = fail(2, &[&words[..], &["--worker-memory", "lots"]].concat());
    assert!(error.contains("--worker-memory"), "{error}");
}
