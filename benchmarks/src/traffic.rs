//! What a step of sparse training sends with 1 to 16 servers. One agent and the lanes run in this thread, and every
//! message is counted with the length of its frame. The results are counts, not times, so they are the same on every
//! machine.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use matrix::{
    Axis, Consistency, ElementType, FunctionTable, Initializer, Keys, MatrixId, MatrixSpec, Partitioner,
    Prefetch, PushRule, Selection, Storage, Values, ValuesMut,
};
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use rpc::message::{Hello, OpenJob, Role};
use rpc::{Effect, FrameLimits, Message, Service as _};
use server::{LaneState, ServerConfig};
use worker::{AgentEffect, AgentState};

/// Numbers of servers, with one lane each.
pub(crate) const SERVERS: [u16; 5] = [1, 2, 4, 8, 16];
const STEPS: u64 = 20;
/// About the number of distinct columns in a batch of 4,096 synthetic clicks.
const KEYS: usize = 40_000;
const KEY_BOUND: u64 = 10_000_000;
/// The value of training.
const PARTITIONS_A_LANE: u32 = 4;
const TASK: u64 = 1;
const TOOL: u64 = 2;
const JOB: u32 = 1;
const WEIGHTS: MatrixId = MatrixId(0);
const INTERCEPT: MatrixId = MatrixId(1);

/// What a step sends, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Traffic {
    /// Bytes in both directions per key that is pulled and pushed, including headers and all other messages.
    pub(crate) bytes_a_key: f64,
    /// Messages from the agent per step.
    pub(crate) requests: f64,
    /// Messages to the agent per step.
    pub(crate) answers: f64,
}

/// An agent and its lanes.
struct LocalCluster {
    agent: AgentState,
    lanes: Vec<LaneState>,
    bytes: u64,
    requests: u64,
    answers: u64,
    frame: Vec<u8>,
}

impl LocalCluster {
    fn new(servers: u16) -> Result<Self> {
        let layout = layout(servers);
        let lanes = (0..servers).map(|_| LaneState::new(ServerConfig::default().lane(0, 1))).collect();
        let agent = AgentState::new(Duration::ZERO, layout.clone(), 0, FunctionTable::builtin())?;
        let (bytes, requests, answers) = (0, 0, 0);
        let mut net = Self { agent, lanes, bytes, requests, answers, frame: Vec::new() };
        for lane in 0..servers {
            let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
            let open = OpenJob {
                request: 2,
                job: JOB,
                task_count: 1,
                wait_limit_ms: 60_000,
                durability: rpc::message::Durability::Checkpoint,
                standby: None,
                matrices: layout.matrices.clone(),
                owned_partitions: layout.lane_partitions(lane),
                home: lane == 0,
                modules: Vec::new(),
            };
            for message in [Message::Hello(hello), Message::OpenJob(open)] {
                let said = net.deliver(lane, TOOL, message)?;
                if !matches!(said.as_slice(), [Message::Welcome(_) | Message::Done(_)]) {
                    bail!("a lane said {said:?}");
                }
            }
        }
        Ok(net)
    }

    /// Delivers a message to a lane and returns its answers.
    fn deliver(&mut self, lane: u16, connection: u64, message: Message) -> Result<Vec<Message>> {
        let mut effects = Vec::new();
        self.lanes[usize::from(lane)].on_message(Duration::ZERO, connection, message, &mut effects);
        let answer = |effect| match effect {
            Effect::Send { message, .. } => Ok(message),
            other => bail!("a lane wants {other:?}"),
        };
        effects.into_iter().map(answer).collect()
    }

    fn count(&mut self, message: &Message) -> Result<()> {
        self.frame.clear();
        rpc::codec::put_frame(message, false, &FrameLimits::default(), &mut self.frame)?;
        self.bytes += self.frame.len() as u64;
        Ok(())
    }

    /// Delivers all messages until the open call has ended.
    fn run(&mut self) -> Result<()> {
        let mut effects: VecDeque<AgentEffect> = self.agent.take_effects().into();
        while let Some(effect) = effects.pop_front() {
            let (lane, message) = match effect {
                AgentEffect::Connect { lane } => {
                    let role = Role::Task { job: JOB, task: 0 };
                    (lane, Message::Hello(Hello { request: 1, token: Vec::new(), role, lane: 0 }))
                }
                AgentEffect::Send { lane, message } => (lane, (*message).clone()),
                AgentEffect::Close { lane } => bail!("the agent closes the connection to lane {lane}"),
            };
            self.count(&message)?;
            self.requests += 1;
            for answer in self.deliver(lane, TASK, message)? {
                self.count(&answer)?;
                self.answers += 1;
                self.agent.on_message(Duration::ZERO, lane, answer);
            }
            effects.extend(self.agent.take_effects());
        }
        self.agent.take_result().context("the call has not ended, though all is delivered")??;
        Ok(())
    }

