//! A process that is a member, or tries to become one. It registers, sends heartbeats, receives, sends and reconnects
//! by the rules of `member`, with the same `ReliableQueue`.

use std::collections::BTreeMap;

use rpc::Message;
use rpc::message::{Control, ControlBody, FaultKind, Hello, JobId, MemberKind, Role};
use rpc::reliable_queue::{ReliableQueue, SequenceCheck};
use serde_json::Value;

use super::history::{ControlEvent, MemberMessage, Process};
use super::scenario::Seat;
use super::world::{ClusterEvent, Event, MasterConnection, World};
use super::{bytes, numbers};
use crate::network::{Item, Pipe};

/// First pause between two attempts to connect, in microseconds; doubled up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: u64 = 10_000;
const LONGEST_PAUSE: u64 = 1_000_000;
/// Pause of a process before its next attempt when its name is in use, in microseconds.
const REFUSED_PAUSE: u64 = 300_000;
/// Number of refusals after which an impostor gives up.
const REFUSALS_OF_IMPOSTOR: u32 = 3;
/// How long a process that leaves waits for the master to close, in microseconds.
const LEAVE_LIMIT: u64 = 2_000_000;

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contact {
    None,
    Greets,
    Registers,
    Registered,
}

#[derive(Debug)]
pub(crate) struct Member {
    seat: usize,
    incarnation: u64,
    is_impostor: bool,
    refusals: u32,
    is_alive: bool,
    pub(crate) stands_until: u64,
    leaves_since: Option<u64>,
    line: Option<usize>,
    contact: Contact,
    /// 0 before the first registration.
    pub(crate) id: u32,
    kept: ReliableQueue,
    received_at: u64,
    beat_at: u64,
    retry_at: u64,
    pause: u64,
    ticket: u64,
    /// Number of messages to the runner of each job.
    spoke: BTreeMap<JobId, u64>,
}

impl Member {
    pub(crate) fn lives(&self) -> bool {
        self.is_alive
    }

    /// Whether the process knows itself as a member.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_alive && self.contact == Contact::Registered
    }
}

impl World {
    pub(crate) fn start(&mut self, seat: usize, is_impostor: bool) {
        if self.is_calm && is_impostor || !is_impostor && self.seated[seat].is_some() {
            return;
        }
        let process = self.processes.len();
        let member = Member {
            seat,
            incarnation: 1 + process as u64,
            is_impostor,
            refusals: 0,
            is_alive: true,
            stands_until: 0,
            leaves_since: None,
            line: None,
            contact: Contact::None,
            id: 0,
            kept: ReliableQueue::default(),
            received_at: self.now,
            beat_at: 0,
            retry_at: self.now,
            pause: FIRST_PAUSE,
            ticket: 0,
            spoke: BTreeMap::new(),
        };
        self.processes.push(member);
        if !is_impostor {
            self.seated[seat] = Some(process);
        }
        self.call_at(process, self.now);
    }

    /// Schedules a timer event of the process.
    fn call_at(&mut self, process: Process, time: u64) {
        let member = &mut self.processes[process];
        member.ticket += 1;
        let ticket = member.ticket;
        self.schedule.put(time.max(self.now), Event::MemberTime { process, ticket });
    }

    pub(crate) fn member_time(&mut self, process: Process, ticket: u64) {
        let (now, lease) = (self.now, self.scenario.settings.lease.as_micros() as u64);
        let heartbeat = self.scenario.settings.heartbeat.as_micros() as u64;
        let member = &mut self.processes[process];
        if !member.is_alive || member.stands_until > now || member.ticket != ticket {
            return;
        }
        if member.leaves_since.is_some_and(|since| now >= since + LEAVE_LIMIT) {
            return self.end_process(process);
        }
        if member.contact == Contact::None {
            if now >= member.retry_at {
                self.connect(process);
            }
        } else if now >= member.received_at + lease {
            self.drop_line(process);
        } else if member.contact == Contact::Registered && now >= member.beat_at {
            member.beat_at = now + heartbeat;
            let body = ControlBody::Heartbeat { id: member.id, report: Value::Null };
            let confirmation = member.kept.take_acknowledgement();
            self.send(process, 0, body);
            if let Some(body) = confirmation {
                self.send(process, 0, body);
            }
        }
        let member = &self.processes[process];
        let next = match member.contact {
            Contact::None => member.retry_at,
            Contact::Registered => member.beat_at.min(member.received_at + lease),
            Contact::Greets | Contact::Registers => member.received_at + lease,
        };
        let end = member.leaves_since.map_or(u64::MAX, |since| since + LEAVE_LIMIT);
        self.call_at(process, next.min(end));
    }

