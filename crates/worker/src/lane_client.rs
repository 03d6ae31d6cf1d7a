//! The client of a lane, which agents, the tools of jobs and sessions share. It opens a connection with a role and a token,
//! writes and reads frames, and connects again by the rule of `retry`.
//!
//! An agent decides by itself what it sends again ([`crate::AgentState`]). For others the client repeats the request without an
//! answer, if their [`RetryPolicy`] allows it.
//!
//! | user | what is sent again after a loss |
//! |---|---|
//! | [`crate::RemoteAgent`], of a task | its state machine decides: pushes after the position that the lane reports, and requests without an answer |
//! | the driver, the runner of a session, access to whole matrices | the request without an answer, until the master knows that the server is lost: all of them may be repeated |
//! | [`crate::ParameterSession`], of a loop of a program's own | nothing: the call fails, and the next one connects again |
//!
//! All three block. The agent also sends to all lanes before it reads from one. Each has connections of its own: tasks that shared one were
//! not faster (jobs of 2, 4 and 8 tasks took 0.90 to 1.05 times as long without sharing), and a step of four tasks was slower.

mod retry;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc::message::{Fault, FaultKind, Hello, Push, PushFunction, RequestId, Role, Standby, Welcome};
use rpc::{Closer, Message, Receiver, Sender};

pub use retry::RetryPolicy;
pub(crate) use retry::{Backoff, may_come_back};
use rpc::layout::LaneAddress;

/// Size of the write buffer. Pushes without an answer are collected and sent in one write: with the next other message
/// to their lane, at the latest with the tick.
const WRITE_BUFFER_BYTES: u64 = 32 << 10;
/// Longest attempt to connect to one address.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(3);
/// Longest attempt to connect to one of the two lanes that may have a replicated job.
const REPLICA_LIMIT: Duration = Duration::from_secs(1);
/// Time without an answer after which the standby is asked whether it has taken over: the server may stand still.
const STANDBY_PAUSE: Duration = Duration::from_secs(1);
/// Why a process with another incarnation is refused.
pub(crate) const RESTARTED: &str = "it was restarted and has lost its part of this job: start the job again";

/// A client of one lane, with at most one connection.
#[derive(Debug)]
pub struct LaneClient {
    address: LaneAddress,
    hello: Hello,
    link: Option<Link>,
    /// That of the server of the first connection: another process does not have the state of the lane.
    incarnation: Option<u64>,
    /// Whether the standby has taken over, so that the primary is not tried any more.
    is_at_standby: bool,
    /// The request without an answer, to be sent again over another connection.
    unanswered: Option<Arc<Message>>,
}

#[derive(Debug)]
struct Link {
    sender: Sender,
    receiver: Receiver,
    /// Messages that are not written yet.
    write_buffer: Vec<Arc<Message>>,
    write_buffer_bytes: u64,
}

impl LaneClient {
    /// A client without a connection. `token` is the secret of the cluster, empty when there is none.
    pub fn new(address: LaneAddress, role: Role, token: &[u8]) -> Self {
        let hello = Hello { request: 1, token: token.to_vec(), role, lane: address.lane };
        Self { address, hello, link: None, incarnation: None, is_at_standby: false, unanswered: None }
    }

    pub fn address(&self) -> &LaneAddress {
        &self.address
    }

    /// Sets the role of later connections.
    pub fn set_role(&mut self, role: Role) {
        self.hello.role = role;
    }

    pub fn is_open(&self) -> bool {
        self.link.is_some()
    }

    pub(crate) fn close(&mut self) {
        self.link = None;
    }

    /// A handle that closes the connection from another thread.
    pub(crate) fn closer(&self) -> Option<Closer> {
        self.link.as_ref().map(|link| link.sender.closer())
    }

    /// Connects, and tries again as long as a server is full or away for a short time.
    pub fn connect(&mut self, policy: &RetryPolicy) -> Result<(), rpc::Error> {
        let now = Instant::now();
        self.connect_until(now + retry::FULL_LIMIT, now + retry::AWAY_LIMIT, policy)
    }

