//! A training that takes some seconds, with what it gives when nothing happens, for tests that disturb it.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::cluster::{Cluster, Process, children};
use super::{Folder, bytes_of, clicks, command, succeed};

/// Longest wait for a state of a process.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number of the newest checkpoint in a folder; 0: there is none.
pub(crate) fn newest(folder: &str) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let whole = entries.map_while(Result::ok).filter(|entry| entry.path().join("manifest").exists());
    whole.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).max().unwrap_or(0)
}

/// A job of some seconds, with what it gives when nothing happens.
pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) data: String,
    pub(crate) whole: Vec<(PathBuf, Vec<u8>)>,
    /// Number of servers.
    pub(crate) servers: &'static str,
    pub(crate) algorithm: &'static str,
    pub(crate) settings: &'static [&'static str],
}

/// The time between two checkpoints.
const CHECKPOINT_EVERY: &str = "20ms";

pub(crate) const EPOCHS: &str = "epochs=500";

impl World {
    pub(crate) fn new() -> Self {
        Self::of("lr", &["--set", EPOCHS, "--set", "batch_size=100"])
    }

    /// A job of another algorithm.
    pub(crate) fn of(algorithm: &'static str, settings: &'static [&'static str]) -> Self {
        Self::with_data(algorithm, settings, ("train.libsvm", clicks(3000, 1)))
    }

    /// A job on a file with this name and text.
    pub(crate) fn with_data(
        algorithm: &'static str,
        settings: &'static [&'static str],
        (name, text): (&str, String),
    ) -> Self {
        let folder = Folder::new();
        let data = folder.write(name, text);
        let model = folder.path("whole");
        let fixed = ["train", algorithm, "--data", &data, "--model", &model, "--tasks", "3", "--quiet"];
        succeed(&[&fixed[..], settings].concat());
        let whole = bytes_of(&model);
        Self { folder, data, whole, servers: "2", algorithm, settings }
    }

    pub(crate) fn words<'a>(&'a self, model: &'a str, folder: &'a str) -> Vec<&'a str> {
        let fixed = [self.algorithm, "--data", &self.data, "--model", model, "--tasks", "3"];
        let checkpoints = ["--checkpoints", folder, "--checkpoint-every", CHECKPOINT_EVERY];
        let members = ["--servers", self.servers, "--workers", "2"];
        [&fixed[..], &checkpoints, self.settings, &members].concat()
    }
}

/// A job on servers and workers that the command itself has started.
pub(crate) struct Local<'a> {
    pub(crate) world: &'a World,
    pub(crate) child: Child,
    pub(crate) folder: String,
    pub(crate) model: String,
}

impl<'a> Local<'a> {
    pub(crate) fn start(world: &'a World, name: &str, more: &[&str]) -> Self {
        Self::with_checkpoints(world, name, CHECKPOINT_EVERY, more)
    }

    /// With a checkpoint after each such time, or `off`.
    pub(crate) fn with_checkpoints(world: &'a World, name: &str, every: &str, more: &[&str]) -> Self {
        let (model, folder) = (world.folder.path(name), world.folder.path(&format!("{name}.saved")));
        let mut words = [&["train"], &world.words(&model, &folder)[..], more].concat();
        words.iter_mut().filter(|word| **word == CHECKPOINT_EVERY).for_each(|word| *word = every);
        let child = command(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        Self { world, child: child.expect("the binary was built"), folder, model }
    }

    /// Waits for a checkpoint that is newer than `number`.
    pub(crate) fn wait_for_checkpoint(&mut self, number: u64) {
        wait_until("no new checkpoint", || {
            assert!(self.child.try_wait().expect("it is a child").is_none(), "the job ended early");
            newest(&self.folder) > number
        });
    }

    pub(crate) fn pid(&self, name: &str) -> u32 {
        let mut found = None;
        wait_until(name, || {
            found = children(&self.child).into_iter().find(|(known, _)| known == name);
            found.is_some()
        });
        found.expect("it was found").1
    }

    /// Waits for the end; returns what it said.
    pub(crate) fn end(&mut self) -> String {
        let mut error = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut error).expect("it is text");
        let status = self.child.wait().expect("it is a child");
        assert!(status.success(), "{status}: {error}");
        assert!(bytes_of(&self.model) == self.world.whole, "other bytes: {error}");
        error
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A job on a cluster whose members somebody else starts.
pub(crate) struct Submitted {
    pub(crate) cluster: Cluster,
    pub(crate) client: Process,
    pub(crate) folder: String,
    pub(crate) model: String,
}

pub(crate) fn submit(world: &World, servers: usize, workers: usize) -> Submitted {
    let (model, folder) = (world.folder.path("model"), world.folder.path("saved"));
    let cluster = Cluster::start(servers, workers, 0);
    let client = cluster.submit(&world.words(&model, &folder));
    wait_until("no checkpoint", || newest(&folder) > 1);
    Submitted { cluster, client, folder, model }
}

/// Returns what the client said.
pub(crate) fn ends_well(world: &World, client: Process, model: &str) -> String {
    let start = Instant::now();
    let (mut client, mut status) = (client, None);
    while status.is_none() {
        assert!(start.elapsed() < PATIENCE, "the job does not end: {:#?}", client.so_far());
        status = client.child.try_wait().expect("it is a child");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (code, _, error) = client.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(bytes_of(model) == world.whole, "other bytes: {error}");
    error
}
