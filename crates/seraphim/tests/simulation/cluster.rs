//! All members in one thread, and what happens to them.

use std::time::Duration;

use math::random::Stream;
use rpc::Message;
use rpc::message::{Export, Hello, Join, Leave, OpenJob, Role};
use rpc::service::{Effect, Service};
use server::{Broken, LaneConfig, LaneState};

use crate::history::{Cell, History, What};
use crate::network::{Connection, Item, answer_of, request_of};
use crate::scenario::{Drama, JOB, Scenario, random};
use crate::schedule::{Event, Schedule};
use crate::task::Task;

/// Nothing lasts longer, in microseconds: everybody has a limit to wait, and the limits are shorter.
const TIME_LIMIT: u64 = 3_600_000_000;
/// More events than any seed needs: members that go on speaking without getting on.
const EVENT_LIMIT: u64 = 300_000;
/// Longest stop of a member.
const LONGEST_PAUSE: u64 = 2_000_000;
/// The connection of the tool, beyond those of tasks.
const TOOL: u64 = u64::MAX;

/// A lane, in its own process.
#[derive(Debug)]
pub(crate) struct Lane {
    /// `None`: it crashed.
    pub(crate) state: Option<LaneState>,
    incarnation: u64,
    stands_until: u64,
    /// When it is called next.
    timer: u64,
}

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) scenario: Scenario,
    broken: Option<Broken>,
    pub(crate) now: u64,
    pub(crate) schedule: Schedule,
    pub(crate) random: Stream,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) history: History,
    /// What lanes said to the tool that lets a task in.
    joined: Vec<u64>,
}