    fn connect(&mut self, process: Process) {
        let line = self.lines.len();
        let (up, down) = (Pipe::default(), Pipe::default());
        self.lines.push(MasterConnection {
            process,
            up,
            down,
            is_served: false,
            id: None,
            unread: Vec::new(),
        });
        let member = &mut self.processes[process];
        (member.line, member.contact, member.received_at) = (Some(line), Contact::Greets, self.now);
        let hello = Hello { request: 1, token: Vec::new(), role: Role::Member, lane: 0 };
        self.send_up(line, Message::Hello(hello));
    }

    /// The process closes its connection, or the connection is lost. It tries again after a pause.
    fn drop_line(&mut self, process: Process) {
        let member = &mut self.processes[process];
        let line = member.line.take();
        member.contact = Contact::None;
        member.retry_at = self.now + member.pause;
        member.pause = (member.pause * 2).min(LONGEST_PAUSE);
        let (leaves, retry_at) = (member.leaves_since.is_some(), member.retry_at);
        if let Some(line) = line {
            let delay = self.delay();
            self.lines[line].up.put(self.now, delay, Item::Closed);
            self.look_up(line);
        }
        if leaves {
            return self.end_process(process);
        }
        self.call_at(process, retry_at);
    }

    fn send(&mut self, process: Process, request: u64, body: ControlBody) {
        let member = &self.processes[process];
        if let (Some(line), Contact::Registered) = (member.line, member.contact) {
            self.send_up(line, Message::Control(Control { request, body }));
        }
    }

    /// Delivers the first message on the way to the member if it is due.
    pub(crate) fn down(&mut self, at: usize, ticket: u64) {
        let line = &mut self.lines[at];
        let process = line.process;
        let member = &mut self.processes[process];
        let hears = member.is_alive && member.stands_until <= self.now && member.line == Some(at);
        if line.down.ticket != ticket || !hears {
            return;
        }
        let Some((_, item)) = line.down.items.pop_front() else { return };
        member.received_at = self.now;
        match item.message() {
            None => self.drop_line(process),
            Some(message) => self.receive(process, at, message),
        }
        self.look_down(at);
    }

    fn receive(&mut self, process: Process, line: usize, message: Message) {
        let member = &mut self.processes[process];
        match message {
            Message::Welcome(_) => {
                member.contact = Contact::Registers;
                let (incarnation, seat) = (member.incarnation, member.seat);
                let (name, host) = (format!("seat{seat}"), format!("process{process}"));
                let member = match self.scenario.seats[seat] {
                    Seat::Server => {
                        let addresses = vec![format!("tcp:process{process}:1")];
                        MemberKind::Server { addresses, lanes: 1, memory_limit_bytes: 1 << 30 }
                    }
                    Seat::Worker => MemberKind::Worker { slots: 1, group: String::new() },
                };
                let body = ControlBody::Register { name, incarnation, host, member, restored: false };
                self.send_up(line, Message::Control(Control { request: 2, body }));
            }
            Message::Control(Control { request, body }) => match body {
                ControlBody::Registered { id, .. } => self.settle(process, id),
                ControlBody::Heard { count } => member.kept.acknowledge_up_to(count),
                ControlBody::ToTask { .. } | ControlBody::Gone { .. } => self.take(process, request, body),
                _ => {}
            },
            Message::Fault(fault) if member.contact == Contact::Registers => {
                member.refusals += 1;
                let gives_up = member.is_impostor && member.refusals >= REFUSALS_OF_IMPOSTOR;
                if fault.kind != FaultKind::Invalid {
                    self.history.seen.push(format!("a registration was refused: {fault:?}"));
                }
                self.processes[process].pause = REFUSED_PAUSE;
                self.drop_line(process);
                if gives_up {
                    self.end_process(process);
                }
            }
            Message::Fault(fault) if fault.kind == FaultKind::NotFound => self.drop_line(process),
            other => self.history.seen.push(format!("process {process} was told {other:?}")),
        }
    }

    /// The process has become a member: it sends again what the master may not have received.
    fn settle(&mut self, process: Process, id: u32) {
        let member = &mut self.processes[process];
        member.contact = Contact::Registered;
        member.pause = FIRST_PAUSE;
        if member.id != id {
            (member.id, member.kept) = (id, ReliableQueue::default());
            member.spoke.clear();
        }
        member.kept.reset_acknowledgement();
        let again: Vec<Control> = member.kept.unacknowledged().cloned().collect();
        let confirmation = member.kept.take_acknowledgement();
        member.beat_at = self.now;
        let leaves = member.leaves_since.is_some();
        for control in again {
            self.send(process, control.request, control.body);
        }
        if let Some(body) = confirmation {
            self.send(process, 0, body);
        }
        if leaves {
            self.send(process, 0, ControlBody::Leave);
        }
        self.call_at(process, self.now);
    }

