//! A standby that takes a job over has everything that was acknowledged, and whoever it has replaced acknowledges nothing.

mod any_moment;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use matrix::{Consistency, OwnedValues};
use rpc::Message;
use rpc::message::*;
use rpc::reader::read_messages;
use rpc::service::{ConnectionId, Effect, Service};

use super::world::*;
use crate::injected_fault::InjectedFault;
use crate::replica::{ClusterEvent, ClusterEvents, LinkRefusal, PrimaryLane, StandbyLane, StandbyLink};
use crate::{LaneConfig, LaneState};

/// The connection of the primary at the standby; each later one has the next number.
const LINK: ConnectionId = 500;

/// What is on the way to the standby.
#[derive(Default)]
struct Wire {
    frames: VecDeque<Message>,
    confirmed: u64,
    refusal: Option<LinkRefusal>,
    is_open: bool,
}

#[derive(Clone, Default)]
struct TestLink(Arc<Mutex<Wire>>);

impl StandbyLink for TestLink {
    fn send(&mut self, frames: &[u8], count: u64) {
        let messages = read_messages(frames, &rpc::FrameLimits::default()).unwrap();
        assert_eq!(messages.len() as u64, count);
        self.0.lock().unwrap().frames.extend(messages);
    }

    fn confirmed_count(&self) -> u64 {
        self.0.lock().unwrap().confirmed
    }

    fn refusal(&self) -> Option<LinkRefusal> {
        self.0.lock().unwrap().refusal.clone()
    }
}

/// A primary and its standby.
struct Pair {
    primary: PrimaryLane,
    standby: StandbyLane,
    link: TestLink,
    link_number: ConnectionId,
    events: [ClusterEvents; 2],
}

fn standby() -> Standby {
    Standby { primary: "p".into(), server: "s".into(), addresses: vec!["tcp:s:1".into()], lane: 1 }
}

fn replicated(task_count: u32, consistency: Consistency) -> OpenJob {
    let (durability, standby) = (Durability::Replica, Some(standby()));
    OpenJob { durability, standby, ..open(task_count, vec![spec("w", consistency)]) }
}

fn hello_of(role: Role) -> Message {
    Message::Hello(Hello { request: 1, token: Vec::new(), role, lane: 0 })
}

impl Pair {
    fn new(injected_fault: Option<InjectedFault>) -> Self {
        let (link, events) = (TestLink::default(), [ClusterEvents::default(), ClusterEvents::default()]);
        let opened = link.clone();
        let open_link = Box::new(move |_: JobId, standby: &Standby| {
            assert_eq!(standby.lane, 1);
            Box::new(opened.clone()) as Box<dyn StandbyLink>
        });
        let of_primary = LaneState::new(LaneConfig { injected_fault, ..config() });
        let of_standby = LaneState::new(LaneConfig { injected_fault, lane: 1, incarnation: 6, ..config() });
        let primary = PrimaryLane::new(of_primary, open_link, events[0].clone());
        let standby = StandbyLane::new(of_standby, events[1].clone());
        Self { primary, standby, link, link_number: LINK, events }
    }

    /// A pair with an open job, whose tasks are connected.
    fn with_job(task_count: u32, consistency: Consistency) -> Self {
        let mut pair = Self::new(None);
        pair.tell_primary(TOOL, hello_of(Role::Tool));
        assert!(
            pair.tell_primary(TOOL, Message::OpenJob(replicated(task_count, consistency))).is_empty(),
            "it waits"
        );
        assert!(matches!(only(pair.deliver()), Message::Done(_)), "the standby has it");
        for task in 0..task_count {
            assert!(matches!(
                only(pair.tell_primary(u64::from(task), hello(JOB, task))),
                Message::Welcome(_)
            ));
        }
        pair
    }

    fn tell_primary(&mut self, at: ConnectionId, message: Message) -> Vec<Effect> {
        let mut out = Vec::new();
        self.primary.on_message(Duration::ZERO, at, message, &mut out);
        out
    }

    fn tell_standby(&mut self, at: ConnectionId, message: Message) -> Vec<Effect> {
        let mut out = Vec::new();
        self.standby.on_message(Duration::ZERO, at, message, &mut out);
        out
    }

