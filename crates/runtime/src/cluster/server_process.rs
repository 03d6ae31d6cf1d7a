//! The process of a server: its lanes, and its membership until it is asked to stop or the master is lost.

use std::sync::mpsc::{Receiver, Sender as Queue, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use driver::Error;
use job::Exit;
use member::{MemberConfig, MemberEvent, join};
use rpc::Message;
use rpc::message::control::{ControlBody, MemberKind};
use rpc::message::{CloseJob, Hello, JobId, Role};
use rpc::stop::Stop;
use rpc::transport::{Address, open};
use serde_json::json;
use server::{ClusterEvent, ClusterEvents, OpenJobs};

use crate::cluster::server_log::{LogConfig, ServerLog};
use crate::cluster::socket_folder::SocketFolder;
use crate::environment::Environment;
use crate::errors::server_error;
use crate::interrupt::Interrupt;
use crate::modules::OF_JOBS;

/// Maximum wait for a connection to a lane of this process.
const SELF_CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Time between two checks of the interrupt flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What a server process is started with.
#[derive(Clone, Debug)]
pub struct ServerProcessConfig {
    /// Settings of its membership. What it offers is set when it listens.
    pub member: MemberConfig,
    pub listen: Vec<Address>,
    /// Addresses for HTTP.
    pub http: Vec<Address>,
    /// The name under which others reach this machine, if it is not that of `listen`.
    pub advertised_host: Option<String>,
    pub lanes: u16,
    pub memory_limit_bytes: u64,
    pub log: LogConfig,
}

/// Serves until `environment.interrupt` is raised or the master is lost.
pub fn serve(config: ServerProcessConfig, environment: Environment<'_>) -> Result<(), Error> {
    let ServerProcessConfig { mut member, mut listen, http, advertised_host, lanes, memory_limit_bytes, log } =
        config;
    let (interrupt, token) = (environment.interrupt, member.token.clone());
    let open_jobs = OpenJobs::default();
    let events = ClusterEvents::default();
    let log = ServerLog::open(&log, lanes, &mut listen, &mut member)?;
    let (listen, _folder) = with_socket(listen);
    let config = server::ServerConfig {
        open_jobs: open_jobs.clone(),
        events: events.clone(),
        listen,
        http,
        token: token.clone(),
        lanes,
        memory_limit_bytes,
        write_ahead_log: log.shared(),
        functions: environment.functions.clone(),
        modules: OF_JOBS,
        ..server::ServerConfig::default()
    };
    let all_lanes = config.all_lanes();
    let stop = Stop::new();
    let has_ended = Stop::new();
    let (has_joined, joined_runs) = channel();
    let (serving, is_ready) =
        start_serving(config, log.clone(), joined_runs, stop.clone(), has_ended.clone());
    let joined = is_ready.recv().map(|(addresses, http)| -> Result<ServerMembership, Error> {
        let own = addresses[0].clone();
        let texts = |addresses: &[Address]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
        let shown = |addresses: Vec<Address>| match &advertised_host {
            Some(host) => addresses.into_iter().map(|address| at_host(address, host)).collect(),
            None => addresses,
        };
        log.set_place(&member.name, &texts(&addresses))?;
        let (addresses, http) = (texts(&shown(addresses)), texts(&shown(http)));
        member.kind = MemberKind::Server { addresses, lanes, memory_limit_bytes };
        Ok(ServerMembership {
            member,
            log,
            has_joined: Some(has_joined),
            open_jobs,
            events,
            own,
            http,
            all_lanes,
            token,
            interrupt: interrupt.clone(),
            has_ended,
        })
    });
    let ended = match joined {
        // The server did not start; the result of its thread has the reason.
        Err(_) => Ok(()),
        Ok(attendance) => attendance.and_then(ServerMembership::run),
    };
    stop.raise();
    let panicked = |_| Error::Cluster { text: "the server panicked".into(), exit: Exit::Internal };
    let served = serving.join().map_err(panicked)?;
    served.map_err(Error::process)?;
    ended
}

/// The same port of another name of this machine.
fn at_host(address: Address, host: &str) -> Address {
    match &address {
        Address::Tcp(place) => match place.rsplit_once(':') {
            Some((_, port)) => Address::Tcp(format!("{host}:{port}")),
            None => address,
        },
        Address::Unix(_) => address,
    }
}

type Addresses = (Vec<Address>, Vec<Address>);

/// Raised when the thread that has it ends, also by a panic.
struct RaisedAtEnd(Stop);

impl Drop for RaisedAtEnd {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// Serves in a thread, which sends the addresses of its two ports when it listens, and raises `has_ended` when it ends. A
/// log of an earlier process is read when this one has joined: `joined_runs` then gives the runs of jobs of which it still
/// is part. What the log has of others must not meet the requests of new runs.
fn start_serving(
    config: server::ServerConfig,
    log: ServerLog,
    joined_runs: Receiver<Vec<JobId>>,
    stop: Stop,
    has_ended: Stop,
) -> (JoinHandle<Result<(), server::Error>>, Receiver<Addresses>) {
    let (ready, is_ready) = channel();
    let serving = std::thread::spawn(move || {
        let _end = RaisedAtEnd(has_ended);
        server::run(config, stop, move |ports| {
            // The receiver is dropped only when the main thread has stopped waiting.
            let _ = ready.send(ports.addresses());
            if log.is_restored() {
                // If this process cannot join, the stop is raised.
                joined_runs.recv().into_iter().for_each(|runs| log.set_continued(runs));
            }
            Ok::<(), server::Error>(())
        })
    });
    (serving, is_ready)
}

/// Adds a Unix socket to the addresses: agents of this machine choose it because it is faster. If no socket folder can
/// be created, the server runs without the socket.
fn with_socket(mut addresses: Vec<Address>) -> (Vec<Address>, Option<SocketFolder>) {
    if addresses.iter().any(|address| matches!(address, Address::Unix(_))) {
        return (addresses, None);
    }
    match SocketFolder::new() {
        Ok(folder) => {
            addresses.push(folder.socket("server"));
            (addresses, Some(folder))
        }
        Err(error) => {
            tracing::warn!(%error, "no Unix socket can be offered: processes of this machine use the network");
            (addresses, None)
        }
    }
}

/// The membership of a server, until the server is asked to stop or the master is lost.
struct ServerMembership {
    member: MemberConfig,
    log: ServerLog,
    /// Gives the lanes the runs of this member when it has joined for the first time; dropped then.
    has_joined: Option<Queue<Vec<JobId>>>,
    open_jobs: OpenJobs,
    events: ClusterEvents,
    /// An address of this process.
    own: Address,
    /// Addresses at which this process serves HTTP.
    http: Vec<String>,
    /// Number of lanes, with those for copies.
    all_lanes: u16,
    token: Vec<u8>,
    interrupt: Interrupt,
    /// Raised when this process serves no more, as when its write-ahead log is damaged. It is no member then.
    has_ended: Stop,
}

impl ServerMembership {
    fn run(mut self) -> Result<(), Error> {
        let master = self.member.master.clone();
        loop {
            let (membership, events) = join(self.member.clone()).map_err(server_error(&master))?;
            self.member.restored = false;
            if let Some(lanes) = self.has_joined.take() {
                // Without a log of an earlier process nobody waits for them.
                let _ = lanes.send(membership.runs_at_join().to_vec());
            }
            membership.set_report(json!({"http": self.http}));
            tracing::info!(id = membership.id(), master = %master, http = self.http.join(", "), "server joined");
            while !self.interrupt.is_raised() {
                if self.has_ended.is_raised() {
                    return Ok(());
                }
                match events.recv_timeout(POLL_INTERVAL) {
                    Ok(MemberEvent::MasterLost { reason }) => {
                        let text =
                            format!("the master at {master} is lost: {reason}{}", self.ended_jobs_text());
                        return Err(Error::Cluster { text, exit: Exit::Io });
                    }
                    Ok(MemberEvent::MasterRestarted { continued }) => {
                        self.close_jobs(
                            continued,
                            "the master was restarted, and another run of the job begins",
                        )?;
                        tracing::warn!(master = %master, "the master was restarted{}", self.ended_jobs_text());
                        let gone = "the master was restarted without this job";
                        self.close_jobs(self.open_jobs.list(), gone)?;
                        let gone = "the master of the session is gone: open another one";
                        self.close_jobs(self.open_jobs.list_sessions(), gone)?;
                        self.member.connect_limit = self.member.lost_limit;
                        break;
                    }
                    Ok(MemberEvent::Message(ControlBody::Gone { member, .. })) => {
                        self.events.tell(&ClusterEvent::ServerLost(member.name));
                    }
                    Ok(MemberEvent::LeaseExpired { before }) => {
                        let jobs = self.open_jobs.list_before(before);
                        tracing::warn!(?jobs, "the lease of this server has expired: its jobs have ended");
                        self.close_jobs(jobs, "the lease of the server has expired")?;
                    }
                    Ok(MemberEvent::Message(_) | MemberEvent::Reconnected)
                    | Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
            if self.interrupt.is_raised() {
                membership.leave();
                self.log.discard();
                return Ok(());
            }
        }
    }

    /// Says which jobs were open on this server and end with it; they go on from their checkpoints.
    fn ended_jobs_text(&self) -> String {
        match &self.open_jobs.list()[..] {
            [] => String::new(),
            jobs => format!("; jobs {jobs:?} were open on this server: their workers name their checkpoints"),
        }
    }

    /// Closes jobs: they use memory, and a new master will use the same job numbers.
    fn close_jobs(&self, jobs: Vec<JobId>, reason: &str) -> Result<(), Error> {
        self.events.tell(&ClusterEvent::JobsEnd(jobs.clone()));
        for job in jobs {
            for lane in 0..self.all_lanes {
                self.close(job, lane, reason).map_err(server_error(&self.own))?;
            }
        }
        Ok(())
    }

    fn close(&self, job: JobId, lane: u16, reason: &str) -> Result<(), rpc::Error> {
        let hello = Hello { request: 1, token: self.token.clone(), role: Role::Tool, lane };
        let (mut sender, mut receiver, _) = open(&self.own, SELF_CONNECT_LIMIT, &hello)?;
        let reason = reason.to_owned();
        sender.send(&Message::CloseJob(CloseJob { request: 2, job, reason }))?;
        receiver.set_timeout(Some(SELF_CONNECT_LIMIT))?;
        receiver.receive().map(drop)
    }
}
