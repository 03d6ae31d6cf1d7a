//! Promise: `seraphim checkpoint JOB` writes a checkpoint of a running job, waits until it is complete, and says why when
//! there is none.

use std::path::Path;

use crate::common::cluster::Cluster;
use crate::common::{Folder, clicks, fail, succeed};

/// Submits a job that ends only when it is cancelled, and waits for its first steps.
fn submit(cluster: &Cluster, (data, model): (&str, &str), number: usize, more: &[&str]) {
    let fixed = ["submit", "lr", "--data", data, "--model", model, "--tasks", "1", "--detach"];
    let place = ["--master", &cluster.address, "--set", "epochs=10000", "--set", "batch_size=100"];
    succeed(&[&fixed[..], &place, more].concat());
    cluster.wait_until(|status| status["jobs"][number - 1]["progress"]["records"].as_u64() > Some(0));
}

#[test]
fn a_checkpoint_is_written_when_it_is_wanted() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(3000, 1));
    let (model, saved) = (folder.path("model"), folder.path("saved"));
    let cluster = Cluster::start(1, 1, 0);
    submit(&cluster, (&data, &model), 1, &["--checkpoints", &saved, "--checkpoint-every", "1h"]);
    assert!(!Path::new(&saved).join("00000001").exists(), "none is due for an hour");
    for number in 1..=2 {
        let said = succeed(&["checkpoint", "1", "--master", &cluster.address]);
        assert!(said.starts_with(&format!("checkpoint {number} of job 1 was written at clock ")), "{said}");
        assert!(succeed(&["checkpoints", "verify", &saved]).contains(&format!("{number}")));
    }
    let before = succeed(&["checkpoints", "list", &saved]);
    assert!(before.contains("00000001 ") && before.contains("00000002 "), "{before}");
    succeed(&["cancel", "1", "--master", &cluster.address]);
    cluster.wait_until(|status| status["jobs"][0]["state"] == "cancelled");
    let error = fail(2, &["checkpoint", "1", "--master", &cluster.address]);
    assert!(error.contains("job 1 has ended"), "{error}");
}

#[test]
fn a_checkpoint_that_cannot_be_is_refused_with_the_reason() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(3000, 1));
    let cluster = Cluster::start(1, 1, 0);
    let error = fail(2, &["checkpoint", "7", "--master", &cluster.address]);
    assert!(error.contains("no job 7"), "{error}");
    submit(&cluster, (&data, &folder.path("a")), 1, &["--checkpoint-every", "off"]);
    let error = fail(5, &["checkpoint", "1", "--master", &cluster.address]);
    assert!(
        error.contains("job 1 wrote no checkpoint") && error.contains("checkpoint_every = off"),
        "{error}"
    );
    let queued =
        ["submit", "lr", "--data", &data, "--model", &folder.path("b"), "--servers", "2", "--detach"];
    succeed(&[&queued[..], &["--master", &cluster.address]].concat());
    let error = fail(2, &["checkpoint", "2", "--master", &cluster.address]);
    assert!(error.contains("job 2 is queued"), "{error}");
}
