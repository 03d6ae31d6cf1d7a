//! Access to whole matrices on all lanes of a job, for code that is not a task.

use std::time::{Duration, Instant};

use matrix::{ExportedRows, MatrixSpec};
use rpc::Message;
use rpc::message::{
    Base64Bytes, CloseJob, Export, ExportPage, FaultKind, Hello, Import, KeepRows, Leave, OpenJob, RequestId,
    RestoreRows, Role, Stats, StatsReply, TaskState, TaskStats,
};
use rpc::transport::{Address, Receiver, Sender, open};
use worker::{JobLayout, LaneAddress};

use super::pages::{append, decode_page, empty_values, encode_page, merge};
use crate::error::Error;
use crate::exit::Exit;

/// Maximum wait for a connection to a lane.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Maximum wait for an answer: a lane may copy or sort all its rows for one.
const ANSWER_LIMIT: Duration = Duration::from_mins(5);
/// Time between two checks for cancellation while waiting for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum wait for all lanes together to free a job. A lane that is blocked frees the job later.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);
/// Like [`CLOSE_LIMIT`] for a failed job: the failure is reported without waiting for a server that does not answer.
const FAILED_CLOSE_LIMIT: Duration = Duration::from_secs(1);
/// Size of the keys and values in one frame of an import.
const PAGE_BYTES: usize = 2 << 20;

/// First pause before a full server is tried again, unless it requests another; doubled after each attempt.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// Connections to all lanes of a job.
pub struct Servers {
    layout: JobLayout,
    lanes: Vec<(Sender, Receiver)>,
    request: RequestId,
    /// Whether the answers are not needed any more.
    is_cancelled: Box<dyn Fn() -> bool + Send>,
}

impl Servers {
    /// Connects to all lanes.
    pub fn connect(layout: &JobLayout, token: &[u8]) -> Result<Self, Error> {
        let lanes = (0..layout.lanes.len())
            .map(|lane| {
                let hello = Hello {
                    request: 1,
                    token: token.to_vec(),
                    role: Role::Tool,
                    lane: layout.lanes[lane].lane,
                };
                let address = preferred_address(&layout.lanes[lane])?;
                connect_with_retry(&address, &hello).map_err(Error::server(&layout.lanes[lane]))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Self { layout: layout.clone(), lanes, request: 1, is_cancelled: Box::new(|| false) })
    }

    /// Returns the same connections; waits for answers end with an error once `is_over` returns true.
    #[must_use]
    pub fn with_cancellation(mut self, is_over: impl Fn() -> bool + Send + 'static) -> Self {
        self.is_cancelled = Box::new(is_over);
        self
    }

    /// Receives the next message of a lane.
    fn receive(&mut self, lane: usize, limit: Duration) -> Result<Message, Error> {
        let deadline = Instant::now() + limit;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let receiver = &mut self.lanes[lane].1;
            let received =
                receiver.set_timeout(Some(rest.min(POLL_INTERVAL))).and_then(|()| receiver.receive());
            match received {
                Err(rpc::Error::TimedOut { .. }) if !rest.is_zero() && !(self.is_cancelled)() => {}
                received => return received.map_err(Error::server(&self.layout.lanes[lane])),
            }
        }
    }

    /// Sends a request to all lanes and then receives the replies, so that lanes work in parallel.
    fn request_all(
        &mut self,
        mut message: impl FnMut(usize, RequestId) -> Message,
    ) -> Result<Vec<Message>, Error> {
        self.request += 1;
        for (lane, (sender, _)) in self.lanes.iter_mut().enumerate() {
            sender.send(&message(lane, self.request)).map_err(Error::server(&self.layout.lanes[lane]))?;
        }
        (0..self.lanes.len()).map(|lane| self.receive_reply(lane)).collect()
    }

    fn call(&mut self, lane: usize, message: impl FnOnce(RequestId) -> Message) -> Result<Message, Error> {
        self.request += 1;
        let sent = self.lanes[lane].0.send(&message(self.request));
        sent.map_err(Error::server(&self.layout.lanes[lane]))?;
        self.receive_reply(lane)
    }

    fn receive_reply(&mut self, lane: usize) -> Result<Message, Error> {
        self.receive_reply_within(lane, ANSWER_LIMIT)
    }

    fn receive_reply_within(&mut self, lane: usize, limit: Duration) -> Result<Message, Error> {
        match self.receive(lane, limit)? {
            Message::Fault(fault) => {
                let text = format!("server {}: {}", self.layout.lanes[lane], fault.text);
                Err(Error::Cluster { text, exit: Exit::Io })
            }
            message => Ok(message),
        }
    }

    /// Creates the matrices of the job on all lanes.
    pub fn open_job(&mut self) -> Result<(), Error> {
        self.open_job_with(&[])
    }

    /// Like [`Self::open_job`], for a job with WebAssembly modules.
    pub fn open_job_with(&mut self, modules: &[Base64Bytes]) -> Result<(), Error> {
        let layout = self.layout.clone();
        self.request_all(|lane, request| {
            Message::OpenJob(OpenJob {
                request,
                job: layout.job,
                task_count: layout.task_count,
                wait_limit_ms: layout.wait_limit.as_millis() as u64,
                matrices: layout.matrices.clone(),
                held: layout.lane_partitions(lane as u16),
                home: lane == usize::from(layout.home),
                modules: modules.to_vec(),
            })
        })
        .map(drop)
    }

