//! Tests of sessions of the parameter service at the master: opened on the present servers, kept alive by messages of
//! their hosts, ended once.

use std::time::Duration;

use matrix::{
    Axis, Consistency, ElementType, FunctionTable, Initializer, MatrixSpec, OwnPartitioner, Partitioner,
    PushRule, Storage,
};
use rpc::Message;
use rpc::message::*;
use rpc::service::{Effect, Service};

use super::test_master::{TestMaster, server};
use crate::runner::{JobEvent, RunnerCommand, RunnerReport, SessionCommand};
use crate::{MasterState, Settings};

/// The host's connection.
const HOST: u64 = 50;

fn spec(name: &str) -> MatrixSpec {
    MatrixSpec {
        name: name.into(),
        element: ElementType::F32,
        rows: 1 << 40,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count: 6 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

fn open_session(request: u64) -> Message {
    Message::OpenSession(OpenSession {
        request,
        name: "fit".into(),
        lease_ms: 10_000,
        servers: 0,
        durability: Durability::Checkpoint,
        checkpoint: String::new(),
    })
}

fn create(job: u32, request: u64, spec: MatrixSpec) -> Message {
    Message::CreateMatrix(CreateMatrix { request, job, spec: Box::new(spec) })
}

fn close(job: u32, request: u64) -> Message {
    Message::CloseSession(CloseSession { request, job })
}

fn renew(job: u32) -> Message {
    Message::RenewSession(RenewSession { request: 77, job })
}

/// The messages to the host, and the commands to the runners.
struct MasterOutput {
    answers: Vec<Message>,
    orders: Vec<RunnerCommand>,
}

impl TestMaster {
    fn send(&mut self, message: Message) -> MasterOutput {
        self.master.on_message(self.now, HOST, message, &mut self.effects);
        self.take_output()
    }

    fn report(&mut self, job: u32, word: RunnerReport) -> MasterOutput {
        self.runner(job, word);
        self.take_output()
    }

    fn take_output(&mut self) -> MasterOutput {
        let sent = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Send { connection: HOST, message } => Some(message),
            _ => None,
        });
        let answers = sent.collect();
        MasterOutput { answers, orders: self.master.take_commands() }
    }

    /// Two servers with two lanes each, and a session on them.
    fn with_session() -> (Self, u32) {
        let mut world = Self::new();
        for i in 1..=2 {
            world.register(i, &format!("server-{i}"), 1, server()).expect("it may join");
        }
        let told = world.send(open_session(1));
        let [RunnerCommand::StartJob(start)] = &told.orders[..] else { panic!("{:?}", told.orders) };
        assert!(start.is_session && start.servers.len() == 2 && start.workers.is_empty());
        assert_eq!(told.answers, [], "not before its lanes have opened it");
        let job = start.job;
        let told = world.report(job, RunnerReport::SessionReply { call: 0, result: Ok(()) });
        let map = map(&told.answers[0]);
        assert_eq!((map.request, map.job, map.lease_ms, map.lanes.len()), (1, job, 10_000, 4));
        (world, job)
    }

    fn beats_until(&mut self, end: Duration) {
        while self.now < end {
            self.at(self.now + Duration::from_secs(1));
            self.heartbeat(1, 1);
            self.heartbeat(2, 2);
        }
        self.effects.clear();
    }
}

fn map(message: &Message) -> &SessionMap {
    match message {
        Message::SessionMap(map) => map,
        other => panic!("{other:?}"),
    }
}

fn refused(told: &MasterOutput) -> &Fault {
    match &told.answers[..] {
        [Message::Fault(fault)] => fault,
        other => panic!("{other:?}"),
    }
}

