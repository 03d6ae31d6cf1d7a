//! The clients of all lanes of a job, for code that is not a task: a request goes to all lanes at once, or to some.

use std::time::{Duration, Instant};

use driver::Error;
use master::JobLink;
use rpc::Message;
use rpc::layout::LaneAddress;
use rpc::message::{JobId, RequestId, Role};
use worker::{LaneClient, RetryPolicy};

use crate::errors::server_error;

/// Maximum wait for the answers of the other lanes when one lane is lost.
const LOSS_LIMIT: Duration = Duration::from_secs(1);

/// The policy of the runner of a job, which goes on until a member is lost for good.
pub(super) fn retry_policy(link: &JobLink) -> RetryPolicy {
    let is_lost = link.member_lost();
    RetryPolicy::until(move || is_lost.is_raised(), link.lost_servers())
}

/// Clients of lanes, in their order.
pub(super) struct LaneClients {
    lanes: Vec<LaneClient>,
    request: RequestId,
    pub policy: RetryPolicy,
}

impl LaneClients {
    /// Connects to all lanes of a job with a role, which is that of a tool: [`Role::JobTool`] of a job that is open on the
    /// lanes, [`Role::Tool`] of one that is to be opened.
    pub(super) fn connect(
        role: Role,
        lanes: &[LaneAddress],
        token: &[u8],
        policy: RetryPolicy,
    ) -> Result<Self, Error> {
        let connect = |address: &LaneAddress| {
            let mut lane = LaneClient::new(address.clone(), role, token);
            lane.connect(&policy).map_err(server_error(address))?;
            Ok(lane)
        };
        let lanes = lanes.iter().map(connect).collect::<Result<Vec<_>, Error>>()?;
        Ok(Self { lanes, request: 1, policy })
    }

    /// The job is open on all lanes from now on.
    pub(super) fn set_open(&mut self, job: JobId) {
        self.lanes.iter_mut().for_each(|lane| lane.set_role(Role::JobTool { job }));
    }

    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The lane with this index.
    pub(super) fn lane(&self, index: usize) -> &LaneAddress {
        self.lanes[index].address()
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
        let send = |lane: &usize| {
            let sent = self.lanes[*lane].request(message(*lane, request), &self.policy);
            sent.map_err(server_error(self.lanes[*lane].address()))
        };
        some.iter().map(send).collect()
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
            let lane = &mut self.lanes[*lane];
            let reply = sent.and_then(|()| {
                let reply = lane.receive_answer(self.request, deadline, &self.policy);
                reply.map_err(server_error(lane.address()))
            });
            if reply.is_err() {
                deadline = deadline.min(Instant::now() + LOSS_LIMIT);
            }
            replies.push(reply);
        }
        replies
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(10);
    /// Time for which a server is not there, well below the limit of the clients.
    const AWAY: Duration = Duration::from_millis(200);

    fn lane(address: &str) -> LaneClient {
        LaneClient::new(LaneAddress::new(vec![address.to_owned()], 0), Role::Tool, &[])
    }

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
        let mut lane = lane(&address.to_string());
        assert!(lane.connect_once(LONG, |_| false).is_err(), "the other has the place");
        lane.connect(&RetryPolicy::default()).expect("the other has not said hello in time");
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
        let dead = folder.path().join("dead");
        drop(std::os::unix::net::UnixListener::bind(&dead).expect("a free name"));
        for path in [dead, folder.path().join("absent")] {
            let start = Instant::now();
            let connected = lane(&format!("unix:{}", path.display())).connect(&RetryPolicy::default());
            let error = connected.expect_err("it does not come back");
            assert!(start.elapsed() >= 2 * AWAY && error.is_loss(), "{error}");
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
            std::thread::sleep(AWAY);
            server::run(config, raised, |_| Ok::<(), server::Error>(()))
        });
        lane(&address.to_string()).connect(&RetryPolicy::default()).expect("it comes back");
        stop.raise();
        serving.join().expect("it does not panic").expect("it ends in order");
    }
}