    /// Brings one change to the standby. False: there is none.
    fn deliver_one(&mut self) -> bool {
        let link = Arc::clone(&self.link.0);
        if !std::mem::replace(&mut link.lock().unwrap().is_open, true) {
            self.open_link();
        }
        let Some(message) = link.lock().unwrap().frames.pop_front() else { return false };
        let effects = self.tell_standby(self.link_number, message);
        let mut wire = link.lock().unwrap();
        for effect in effects {
            match effect {
                Effect::Send { connection, message: Message::Done(done) }
                    if connection == self.link_number =>
                {
                    wire.confirmed = done.request;
                }
                Effect::Send { message: Message::Fault(fault), .. } => {
                    wire.refusal = Some(LinkRefusal::of(&fault));
                }
                _ => {}
            }
        }
        true
    }

    /// Connects the primary to the standby. Returns how many changes the standby has.
    fn open_link(&mut self) -> Option<u64> {
        self.link_number += 1;
        let hello = hello_of(Role::Primary { job: JOB, incarnation: 5 });
        let effects = self.tell_standby(self.link_number, hello);
        effects.iter().find_map(|effect| match effect {
            Effect::Send { message: Message::Welcome(welcome), .. } => Some(welcome.clock),
            Effect::Send { message: Message::Fault(fault), .. } => {
                self.link.0.lock().unwrap().refusal = Some(LinkRefusal::of(fault));
                None
            }
            _ => None,
        })
    }

    /// Brings everything to the standby. Returns what the primary sends then.
    fn deliver(&mut self) -> Vec<Effect> {
        while self.deliver_one() {}
        self.wake_primary()
    }

    fn wake_primary(&mut self) -> Vec<Effect> {
        let mut out = Vec::new();
        self.primary.on_time(Duration::ZERO, &mut out);
        out
    }

    /// The master has lost the primary.
    fn lose_primary(&mut self) {
        self.events[1].tell(&ClusterEvent::ServerLost("p".into()));
        self.standby.on_time(Duration::ZERO, &mut Vec::new());
    }

    fn rows_of_standby(&mut self) -> Vec<f64> {
        let hello = self.tell_standby(TOOL, hello_of(Role::JobTool { job: JOB }));
        let Message::Welcome(welcome) = only(hello) else { panic!("the standby has the job") };
        assert_eq!(welcome.incarnation, 5, "who had a connection to the primary finds it again");
        let export = Export { request: 1, job: JOB, matrix: 0, from: 0, skip: 0 };
        match only(self.tell_standby(TOOL, Message::Export(export))) {
            Message::ExportPage(ExportPage { values: OwnedValues::F64(values), .. }) => {
                vec![values[10], values[60]]
            }
            other => panic!("{other:?}"),
        }
    }
}

fn asked_push(task: u32, clock: u64, index: u32, value: f64) -> Message {
    Message::Push(Push { request: 9, ..push(task, clock, index, value) })
}

#[test]
fn nothing_is_acknowledged_before_the_standby_has_it() {
    let mut pair = Pair::with_job(1, Consistency::Asp);
    assert!(pair.tell_primary(0, asked_push(0, 0, 0, 2.0)).is_empty());
    // What is read may depend on the push.
    assert!(pair.tell_primary(0, Message::Pull(pull(3, 0, 0))).is_empty());
    // So may what a task that connects again hears of its pushes.
    assert_eq!(pair.tell_primary(1, hello(JOB, 0)), [Effect::Close { connection: 0 }]);
    let effects = pair.deliver();
    let kind = |effect: &Effect| match effect {
        Effect::Send { message, .. } => message.kind_name(),
        _ => "no message",
    };
    assert_eq!(effects.iter().map(kind).collect::<Vec<_>>(), ["Done", "Pulled", "Welcome"], "in their order");
    // Without a change in between nothing waits.
    assert_eq!(pulled(pair.tell_primary(1, Message::Pull(pull(4, 0, 0)))), [2.0, 2.0]);
}

#[test]
fn a_lane_without_the_rule_answers_too_early() {
    let mut pair = Pair::new(Some(InjectedFault::AnswerBeforeStandby));
    pair.tell_primary(TOOL, hello_of(Role::Tool));
    let effects = pair.tell_primary(TOOL, Message::OpenJob(replicated(1, Consistency::Asp)));
    assert!(matches!(only(effects), Message::Done(_)));
}

#[test]
fn a_standby_takes_over_with_what_was_acknowledged_and_the_rest_is_sent_again() {
    let mut pair = Pair::with_job(1, Consistency::Asp);
    pair.tell_primary(0, asked_push(0, 0, 0, 2.0));
    pair.deliver();
    // This one is lost with the primary.
    pair.tell_primary(0, asked_push(0, 0, 1, 5.0));
    let busy = pair.tell_standby(7, hello(JOB, 0));
    assert_eq!(fault(&busy).kind, FaultKind::Busy, "the primary has the job");
    assert!(closes(&busy, 7));
    pair.lose_primary();
    let Message::Welcome(welcome) = only(pair.tell_standby(8, hello(JOB, 0))) else {
        panic!("it has the job")
    };
    assert_eq!((welcome.applied, welcome.incarnation), (PushPosition { clock: 0, index: 1 }, 5));
    pair.tell_standby(8, asked_push(0, 0, 1, 5.0));
    assert_eq!(pair.rows_of_standby(), [7.0, 7.0]);
}

