//! The process around the lanes. It binds its addresses, reports them, and serves until it is stopped. It does not know
//! the master.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use control::{HttpConfig, metrics_of_lanes, serve_http};
use matrix::FunctionTable;
use rpc::serve::Ports;
use rpc::{Address, Limits, ServeConfig, Service, Stop};

use crate::config::{LaneConfig, ModuleCache, ModuleLoader, OpenJobs};
use crate::error::Error;
use crate::replica::link::{LinkConfig, ThreadLink};
use crate::replica::{ClusterEvents, OpenLink, PrimaryLane, StandbyLane};
use crate::state::LaneState;
use crate::write_ahead::files::WriteAheadLog;

/// Most lanes of a process. Each lane is a thread.
const LANE_LIMIT: u16 = 256;
/// Smallest window: a frame must fit.
const LEAST_WINDOW_BYTES: u64 = 64 << 10;

/// The settings of a server process. A limit in bytes is for the whole process and is divided among the lanes, except
/// the limits of one connection.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Addresses at which the server takes connections of frames. Port 0 means any free port.
    pub listen: Vec<Address>,
    /// Addresses of `/metrics` and health. Default: beside each address of `listen`.
    pub http: Vec<Address>,
    /// The shared secret; empty for none.
    pub token: Vec<u8>,
    /// Number of threads, each with partitions of its own.
    pub lanes: u16,
    /// Most bytes of rows, row copies included.
    pub memory_limit_bytes: u64,
    /// Most bytes of requests of one connection behind a deferred push.
    pub window_bytes: u64,
    /// Most bytes of deferred requests.
    pub deferred_limit_bytes: u64,
    /// Most bytes that attempts of foreign hosts have staged and not committed.
    pub staged_limit_bytes: u64,
    /// Most bytes of cached key lists of one connection.
    pub key_list_limit_bytes: u64,
    pub limits: Limits,
    /// Shows which jobs are open.
    pub open_jobs: OpenJobs,
    /// The functions that tasks may call.
    pub functions: FunctionTable,
    /// Brings the losses of other servers to the lanes.
    pub events: ClusterEvents,
    /// Where changes are written before they are acknowledged. Without it, what this process has ends with it.
    pub write_ahead_log: Option<Arc<Mutex<WriteAheadLog>>>,
    /// Reads the modules that jobs bring. Without it, jobs with modules are refused.
    pub modules: Option<ModuleLoader>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: vec![Address::Tcp("127.0.0.1:0".into())],
            http: Vec::new(),
            token: Vec::new(),
            lanes: 1,
            memory_limit_bytes: 8 << 30,
            // This is room for a pull and a push of a large batch, keys and values, behind a deferred push.
            window_bytes: 64 << 20,
            deferred_limit_bytes: 1 << 30,
            staged_limit_bytes: 1 << 30,
            // This is room for the lists of a dozen batches of 100 thousand keys with their positions.
            key_list_limit_bytes: 64 << 20,
            limits: Limits::default(),
            open_jobs: OpenJobs::default(),
            functions: FunctionTable::builtin(),
            events: ClusterEvents::default(),
            write_ahead_log: None,
            modules: None,
        }
    }
}

impl ServerConfig {
    /// Checks each setting. The error names the first that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        let fault = |field, actual: String, expected: &str| {
            Err(Error::Config { field, actual, expected: expected.to_owned() })
        };
        if self.listen.is_empty() {
            return fault("listen", "empty".into(), "at least one address");
        }
        if self.lanes == 0 || self.lanes > LANE_LIMIT {
            return fault("lanes", self.lanes.to_string(), &format!("1 to {LANE_LIMIT}"));
        }
        if self.memory_limit_bytes == 0 {
            return fault("memory_limit_bytes", "0".into(), "more than 0");
        }
        if self.window_bytes < LEAST_WINDOW_BYTES {
            let expected = format!("at least {LEAST_WINDOW_BYTES}");
            return fault("window_bytes", self.window_bytes.to_string(), &expected);
        }
        if self.deferred_limit_bytes < self.window_bytes {
            let expected = format!("at least window_bytes, {}", self.window_bytes);
            return fault("deferred_limit_bytes", self.deferred_limit_bytes.to_string(), &expected);
        }
        match self.listen.iter().chain(&self.http).find(|address| !is_local(address)) {
            Some(address) if self.token.is_empty() => Err(Error::NoToken { address: address.to_string() }),
            _ => Ok(()),
        }
    }

    /// Connects lane `lane` to the standbys of its jobs.
    fn open_link(&self, lane: u16, incarnation: u64) -> OpenLink {
        let (token, events) = (self.token.clone(), self.events.clone());
        Box::new(move |job, standby| {
            let (standby, token, events) = (standby.clone(), token.clone(), events.clone());
            Box::new(ThreadLink::start(LinkConfig { job, standby, token, lane, incarnation, events }))
        })
    }

    /// Number of lanes with those for copies of jobs of other servers, which a server with a write-ahead log has not.
    pub fn all_lanes(&self) -> u16 {
        if self.write_ahead_log.is_some() { self.lanes } else { 2 * self.lanes }
    }

    /// The settings of one lane. `incarnation` identifies this start of the process.
    pub fn lane(&self, lane: u16, incarnation: u64) -> LaneConfig {
        let lanes = u64::from(self.lanes);
        LaneConfig {
            lane,
            lanes: self.lanes,
            incarnation,
            memory_limit_bytes: self.memory_limit_bytes / lanes,
            window_bytes: self.window_bytes,
            deferred_limit_bytes: (self.deferred_limit_bytes / lanes).max(self.window_bytes),
            staged_limit_bytes: self.staged_limit_bytes / lanes,
            key_list_limit_bytes: self.key_list_limit_bytes,
            #[cfg(any(test, feature = "fault-injection"))]
            injected_fault: None,
        }
    }
}

