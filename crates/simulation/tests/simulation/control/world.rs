//! A master, its members and clients in one thread, and the events that reach them.

use std::collections::BTreeMap;

use control::JobState;
use master::{InjectedFault, Settings};
use math::random::RandomStream;
use rpc::message::JobId;

use super::client_port::ClientPort;
use super::history::{ControlEvent, Entry, History, MemberView, Process};
use super::jobs::Runner;
use super::member::Member;
use super::scenario::Scenario;
use crate::network::{Item, Pipe};
use crate::scenario::random;
use crate::schedule::Schedule;

/// Limit of events, more than any seed needs.
const EVENT_LIMIT: u64 = 400_000;
/// Time from the end of the faults until everything is quiet, in microseconds, plus [`QUIET_AFTER_LEASES`]. By then
/// broken connections are noticed, lost members are back, and all messages have arrived.
const QUIET_AFTER: u64 = 6_000_000;
const QUIET_AFTER_LEASES: u64 = 6;
/// By then runners have ended, in microseconds.
const LEAVE_AFTER: u64 = 3_000_000;
/// By then all processes have left, in microseconds.
const END_AFTER: u64 = 8_000_000;
/// Longest pause of a process, in leases.
const LONGEST_PAUSE_LEASES: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The first message on the way to the master may be due.
    Up {
        line: usize,
        ticket: u64,
    },
    /// The first message on the way to the member may be due.
    Down {
        line: usize,
        ticket: u64,
    },
    /// A timer of the master may be due.
    MasterTime,
    PauseMaster,
    ResumeMaster,
    /// A process fills a seat.
    Start {
        seat: usize,
    },
    /// A second process pretends to be the one in the seat.
    Impostor {
        seat: usize,
    },
    MemberTime {
        process: Process,
        ticket: u64,
    },
    PauseMember {
        seat: usize,
    },
    ResumeMember {
        process: Process,
    },
    Crash {
        seat: usize,
    },
    Leave {
        seat: usize,
    },
    /// A worker sends a message to a runner, if it is still this member.
    Answer {
        process: Process,
        id: u32,
        job: JobId,
    },
    Submit,
    Cancel,
    CancelAll,
    RunnerTime {
        job: JobId,
    },
    /// No message is lost from here on.
    Calm,
    Quiet,
    LeaveAll,
    End,
}

/// Events that the simulation of servers and workers needs, besides their messages to the master.
#[derive(Clone, Debug)]
pub(crate) enum ClusterEvent {
    /// A job begins on servers and workers. It ends when [`World::work_is_over`] is called, or before.
    Started {
        job: JobId,
        servers: Vec<Process>,
        workers: Vec<Process>,
    },
    /// The runner of a job has ended.
    Ended {
        job: JobId,
    },
    /// The process has ended.
    Died {
        process: Process,
    },
    Stands {
        process: Process,
        until: u64,
    },
}

#[derive(Debug)]
pub(crate) struct MasterConnection {
    pub(crate) process: Process,
    pub(crate) up: Pipe,
    pub(crate) down: Pipe,
    /// Whether the master has received the hello, and not yet that the connection is closed.
    pub(crate) is_served: bool,
    /// The member to which the master assigns the connection.
    pub(crate) id: Option<u32>,
    /// Arrival times of the messages that were not read when the master closed the connection.
    pub(crate) unread: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) now: u64,
    pub(crate) schedule: Schedule<Event>,
    pub(crate) random: RandomStream,
    pub(crate) door: ClientPort,
    pub(crate) master_stands_until: u64,
    pub(crate) master_timer: u64,
    pub(crate) processes: Vec<Member>,
    /// Per seat: the process that fills it.
    pub(crate) seated: Vec<Option<Process>>,
    pub(crate) lines: Vec<MasterConnection>,
    /// Per member: the connection that the master has for it, and the process that registered.
    pub(crate) connected: BTreeMap<u32, usize>,
    pub(crate) registered: BTreeMap<u32, Process>,
    pub(crate) runners: BTreeMap<JobId, Runner>,
    pub(crate) submitted: Vec<JobId>,
    pub(crate) is_calm: bool,
    pub(crate) history: History,
    pub(crate) living: Vec<MemberView>,
    pub(crate) states: BTreeMap<JobId, JobState>,
    /// `None`: events are not recorded, and jobs do no work besides that of their runners.
    pub(crate) deeds: Option<Vec<ClusterEvent>>,
    count: u64,
    is_over: bool,
}

