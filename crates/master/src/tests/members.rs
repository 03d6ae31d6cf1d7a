//! Tests of registration, leases, reconnecting, leaving, and the notifications about them.

use std::time::Duration;

use control::ClientRequest;
use rpc::Message;
use rpc::message::{Control, ControlBody, FaultKind, Hello, Role, Tick};
use rpc::service::{Effect, Service};

use super::test_master::{HEARTBEAT, LEASE, TestMaster, bytes, server, worker, worker_of};
use crate::Settings;
use crate::runner::{JobEvent, RunnerReport};

/// Just before a lease that began at 0 is over. A member becomes suspected one heartbeat before its lease is over.
const MISSED: Duration = Duration::from_millis(4_500);
/// The same for a member whose connection ended at 0.
const RECONNECT: Duration = Duration::from_secs(2);
const RECONNECT_IN_TIME: Duration = Duration::from_nanos(2_000_000_000 - 1);
const IN_TIME: Duration = Duration::from_nanos(5_000_000_000 - 1);

#[test]
fn a_hello_is_welcomed_and_whoever_wants_parameters_is_sent_to_the_servers() {
    let mut world = TestMaster::new();
    let hello = |role| Message::Hello(Hello { request: 9, token: Vec::new(), role, lane: 0 });
    world.master.on_message(world.now, 1, hello(Role::Member), &mut world.effects);
    let welcomed = world.effects.iter().any(|effect| {
        matches!(effect, Effect::Send { connection: 1, message: Message::Welcome(w) } if w.request == 9 && w.incarnation == 77)
    });
    assert!(welcomed);
    for (role, connection) in [
        (Role::Task { job: 1, task: 2 }, 2),
        (Role::JobTool { job: 1 }, 3),
        (Role::Primary { job: 1, incarnation: 9 }, 4),
        (Role::Session { job: 1 }, 5),
    ] {
        world.master.on_message(world.now, connection, hello(role), &mut world.effects);
        let (kind, text) = world.fault_to(connection).unwrap();
        assert_eq!(kind, FaultKind::Invalid);
        let who = match role {
            Role::Task { .. } => "task 2 of job 1 connected",
            Role::JobTool { .. } => "a tool of job 1 connected",
            Role::Primary { .. } => "a lane with job 1 connected",
            _ => "a host of the session of job 1 connected",
        };
        assert!(text.starts_with(who), "{text}");
        assert!(world.is_closed(connection));
    }
}

#[test]
fn what_is_meant_for_a_server_is_refused_and_the_connection_closed() {
    let mut world = TestMaster::new();
    let tick = Message::Tick(Tick { request: 0, job: 1, task: 0, clock: 1 });
    world.master.on_message(world.now, 3, tick, &mut world.effects);
    assert_eq!(world.fault_to(3).unwrap().0, FaultKind::BadFrame);
    assert!(world.is_closed(3));
    world.receive(4, 0, ControlBody::Alive);
    assert_eq!(world.fault_to(4).unwrap().0, FaultKind::BadFrame);
}

#[test]
fn members_get_numbers_that_are_never_used_again() {
    let mut world = TestMaster::new();
    assert_eq!(world.register(1, "a", 10, server()), Some(1));
    assert_eq!(world.register(2, "b", 20, worker()), Some(2));
    world.receive(2, 0, ControlBody::Leave);
    assert!(world.is_closed(2));
    assert_eq!(world.register(3, "b", 21, worker()), Some(3), "its name is free at once, its number is not");
}

#[test]
fn a_lease_is_over_at_its_exact_time() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, server());
    world.register(2, "b", 20, worker());
    let silent_since = Duration::from_millis(1234);
    world.now = silent_since;
    world.heartbeat(1, 1);
    world.now = Duration::from_secs(3);
    world.heartbeat(2, 2);
    world.effects.clear();
    assert_eq!(world.master.next_time(), Some(silent_since + MISSED));
    world.at(silent_since + IN_TIME);
    assert!(world.effects.is_empty());
    world.at(silent_since + LEASE);
    assert!(world.is_closed(1));
    let told = world.bodies_to(2);
    let [ControlBody::Gone { member, reason }] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((member.id, member.name.as_str()), (1, "a"));
    assert!(reason.contains("5000 ms"), "{reason}");
    assert_eq!(world.status().0.len(), 1);
}