    fn take(&mut self, process: Process, number: u64, body: ControlBody) {
        let member = &mut self.processes[process];
        let arrival = member.kept.receive(number);
        let id = member.id;
        if member.kept.is_acknowledgement_due() {
            let confirmation = member.kept.take_acknowledgement();
            if let Some(body) = confirmation {
                self.send(process, 0, body);
            }
        }
        match (arrival, body) {
            (SequenceCheck::Duplicate, _) => {}
            (SequenceCheck::Gap, body) => {
                self.history.seen.push(format!("member {id} was told {number} after a gap: {body:?}"));
                self.drop_line(process);
            }
            (SequenceCheck::New, ControlBody::ToTask { job, body }) => {
                let [number, answers] = numbers(&body)[..] else { panic!("a runner sends two numbers") };
                let word = MemberMessage::ToTask { job, number };
                self.note(ControlEvent::Told { process, id, word });
                for _ in 0..answers {
                    let think = self.think();
                    self.schedule.put(self.now + think, Event::Answer { process, id, job });
                }
            }
            (SequenceCheck::New, ControlBody::Gone { member, .. }) => {
                let word = MemberMessage::Gone { id: member.id };
                self.note(ControlEvent::Told { process, id, word });
            }
            (SequenceCheck::New, body) => self.history.seen.push(format!("member {id} was told {body:?}")),
        }
    }

    /// A worker sends a message to the runner of a job.
    pub(crate) fn answer(&mut self, process: Process, id: u32, job: JobId) {
        let member = &mut self.processes[process];
        if !member.is_alive || member.id != id || member.leaves_since.is_some() {
            return;
        }
        if member.stands_until > self.now {
            return self.schedule.put(member.stands_until, Event::Answer { process, id, job });
        }
        let spoke = member.spoke.entry(job).or_default();
        let number = *spoke;
        *spoke += 1;
        let body = ControlBody::FromTask { job, body: bytes(&[number]) };
        let control = member.kept.enqueue(body);
        self.note(ControlEvent::Spoke { id, job, number });
        self.send(process, control.request, control.body);
    }

    pub(crate) fn think(&mut self) -> u64 {
        if self.random.below(2) == 0 { 0 } else { self.random.below(self.scenario.longest_think + 1) }
    }

    pub(crate) fn pause_member(&mut self, seat: usize) {
        let Some(process) = self.seated[seat] else { return };
        let until = self.now + self.pause();
        self.processes[process].stands_until = until;
        self.tell(ClusterEvent::Stands { process, until });
        self.schedule.put(until, Event::ResumeMember { process });
    }

    pub(crate) fn resume_member(&mut self, process: Process) {
        let member = &self.processes[process];
        if !member.is_alive || member.stands_until > self.now {
            return;
        }
        // Either the process first receives what has arrived, or its timer runs first.
        let line = member.line;
        let time_first = self.random.below(2) == 0;
        if time_first {
            self.call_at(process, self.now);
        }
        if let Some(line) = line {
            self.look_down(line);
        }
        if !time_first {
            self.call_at(process, self.now);
        }
    }

    pub(crate) fn crash(&mut self, seat: usize) {
        let Some(process) = self.seated[seat].take() else { return };
        self.note(ControlEvent::Crashed);
        self.tell(ClusterEvent::Died { process });
        let member = &mut self.processes[process];
        member.is_alive = false;
        if let Some(line) = member.line.take() {
            self.break_line(line);
        }
        let after = self.pause();
        self.schedule.put(self.now + after, Event::Start { seat });
    }

    pub(crate) fn leave(&mut self, seat: usize) {
        let Some(process) = self.seated[seat].take() else { return };
        self.leave_process(process);
        let after = self.pause();
        self.schedule.put(self.now + after, Event::Start { seat });
    }

    pub(crate) fn leave_process(&mut self, process: Process) {
        let member = &mut self.processes[process];
        if !member.is_alive || member.leaves_since.is_some() {
            return;
        }
        member.leaves_since = Some(self.now);
        if member.contact == Contact::None {
            return self.end_process(process);
        }
        self.send(process, 0, ControlBody::Leave);
        self.call_at(process, self.now + LEAVE_LIMIT);
    }

    fn end_process(&mut self, process: Process) {
        self.tell(ClusterEvent::Died { process });
        let member = &mut self.processes[process];
        member.is_alive = false;
        if let Some(line) = member.line.take() {
            self.break_line(line);
        }
    }
}
