//! All members of a simulated cluster in one thread, and the events that reach them.

use std::fmt::Write as _;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use math::random::RandomStream;
use rpc::Message;
use rpc::message::{Durability, Hello, Join, Leave, OpenJob, Role};
use rpc::service::{Effect, Service};
use server::replica::{PrimaryLane, StandbyLane};
use server::{InjectedFault, LaneConfig, LaneState};

use crate::history::{History, TaskEvent};
use crate::network::Connection;
use crate::replicas::Link;
use crate::scenario::{Disturbance, Scenario, random};
use crate::schedule::{Event, Schedule};
use crate::task::Task;

/// Limit of a run in microseconds. Every process has a wait limit, and those are shorter.
const TIME_LIMIT: u64 = 3_600_000_000;
/// Limit of events, more than any seed needs. A run above it has members that exchange messages without progress.
const EVENT_LIMIT: u64 = 300_000;
/// Longest pause of a member, in microseconds.
const LONGEST_PAUSE: u64 = 2_000_000;
/// Number of the connection of the tool, above those of tasks.
pub(crate) const TOOL: u64 = u64::MAX;

/// What a process does with the messages of a lane.
pub(crate) enum Node {
    Plain(Box<LaneState>),
    Primary(Box<PrimaryLane>),
    Standby(Box<StandbyLane>),
}

impl Node {
    pub(crate) fn lane(&self) -> &LaneState {
        match self {
            Node::Plain(lane) => lane,
            Node::Primary(primary) => primary.state(),
            Node::Standby(standby) => standby.state(),
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lane().fmt(f)
    }
}

impl Deref for Node {
    type Target = dyn Service;

    fn deref(&self) -> &Self::Target {
        match self {
            Node::Plain(lane) => &**lane,
            Node::Primary(primary) => &**primary,
            Node::Standby(standby) => &**standby,
        }
    }
}

impl DerefMut for Node {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Node::Plain(lane) => &mut **lane,
            Node::Primary(primary) => &mut **primary,
            Node::Standby(standby) => &mut **standby,
        }
    }
}

/// A lane in a process of its own.
#[derive(Debug)]
pub(crate) struct Lane {
    /// `None` after a crash.
    pub(crate) state: Option<Node>,
    incarnation: u64,
    pub(crate) stands_until: u64,
    /// Time of its next timer event.
    pub(crate) timer: u64,
}

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) scenario: Scenario,
    pub(crate) injected_fault: Option<InjectedFault>,
    pub(crate) agent_fault: Option<worker::InjectedFault>,
    pub(crate) now: u64,
    pub(crate) schedule: Schedule,
    pub(crate) random: RandomStream,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) history: History,
    /// Answers of lanes to the tool that adds a task: clocks and generations.
    joined: Vec<(u64, u32)>,
    /// Per lane: effects for connections of another job, and the time at which the lane resumes.
    pub(crate) of_others: Vec<(usize, Vec<Effect>)>,
    pub(crate) resumes: Vec<(u64, usize)>,
    /// Number of tasks that waited for a lost lane when the end of their job reached them.
    pub(crate) woken_count: u64,
    count: u64,
    /// The links of primaries to their standbys.
    pub(crate) links: Vec<Link>,
    /// The server that is lost.
    pub(crate) lost_server: Option<usize>,
}

impl Lane {
    /// Creates a lane without jobs.
    pub(crate) fn new(
        scenario: &Scenario,
        lane: u16,
        incarnation: u64,
        injected_fault: Option<InjectedFault>,
    ) -> Self {
        let state = Self::state(scenario, lane, incarnation, injected_fault);
        Self::of(Node::Plain(Box::new(state)), incarnation)
    }

    pub(crate) fn of(node: Node, incarnation: u64) -> Self {
        Self { state: Some(node), incarnation, stands_until: 0, timer: u64::MAX }
    }

    pub(crate) fn state(
        scenario: &Scenario,
        lane: u16,
        incarnation: u64,
        injected_fault: Option<InjectedFault>,
    ) -> LaneState {
        LaneState::new(LaneConfig {
            lane,
            lanes: scenario.lane_count,
            incarnation,
            memory_limit_bytes: 1 << 40,
            window_bytes: scenario.lane_window,
            deferred_limit_bytes: scenario.deferred_limit,
            staged_limit_bytes: 1 << 20,
            key_list_limit_bytes: scenario.key_list_limit,
            injected_fault,
        })
    }
}

