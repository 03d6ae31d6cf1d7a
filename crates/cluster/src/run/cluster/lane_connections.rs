//! Connections to lanes for code that is not a task: a request goes to all lanes at once, or to one.

use std::path::Path;
use std::time::{Duration, Instant};

use rpc::Message;
use rpc::message::{Hello, RequestId, Role};
use rpc::transport::{Receiver, Sender};
use worker::{LaneAddress, connect_lane};

use crate::error::Error;
use crate::exit::Exit;

/// Maximum wait for a connection to a lane.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// First pause before a full server is tried again, unless it requests another; doubled after each attempt.
const FULL_PAUSE: Duration = Duration::from_millis(50);
/// Maximum wait for the answers of the other lanes when one lane is lost.
const LOSS_LIMIT: Duration = Duration::from_secs(1);
/// Time between two checks for cancellation while waiting for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Connections to lanes, in their order.
pub(super) struct LaneConnections {
    lanes: Vec<(LaneAddress, Sender, Receiver)>,
    request: RequestId,
    /// Whether the answers are not needed any more.
    is_cancelled: Box<dyn Fn() -> bool + Send>,
}

impl LaneConnections {
    /// Connects to all lanes.
    pub(super) fn connect(lanes: &[LaneAddress], token: &[u8]) -> Result<Self, Error> {
        let connect = |lane: &LaneAddress| {
            let is_reachable =
                |text: &String| text.strip_prefix("unix:").is_none_or(|path| Path::new(path).exists());
            if !lane.addresses.iter().any(is_reachable) {
                let text = format!("{lane} has no address that this machine can reach");
                return Err(Error::Cluster { text, exit: Exit::Io });
            }
            let hello = Hello { request: 1, token: token.to_vec(), role: Role::Tool, lane: lane.lane };
            let (sender, receiver) = connect_with_retry(lane, &hello).map_err(Error::server(lane))?;
            Ok((lane.clone(), sender, receiver))
        };
        let lanes = lanes.iter().map(connect).collect::<Result<Vec<_>, Error>>()?;
        Ok(Self { lanes, request: 1, is_cancelled: Box::new(|| false) })
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
        &self.lanes[index].0
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
        let mut send = |index: usize| {
            let (lane, sender, _) = &mut self.lanes[index];
            sender.send(&message(index, request)).map_err(Error::server(&*lane))
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

    /// Receives the next message of a lane.
    fn receive(&mut self, lane: usize, deadline: Instant) -> Result<Message, Error> {
        let (address, _, receiver) = &mut self.lanes[lane];
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let received =
                receiver.set_timeout(Some(rest.min(POLL_INTERVAL))).and_then(|()| receiver.receive());
            match received {
                Err(rpc::Error::TimedOut { .. }) if !rest.is_zero() && !(self.is_cancelled)() => {}
                received => return received.map_err(Error::server(&*address)),
            }
        }
    }
}

/// Connects to a server. If all its connection slots are taken, it retries for a while: unauthenticated connections are
/// closed when they do not send their hello in time.
fn connect_with_retry(lane: &LaneAddress, hello: &Hello) -> Result<(Sender, Receiver), rpc::Error> {
    let deadline = Instant::now() + CONNECT_LIMIT;
    let mut pause = FULL_PAUSE;
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        let error = match connect_lane(lane, rest, hello) {
            Ok((sender, receiver, _)) => return Ok((sender, receiver)),
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
        let stranger = TcpStream::connect(place).expect("it has one place");
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
        let first = rpc::open(&address, CONNECT_LIMIT, &hello);
        assert!(first.is_err(), "the stranger has the place");
        let lane = LaneAddress { addresses: vec![address.to_string()], lane: 0, server: String::new() };
        connect_with_retry(&lane, &hello).expect("the stranger has not said hello in time");
        drop(stranger);
        stop.raise();
        serving.join().expect("it does not panic").expect("it ends in order");
    }
}
