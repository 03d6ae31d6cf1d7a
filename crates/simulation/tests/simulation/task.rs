//! A task: its program, its agent, and the effects of the agent on the network.

use matrix::{Element, ElementType, FunctionTable, MatrixId, OwnedValues, PullTicket, with_element_type};
use rpc::Message;
use rpc::layout::JobLayout;
use rpc::message::{FaultKind, Hello, Role};
use worker::{AgentEffect, AgentState, CallOutput};

use crate::cluster::{Cluster, time};
use crate::functions::{failing_calls, may_fail, part, pull_call, push_call, tried_call};
use crate::history::{Cell, TaskEvent};
use crate::network::{Connection, Item};
use crate::probe::{Probe, TaskCall};
use crate::scenario::Scenario;
use crate::schedule::Event;

/// One connection of this many is refused.
const REFUSED: u64 = 20;

#[derive(Debug)]
pub(crate) struct Task {
    id: u32,
    pub(crate) agent: AgentState,
    probe: Probe,
    /// Per lane.
    pub(crate) connections: Vec<Option<usize>>,
    /// The server of which its worker knows that it is lost.
    pub(crate) lost_server: Option<usize>,
    pub(crate) stands_until: u64,
    pub(crate) is_removed: bool,
    /// The open call, and the time at which it began.
    pub(crate) call: Option<(TaskCall, u64)>,
    generation: u64,
    is_over: bool,
    timer: u64,
    error: Option<matrix::Error>,
    attempt: Attempt,
    /// What the task has prefetched and not read yet: matrix, partitions and ticket.
    pub(crate) tickets: Vec<(usize, u64, PullTicket)>,
    /// Number of pushes, those of earlier attempts included; and number of pushes in the history.
    push_count: usize,
    noted_count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Goes,
    /// Not all lanes have answered yet how far the attempt before this one came.
    Asks,
}

impl Task {
    pub(crate) fn new(
        now: u64,
        scenario: &Scenario,
        layout: JobLayout,
        id: u32,
        injected_fault: Option<worker::InjectedFault>,
    ) -> Self {
        let connections = vec![None; layout.lanes.len()];
        let agent = AgentState::new(time(now), layout, id, FunctionTable::builtin());
        let agent = agent.expect("a good layout").with_fault(injected_fault);
        Self {
            id,
            agent,
            probe: Probe::new(scenario, id),
            connections,
            lost_server: None,
            stands_until: 0,
            is_removed: false,
            call: None,
            generation: 0,
            is_over: false,
            timer: u64::MAX,
            error: None,
            attempt: Attempt::Goes,
            tickets: Vec::new(),
            push_count: 0,
            noted_count: 0,
        }
    }

    /// The task begins later than the others, at this clock and after this many barriers.
    pub(crate) fn join(&mut self, clock: u64, generation: u64) {
        if clock > 0 {
            self.agent.start_at(clock);
        }
        self.generation = generation;
        self.probe.start_behind(generation);
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.is_over
    }

    pub(crate) fn state(&self) -> String {
        let (id, clock) = (self.id, self.agent.clock());
        format!(
            "task {id} at clock {clock}, over: {}, in call {:?}, {:?}",
            self.is_over, self.call, self.error
        )
    }
}

/// Converts counters of any element type to integers.
pub(crate) fn whole(values: &OwnedValues) -> Vec<i64> {
    values.as_values().to_f64().into_iter().map(|value| value as i64).collect()
}

pub(crate) fn values(element: ElementType, amount: i64, count: usize) -> OwnedValues {
    with_element_type!(element, E => E::owned(vec![E::from_f64(amount as f64); count]))
}

impl Cluster {
    /// The cells of some partitions, in ascending order of key.
    pub(crate) fn cells(&self, matrix: usize, partitions: u64) -> Vec<(u64, u32, u32)> {
        let count = self.scenario.task_count + 1;
        let wanted = |cell: &&(u64, u32, u32)| partitions >> cell.1 & 1 == 1 && cell.2 < count;
        self.scenario.counters[matrix].cells.iter().filter(wanted).copied().collect()
    }

