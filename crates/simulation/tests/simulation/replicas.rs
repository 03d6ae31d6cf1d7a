//! Replicated lanes: the links of primaries to their standbys, and the loss of a server, which has a primary and a standby.
//! It dies, or it stands still, is given up by the master, and wakes. Whoever is left hears of it at a time of its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rpc::message::{Hello, JobId, Role, Standby};
use rpc::reader::read_messages;
use rpc::service::Effect;
use rpc::{FrameLimits, Message};
use server::replica::{LinkRefusal, PrimaryLane, StandbyLane, StandbyLink};
use server::{ClusterEvent, ClusterEvents};

use crate::cluster::{Cluster, Lane, Node, time};
use crate::network::{Item, Pipe};
use crate::scenario::server_name;
use crate::schedule::Event;

/// The first of the numbers by which a standby knows the connections of its primary; those of tasks are larger.
const FIRST_NUMBER: u64 = 1_000;
/// Longest time until somebody hears of a loss, in microseconds.
const LONGEST_NEWS: u64 = 300_000;
/// Longest time after which a server that stood still wakes.
const LONGEST_SLEEP: u64 = 1_500_000;
/// Longest time between two connections of a link.
const LONGEST_PAUSE: u64 = 50_000;

/// What a primary and the network of the simulation share.
#[derive(Debug, Default)]
struct Wire {
    /// All changes so far.
    changes: Vec<Message>,
    confirmed: u64,
    refusal: Option<LinkRefusal>,
}

#[derive(Clone, Debug, Default)]
struct SharedWire(Arc<Mutex<Wire>>);