impl World {
    pub(crate) fn new(scenario: Scenario, injected_fault: Option<InjectedFault>) -> Self {
        let settings = Settings { injected_fault, ..scenario.settings.clone() };
        let mut world = Self {
            now: 0,
            schedule: Schedule::default(),
            random: random(scenario.seed, 3),
            door: ClientPort::new(settings),
            master_stands_until: 0,
            master_timer: u64::MAX,
            processes: Vec::new(),
            seated: vec![None; scenario.seats.len()],
            lines: Vec::new(),
            connected: BTreeMap::new(),
            registered: BTreeMap::new(),
            runners: BTreeMap::new(),
            submitted: Vec::new(),
            is_calm: false,
            history: History::default(),
            living: Vec::new(),
            states: BTreeMap::new(),
            deeds: None,
            count: 0,
            is_over: false,
            scenario,
        };
        world.plan();
        world
    }

    fn plan(&mut self) {
        let until = self.scenario.disturbed_until;
        for seat in 0..self.scenario.seats.len() {
            let at = self.random.below(1_000_000);
            self.schedule.put(at, Event::Start { seat });
        }
        let of = &self.scenario;
        let counts = [
            of.master_pauses,
            of.member_pauses,
            of.crashes,
            of.impostors,
            of.leaves,
            of.submissions,
            of.cancels,
        ];
        for (kind, count) in counts.into_iter().enumerate() {
            for _ in 0..count {
                let (at, seat) = (self.random.below(until), self.any_seat());
                let event = match kind {
                    0 => Event::PauseMaster,
                    1 => Event::PauseMember { seat },
                    2 => Event::Crash { seat },
                    3 => Event::Impostor { seat },
                    4 => Event::Leave { seat },
                    5 => Event::Submit,
                    _ => Event::Cancel,
                };
                self.schedule.put(at, event);
            }
        }
        self.schedule.put(until, Event::Calm);
    }

    fn any_seat(&mut self) -> usize {
        self.random.below(self.scenario.seats.len() as u64) as usize
    }

    pub(crate) fn run(mut self) -> History {
        while self.step() {}
        self.history
    }

    /// Handles the next event. Returns false after the last one.
    pub(crate) fn step(&mut self) -> bool {
        let Some((time, event)) = self.schedule.next() else { return false };
        self.now = time;
        self.count += 1;
        if self.count > EVENT_LIMIT {
            self.history.seen.push(format!("after {} events it is {time} us", self.count));
            return false;
        }
        self.happens(event);
        !self.is_over
    }

    pub(crate) fn tell(&mut self, deed: ClusterEvent) {
        if let Some(deeds) = &mut self.deeds {
            deeds.push(deed);
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Up { line, ticket } => self.up(line, ticket),
            Event::Down { line, ticket } => self.down(line, ticket),
            Event::MasterTime => self.master_time(),
            Event::PauseMaster => {
                let until = self.now + self.pause();
                self.master_stands_until = self.master_stands_until.max(until);
                self.schedule.put(until, Event::ResumeMaster);
            }
            Event::ResumeMaster => self.resume_master(),
            Event::Start { seat } => self.start(seat, false),
            Event::Impostor { seat } => self.start(seat, true),
            Event::MemberTime { process, ticket } => self.member_time(process, ticket),
            Event::PauseMember { seat } => self.pause_member(seat),
            Event::ResumeMember { process } => self.resume_member(process),
            Event::Crash { seat } => self.crash(seat),
            Event::Leave { seat } => self.leave(seat),
            Event::Answer { process, id, job } => self.answer(process, id, job),
            Event::Submit => self.submit(),
            Event::Cancel => self.cancel_any(),
            Event::CancelAll if self.master_stands_until > self.now => {
                self.schedule.put(self.master_stands_until, event);
            }
            Event::CancelAll => self.cancel_all(),
            Event::RunnerTime { job } => self.runner_time(job),
            Event::Calm => {
                self.is_calm = true;
                if self.deeds.is_some() {
                    // Otherwise their tasks would still work when all messages should have arrived.
                    self.schedule.put(self.now, Event::CancelAll);
                }
                let lease = self.scenario.settings.lease.as_micros() as u64;
                let quiet = self.now + QUIET_AFTER + QUIET_AFTER_LEASES * lease;
                self.schedule.put(quiet, Event::Quiet);
            }
            Event::Quiet => {
                let alive = self.processes.iter().enumerate();
                let alive = alive.filter(|(_, member)| member.is_settled());
                let members = alive.map(|(process, member)| (member.id, process)).collect();
                self.note(ControlEvent::Quiet { members });
                self.cancel_all();
                self.schedule.put(self.now + LEAVE_AFTER, Event::LeaveAll);
            }
            Event::LeaveAll => {
                (0..self.processes.len()).for_each(|process| self.leave_process(process));
                self.schedule.put(self.now + END_AFTER, Event::End);
            }
            Event::End => self.end(),
        }
    }

