//! Promise: a worker that is much slower than the others is named, and with `--slow-worker move` its tasks go to others:
//! the job ends sooner, in the same bytes under bsp.
#![cfg(unix)]

use std::time::{Duration, Instant};

use crate::common::cluster::Cluster;
use crate::common::{Folder, bytes_of, clicks, succeed};

const SETTINGS: [&str; 6] = ["--tasks", "6", "--set", "epochs=80", "--set", "batch_size=100"];

struct World {
    folder: Folder,
    data: String,
    cluster: Cluster,
}

impl World {
    /// Three workers, of which the last one is ten times as slow.
    fn new() -> Self {
        let folder = Folder::new();
        let data = folder.write("train.libsvm", clicks(3000, 1));
        let cluster = Cluster::start(1, 3, 20);
        Self { folder, data, cluster }
    }

    /// Runs a job; returns what it says, and for how long it ran.
    fn run(&self, model: &str, more: &[&str]) -> (String, Duration) {
        let fixed = ["lr", "--data", &self.data, "--model", model, "--servers", "1", "--workers", "3"];
        let start = Instant::now();
        let client = self.cluster.submit(&[&fixed[..], &SETTINGS, more].concat());
        let (code, _, said) = client.end();
        assert_eq!(code, Some(0), "{said}");
        (said, start.elapsed())
    }
}

#[test]
fn tasks_of_a_slow_worker_move_and_the_bytes_are_the_same() {
    let world = World::new();
    let whole = world.folder.path("whole");
    succeed(&[&["train", "lr", "--data", &world.data, "--model", &whole, "--quiet"][..], &SETTINGS].concat());
    let (_, slow) = world.run(&world.folder.path("off"), &["--slow-worker", "off"]);
    let moved = world.folder.path("moved");
    let (said, fast) = world.run(&moved, &["--slow-worker", "move"]);
    assert!(bytes_of(&moved) == bytes_of(&whole), "other bytes");
    assert!(said.contains("worker-2 needs") && said.contains("its tasks move to others"), "{said}");
    assert!(said.contains("continuing from checkpoint"), "{said}");
    assert!(fast < slow.mul_f64(0.8), "{fast:?} against {slow:?}: {said}");
}

#[test]
fn a_slow_worker_is_named_and_its_tasks_stay_if_they_cannot_be_saved() {
    let world = World::new();
    let (said, _) = world.run(&world.folder.path("a"), &["--set", "epochs=200"]);
    assert!(said.contains("worker-2 needs"), "{said}");
    assert!(said.contains("the median of 3 workers: --slow-worker move gives its tasks to others"), "{said}");
    let off = ["--set", "epochs=200", "--slow-worker", "move", "--checkpoint-every", "off"];
    let (said, _) = world.run(&world.folder.path("b"), &off);
    assert!(
        said.contains("its tasks cannot move to others: the job was submitted with checkpoint_every"),
        "{said}"
    );
    let (said, _) = world.run(&world.folder.path("c"), &["--set", "epochs=200", "--slow-worker", "off"]);
    assert!(!said.contains("worker-2 needs"), "{said}");
}