impl SharedWire {
    fn lock(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StandbyLink for SharedWire {
    fn send(&mut self, frames: &[u8], count: u64) {
        let changes = read_messages(frames, &FrameLimits::default()).expect("the primary has written frames");
        assert_eq!(changes.len() as u64, count, "whole frames are sent");
        self.lock().changes.extend(changes);
    }

    fn confirmed_count(&self) -> u64 {
        self.lock().confirmed
    }

    fn refusal(&self) -> Option<LinkRefusal> {
        self.lock().refusal.clone()
    }
}

/// The link of a primary.
#[derive(Debug, Default)]
pub(crate) struct Link {
    wire: SharedWire,
    up: Pipe,
    down: Pipe,
    /// Number of connections so far.
    count: u64,
    is_open: bool,
    /// The next change to send; none before the standby has said how many it has.
    next: Option<usize>,
    events: [ClusterEvents; 2],
    /// Whether the primary goes on alone.
    is_over: bool,
}

impl Cluster {
    fn lane_count(&self) -> usize {
        usize::from(self.scenario.lane_count)
    }

    /// Who has the lanes of the job.
    pub(crate) fn holders(&self) -> Vec<usize> {
        let node = |lane: usize| if self.lost_server == Some(lane) { self.lane_count() + lane } else { lane };
        (0..self.lane_count()).map(node).collect()
    }

    /// The tool connects to a node that has taken a lane over.
    pub(crate) fn greet_standby(&mut self, node: usize) {
        if self.scenario.replicas && node >= self.lane_count() {
            let role = Role::JobTool { job: self.scenario.job };
            let answers =
                self.tool_says(node, Message::Hello(Hello { request: 1, token: Vec::new(), role, lane: 1 }));
            if !matches!(answers.as_slice(), [Message::Welcome(_)]) {
                self.history.seen.push(format!("a standby has not taken over: {answers:?}"));
            }
        }
    }

    pub(crate) fn new_primary(&mut self, lane: u16) -> Lane {
        let link = Link::default();
        let (wire, events) = (link.wire.clone(), link.events[0].clone());
        let open = Box::new(move |_: JobId, _: &Standby| Box::new(wire.clone()) as Box<dyn StandbyLink>);
        self.links.push(link);
        let state = Lane::state(&self.scenario, lane, 1, self.injected_fault);
        Lane::of(Node::Primary(Box::new(PrimaryLane::new(state, open, events))), 1)
    }

    /// Adds the standby of lane `i` as node `lane_count + i`.
    pub(crate) fn add_standbys(&mut self) {
        let count = self.scenario.lane_count;
        for lane in 0..count {
            let state = Lane::state(&self.scenario, count + lane, 2, self.injected_fault);
            let events = self.links[usize::from(lane)].events[1].clone();
            self.lanes.push(Lane::of(Node::Standby(Box::new(StandbyLane::new(state, events))), 2));
        }
    }

    /// The node that a task tries for a lane.
    pub(crate) fn node_for(&mut self, task: usize, lane: usize) -> usize {
        if !self.scenario.replicas {
            return lane;
        }
        let standby = self.lane_count() + lane;
        // Without a loss the standby refuses it.
        let tries_standby = self.tasks[task].lost_server == Some(lane) || self.random.below(5) == 0;
        if tries_standby { standby } else { lane }
    }

    /// Sends what a primary has changed.
    pub(crate) fn pump_link(&mut self, node: usize) {
        if node >= self.links.len() {
            return;
        }
        let link = &mut self.links[node];
        if link.is_over {
            return;
        }
        let mut fresh = Vec::new();
        {
            let wire = link.wire.lock();
            if wire.changes.is_empty() || wire.refusal.is_some() {
                return;
            }
            if let Some(next) = &mut link.next {
                fresh.extend_from_slice(&wire.changes[(*next).min(wire.changes.len())..]);
                *next = wire.changes.len();
            }
        }
        if !self.links[node].is_open {
            self.links[node].is_open = true;
            let pause = self.random.below(LONGEST_PAUSE);
            return self.schedule.put(self.now + pause, Event::OpenLink { lane: node });
        }
        for change in fresh {
            self.put_up(node, change);
        }
    }

    pub(crate) fn open_link(&mut self, lane: usize) {
        if self.lanes[lane].state.is_none() {
            return;
        }
        let job = self.scenario.job;
        let link = &mut self.links[lane];
        link.count += 1;
        link.up = link.up.renewed();
        link.down = link.down.renewed();
        link.next = None;
        let role = Role::Primary { job, incarnation: 1 };
        self.put_up(lane, Message::Hello(Hello { request: 1, token: Vec::new(), role, lane: 1 }));
    }

    fn put_up(&mut self, lane: usize, message: Message) {
        let (delay, item) = (self.delay(), Item::of(message, self.scenario.as_bytes));
        self.links[lane].up.put(self.now, delay, item);
        self.look_link(lane);
        let frames = self.scenario.frames_of_reset;
        if frames > 0 && self.random.below(frames) == 0 {
            self.links[lane].up.cut(self.now, &mut self.random);
            self.links[lane].down.cut(self.now, &mut self.random);
            self.look_link(lane);
        }
    }

    fn look_link(&mut self, lane: usize) {
        let link = &mut self.links[lane];
        link.up.ticket += 1;
        link.down.ticket += 1;
        let (up, down) =
            (link.up.items.front().map(|item| item.0), link.down.items.front().map(|item| item.0));
        let (up_ticket, down_ticket) = (link.up.ticket, link.down.ticket);
        if let Some(at) = up {
            self.schedule.put(at.max(self.now), Event::LinkUp { lane, ticket: up_ticket });
        }
        if let Some(at) = down {
            self.schedule.put(at.max(self.now), Event::LinkDown { lane, ticket: down_ticket });
        }
    }

    pub(crate) fn look_links(&mut self) {
        (0..self.links.len()).for_each(|lane| self.look_link(lane));
    }

    /// Delivers the first frame on the way to a standby if it is due.
    pub(crate) fn link_up(&mut self, lane: usize, ticket: u64) {
        let node = self.lane_count() + lane;
        if self.links[lane].up.ticket != ticket || self.lanes[node].stands_until > self.now {
            return;
        }
        let number = FIRST_NUMBER + self.links[lane].count;
        let Some((_, item)) = self.links[lane].up.items.pop_front() else { return };
        let (now, mut effects) = (time(self.now), Vec::new());
        match (item.message(), &mut self.lanes[node].state) {
            (Some(message), Some(standby)) => standby.on_message(now, number, message, &mut effects),
            (None, Some(standby)) => standby.on_closed(now, number, &mut effects),
            (_, None) => self.links[lane].down.cut(self.now, &mut self.random),
        }
        self.standby_does(lane, effects);
    }

    /// Delivers the first answer on the way to a primary if it is due.
    pub(crate) fn link_down(&mut self, lane: usize, ticket: u64) {
        if self.links[lane].down.ticket != ticket || self.lanes[lane].stands_until > self.now {
            return;
        }
        let Some((_, item)) = self.links[lane].down.items.pop_front() else { return };
        let message = item.message();
        let link = &mut self.links[lane];
        match message {
            Some(Message::Welcome(welcome)) => {
                link.next = Some(welcome.clock as usize);
                link.wire.lock().confirmed = welcome.clock;
            }
            Some(Message::Done(done)) => link.wire.lock().confirmed = done.request,
            Some(Message::Fault(fault)) => link.wire.lock().refusal = Some(LinkRefusal::of(&fault)),
            Some(other) => self.history.seen.push(format!("a standby has sent {other:?}")),
            None => {
                link.is_open = false;
                link.next = None;
                link.up.cut(self.now, &mut self.random);
            }
        }
        self.look_link(lane);
        self.wake(lane);
    }

    /// Lets a lane look at what does not come over its connections.
    fn wake(&mut self, node: usize) {
        let mut effects = Vec::new();
        if let Some(state) = &mut self.lanes[node].state {
            state.on_time(time(self.now), &mut effects);
        }
        if node >= self.lane_count() {
            self.standby_does(node - self.lane_count(), effects);
        } else {
            self.lane_does(node, effects);
        }
    }

    /// Carries out what the standby of a lane does: for its primary, and for tasks.
    fn standby_does(&mut self, lane: usize, effects: Vec<Effect>) {
        let number = FIRST_NUMBER + self.links[lane].count;
        let of = |effect: &Effect| {
            let (Effect::Send { connection, .. }
            | Effect::Close { connection }
            | Effect::Pause { connection }
            | Effect::Resume { connection }) = effect;
            *connection
        };
        for effect in effects.iter().filter(|effect| of(effect) == number) {
            let delay = self.delay();
            let item = match effect {
                Effect::Send { message, .. } => Item::of(message.clone(), self.scenario.as_bytes),
                _ => Item::Closed,
            };
            self.links[lane].down.put(self.now, delay, item);
        }
        self.look_link(lane);
        // An earlier connection of the link is nobody's any more.
        let of_tasks = effects.into_iter().filter(|effect| of(effect) >> 32 != 0).collect();
        self.lane_does(self.lane_count() + lane, of_tasks);
    }

    /// The nodes of a server: its own lane, and the standby of the lane before.
    fn nodes_of(&self, server: usize) -> [usize; 2] {
        let count = self.lane_count();
        [server, count + (server + count - 1) % count]
    }

    pub(crate) fn lose_server(&mut self, server: usize) {
        let count = self.lane_count();
        // The runner of a job counts on replicas when all lanes have answered that the job is open.
        if self.links.iter().any(|link| link.wire.lock().confirmed == 0) {
            return self.schedule.put(self.now + LONGEST_PAUSE, Event::LoseServer { server });
        }
        self.lost_server = Some(server);
        self.history.facts.takeovers += 1;
        let (mut given_up, dies) = (self.now, self.random.below(2) == 0);
        if dies {
            for node in self.nodes_of(server) {
                self.kill(node);
            }
            self.links[server].up.cut(self.now, &mut self.random);
            self.links[server].down.items.clear();
            let before = (server + count - 1) % count;
            self.links[before].up.items.clear();
            self.links[before].down.cut(self.now, &mut self.random);
            self.look_links();
        } else {
            given_up += self.random.below(LONGEST_NEWS);
            let wakes = given_up + self.random.below(LONGEST_SLEEP);
            for node in self.nodes_of(server) {
                self.lanes[node].stands_until = wakes;
                self.resumes.push((wakes, node));
                self.schedule.put(wakes, Event::ResumeLane { lane: node });
            }
        }
        for other in (0..count).filter(|other| *other != server) {
            for node in self.nodes_of(other) {
                let late = self.random.below(LONGEST_NEWS);
                self.schedule.put(given_up + late, Event::HearOfLoss { node, server });
            }
        }
        for task in 0..self.tasks.len() {
            let late = self.random.below(LONGEST_NEWS);
            self.schedule.put(given_up + late, Event::TellTask { task, server });
        }
    }

    pub(crate) fn hear_of_loss(&mut self, node: usize, server: usize) {
        let until = self.lanes[node].stands_until;
        if until > self.now {
            return self.schedule.put(until, Event::HearOfLoss { node, server });
        }
        let count = self.lane_count();
        if (node + 1) % count == server && node < count {
            self.links[node].is_over = true;
        }
        let events = &self.links[node % count].events[node / count];
        events.tell(&ClusterEvent::ServerLost(server_name(server)));
        self.wake(node);
    }

    /// The worker of a task closes its connection to the lost server.
    pub(crate) fn tell_task(&mut self, task: usize, server: usize) {
        self.tasks[task].lost_server = Some(server);
        if let Some(at) = self.tasks[task].connections[server]
            && self.connections[at].node == server
        {
            self.connections[at].up.cut(self.now, &mut self.random);
            self.connections[at].down.cut(self.now, &mut self.random);
            self.look_up(at);
            self.look_down(at);
        }
    }
}
