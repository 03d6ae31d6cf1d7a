//! The process of a master: settings, sockets, and the shutdown.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use control::{HttpConfig, metrics_of_lanes, serve_http};
use matrix::FunctionTable;
use rpc::serve::Ports;
use rpc::stop::Stop;
use rpc::transport::Address;
use rpc::{Limits, ServeConfig};

use crate::error::Error;
use crate::input::{InputSender, Waker};
use crate::job_link::Runner;
use crate::record::Records;
use crate::service::{MasterService, Shutdown};
use crate::settings::Settings;
use crate::state::MasterState;
use crate::state_folder::StateFolder;

/// How often the process checks whether the sockets have closed by themselves.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Settings of the process, as users write them.
#[derive(Clone, Debug)]
pub struct MasterConfig {
    /// Where members connect. Default 127.0.0.1:7070.
    pub listen: Vec<Address>,
    /// Where clients connect. Default: beside each address of `listen`.
    pub http: Vec<Address>,
    /// The shared secret. Empty: there is none, and only this machine may connect.
    pub token: Vec<u8>,
    pub settings: Settings,
    /// The functions of the program, as its servers have them.
    pub functions: FunctionTable,
    /// How long the shutdown waits for running jobs, which are cancelled first. Default 10 s.
    pub shutdown_limit: Duration,
    pub limits: Limits,
    /// The folder in which jobs are recorded, so that a new master goes on with them. None: jobs end with the master.
    pub state: Option<PathBuf>,
}

impl Default for MasterConfig {
    fn default() -> Self {
        Self {
            listen: vec![Address::Tcp("127.0.0.1:7070".into())],
            http: Vec::new(),
            token: Vec::new(),
            settings: Settings::default(),
            functions: FunctionTable::builtin(),
            shutdown_limit: Duration::from_secs(10),
            limits: Limits::default(),
            state: None,
        }
    }
}

/// Settings that were checked.
#[derive(Clone, Debug)]
pub struct CheckedConfig(MasterConfig);

impl MasterConfig {
    /// Refuses invalid settings, and an open port without a token.
    pub fn check(self) -> Result<CheckedConfig, Error> {
        if self.listen.is_empty() {
            return Err(Error::Config(
                "a master needs at least one address to listen at, such as 127.0.0.1:7070".into(),
            ));
        }
        if self.token.is_empty()
            && let Some(open) = self.listen.iter().chain(&self.http).find(|address| !is_local(address))
        {
            return Err(Error::Config(format!(
                "{open} can be reached from other machines, which requires a shared secret: give a token, or listen \
                 at 127.0.0.1"
            )));
        }
        self.settings.check().map_err(Error::Config)?;
        Ok(CheckedConfig(self))
    }
}

