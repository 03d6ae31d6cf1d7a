//! Starts master, servers and workers on this machine for one job. The processes communicate through sockets in a
//! private folder and end with the job.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use control::{Client, JobSubmission, SubmissionId};
use driver::Error;
use driver::progress::{ProgressListener, SilentProgress};
use driver::report::Report;
use job::raw::RawJob;
use job::{ClusterSize, Exit, ScoringJob, TrainJob};
use matrix::{FunctionTable, MatrixSpec, Prefetch};
use model::ModelClaim;
use rpc::WireType;
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use rpc::message::Durability;
use rpc::message::control::{Member, MemberKind};
use rpc::stop::Stop;
use rpc::transport::Address;
use serde::de::DeserializeOwned;
use store::TempOutput;
use worker::{CancellationToken, RemoteAgent};

use crate::cluster::job_runner::JobRunner;
use crate::cluster::socket_folder::SocketFolder;
use crate::environment::Environment;
use crate::errors::master_error;
use crate::interrupt::Interrupt;
use crate::machine;
use crate::outputs::{check_outputs, write_report};
use crate::program::Program;
use crate::score_output;
use crate::score_output::Destination;

/// Maximum wait for the start of the master or the servers.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of unacknowledged bytes from a task to a server.
const WINDOW_BYTES: u64 = 64 << 20;
/// Time between two checks of the processes.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two checks whether the servers listen.
const SOCKET_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Trains on servers and workers of this machine, which are started for the job and end with it. `progress` learns of it,
/// unless the job is quiet.
pub fn train(
    job: &TrainJob,
    size: ClusterSize,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
) -> Result<Report, Error> {
    check_outputs(job)?;
    let listener: Arc<dyn ProgressListener> =
        if job.run_options.quiet { Arc::new(SilentProgress) } else { Arc::clone(&progress) };
    let processes = ChildProcesses::new(job.restarts, environment.program).with_listener(listener);
    let logs = ServerLogs::of(job, environment.interrupt)?;
    let ended = run(&job.given, size, environment, progress, processes, logs.as_ref());
    if ended.is_err() {
        // The worker that had claimed the name of the model has ended, perhaps without an end of the claim.
        drop(ModelClaim::take(&job.model, None, environment.interrupt.temp_outputs()));
    }
    let report: Report = read_report(ended?)?;
    if let Some(path) = &job.report {
        write_report(&report, path)?;
    }
    Ok(report)
}

/// Scores records on servers and workers of this machine, which are started for it and end with it. Returns the result
/// of the command.
pub fn score<T: DeserializeOwned>(
    raw: &RawJob,
    job: &ScoringJob,
    size: ClusterSize,
    environment: Environment<'_>,
) -> Result<T, Error> {
    score_output::check_workers_output(job, environment.families)?;
    let processes = ChildProcesses::new(0, environment.program);
    let result = run(raw, size, environment, Arc::new(SilentProgress), processes, None);
    if let (Err(_), Some(output)) = (&result, job.output()) {
        // The processes have ended, also those that could not remove what they had begun.
        Destination::of(output).remove_stale_parts(environment.interrupt);
    }
    read_report(result?)
}

fn read_report<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| Error::Cluster {
        text: format!("the report of the job cannot be read: {error}"),
        exit: Exit::Internal,
    })
}

