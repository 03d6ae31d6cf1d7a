//! Promise: a job runs as pods of Kubernetes with one command, and a pod that goes away does not end it: the model has the bytes of one
//! process. `cargo xtask kubernetes` starts a cluster of two nodes and runs the tests that need it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests, which tell measured times")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{bytes_of, clicks, command, fail, succeed};

/// Longest wait for a pod.
const LIMIT: Duration = Duration::from_mins(2);

/// A cluster with a volume that is a folder of this machine, and an image.
struct Kubernetes {
    image: String,
    claim: String,
    folder: String,
}

/// The one that was made for this test.
fn kubernetes(test: &str) -> Kubernetes {
    let variable = |name: &str| std::env::var(name).expect("`cargo xtask kubernetes` runs this test");
    let volume = variable("SERAPHIM_KUBERNETES_VOLUME");
    let folder = format!("{volume}/{test}");
    std::fs::create_dir(&folder).unwrap();
    // The processes of pods are another user.
    succeed_in("chmod", &["777", &folder]);
    // Pods see the volume at the same path, so that the same command runs here and there.
    Kubernetes { image: variable("SERAPHIM_KUBERNETES_IMAGE"), claim: format!("data={volume}"), folder }
}

impl Kubernetes {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// The flags of a job of this name.
    fn flags(&self, name: &str) -> Vec<String> {
        self.flags_with_image(name, &self.image)
    }

    fn flags_with_image(&self, name: &str, image: &str) -> Vec<String> {
        let small = ["--master-memory", "128MiB", "--server-memory", "256MiB", "--worker-memory", "256MiB"];
        let fixed = [&format!("--k8s={name}"), "--image", image, "--claim", &self.claim];
        fixed.into_iter().chain(small).map(str::to_owned).collect()
    }
}