    /// Frees the job on all lanes that are reachable; processes that wait at a lane receive `reason`. Returns the error
    /// of the first lane that was not reachable or did not answer in time.
    pub fn close_job(&mut self, reason: &str) -> Result<(), Error> {
        self.close_within(CLOSE_LIMIT, reason)
    }

    /// Like [`Self::close_job`] for a failed job: waits for answers only one second.
    pub fn close_failed_job(&mut self, reason: &str) -> Result<(), Error> {
        self.close_within(FAILED_CLOSE_LIMIT, reason)
    }

    fn close_within(&mut self, limit: Duration, reason: &str) -> Result<(), Error> {
        self.request += 1;
        // The lanes must be notified even if the job was cancelled.
        self.is_cancelled = Box::new(|| false);
        let (job, request) = (self.layout.job, self.request);
        let close = Message::CloseJob(CloseJob { request, job, reason: reason.to_owned() });
        let send = |(lane, (sender, _)): (usize, &mut (Sender, Receiver))| {
            sender.send(&close).map_err(Error::server(&self.layout.lanes[lane]))
        };
        let sent: Vec<Result<(), Error>> = self.lanes.iter_mut().enumerate().map(send).collect();
        let deadline = Instant::now() + limit;
        let answers = sent.into_iter().enumerate().map(|(lane, sent)| {
            let rest = deadline.saturating_duration_since(Instant::now());
            sent.and_then(|()| self.receive_reply_within(lane, rest))
        });
        let answers: Vec<Result<Message, Error>> = answers.collect();
        answers.into_iter().find_map(Result::err).map_or(Ok(()), Err)
    }

    /// Copies all rows on the servers.
    pub fn keep_rows(&mut self) -> Result<(), Error> {
        let job = self.layout.job;
        self.request_all(|_, request| Message::KeepRows(KeepRows { request, job })).map(drop)
    }

    /// Restores the copied rows.
    pub fn restore_rows(&mut self) -> Result<(), Error> {
        let job = self.layout.job;
        self.request_all(|_, request| Message::RestoreRows(RestoreRows { request, job })).map(drop)
    }

    /// Returns the counters of each lane.
    pub fn stats(&mut self) -> Result<Vec<StatsReply>, Error> {
        let job = self.layout.job;
        let answers = self.request_all(|_, request| Message::Stats(Stats { request, job }))?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| if let Message::StatsReply(reply) = answer { Some(reply) } else { None })
            .collect())
    }

    /// Returns the state of the tasks over all lanes: a task has left when it has left every lane, and is connected
    /// when it is connected to every lane that it has not left. Its wait is the longest and its clock the smallest.
    pub fn tasks(&mut self) -> Result<TasksReply, Error> {
        self.request += 1;
        let (request, job) = (self.request, self.layout.job);
        for (lane, (sender, _)) in self.lanes.iter_mut().enumerate() {
            let sent = sender.send(&Message::Stats(Stats { request, job }));
            sent.map_err(Error::server(&self.layout.lanes[lane]))?;
        }
        let (mut replies, mut closed) = (Vec::new(), None);
        for lane in 0..self.lanes.len() {
            let message = self.receive(lane, ANSWER_LIMIT)?;
            let address = &self.layout.lanes[lane];
            match message {
                Message::StatsReply(reply) => replies.push(reply),
                Message::Fault(fault) if fault.kind == FaultKind::Stopped => closed = Some(fault.text),
                Message::Fault(fault) => {
                    let text = format!("server {address}: {}", fault.text);
                    return Err(Error::Cluster { text, exit: Exit::Io });
                }
                _ => {
                    let text =
                        format!("server {address} sent an unexpected reply to a request for its tasks");
                    return Err(Error::Cluster { text, exit: Exit::Internal });
                }
            }
        }
        Ok(closed.map_or_else(|| TasksReply::Tasks(tasks_of(&replies)), TasksReply::Closed))
    }

    /// Removes a task on all lanes, so that no other task waits for it.
    pub fn remove_task(&mut self, task: u32) -> Result<(), Error> {
        let job = self.layout.job;
        self.request_all(|_, request| Message::Leave(Leave { request, job, task })).map(drop)
    }

    /// Returns all rows of a matrix, ascending.
    pub fn export(&mut self, matrix: u32) -> Result<ExportedRows, Error> {
        let spec = self.layout.matrices[matrix as usize].clone();
        let parts = (0..self.lanes.len())
            .map(|lane| self.export_lane(lane, matrix, &spec))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(merge(&spec, parts))
    }

    fn export_lane(&mut self, lane: usize, matrix: u32, spec: &MatrixSpec) -> Result<ExportedRows, Error> {
        let job = self.layout.job;
        let mut rows: Option<ExportedRows> = None;
        loop {
            let offset = rows.as_ref().map_or(0, |rows| rows.keys.len() as u64);
            let answer =
                self.call(lane, |request| Message::Export(Export { request, job, matrix, offset }))?;
            let Message::ExportPage(page) = answer else {
                let address = self.layout.lanes[lane].to_string();
                let text = format!("server {address} sent an unexpected reply to an export request");
                return Err(Error::Cluster { text, exit: Exit::Internal });
            };
            let ExportPage { row_count, keys, values, .. } = page;
            let count = keys.len();
            let part = decode_page(spec, keys, &values);
            match &mut rows {
                None => rows = Some(part),
                Some(rows) => append(rows, part),
            }
            let have = rows.as_ref().map_or(0, |rows| rows.keys.len() as u64);
            if have >= row_count || count == 0 {
                break;
            }
        }
        Ok(rows.unwrap_or_else(|| decode_page(spec, Vec::new(), &empty_values(spec))))
    }

    /// Replaces all rows of a matrix.
    pub fn import(&mut self, matrix: u32, rows: &ExportedRows) -> Result<(), Error> {
        let spec = self.layout.matrices[matrix as usize].clone();
        let job = self.layout.job;
        let placement = spec.partitioner.placement(spec.key_bound());
        let bound = spec.key_bound();
        let owners = self.layout.owners[matrix as usize].clone();
        for lane in 0..self.lanes.len() {
            let own: Vec<usize> = (0..rows.keys.len())
                .filter(|&i| usize::from(owners[placement.partition_of(rows.keys[i] % bound)]) == lane)
                .collect();
            let width = rows.values.len() / rows.keys.len().max(1);
            let page = (PAGE_BYTES / (8 * (1 + 4 * width))).max(1);
            let mut first = true;
            let mut pages = own.chunks(page);
            loop {
                let positions = pages.next();
                if positions.is_none() && !first {
                    break;
                }
                let positions = positions.unwrap_or_default();
                let (keys, values) = encode_page(rows, positions);
                let with_slots = !rows.slots.is_empty();
                self.call(lane, |request| {
                    Message::Import(Import { request, job, matrix, first, with_slots, keys, values })
                })?;
                first = false;
            }
        }
        Ok(())
    }
}