/// Runs a job on servers and workers of this machine. Returns its report.
fn run(
    raw: &RawJob,
    size: ClusterSize,
    environment: Environment<'_>,
    progress: Arc<dyn ProgressListener>,
    mut processes: ChildProcesses,
    logs: Option<&ServerLogs>,
) -> Result<serde_json::Value, Error> {
    let folder = SocketFolder::new()?;
    let runner =
        JobRunner::new(progress, Vec::new(), environment.interrupt.clone(), environment.families.clone());
    let runner = Arc::new(runner.with_shared_folder());
    let stop = Stop::new();
    let listen = vec![folder.socket("master")];
    let config = master::MasterConfig { listen, ..master::MasterConfig::default() };
    let master = start_master(config, Arc::clone(&runner), stop.clone())?;
    for i in 0..size.servers {
        let listen = folder.socket(&format!("server-{i}")).to_string();
        let mut more = vec!["--listen", &listen, "--lanes", "1"];
        let log = logs.map(|logs| logs.folder.join(format!("server-{i}")).display().to_string());
        more.extend(log.iter().flat_map(|log| ["--write-ahead-log", log]));
        more.extend(logs.is_some_and(|logs| logs.is_synced).then_some("--sync-log"));
        processes.start("server", i, &master.address, &more)?;
    }
    for i in 0..size.workers {
        let listen = folder.socket(&format!("worker-{i}")).to_string();
        processes.start("worker", i, &master.address, &["--http", &listen])?;
    }
    let result = submit(raw, size, &master.http, &mut processes);
    // Before the master stops: that interrupts the job if it still runs.
    let result = result.map_err(|error| runner.take_error().unwrap_or(error));
    drop(processes);
    stop.raise();
    result
}

/// The write-ahead logs of the servers of one training, beside its model. They are removed when this value is dropped.
struct ServerLogs {
    folder: PathBuf,
    is_synced: bool,
    _output: TempOutput,
}

impl ServerLogs {
    /// None if the job does not ask for logs.
    fn of(job: &TrainJob, interrupt: &Interrupt) -> Result<Option<Self>, Error> {
        if !matches!(job.durability, Durability::Log | Durability::SyncedLog) {
            return Ok(None);
        }
        let output = interrupt.temp_outputs().log_folder(&job.model);
        let folder = std::path::absolute(output.path()).map_err(Error::io("find", output.path()))?;
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let is_synced = job.durability == Durability::SyncedLog;
        Ok(Some(Self { folder, is_synced, _output: output }))
    }
}

/// Servers as processes of this machine, without workers. They end when this value is dropped.
pub struct LocalServers {
    /// Addresses of the servers; each server has one lane.
    pub addresses: Vec<String>,
    /// Ends the waits of agents when a server has died.
    cancellation: CancellationToken,
    // Fields are dropped in this order: the processes, then the master, then the sockets.
    _processes: Arc<Mutex<ChildProcesses>>,
    _master: StopOnDrop,
    _folder: SocketFolder,
}

struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.raise();
    }
}

impl LocalServers {
    /// Starts the servers and waits until they listen.
    pub fn start(count: u32, program: &Program, interrupt: &Interrupt) -> Result<Self, Error> {
        let folder = SocketFolder::new()?;
        let stop = StopOnDrop(Stop::new());
        let config =
            master::MasterConfig { listen: vec![folder.socket("master")], ..master::MasterConfig::default() };
        let runner = Arc::new(JobRunner::new(
            Arc::new(SilentProgress),
            Vec::new(),
            interrupt.clone(),
            families::all(),
        ));
        let master = start_master(config, runner, stop.0.clone())?.address;
        let mut processes = ChildProcesses::new(0, program);
        let mut addresses = Vec::new();
        for i in 0..count {
            let listen = folder.socket(&format!("server-{i}"));
            processes.start("server", i, &master, &["--listen", &listen.to_string(), "--lanes", "1"])?;
            addresses.push(listen);
        }
        let start = Instant::now();
        while addresses.iter().any(|address| matches!(address, Address::Unix(path) if !path.exists())) {
            processes.check_alive()?;
            if start.elapsed() > START_LIMIT {
                let text = format!("the servers did not start within {} s", START_LIMIT.as_secs());
                return Err(Error::Cluster { text, exit: Exit::Internal });
            }
            std::thread::sleep(SOCKET_POLL_INTERVAL);
        }
        let addresses = addresses.iter().map(ToString::to_string).collect();
        let (processes, cancellation) = (Arc::new(Mutex::new(processes)), CancellationToken::default());
        watch(Arc::downgrade(&processes), cancellation.clone());
        Ok(Self { addresses, cancellation, _processes: processes, _master: stop, _folder: folder })
    }

    /// Ends the waits of all agents.
    pub fn cancel(&self, reason: &str) {
        self.cancellation.cancel(reason);
    }

