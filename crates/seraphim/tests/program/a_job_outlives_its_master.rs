//! When a master dies in the middle of a job, nothing is lost. The workers stop, meet at the shutdown barrier, and one
//! of them saves the state of the servers beside the path of the model. That state can be trained further and can
//! predict. The members register again at a restarted master.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::common::cluster::{Cluster, PATIENCE, Process};
use crate::common::{Folder, bytes_of, clicks, number, succeed};
use serde_json::Value;

/// Pause of the last worker before a batch, so that a job takes long enough.
const SLOW_MS: u64 = 5;

/// A job that does not end by itself during a test.
fn long<'a>(data: &'a str, model: &'a str) -> Vec<&'a str> {
    let fixed = ["lr", "--data", data, "--model", model, "--tasks", "3", "--servers", "2", "--workers", "2"];
    [&fixed[..], &["--set", "epochs=10000", "--set", "batch_size=100"]].concat()
}

/// A running job on two servers and two workers, and the client that waits for it.
struct UnderWay {
    folder: Folder,
    data: String,
    model: String,
    cluster: Cluster,
    client: Process,
}

fn under_way(flags: impl Fn(&str, usize) -> Vec<String>) -> UnderWay {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(2000, 1));
    let model = folder.path("model");
    let cluster = Cluster::start_with(2, 2, flags);
    let client = cluster.submit(&long(&data, &model));
    cluster.wait_until(|status| status["jobs"][0]["progress"]["records"].as_u64().is_some_and(|n| n > 4000));
    UnderWay { folder, data, model, cluster, client }
}

/// Flags that make the last worker slow.
fn slow(kind: &str, number: usize) -> Vec<String> {
    let pause = if kind == "worker" && number == 1 { SLOW_MS } else { 0 };
    if kind == "worker" { vec!["--pause-ms".into(), pause.to_string()] } else { Vec::new() }
}