fn succeed_in(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names of the pods of a role that are ready and stay.
fn pods(job: &str, role: &str) -> Vec<String> {
    let selector = format!("app.kubernetes.io/instance={job},app.kubernetes.io/component={role}");
    let text = succeed_in("kubectl", &["get", "pods", "-l", &selector, "-o", "json"]);
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let is_meant = |pod: &&serde_json::Value| {
        pod["status"]["containerStatuses"][0]["ready"] == true
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    items.filter(is_meant).map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn wait_for(what: &str, child: &mut Child, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < LIMIT, "{what} has not come");
        assert!(child.try_wait().unwrap().is_none(), "the command has ended before {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
    eprintln!("{what} after {:.1} s", start.elapsed().as_secs_f64());
}

/// Nothing of a job is left.
fn check_removed(job: &str) {
    let start = Instant::now();
    let selector = format!("app.kubernetes.io/instance={job}");
    let kinds = "jobs,deployments,services,secrets,pods";
    while !succeed_in("kubectl", &["get", kinds, "-l", &selector, "-o", "name"]).is_empty() {
        assert!(start.elapsed() < LIMIT, "objects of {job} are left");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
#[ignore = "`cargo xtask kubernetes` starts Kubernetes and runs this test"]
fn a_deleted_pod_of_each_role_comes_back_and_the_model_has_the_bytes_of_one_process() {
    let kubernetes = kubernetes("deleted");
    let data = kubernetes.path("train.libsvm");
    std::fs::write(&data, clicks(3000, 1)).unwrap();
    let (whole, model) = (kubernetes.path("whole"), kubernetes.path("model"));
    let fixed = ["lr", "--data", &data, "--tasks", "2", "--set", "epochs=8000"];
    succeed(&[&["train", "--quiet"], &fixed[..], &["--model", &whole]].concat());
    let flags = kubernetes.flags("deleted");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let size = ["--servers", "2", "--workers", "2"];
    let checkpoints = ["--checkpoint-every", "1s", "--model", &model];
    let words = [&["submit"], &fixed[..], &flags, &size, &checkpoints].concat();
    let told = kubernetes.path("told");
    let file = std::fs::File::create(&told).unwrap();
    let mut child = command(&words).stdout(Stdio::null()).stderr(file).spawn().unwrap();
    let checkpoints = format!("{model}.checkpoints");
    wait_for("the first checkpoint", &mut child, || Path::new(&checkpoints).exists());
    for (role, count) in [("server", 2), ("worker", 2), ("master", 1)] {
        let deleted = pods("deleted", role).remove(0);
        succeed_in("kubectl", &["delete", "pod", &deleted, "--wait=false"]);
        wait_for(role, &mut child, || {
            let present = pods("deleted", role);
            present.len() == count && !present.contains(&deleted)
        });
    }
    let status = child.wait().unwrap();
    let told_text = std::fs::read_to_string(&told).unwrap();
    std::fs::remove_file(told).unwrap();
    assert!(status.success(), "{status}: {told_text}");
    // Each process of a pod has the number 1.
    assert!(!told_text.contains("could not be written"), "{told_text}");
    assert!(bytes_of(&model) == bytes_of(&whole), "other bytes");
    check_removed("deleted");
    let records = std::fs::read_dir(&kubernetes.folder).unwrap().filter_map(Result::ok);
    let left: Vec<_> = records.map(|entry| entry.file_name()).filter(|name| name != "train.libsvm").collect();
    assert_eq!(left.len(), 2, "{left:?}: the models alone, and no checkpoints and records");
    let (here, there) = (kubernetes.path("here.csv"), kubernetes.path("there.csv"));
    let predict = ["predict", "--model", &model, "--data", &data, "--quiet", "--output"];
    succeed(&[&predict[..], &[&here]].concat());
    succeed(&[&["submit"], &predict[..], &[&there], &flags].concat());
    assert!(std::fs::read(here).unwrap() == std::fs::read(there).unwrap(), "other scores");
}

/// Runs a script of what has started the cluster, for its second node.
fn with_second_node(script: &str) {
    let kit = std::env::var("SERAPHIM_KUBERNETES_KIT").unwrap();
    succeed_in(&format!("{kit}/{script}"), &["node", "2"]);
}

#[test]
#[ignore = "`cargo xtask kubernetes` starts Kubernetes and runs this test"]
fn a_job_goes_on_without_a_node_and_is_cancelled_by_its_name() {
    let kubernetes = kubernetes("node");
    let data = kubernetes.path("train.libsvm");
    std::fs::write(&data, clicks(3000, 1)).unwrap();
    let (model, told) = (kubernetes.path("model"), kubernetes.path("told"));
    let flags = kubernetes.flags("node");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let fixed =
        ["submit", "lr", "--data", &data, "--model", &model, "--tasks", "2", "--set", "epochs=1000000"];
    // They fit onto one node.
    let size = ["--servers", "1", "--workers", "2", "--checkpoint-every", "1s"];
    let file = std::fs::File::create(&told).unwrap();
    let mut child =
        command(&[&fixed[..], &flags, &size].concat()).stdout(Stdio::null()).stderr(file).spawn().unwrap();
    let told = || std::fs::read_to_string(&told).unwrap();
    wait_for("the first checkpoint", &mut child, || told().contains("checkpoint 1 at"));
    with_second_node("down.sh");
    let start = Instant::now();
    let runs = |text: &str| {
        text.matches("of the job begins").count() + text.matches("continuing from checkpoint").count()
    };
    wait_for("the next run", &mut child, || runs(&told()) > 0);
    let epochs = told().matches(", checkpoint ").count();
    wait_for("training", &mut child, || told().matches(", checkpoint ").count() > epochs);
    eprintln!("training again {:.1} s after the loss of a node", start.elapsed().as_secs_f64());
    let status = succeed(&["status", "1", "--k8s=node"]);
    assert!(status.contains("running"), "{status}");
    succeed(&["cancel", "1", "--k8s=node"]);
    let ended = child.wait().unwrap();
    with_second_node("up.sh");
    assert_eq!(ended.code(), Some(130), "{}", told());
    assert!(Path::new(&format!("{model}/model.json")).exists(), "the model so far");
    check_removed("node");
}

#[test]
#[ignore = "`cargo xtask kubernetes` starts Kubernetes and runs this test"]
fn what_kubernetes_does_not_give_is_said_in_plain_words() {
    let kubernetes = kubernetes("refused");
    let (data, model) = (kubernetes.path("train.libsvm"), kubernetes.path("model"));
    std::fs::write(&data, clicks(100, 1)).unwrap();
    let flags = kubernetes.flags("refused");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let fixed = [&["submit", "lr", "--data", &data, "--model", &model], &flags[..]].concat();
    let with = |more: &[&str]| fail(5, &[&fixed[..], more].concat());
    let absent = kubernetes.flags_with_image("refused", "docker.io/kit/absent:1");
    let absent: Vec<&str> = absent.iter().map(String::as_str).collect();
    let image = fail(5, &[&["submit", "lr", "--data", &data, "--model", &model], &absent[..]].concat());
    assert!(image.contains("docker.io/kit/absent:1") && image.contains("does not start"), "{image}");
    check_removed("refused");
    let class = with(&["--priority-class", "nowhere"]);
    assert!(class.contains("nowhere") && class.contains("creates no pods"), "{class}");
    check_removed("refused");
    let secret = with(&["--secret", "nowhere"]);
    assert!(secret.contains("\"nowhere\" not found"), "{secret}");
    check_removed("refused");
    let namespace = with(&["--namespace", "nowhere"]);
    assert!(namespace.contains("create the Job refused in the namespace nowhere"), "{namespace}");
    // A quota of no pods.
    succeed_in("kubectl", &["create", "quota", "none", "--hard=pods=0"]);
    let quota = with(&[]);
    succeed_in("kubectl", &["delete", "quota", "none"]);
    assert!(quota.contains("exceeded quota: none"), "{quota}");
    check_removed("refused");
    // Two of one name.
    succeed_in("kubectl", &["create", "job", "refused", "--image=x"]);
    let second = with(&[]);
    succeed_in("kubectl", &["delete", "job", "refused"]);
    assert!(second.contains("already exists") && second.contains("--k8s=NAME"), "{second}");
    assert!(!Path::new(&model).exists(), "something is left");
}

#[test]
#[ignore = "`cargo xtask kubernetes` starts Kubernetes and runs this test"]
fn what_an_account_may_not_do_is_named() {
    let kubernetes = kubernetes("account");
    let (data, model) = (kubernetes.path("train.libsvm"), kubernetes.path("model"));
    std::fs::write(&data, clicks(100, 1)).unwrap();
    let flags = kubernetes.flags("account");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let words = [&["submit", "lr", "--data", &data, "--model", &model], &flags[..]].concat();
    let error = fail(5, &[&words[..], &["--context", "nobody"]].concat());
    assert!(
        error.contains("cannot create resource \"jobs\"") && error.contains("docs/kubernetes.md"),
        "{error}"
    );
    let error = fail(2, &[&words[..], &["--context", "absent"]].concat());
    assert!(error.contains("absent") && error.contains("--context"), "{error}");
}

#[test]
fn what_no_pod_sees_and_no_cluster_takes_is_refused_before_anything_is_asked() {
    let on = |name: &str, more: &[&str]| {
        let fixed =
            ["submit", "lr", "--data", "s3://b/data", "--model", "/volume/m", "--claim", "a=/volume", name];
        fail(2, &[&fixed[..], more].concat())
    };
    let with_image = |more: &[&str]| on("--k8s=m", &[&["--image", "seraphim:1"], more].concat());
    let error = on("--k8s=m", &[]);
    assert!(error.contains("--image") && error.contains("docs/kubernetes.md"), "{error}");
    let error = with_image(&["--validate", "/other/test"]);
    assert!(error.contains("/other/test") && error.contains("--claim NAME=PATH"), "{error}");
    let error = with_image(&["--claim", "data"]);
    assert!(error.contains("--claim") && error.contains("NAME=PATH"), "{error}");
    let error = with_image(&["--node-label", "fast"]);
    assert!(error.contains("--node-label") && error.contains("NAME=VALUE"), "{error}");
    let error = with_image(&["--servers", "0"]);
    assert!(error.contains("--servers"), "{error}");
    let error = with_image(&["--worker-memory", "lots"]);
    assert!(error.contains("--worker-memory"), "{error}");
    let error = on("--k8s=My_Job", &["--image", "seraphim:1"]);
    assert!(error.contains("My_Job") && error.contains("lower-case"), "{error}");
    let error = on("--overwrite", &["--image", "seraphim:1"]);
    assert!(error.contains("--k8s"), "{error}");
}
