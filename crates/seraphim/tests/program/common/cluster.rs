//! A cluster of real processes for a test. It uses free ports and ends with the test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::command;

/// Longest wait for an expected line or state of a process.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A process and its standard error.
pub(crate) struct Process {
    pub(crate) child: Child,
    lines: Receiver<String>,
    pub(crate) said: Vec<String>,
}

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments)
            // With one arena, the memory of a process is what it uses, not what arenas of ended threads retain.
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built for this test");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, said: Vec::new() }
    }

    /// Waits for a line that contains `text` and returns it.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("no {text:?} in {:#?}", self.said),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {text:?}: {:#?}", self.said),
            }
        }
    }

    /// Returns all lines of standard error so far, without waiting.
    pub(crate) fn so_far(&mut self) -> &[String] {
        self.said.extend(self.lines.try_iter());
        &self.said
    }

    /// Returns its first line on standard output.
    pub(crate) fn first_line(&mut self) -> String {
        let out = self.child.stdout.take().expect("it is piped, and nobody has read it");
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("output is text");
        line
    }

    /// Waits for the end; returns exit code, standard output and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end: {:#?}", self.said);
            std::thread::sleep(Duration::from_millis(5));
        };
        self.said.extend(self.lines.iter());
        let mut out = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut out).expect("output is text");
        }
        (status.code(), out, self.said.join("\n"))
    }

    /// Sends it a signal, such as `-INT`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill is a tool of every system").success(), "{name}");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it is a child");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that a process has started, by their names.
pub(crate) fn children(of: &Child) -> Vec<(String, u32)> {
    let path = format!("/proc/{0}/task", of.id());
    let threads = std::fs::read_dir(path).into_iter().flatten().map_while(Result::ok);
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let text: String = lists.collect();
    let name_of = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<String> =
            words.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into()).collect();
        let at = words.iter().position(|word| word == "--name")?;
        Some((words.get(at + 1)?.clone(), pid))
    };
    text.split_whitespace().filter_map(|pid| name_of(pid.parse().ok()?)).collect()
}

pub(crate) fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.expect("kill is on every system").success(), "{name} {pid}");
}

/// Makes processes slow, in turns: each stands still for a while, as on a machine with other work.
pub(crate) struct Slowness {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Slowness {
    /// After each `run_ms` one of the processes stands still for `stop_ms`.
    pub(crate) fn start(processes: &[Process], run_ms: u64, stop_ms: u64) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_seen = Arc::clone(&is_over);
        let pids: Vec<Pid> = processes.iter().map(|process| Pid::from_child(&process.child)).collect();
        let thread = std::thread::spawn(move || {
            for pid in pids.iter().cycle().take_while(|_| !is_seen.load(Ordering::SeqCst)) {
                std::thread::sleep(Duration::from_millis(run_ms));
                // It may have ended.
                let _ = kill_process(*pid, Signal::STOP);
                std::thread::sleep(Duration::from_millis(stop_ms));
                let _ = kill_process(*pid, Signal::CONT);
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Slowness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) struct Cluster {
    pub(crate) slowness: Option<Slowness>,
    pub(crate) master: Process,
    pub(crate) address: String,
    pub(crate) servers: Vec<Process>,
    pub(crate) workers: Vec<Process>,
}

impl Cluster {
    /// Starts all processes and waits until they have joined. `slow`: for how many milliseconds the last worker stands
    /// still, again and again.
    pub(crate) fn start(servers: usize, workers: usize, slow: u64) -> Self {
        let mut cluster = Self::start_with(servers, workers, |_, _| Vec::new());
        if slow > 0 {
            cluster.slow_down(workers - 1, slow);
        }
        cluster
    }

    /// Lets a worker stand still for so many milliseconds, again and again.
    pub(crate) fn slow_down(&mut self, worker: usize, stop_ms: u64) {
        const RUN_MS: u64 = 2;
        self.slowness = Some(Slowness::start(&self.workers[worker..=worker], RUN_MS, stop_ms));
    }

    /// Starts them with flags for each member, by kind and number.
    pub(crate) fn start_with(
        servers: usize,
        workers: usize,
        flags: impl Fn(&str, usize) -> Vec<String>,
    ) -> Self {
        Self::start_all(servers, workers, &[], flags)
    }

    /// Starts them with flags for the master as well.
    pub(crate) fn start_all(
        servers: usize,
        workers: usize,
        of_master: &[&str],
        flags: impl Fn(&str, usize) -> Vec<String>,
    ) -> Self {
        let mut master = Process::start(&[&["master", "--listen", "127.0.0.1:0"][..], of_master].concat());
        let line = master.wait_for("master is ready");
        let at = line.find("127.0.0.1:").unwrap_or_else(|| panic!("no address in {line}"));
        let address: String =
            line[at..].chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
        let mut cluster = Self { slowness: None, master, address, servers: Vec::new(), workers: Vec::new() };
        for i in 0..servers {
            let more = flags("server", i);
            let fixed = ["--listen", "127.0.0.1:0", "--lanes", "1"];
            let more: Vec<&str> = fixed.into_iter().chain(more.iter().map(String::as_str)).collect();
            let server = cluster.member("server", i, &more);
            cluster.servers.push(server);
        }
        for i in 0..workers {
            let more = flags("worker", i);
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let worker = cluster.member("worker", i, &more);
            cluster.workers.push(worker);
        }
        cluster
    }

    /// Starts a master in place of one that has ended, at the same address.
    pub(crate) fn restart_master(&mut self, more: &[&str]) {
        self.master = Process::start(&[&["master", "--listen", &self.address], more].concat());
        self.master.wait_for("master is ready");
    }

    /// Starts one more server and waits until it has joined.
    pub(crate) fn add_server(&mut self) {
        let server = self.member("server", self.servers.len(), &["--listen", "127.0.0.1:0", "--lanes", "1"]);
        self.servers.push(server);
    }

    /// Starts one more worker and waits until it has joined.
    pub(crate) fn add_worker(&mut self) {
        let worker = self.member("worker", self.workers.len(), &[]);
        self.workers.push(worker);
    }

    /// Starts a server with a write-ahead log in `folder`, and does not wait for it.
    pub(crate) fn server_with_log(&self, folder: &str, number: usize) -> Process {
        let (log, name) = (format!("{folder}/{number}"), format!("server-{number}"));
        let fixed = ["server", "--master", &self.address, "--name", &name, "--lost-limit", "2"];
        let more = ["--listen", "127.0.0.1:0", "--lanes", "2", "--write-ahead-log", &log];
        Process::start(&[&fixed[..], &more].concat())
    }

    fn member(&self, kind: &str, number: usize, more: &[&str]) -> Process {
        let name = format!("{kind}-{number}");
        let fixed = [kind, "--master", &self.address, "--name", &name];
        let limit = if more.contains(&"--lost-limit") { &[][..] } else { &["--lost-limit", "2"] };
        let mut process = Process::start(&[&fixed[..], limit, more].concat());
        process.wait_for("joined");
        process
    }

    /// Submits a job and returns the client without waiting for it.
    pub(crate) fn submit(&self, arguments: &[&str]) -> Process {
        Process::start(&[&["submit"], arguments, &["--master", &self.address, "--lost-limit", "1"]].concat())
    }

    /// Requests the status until `wanted` accepts it.
    pub(crate) fn wait_until(&self, wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = super::succeed(&["status", "--json", "--master", &self.address]);
            let status: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            if wanted(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "the status stays {status:#}");
        }
    }
}