pub(crate) fn time(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl Cluster {
    pub(crate) fn new(scenario: Scenario, broken: Option<Broken>) -> Self {
        let mut cluster = Self {
            broken,
            now: 0,
            schedule: Schedule::default(),
            random: random(scenario.seed, 1),
            lanes: Vec::new(),
            tasks: Vec::new(),
            connections: Vec::new(),
            history: History::new(&scenario),
            joined: Vec::new(),
            scenario,
        };
        for lane in 0..cluster.scenario.lane_count {
            let state = Some(cluster.new_lane(lane, 1));
            cluster.lanes.push(Lane { state, incarnation: 1, stands_until: 0, timer: u64::MAX });
            cluster.open_job(lane);
        }
        let layout = cluster.scenario.layout();
        for task in 0..cluster.scenario.task_count {
            let task = Task::new(0, &cluster.scenario, layout.clone(), task, 0);
            cluster.add_task(task);
        }
        cluster.plan_drama();
        cluster
    }

    fn new_lane(&self, lane: u16, incarnation: u64) -> LaneState {
        LaneState::new(LaneConfig {
            lane,
            lanes: self.scenario.lane_count,
            incarnation,
            memory_limit_bytes: 1 << 40,
            window_bytes: self.scenario.lane_window,
            held_limit_bytes: self.scenario.held_limit,
            key_list_limit_bytes: self.scenario.key_list_limit,
            broken: self.broken,
        })
    }

    fn open_job(&mut self, lane: u16) {
        let layout = self.scenario.layout();
        let open = OpenJob {
            request: 1,
            job: JOB,
            task_count: layout.task_count,
            wait_limit_ms: layout.wait_limit.as_millis() as u64,
            held: layout.held_by(lane),
            home: layout.home == lane,
            matrices: layout.matrices,
        };
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
        self.tool_says(usize::from(lane), Message::Hello(hello));
        self.tool_says(usize::from(lane), Message::OpenJob(open));
    }

    /// Adds a task, which begins after a while.
    fn add_task(&mut self, task: Task) {
        let at = self.tasks.len();
        self.tasks.push(task);
        self.carry_out(at);
        let begins = self.random.below(10_000);
        self.schedule.put(self.now + begins, Event::Think { task: at });
    }

    fn plan_drama(&mut self) {
        let lanes = self.lanes.len();
        let start = self.random.below(400_000);
        match self.scenario.drama {
            Drama::Nothing => {}
            Drama::Remove => {
                for lane in 0..lanes {
                    let late = self.random.below(300_000);
                    self.schedule.put(start + late, Event::Remove { lane, task: 0 });
                }
            }
            Drama::Join => {
                for lane in 0..lanes {
                    let late = self.random.below(100_000);
                    self.schedule.put(start + late, Event::Join { lane });
                }
            }
            Drama::Crash => {
                let lane = self.random.below(lanes as u64) as usize;
                self.schedule.put(start, Event::Crash { lane });
                if self.random.below(2) == 0 {
                    let late = self.random.below(5_000_000);
                    self.schedule.put(start + late, Event::Restart { lane });
                }
            }
            Drama::PausedForEver => self.schedule.put(start, Event::PauseTask { task: 0 }),
        }
        if self.scenario.pauses {
            for _ in 0..1 + self.random.below(4) {
                let at = self.random.below(1_000_000);
                let event = if self.random.below(2) == 0 {
                    Event::PauseLane { lane: self.random.below(lanes as u64) as usize }
                } else {
                    Event::PauseTask { task: self.random.below(self.tasks.len() as u64) as usize }
                };
                self.schedule.put(at, event);
            }
        }
    }

    /// Runs until nothing happens any more.
    pub(crate) fn run(mut self) -> History {
        let mut count = 0;
        while let Some((time, event)) = self.schedule.next() {
            self.now = time;
            count += 1;
            if time > TIME_LIMIT || count > EVENT_LIMIT {
                self.history.stuck = Some(format!("after {count} events it is {time} us: {}", self.state()));
                return self.history;
            }
            self.happens(event);
        }
        let alive = |task: &&Task| task.is_alive() && task.stands_until != u64::MAX;
        if self.tasks.iter().any(|task| alive(&task)) {
            self.history.stuck = Some(format!("nothing happens any more: {}", self.state()));
        }
        self.export();
        self.history
    }

    fn state(&self) -> String {
        let mut text = String::new();
        for task in &self.tasks {
            text.push_str(&format!("\n  {}", task.state()));
        }
        for (i, lane) in self.lanes.iter().enumerate() {
            let state =
                lane.state.as_ref().map(|lane| format!("{lane:?}").chars().take(4_000).collect::<String>());
            text.push_str(&format!("\n  lane {i}: {state:?}"));
        }
        text
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Up { connection, ticket } => self.up(connection, ticket),
            Event::Down { connection, ticket } => self.down(connection, ticket),
            Event::LaneTime { lane } => self.lane_time(lane),
            Event::TaskTime { task } => self.task_time(task),
            Event::Think { task } => self.begin_call(task),
            Event::PauseLane { lane } => {
                let until = self.now + self.random.below(LONGEST_PAUSE);
                self.lanes[lane].stands_until = until;
                self.schedule.put(until, Event::ResumeLane { lane });
            }
            Event::ResumeLane { lane } => {
                self.lane_time(lane);
                for at in 0..self.connections.len() {
                    if self.connections[at].lane == lane {
                        self.look_up(at);
                    }
                }
            }
            Event::PauseTask { task } => {
                if self.scenario.drama == Drama::PausedForEver && task == 0 {
                    self.tasks[task].stands_until = u64::MAX;
                } else {
                    let until = self.now + self.random.below(LONGEST_PAUSE);
                    self.tasks[task].stands_until = until;
                    self.schedule.put(until, Event::ResumeTask { task });
                }
            }
            Event::ResumeTask { task } => self.resume_task(task),
            Event::Remove { lane, task } => {
                if !self.tasks[0].is_removed && self.tasks[0].is_alive() {
                    self.tasks[0].is_removed = true;
                    self.note(task, What::Removed);
                }
                if self.tasks[0].is_removed {
                    self.tool_says(lane, Message::Leave(Leave { request: 2, job: JOB, task }));
                }
            }
            Event::Join { lane } => self.join(lane),
            Event::Crash { lane } => self.crash(lane),
            Event::Restart { lane } => {
                let incarnation = self.lanes[lane].incarnation + 1;
                let state = Some(self.new_lane(lane as u16, incarnation));
                self.lanes[lane] = Lane { state, incarnation, stands_until: 0, timer: u64::MAX };
            }
        }
    }

    pub(crate) fn note(&mut self, task: u32, what: What) {
        self.history.entries.push(crate::history::Entry { time: self.now, task, what });
    }

    /// Lets a task in, unless all have left; when all lanes have said their clock, it begins.
    fn join(&mut self, lane: usize) {
        let task = self.scenario.task_count;
        if self.joined.is_empty() && !self.tasks.iter().any(Task::is_alive) {
            return;
        }
        let join = Join { request: 2, job: JOB, task };
        let answers = self.tool_says(lane, Message::Join(join));
        let Some(Message::Joined(joined)) = answers.into_iter().next() else {
            return self.history.seen.push(format!("lane {lane} did not let task {task} in"));
        };
        self.joined.push(joined.clock);
        if self.joined.len() == self.lanes.len() {
            let clock = self.joined.iter().copied().max().unwrap_or(0);
            let mut layout = self.scenario.layout();
            layout.task_count += 1;
            let new = Task::new(self.now, &self.scenario, layout, task, clock);
            self.note(task, What::Joined { clock });
            self.add_task(new);
        }
    }

    fn crash(&mut self, lane: usize) {
        self.lanes[lane].state = None;
        self.note(0, What::Crashed);
        for at in 0..self.connections.len() {
            if self.connections[at].lane == lane {
                self.connections[at].up.items.clear();
                self.connections[at].up.is_cut = true;
                self.connections[at].is_served = false;
                self.connections[at].down.cut(self.now, &mut self.random);
                self.look_down(at);
            }
        }
    }

    /// The tool stands beside the lane: nothing is lost between them.
    fn tool_says(&mut self, lane: usize, message: Message) -> Vec<Message> {
        let Some(state) = &mut self.lanes[lane].state else { return Vec::new() };
        let mut effects = Vec::new();
        state.on_message(time(self.now), TOOL, message, &mut effects);
        let mut answers = Vec::new();
        effects.retain(|effect| match effect {
            Effect::Send { connection: TOOL, message } => {
                answers.push(message.clone());
                false
            }
            _ => true,
        });
        self.lane_does(lane, effects);
        answers
    }

    fn lane_does(&mut self, lane: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { connection, message } => self.send_down(connection as usize, message),
                Effect::Close { connection } => {
                    let at = connection as usize;
                    let delay = self.delay();
                    self.connections[at].down.put(self.now, delay, Item::Closed);
                    self.look_down(at);
                    // No more of its frames are read; the lane still hears that it is gone.
                    self.connections[at].up.items.clear();
                    self.connections[at].up.is_cut = false;
                    self.connections[at].up.put(self.now, delay, Item::Closed);
                    self.connections[at].is_paused = false;
                    self.look_up(at);
                }
                Effect::Pause { connection } => self.connections[connection as usize].is_paused = true,
                Effect::Resume { connection } => {
                    self.connections[connection as usize].is_paused = false;
                    self.look_up(connection as usize);
                }
            }
        }
        let Some(state) = &self.lanes[lane].state else { return };
        if let Some(next) = state.next_time() {
            let next = (next.as_micros() as u64).max(self.now);
            if next < self.lanes[lane].timer || self.lanes[lane].timer <= self.now {
                self.lanes[lane].timer = next;
                self.schedule.put(next, Event::LaneTime { lane });
            }
        }
    }

    fn lane_time(&mut self, lane: usize) {
        let now = self.now;
        let node = &mut self.lanes[lane];
        if node.stands_until > now {
            return;
        }
        node.timer = u64::MAX;
        let mut effects = Vec::new();
        if let Some(state) = &mut node.state
            && state.next_time().is_some_and(|next| next <= time(now))
        {
            state.on_time(time(now), &mut effects);
        }
        self.lane_does(lane, effects);
    }

    /// What comes first on the way to the lane has perhaps come.
    fn up(&mut self, at: usize, ticket: u64) {
        let connection = &mut self.connections[at];
        let lane = connection.lane;
        let stands = self.lanes[lane].stands_until > self.now || connection.is_paused;
        if connection.up.ticket != ticket || stands {
            return;
        }
        let Some((_, item)) = connection.up.items.pop_front() else { return };
        let mut effects = Vec::new();
        let now = time(self.now);
        match (item.message(), &mut self.lanes[lane].state) {
            (Some(message), Some(state)) => {
                connection.is_served |= matches!(message, Message::Hello(_));
                let request = request_of(&message);
                if request != 0 {
                    *connection.open_requests.entry(request).or_default() += 1;
                }
                let is_echo = connection.echo_count > 0;
                connection.echo_count = connection.echo_count.saturating_sub(1);
                if self.scenario.frames_of_echo > 0 && !is_echo {
                    connection.told.push(message.clone());
                }
                state.on_message(now, at as u64, message, &mut effects);
                if !is_echo {
                    self.perhaps_echo(at);
                }
            }
            (None, Some(state)) => {
                if std::mem::take(&mut connection.is_served) {
                    state.on_closed(now, at as u64, &mut effects);
                }
            }
            (_, None) => {
                connection.up.items.clear();
                connection.up.is_cut = true;
                connection.down.cut(self.now, &mut self.random);
                self.look_down(at);
            }
        }
        self.look_up(at);
        self.lane_does(lane, effects);
    }

    /// Tells a lane once more what it was told over a connection.
    fn perhaps_echo(&mut self, at: usize) {
        let frames = self.scenario.frames_of_echo;
        if frames == 0 || self.random.below(frames) > 0 {
            return;
        }
        let (task, lane) = (self.connections[at].task, self.connections[at].lane);
        if self.random.below(3) > 0 {
            // A second hello is none of the things that may be repeated.
            let count = self.random.below(self.connections[at].told.len() as u64) as usize;
            self.connections[at].echo_count = count;
            let told = &self.connections[at].told;
            let again: Vec<Message> = told[told.len() - count..].to_vec();
            for message in again.into_iter().rev() {
                let item = Item::of(message, self.scenario.as_bytes);
                self.connections[at].up.items.push_front((self.now, item));
            }
            return;
        }
        let told = self.connections[at].told.clone();
        let count = self.random.below(told.len() as u64 + 1) as usize;
        let zombie = self.connections.len();
        self.connections.push(Connection { echo_count: count, ..Connection::new(task, lane) });
        for message in told.into_iter().take(count) {
            let (delay, item) = (self.delay(), Item::of(message, self.scenario.as_bytes));
            self.connections[zombie].up.put(self.now, delay, item);
        }
        let delay = self.delay();
        self.connections[zombie].up.put(self.now, delay, Item::Closed);
        self.look_up(zombie);
    }

    pub(crate) fn delay(&mut self) -> u64 {
        1 + self.random.below(self.scenario.longest_delay)
    }

    fn send_down(&mut self, at: usize, message: Message) {
        let request = answer_of(&message);
        if request != 0 {
            let open = self.connections[at].open_requests.entry(request).or_default();
            if *open == 0 {
                self.history
                    .seen
                    .push(format!("request {request} of connection {at} was answered too often"));
            }
            *open = open.saturating_sub(1);
        }
        let (delay, item) = (self.delay(), Item::of(message, self.scenario.as_bytes));
        self.connections[at].down.put(self.now, delay, item);
        self.look_down(at);
        self.perhaps_reset(at);
    }

    /// One frame in so many is the last of its connection.
    pub(crate) fn perhaps_reset(&mut self, at: usize) {
        let frames = self.scenario.frames_of_reset;
        if frames == 0 || self.random.below(frames) > 0 {
            return;
        }
        let connection = &mut self.connections[at];
        connection.up.cut(self.now, &mut self.random);
        connection.down.cut(self.now, &mut self.random);
        self.look_up(at);
        self.look_down(at);
    }

    pub(crate) fn look_up(&mut self, at: usize) {
        let pipe = &mut self.connections[at].up;
        pipe.ticket += 1;
        if let Some((time, _)) = pipe.items.front() {
            self.schedule.put((*time).max(self.now), Event::Up { connection: at, ticket: pipe.ticket });
        }
    }

    pub(crate) fn look_down(&mut self, at: usize) {
        let pipe = &mut self.connections[at].down;
        pipe.ticket += 1;
        if let Some((time, _)) = pipe.items.front() {
            self.schedule.put((*time).max(self.now), Event::Down { connection: at, ticket: pipe.ticket });
        }
    }

    /// What the lanes hold at the end.
    fn export(&mut self) {
        for lane in 0..self.lanes.len() {
            for matrix in 0..self.scenario.counters.len() {
                let export = Export { request: 9, job: JOB, matrix: matrix as u32, offset: 0 };
                let answers = self.tool_says(lane, Message::Export(export));
                let Some(Message::ExportPage(page)) = answers.into_iter().next() else { continue };
                for (key, value) in page.keys.iter().zip(crate::task::whole(&page.values)) {
                    let cells = &self.scenario.counters[matrix].cells;
                    let cell = cells.binary_search_by_key(key, |cell| cell.0);
                    let Some(&(_, partition, writer)) = cell.ok().map(|at| &cells[at]) else {
                        self.history.seen.push(format!("key {key} of matrix {matrix} was never pushed"));
                        continue;
                    };
                    self.history.exported.push((matrix, Cell { partition, writer, value }));
                }
            }
        }
    }
}
