//! A master process in a thread, with real sockets on a free port, and a proxy whose connections can be cut.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use control::{Client, JobStatus, JobSubmission, SubmissionId};
use master::{JobLink, JobResult, MasterConfig, Runner, Settings};
use member::{MemberConfig, MemberEvent, Membership, join};
use rpc::message::{Member, MemberKind};
use rpc::stop::Stop;
use rpc::transport::Address;
use serde_json::Value;

/// Longest wait for anything that must arrive.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A runner that calls a function.
pub(crate) struct FnRunner<F>(pub F);

impl<F: Fn(JobLink) -> Result<Value, String> + Send + Sync> Runner for FnRunner<F> {
    fn run(&self, link: JobLink) -> Result<JobResult, String> {
        (self.0)(link).map(Into::into)
    }
}

/// A master that ends with its test.
pub(crate) struct Cluster {
    pub(crate) address: Address,
    /// Where clients connect.
    pub(crate) http: Address,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// Heartbeats and leases short enough for a test.
pub(crate) fn quick() -> Settings {
    let (heartbeat, lease) = (Duration::from_millis(20), Duration::from_secs(1));
    Settings { heartbeat, lease, ..Settings::default() }
}

/// A new id on each call.
pub(crate) fn new_id() -> SubmissionId {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    SubmissionId(u128::from(COUNT.fetch_add(1, Ordering::Relaxed)).to_le_bytes())
}

impl Cluster {
    pub(crate) fn start(settings: Settings, token: &[u8], runner: impl Runner + 'static) -> Self {
        Self::at("127.0.0.1:0", settings, token, runner)
    }

    pub(crate) fn at(listen: &str, settings: Settings, token: &[u8], runner: impl Runner + 'static) -> Self {
        let listen = vec![listen.parse().unwrap()];
        let hold_for = Duration::from_secs(5);
        let config = MasterConfig {
            listen,
            token: token.to_vec(),
            settings,
            shutdown_limit: hold_for,
            ..MasterConfig::default()
        };
        let config = config.check().unwrap();
        let (ready, is_ready) = channel();
        let stop = Stop::new();
        let wish = stop.clone();
        let thread = std::thread::spawn(move || {
            master::run(config, Arc::new(runner), wish, |ports| {
                ready.send(ports.addresses()).unwrap();
            })
            .unwrap();
        });
        let (members, clients) = is_ready.recv_timeout(LIMIT).unwrap();
        Self { address: members[0].clone(), http: clients[0].clone(), stop, thread: Some(thread) }
    }

    pub(crate) fn end(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub(crate) fn join(&self, name: &str, kind: MemberKind) -> (Membership, Receiver<MemberEvent>) {
        join(config(&self.address, name, kind)).unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.http.clone(), b"")
    }

    pub(crate) fn submit(&self, servers: u32, workers: u32, job: Value) -> u32 {
        let order = JobSubmission {
            title: "a test".into(),
            spec: job,
            servers,
            workers,
            worker_group: String::new(),
        };
        self.client().submit(new_id(), &order, LIMIT).unwrap()
    }

    pub(crate) fn status(&self) -> (Vec<(Member, Value)>, Vec<JobStatus>) {
        let status = self.client().status(LIMIT).unwrap();
        (status.members, status.jobs)
    }

    /// Polls the status until it is as wanted.
    pub(crate) fn until(&self, wanted: impl Fn(&[(Member, Value)], &[JobStatus]) -> bool) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let (members, jobs) = self.status();
            if wanted(&members, &jobs) {
                return;
            }
            assert!(Instant::now() < deadline, "{members:?} {jobs:?}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) fn worker() -> MemberKind {
    MemberKind::Worker { slots: 1, group: String::new() }
}

pub(crate) fn server() -> MemberKind {
    MemberKind::Server { addresses: vec!["tcp:127.0.0.1:1".into()], lanes: 1, memory_limit_bytes: 1 << 20 }
}

pub(crate) fn config(master: &Address, name: &str, kind: MemberKind) -> MemberConfig {
    MemberConfig {
        restored: false,
        master: master.clone().into(),
        token: Vec::new(),
        name: name.into(),
        host: "test:1".into(),
        incarnation: 1,
        kind,
        connect_limit: Duration::from_secs(5),
        lost_limit: LIMIT,
    }
}

/// The next event; panics if none arrives.
pub(crate) fn next(events: &Receiver<MemberEvent>) -> MemberEvent {
    events.recv_timeout(LIMIT).unwrap()
}

/// A proxy between a member and its master.
pub(crate) struct Proxy {
    pub(crate) address: Address,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub(crate) fn to(master: &Address) -> Self {
        let Address::Tcp(place) = master.clone() else { panic!("{master}") };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let cut = Arc::clone(&streams);
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let (Ok(near), Ok(far)) = (near, TcpStream::connect(&place)) else { continue };
                cut.lock().unwrap().push(near.try_clone().unwrap());
                cut.lock().unwrap().push(far.try_clone().unwrap());
                let (from, to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                std::thread::spawn(move || carry(from, to));
                std::thread::spawn(move || carry(far, near));
            }
        });
        Self { address, streams }
    }

    /// Resets all connections; new ones are accepted.
    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Forwards bytes in one direction until either end is closed.
pub(crate) fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(count) = from.read(&mut bytes)
        && count > 0
        && to.write_all(&bytes[..count]).is_ok()
    {}
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