    /// No state may be left but that of ended jobs, at most as many as the master lists.
    fn end(&mut self) {
        self.is_over = true;
        let (job_count, rest) = self.door.rest();
        if job_count > self.scenario.settings.ended_job_limit {
            self.history.seen.push(format!("at the end {job_count} jobs are remembered"));
        }
        if let Some(rest) = rest {
            self.history.seen.push(format!("all have left, and the master remembers: {rest}"));
        }
        let runs = self.runners.iter().find(|(_, runner)| !runner.is_over);
        if let Some((job, runner)) = runs {
            self.history.seen.push(format!("the runner of job {job} has not ended: {runner:?}"));
        }
    }

    pub(crate) fn pause(&mut self) -> u64 {
        let lease = self.scenario.settings.lease.as_micros() as u64;
        1 + self.random.below(lease * LONGEST_PAUSE_LEASES)
    }

    pub(crate) fn time(&self) -> std::time::Duration {
        std::time::Duration::from_micros(self.now)
    }

    pub(crate) fn note(&mut self, what: ControlEvent) {
        self.history.entries.push(Entry { time: self.now, what });
    }

    pub(crate) fn delay(&mut self) -> u64 {
        1 + self.random.below(self.scenario.longest_delay)
    }

    pub(crate) fn send_up(&mut self, line: usize, message: rpc::Message) {
        let (delay, item) = (self.delay(), Item::of(message, self.scenario.as_bytes));
        self.lines[line].up.put(self.now, delay, item);
        self.look_up(line);
        self.perhaps_reset(line);
    }

    pub(crate) fn send_down(&mut self, line: usize, message: rpc::Message) {
        let (delay, item) = (self.delay(), Item::of(message, self.scenario.as_bytes));
        self.lines[line].down.put(self.now, delay, item);
        self.look_down(line);
        self.perhaps_reset(line);
    }

    /// Breaks the connection at one frame of [`Scenario::frames_of_reset`].
    fn perhaps_reset(&mut self, line: usize) {
        let frames = self.scenario.frames_of_reset;
        if self.is_calm || frames == 0 || self.random.below(frames) > 0 {
            return;
        }
        self.break_line(line);
    }

    pub(crate) fn break_line(&mut self, line: usize) {
        self.lines[line].up.cut(self.now, &mut self.random);
        self.lines[line].down.cut(self.now, &mut self.random);
        self.look_up(line);
        self.look_down(line);
    }

    pub(crate) fn look_up(&mut self, line: usize) {
        let pipe = &mut self.lines[line].up;
        pipe.ticket += 1;
        if let Some((time, _)) = pipe.items.front() {
            self.schedule.put((*time).max(self.now), Event::Up { line, ticket: pipe.ticket });
        }
    }

    pub(crate) fn look_down(&mut self, line: usize) {
        let pipe = &mut self.lines[line].down;
        pipe.ticket += 1;
        if let Some((time, _)) = pipe.items.front() {
            self.schedule.put((*time).max(self.now), Event::Down { line, ticket: pipe.ticket });
        }
    }
}
