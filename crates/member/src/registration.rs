//! One connection to the master, from `Hello` to `Registered`.

use std::io;
use std::time::{Duration, Instant};

use rpc::message::{Control, ControlBody, Hello, JobId, Role};
use rpc::{Error, Message, Receiver, Sender, open};

use crate::config::MemberConfig;

/// First pause between two attempts; it doubles up to [`PAUSE_LIMIT`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause between two attempts.
const PAUSE_LIMIT: Duration = Duration::from_secs(1);

/// Shortest limit of an attempt to connect.
pub(crate) const MIN_ATTEMPT_TIME: Duration = Duration::from_millis(500);

/// A connection on which the member is registered.
#[derive(Debug)]
pub(crate) struct RegisteredConnection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) lease: MemberLease,
    /// The runs of jobs that the member is part of.
    pub(crate) runs: Vec<JobId>,
}

/// What the master has granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberLease {
    pub(crate) id: u32,
    pub(crate) lease: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) incarnation: u64,
}

/// Pauses that grow.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(PAUSE_LIMIT);
        pause
    }
}

/// Retries until `connect_limit`, so that members may start before their master.
pub(crate) fn register_with_retry(config: &MemberConfig) -> Result<RegisteredConnection, Error> {
    let start = Instant::now();
    let deadline = start + config.connect_limit;
    let (mut attempt_count, mut pauses) = (0, Backoff::new());
    loop {
        attempt_count += 1;
        let began = Instant::now();
        let rest = deadline.saturating_duration_since(began).max(MIN_ATTEMPT_TIME);
        let error = match try_register(config, rest, None) {
            Err(error) if is_transient(&error) => error,
            Err(error) => return Err(error),
            Ok(AttemptResult::Registered(contact)) => return Ok(contact),
            Ok(AttemptResult::MasterRestarted { .. }) => {
                unreachable!("no earlier incarnation of the master was given")
            }
        };
        // There is an attempt after the deadline, because this process may have been suspended in one before it.
        if began >= deadline {
            let what = format!(
                "no master answers at {}: {attempt_count} attempts in {:.1} s, the last: {error}. Start `seraphim \
                 master` there, or give the address of a running master with --master",
                config.master,
                start.elapsed().as_secs_f64()
            );
            return Err(Error::Io { what, source: source_of(error) });
        }
        let rest = deadline.saturating_duration_since(Instant::now());
        std::thread::sleep(pauses.next().min(rest));
    }
}

/// Whether another attempt may help.
pub(crate) fn is_transient(error: &Error) -> bool {
    match error {
        Error::Closed | Error::TimedOut { .. } | Error::Io { .. } => true,
        Error::Refused(fault) => fault.kind.retry_may_help(),
        _ => false,
    }
}

fn source_of(error: Error) -> io::Error {
    match error {
        Error::Io { source, .. } => source,
        Error::TimedOut { .. } => io::ErrorKind::TimedOut.into(),
        _ => io::ErrorKind::ConnectionAborted.into(),
    }
}

/// The result of an attempt.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum AttemptResult {
    Registered(RegisteredConnection),
    /// Another master answers. The member is not registered.
    MasterRestarted {
        /// The runs of jobs that another run goes on with.
        continued: Vec<JobId>,
    },
}

/// Connects and registers; `limit` is for each of the two. With `known`, the master must have this incarnation.
pub(crate) fn try_register(
    config: &MemberConfig,
    limit: Duration,
    known: Option<u64>,
) -> Result<AttemptResult, Error> {
    let hello = Hello { request: 1, token: config.token.clone(), role: Role::Member, lane: 0 };
    let (mut sender, mut receiver, welcome) = open(&config.master.locate()?, limit, &hello)?;
    if known.is_some_and(|known| known != welcome.incarnation) {
        sender.send(&Message::Control(Control { request: 2, body: ControlBody::AskContinuedRuns }))?;
        receiver.set_timeout(Some(limit))?;
        return match receiver.receive()? {
            Message::Control(Control { body: ControlBody::ContinuedRuns { runs }, .. }) => {
                Ok(AttemptResult::MasterRestarted { continued: runs })
            }
            Message::Fault(fault) => Err(Error::Refused(fault)),
            other => Err(Error::Unexpected { expected: "ContinuedRuns", actual: other.kind_name() }),
        };
    }
    let body = ControlBody::Register {
        name: config.name.clone(),
        incarnation: config.incarnation,
        host: config.host.clone(),
        member: config.kind.clone(),
        restored: config.restored && known.is_none(),
    };
    sender.send(&Message::Control(Control { request: 2, body }))?;
    receiver.set_timeout(Some(limit))?;
    match receiver.receive()? {
        Message::Control(Control {
            body: ControlBody::Registered { id, lease_ms, heartbeat_ms, incarnation, runs },
            ..
        }) => {
            let (lease, heartbeat) = (Duration::from_millis(lease_ms), Duration::from_millis(heartbeat_ms));
            let registered = MemberLease { id, lease, heartbeat, incarnation };
            Ok(AttemptResult::Registered(RegisteredConnection { sender, receiver, lease: registered, runs }))
        }
        Message::Fault(fault) => Err(Error::Refused(fault)),
        other => Err(Error::Unexpected { expected: "Registered", actual: other.kind_name() }),
    }
}
