//! A job on real servers whose tasks the test plays itself. In every step a task adds 1 to two keys of its own in every
//! partition, first to the one, then to the other. The values of a pull show which pushes it missed.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use matrix::{
    Agent, Axis, Consistency, ElementType, Initializer, Keys, MatrixId, MatrixSpec, Partitioner, PullTicket,
    PushRule, Selection, Storage, Values, ValuesMut,
};
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use rpc::message::{Hello, OpenJob, Role, Stats, StatsReply};
use rpc::{Address, Message, Receiver, Sender};
use worker::RemoteAgent;

use super::cluster::Cluster;

/// Number of partitions of each matrix, on two servers.
pub(crate) const PARTITIONS: u32 = 6;
/// Number of servers, with one lane each.
pub(crate) const SERVERS: u16 = 2;
const JOB: u32 = 1;
/// Longest wait of a task. It is far longer than any test takes, so a task that is blocked by mistake fails with an
/// error.
const WAIT_LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for the counts of a server.
const PATIENCE: Duration = Duration::from_secs(20);
/// More bytes than a probe sends.
const WINDOW_BYTES: u64 = 64 << 20;

/// A cluster without workers, and a job on it.
pub(crate) struct Probe {
    /// Kept so that it ends with the probe.
    _cluster: Mutex<Cluster>,
    pub(crate) layout: JobLayout,
    tools: Vec<Mutex<(Sender, Receiver)>>,
}

/// Counters that a pull has returned, by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PulledCounters {
    values: Vec<f32>,
    tasks: usize,
}

impl PulledCounters {
    /// Returns the first and the second counter of a task, by partition.
    pub(crate) fn of(&self, task: u32) -> Vec<(u64, u64)> {
        let rows = self.values.chunks(2 * self.tasks);
        rows.map(|rows| (rows[task as usize] as u64, rows[self.tasks + task as usize] as u64)).collect()
    }

    /// The bytes of the values, to compare readers.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Whether no counter has decreased since `earlier`.
    pub(crate) fn is_not_before(&self, earlier: &Self) -> bool {
        self.values.iter().zip(&earlier.values).all(|(now, then)| now >= then)
    }
}

impl Probe {
    /// Starts two servers and opens a job with one matrix per consistency.
    pub(crate) fn start(tasks: u32, consistencies: &[Consistency]) -> Self {
        let cluster = Cluster::start(SERVERS.into(), 0, 0);
        let status = cluster.wait_until(|_| true);
        let mut lanes: Vec<LaneAddress> = Vec::new();
        for member in status["members"].as_array().into_iter().flatten() {
            let addresses: Vec<String> = serde_json::from_value(member["member"]["addresses"].clone())
                .expect("a server says where it is");
            lanes.push(LaneAddress::new(addresses, 0));
        }
        assert_eq!(lanes.len(), usize::from(SERVERS), "{status:#}");
        let matrices: Vec<MatrixSpec> =
            consistencies.iter().enumerate().map(|(i, consistency)| spec(i, tasks, *consistency)).collect();
        let owners = matrices.iter().map(|_| assign_partitions(PARTITIONS, SERVERS)).collect();
        let layout = JobLayout {
            job: JOB,
            task_count: tasks,
            wait_limit: WAIT_LIMIT,
            window_bytes: WINDOW_BYTES,
            matrices,
            lanes,
            owners,
            home: 0,
            wire: Vec::new(),
            prefetch: matrix::Prefetch::default(),
        };
        let tools = (0..SERVERS).map(|lane| Mutex::new(line(&layout, lane, Role::Tool))).collect();
        let probe = Self { _cluster: Mutex::new(cluster), layout, tools };
        for lane in 0..SERVERS {
            let open = OpenJob {
                request: 2,
                job: JOB,
                task_count: tasks,
                wait_limit_ms: WAIT_LIMIT.as_millis() as u64,
                durability: rpc::message::Durability::Checkpoint,
                standby: None,
                matrices: probe.layout.matrices.clone(),
                owned_partitions: probe.layout.lane_partitions(lane),
                home: lane == 0,
                modules: Vec::new(),
            };
            let answer = probe.ask(lane, &Message::OpenJob(open));
            assert!(matches!(answer, Message::Done(_)), "{answer:?}");
        }
        probe
    }

    /// Sends a message to a server as a tool and returns the answer.
    pub(crate) fn ask(&self, lane: u16, message: &Message) -> Message {
        let mut tool = self.tools[usize::from(lane)].lock().expect("no test panics in between");
        tool.0.send(message).expect("the server lives");
        tool.1.receive().expect("the server answers")
    }

    /// Opens a connection in the name of a task. The server drops earlier connections of that task.
    pub(crate) fn line(&self, lane: u16, task: u32) -> (Sender, Receiver) {
        line(&self.layout, lane, Role::Task { job: JOB, task })
    }

