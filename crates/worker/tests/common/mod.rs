//! A minimal lane, and a network that delivers, repeats and loses messages as a script says.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::thread::JoinHandle;
use std::time::Duration;

use matrix::{
    Axis, Consistency, Element, ElementType, FunctionTable, Initializer, Matrix, MatrixSpec, OwnedValues,
    Partitioner, PushId, PushRule, Storage,
};
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use rpc::message::{
    Done, Fault, FaultKind, KeyList, PartitionRun, Pull, PullFunction, Pulled, PulledFunction, Push,
    PushFunction, PushPosition, Released, TryFunction, Welcome,
};
use rpc::{Listener, Message, ServeConfig, Service, Stop, WireValues, serve};
use worker::{AgentEffect, AgentState, CallOutput};

pub(crate) type Row = (u32, u32, u64);

/// Services that a thread serves until this is dropped.
pub(crate) struct ServingThread {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl ServingThread {
    pub(crate) fn start(listener: Listener, services: Vec<Box<dyn Service>>, token: &[u8]) -> Self {
        let stop = Stop::new();
        let (raised, config) =
            (stop.clone(), ServeConfig { token: token.to_vec(), ..ServeConfig::default() });
        let thread = std::thread::spawn(move || {
            let served = serve(vec![listener], services, config, raised, |_| Ok(()));
            served.expect("it serves until it is stopped");
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for ServingThread {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread has not panicked");
        }
    }
}

/// A lane with the rules of `rpc::message` for one task, and a second task whose clock the script sets.
pub(crate) struct FakeLane {
    pub(crate) incarnation: u64,
    pub(crate) window: u64,
    pub(crate) mark: PushPosition,
    pub(crate) clock: u64,
    pub(crate) other: u64,
    pub(crate) generation: u64,
    pub(crate) has_left: bool,
    pub(crate) rows: BTreeMap<Row, i64>,
    pub(crate) known: HashMap<u128, Vec<u64>>,
    pub(crate) specs: Vec<MatrixSpec>,
    pub(crate) deferred_pulls: Vec<Pull>,
    /// Partitions for functions, by matrix, if the script sets them.
    pub(crate) partitions: Vec<Matrix>,
    pub(crate) functions: FunctionTable,
    /// The last function that failed, and the reason.
    pub(crate) failed: Option<(PushPosition, String)>,
    pub(crate) duplicates: u32,
    /// Number of requests whose digest the lane has not cached any more.
    pub(crate) forgotten: u32,
    pub(crate) largest_keys: usize,
    pub(crate) largest_values: usize,
    /// Number of closed connections, if the connections are real.
    pub(crate) closed_count: u32,
}

impl FakeLane {
    pub(crate) fn new(specs: Vec<MatrixSpec>) -> Self {
        Self {
            incarnation: 1,
            window: 1 << 20,
            mark: PushPosition::default(),
            clock: 0,
            other: u64::MAX,
            generation: 0,
            has_left: false,
            rows: BTreeMap::new(),
            known: HashMap::new(),
            specs,
            deferred_pulls: Vec::new(),
            partitions: Vec::new(),
            functions: FunctionTable::builtin(),
            failed: None,
            duplicates: 0,
            forgotten: 0,
            largest_keys: 0,
            largest_values: 0,
            closed_count: 0,
        }
    }

    pub(crate) fn hello(&mut self) -> Welcome {
        self.known.clear();
        self.deferred_pulls.clear();
        Welcome {
            request: 1,
            incarnation: self.incarnation,
            lanes: 1,
            window_bytes: self.window,
            applied: self.mark,
            clock: self.clock,
            minimum: self.minimum(),
        }
    }

    pub(crate) fn minimum(&self) -> u64 {
        if self.has_left { self.other } else { self.clock.min(self.other) }
    }

    fn columns(&self, matrix: u32) -> usize {
        self.specs[matrix as usize].columns as usize
    }

    /// Each key with its partition, or `None` if the digest is unknown.
    fn keys(&mut self, runs: &[PartitionRun], keys: &KeyList) -> Option<Vec<(u32, u64)>> {
        let keys = match keys {
            KeyList::Listed(keys) => {
                self.known.insert(KeyList::digest(runs, keys), keys.clone());
                self.largest_keys = self.largest_keys.max(keys.len());
                keys.clone()
            }
            KeyList::Range { start, end } => (*start..*end).collect(),
            KeyList::Cached { digest, count } => {
                let keys = self.known.get(digest).cloned();
                self.forgotten += u32::from(keys.is_none());
                assert!(keys.as_ref().is_none_or(|keys| keys.len() == *count as usize));
                keys?
            }
        };
        assert_eq!(runs.iter().map(|run| run.count as usize).sum::<usize>(), keys.len());
        let partitions = runs.iter().flat_map(|run| std::iter::repeat_n(run.partition, run.count as usize));
        Some(partitions.zip(keys).collect())
    }

    /// Handles a message. Returns the answers, and whether the lane closes the connection.
    pub(crate) fn take(&mut self, message: Message) -> (Vec<Message>, bool) {
        let mut out = Vec::new();
        let mut closes = false;
        match message {
            Message::Push(push) => closes = self.push(&push, &mut out),
            Message::Pull(pull) => self.deferred_pulls.push(pull),
            Message::PullFunction(pull) => out.push(self.pull_function(&pull)),
            Message::PushFunction(push) => out.extend(self.push_function(&push)),
            Message::TryFunction(ask) => out.push(self.try_function(&ask)),
            Message::Tick(tick) => self.clock = self.clock.max(tick.clock),
            Message::Barrier(barrier) => {
                assert!(barrier.clock <= self.clock || barrier.clock == 0, "a tick comes before");
                if barrier.generation == self.generation {
                    self.generation += 1;
                }
                // The other task contributes 1 to each number.
                let sum = barrier.part.unwrap_or_default().iter().map(|number| number + 1.0).collect();
                out.push(Message::Released(Released {
                    request: barrier.request,
                    clock: self.clock,
                    deferred_ns: 0,
                    sum,
                }));
            }
            Message::Leave(leave) => {
                self.has_left = true;
                out.push(self.done(leave.request));
            }
            other => panic!("{other:?}"),
        }
        self.release(&mut out);
        (out, closes)
    }

    fn done(&self, request: u64) -> Message {
        Message::Done(Done { request, minimum: self.minimum(), applied: self.mark })
    }

    fn pull_function(&mut self, pull: &PullFunction) -> Message {
        let PullFunction { request, clock, matrix, ref call, .. } = *pull;
        let (minimum, applied) = (self.minimum(), self.mark);
        match self.partitions[matrix as usize].pull_function(&self.functions, call, clock) {
            Ok(parts) => {
                Message::PulledFunction(PulledFunction { request, minimum, deferred_ns: 0, applied, parts })
            }
            Err(error) => function_fault(request, error.to_string()),
        }
    }

    fn push_function(&mut self, push: &PushFunction) -> Option<Message> {
        let PushFunction { request, task, clock, index, matrix, ref calls, .. } = *push;
        let name = PushPosition { clock, index };
        if name < self.mark {
            self.duplicates += 1;
        } else {
            self.check_turn(name);
            let held = &mut self.partitions[matrix as usize];
            let done = held.push_function(&self.functions, calls, PushId { clock, task, index });
            self.mark = PushPosition { clock, index: index + 1 };
            if let Err(error) = done {
                self.failed = Some((name, error.to_string()));
            }
        }
        match &self.failed {
            Some((failed, text)) if *failed == name => Some(function_fault(request, text.clone())),
            _ => (request != 0).then(|| self.done(request)),
        }
    }

    fn try_function(&mut self, ask: &TryFunction) -> Message {
        let TryFunction { request, clock, index, matrix, ref calls, .. } = *ask;
        self.check_turn(PushPosition { clock, index });
        match self.partitions[matrix as usize].try_function(&self.functions, calls) {
            Ok(()) => self.done(request),
            Err(error) => function_fault(request, error.to_string()),
        }
    }

    fn check_turn(&self, name: PushPosition) {
        let follows = name == self.mark || (name.clock > self.mark.clock && name.index == 0);
        assert!(follows, "push {name:?} after {:?}", self.mark);
        assert!(name.clock >= self.clock, "a push of {name:?} behind the tick to {}", self.clock);
    }

    fn push(&mut self, push: &Push, out: &mut Vec<Message>) -> bool {
        let name = PushPosition { clock: push.clock, index: push.index };
        if name < self.mark {
            self.duplicates += 1;
        } else {
            self.check_turn(name);
            let Some(keys) = self.keys(&push.runs, &push.keys) else {
                out.push(fault(push.request, FaultKind::UnknownKeys, 0));
                return true;
            };
            let WireValues::Exact(OwnedValues::I64(values)) = &push.values else {
                panic!("i64 in these tests")
            };
            self.largest_values = self.largest_values.max(values.len());
            let columns = self.columns(push.matrix);
            assert_eq!(values.len(), keys.len() * columns);
            for (i, (partition, key)) in keys.into_iter().enumerate() {
                let placement = self.specs[push.matrix as usize]
                    .placement(&self.functions)
                    .expect("a spec of the layout");
                assert_eq!(placement.partition_of(key), partition as usize);
                for column in 0..columns {
                    let row = (push.matrix, column as u32, key);
                    *self.rows.entry(row).or_default() += values[i * columns + column];
                }
            }
            self.mark = PushPosition { clock: push.clock, index: push.index + 1 };
        }
        if push.request != 0 {
            out.push(self.done(push.request));
        }
        false
    }

    /// Answers the pulls that need not wait any more.
    pub(crate) fn release(&mut self, out: &mut Vec<Message>) {
        let minimum = self.minimum();
        for pull in std::mem::take(&mut self.deferred_pulls) {
            let spec = &self.specs[pull.matrix as usize];
            if minimum < spec.consistency.pull_needs(pull.clock) {
                self.deferred_pulls.push(pull);
                continue;
            }
            let columns = self.columns(pull.matrix);
            let Some(keys) = self.keys(&pull.runs, &pull.keys) else {
                out.push(fault(pull.request, FaultKind::UnknownKeys, 0));
                continue;
            };
            let row = |key: u64, column: usize| {
                self.rows.get(&(pull.matrix, column as u32, key)).copied().unwrap_or(0)
            };
            let values: Vec<i64> = keys
                .iter()
                .flat_map(|(_, key)| (0..columns).map(|column| row(*key, column)).collect::<Vec<_>>())
                .collect();
            self.largest_values = self.largest_values.max(values.len());
            let (request, applied) = (pull.request, self.mark);
            out.push(Message::Pulled(Pulled {
                request,
                minimum,
                deferred_ns: 0,
                applied,
                values: i64::owned(values).into(),
            }));
        }
    }
}

fn function_fault(request: u64, text: String) -> Message {
    Message::Fault(Fault { request, kind: FaultKind::Function, text, retry_after_ms: 0 })
}

pub(crate) fn fault(request: u64, kind: FaultKind, retry_after_ms: u32) -> Message {
    Message::Fault(Fault { request, kind, text: format!("{kind:?}"), retry_after_ms })
}

#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) is_open: bool,
    pub(crate) wants_open: bool,
    pub(crate) to_lane: VecDeque<Message>,
    pub(crate) to_agent: VecDeque<Message>,
}

/// An agent, its lanes, and the connections between them.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) agent: AgentState,
    pub(crate) lanes: Vec<FakeLane>,
    pub(crate) wires: Vec<Wire>,
    /// All messages that the agent has sent.
    pub(crate) sent: Vec<(u16, Message)>,
}

impl World {
    pub(crate) fn new(layout: JobLayout) -> Self {
        let lanes = layout.lanes.iter().map(|_| FakeLane::new(layout.matrices.clone())).collect();
        let wires = layout.lanes.iter().map(|_| Wire::default()).collect();
        let agent = AgentState::new(Duration::ZERO, layout, 0, FunctionTable::builtin())
            .expect("a layout of the test");
        Self { now: Duration::ZERO, agent, lanes, wires, sent: Vec::new() }
    }