    pub(crate) fn begin_call(&mut self, at: usize) {
        let now = time(self.now);
        let task = &mut self.tasks[at];
        if task.is_over
            || task.call.is_some()
            || task.stands_until > self.now
            || task.attempt == Attempt::Asks
        {
            return;
        }
        self.receive_before_tick(at);
        let task = &mut self.tasks[at];
        let Some(act) = task.probe.next(&self.scenario) else {
            task.is_over = true;
            return;
        };
        let id = task.id;
        task.call = Some((act.clone(), self.now));
        match act {
            TaskCall::Pull { matrix, partitions } => self.pull(at, matrix, partitions),
            TaskCall::Prefetch { matrix, partitions, ticks } => self.prefetch(at, matrix, partitions, ticks),
            TaskCall::Ask { matrix } => {
                let call = pull_call(&self.scenario.counters[matrix].spec);
                task.agent.pull_function(now, MatrixId(matrix as u32), &call);
            }
            TaskCall::Push { matrix, partitions, amount, by_function } => {
                self.push(at, matrix, partitions, amount, by_function);
            }
            TaskCall::Fail { matrix } => {
                let key =
                    self.cells(matrix, u64::MAX).iter().find(|cell| cell.2 == id).map_or(0, |cell| cell.0);
                let calls = failing_calls(&self.scenario.counters[matrix].spec, key);
                self.tasks[at].agent.push_function(now, MatrixId(matrix as u32), &calls);
            }
            TaskCall::Tick => {
                let clock = task.agent.clock() + 1;
                task.agent.tick(now);
                self.note(id, TaskEvent::Tick { clock });
            }
            TaskCall::Barrier { part } => {
                let generation = task.generation;
                task.agent.barrier(now, part.clone());
                self.note(id, TaskEvent::Barrier { generation, part });
            }
            TaskCall::Finish => {
                task.agent.finish(now);
                self.note(id, TaskEvent::Leaves);
            }
        }
        self.run_effects(at);
        self.listen(at);
    }

    /// Adds to the own counters of the task, by a push or by a function.
    fn push(&mut self, at: usize, matrix: usize, partitions: u64, amount: i64, by_function: bool) {
        let (now, id, clock) = (time(self.now), self.tasks[at].id, self.tasks[at].agent.clock());
        let cells = self.cells(matrix, partitions);
        let keys: Vec<u64> = cells.iter().filter(|cell| cell.2 == id).map(|cell| cell.0).collect();
        self.note_push(at, TaskEvent::Push { matrix, clock, amount, partitions });
        let (spec, id) = (&self.scenario.counters[matrix].spec, MatrixId(matrix as u32));
        if by_function {
            self.history.facts.function_pushes += 1;
            let mut calls = vec![push_call(spec, &keys, amount)];
            if amount % 2 == 0 && may_fail(spec) {
                calls.push(tried_call());
            }
            self.tasks[at].agent.push_function(now, id, &calls);
        } else {
            let values = values(spec.element, amount, keys.len());
            self.tasks[at].agent.push(now, id, part(spec, &keys), values.as_values());
        }
    }

    fn note_push(&mut self, at: usize, push: TaskEvent) {
        let task = &mut self.tasks[at];
        task.push_count += 1;
        if task.push_count > task.noted_count {
            task.noted_count = task.push_count;
            let id = task.id;
            self.note(id, push);
        }
    }

    /// An agent that receives only during calls reads its connections before a tick.
    fn receive_before_tick(&mut self, at: usize) {
        if self.scenario.listens || self.tasks[at].probe.peek(&self.scenario) != Some(&TaskCall::Tick) {
            return;
        }
        for lane in 0..self.tasks[at].connections.len() {
            while let Some(connection) = self.tasks[at].connections[lane]
                && self.connections[connection].down.items.front().is_some_and(|(time, _)| *time <= self.now)
            {
                self.take_down(connection);
            }
        }
    }

    /// A tick has ended: every lane must have got it, over a connection that the agent does not know as lost.
    fn check_tick(&mut self, at: usize) {
        let task = &self.tasks[at];
        let (id, clock) = (task.id, task.agent.clock());
        for (lane, connection) in task.connections.iter().enumerate() {
            let connection = connection.map(|at| &self.connections[at]);
            if connection.is_none_or(|connection| connection.ticked < clock) {
                let text = format!(
                    "at {} us the tick of task {id} to {clock} has ended, lane {lane} is not told",
                    self.now
                );
                return self.history.seen.push(text);
            }
        }
    }

    /// The task dies at once, and another attempt of it begins, unless the task is leaving.
    pub(crate) fn begin_again(&mut self, at: usize) {
        let task = &self.tasks[at];
        if task.is_over || matches!(task.call, Some((TaskCall::Finish, _))) {
            return;
        }
        self.kill_task(at);
        let layout = self.scenario.layout();
        let before = &self.tasks[at];
        let mut next = Task::new(self.now, &self.scenario, layout, before.id, self.agent_fault);
        next.lost_server = before.lost_server;
        (next.attempt, next.noted_count) = (Attempt::Asks, before.noted_count);
        self.tasks[at] = next;
        self.run_effects(at);
    }

