//! The side of the master: the messages that reach it, its effects, and what `status` shows after each call.

use std::collections::BTreeMap;

use rpc::Message;
use rpc::message::{ControlBody, MemberKind};
use rpc::service::Effect;

use super::client_port::is_over;
use super::history::{ControlEvent, MemberView};
use super::world::{Event, World};
use crate::network::{Item, Pipe};

impl World {
    /// Delivers the first message on the way to the master if it is due.
    pub(crate) fn up(&mut self, at: usize, ticket: u64) {
        if self.lines[at].up.ticket != ticket || self.master_stands_until > self.now {
            return;
        }
        let line = &mut self.lines[at];
        let Some((arrived, item)) = line.up.items.pop_front() else { return };
        let (now, mut effects) = (self.time(), Vec::new());
        let mut is_small = false;
        if let Some(message) = item.message() {
            self.lines[at].is_served |= matches!(message, Message::Hello(_));
            is_small = self.note_read(at, arrived, &message);
            self.door.hear(now, at as u64, message, &mut effects);
        } else {
            let line = &mut self.lines[at];
            if let Some(id) = line.id.take()
                && self.connected.get(&id) == Some(&at)
            {
                self.connected.remove(&id);
            }
            if std::mem::take(&mut self.lines[at].is_served) {
                self.door.lose(now, at as u64, &mut effects);
            }
        }
        is_small &= !effects.iter().any(|effect| matches!(effect, Effect::Close { .. }));
        self.look_up(at);
        self.master_did(effects, is_small);
    }

    /// Records what the master reads of a member. Returns whether the message cannot change what `status` shows.
    fn note_read(&mut self, at: usize, arrived: u64, message: &Message) -> bool {
        let id = self.lines[at].id.filter(|id| self.connected.get(id) == Some(&at));
        let Message::Control(control) = message else { return true };
        if let Some(id) = id {
            self.note(ControlEvent::Read { id, arrived });
            match &control.body {
                ControlBody::Leave => self.note(ControlEvent::Leaves { id }),
                ControlBody::Heard { count } => self.note(ControlEvent::Confirmed { id, count: *count }),
                _ => {}
            }
        }
        matches!(
            control.body,
            ControlBody::Heartbeat { .. } | ControlBody::Heard { .. } | ControlBody::FromTask { .. }
        )
    }

    pub(crate) fn master_time(&mut self) {
        if self.master_stands_until > self.now {
            return;
        }
        self.master_timer = u64::MAX;
        let (now, mut effects) = (self.time(), Vec::new());
        if self.door.next_time().is_some_and(|next| next <= now) {
            self.door.wake(now, &mut effects);
        }
        self.master_did(effects, false);
    }

    /// The master reads the messages that arrived during its pause. Its timer runs before, between or after them.
    pub(crate) fn resume_master(&mut self) {
        if self.master_stands_until > self.now {
            return;
        }
        self.note(ControlEvent::Woke);
        let count = self.lines.len();
        let first = self.random.below(count as u64 + 1) as usize;
        for line in 0..count {
            if line == first {
                self.schedule.put(self.now, Event::MasterTime);
            }
            self.look_up(line);
        }
        self.schedule.put(self.now, Event::MasterTime);
    }

    /// Executes the effects of a call of the master, and records what `status` shows.
    pub(crate) fn master_did(&mut self, effects: Vec<Effect>, is_small: bool) {
        for effect in effects {
            match effect {
                Effect::Send { connection, message } => {
                    let at = connection as usize;
                    if let Message::Control(control) = &message
                        && let ControlBody::Registered { id, .. } = control.body
                    {
                        self.lines[at].id = Some(id);
                        self.connected.insert(id, at);
                        let process = self.lines[at].process;
                        self.registered.insert(id, process);
                        self.note(ControlEvent::Registered { id, process });
                    }
                    self.send_down(at, message);
                }
                Effect::Close { connection } => self.master_closes(connection as usize),
                Effect::Pause { .. } | Effect::Resume { .. } => {
                    self.history.seen.push("the master paused a connection".into());
                }
            }
        }
        if !is_small {
            self.look_at_members();
        }
        let orders = self.door.orders();
        for order in orders {
            self.run_order(order);
        }
        if !is_small {
            self.look_at_jobs();
            self.note(ControlEvent::Looked);
        }
        if let Some(next) = self.door.next_time() {
            let next = (next.as_micros() as u64).max(self.now);
            if next < self.master_timer || self.master_timer <= self.now {
                self.master_timer = next;
                self.schedule.put(next, Event::MasterTime);
            }
        }
    }

    fn master_closes(&mut self, at: usize) {
        let delay = self.delay();
        let line = &mut self.lines[at];
        line.down.put(self.now, delay, Item::Closed);
        line.unread.extend(come(&line.up, self.now));
        // The master reads no more of its frames, but still learns that the connection is closed.
        line.up.items.clear();
        line.up.is_cut = false;
        line.up.put(self.now, delay, Item::Closed);
        if let Some(id) = line.id.take()
            && self.connected.get(&id) == Some(&at)
        {
            self.connected.remove(&id);
        }
        self.look_down(at);
        self.look_up(at);
    }

    /// Arrival times of the frames of a process that the master has not read, ascending.
    fn unread(&self, process: usize) -> Vec<u64> {
        let lines = self.lines.iter().filter(|line| line.process == process);
        let times = lines.flat_map(|line| line.unread.iter().copied().chain(come(&line.up, self.now)));
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        times
    }

    fn look_at_members(&mut self) {
        let (members, _) = self.door.status();
        let members: Vec<MemberView> = members
            .into_iter()
            .map(|member| MemberView {
                id: member.id,
                name: member.name,
                incarnation: member.incarnation,
                is_server: matches!(member.kind, MemberKind::Server { .. }),
                is_connected: self.connected.contains_key(&member.id),
            })
            .collect();
        if members == self.living {
            return;
        }
        let gone: Vec<u32> = self.living.iter().map(|seen| seen.id).collect();
        let gone = gone.into_iter().filter(|id| members.iter().all(|seen| seen.id != *id));
        let unread = gone.map(|id| (id, self.registered.get(&id).map_or(Vec::new(), |at| self.unread(*at))));
        let unread = unread.collect();
        self.living.clone_from(&members);
        self.note(ControlEvent::Living { members, unread });
    }

    fn look_at_jobs(&mut self) {
        let (_, jobs) = self.door.status();
        let states: BTreeMap<_, _> = jobs.into_iter().map(|job| (job.id, job.state)).collect();
        for (job, state) in &states {
            if self.states.get(job) != Some(state) {
                self.note(ControlEvent::Job { job: *job, state: *state });
            }
        }
        let before = std::mem::replace(&mut self.states, states);
        for (job, state) in before {
            if !self.states.contains_key(&job) {
                self.note(ControlEvent::Forgotten { job, was_over: is_over(state) });
            }
        }
    }
}

/// Arrival times of the frames that wait to be read.
fn come(pipe: &Pipe, now: u64) -> impl Iterator<Item = u64> {
    let come = pipe.items.iter().filter(move |(time, item)| *time <= now && !matches!(item, Item::Closed));
    come.map(|(time, _)| *time)
}