    /// Runs the effects of the agent.
    pub(crate) fn carry_out(&mut self) {
        for effect in self.agent.take_effects() {
            match effect {
                AgentEffect::Connect { lane } => {
                    let wire = &mut self.wires[usize::from(lane)];
                    assert!(!wire.is_open && !wire.wants_open, "one connection a lane");
                    wire.wants_open = true;
                }
                AgentEffect::Send { lane, message } => {
                    let wire = &mut self.wires[usize::from(lane)];
                    assert!(wire.is_open, "sent without a connection");
                    self.sent.push((lane, (*message).clone()));
                    wire.to_lane.push_back((*message).clone());
                }
                AgentEffect::Close { lane } => self.wires[usize::from(lane)] = Wire::default(),
            }
        }
    }

    /// Makes one step of the network at a lane. Kind 0 connects or delivers one message to the lane, 1 delivers one
    /// back, 2 delivers it back twice, 3 resets the connection after `kept` more messages to the lane and back.
    pub(crate) fn step(&mut self, lane: usize, kind: u8, kept: (usize, usize)) {
        self.carry_out();
        let at = lane as u16;
        match kind {
            0 if self.wires[lane].wants_open => {
                self.wires[lane].wants_open = false;
                self.wires[lane].is_open = true;
                let welcome = self.lanes[lane].hello();
                self.agent.on_connected(self.now, at, &welcome);
            }
            0 => self.deliver(lane),
            1 | 2 => {
                if let Some(message) = self.wires[lane].to_agent.pop_front() {
                    if kind == 2 {
                        self.agent.on_message(self.now, at, message.clone());
                        self.carry_out();
                    }
                    if self.wires[lane].is_open {
                        self.agent.on_message(self.now, at, message);
                    }
                }
            }
            _ => self.reset(lane, kept),
        }
        self.carry_out();
    }