/// The reply of [`Servers::tasks`].
#[derive(Clone, Debug, PartialEq)]
pub enum TasksReply {
    /// The state of each task.
    Tasks(Vec<TaskStats>),
    /// The job was closed, for this reason.
    Closed(String),
}

/// Returns the tasks of a job as all its lanes together see them; see [`Servers::tasks`].
pub fn tasks_of(replies: &[StatsReply]) -> Vec<TaskStats> {
    let Some((first, others)) = replies.split_first() else { return Vec::new() };
    let mut tasks = first.tasks.clone();
    for other in others {
        tasks.iter_mut().zip(&other.tasks).for_each(|(task, other)| merge_task(task, other));
    }
    tasks
}

fn merge_task(task: &mut TaskStats, other: &TaskStats) {
    let left = TaskState::Left;
    task.connected = match (task.state == left, other.state == left) {
        (true, _) => other.connected,
        (false, true) => task.connected,
        (false, false) => task.connected && other.connected,
    };
    if task.state == left || (task.state == TaskState::AtBarrier && other.state != left) {
        task.state = other.state;
    }
    task.clock = task.clock.min(other.clock);
    let waited = |task: &TaskStats| task.wait.map(|wait| wait.waited_ms);
    if waited(other) > waited(task) {
        task.wait = other.wait;
    }
}

/// Returns the best address of a lane: an existing Unix socket of this machine, or else a TCP address.
pub(super) fn preferred_address(lane: &LaneAddress) -> Result<Address, Error> {
    let addresses = lane.addresses.iter().map(|text| text.parse());
    let addresses = addresses.collect::<Result<Vec<Address>, _>>().map_err(Error::server(lane))?;
    let here = |address: &&Address| matches!(address, Address::Unix(path) if path.exists());
    let found = addresses
        .iter()
        .find(here)
        .or_else(|| addresses.iter().find(|address| matches!(address, Address::Tcp(_))));
    found.or(addresses.first()).cloned().ok_or_else(|| Error::Cluster {
        text: format!("{lane} has no address that this machine can reach"),
        exit: Exit::Io,
    })
}

/// Connects to a server. If all its connection slots are taken, it retries for a while: unauthenticated connections are
/// closed when they do not send their hello in time.
pub(super) fn connect_with_retry(address: &Address, hello: &Hello) -> Result<(Sender, Receiver), rpc::Error> {
    let deadline = Instant::now() + CONNECT_LIMIT;
    let mut pause = FULL_PAUSE;
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        let error = match open(address, rest, hello) {
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
        let Address::Tcp(place) = &address else { panic!("{address}") };
        let stranger = TcpStream::connect(place).expect("it has one place");
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
        let first = open(&address, CONNECT_LIMIT, &hello);
        assert!(first.is_err(), "the stranger has the place");
        connect_with_retry(&address, &hello).expect("the stranger has not said hello in time");
        drop(stranger);
        stop.raise();
        serving.join().expect("it does not panic").expect("it ends in order");
    }
}