#[test]
fn whatever_a_member_says_keeps_it_alive_and_a_heartbeat_is_answered() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, server());
    world.now = Duration::from_secs(4);
    world.receive(1, 0, ControlBody::Heard { count: 0 });
    assert_eq!(world.master.next_time(), Some(Duration::from_secs(4) + MISSED));
    world.heartbeat(1, 1);
    assert_eq!(world.bodies_to(1), [ControlBody::Alive]);
    world.heartbeat(1, 5);
    let (kind, text) = world.fault_to(1).unwrap();
    assert_eq!(kind, FaultKind::NotFound);
    assert!(text.contains("register first"), "{text}");
}

#[test]
fn the_same_incarnation_comes_back_in_time_with_its_number() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    world.close(1);
    assert_eq!(
        world.master.next_time(),
        RECONNECT.checked_sub(HEARTBEAT),
        "it is suspected before it is removed"
    );
    world.at(RECONNECT_IN_TIME);
    assert_eq!(world.register(2, "a", 10, worker()), Some(1));
    assert_eq!(world.master.next_time(), Some(RECONNECT_IN_TIME + MISSED));
    world.close(1);
    world.heartbeat(2, 1);
    assert_eq!(
        world.bodies_to(2),
        [ControlBody::Alive],
        "the late news of the old connection changes nothing"
    );
    assert_eq!(world.register(3, "a", 10, worker()), Some(1));
    assert_eq!(world.register(3, "a", 10, worker()), Some(1), "a register that is repeated");
}

#[test]
fn a_new_connection_closes_the_one_that_its_member_had() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    let (name, host) = ("a".to_string(), "here:1".to_string());
    world.receive(
        2,
        1,
        ControlBody::Register { name, incarnation: 10, host, member: worker(), restored: false },
    );
    assert!(world.is_closed(1));
    assert!(!world.is_closed(2));
}

#[test]
fn after_the_reconnect_limit_the_same_incarnation_is_somebody_new() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    world.register(2, "b", 20, worker());
    world.close(1);
    world.at(RECONNECT);
    let told = world.bodies_to(2);
    let [ControlBody::Gone { member, reason }] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(member.name, "a");
    assert!(reason.contains("did not reconnect within 2000 ms"), "{reason}");
    assert_eq!(world.register(3, "a", 10, worker()), Some(3));
}

#[test]
fn a_lease_that_ends_before_the_reconnect_limit_counts() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    world.register(2, "b", 20, worker());
    world.at(Duration::from_secs(4));
    world.heartbeat(2, 2);
    world.close(1);
    world.at(LEASE);
    let gone = world.bodies_to(2);
    assert!(
        matches!(gone.last(), Some(ControlBody::Gone { reason, .. }) if reason.contains("its lease of 5000 ms"))
    );
}

#[test]
fn a_master_that_was_suspended_lets_a_member_reconnect() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    world.close(1);
    world.wake_at(RECONNECT * 5);
    assert_eq!(world.register(2, "a", 10, worker()), Some(1), "it was suspected only");
}

#[test]
fn two_members_with_one_name_are_refused_while_the_first_lives() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    assert_eq!(world.register(2, "a", 11, worker()), None);
    let (kind, text) = world.fault_to(2).unwrap();
    assert_eq!(kind, FaultKind::Invalid);
    assert!(text.contains("two members have the name \"a\""), "{text}");
    assert!(text.contains("give one of them another name"), "{text}");
    assert!(world.is_closed(2));
    world.close(1);
    world.now = Duration::from_secs(2);
    assert_eq!(world.register(3, "a", 11, worker()), Some(2), "the connection of the first has ended");
    assert_eq!(world.register(4, "a", 10, worker()), None, "the first may not come back");
    assert!(world.fault_to(4).unwrap().1.contains("two members have the name"));
}