fn command_of(told: &MasterOutput) -> (u64, SessionCommand) {
    match &told.orders[..] {
        [RunnerCommand::ToRunner { event: JobEvent::Session { call, command }, .. }] => {
            (*call, command.clone())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_matrix_is_in_the_map_when_all_lanes_have_it() {
    let (mut world, job) = TestMaster::with_session();
    let told = world.send(create(job, 2, spec("w")));
    let (call, command) = command_of(&told);
    let SessionCommand::Add { matrix: 0, owners, .. } = command else { panic!("{command:?}") };
    assert_eq!(owners, [0, 0, 1, 2, 2, 3], "even blocks over the lanes");
    let told = world.send(create(job, 3, spec("w")));
    assert!(told.orders.is_empty() && told.answers.is_empty(), "the same again waits with the first");
    let told = world.send(Message::AskMap(AskMap { request: 4, job }));
    assert!(map(&told.answers[0]).matrices.is_empty());
    let told = world.report(job, RunnerReport::SessionReply { call, result: Ok(()) });
    let requests: Vec<u64> = told.answers.iter().map(|answer| map(answer).request).collect();
    assert_eq!(requests, [2, 3]);
    assert_eq!(map(&told.answers[0]).matrices[0].owners, owners);
    let told = world.send(create(job, 5, spec("w")));
    assert_eq!(map(&told.answers[0]).matrices.len(), 1, "made before: answered at once");
}

#[test]
fn a_name_with_another_spec_is_refused() {
    let (mut world, job) = TestMaster::with_session();
    let (call, _) = command_of(&world.send(create(job, 2, spec("w"))));
    world.report(job, RunnerReport::SessionReply { call, result: Ok(()) });
    let told = world.send(create(job, 3, MatrixSpec { columns: 2, ..spec("w") }));
    assert_eq!(refused(&told).kind, FaultKind::Invalid);
    assert!(refused(&told).text.contains("\"w\" exists with another spec"), "{}", refused(&told).text);
}

#[test]
fn a_spec_that_cannot_be_in_a_session_is_refused_with_its_reason() {
    let (mut world, job) = TestMaster::with_session();
    let bsp = MatrixSpec { consistency: Consistency::Bsp, ..spec("w") };
    let none = MatrixSpec { rows: 0, ..spec("w") };
    for (spec, text) in [
        (bsp, "consistency is Bsp, expected \"asp\""),
        (none, "rows is 0"),
        (spec(&"x".repeat(201)), "has 201 bytes, expected 1 to 200"),
    ] {
        let told = world.send(create(job, 2, spec));
        assert_eq!(refused(&told).kind, FaultKind::Invalid);
        assert!(refused(&told).text.contains(text), "{}", refused(&told).text);
        assert!(told.orders.is_empty());
    }
}

#[test]
fn a_session_has_matrices_with_the_partitioners_of_the_functions_alone() {
    let (mut world, job) = TestMaster::with_session();
    let blocks = OwnPartitioner { name: "blocks", partition_of: |key, _| (key / 50) as u32 };
    let partitioner = Partitioner::Own { name: blocks.name.into(), partition_count: 6 };
    let own = MatrixSpec { partitioner, ..spec("own") };
    let told = world.send(create(job, 2, own.clone()));
    assert!(refused(&told).text.contains("\"blocks\""), "{}", refused(&told).text);
    let mut functions = FunctionTable::builtin();
    functions.add_partitioner(blocks).unwrap();
    let master = std::mem::replace(&mut world.master, MasterState::new(Settings::default(), 77));
    world.master = master.with_functions(functions);
    let (_, command) = command_of(&world.send(create(job, 3, own)));
    assert!(matches!(command, SessionCommand::Add { .. }));
}

#[test]
fn what_lanes_refuse_is_said_and_leaves_no_matrix() {
    let (mut world, job) = TestMaster::with_session();
    let (call, _) = command_of(&world.send(create(job, 2, spec("large"))));
    let text = "its matrices take large 8000 = 8000 bytes; the limit is 3000".to_owned();
    let fault = Fault { request: 9, kind: FaultKind::TooLarge, text, retry_after_ms: 0 };
    let told = world.report(job, RunnerReport::SessionReply { call, result: Err(fault) });
    assert_eq!((refused(&told).request, refused(&told).kind), (2, FaultKind::TooLarge));
    assert!(refused(&told).text.contains("large 8000"));
    let told = world.send(Message::AskMap(AskMap { request: 4, job }));
    assert!(map(&told.answers[0]).matrices.is_empty());
    let (_, command) = command_of(&world.send(create(job, 5, spec("large"))));
    assert!(matches!(command, SessionCommand::Add { matrix: 1, .. }), "its number is not used again");
}

#[test]
fn a_matrix_is_dropped_once_and_a_number_that_never_was_is_not_found() {
    let (mut world, job) = TestMaster::with_session();
    let (call, _) = command_of(&world.send(create(job, 2, spec("w"))));
    let drop = |request, matrix| Message::DropMatrix(DropMatrix { request, job, matrix });
    let told = world.send(drop(3, 0));
    assert_eq!(refused(&told).kind, FaultKind::Busy, "it is being created");
    world.report(job, RunnerReport::SessionReply { call, result: Ok(()) });
    let (call, command) = command_of(&world.send(drop(4, 0)));
    assert_eq!(command, SessionCommand::Drop { matrix: 0 });
    assert!(world.send(drop(5, 0)).answers.is_empty(), "a repeat waits for the same");
    let told = world.report(job, RunnerReport::SessionReply { call, result: Ok(()) });
    assert_eq!(told.answers.len(), 2);
    assert!(matches!(world.send(drop(6, 0)).answers[..], [Message::Done(_)]));
    assert_eq!(refused(&world.send(drop(7, 1))).kind, FaultKind::NotFound);
}

#[test]
fn a_session_ends_with_its_lease_and_whatever_is_said_renews_it() {
    let (mut world, job) = TestMaster::with_session();
    world.beats_until(Duration::from_secs(9));
    assert!(matches!(world.send(renew(job)).answers[..], [Message::Done(_)]));
    world.beats_until(Duration::from_secs(18));
    assert!(world.master.take_commands().is_empty(), "ten seconds after the last request");
    world.beats_until(Duration::from_secs(19));
    let (_, command) = command_of(&world.take_output());
    let SessionCommand::Close { reason: Some(reason) } = command else { panic!("{command:?}") };
    assert!(reason.contains("its lease of 10000 ms expired"), "{reason}");
    assert_eq!(refused(&world.send(renew(job))).kind, FaultKind::Stopped, "too late");
    world.beats_until(Duration::from_secs(25));
    assert!(world.master.take_commands().is_empty(), "the runner gets one command");
    world.report(job, RunnerReport::Ended(Err(reason)));
    let told = world.send(renew(job));
    assert_eq!(refused(&told).kind, FaultKind::Stopped);
    assert!(refused(&told).text.contains("its lease of 10000 ms expired"), "{}", refused(&told).text);
}

#[test]
fn a_master_that_stood_still_ends_no_session_whose_host_was_missed_before_and_has_spoken_since() {
    let (mut world, job) = TestMaster::with_session();
    world.beats_until(Duration::from_secs(9));
    world.at(Duration::from_millis(9_900));
    assert!(matches!(world.send(renew(job)).answers[..], [Message::Done(_)]), "late, but within the lease");
    world.wake_at(Duration::from_secs(30));
    assert!(world.master.take_commands().is_empty(), "messages that arrived during its pause are read first");
    assert!(matches!(world.send(renew(job)).answers[..], [Message::Done(_)]));
}

#[test]
fn closing_is_answered_when_the_memory_is_free_and_may_be_repeated() {
    let (mut world, job) = TestMaster::with_session();
    let told = world.send(create(job, 2, spec("w")));
    assert_eq!(told.orders.len(), 1);
    let (_, command) = command_of(&world.send(close(job, 3)));
    assert_eq!(command, SessionCommand::Close { reason: None });
    assert!(world.send(close(job, 4)).orders.is_empty());
    let told = world.report(job, RunnerReport::Ended(Ok(serde_json::Value::Null.into())));
    assert!(
        matches!(&told.answers[..], [Message::Fault(fault), Message::Done(one), Message::Done(two)]
            if fault.request == 2 && one.request == 3 && two.request == 4),
        "{:?}",
        told.answers
    );
    assert!(matches!(world.send(close(job, 5)).answers[..], [Message::Done(_)]));
}

#[test]
fn a_session_that_is_not_there_is_told_from_a_job() {
    let (mut world, _) = TestMaster::with_session();
    assert_eq!(refused(&world.send(renew(99))).kind, FaultKind::NoSuchJob);
    let job = world.submit("a job", 1, 1);
    let told = world.send(renew(job));
    assert!(refused(&told).text.contains("is not a session"), "{}", refused(&told).text);
    assert_eq!(refused(&world.send(close(99, 2))).kind, FaultKind::NoSuchJob);
}

#[test]
fn without_servers_or_beyond_the_limit_a_session_is_sent_away_for_a_while() {
    let mut world = TestMaster::new();
    let told = world.send(open_session(1));
    assert_eq!(refused(&told).kind, FaultKind::Busy);
    assert!(refused(&told).text.contains("0 of 1 servers") && refused(&told).retry_after_ms > 0);
    let settings = Settings { session_limit: 1, running_job_limit: 1, ..Settings::default() };
    let mut world = TestMaster::with(settings);
    world.register(1, "server-1", 1, server()).expect("it may join");
    assert_eq!(world.send(open_session(1)).orders.len(), 1);
    let told = world.send(open_session(2));
    assert!(refused(&told).text.contains("1 sessions are open, the limit (session_limit)"));
    let short = OpenSession {
        request: 3,
        name: "fit".into(),
        lease_ms: 5,
        servers: 0,
        durability: Durability::Checkpoint,
        checkpoint: String::new(),
    };
    let told = world.send(Message::OpenSession(short));
    assert!(refused(&told).text.contains("lease_ms is 5, expected 0 or 1000 to"), "{}", refused(&told).text);
    world.submit("a job", 1, 0);
    assert_eq!(world.take_started().len(), 1, "sessions take no place of a job");
}

#[test]
fn a_session_hears_of_the_end_of_its_server_and_is_seen_as_a_job() {
    let (mut world, job) = TestMaster::with_session();
    assert_eq!(world.job(job).title, "session fit");
    world.receive(1, 9, ControlBody::Leave);
    let told = world.events_of(job);
    assert!(
        matches!(&told[..], [JobEvent::MemberLost { member, .. }] if member.name == "server-1"),
        "{told:?}"
    );
    let error = "server server-1 is gone: it has left".to_owned();
    world.report(job, RunnerReport::Ended(Err(error)));
    let told = world.send(create(job, 2, spec("w")));
    assert_eq!(refused(&told).kind, FaultKind::Stopped);
    assert!(refused(&told).text.contains("server-1 is gone"), "{}", refused(&told).text);
    let mut metrics = rpc::Metrics::default();
    world.master.metrics(&mut metrics);
    let text = ::control::metrics_text(metrics);
    assert!(text.contains("seraphim_master_sessions 0\n"), "{text}");
}

fn checkpoint(job: u32, request: u64, name: &str) -> Message {
    Message::CheckpointSession(CheckpointSession { request, job, name: name.into() })
}

#[test]
fn a_checkpoint_is_a_call_of_the_runner_and_the_lease_does_not_expire_meanwhile() {
    let (mut world, job) = TestMaster::with_session();
    for name in ["", "a/b", ".a", "a b", "ä"] {
        let told = world.send(checkpoint(job, 5, name));
        assert_eq!(refused(&told).kind, FaultKind::Invalid, "{name:?}");
    }
    let told = world.send(checkpoint(job, 6, "model-1_b.2"));
    assert_eq!(told.answers, []);
    let expected = SessionCommand::Checkpoint { name: "model-1_b.2".into() };
    let [RunnerCommand::ToRunner { event: JobEvent::Session { call, command }, .. }] = &told.orders[..]
    else {
        panic!("{:?}", told.orders)
    };
    assert_eq!(*command, expected);
    let call = *call;
    // The lease is 10 s, and the host only waits.
    world.beats_until(world.now + Duration::from_secs(35));
    assert!(world.events_of(job).is_empty(), "the session goes on");
    let told = world.report(job, RunnerReport::SessionReply { call, result: Ok(()) });
    assert!(matches!(&told.answers[..], [Message::Done(done)] if done.request == 6), "{:?}", told.answers);
    world.beats_until(world.now + Duration::from_secs(25));
    let close = world.events_of(job);
    let is_close = |event: &JobEvent| {
        matches!(event, JobEvent::Session { command: SessionCommand::Close { reason: Some(_) }, .. })
    };
    assert!(close.iter().any(is_close), "then it expires as always: {close:?}");
}

#[test]
fn a_session_that_begins_with_a_checkpoint_has_its_matrices_and_numbers_go_on_after_them() {
    let mut world = TestMaster::new();
    world.register(1, "server-1", 1, server()).expect("it may join");
    let Message::OpenSession(open) = open_session(1) else { panic!("it is one") };
    let bad = OpenSession { checkpoint: "../etc".into(), ..open.clone() };
    assert!(refused(&world.send(Message::OpenSession(bad))).text.contains("the name of a folder"));
    let told = world.send(Message::OpenSession(OpenSession { checkpoint: "fit".into(), ..open }));
    let [RunnerCommand::StartJob(start)] = &told.orders[..] else { panic!("{:?}", told.orders) };
    assert_eq!(start.spec["checkpoint"], "fit");
    let job = start.job;
    world.report(job, RunnerReport::SessionRestored(vec![spec("a"), spec("b")]));
    let told = world.report(job, RunnerReport::SessionReply { call: 0, result: Ok(()) });
    let names: Vec<&str> = map(&told.answers[0]).matrices.iter().map(|one| one.spec.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(map(&told.answers[0]).matrices[1].owners, crate::owners_of(&spec("b"), 2));
    // The same name and spec is the restored matrix, and another name gets the next number.
    let told = world.send(create(job, 2, spec("b")));
    assert_eq!(map(&told.answers[0]).matrices.len(), 2);
    let told = world.send(create(job, 3, spec("c")));
    let added = |command: &RunnerCommand| {
        matches!(
            command,
            RunnerCommand::ToRunner {
                event: JobEvent::Session { command: SessionCommand::Add { matrix: 2, .. }, .. },
                ..
            }
        )
    };
    assert!(told.orders.iter().any(added), "{:?}", told.orders);
}