    /// The process of a task ends.
    pub(crate) fn kill_task(&mut self, at: usize) {
        for connection in self.tasks[at].connections.clone().into_iter().flatten() {
            self.connections[connection].up.cut(self.now, &mut self.random);
            self.connections[connection].down.cut(self.now, &mut self.random);
            self.look_up(connection);
        }
        self.tasks[at].is_over = true;
        self.tasks[at].call = None;
    }

    /// The worker of a task learns that its job is over.
    pub(crate) fn end_of_job(&mut self, at: usize) {
        let task = &mut self.tasks[at];
        if task.stands_until > self.now {
            return self.schedule.put(task.stands_until, Event::EndOfJob { task: at });
        }
        let waits_in_vain = task.call.is_some() && self.lanes.iter().any(|lane| lane.state.is_none());
        self.woken_count += u64::from(waits_in_vain);
        task.agent.stop("the job is over");
        self.run_effects(at);
    }

    /// Continues the attempt once all lanes have answered how far the attempt before it came.
    fn perhaps_go_on(&mut self, at: usize) {
        let task = &mut self.tasks[at];
        let Some(clock) = task.agent.resume_clock().filter(|_| task.attempt == Attempt::Asks) else { return };
        task.attempt = Attempt::Goes;
        task.agent.start_at(clock);
        task.push_count = task.probe.skip(&self.scenario, clock);
        let id = task.id;
        self.note(id, TaskEvent::Again { clock });
        self.schedule.put(self.now, Event::Think { task: at });
    }

    /// Whether the task can receive messages.
    fn hears(&self, at: usize) -> bool {
        let task = &self.tasks[at];
        let in_call = task.call.is_some() || self.scenario.listens || task.attempt == Attempt::Asks;
        in_call && task.stands_until <= self.now && !task.is_over
    }

    /// Receives what has arrived in the meantime.
    fn listen(&mut self, at: usize) {
        for lane in 0..self.tasks[at].connections.len() {
            if let Some(connection) = self.tasks[at].connections[lane] {
                self.look_down(connection);
            }
        }
        self.task_time(at);
    }

    pub(crate) fn resume_task(&mut self, at: usize) {
        self.listen(at);
        self.begin_call(at);
    }

    pub(crate) fn task_time(&mut self, at: usize) {
        if !self.hears(at) {
            return;
        }
        let now = time(self.now);
        let task = &mut self.tasks[at];
        task.timer = u64::MAX;
        if task.agent.next_time().is_some_and(|next| next <= now) {
            task.agent.on_time(now);
        }
        self.run_effects(at);
    }

    /// Delivers the first message on the way to the task if it is due.
    pub(crate) fn down(&mut self, at: usize, ticket: u64) {
        let connection = &self.connections[at];
        let (task, lane) = (connection.task, connection.lane);
        if connection.down.ticket != ticket || self.tasks[task].connections[lane] != Some(at) {
            return;
        }
        if self.hears(task) {
            self.take_down(at);
        }
    }

    fn take_down(&mut self, at: usize) {
        let connection = &self.connections[at];
        let (task, lane) = (connection.task, connection.lane);
        let Some((_, item)) = self.connections[at].down.items.pop_front() else { return };
        let now = time(self.now);
        // A primary that was replaced has forgotten the job: the worker goes on to the standby.
        let is_elsewhere = |message: &Message| {
            let is_gone = matches!(message, Message::Fault(fault) if fault.kind == FaultKind::NoSuchJob);
            self.scenario.replicas && is_gone
        };
        if let Some(message) = item.message().filter(|message| !is_elsewhere(message)) {
            self.tasks[task].agent.on_message(now, lane as u16, message);
        } else {
            self.tasks[task].connections[lane] = None;
            self.tasks[task].agent.on_closed(now, lane as u16, "reset");
        }
        self.look_down(at);
        self.perhaps_go_on(task);
        self.run_effects(task);
    }

