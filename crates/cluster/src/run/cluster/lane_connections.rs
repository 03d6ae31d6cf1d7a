//! Connections to lanes for code that is not a task: a request goes to all lanes at once, or to one.

use std::time::{Duration, Instant};

use rpc::Message;
use rpc::message::{Hello, JobId, RequestId, Role, Welcome};
use rpc::transport::{Receiver, Sender};
use worker::{LaneAddress, connect_lane};

use crate::error::Error;

/// Maximum wait for a connection to a lane.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Maximum wait for a server that refuses connections: one that was killed has so long to come back.
const AWAY_LIMIT: Duration = Duration::from_secs(2);
/// First pause before a full server is tried again, unless it requests another; doubled after each attempt.
const FULL_PAUSE: Duration = Duration::from_millis(50);
/// Maximum wait for the answers of the other lanes when one lane is lost.
const LOSS_LIMIT: Duration = Duration::from_secs(1);
/// Time between two checks for cancellation while waiting for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Connections to lanes, in their order.
pub(super) struct LaneConnections {
    /// [`Role::JobTool`] of a job that is open on the lanes; [`Role::Tool`] of one that is to be opened.
    role: Role,
    lanes: Vec<LaneConnection>,
    token: Vec<u8>,
    request: RequestId,
    /// Whether the answers are not needed any more.
    is_cancelled: Box<dyn Fn() -> bool + Send>,
    /// Whether a lane that cannot be reached is lost for good. `None`: it is, at once.
    is_lost: Option<Box<dyn Fn() -> bool + Send>>,
    /// Whether the server of this name is lost, and its standby has its lanes.
    is_server_lost: Box<dyn Fn(&str) -> bool + Send>,
}

struct LaneConnection {
    address: LaneAddress,
    sender: Sender,
    receiver: Receiver,
    /// That of the server: another process does not have the state of the lane.
    incarnation: u64,
    /// The request without an answer, to be sent again over another connection.
    unanswered: Option<Message>,
    /// Whether it was opened when the server of the lane was lost, so to the standby.
    is_at_standby: bool,
}

