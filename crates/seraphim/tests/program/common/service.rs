//! The parameter service as processes.

use std::process::Command;
use std::time::{Duration, Instant};

use matrix::{Axis, Consistency, ElementType, Initializer, MatrixSpec, Partitioner, PushRule, Storage};

use super::cluster::{Process, children};

/// Longest wait for a process.
const PATIENCE: Duration = Duration::from_secs(30);

/// A matrix of one column of doubles, in two partitions, to which pushes are added.
pub(crate) fn spec(name: &str, rows: u64) -> MatrixSpec {
    MatrixSpec {
        name: name.into(),
        element: ElementType::F64,
        rows,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: 2 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) address: String,
}

impl Service {
    pub(crate) fn start(more: &[&str]) -> Self {
        let fixed = ["serve-parameters", "--listen", "127.0.0.1:0", "--memory-limit", "64MiB"];
        let mut process = Process::start(&[&fixed[..], more].concat());
        let line = process.first_line();
        let address = line.strip_prefix("parameter service at ").and_then(|rest| rest.split_once(": "));
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).0.to_owned();
        Self { process, address }
    }

    /// Ends it with Ctrl-C; the exit must be clean.
    pub(crate) fn end(self) -> String {
        let id = self.process.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill is everywhere").success());
        let (code, _, said) = self.process.end();
        assert_eq!(code, Some(0), "{said}");
        said
    }
}

/// The process of a server.
pub(crate) fn pid_of(service: &Service, name: &str) -> u32 {
    let start = Instant::now();
    loop {
        let mut all = children(&service.process.child).into_iter();
        if let Some((_, pid)) = all.find(|(known, _)| known == name) {
            return pid;
        }
        assert!(start.elapsed() < PATIENCE, "no {name}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