    /// Executes the effects of the agent, and ends the call when it has a result.
    pub(crate) fn run_effects(&mut self, at: usize) {
        loop {
            let effects = self.tasks[at].agent.take_effects();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                match effect {
                    AgentEffect::Connect { lane } => self.connect(at, lane),
                    AgentEffect::Send { lane, message } => {
                        let connection = self.tasks[at].connections[usize::from(lane)];
                        let connection = connection.expect("an agent sends over a connection that stands");
                        self.send_up(connection, (*message).clone());
                    }
                    AgentEffect::Close { lane } => {
                        if let Some(connection) = self.tasks[at].connections[usize::from(lane)].take() {
                            let delay = self.delay();
                            self.connections[connection].up.put(self.now, delay, Item::Closed);
                            self.look_up(connection);
                        }
                    }
                }
            }
        }
        let task = &mut self.tasks[at];
        if let Some(next) = task.agent.next_time() {
            let next = (next.as_micros() as u64).max(self.now);
            if next < task.timer || task.timer <= self.now {
                task.timer = next;
                self.schedule.put(next, Event::TaskTime { task: at });
            }
        }
        if let Some(outcome) = self.tasks[at].agent.take_result() {
            self.end_call(at, outcome);
        }
    }

    fn connect(&mut self, at: usize, lane: u16) {
        let connection = self.connections.len();
        let node = self.node_for(at, usize::from(lane));
        self.connections.push(Connection::new(at, usize::from(lane), node));
        self.tasks[at].connections[usize::from(lane)] = Some(connection);
        let delay = self.delay();
        if self.scenario.frames_of_reset > 0 && self.random.below(REFUSED) == 0 {
            self.connections[connection].up.is_cut = true;
            self.connections[connection].down.put(self.now, delay, Item::Closed);
            return self.look_down(connection);
        }
        let role = Role::Task { job: self.scenario.job, task: self.tasks[at].id };
        let hello = Hello { request: 1, token: Vec::new(), role, lane: 0 };
        self.send_up(connection, Message::Hello(hello));
    }

    fn send_up(&mut self, connection: usize, message: Message) {
        if let Message::Tick(tick) = &message {
            self.connections[connection].ticked = tick.clock;
        }
        let (delay, item) = (self.delay(), Item::of(message, self.scenario.as_bytes));
        self.connections[connection].up.put(self.now, delay, item);
        self.look_up(connection);
        self.perhaps_reset(connection);
    }

    fn end_call(&mut self, at: usize, outcome: Result<CallOutput, matrix::Error>) {
        let id = self.tasks[at].id;
        let Some((act, begun)) = self.tasks[at].call.take() else { return };
        match outcome {
            Err(matrix::Error::FunctionAtServer { .. }) if matches!(act, TaskCall::Fail { .. }) => {
                self.history.facts.failed_functions += 1;
            }
            Err(error) => {
                self.note(id, TaskEvent::Failed { error: error.to_string() });
                self.tasks[at].error = Some(error);
                self.tasks[at].is_over = true;
                return;
            }
            Ok(CallOutput::ValuesReady) => {
                if let TaskCall::Pull { matrix, partitions } = act {
                    self.read(at, matrix, partitions, begun);
                }
            }
            Ok(CallOutput::FunctionAnswer(answer)) => {
                if let TaskCall::Ask { matrix } = act {
                    self.answered(at, matrix, begun, &answer);
                }
            }
            Ok(CallOutput::BarrierSum(sum)) => {
                let (generation, clock) = (self.tasks[at].generation, self.tasks[at].agent.clock());
                self.tasks[at].generation += 1;
                self.note(id, TaskEvent::Passed { generation, clock, sum });
            }
            Ok(CallOutput::Done) if act == TaskCall::Finish => {
                let (agent, facts) = (&self.tasks[at].agent, &mut self.history.facts);
                facts.read_ahead += agent.prefetch_counts().used;
                self.note(id, TaskEvent::Left);
                self.tasks[at].is_over = true;
                return;
            }
            Ok(CallOutput::Done) if act == TaskCall::Tick => self.check_tick(at),
            Ok(CallOutput::Done) => {}
        }
        let think = self.tasks[at].probe.think();
        self.schedule.put(self.now + think, Event::Think { task: at });
    }

    fn read(&mut self, at: usize, matrix: usize, partitions: u64, begun: u64) {
        let cells = self.cells(matrix, partitions);
        let mut values = OwnedValues::zeros(self.scenario.counters[matrix].spec.element, cells.len());
        let out = values.slice_mut(0..cells.len());
        self.tasks[at].agent.read_pulled(out).expect("values of the element type of the matrix");
        self.note_pulled(at, matrix, begun, &cells, &whole(&values));
    }

    pub(crate) fn note_pulled(
        &mut self,
        at: usize,
        matrix: usize,
        begun: u64,
        cells: &[(u64, u32, u32)],
        values: &[i64],
    ) {
        let cells = cells.iter().zip(values);
        let cells = cells.map(|((_, partition, writer), value)| Cell {
            partition: *partition,
            writer: *writer,
            value: *value,
        });
        let (id, clock) = (self.tasks[at].id, self.tasks[at].agent.clock());
        let cells = cells.collect();
        self.note(id, TaskEvent::Pulled { matrix, clock, begun, cells });
    }
}