pub(crate) fn time(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl Cluster {
    /// Creates the cluster of a job. If `lanes` is empty, the job gets lanes of its own.
    pub(crate) fn new(
        scenario: Scenario,
        lanes: Vec<Lane>,
        injected_fault: Option<InjectedFault>,
        agent_fault: Option<worker::InjectedFault>,
    ) -> Self {
        Self::beginning_at(0, scenario, lanes, injected_fault, agent_fault)
    }

    /// Creates it at a later time.
    pub(crate) fn beginning_at(
        now: u64,
        scenario: Scenario,
        lanes: Vec<Lane>,
        injected_fault: Option<InjectedFault>,
        agent_fault: Option<worker::InjectedFault>,
    ) -> Self {
        let mut cluster = Self {
            injected_fault,
            agent_fault,
            now,
            schedule: Schedule::default(),
            random: random(scenario.seed, 1),
            lanes,
            tasks: Vec::new(),
            connections: Vec::new(),
            history: History::new(&scenario),
            joined: Vec::new(),
            of_others: Vec::new(),
            resumes: Vec::new(),
            woken_count: 0,
            count: 0,
            links: Vec::new(),
            lost_server: None,
            scenario,
        };
        for lane in 0..cluster.scenario.lane_count {
            if usize::from(lane) == cluster.lanes.len() {
                let lane = if cluster.scenario.replicas {
                    cluster.new_primary(lane)
                } else {
                    Lane::new(&cluster.scenario, lane, 1, injected_fault)
                };
                cluster.lanes.push(lane);
            }
        }
        if cluster.scenario.replicas {
            cluster.add_standbys();
        }
        (0..cluster.scenario.lane_count).for_each(|lane| cluster.open_job(lane));
        let layout = cluster.scenario.layout();
        for task in 0..cluster.scenario.task_count {
            let task = Task::new(now, &cluster.scenario, layout.clone(), task, cluster.agent_fault);
            cluster.add_task(task);
        }
        cluster.plan_disturbance();
        cluster
    }

    fn open_job(&mut self, lane: u16) {
        let layout = self.scenario.layout();
        let open = OpenJob {
            request: 1,
            job: self.scenario.job,
            task_count: layout.task_count,
            wait_limit_ms: layout.wait_limit.as_millis() as u64,
            durability: if self.scenario.replicas { Durability::Replica } else { Durability::Checkpoint },
            standby: layout.lanes[usize::from(lane)].standby.clone(),
            owned_partitions: layout.lane_partitions(lane),
            home: layout.home == lane,
            modules: Vec::new(),
            matrices: layout.matrices,
        };
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
        self.tool_says(usize::from(lane), Message::Hello(hello));
        self.tool_says(usize::from(lane), Message::OpenJob(open));
    }

    /// Adds a task, which begins after a random delay.
    fn add_task(&mut self, task: Task) {
        let at = self.tasks.len();
        self.tasks.push(task);
        self.run_effects(at);
        let begins = self.random.below(10_000);
        self.schedule.put(self.now + begins, Event::Think { task: at });
    }

    fn plan_disturbance(&mut self) {
        let lanes = self.lanes.len();
        let start = self.random.below(400_000);
        match self.scenario.disturbance {
            Disturbance::Nothing => {}
            Disturbance::Remove => {
                for lane in 0..lanes {
                    let late = self.random.below(300_000);
                    self.schedule.put(start + late, Event::Remove { lane, task: 0 });
                }
            }
            Disturbance::Join => {
                let lane = usize::from(self.scenario.layout().home);
                self.schedule.put(start, Event::Join { lane });
            }
            Disturbance::Crash => {
                let lane = self.random.below(lanes as u64) as usize;
                self.schedule.put(start, Event::Crash { lane });
                if self.random.below(2) == 0 {
                    let late = self.random.below(5_000_000);
                    self.schedule.put(start + late, Event::Restart { lane });
                }
            }
            Disturbance::PausedForEver => self.schedule.put(start, Event::PauseTask { task: 0 }),
            Disturbance::Restart => {
                for _ in 0..=self.random.below(4) {
                    let task = self.random.below(self.tasks.len() as u64) as usize;
                    let at = self.random.below(400_000);
                    self.schedule.put(at, Event::Again { task });
                }
            }
        }
        if self.scenario.replicas {
            let server = self.random.below(lanes as u64 / 2) as usize;
            self.schedule.put(start, Event::LoseServer { server });
        }
        if self.scenario.pauses {
            for _ in 0..=self.random.below(4) {
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

    /// Handles the next event. Returns false when the run is stuck.
    pub(crate) fn step(&mut self) -> bool {
        let Some((time, event)) = self.schedule.next() else { return true };
        self.now = time;
        self.count += 1;
        if time > TIME_LIMIT || self.count > EVENT_LIMIT {
            self.history.stuck =
                Some(format!("after {} events it is {time} us: {}", self.count, self.state()));
            return false;
        }
        self.happens(event);
        true
    }

    /// Checks the state after the last event.
    pub(crate) fn end(&mut self) {
        let alive = |task: &&Task| task.is_alive() && task.stands_until != u64::MAX;
        if self.tasks.iter().any(|task| alive(&task)) {
            self.history.stuck = Some(format!("nothing happens any more: {}", self.state()));
        }
        self.export();
        self.replace_and_restore_rows();
    }

    fn state(&self) -> String {
        let mut text = String::new();
        for task in &self.tasks {
            let _ = write!(text, "\n  {}", task.state());
        }
        for (i, lane) in self.lanes.iter().enumerate() {
            let state =
                lane.state.as_ref().map(|lane| format!("{lane:?}").chars().take(4_000).collect::<String>());
            let _ = write!(text, "\n  lane {i}: {state:?}");
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
                self.resumes.push((until, lane));
                self.schedule.put(until, Event::ResumeLane { lane });
            }
            Event::ResumeLane { lane } => {
                self.lane_time(lane);
                for at in 0..self.connections.len() {
                    if self.connections[at].node == lane {
                        self.look_up(at);
                    }
                }
                self.look_links();
            }
            Event::PauseTask { task } => {
                if self.scenario.disturbance == Disturbance::PausedForEver && task == 0 {
                    self.tasks[task].stands_until = u64::MAX;
                } else {
                    let until = self.now + self.random.below(LONGEST_PAUSE);
                    self.tasks[task].stands_until = until;
                    self.schedule.put(until, Event::ResumeTask { task });
                }
            }
            Event::ResumeTask { task } => self.resume_task(task),
            Event::Remove { lane, task } => {
                self.tasks[0].is_removed |= self.tasks[0].is_alive();
                if self.tasks[0].is_removed {
                    self.note(task, TaskEvent::Removed);
                    self.tool_says(lane, Message::Leave(Leave { request: 2, job: self.scenario.job, task }));
                }
            }
            Event::Join { lane } => self.join(lane),
            Event::Again { task } => self.begin_again(task),
            Event::EndOfJob { task } => self.end_of_job(task),
            Event::Crash { lane } => self.crash(lane),
            Event::LinkUp { lane, ticket } => self.link_up(lane, ticket),
            Event::LinkDown { lane, ticket } => self.link_down(lane, ticket),
            Event::OpenLink { lane } => self.open_link(lane),
            Event::LoseServer { server } => self.lose_server(server),
            Event::HearOfLoss { node, server } => self.hear_of_loss(node, server),
            Event::TellTask { task, server } => self.tell_task(task, server),
            Event::Restart { lane } => {
                let incarnation = self.lanes[lane].incarnation + 1;
                self.lanes[lane] = Lane::new(&self.scenario, lane as u16, incarnation, self.injected_fault);
            }
        }
    }

    pub(crate) fn note(&mut self, task: u32, what: TaskEvent) {
        self.history.entries.push(crate::history::Entry { time: self.now, task, what });
    }

    /// Adds a task unless all have left: first at the home lane, then at the others. It begins when all lanes have
    /// answered with their clocks.
    fn join(&mut self, lane: usize) {
        let task = self.scenario.task_count;
        if self.joined.is_empty() && !self.tasks.iter().any(Task::is_alive) {
            return;
        }
        let generation = self.joined.first().map_or(0, |(_, generation)| *generation);
        let join = Join { request: 2, job: self.scenario.job, task, generation };
        let answer = self.tool_says(lane, Message::Join(join)).into_iter().next();
        match answer {
            Some(Message::Joined(joined)) => self.joined.push((joined.clock, joined.generation)),
            Some(Message::Fault(fault)) if fault.kind.retry_may_help() => {
                self.history.facts.busy_joins += 1;
                let later = self.now + u64::from(fault.retry_after_ms) * 1_000;
                return self.schedule.put(later, Event::Join { lane });
            }
            other => {
                return self.history.seen.push(format!("lane {lane} did not let task {task} in: {other:?}"));
            }
        }
        if self.joined.len() == 1 {
            for other in (0..self.lanes.len()).filter(|other| *other != lane) {
                let late = self.random.below(100_000);
                self.schedule.put(self.now + late, Event::Join { lane: other });
            }
        }
        if self.joined.len() == self.lanes.len() {
            let clock = self.joined.iter().map(|(clock, _)| *clock).max().unwrap_or(0);
            let generation = u64::from(self.joined[0].1);
            let mut layout = self.scenario.layout();
            layout.task_count += 1;
            let mut new = Task::new(self.now, &self.scenario, layout, task, self.agent_fault);
            new.join(clock, generation);
            self.note(task, TaskEvent::Joined { clock, generation });
            self.add_task(new);
        }
    }
}