impl LaneConnections {
    /// Connects to all lanes of a job with a role, which is that of a tool. Where `is_server_lost` returns true of the server of a lane, its standby has the lane;
    /// a connection to such a server is opened again, because a machine that is frozen or cut off does not close it.
    pub(super) fn connect(
        role: Role,
        lanes: &[LaneAddress],
        token: &[u8],
        is_server_lost: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Self, Error> {
        let connect = |lane: &LaneAddress| {
            let (sender, receiver, welcome) =
                connect_with_retry(lane, &hello(role, token, lane), &is_server_lost)
                    .map_err(Error::server(lane))?;
            let (address, incarnation) = (lane.clone(), welcome.incarnation);
            let (unanswered, is_at_standby) = (None, is_server_lost(&lane.server));
            Ok(LaneConnection { address, sender, receiver, incarnation, unanswered, is_at_standby })
        };
        let lanes = lanes.iter().map(connect).collect::<Result<Vec<_>, Error>>()?;
        let (token, is_cancelled) = (token.to_vec(), Box::new(|| false));
        Ok(Self {
            role,
            lanes,
            token,
            request: 1,
            is_cancelled,
            is_lost: None,
            is_server_lost: Box::new(is_server_lost),
        })
    }

    /// Connects again when a connection ends, and repeats the request that was not answered: a server with a write-ahead
    /// log comes back as it was. That goes on until `is_lost` returns true or the time for the answer is over. All requests
    /// must be such that may be repeated.
    pub(super) fn set_reconnection(&mut self, is_lost: impl Fn() -> bool + Send + 'static) {
        self.is_lost = Some(Box::new(is_lost));
    }

    /// The job is open on all lanes from now on.
    pub(super) fn set_open(&mut self, job: JobId) {
        self.role = Role::JobTool { job };
    }

    /// Lets waits for answers end with an error once `is_cancelled` returns true.
    pub(super) fn set_cancellation(&mut self, is_cancelled: impl Fn() -> bool + Send + 'static) {
        self.is_cancelled = Box::new(is_cancelled);
    }

    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The lane with this index.
    pub(super) fn lane(&self, index: usize) -> &LaneAddress {
        &self.lanes[index].address
    }

    /// Sends a request to all lanes and then receives the replies, so that lanes work in parallel. Returns the reply of
    /// each lane, which may be a fault, or why there is none. All replies arrive within `limit`, or soon after one is known
    /// to be missing.
    pub(super) fn request_all(
        &mut self,
        limit: Duration,
        message: impl FnMut(usize, RequestId) -> Message,
    ) -> Vec<Result<Message, Error>> {
        let all: Vec<usize> = (0..self.lanes.len()).collect();
        self.request_some(&all, limit, message)
    }

    /// Like [`Self::request_all`], for some of the lanes.
    pub(super) fn request_some(
        &mut self,
        some: &[usize],
        limit: Duration,
        message: impl FnMut(usize, RequestId) -> Message,
    ) -> Vec<Result<Message, Error>> {
        let sent = self.send_some(some, message);
        self.receive_some(some, sent, limit)
    }

    /// Sends a request to some of the lanes. The replies are received before the next request is sent.
    pub(super) fn send_some(
        &mut self,
        some: &[usize],
        mut message: impl FnMut(usize, RequestId) -> Message,
    ) -> Vec<Result<(), Error>> {
        self.request += 1;
        let request = self.request;
        let may_repeat = self.is_lost.is_some();
        let mut send = |index: usize| {
            let LaneConnection { address, sender, unanswered, .. } = &mut self.lanes[index];
            let message = message(index, request);
            let sent = sender.send(&message);
            *unanswered = may_repeat.then_some(message);
            match sent {
                // The receiver finds that the connection has ended.
                Err(error) if may_repeat && is_end_of_connection(&error) => Ok(()),
                sent => sent.map_err(Error::server(&*address)),
            }
        };
        some.iter().map(|lane| send(*lane)).collect()
    }

    /// Receives the replies of lanes to a request that was sent to them with this result; as [`Self::request_all`].
    pub(super) fn receive_some(
        &mut self,
        some: &[usize],
        sent: Vec<Result<(), Error>>,
        limit: Duration,
    ) -> Vec<Result<Message, Error>> {
        let mut deadline = Instant::now() + limit;
        let mut replies = Vec::new();
        for (lane, sent) in some.iter().zip(sent) {
            let reply = sent.and_then(|()| self.receive(*lane, deadline));
            if reply.is_err() {
                deadline = deadline.min(Instant::now() + LOSS_LIMIT);
            }
            replies.push(reply);
        }
        replies
    }

    /// Receives the answer of a lane.
    fn receive(&mut self, lane: usize, deadline: Instant) -> Result<Message, Error> {
        loop {
            let LaneConnection { address, receiver, unanswered, is_at_standby, .. } = &mut self.lanes[lane];
            let rest = deadline.saturating_duration_since(Instant::now());
            let received =
                receiver.set_timeout(Some(rest.min(POLL_INTERVAL))).and_then(|()| receiver.receive());
            match received {
                Err(error @ rpc::Error::TimedOut { .. })
                    if !*is_at_standby
                        && address.standby.is_some()
                        && unanswered.is_some()
                        && (self.is_server_lost)(&address.server) =>
                {
                    self.reconnect(lane, deadline, error)?;
                }
                Err(rpc::Error::TimedOut { .. }) if !rest.is_zero() && !(self.is_cancelled)() => {}
                Err(error) if is_end_of_connection(&error) && unanswered.is_some() => {
                    self.reconnect(lane, deadline, error)?;
                }
                received => {
                    *unanswered = None;
                    return received.map_err(Error::server(&*address));
                }
            }
        }
    }

    /// Connects to a lane again and repeats its request. Returns `error`, with which the connection ended, if the lane does
    /// not come back.
    fn reconnect(&mut self, lane: usize, deadline: Instant, error: rpc::Error) -> Result<(), Error> {
        let (token, is_cancelled) = (&self.token, &self.is_cancelled);
        let is_lost = || is_cancelled() || self.is_lost.as_ref().is_none_or(|is_lost| is_lost());
        let connection = &mut self.lanes[lane];
        let hello = hello(self.role, token, &connection.address);
        let has_standby = connection.address.standby.is_some();
        while !is_lost() && Instant::now() < deadline {
            match connect_lane(&connection.address, POLL_INTERVAL, &hello, &self.is_server_lost) {
                // Another process is at the addresses of a primary, and the standby has not taken over yet.
                Ok((_, _, welcome)) if welcome.incarnation != connection.incarnation && has_standby => {
                    std::thread::sleep(FULL_PAUSE);
                }
                Ok((_, _, welcome)) if welcome.incarnation != connection.incarnation => break,
                Ok((sender, receiver, _)) => {
                    connection.is_at_standby = (self.is_server_lost)(&connection.address.server);
                    (connection.sender, connection.receiver) = (sender, receiver);
                    let request = connection.unanswered.as_ref().expect("the caller has seen it");
                    // If this fails, the receiver finds that the connection has ended.
                    let _ = connection.sender.send(request);
                    return Ok(());
                }
                Err(rpc::Error::Refused(fault)) if !fault.kind.retry_may_help() => break,
                Err(_) => std::thread::sleep(FULL_PAUSE),
            }
        }
        Err(Error::server(&connection.address)(error))
    }
}

fn hello(role: Role, token: &[u8], lane: &LaneAddress) -> Hello {
    Hello { request: 1, token: token.to_vec(), role, lane: lane.lane }
}

/// Whether the other end may be reached over another connection.
fn is_end_of_connection(error: &rpc::Error) -> bool {
    matches!(error, rpc::Error::Closed | rpc::Error::Io { .. })
}

/// Whether nobody listens at an address: the process there has died, or its socket is not there, or not there again.
fn is_away(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound)
}