#[test]
fn what_cannot_be_is_refused_with_the_limit() {
    let mut world = TestMaster::with(Settings { member_limit: 1, ..Settings::default() });
    for (name, kind, part) in [
        ("", worker(), "expected 1 to 200"),
        ("w", rpc::message::control::MemberKind::Worker { slots: 0, group: String::new() }, "0 slots"),
        ("w", worker_of("two\nlines"), "the worker group of worker \"w\""),
        ("w", worker_of(&"long".repeat(100)), "has 400 bytes, expected at most 200"),
    ] {
        assert_eq!(world.register(1, name, 10, kind), None);
        let text = world.fault_to(1).unwrap().1;
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(world.register(1, "a", 10, worker()), Some(1));
    assert_eq!(world.register(1, "b", 10, worker()), None);
    assert!(world.fault_to(1).unwrap().1.contains("a connection has one member"));
    assert_eq!(world.register(2, "b", 10, worker()), None);
    assert!(world.fault_to(2).unwrap().1.contains("member_limit"));
}

#[test]
fn a_master_that_slept_gives_its_members_one_heartbeat_more() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    let woke = Duration::from_mins(1);
    world.wake_at(woke);
    assert!(!world.is_closed(1), "its heartbeats may lie in the socket");
    assert_eq!(world.master.next_time(), Some(woke + HEARTBEAT));
    world.at(woke + HEARTBEAT);
    assert!(world.is_closed(1));
}

/// The messages in the sockets are read one by one, and the time is checked in between.
#[test]
fn a_master_that_slept_and_reads_one_member_first_does_not_bury_the_other() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    world.register(2, "b", 20, worker());
    world.now = Duration::from_mins(1);
    world.heartbeat(1, 1);
    world.wake_at(world.now);
    assert!(!world.is_closed(2), "its heartbeat is the next to be read");
    world.heartbeat(2, 2);
    world.at(world.now + IN_TIME);
    assert!(!world.is_closed(1) && !world.is_closed(2));
}

#[test]
fn what_a_member_missed_while_it_was_away_is_said_when_it_is_back() {
    let mut world = TestMaster::new();
    let id = world.register(1, "w", 10, worker()).unwrap();
    let job = world.submit("j", 0, 1);
    assert_eq!(world.take_started().len(), 1);
    world.runner(job, RunnerReport::ToTask { worker: id, body: bytes("one") });
    assert_eq!(world.control_to(1)[0].request, 1);
    world.receive(1, 1, ControlBody::FromTask { job, body: bytes("first") });
    world.close(1);
    world.runner(job, RunnerReport::ToTask { worker: id, body: bytes("two") });
    let (name, host) = ("w".to_string(), "here:1".to_string());
    world.receive(
        2,
        1,
        ControlBody::Register { name, incarnation: 10, host, member: worker(), restored: false },
    );
    let said = world.control_to(2);
    let to_task = |text: &str| ControlBody::ToTask { job, body: bytes(text) };
    assert!(matches!(said[0].body, ControlBody::Registered { id: 1, .. }));
    assert_eq!(said[1].body, ControlBody::Heard { count: 1 });
    assert_eq!(said[2], Control { request: 1, body: to_task("one") });
    assert_eq!(said[3], Control { request: 2, body: to_task("two") });
    world.receive(2, 1, ControlBody::FromTask { job, body: bytes("first") });
    world.receive(2, 2, ControlBody::FromTask { job, body: bytes("second") });
    let told = world.events_of(job);
    assert!(matches!(&told[0], JobEvent::FromTask { body, .. } if *body == bytes("first")));
    assert!(matches!(&told[1], JobEvent::MemberDisconnected { member } if member.id == id));
    assert!(
        matches!(&told[2], JobEvent::MemberReconnected { member, is_restored: false } if member.id == id)
    );
    assert!(
        matches!(&told[3], JobEvent::FromTask { body, .. } if *body == bytes("second")),
        "the repeat is dropped"
    );
    assert_eq!(told.len(), 4);
    world.receive(2, 4, ControlBody::FromTask { job, body: bytes("fourth") });
    assert!(world.is_closed(2), "a gap");
}

