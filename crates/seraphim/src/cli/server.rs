//! `seraphim server --master ADDRESS`.

use std::sync::mpsc::{Receiver, Sender as Queue, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::interrupt::Interrupt;
use engine::runtime::cluster::socket_folder::SocketFolder;
use engine::{Environment, Error, Exit};
use member::{MemberConfig, MemberEvent, join};
use rpc::Message;
use rpc::message::control::{ControlBody, MemberKind};
use rpc::message::{CloseJob, Hello, JobId, Role};
use rpc::stop::Stop;
use rpc::transport::{Address, open};
use serde_json::json;
use server::{ClusterEvent, ClusterEvents, OpenJobs};

use super::cluster_args::{
    host, http_arg, incarnation, listen, listen_arg, log_args, lost_limit, lost_limit_arg, master,
    master_arg, memory_limit, start_log, token, token_arg,
};
use super::server_log::{self, ServerLog};

/// Maximum number of lanes of one server.
const LANE_LIMIT: i64 = 256;
/// Maximum wait for a connection to a lane of this process.
const SELF_CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// What is told when the process is asked to stop.
const STOPPING: &str = "stopping: this server leaves, and jobs with rows on it go on with other members from their last checkpoints; \
     press Ctrl-C again to end at once";
/// Time between two checks of the interrupt flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn command() -> Command {
    Command::new("server")
        .about("Hold partitions of the matrices of a cluster's jobs")
        .arg(master_arg())
        .arg(listen_arg("127.0.0.1:0"))
        .arg(http_arg())
        .args(member_args())
        .arg(
            Arg::new("lanes")
                .long("lanes")
                .value_name("N")
                .value_parser(clap::value_parser!(u16).range(1..=LANE_LIMIT))
                .help("Number of lanes (threads), each with its own partitions [default: all cores]"),
        )
        .arg(
            Arg::new("memory-limit")
                .long("memory-limit")
                .value_name("BYTES")
                .help("Memory limit for parameters, as in 2GiB [default: half of the machine's]"),
        )
        .args(server_log::args())
        .arg(token_arg())
        .args(log_args())
}

/// Arguments that servers and workers share.
pub(super) fn member_args() -> [Arg; 3] {
    [
        Arg::new("name")
            .long("name")
            .value_name("NAME")
            .help("Name, unique in the cluster [default: kind, host and process]"),
        lost_limit_arg(),
        Arg::new("end-with-parent").long("end-with-parent").action(ArgAction::SetTrue).hide(true),
    ]
}

/// Sets the message that a server or worker prints when it is asked to stop. With `--end-with-parent` the process also
/// ends when its parent does.
pub(super) fn set_stop_behaviour(matches: &ArgMatches, interrupt: &Interrupt, stopping: &'static str) {
    interrupt.set_stop_message(stopping);
    if matches.get_flag("end-with-parent") {
        interrupt.end_with_parent();
    }
}

pub(super) fn member(matches: &ArgMatches, what: &str, kind: MemberKind) -> Result<MemberConfig, Error> {
    let host = host();
    let name = matches.get_one::<String>("name").cloned();
    Ok(MemberConfig {
        master: master(matches)?,
        token: token(matches)?,
        name: name.unwrap_or_else(|| format!("{what}-{host}")),
        host,
        incarnation: incarnation(),
        restored: false,
        kind,
        connect_limit: Duration::from_secs(5),
        lost_limit: lost_limit(matches),
    })
}

pub(super) fn run(matches: &ArgMatches, environment: Environment<'_>) -> Result<Exit, Error> {
    let interrupt = environment.interrupt;
    start_log(matches)?;
    set_stop_behaviour(matches, interrupt, STOPPING);
    let token = token(matches)?;
    let lanes =
        matches.get_one::<u16>("lanes").copied().unwrap_or_else(|| engine::machine::core_count() as u16);
    let memory_limit_bytes = memory_limit(matches)?;
    let open_jobs = OpenJobs::default();
    let events = ClusterEvents::default();
    let http = listen("http", matches, &token)?;
    let mut listen = listen("listen", matches, &token)?;
    let mut member = member(matches, "server", MemberKind::Worker { slots: 1, group: String::new() })?;
    let log = ServerLog::open(matches, lanes, &mut listen, &mut member)?;
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
        modules: engine::runtime::modules::OF_JOBS,
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
        let (addresses, http) = (texts(&addresses), texts(&http));
        log.set_place(&member.name, &addresses)?;
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
    ended.map(|()| Exit::Done)
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
            let (membership, events) =
                join(self.member.clone()).map_err(engine::runtime::errors::server_error(&master))?;
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
                self.close(job, lane, reason).map_err(engine::runtime::errors::server_error(&self.own))?;
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