    fn deliver(&mut self, lane: usize) {
        let Some(message) = self.wires[lane].to_lane.pop_front() else { return };
        let (answers, closes) = self.lanes[lane].take(message);
        self.wires[lane].to_agent.extend(answers);
        if closes {
            self.wires[lane].to_lane.clear();
        }
    }

    fn reset(&mut self, lane: usize, (there, back): (usize, usize)) {
        if self.wires[lane].wants_open {
            self.wires[lane].wants_open = false;
            self.agent.on_closed(self.now, lane as u16, "refused");
        }
        if !self.wires[lane].is_open {
            return;
        }
        for _ in 0..there {
            self.deliver(lane);
        }
        for _ in 0..back {
            if let Some(message) = self.wires[lane].to_agent.pop_front() {
                self.agent.on_message(self.now, lane as u16, message);
                self.carry_out();
            }
        }
        if std::mem::take(&mut self.wires[lane]).is_open {
            self.agent.on_closed(self.now, lane as u16, "reset");
        }
    }

    /// Advances the time to the next deadline of the agent.
    pub(crate) fn wait(&mut self) {
        if let Some(time) = self.agent.next_time() {
            self.now = self.now.max(time);
            self.agent.on_time(self.now);
        }
        self.carry_out();
    }

    /// Delivers all messages, without losses, until the open call has a result.
    pub(crate) fn run(&mut self) -> Result<CallOutput, matrix::Error> {
        for _ in 0..100_000 {
            if let Some(outcome) = self.agent.take_result() {
                self.carry_out();
                return outcome;
            }
            if !self.move_all() {
                self.wait();
            }
        }
        panic!("the call never ends");
    }