    /// Returns the statistics of a server.
    pub(crate) fn stats(&self, lane: u16) -> StatsReply {
        match self.ask(lane, &Message::Stats(Stats { request: 3, job: JOB })) {
            Message::StatsReply(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Polls every server until `wanted` accepts its statistics.
    pub(crate) fn wait_until(&self, wanted: impl Fn(&StatsReply) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        for lane in 0..SERVERS {
            loop {
                let stats = self.stats(lane);
                if wanted(&stats) {
                    break;
                }
                assert!(Instant::now() < deadline, "server {lane} stays at {stats:?}");
                std::thread::yield_now();
            }
        }
    }

    pub(crate) fn agent(&self, task: u32) -> RemoteAgent {
        RemoteAgent::new(self.layout.clone(), task, &[]).expect("the layout is whole")
    }

    /// Plays each task on a thread to its end; returns their results.
    pub(crate) fn run<T: Send>(&self, play: impl Fn(u32, &mut RemoteAgent) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let play = &play;
            let threads: Vec<_> = (0..self.layout.task_count)
                .map(|task| {
                    scope.spawn(move || {
                        let mut agent = self.agent(task);
                        let given = play(task, &mut agent);
                        agent.finish().expect("nothing hinders the end");
                        given
                    })
                })
                .collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, T>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
    }

    /// Pushes what one step pushes: 1 to the first key of the task in each of these partitions, then to the second.
    pub(crate) fn push(&self, agent: &mut RemoteAgent, matrix: u32, partitions: std::ops::Range<u32>) {
        let (tasks, task) = (u64::from(self.layout.task_count), u64::from(agent.task()));
        for half in 0..2 {
            let keys: Vec<u64> =
                partitions.clone().map(|p| (2 * u64::from(p) + half) * tasks + task).collect();
            let ones = vec![1.0f32; keys.len()];
            let part = Selection::Rows(Keys::Sorted(&keys));
            agent.push(MatrixId(matrix), part, Values::F32(&ones)).expect("a push waits within the limit");
        }
    }

    /// Pushes to all partitions and ticks.
    pub(crate) fn step(&self, agent: &mut RemoteAgent, matrix: u32) {
        self.push(agent, matrix, 0..PARTITIONS);
        agent.tick().expect("a tick waits for nobody");
    }

    /// Pulls all rows.
    pub(crate) fn look(&self, agent: &mut RemoteAgent, matrix: u32) -> PulledCounters {
        let mut values = vec![0.0; self.rows() as usize];
        agent
            .pull(MatrixId(matrix), self.everything(), ValuesMut::F32(&mut values))
            .expect("a pull waits within the limit");
        PulledCounters { values, tasks: self.layout.task_count as usize }
    }

    /// Waits for a ticket of all rows.
    pub(crate) fn wait(&self, agent: &mut RemoteAgent, ticket: &PullTicket) -> PulledCounters {
        let mut values = vec![0.0; self.rows() as usize];
        agent.wait(ticket, ValuesMut::F32(&mut values)).expect("a pull waits within the limit");
        PulledCounters { values, tasks: self.layout.task_count as usize }
    }

    /// Selects all rows.
    pub(crate) fn everything(&self) -> Selection<'static> {
        Selection::Rows(Keys::Range(0, self.rows()))
    }

    /// Number of rows of each matrix.
    pub(crate) fn rows(&self) -> u64 {
        self.layout.matrices[0].rows
    }

    /// Checks all rows after all tasks have left: each counter must equal the number of pushes of its task.
    pub(crate) fn assert_conserved(&self, matrix: u32, pushed: &[u64]) {
        let export = |lane| {
            let export = rpc::message::Export { request: 4, job: JOB, matrix, from: 0, skip: 0 };
            match self.ask(lane, &Message::Export(export)) {
                Message::ExportPage(page) => page,
                other => panic!("{other:?}"),
            }
        };
        let tasks = u64::from(self.layout.task_count);
        let mut count = 0;
        for page in (0..SERVERS).map(export) {
            let matrix::OwnedValues::F32(values) = &page.values else { panic!("the matrix is of f32") };
            for (key, value) in page.keys.iter().zip(values) {
                let wanted = pushed[(key % tasks) as usize];
                assert_eq!(*value as u64, wanted, "key {key} of task {}", key % tasks);
                count += 1;
            }
        }
        assert_eq!(count, self.rows(), "every row is on one server");
    }
}

fn spec(number: usize, tasks: u32, consistency: Consistency) -> MatrixSpec {
    MatrixSpec {
        name: format!("probe_{number}"),
        element: ElementType::F32,
        rows: 2 * u64::from(tasks) * u64::from(PARTITIONS),
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: PARTITIONS },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency,
        seed: 1,
    }
}

fn line(layout: &JobLayout, lane: u16, role: Role) -> (Sender, Receiver) {
    let text = &layout.lanes[usize::from(lane)].addresses[0];
    let address: Address = text.parse().expect("a server says an address");
    let hello = Hello { request: 1, token: Vec::new(), role, lane: 0 };
    let (sender, receiver, _) = rpc::open(&address, PATIENCE, &hello).expect("the server takes it");
    (sender, receiver)
}
