//! A lane with the messages of tasks, tools and sessions for its tests.

use std::time::Duration;

use matrix::{
    Axis, Consistency, ElementType, Initializer, MatrixSpec, OwnedValues, Partitioner, PushRule, Storage,
};
use rpc::Message;
use rpc::WireValues;
use rpc::message::*;
use rpc::service::{ConnectionId, Effect, Service};

use crate::{LaneConfig, LaneState};

pub(super) const JOB: JobId = 7;
pub(super) const TOOL: ConnectionId = 1000;

pub(super) struct World {
    pub(super) lane: LaneState,
    pub(super) now: Duration,
    /// All effects so far, in order.
    pub(super) effects: Vec<Effect>,
}

pub(super) fn config() -> LaneConfig {
    LaneConfig {
        lane: 0,
        lanes: 1,
        incarnation: 5,
        memory_limit_bytes: 1 << 30,
        window_bytes: 1 << 20,
        deferred_limit_bytes: 1 << 20,
        staged_limit_bytes: 1 << 20,
        key_list_limit_bytes: 1 << 20,
        injected_fault: None,
    }
}

pub(super) fn spec(name: &str, consistency: Consistency) -> MatrixSpec {
    MatrixSpec {
        name: name.into(),
        element: ElementType::F64,
        rows: 100,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Dense,
        partitioner: Partitioner::Range { partition_count: 2 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency,
        seed: 1,
    }
}

pub(super) fn hello(job: JobId, task: u32) -> Message {
    let role = Role::Task { job, task };
    Message::Hello(Hello { request: 1, token: Vec::new(), role, lane: 0 })
}

pub(super) fn open(task_count: u32, matrices: Vec<MatrixSpec>) -> OpenJob {
    let owned_partitions = vec![vec![0, 1]; matrices.len()];
    OpenJob {
        request: 1,
        job: JOB,
        task_count,
        wait_limit_ms: 1000,
        durability: Durability::Checkpoint,
        standby: None,
        matrices,
        owned_partitions,
        home: true,
        modules: Vec::new(),
    }
}

/// Keys 10 and 60, one in each partition.
pub(super) fn two_keys() -> (Vec<PartitionRun>, KeyList) {
    let runs = vec![PartitionRun { partition: 0, count: 1 }, PartitionRun { partition: 1, count: 1 }];
    (runs, KeyList::Listed(vec![10, 60]))
}

pub(super) fn pull(request: RequestId, task: u32, clock: u64) -> Pull {
    let (runs, keys) = two_keys();
    let wire = rpc::WireType::F32;
    Pull { request, job: JOB, task, clock, matrix: 0, table: 0, wait_ms: 0, runs, keys, wire }
}

pub(super) fn push(task: u32, clock: u64, index: u32, value: f64) -> Push {
    let (runs, keys) = two_keys();
    let values = OwnedValues::F64(vec![value; 2]).into();
    Push { request: 0, job: JOB, task, clock, index, matrix: 0, table: 0, runs, keys, values }
}

pub(super) fn tick(task: u32, clock: u64) -> Message {
    Message::Tick(Tick { request: 0, job: JOB, task, clock })
}

pub(super) fn leave(task: u32) -> Message {
    Message::Leave(Leave { request: 0, job: JOB, task })
}

pub(super) fn barrier(request: RequestId, task: u32, generation: u64, part: Option<Vec<f64>>) -> Message {
    Message::Barrier(Barrier { request, job: JOB, task, clock: 0, wait_ms: 0, generation, part })
}

impl World {
    /// A lane with one matrix. Task t uses connection t.
    pub(super) fn new(task_count: u32, consistency: Consistency) -> Self {
        Self::with(config(), open(task_count, vec![spec("w", consistency)]))
    }

    pub(super) fn with(config: LaneConfig, open: OpenJob) -> Self {
        let mut world = Self { lane: LaneState::new(config), now: Duration::ZERO, effects: Vec::new() };
        world.send(TOOL, Message::Hello(Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 }));
        let (job, task_count) = (open.job, open.task_count);
        world.send(TOOL, Message::OpenJob(open));
        for task in 0..task_count {
            world.send(u64::from(task), hello(job, task));
        }
        world.effects.clear();
        world
    }

    /// Sends a message and returns its effects.
    pub(super) fn send(&mut self, at: ConnectionId, message: Message) -> Vec<Effect> {
        let mut out = Vec::new();
        self.lane.on_message(self.now, at, message, &mut out);
        self.effects.extend(out.iter().cloned());
        out
    }

    pub(super) fn pull(&mut self, request: RequestId, task: u32, clock: u64) -> Vec<Effect> {
        self.send(u64::from(task), Message::Pull(pull(request, task, clock)))
    }

    pub(super) fn push(&mut self, task: u32, clock: u64, index: u32) -> Vec<Effect> {
        self.send(u64::from(task), Message::Push(push(task, clock, index, 1.0)))
    }

    pub(super) fn tick(&mut self, task: u32, clock: u64) -> Vec<Effect> {
        self.send(u64::from(task), tick(task, clock))
    }

    pub(super) fn stats(&mut self) -> StatsReply {
        match only(self.send(TOOL, Message::Stats(Stats { request: 1, job: JOB }))) {
            Message::StatsReply(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// The sum over both keys after all pushes, exported by a tool.
    pub(super) fn rows(&mut self) -> Vec<f64> {
        let export = Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 };
        match only(self.send(TOOL, Message::Export(export))) {
            Message::ExportPage(ExportPage { values: OwnedValues::F64(values), .. }) => {
                vec![values[10], values[60]]
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The only effect, which is a message.
pub(super) fn only(mut effects: Vec<Effect>) -> Message {
    assert_eq!(effects.len(), 1, "{effects:?}");
    match effects.remove(0) {
        Effect::Send { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

/// The values of the only effect, which is the answer of a pull.
pub(super) fn pulled(effects: Vec<Effect>) -> Vec<f64> {
    match only(effects) {
        Message::Pulled(Pulled { values: WireValues::Exact(OwnedValues::F64(values)), .. }) => values,
        other => panic!("{other:?}"),
    }
}

/// The requests of the pulls that were answered, in order.
pub(super) fn answered(effects: &[Effect]) -> Vec<RequestId> {
    let request = |effect: &Effect| match effect {
        Effect::Send { message: Message::Pulled(pulled), .. } => Some(pulled.request),
        _ => None,
    };
    effects.iter().filter_map(request).collect()
}

/// The first fault among the effects.
pub(super) fn fault(effects: &[Effect]) -> &Fault {
    let fault = |effect| match effect {
        &Effect::Send { message: Message::Fault(ref fault), .. } => Some(fault),
        _ => None,
    };
    effects.iter().find_map(fault).unwrap_or_else(|| panic!("no fault in {effects:?}"))
}

pub(super) fn closes(effects: &[Effect], at: ConnectionId) -> bool {
    effects.contains(&Effect::Close { connection: at })
}