fn manifest(model: &str) -> Value {
    let text = std::fs::read_to_string(Path::new(model).join("model.json")).expect("it is a model");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Returns what all members print when they end. Each must exit with 5 and report that the master is lost.
fn ends(cluster: &mut Cluster) -> Vec<String> {
    let members = cluster.servers.drain(..).chain(cluster.workers.drain(..));
    let ends = members.map(|mut member| {
        member.wait_for("lost the connection to the master");
        let (code, _, error) = member.end();
        assert_eq!(code, Some(5), "{error}");
        let at = error.find("error: ").unwrap_or_else(|| panic!("no error in {error}"));
        assert!(error[at..].contains("is lost"), "{error}");
        error[at..].to_owned()
    });
    ends.collect()
}

#[test]
fn the_state_of_a_job_whose_master_is_killed_is_saved_trained_on_and_predicts() {
    let UnderWay { folder, data, model, mut cluster, client } = under_way(slow);
    // A foreign file exists where the state would be saved.
    let foreign = folder.path("model.unfinished");
    std::fs::create_dir(&foreign).expect("the folder is ours");
    std::fs::write(Path::new(&foreign).join("notes.txt"), "mine").expect("the folder is ours");
    cluster.master.kill();
    assert_eq!(client.end().0, Some(5));
    let said = ends(&mut cluster);
    let saved = folder.path("model.unfinished-2");
    assert!(!Path::new(&model).exists(), "no half of a model");
    assert_eq!(bytes_of(&foreign).len(), 1, "what is not ours stays");
    for text in &said[..2] {
        assert!(
            text.contains("jobs [1] were open on this server") && text.contains("have ended them"),
            "{text}"
        );
    }
    for text in &said[2..] {
        for part in ["worker-0 has saved job 1", &saved, "in epoch", "clock", "--from"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }
    let manifest = manifest(&saved);
    let unfinished = &manifest["trained"]["unfinished"];
    let clocks = unfinished["clocks"].as_array().expect("there are clocks");
    assert!(clocks.len() == 3 && clocks.iter().all(|clock| clock.as_u64() > Some(0)), "{unfinished}");
    assert_eq!(unfinished["epoch_count"], 10000);
    assert_eq!(unfinished["job"]["data"][0], data.as_str());
    assert_eq!(unfinished["lost_tasks"].as_array().map(Vec::len), Some(0), "{unfinished}");
    assert!(manifest["trained"]["epochs"].as_u64() > Some(0), "whole epochs are told with their metrics");
    assert!(!manifest["matrices"][0]["slots"].as_array().expect("a list").is_empty(), "with its slots");
    assert!(succeed(&["inspect", &saved]).contains("unfinished   saved in epoch"));
    let quality = succeed(&["evaluate", "--model", &saved, "--data", &data, "--json"]);
    assert!(number(&quality, "/metrics/auc") > 0.6, "{quality}");
    let next = folder.path("next");
    let out = succeed(&["train", "lr", "--data", &data, "--from", &saved, "--model", &next]);
    assert!(out.contains("model saved in") && !out.contains("optimizer"), "{out}");
    let hidden = std::fs::read_dir(folder.path(".")).expect("it is a folder").map_while(Result::ok);
    let hidden: Vec<_> = hidden.filter(|e| e.file_name().to_string_lossy().starts_with(".model")).collect();
    assert!(hidden.is_empty(), "nothing half written is left: {hidden:?}");
}

#[test]
fn the_first_worker_that_lives_saves_when_the_first_died_with_the_master() {
    let UnderWay { folder, data, mut cluster, client, .. } = under_way(slow);
    cluster.master.kill();
    cluster.workers[0].kill();
    cluster.workers.remove(0);
    assert_eq!(client.end().0, Some(5));
    let said = ends(&mut cluster);
    assert!(said[2].contains("worker-1 has saved job 1") && said[2].contains("without"), "{said:?}");
    let saved = folder.path("model.unfinished");
    let lost = &manifest(&saved)["trained"]["unfinished"]["lost_tasks"];
    assert!(lost.as_array().is_some_and(|tasks| !tasks.is_empty()), "{lost}");
    succeed(&["evaluate", "--model", &saved, "--data", &data]);
}

/// The file of the optimizer is a pipe without a reader. A worker that opens it for writing blocks there: it has
/// written the weights and not the manifest.
#[test]
fn a_worker_that_is_killed_while_it_saves_leaves_nothing_half_and_the_next_one_saves() {
    /// Seconds; a quarter of this limit is the turn of the first worker.
    const SAVE_LIMIT_S: &str = "24";
    let limited =
        |kind: &str, number| [vec!["--save-limit".into(), SAVE_LIMIT_S.into()], slow(kind, number)].concat();
    let UnderWay { folder, data, mut cluster, client, .. } = under_way(limited);
    let saved = folder.path("model.unfinished");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("tests run on Linux");
    let aside = format!(".model.unfinished.part-{}@{}", cluster.workers[0].child.id(), host.trim());
    let aside = folder.path(&aside);
    std::fs::create_dir(&aside).expect("the folder is ours");
    let pipe = Path::new(&aside).join("optimizer.safetensors");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is a tool of every system");
    assert!(made.success(), "{made}");
    cluster.master.kill();
    assert_eq!(client.end().0, Some(5));
    let start = Instant::now();
    while std::fs::metadata(Path::new(&aside).join("weights.safetensors")).map_or(0, |file| file.len()) == 0 {
        assert!(start.elapsed() < PATIENCE, "the first worker has begun to save");
        std::thread::yield_now();
    }
    assert!(!Path::new(&saved).exists(), "half of a model is not put in place");
    cluster.workers[0].kill();
    cluster.workers.remove(0);
    let said = ends(&mut cluster);
    assert!(said[2].contains("worker-1 has saved job 1"), "{said:?}");
    assert!(!Path::new(&folder.path("model.unfinished-2")).exists(), "the place was free");
    assert!(!Path::new(&aside).exists(), "what the first one has left half is removed");
    assert_eq!(manifest(&saved)["trained"]["interrupted"], true);
    succeed(&["evaluate", "--model", &saved, "--data", &data]);
}

#[test]
fn members_of_a_master_that_is_started_anew_save_their_jobs_and_serve_it() {
    let UnderWay { folder, data, mut cluster, client, .. } = under_way(slow);
    cluster.master.kill();
    cluster.restart_master(&[]);
    let (code, _, error) = client.end();
    assert!(code == Some(5) && error.contains("the master at"), "{code:?}: {error}");
    cluster.wait_until(|status| status["members"].as_array().map(Vec::len) == Some(4));
    assert_eq!(manifest(&folder.path("model.unfinished"))["trained"]["interrupted"], true);
    // The job has the number of the saved one.
    let (alone, again) = (folder.path("alone"), folder.path("again"));
    let small = |model: &str| {
        let fixed = ["lr", "--data", &data, "--model", model, "--tasks", "3", "--set", "epochs=2"];
        fixed.map(String::from).to_vec()
    };
    let arguments = [vec!["train".to_owned()], small(&alone)].concat();
    succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let arguments = [small(&again), ["--servers", "2", "--workers", "2"].map(String::from).to_vec()].concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (code, _, error) = cluster.submit(&arguments).end();
    assert_eq!(code, Some(0), "{error}");
    assert!(bytes_of(&again) == bytes_of(&alone), "the model has other bytes");
}

#[test]
fn nothing_is_saved_of_a_job_before_its_first_step_or_when_that_is_not_wanted() {
    let unsaved = |kind: &str, number| [vec!["--save-limit".into(), "0".into()], slow(kind, number)].concat();
    let UnderWay { folder, mut cluster, client, .. } = under_way(unsaved);
    cluster.master.kill();
    client.end();
    let said = ends(&mut cluster);
    assert!(said[0].contains("--save-limit") && said[0].contains("lost"), "{said:?}");
    assert!(said[2].contains("job 1 is not saved"), "{said:?}");
    assert!(!Path::new(&folder.path("model.unfinished")).exists());
}
