//! A cluster whose processes somebody else supervises: a master with a state, two servers and two workers. A process that
//! is killed is started again under its name.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context as _, Result};

/// The members by name.
const MEMBERS: [&str; 4] = ["server-0", "server-1", "worker-0", "worker-1"];

pub(super) struct Cluster {
    program: PathBuf,
    state: PathBuf,
    has_logs: bool,
    address: String,
    master: Child,
    members: Vec<(&'static str, Child)>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in std::iter::once(&mut self.master).chain(self.members.iter_mut().map(|(_, child)| child))
        {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Cluster {
    /// Starts all processes; the master records its jobs in `state`.
    /// Servers with replicas have no logs.
    pub(super) fn start(program: &Path, state: &Path, durability: &str) -> Result<Self> {
        let (master, address) = start_master(program, state, "127.0.0.1:0")?;
        let (program, state) = (program.to_owned(), state.to_owned());
        let has_logs = durability != "replica";
        let mut cluster = Self { program, state, address, master, has_logs, members: Vec::new() };
        for name in MEMBERS {
            let child = cluster.start_member(name)?;
            cluster.members.push((name, child));
        }
        Ok(cluster)
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Kills the master, and a member if one is named; starts each again.
    pub(super) fn kill(&mut self, member: Option<&str>) -> Result<()> {
        self.master.kill()?;
        self.master.wait()?;
        if let Some(at) = MEMBERS.iter().position(|name| Some(*name) == member) {
            self.members[at].1.kill()?;
            self.members[at].1.wait()?;
            self.members[at].1 = self.start_member(MEMBERS[at])?;
        }
        self.master = start_master(&self.program, &self.state, &self.address)?.0;
        Ok(())
    }

    fn start_member(&self, name: &str) -> Result<Child> {
        let kind = name.split('-').next().unwrap_or(name);
        let mut command = Command::new(&self.program);
        command.args([kind, "--name", name, "--master", &self.address, "--lost-limit", "60"]);
        if kind == "server" {
            command.args(["--listen", "127.0.0.1:0", "--lanes", "1"]);
        }
        if kind == "server" && self.has_logs {
            command.args(["--sync-log", "--write-ahead-log"]);
            command.arg(self.state.with_file_name(format!("log-{name}")));
        }
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        output.spawn().context("cannot start a member")
    }
}

/// Starts a master and waits until it listens. Returns its address.
fn start_master(program: &Path, state: &Path, listen: &str) -> Result<(Child, String)> {
    let mut command = Command::new(program);
    command.args(["master", "--listen", listen, "--state"]).arg(state);
    let mut child =
        command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start a master")?;
    let lines = BufReader::new(child.stderr.take().context("it is piped")?);
    let address = ready_address(lines);
    let Some(address) = address else {
        // It has ended already.
        let _ = child.kill();
        anyhow::bail!("the master ended with {} before it was ready", child.wait()?);
    };
    Ok((child, address))
}

/// The address in the line that a master writes when it listens. Its further lines are read and dropped.
fn ready_address(lines: BufReader<ChildStderr>) -> Option<String> {
    let mut lines = lines.lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("master is ready"))?;
    std::thread::spawn(move || lines.for_each(drop));
    let at = line.find("127.0.0.1:")?;
    Some(line[at..].chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect())
}