#[test]
fn a_primary_that_was_replaced_acknowledges_nothing() {
    let mut pair = Pair::with_job(1, Consistency::Asp);
    pair.lose_primary();
    // It was frozen, and wakes.
    assert!(pair.tell_primary(0, asked_push(0, 0, 0, 2.0)).is_empty());
    pair.open_link();
    let effects = pair.wake_primary();
    assert!(effects.iter().all(|effect| !matches!(effect, Effect::Send { message: Message::Done(_), .. })));
    assert!(!effects.is_empty(), "its task is told to go elsewhere");
    let refused = pair.tell_primary(1, hello(JOB, 0));
    assert_eq!(fault(&refused).kind, FaultKind::NoSuchJob, "the task goes on to the standby");
    assert_eq!(pair.rows_of_standby(), [0.0, 0.0]);
}

#[test]
fn a_tool_hears_why_its_request_is_not_done() {
    let mut pair = Pair::new(None);
    pair.tell_primary(TOOL, hello_of(Role::Tool));
    pair.tell_primary(TOOL, Message::OpenJob(replicated(1, Consistency::Asp)));
    pair.link.0.lock().unwrap().refusal = Some(LinkRefusal::Failed("it has no memory".into()));
    let effects = pair.wake_primary();
    assert!(fault(&effects).text.contains("the standby at s follows no more: it has no memory"));
    assert!(pair.primary.state().jobs.is_empty());
}

#[test]
fn a_primary_whose_standby_is_lost_goes_on_alone() {
    let mut pair = Pair::with_job(1, Consistency::Asp);
    assert!(pair.tell_primary(0, asked_push(0, 0, 0, 2.0)).is_empty());
    pair.events[0].tell(&ClusterEvent::ServerLost("another".into()));
    assert!(pair.wake_primary().is_empty());
    pair.events[0].tell(&ClusterEvent::ServerLost("s".into()));
    assert!(matches!(only(pair.wake_primary()), Message::Done(_)));
    assert!(
        matches!(only(pair.tell_primary(0, asked_push(0, 0, 1, 1.0))), Message::Done(_)),
        "nothing waits"
    );
    assert_eq!(pair.link.0.lock().unwrap().frames.len(), 1, "nothing is sent");
}

#[test]
fn a_server_whose_job_ends_elsewhere_acknowledges_nothing_and_closes_no_copy() {
    let mut pair = Pair::with_job(1, Consistency::Asp);
    pair.tell_primary(0, asked_push(0, 0, 0, 2.0));
    pair.events[0].tell(&ClusterEvent::JobsEnd(vec![JOB]));
    let effects = pair.wake_primary();
    assert_eq!(effects, [Effect::Close { connection: 0 }]);
    let close = CloseJob { request: 1, job: JOB, reason: "its lease has expired".into() };
    assert!(matches!(only(pair.tell_primary(TOOL, Message::CloseJob(close))), Message::Done(_)));
    assert!(pair.standby.state().jobs.contains_key(&JOB));
}

#[test]
fn a_job_that_is_closed_is_closed_at_its_standby_before_the_answer() {
    let mut pair = Pair::with_job(1, Consistency::Asp);
    let close = CloseJob { request: 1, job: JOB, reason: "it has ended".into() };
    assert!(pair.tell_primary(TOOL, Message::CloseJob(close)).is_empty());
    assert!(matches!(only(pair.deliver()), Message::Done(_)));
    assert!(pair.standby.state().jobs.is_empty());
    let late = pair.tell_standby(7, hello(JOB, 0));
    assert_eq!(
        (fault(&late).kind, fault(&late).text.as_str()),
        (FaultKind::Stopped, "job 7 was ended: it has ended")
    );
    pair.lose_primary();
    assert!(pair.standby.state().connections.is_empty(), "nothing is left of the copy");
}