/// Connects to a server. If all its connection slots are taken, it retries for a while: unauthenticated connections are
/// closed when they do not send their hello in time. If nobody listens, it waits for a process that is started again.
fn connect_with_retry(
    lane: &LaneAddress,
    hello: &Hello,
    is_lost: impl Fn(&str) -> bool,
) -> Result<(Sender, Receiver, Welcome), rpc::Error> {
    let start = Instant::now();
    let deadline = start + CONNECT_LIMIT;
    let mut pause = FULL_PAUSE;
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        let error = match connect_lane(lane, rest, hello, &is_lost) {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        pause = match &error {
            rpc::Error::Refused(fault) if fault.kind.retry_may_help() => {
                Duration::from_millis(fault.retry_after_ms.into()).max(FULL_PAUSE)
            }
            // A reset may destroy the refusal that a full server sent.
            rpc::Error::Closed => pause * 2,
            rpc::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::ConnectionReset => {
                pause * 2
            }
            rpc::Error::Io { source, .. } if is_away(source) && start.elapsed() < AWAY_LIMIT => FULL_PAUSE,
            _ => return Err(error),
        };
        if Instant::now() + pause >= deadline {
            return Err(error);
        }
        std::thread::sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_server_full_of_strangers_is_asked_again() {
        let limits = rpc::Limits {
            connections: 1,
            hello_time: Duration::from_millis(300),
            close_time: Duration::from_millis(50),
            ..rpc::Limits::default()
        };
        let config = server::ServerConfig { limits, ..server::ServerConfig::default() };
        let stop = rpc::Stop::new();
        let (ready, is_ready) = channel();
        let serving = {
            let stop = stop.clone();
            std::thread::spawn(move || {
                server::run(config, stop, move |ports| {
                    ready.send(ports.frames[0].address().clone()).expect("the test listens");
                    Ok::<(), server::Error>(())
                })
            })
        };
        let address = is_ready.recv().expect("it starts");
        let rpc::Address::Tcp(place) = &address else { panic!("{address}") };
        let other = TcpStream::connect(place).expect("it has one place");
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
        let first = rpc::open(&address, CONNECT_LIMIT, &hello);
        assert!(first.is_err(), "the other has the place");
        let lane = LaneAddress {
            addresses: vec![address.to_string()],
            lane: 0,
            server: String::new(),
            standby: None,
        };
        connect_with_retry(&lane, &hello, |_| false).expect("the other has not said hello in time");
        drop(other);
        stop.raise();
        serving.join().expect("it does not panic").expect("it ends in order");
    }

    #[test]
    fn a_server_that_is_started_again_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("server");
        comes_back(&path);
        // The file of a process that was killed.
        let path = folder.path().join("killed");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("the name is free"));
        comes_back(&path);
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
        let dead = folder.path().join("dead");
        drop(std::os::unix::net::UnixListener::bind(&dead).expect("a free name"));
        for path in [dead, folder.path().join("absent")] {
            let start = Instant::now();
            let addresses = vec![format!("unix:{}", path.display())];
            let lane = LaneAddress { addresses, lane: 0, server: String::new(), standby: None };
            let error = connect_with_retry(&lane, &hello, |_| false).expect_err("it does not come back");
            assert!(start.elapsed() >= AWAY_LIMIT && error.is_loss(), "{error}");
        }
    }

    /// A server begins to listen at `path` while it is connected.
    fn comes_back(path: &std::path::Path) {
        let address = rpc::Address::Unix(path.to_owned());
        let config =
            server::ServerConfig { listen: vec![address.clone()], ..server::ServerConfig::default() };
        let stop = rpc::Stop::new();
        let raised = stop.clone();
        let serving = std::thread::spawn(move || {
            std::thread::sleep(4 * FULL_PAUSE);
            server::run(config, raised, |_| Ok::<(), server::Error>(()))
        });
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
        let addresses = vec![address.to_string()];
        let lane = LaneAddress { addresses, lane: 0, server: String::new(), standby: None };
        connect_with_retry(&lane, &hello, |_| false).expect("it comes back");
        stop.raise();
        serving.join().expect("it does not panic").expect("it ends in order");
    }
}