/// Whether only this machine can connect.
fn is_local(address: &Address) -> bool {
    match address {
        Address::Unix(_) => true,
        Address::Tcp(place) => {
            let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    }
}

/// Runs a master until `stop` is raised and the running jobs have ended. Calls `on_ready` with the bound ports before the
/// first connection is accepted.
pub fn run(
    config: CheckedConfig,
    runner: Arc<dyn Runner>,
    stop: Stop,
    on_ready: impl FnOnce(&Ports),
) -> Result<(), Error> {
    let CheckedConfig(MasterConfig {
        listen,
        http,
        token,
        settings,
        functions,
        shutdown_limit: hold_for,
        limits,
        state,
    }) = config;
    let folder = state.map(|path| StateFolder::open(&path)).transpose()?;
    let records = folder.as_ref().map(StateFolder::load).transpose()?.unwrap_or_default();
    let ports = Ports::bind(&listen, &http)?;
    let waker = Arc::new(Waker::default());
    let (port, words) = InputSender::new(Arc::clone(&waker));
    let handle = Arc::new(port.clone());
    let ending = Shutdown { is_requested: Arc::new(AtomicBool::new(false)), close_sockets: Stop::new() };
    let mut state = MasterState::new(settings, incarnation()).with_functions(functions);
    log_restored(&records);
    state.restore(records);
    let service =
        MasterService::new(state, runner, (port, words), Arc::clone(&waker), ending.clone(), folder);
    let sockets = ending.close_sockets.clone();
    let watch = std::thread::Builder::new()
        .name("master-end".into())
        .spawn({
            let waker = Arc::clone(&waker);
            move || wait_for_end(&stop, &ending, &waker, hold_for)
        })
        .map_err(|source| rpc::Error::Io { what: "start a thread of the master".into(), source })?;
    on_ready(&ports);
    let config = ServeConfig { token: token.clone(), limits, http: ports.addresses().1 };
    let served = rpc::serve(ports.frames, vec![Box::new(service)], config, sockets.clone(), |lanes| {
        waker.set_lanes(lanes.clone());
        let metrics = metrics_of_lanes(lanes);
        serve_http(ports.http, HttpConfig { token, limits, master: Some(handle), metrics }, sockets.clone())
    });
    sockets.raise();
    // The thread has nothing that can panic; the result of serving counts.
    let _ = watch.join();
    Ok(served?)
}

/// Tells which jobs go on.
fn log_restored(records: &Records) {
    for (job, standing) in records.jobs.iter().filter(|(_, standing)| !standing.state.is_over()) {
        tracing::info!(job = job.job, title = job.title, state = ?standing.state, "a job of the earlier master goes on");
    }
}

/// Waits for the request to end, then cancels the jobs, and after `shutdown_limit` closes the sockets.
fn wait_for_end(stop: &Stop, ending: &Shutdown, waker: &Waker, hold_for: Duration) {
    while !stop.wait(POLL_INTERVAL) {
        if ending.close_sockets.is_raised() {
            return;
        }
    }
    ending.is_requested.store(true, Ordering::SeqCst);
    let since = Instant::now();
    waker.wake();
    if ending.close_sockets.wait(hold_for) {
        return;
    }
    tracing::warn!(waited_ms = since.elapsed().as_millis() as u64, "shutting down with jobs still running");
    ending.close_sockets.raise();
}

/// The incarnation. It differs from that of every earlier process at this address, because the clock is never set back
/// by as much as a process takes to start.
fn incarnation() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(address: &str) -> MasterConfig {
        MasterConfig { listen: vec![address.parse().unwrap()], ..MasterConfig::default() }
    }

    #[test]
    fn an_open_port_needs_a_token() {
        for local in ["127.0.0.1:0", "localhost:7070", "[::1]:7070", "unix:/tmp/x"] {
            assert!(listening(local).check().is_ok(), "{local}");
        }
        for open in ["0.0.0.0:7070", "example.org:1", "10.1.2.3:7070"] {
            let text = listening(open).check().unwrap_err().to_string();
            assert!(text.contains(open) && text.contains("give a token"), "{text}");
            let config = MasterConfig { token: b"secret".to_vec(), ..listening(open) };
            assert!(config.check().is_ok());
            let http = vec![open.parse().unwrap()];
            assert!(MasterConfig { http, ..MasterConfig::default() }.check().is_err(), "{open}");
        }
    }

    #[test]
    fn settings_that_cannot_be_are_refused_with_their_names() {
        let short = Settings { lease: Duration::from_millis(600), ..Settings::default() };
        let config = MasterConfig { settings: short, ..MasterConfig::default() };
        let text = config.check().unwrap_err().to_string();
        assert!(text.contains("lease 600 ms") && text.contains("500 ms"), "{text}");
        let none = Settings { running_job_limit: 0, ..Settings::default() };
        let config = MasterConfig { settings: none, ..MasterConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("running_job_limit"));
        let config = MasterConfig { listen: Vec::new(), ..MasterConfig::default() };
        assert!(config.check().is_err());
    }
}