    /// The servers as members of a job.
    pub fn members(&self) -> Vec<Member> {
        // The servers are processes of one machine.
        let all = machine::memory_bytes().unwrap_or(u64::MAX);
        let memory_limit_bytes = all / self.addresses.len().max(1) as u64;
        let member = |(id, address): (u32, &String)| Member {
            id,
            name: format!("server-{id}"),
            incarnation: 1,
            kind: MemberKind::Server { addresses: vec![address.clone()], lanes: 1, memory_limit_bytes },
            host: String::new(),
        };
        (0..).zip(&self.addresses).map(member).collect()
    }

    /// The agent of a task. Its waits end with an error when a server has died.
    pub fn agent(
        &self,
        layout: &JobLayout,
        task: u32,
        functions: &FunctionTable,
    ) -> Result<RemoteAgent, Error> {
        let agent = RemoteAgent::with_functions(layout.clone(), task, &[], functions.clone());
        Ok(agent.map_err(Error::process)?.with_cancellation(self.cancellation.clone()))
    }
}

/// Watches processes as long as they are in use.
fn watch(processes: Weak<Mutex<ChildProcesses>>, cancellation: CancellationToken) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(POLL_INTERVAL);
            let Some(processes) = processes.upgrade() else { return };
            let alive = processes.lock().unwrap_or_else(PoisonError::into_inner).check_alive();
            if let Err(error) = alive {
                return cancellation.cancel(&error.to_string());
            }
        }
    });
}

impl LocalServers {
    /// The layout of a job with these matrices on the servers, in which values travel unchanged.
    pub fn layout(&self, matrices: Vec<MatrixSpec>, task_count: u32, wait_limit: Duration) -> JobLayout {
        let lane = |address: &String| LaneAddress::new(vec![address.clone()], 0);
        let count = self.addresses.len() as u16;
        let owners = |spec: &MatrixSpec| assign_partitions(spec.partitioner.partition_count(), count);
        JobLayout {
            job: 1,
            task_count,
            wait_limit,
            window_bytes: WINDOW_BYTES,
            lanes: self.addresses.iter().map(lane).collect(),
            owners: matrices.iter().map(owners).collect(),
            home: 0,
            wire: vec![WireType::F32; matrices.len()],
            prefetch: Prefetch::Off,
            matrices,
        }
    }
}

/// A master in a thread of this process, with its first addresses.
pub struct LocalMaster {
    /// Where members connect.
    pub address: Address,
    /// Where clients connect.
    pub http: Address,
    pub thread: JoinHandle<()>,
}

/// Starts a master in this process.
pub fn start_master(
    config: master::MasterConfig,
    runner: Arc<JobRunner>,
    stop: Stop,
) -> Result<LocalMaster, Error> {
    let (ready, is_ready) = channel();
    let failed = ready.clone();
    let thread = std::thread::spawn(move || {
        let said = config.check().map_err(|error| error.to_string()).and_then(|config| {
            master::run(config, runner, stop, move |ports| drop(ready.send(Ok(ports.addresses()))))
                .map_err(|error| error.to_string())
        });
        if let Err(error) = said {
            // The receiver may be dropped already: the error came after the start.
            let _ = failed.send(Err(error));
        }
    });
    match is_ready.recv_timeout(START_LIMIT) {
        Ok(Ok((members, http))) => {
            Ok(LocalMaster { address: members[0].clone(), http: http[0].clone(), thread })
        }
        Ok(Err(text)) => Err(Error::Cluster { text, exit: Exit::Io }),
        Err(_) => {
            let text = format!("the master did not start within {} s", START_LIMIT.as_secs());
            Err(Error::Cluster { text, exit: Exit::Internal })
        }
    }
}