#[test]
fn a_connection_to_the_standby_may_break_at_any_change() {
    let mut pair = Pair::with_job(1, Consistency::Asp);
    for index in 0..3 {
        pair.tell_primary(0, asked_push(0, 0, index, 1.0));
    }
    assert!(pair.deliver_one());
    let before = pair.link_number;
    let has = pair.open_link().expect("it is the same primary");
    assert_eq!(has, 2, "the job and the first push");
    assert!(pair.tell_standby(before, asked_push(0, 0, 1, 1.0)).is_empty(), "the old connection is over");
    pair.deliver();
    pair.lose_primary();
    assert_eq!(pair.rows_of_standby(), [3.0, 3.0]);
}

#[test]
fn a_copy_that_cannot_follow_is_never_taken_for_the_job() {
    let mut pair = Pair::with_job(1, Consistency::Asp);
    pair.link.0.lock().unwrap().frames.push_back(asked_push(4, 0, 0, 1.0));
    pair.deliver();
    assert!(pair.primary.state().jobs.is_empty(), "nothing can be acknowledged");
    pair.lose_primary();
    let refused = pair.tell_standby(7, hello(JOB, 0));
    assert!(fault(&refused).text.contains("could not follow"), "{}", fault(&refused).text);
}

#[test]
fn a_replicated_job_needs_a_standby_and_a_server_without_a_log() {
    let mut pair = Pair::new(None);
    pair.tell_primary(TOOL, hello_of(Role::Tool));
    let alone = OpenJob { standby: None, ..replicated(1, Consistency::Asp) };
    let refused = pair.tell_primary(TOOL, Message::OpenJob(alone));
    assert!(fault(&refused).text.contains("at least two servers"), "{}", fault(&refused).text);
    let mut world = World::with(config(), open(1, vec![spec("w", Consistency::Asp)]));
    world.lane.durability = Durability::Log;
    let other = OpenJob { job: 8, ..replicated(1, Consistency::Asp) };
    let refused = world.send(TOOL, Message::OpenJob(other));
    assert!(fault(&refused).text.contains("write-ahead log"), "{}", fault(&refused).text);
    let asked = OpenJob { durability: Durability::Log, ..open(1, Vec::new()) };
    let refused = pair.tell_primary(TOOL, Message::OpenJob(asked));
    assert!(fault(&refused).text.contains("no write-ahead log"), "{}", fault(&refused).text);
}

#[test]
fn a_server_has_memory_for_its_partitions_and_for_those_that_it_copies() {
    let dense = 2 * 100 * 8;
    for (limit, fits) in [(dense * 2 - 1, false), (dense * 2 + 4096, true)] {
        let mut pair = Pair::new(None);
        let lane = LaneState::new(LaneConfig { memory_limit_bytes: limit, ..config() });
        let link = pair.link.clone();
        let open_link = Box::new(move |_: JobId, _: &Standby| Box::new(link.clone()) as Box<dyn StandbyLink>);
        pair.primary = PrimaryLane::new(lane, open_link, ClusterEvents::default());
        pair.tell_primary(TOOL, hello_of(Role::Tool));
        let two = vec![spec("a", Consistency::Asp), spec("b", Consistency::Asp)];
        let open = OpenJob {
            owned_partitions: vec![vec![0, 1]; 2],
            matrices: two,
            ..replicated(1, Consistency::Asp)
        };
        let effects = pair.tell_primary(TOOL, Message::OpenJob(open));
        if fits {
            assert!(matches!(only(pair.deliver()), Message::Done(_)));
        } else {
            assert!(fault(&effects).text.contains("with their replicas"), "{}", fault(&effects).text);
        }
    }
}

#[test]
fn nothing_is_left_of_a_primary_that_has_sent_nothing() {
    let mut pair = Pair::new(None);
    assert_eq!(pair.open_link(), Some(0));
    assert!(!pair.standby.state().connections.is_empty());
    pair.standby.on_closed(Duration::ZERO, pair.link_number, &mut Vec::new());
    assert!(pair.standby.state().connections.is_empty());
    assert_eq!(pair.open_link(), Some(0), "another one may come");
}

#[test]
fn the_tool_of_a_job_goes_elsewhere_when_a_lane_does_not_have_the_job() {
    let mut pair = Pair::new(None);
    let refused = pair.tell_primary(TOOL, hello_of(Role::JobTool { job: JOB }));
    assert_eq!(fault(&refused).kind, FaultKind::NoSuchJob);
    let mut pair = Pair::with_job(1, Consistency::Asp);
    assert!(matches!(
        only(pair.tell_primary(TOOL + 1, hello_of(Role::JobTool { job: JOB }))),
        Message::Welcome(_)
    ));
    let refused = pair.tell_standby(TOOL, hello_of(Role::JobTool { job: JOB }));
    assert_eq!(fault(&refused).kind, FaultKind::Busy);
}