    /// Pulls, pushes and ticks like a linear model.
    fn step(&mut self, keys: &[u64]) -> Result<()> {
        let (now, ones) = (Duration::ZERO, vec![1.0f32; keys.len()]);
        let mut out = vec![0.0f32; keys.len()];
        let parts =
            [(WEIGHTS, Selection::Rows(Keys::Sorted(keys))), (INTERCEPT, Selection::Rows(Keys::Range(0, 1)))];
        for (matrix, part) in parts {
            let len = if matrix == WEIGHTS { keys.len() } else { 1 };
            self.agent.pull(now, matrix, part);
            self.run()?;
            self.agent.read_pulled(ValuesMut::F32(&mut out[..len]))?;
        }
        for (matrix, part) in parts {
            let len = if matrix == WEIGHTS { keys.len() } else { 1 };
            self.agent.push(now, matrix, part, Values::F32(&ones[..len]));
            self.run()?;
        }
        self.agent.tick(now);
        self.run()
    }
}

fn layout(servers: u16) -> JobLayout {
    let partition_count = u32::from(servers) * PARTITIONS_A_LANE;
    let weights = MatrixSpec {
        name: "weights".into(),
        element: ElementType::F32,
        rows: 1 << 63,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Bsp,
        seed: 1,
    };
    let intercept = MatrixSpec {
        name: "intercept".into(),
        rows: 1,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: 1 },
        ..weights.clone()
    };
    let matrices = vec![weights, intercept];
    let lane = |lane: u16| LaneAddress::new(vec![format!("tcp:host{lane}:1")], 0);
    JobLayout {
        job: JOB,
        task_count: 1,
        wait_limit: Duration::from_mins(1),
        window_bytes: 8 << 20,
        owners: matrices
            .iter()
            .map(|spec| assign_partitions(spec.partitioner.partition_count(), servers))
            .collect(),
        matrices,
        lanes: (0..servers).map(lane).collect(),
        home: 0,
        prefetch: Prefetch::Off,
        wire: Vec::new(),
    }
}

/// Counts steps with this number of servers, each with different keys.
pub(crate) fn count(servers: u16) -> Result<Traffic> {
    let mut net = LocalCluster::new(servers)?;
    let mut random = math::random::stream(1, math::random::Purpose::Test, 0, 0);
    let mut keys = Vec::new();
    let mut key_count = 0;
    // The first step opens the connections and is not counted.
    for step in 0..=STEPS {
        keys.clear();
        keys.extend((0..KEYS).map(|_| random.below(KEY_BOUND)));
        keys.sort_unstable();
        keys.dedup();
        net.step(&keys)?;
        if step == 0 {
            (net.bytes, net.requests, net.answers) = (0, 0, 0);
        } else {
            key_count += keys.len();
        }
    }
    let each = |count: u64| count as f64 / STEPS as f64;
    let (requests, answers) = (each(net.requests), each(net.answers));
    Ok(Traffic { bytes_a_key: net.bytes as f64 / key_count as f64, requests, answers })
}

/// The counts for all numbers of servers as JSON.
pub(crate) fn all() -> Result<serde_json::Value> {
    let row = |servers: u16| {
        let Traffic { bytes_a_key, requests, answers } = count(servers)?;
        Ok(serde_json::json!({
            "servers": servers, "bytes_a_key": bytes_a_key, "requests": requests, "answers": answers,
        }))
    };
    SERVERS.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key is pulled (8 bytes sent, 4 received) and pushed (4 bytes, because the lane has the list of keys by then).
    const BARE_BYTES: f64 = 16.0;
    /// Limit for headers, runs, ticks and the intercept, as a share of the bytes of a key, with 16 servers.
    const OVERHEAD: f64 = 0.02;

    #[test]
    fn bytes_a_key_stay_flat_and_requests_grow_with_the_servers() {
        for servers in SERVERS {
            let traffic = count(servers).unwrap();
            let bare = BARE_BYTES..BARE_BYTES * (1.0 + OVERHEAD);
            assert!(bare.contains(&traffic.bytes_a_key), "{servers} servers: {traffic:?}");
            // A pull, a push and a tick per server, and two requests for the intercept.
            assert_eq!(traffic.requests, 3.0 * f64::from(servers) + 2.0, "{servers} servers");
            assert_eq!(traffic.answers, f64::from(servers) + 1.0, "{servers} servers");
        }
    }
}