/// Whether an address can only be reached from this machine.
fn is_local(address: &Address) -> bool {
    let Address::Tcp(place) = address else { return true };
    let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Binds, gives `on_ready` the bound ports, and serves until `stop` is raised. An error of `on_ready` ends the server.
pub fn run<E: From<Error>>(
    config: ServerConfig,
    stop: Stop,
    on_ready: impl FnOnce(&Ports) -> Result<(), E>,
) -> Result<(), E> {
    config.check()?;
    rpc::buffers::retain_large();
    let log = config.write_ahead_log.clone();
    let comes_back = log.as_ref().is_some_and(|log| lock(log).is_restored());
    let ports = if comes_back && config.http.is_empty() {
        Ports::bind_again(&config.listen)
    } else {
        Ports::bind(&config.listen, &config.http)
    };
    let ports = ports.map_err(Error::from)?;
    let (addresses, http) = ports.addresses();
    let incarnation = log.as_ref().map_or_else(incarnation, |log| lock(log).incarnation());
    let modules = config.modules.map(ModuleCache::new);
    let lane = |lane| {
        let state = LaneState::new(config.lane(lane, incarnation))
            .with_functions(config.functions.clone())
            .with_modules(modules.clone());
        state.with_open_jobs(config.open_jobs.clone())
    };
    tracing::info!(?addresses, ?http, lanes = config.lanes, incarnation, "the server listens");
    on_ready(&ports)?;
    if stop.is_raised() {
        return Ok(());
    }
    let own = (0..config.lanes).map(lane);
    let lanes: Vec<Box<dyn Service>> = if let Some(log) = log {
        let restored = lock(&log).restore(own.collect()).map_err(E::from)?;
        restored.into_iter().map(|lane| Box::new(lane) as Box<dyn Service>).collect()
    } else {
        let primary = |(state, number): (LaneState, u16)| {
            let link = config.open_link(number, incarnation);
            Box::new(PrimaryLane::new(state, link, config.events.clone())) as Box<dyn Service>
        };
        let standby =
            |number: u16| Box::new(StandbyLane::new(lane(number), config.events.clone())) as Box<dyn Service>;
        own.zip(0..).map(primary).chain((config.lanes..config.all_lanes()).map(standby)).collect()
    };
    let (token, limits, events) = (config.token, config.limits, config.events);
    let serve = ServeConfig { token: token.clone(), limits, http };
    rpc::serve(ports.frames, lanes, serve, stop.clone(), |lanes| {
        events.set_lanes(lanes.clone());
        let metrics = metrics_of_lanes(lanes);
        serve_http(ports.http, HttpConfig { token, limits, master: None, metrics }, stop)
    })
    .map_err(Error::from)?;
    tracing::info!("the server has stopped");
    Ok(())
}

fn lock(log: &Mutex<WriteAheadLog>) -> MutexGuard<'_, WriteAheadLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that differs at each start: a server does not start twice within one nanosecond.
fn incarnation() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_has_a_number_of_its_own() {
        let first = incarnation();
        assert!(first > 0);
        while incarnation() == first {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_setting_that_cannot_be_is_named() {
        assert!(ServerConfig::default().check().is_ok());
        let field = |change: fn(&mut ServerConfig)| {
            let mut config = ServerConfig::default();
            change(&mut config);
            match config.check() {
                Err(Error::Config { field, .. }) => field,
                Err(Error::NoToken { .. }) => "token",
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(field(|config| config.listen.clear()), "listen");
        assert_eq!(field(|config| config.lanes = 0), "lanes");
        assert_eq!(field(|config| config.lanes = 1000), "lanes");
        assert_eq!(field(|config| config.memory_limit_bytes = 0), "memory_limit_bytes");
        assert_eq!(field(|config| config.window_bytes = 1), "window_bytes");
        assert_eq!(field(|config| config.deferred_limit_bytes = 1), "deferred_limit_bytes");
        assert_eq!(field(|config| config.listen = vec![Address::Tcp("0.0.0.0:0".into())]), "token");
    }

    #[test]
    fn only_this_machine_needs_no_token() {
        let local = |text: &str| is_local(&text.parse().unwrap());
        assert!(local("127.0.0.1:1") && local("localhost:1") && local("[::1]:1") && local("unix:/tmp/s"));
        assert!(!local("0.0.0.0:1") && !local("[::]:1") && !local("example.org:1") && !local("10.0.0.1:1"));
    }

    #[test]
    fn each_lane_has_its_share_of_the_limits_of_the_process() {
        let config = ServerConfig {
            lanes: 4,
            memory_limit_bytes: 4_000_000,
            window_bytes: 100_000,
            deferred_limit_bytes: 2_000_000,
            staged_limit_bytes: 1_000_000,
            key_list_limit_bytes: 70_000,
            ..ServerConfig::default()
        };
        let lane = config.lane(3, 5);
        assert_eq!((lane.lane, lane.lanes, lane.incarnation), (3, 4, 5));
        assert_eq!(lane.memory_limit_bytes, 1_000_000);
        assert_eq!(lane.deferred_limit_bytes, 500_000);
        assert_eq!(lane.staged_limit_bytes, 250_000);
        assert_eq!((lane.window_bytes, lane.key_list_limit_bytes), (100_000, 70_000), "of one connection");
        let narrow = ServerConfig { deferred_limit_bytes: 100_000, ..config };
        assert_eq!(narrow.lane(0, 5).deferred_limit_bytes, 100_000, "a window fits");
    }
}
