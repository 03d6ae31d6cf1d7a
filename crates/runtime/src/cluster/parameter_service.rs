//! The parameter service for external programs: a master in this process and servers as processes of this machine. It
//! runs until it is asked to stop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::Client;
use driver::Error;
use driver::progress::{ProgressListener, SilentProgress};
use job::Exit;
use rpc::stop::Stop;
use rpc::transport::Address;

use crate::cluster::job_runner::JobRunner;
use crate::cluster::launch::{ChildProcesses, LocalMaster, start_master};
use crate::environment::Environment;
use crate::errors::master_error;
use crate::interrupt::Interrupt;

/// Maximum wait for all servers to join.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Time between two checks of the processes and the interrupt flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Seconds after which a server that has lost its master ends, since no other process stops it.
const MASTER_LOST_LIMIT_S: &str = "5";

/// Settings of the parameter service.
#[derive(Clone, Debug)]
pub struct ParameterServiceConfig {
    /// Address on which the master listens; servers listen on the same host.
    pub listen: String,
    /// Addresses on which the master serves HTTP; none: the port after that of `listen`.
    pub http: Vec<Address>,
    /// The shared secret.
    pub token: Vec<u8>,
    /// The file of the shared secret, for the servers.
    pub token_file: Option<String>,
    /// Number of server processes.
    pub servers: u32,
    /// Number of lanes of each server.
    pub lanes: u16,
    /// Memory limit of each server.
    pub memory_limit_bytes: u64,
    /// Maximum number of sessions; `None`: the default of a master.
    pub session_limit: Option<usize>,
    /// Folder for the write-ahead logs of the servers; `None`: there are none, and a server that is started again has nothing
    /// of what it had.
    pub write_ahead_log: Option<PathBuf>,
    /// Whether the logs are synced to the disk.
    pub sync_log: bool,
    /// Where checkpoints of sessions are: a folder, or an address of a store; `None`: there are none.
    pub session_checkpoints: Option<String>,
}

/// How often servers are started again.
const RESTART_LIMIT: u32 = 1000;

/// Logs what happens to the processes.
#[derive(Debug)]
struct LogListener;

impl ProgressListener for LogListener {
    fn print_line(&self, line: &str) {
        tracing::warn!("{line}");
    }
}

/// Starts all processes, passes the master to `ready`, and serves until Ctrl-C or the end of a process.
pub fn serve(
    service: &ParameterServiceConfig,
    environment: Environment<'_>,
    ready: impl FnOnce(&LocalMaster) -> Result<(), Error>,
) -> Result<(), Error> {
    let (progress, token) = (Arc::new(SilentProgress), service.token.clone());
    let Environment { families, functions, interrupt, program, .. } = environment;
    let runner = JobRunner::new(progress, token, interrupt.clone(), families.clone());
    let runner = runner.with_session_checkpoints(service.session_checkpoints.clone(), functions);
    let runner = Arc::new(runner);
    let stop = Stop::new();
    let mut config = master::MasterConfig {
        listen: vec![Address::Tcp(service.listen.clone())],
        http: service.http.clone(),
        token: service.token.clone(),
        functions: functions.clone(),
        ..master::MasterConfig::default()
    };
    if let Some(limit) = service.session_limit {
        config.settings.session_limit = limit;
    }
    let master = start_master(config, runner, stop.clone())?;
    let mut processes = ChildProcesses::new(RESTART_LIMIT, program).with_listener(Arc::new(LogListener));
    let served = start_servers(service, &master.address, &mut processes)
        .and_then(|()| wait_for_servers(service, &master.http, &mut processes, interrupt))
        .and_then(|is_there| if is_there { ready(&master) } else { Ok(()) })
        .and_then(|()| wait_for_end(&mut processes, interrupt));
    // Sessions must be closed while the servers still run.
    stop.raise();
    let ended = master.thread.join();
    drop(processes);
    served?;
    ended.map_err(|_| Error::Cluster { text: "the master panicked".into(), exit: Exit::Internal })
}

fn start_servers(
    service: &ParameterServiceConfig,
    master: &Address,
    processes: &mut ChildProcesses,
) -> Result<(), Error> {
    let host = service.listen.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    let (listen, lanes) = (format!("{host}:0"), service.lanes.to_string());
    let memory = service.memory_limit_bytes.to_string();
    let mut flags = vec!["--listen", &listen, "--lanes", &lanes, "--memory-limit", &memory];
    flags.extend(["--lost-limit", MASTER_LOST_LIMIT_S]);
    if let Some(file) = &service.token_file {
        flags.extend(["--token-file", file]);
    }
    for i in 0..service.servers {
        let log = service.write_ahead_log.as_ref().map(|folder| folder.join(format!("server-{i}")));
        let log = log.map(|log| log.display().to_string());
        let mut flags = flags.clone();
        flags.extend(log.iter().flat_map(|log| ["--write-ahead-log", log]));
        flags.extend(service.sync_log.then_some("--sync-log"));
        processes.start("server", i, master, &flags)?;
    }
    Ok(())
}

/// Waits until all servers have joined; false if the service was asked to stop before that.
fn wait_for_servers(
    service: &ParameterServiceConfig,
    master: &Address,
    processes: &mut ChildProcesses,
    interrupt: &Interrupt,
) -> Result<bool, Error> {
    let deadline = Instant::now() + START_LIMIT;
    let client = Client::new(master.clone(), &service.token);
    while !interrupt.is_raised() {
        let count = client.status(START_LIMIT).map_err(master_error(master))?.members.len();
        if count >= service.servers as usize {
            return Ok(true);
        }
        processes.check_alive()?;
        if Instant::now() >= deadline {
            let text = format!(
                "{count} of {} servers have joined in {} s: is the machine very busy?",
                service.servers,
                START_LIMIT.as_secs()
            );
            return Err(Error::Cluster { text, exit: Exit::Internal });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(false)
}

fn wait_for_end(processes: &mut ChildProcesses, interrupt: &Interrupt) -> Result<(), Error> {
    while !interrupt.is_raised() {
        processes.restart_ended()?;
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