#[test]
fn a_member_learns_of_which_runs_it_is_part_and_not_of_those_that_begin_because_of_it() {
    let mut world = TestMaster::new();
    let runs = |world: &mut TestMaster, from, incarnation, restored| {
        let (name, host) = ("s".to_string(), "here:1".to_string());
        let body = ControlBody::Register { name, incarnation, host, member: server(), restored };
        world.receive(from, 1, body);
        let said = world.control_to(from);
        match &said[0].body {
            ControlBody::Registered { runs, .. } => runs.clone(),
            other => panic!("{other:?}"),
        }
    };
    world.register(1, "w", 1, worker()).unwrap();
    let job = world.submit("it waits for a server", 1, 1);
    assert_eq!(runs(&mut world, 2, 10, false), [0u32; 0], "the job begins after the registration");
    assert_eq!(world.take_started().len(), 1);
    world.close(2);
    assert_eq!(runs(&mut world, 3, 10, true), [job], "the same member with its log");
    world.close(3);
    assert_eq!(runs(&mut world, 4, 11, true), [0u32; 0], "another member");
}

#[test]
fn a_member_that_missed_a_word_is_told_nothing_behind_it() {
    let mut world = TestMaster::with(Settings { unconfirmed_limit: 2, ..Settings::default() });
    world.register(1, "a", 10, worker());
    let job = world.submit("it talks", 0, 1);
    let word = |number: u32| RunnerReport::ToTask { worker: 1, body: bytes(&number.to_string()) };
    (1..=3).for_each(|number| world.runner(job, word(number)));
    assert_eq!(world.bodies_to(1).len(), 2, "the third is above the limit");
    world.receive(1, 0, ControlBody::Heard { count: 2 });
    world.runner(job, word(4));
    assert!(world.bodies_to(1).is_empty(), "the third is missing before it");
    world.at(world.now);
    assert!(world.is_closed(1));
}

#[test]
fn a_member_that_confirms_nothing_is_gone_at_the_limit() {
    let mut world = TestMaster::with(Settings { unconfirmed_limit: 2, ..Settings::default() });
    let id = world.register(1, "w", 10, worker()).unwrap();
    let job = world.submit("j", 0, 1);
    world.take_started();
    for number in 0..2 {
        world.runner(job, RunnerReport::ToTask { worker: id, body: bytes(&number.to_string()) });
    }
    world.receive(1, 0, ControlBody::Heard { count: 1 });
    world.runner(job, RunnerReport::ToTask { worker: id, body: bytes("2") });
    assert_eq!(world.control_to(1).len(), 3);
    world.runner(job, RunnerReport::ToTask { worker: id, body: bytes("3") });
    assert_eq!(world.master.next_time(), Some(Duration::ZERO));
    world.at(world.now);
    let told = world.events_of(job);
    assert!(
        matches!(&told[0], JobEvent::MemberLost { reason, .. } if reason.contains("unconfirmed_limit")),
        "{told:?}"
    );
}

#[test]
fn members_whose_leases_are_over_are_counted_and_those_that_leave_are_not() {
    let mut world = TestMaster::new();
    for (connection, name) in [(1, "a"), (2, "b"), (3, "c")] {
        world.register(connection, name, 10, worker());
    }
    world.receive(3, 0, ControlBody::Leave);
    world.at(LEASE);
    assert!(world.is_closed(1) && world.is_closed(2));
    let mut metrics = rpc::Metrics::default();
    world.master.metrics(&mut metrics);
    let text = control::metrics_text(metrics);
    assert!(text.lines().any(|line| line == "seraphim_master_leases_over_total 2"), "{text}");
}