    /// Delivers one message at each lane in each direction. Returns false when there was none.
    pub(crate) fn move_all(&mut self) -> bool {
        self.carry_out();
        let mut moved = false;
        for lane in 0..self.wires.len() {
            let wire = &self.wires[lane];
            moved |= wire.wants_open || !wire.to_lane.is_empty() || !wire.to_agent.is_empty();
            self.step(lane, 0, (0, 0));
            self.step(lane, 1, (0, 0));
        }
        moved
    }
}

pub(crate) fn spec(
    name: &str,
    consistency: Consistency,
    columns: u64,
    partitioner: Partitioner,
) -> MatrixSpec {
    MatrixSpec {
        name: name.into(),
        element: ElementType::I64,
        rows: 1 << 20,
        columns,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner,
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency,
        seed: 1,
    }
}

pub(crate) fn layout(matrices: Vec<MatrixSpec>, lane_count: u16, window_bytes: u64) -> JobLayout {
    let owners = matrices
        .iter()
        .map(|spec| assign_partitions(spec.partitioner.partition_count(), lane_count))
        .collect();
    let lane = |lane| LaneAddress::new(vec![format!("tcp:host{lane}:1")], 0);
    JobLayout {
        job: 7,
        task_count: 2,
        wait_limit: Duration::from_secs(10),
        window_bytes,
        matrices,
        lanes: (0..lane_count).map(lane).collect(),
        owners,
        home: lane_count - 1,
        wire: Vec::new(),
        prefetch: matrix::Prefetch::default(),
    }
}
