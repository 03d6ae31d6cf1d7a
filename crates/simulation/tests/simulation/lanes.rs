//! Lanes: the messages that reach them, their effects, and their crashes.

use rpc::Message;
use rpc::message::Export;
use rpc::service::Effect;

use crate::cluster::{Cluster, TOOL, time};
use crate::history::{Cell, TaskEvent};
use crate::network::{Connection, Item, answer_of, request_of};
use crate::schedule::Event;

/// Index of the connection whose number a lane uses.
fn place(number: u64) -> usize {
    (number & u64::from(u32::MAX)) as usize
}

impl Cluster {
    /// Sends a message of the tool to a lane and returns the answers. No message is lost between them.
    pub(crate) fn tool_says(&mut self, lane: usize, message: Message) -> Vec<Message> {
        let Some(state) = &mut self.lanes[lane].state else { return Vec::new() };
        let mut effects = Vec::new();
        let tool = TOOL - u64::from(self.scenario.job);
        state.on_message(time(self.now), tool, message, &mut effects);
        let mut answers = Vec::new();
        effects.retain(|effect| match effect {
            Effect::Send { connection, message } if *connection == tool => {
                answers.push(message.clone());
                false
            }
            _ => true,
        });
        self.lane_does(lane, effects);
        answers
    }

    /// The number by which lanes know a connection.
    pub(crate) fn number(&self, connection: usize) -> u64 {
        (u64::from(self.scenario.job) << 32) + connection as u64
    }

    pub(crate) fn lane_does(&mut self, lane: usize, effects: Vec<Effect>) {
        let own = |effect: &Effect| {
            let (Effect::Send { connection, .. }
            | Effect::Close { connection }
            | Effect::Pause { connection }
            | Effect::Resume { connection }) = effect;
            connection >> 32 == u64::from(self.scenario.job)
        };
        let (own, other): (Vec<_>, Vec<_>) = effects.into_iter().partition(own);
        if !other.is_empty() {
            self.of_others.push((lane, other));
        }
        for effect in own {
            match effect {
                Effect::Send { connection, message } => self.send_down(place(connection), message),
                Effect::Close { connection } => {
                    let at = place(connection);
                    let delay = self.delay();
                    self.connections[at].down.put(self.now, delay, Item::Closed);
                    self.look_down(at);
                    // The lane reads no more of its frames, but still learns that the connection is closed.
                    self.connections[at].up.items.clear();
                    self.connections[at].up.is_cut = false;
                    self.connections[at].up.put(self.now, delay, Item::Closed);
                    self.connections[at].is_paused = false;
                    self.look_up(at);
                }
                Effect::Pause { connection } => self.connections[place(connection)].is_paused = true,
                Effect::Resume { connection } => {
                    self.connections[place(connection)].is_paused = false;
                    self.look_up(place(connection));
                }
            }
        }
        self.pump_link(lane);
        let Some(state) = &self.lanes[lane].state else { return };
        if let Some(next) = state.next_time() {
            let next = (next.as_micros() as u64).max(self.now);
            if next < self.lanes[lane].timer || self.lanes[lane].timer <= self.now {
                self.lanes[lane].timer = next;
                self.schedule.put(next, Event::LaneTime { lane });
            }
        }
    }

    pub(crate) fn lane_time(&mut self, lane: usize) {
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

    /// Delivers the first message on the way to the lane if it is due.
    pub(crate) fn up(&mut self, at: usize, ticket: u64) {
        let number = self.number(at);
        let connection = &mut self.connections[at];
        let lane = connection.node;
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
                let is_duplicate = connection.duplicate_count > 0;
                connection.duplicate_count = connection.duplicate_count.saturating_sub(1);
                if self.scenario.frames_of_duplicate > 0 && !is_duplicate {
                    connection.told.push(message.clone());
                }
                state.on_message(now, number, message, &mut effects);
                if !is_duplicate {
                    self.perhaps_duplicate(at);
                }
            }
            (None, Some(state)) => {
                if std::mem::take(&mut connection.is_served) {
                    state.on_closed(now, number, &mut effects);
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

    /// Delivers messages of a connection to its lane a second time.
    fn perhaps_duplicate(&mut self, at: usize) {
        let frames = self.scenario.frames_of_duplicate;
        if frames == 0 || self.random.below(frames) > 0 {
            return;
        }
        let Connection { task, lane, node, .. } = self.connections[at];
        if self.random.below(3) > 0 {
            // A hello must not be repeated, so it is never a duplicate.
            let count = self.random.below(self.connections[at].told.len() as u64) as usize;
            self.connections[at].duplicate_count = count;
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
        self.connections.push(Connection { duplicate_count: count, ..Connection::new(task, lane, node) });
        for message in told.into_iter().take(count) {
            let (delay, item) = (self.delay(), Item::of(message, self.scenario.as_bytes));
            self.connections[zombie].up.put(self.now, delay, item);
        }
        let delay = self.delay();
        self.connections[zombie].up.put(self.now, delay, Item::Closed);
        self.look_up(zombie);
    }

    pub(crate) fn crash(&mut self, lane: usize) {
        self.note(0, TaskEvent::Crashed);
        self.kill(lane);
    }

    /// The process of a lane is gone, and so are its connections.
    pub(crate) fn kill(&mut self, lane: usize) {
        self.lanes[lane].state = None;
        for at in 0..self.connections.len() {
            if self.connections[at].node == lane {
                self.connections[at].up.items.clear();
                self.connections[at].up.is_cut = true;
                self.connections[at].is_served = false;
                self.connections[at].down.cut(self.now, &mut self.random);
                self.look_down(at);
            }
        }
    }

    /// Records the values that the lanes have at the end.
    pub(crate) fn export(&mut self) {
        for lane in self.holders() {
            self.greet_standby(lane);
            for matrix in 0..self.scenario.counters.len() {
                let export =
                    Export { request: 9, job: self.scenario.job, matrix: matrix as u32, from: 0, skip: 0 };
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

    /// Breaks the connection at one frame of `frames_of_reset`.
    pub(crate) fn perhaps_reset(&mut self, at: usize) {
        let frames = self.scenario.frames_of_reset;
        if frames == 0 || self.random.below(frames) > 0 {
            return;
        }
        self.history.facts.resets += 1;
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

    pub(crate) fn delay(&mut self) -> u64 {
        1 + self.random.below(self.scenario.longest_delay)
    }
}