#[test]
fn a_job_that_has_lost_a_member_goes_on_with_others_under_another_number() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    world.register(2, "b", 10, worker());
    let job = world.submit("it goes on", 0, 2);
    assert_eq!(world.take_started().len(), 1);
    world.close(2);
    world.at(Duration::from_secs(1));
    // A process that was started in the place of the second worker.
    assert_eq!(world.register(3, "b", 11, worker()), Some(3));
    let told = world.events_of(job);
    assert!(matches!(&told[0], JobEvent::MemberDisconnected { member } if member.id == 2));
    assert!(
        matches!(&told[1], JobEvent::MemberLost { member, reason } if member.id == 2 && reason.contains("a new process")),
        "{told:?}"
    );
    world.runner(job, RunnerReport::ReplaceMembers);
    let told = world.events_of(job);
    let [JobEvent::Members { run, workers, servers }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(workers.iter().map(|member| member.id).collect::<Vec<_>>(), [1, 3]);
    assert!(servers.is_empty() && *run != job);
    // What members still say of the first run reaches nobody; what is said to them has the new number.
    world.receive(1, 1, ControlBody::FromTask { job, body: bytes("old") });
    world.receive(1, 2, ControlBody::FromTask { job: *run, body: bytes("new") });
    let told = world.events_of(job);
    assert!(
        matches!(&told[..], [JobEvent::FromTask { worker: 1, body }] if *body == bytes("new")),
        "{told:?}"
    );
    world.runner(job, RunnerReport::ToTask { worker: 3, body: bytes("go") });
    let said = world.control_to(3);
    assert_eq!(said.last().unwrap().body, ControlBody::ToTask { job: *run, body: bytes("go") });
    assert_ne!(world.submit("another", 0, 1), *run, "no other job has the number");
}

#[test]
fn a_job_waits_for_members_before_queued_jobs_get_any_and_can_be_cancelled() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    let job = world.submit("it waits", 0, 1);
    world.close(1);
    world.at(LEASE);
    world.runner(job, RunnerReport::ReplaceMembers);
    world.events_of(job);
    world.register(2, "b", 10, worker());
    let told = world.events_of(job);
    assert!(matches!(&told[..], [JobEvent::Members { .. }]), "{told:?}");
    // It loses this one too, and is cancelled while it waits.
    world.close(2);
    world.at(LEASE * 3);
    world.runner(job, RunnerReport::ReplaceMembers);
    world.call(7, ClientRequest::Cancel { job });
    let told = world.events_of(job);
    assert!(matches!(told.last(), Some(JobEvent::Cancelled)), "{told:?}");
    world.runner(job, RunnerReport::Ended(Err("cancelled".into())));
    world.register(3, "c", 10, worker());
    assert!(world.events_of(job).is_empty(), "it has ended");
}

#[test]
fn a_refused_registration_takes_no_name() {
    let mut world = TestMaster::new();
    world.register(1, "a", 10, worker());
    world.register(2, "b", 10, worker());
    world.close(2);
    assert_eq!(world.register(1, "b", 11, worker()), None, "its connection belongs to another member");
    assert_eq!(world.register(3, "b", 10, worker()), Some(2), "it comes back under its number");
}

#[test]
fn a_process_that_was_replaced_does_not_take_its_name_back() {
    let mut world = TestMaster::new();
    world.register(1, "b", 10, worker());
    world.close(1);
    assert_eq!(world.register(2, "b", 11, worker()), Some(2));
    // The connection of the new process is reset, and the first one wakes before it has reconnected.
    world.close(2);
    assert_eq!(world.register(3, "b", 10, worker()), None);
    let text = world.fault_to(3).unwrap().1;
    assert!(text.contains("was started in place of this one"), "{text}");
    assert_eq!(world.register(4, "b", 11, worker()), Some(2), "the new one comes back");
    // A third process replaces the second; the first two stay replaced.
    world.close(4);
    assert_eq!(world.register(5, "b", 12, worker()), Some(3));
    world.close(5);
    assert_eq!(world.register(6, "b", 10, worker()), None);
    assert_eq!(world.register(7, "b", 11, worker()), None);
}