    /// Connects until one of the deadlines; the second one counts while nobody listens.
    fn connect_until(
        &mut self,
        deadline: Instant,
        away_deadline: Instant,
        policy: &RetryPolicy,
    ) -> Result<(), rpc::Error> {
        let mut backoff = Backoff::default();
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let Err(error) = self.connect_once(rest, &policy.is_server_lost) else { return Ok(()) };
            let (end, requested) = match &error {
                // Nobody listens: the process has died, or its socket is not there, or not there again.
                rpc::Error::Io { .. } => (away_deadline, Duration::ZERO),
                rpc::Error::Refused(fault) => (deadline, fault.retry_after()),
                _ => (deadline, Duration::ZERO),
            };
            let retry_at = Instant::now() + backoff.next(requested);
            if !may_come_back(&error) || retry_at >= end {
                return Err(error);
            }
            policy.wait_until(retry_at);
            if policy.is_over() {
                return Err(error);
            }
        }
    }

    /// Makes one attempt to connect, by the first address that accepts. Sockets of this machine are tried first. If the lane
    /// cannot be reached and has a standby, that is tried, unless the role names no job: it refuses unless it has taken the
    /// job over. Servers of which `is_server_lost` returns true are not tried.
    pub fn connect_once(
        &mut self,
        limit: Duration,
        is_server_lost: impl Fn(&str) -> bool,
    ) -> Result<Welcome, rpc::Error> {
        self.link = None;
        let (standby, server) = (self.address.standby.as_ref(), &self.address.server);
        let limit = limit.min(if standby.is_some() { REPLICA_LIMIT } else { ATTEMPT_LIMIT });
        let mut opened = Err(rpc::Error::Closed);
        if standby.is_none() || !(self.is_at_standby || is_server_lost(server)) {
            opened = self.open(None, limit);
        }
        let standby = standby.filter(|standby| !is_server_lost(&standby.server));
        match &opened {
            // Another process may be at the addresses of the primary, which knows nothing of the job.
            Err(rpc::Error::Refused(fault)) if fault.kind != FaultKind::NoSuchJob => {}
            Err(_) if standby.is_some() && self.hello.role.job().is_some() => {
                opened = self.open(standby, limit);
                self.is_at_standby |= opened.is_ok();
            }
            _ => {}
        }
        let (link, welcome) = opened?;
        (self.link, self.incarnation) = (Some(link), Some(welcome.incarnation));
        Ok(welcome)
    }

    /// Opens a connection to the lane, or to its standby.
    fn open(&self, standby: Option<&Standby>, limit: Duration) -> Result<(Link, Welcome), rpc::Error> {
        let LaneAddress { addresses, lane, .. } = &self.address;
        let (addresses, lane) = standby.map_or((addresses, *lane), |to| (&to.addresses, to.lane));
        let hello = Hello { lane, ..self.hello.clone() };
        let (sender, receiver, welcome) = rpc::open_first(addresses, limit, &hello)?;
        if self.incarnation.is_some_and(|before| before != welcome.incarnation) {
            let (request, kind, text) = (hello.request, FaultKind::NoSuchJob, RESTARTED.to_owned());
            return Err(rpc::Error::Refused(Fault { request, kind, text, retry_after_ms: 0 }));
        }
        Ok((Link { sender, receiver, write_buffer: Vec::new(), write_buffer_bytes: 0 }, welcome))
    }

    /// Sends a request, whose answer [`Self::receive_answer`] returns. If the policy lets requests be repeated, it need not
    /// have a connection.
    pub fn request(&mut self, message: Message, policy: &RetryPolicy) -> Result<(), rpc::Error> {
        let message = Arc::new(message);
        self.unanswered = policy.is_lost.is_some().then(|| Arc::clone(&message));
        match self.send(&message, false) {
            // The receiver finds that the connection has ended.
            Err(rpc::Error::Closed | rpc::Error::Io { .. }) if self.unanswered.is_some() => Ok(()),
            sent => sent,
        }
    }

    /// Receives the answer to a request, which may be a fault. Answers to earlier requests, for which a caller did not wait to
    /// the end, are dropped.
    pub fn receive_answer(
        &mut self,
        request: RequestId,
        deadline: Instant,
        policy: &RetryPolicy,
    ) -> Result<Message, rpc::Error> {
        let mut asked_at = Instant::now();
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let error = match self.receive(rest.min(retry::POLL_INTERVAL)) {
                Ok(answer) => match request_of(&answer) {
                    Some(earlier) if (1..request).contains(&earlier) => continue,
                    Some(later) if later > request => {
                        self.link = None;
                        rpc::Error::Unexpected { expected: "another answer", actual: answer.kind_name() }
                    }
                    _ => {
                        self.unanswered = None;
                        return Ok(answer);
                    }
                },
                Err(error) => error,
            };
            let is_lost = match &error {
                rpc::Error::TimedOut { .. } if rest.is_zero() || (policy.is_cancelled)() => false,
                rpc::Error::TimedOut { .. } if !self.finds_takeover(&mut asked_at, policy) => continue,
                rpc::Error::TimedOut { .. } | rpc::Error::Closed | rpc::Error::Io { .. } => true,
                _ => false,
            };
            let may_repeat = is_lost && !rest.is_zero() && !policy.is_over();
            let Some(message) = self.unanswered.take().filter(|_| may_repeat) else { return Err(error) };
            if self.connect_until(deadline, deadline, policy).is_err() {
                return Err(error);
            }
            // If this fails, the receiver finds that the connection has ended.
            let _ = self.send(&message, false);
            self.unanswered = Some(message);
        }
    }

    /// Asks the standby of a lane that does not answer whether it has taken over: before, it refuses everybody. Then the
    /// connection to the lane is closed.
    fn finds_takeover(&mut self, asked_at: &mut Instant, policy: &RetryPolicy) -> bool {
        let is_due = asked_at.elapsed() >= STANDBY_PAUSE || (policy.is_server_lost)(&self.address.server);
        let standby = self.address.standby.as_ref();
        if standby.is_none() || !is_due || self.is_at_standby || self.hello.role.job().is_none() {
            return false;
        }
        *asked_at = Instant::now();
        self.is_at_standby = self.open(standby, REPLICA_LIMIT).is_ok();
        self.link.take_if(|_| self.is_at_standby);
        self.is_at_standby
    }

    /// Sends a message. It is buffered if it is a push without an answer or `is_corked`. After an error other than that it is
    /// too long there is no connection.
    pub(crate) fn send(&mut self, message: &Arc<Message>, is_corked: bool) -> Result<(), rpc::Error> {
        let link = self.link.as_mut().ok_or(rpc::Error::Closed)?;
        let is_silent = matches!(
            **message,
            Message::Push(Push { request: 0, .. }) | Message::PushFunction(PushFunction { request: 0, .. })
        );
        link.write_buffer.push(Arc::clone(message));
        link.write_buffer_bytes += message.frame_bytes();
        if (is_corked || is_silent) && link.write_buffer_bytes < WRITE_BUFFER_BYTES {
            return Ok(());
        }
        self.flush()
    }

    /// Writes the buffered messages. Reads answers meanwhile if the lane does not read.
    pub(crate) fn flush(&mut self) -> Result<(), rpc::Error> {
        let Some(link) = self.link.as_mut().filter(|link| !link.write_buffer.is_empty()) else {
            return Ok(());
        };
        let sent = link.sender.send_all_reading(&link.write_buffer, &mut link.receiver);
        link.write_buffer.clear();
        link.write_buffer_bytes = 0;
        self.link.take_if(|_| !matches!(sent, Ok(()) | Err(rpc::Error::TooLong { .. })));
        sent
    }

    /// Receives the next message. After an error other than that the time is over there is no connection.
    pub(crate) fn receive(&mut self, limit: Duration) -> Result<Message, rpc::Error> {
        let link = self.link.as_mut().ok_or(rpc::Error::Closed)?;
        // Setting the same limit again costs no system call.
        let received = link.receiver.set_timeout(Some(limit)).and_then(|()| link.receiver.receive());
        self.link.take_if(|_| !matches!(received, Ok(_) | Err(rpc::Error::TimedOut { .. })));
        received
    }

    /// The next message if it has already arrived. After an error there is no connection.
    pub(crate) fn receive_now(&mut self) -> Result<Option<Message>, rpc::Error> {
        let received = self.link.as_mut().ok_or(rpc::Error::Closed)?.receiver.receive_now();
        self.link.take_if(|_| received.is_err());
        received
    }
}

/// The request that a message of a lane or a master answers, if it has one.
fn request_of(answer: &Message) -> Option<RequestId> {
    match answer {
        Message::SessionMap(map) => Some(map.request),
        Message::Done(done) => Some(done.request),
        Message::Pulled(pulled) => Some(pulled.request),
        Message::PulledFunction(pulled) => Some(pulled.request),
        Message::Committed(committed) => Some(committed.request),
        Message::ExportPage(page) => Some(page.request),
        Message::StatsReply(reply) => Some(reply.request),
        Message::Fault(fault) => Some(fault.request),
        _ => None,
    }
}