/// Submits the job and waits until it or one of the processes ends.
fn submit(
    raw: &RawJob,
    size: ClusterSize,
    master: &Address,
    processes: &mut ChildProcesses,
) -> Result<serde_json::Value, Error> {
    let order = JobSubmission {
        title: raw.algorithm.clone().unwrap_or_else(|| raw.command.name().into()),
        spec: serde_json::to_value(raw).expect("texts are always JSON"),
        servers: size.servers,
        workers: size.workers,
        worker_group: String::new(),
    };
    let client = Client::new(master.clone(), &[]);
    let job = client.submit(SubmissionId::random(), &order, START_LIMIT).map_err(master_error(master))?;
    let (news, received) = channel();
    std::thread::spawn(move || {
        let ended = client.watch(job, |status| {
            // The receiver is dropped when a process has died.
            !status.state.is_over() || news.send(status.clone()).is_ok()
        });
        drop(ended);
    });
    loop {
        match received.recv_timeout(POLL_INTERVAL) {
            Ok(status) => {
                return match status.error {
                    None => Ok(status.progress),
                    Some(text) => Err(Error::Cluster { text, exit: Exit::Internal }),
                };
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => processes.restart_ended()?,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                let text = "the master ended before the job".into();
                return Err(Error::Cluster { text, exit: Exit::Internal });
            }
        }
    }
}

/// Child processes that are killed when this value is dropped.
pub struct ChildProcesses {
    pub children: Vec<ChildProcess>,
    program: Program,
    /// How many more processes are started in place of others.
    restarts: u32,
    /// Learns of each process that is started again.
    listener: Arc<dyn ProgressListener>,
}

/// A server or worker of this machine.
pub struct ChildProcess {
    name: String,
    arguments: Vec<String>,
    pub child: Child,
}

impl ChildProcess {
    fn spawn(program: &Program, name: String, arguments: Vec<String>) -> Result<Self, Error> {
        let (path, mut command) = program.command()?;
        let child = command
            .args(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Ctrl-C in the terminal must reach only this process, which then stops the others.
            .process_group(0)
            .spawn()
            .map_err(Error::io("start", &path))?;
        Ok(Self { name, arguments, child })
    }
}

impl ChildProcesses {
    pub fn new(restarts: u32, program: &Program) -> Self {
        Self { children: Vec::new(), program: program.clone(), restarts, listener: Arc::new(SilentProgress) }
    }

    #[must_use]
    pub fn with_listener(mut self, listener: Arc<dyn ProgressListener>) -> Self {
        self.listener = listener;
        self
    }

    pub fn start(&mut self, kind: &str, number: u32, master: &Address, more: &[&str]) -> Result<(), Error> {
        let (name, master) = (format!("{kind}-{number}"), master.to_string());
        let fixed = [kind, "--master", &master, "--name", &name, "--log", "warn"];
        // If this process is killed, the standard input of the children ends, and they end too.
        let fixed = fixed.into_iter().chain(["--end-with-parent"]);
        let arguments = fixed.chain(more.iter().copied()).map(str::to_owned).collect();
        self.children.push(ChildProcess::spawn(&self.program, name, arguments)?);
        Ok(())
    }

    /// Returns an error if a process has ended.
    pub fn check_alive(&mut self) -> Result<(), Error> {
        match self.children.iter_mut().find_map(ended) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Starts the processes again that have ended, under the same names; an error when that was done too often.
    pub fn restart_ended(&mut self) -> Result<(), Error> {
        for process in &mut self.children {
            let Some((name, error)) = ended(process) else { continue };
            if self.restarts == 0 {
                return Err(error);
            }
            self.restarts -= 1;
            self.listener.print_line(&format!("{error}. It is started again"));
            *process = ChildProcess::spawn(&self.program, name, process.arguments.clone())?;
        }
        Ok(())
    }
}

/// SIGKILL, which a process cannot notice.
const KILL_SIGNAL: i32 = 9;

/// The name of a process that has ended, and the error.
fn ended(process: &mut ChildProcess) -> Option<(String, Error)> {
    let status = process.child.try_wait().ok().flatten()?;
    // Who is killed says nothing.
    let is_killed = status.signal() == Some(KILL_SIGNAL);
    let output = if is_killed { "" } else { "; its output is above" };
    let text = format!("{} ended unexpectedly ({status}){output}", process.name);
    Some((process.name.clone(), Error::Cluster { text, exit: Exit::Internal }))
}

impl Drop for ChildProcesses {
    fn drop(&mut self) {
        for ChildProcess { child, .. } in &mut self.children {
            // An error is ignored: the process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
