//! Tests of Hello, key lists and windows.

use matrix::{Consistency, OwnedValues};
use rpc::message::*;
use rpc::service::{Effect, Service};

use super::world::*;
use crate::LaneConfig;

#[test]
fn a_hello_of_a_task_takes_the_place_of_its_old_connection() {
    let mut world = World::new(2, Consistency::Bsp);
    world.push(0, 0, 0);
    world.tick(0, 1);
    world.pull(8, 0, 1);
    world.push(0, 1, 0);
    world.tick(0, 2);
    let out = world.send(20, hello(JOB, 0));
    assert_eq!(out[0], Effect::Close { connection: 0 });
    let Effect::Send { connection: 20, message: Message::Welcome(welcome) } = &out[1] else {
        panic!("{out:?}")
    };
    assert_eq!(
        (welcome.applied, welcome.clock, welcome.minimum),
        (PushPosition { clock: 0, index: 1 }, 1, 0)
    );
    assert_eq!((welcome.incarnation, welcome.lanes, welcome.window_bytes), (5, 1, 1 << 20));
    assert_eq!(world.stats().held_count, 0, "deferred requests are dropped: the task sends them again");
    assert_eq!(world.lane.deferred_bytes, 0);
    assert!(world.pull(9, 0, 1).is_empty(), "late frames of the old connection are ignored");
    assert!(world.tick(1, 1).is_empty());
    world.send(20, Message::Push(push(0, 1, 0, 1.0)));
    assert_eq!(pulled(world.send(20, Message::Pull(pull(3, 0, 1)))), [1.0; 2]);
    world.lane.on_closed(world.now, 0, &mut Vec::new());
    assert_eq!(
        pulled(world.send(20, Message::Pull(pull(4, 0, 1)))),
        [1.0; 2],
        "the end of the old changes nothing"
    );
}

/// The task repeats all requests without an answer. The answer to its leave says that it has left.
#[test]
fn a_task_that_has_left_may_say_all_of_it_again() {
    let mut world = World::new(2, Consistency::Bsp);
    world.push(0, 0, 0);
    world.tick(0, 1);
    world.send(0, leave(0));
    world.send(20, hello(JOB, 0));
    let leaves = Message::Leave(Leave { request: 5, job: JOB, task: 0 });
    for (message, is_answered) in
        [(Message::Push(push(0, 0, 0, 1.0)), false), (tick(0, 1), false), (leaves, true)]
    {
        let out = world.send(20, message);
        let is_done = matches!(out[..], [Effect::Send { message: Message::Done(_), .. }]);
        assert_eq!((out.is_empty(), is_done), (!is_answered, is_answered), "{out:?}");
    }
    let out = world.send(20, tick(0, 2));
    assert_eq!(fault(&out).kind, FaultKind::TaskLeft, "a new one is none of them");
    world.tick(1, 1);
    assert_eq!(pulled(world.pull(7, 1, 1)), [1.0; 2], "the push counts once");
}

#[test]
fn who_may_not_come_is_told_why() {
    let mut world = World::new(1, Consistency::Bsp);
    let refused = |world: &mut World, at, message| {
        let out = world.send(at, message);
        assert!(closes(&out, at), "{out:?}");
        fault(&out).kind
    };
    assert_eq!(refused(&mut world, 30, hello(99, 0)), FaultKind::NoSuchJob);
    assert_eq!(refused(&mut world, 31, hello(JOB, 1)), FaultKind::NotFound);
    let member = Message::Hello(Hello { request: 1, token: Vec::new(), role: Role::Member, lane: 0 });
    assert_eq!(refused(&mut world, 32, member), FaultKind::Invalid);
    assert_eq!(refused(&mut world, 0, hello(JOB, 0)), FaultKind::BadFrame, "a second hello");
    let answer = Message::Done(Done { request: 0, minimum: 0, applied: PushPosition::default() });
    assert_eq!(refused(&mut world, TOOL, answer), FaultKind::BadFrame);
    assert!(world.send(33, tick(0, 1)).is_empty(), "without a Hello there is no answer");
}

#[test]
fn a_list_of_keys_is_known_by_its_digest_afterwards() {
    let mut world = World::new(1, Consistency::Asp);
    world.push(0, 0, 0);
    let (runs, _) = two_keys();
    let digest = KeyList::digest(&runs, &[10, 60]);
    let known = Pull { keys: KeyList::Cached { digest, count: 2 }, ..pull(2, 0, 0) };
    for _ in 0..2 {
        assert_eq!(pulled(world.send(0, Message::Pull(known.clone()))), [1.0; 2]);
    }
    let values = OwnedValues::F64(vec![5.0, 6.0]).into();
    let keys = KeyList::Cached { digest, count: 2 };
    assert!(world.send(0, Message::Push(Push { keys, values, ..push(0, 0, 1, 0.0) })).is_empty());
    assert_eq!(pulled(world.send(0, Message::Pull(known.clone()))), [6.0, 7.0]);
    let range = Pull {
        runs: vec![PartitionRun { partition: 0, count: 2 }, PartitionRun { partition: 1, count: 1 }],
        keys: KeyList::Range { start: 48, end: 51 },
        ..pull(3, 0, 0)
    };
    for _ in 0..2 {
        assert_eq!(pulled(world.send(0, Message::Pull(range.clone()))), [0.0; 3]);
    }
    let short = Pull { keys: KeyList::Range { start: 48, end: 50 }, ..range };
    assert_eq!(fault(&world.send(0, Message::Pull(short))).kind, FaultKind::Invalid);
    let endless = Pull {
        runs: vec![PartitionRun { partition: 0, count: u32::MAX }],
        keys: KeyList::Range { start: 0, end: u64::from(u32::MAX) },
        ..pull(3, 0, 0)
    };
    assert_eq!(fault(&world.send(0, Message::Pull(endless))).kind, FaultKind::TooLarge);
}

#[test]
fn an_unknown_list_is_asked_for_and_a_push_of_it_lets_nothing_pass() {
    let mut world = World::new(1, Consistency::Asp);
    let unknown = || KeyList::Cached { digest: 3, count: 2 };
    let out = world.send(0, Message::Pull(Pull { keys: unknown(), ..pull(2, 0, 0) }));
    assert_eq!((fault(&out).kind, fault(&out).request, out.len()), (FaultKind::UnknownKeys, 2, 1));
    let out = world.send(0, Message::Push(Push { keys: unknown(), ..push(0, 0, 0, 1.0) }));
    assert_eq!(fault(&out).kind, FaultKind::UnknownKeys);
    assert!(closes(&out, 0));
    world.tick(0, 1);
    assert_eq!(world.stats().clocks, [Some(0)], "later frames are ignored");
    world.send(20, hello(JOB, 0));
    world.send(20, Message::Push(push(0, 0, 0, 1.0)));
    assert_eq!(world.rows(), [1.0; 2]);
}

#[test]
fn lists_that_were_not_used_for_long_are_forgotten() {
    let config = LaneConfig { key_list_limit_bytes: 1000, ..config() };
    let mut world = World::with(config, open(1, vec![spec("w", Consistency::Asp)]));
    let run = [PartitionRun { partition: 0, count: 1 }];
    let ask = |world: &mut World, keys| {
        let out = world.send(0, Message::Pull(Pull { runs: run.to_vec(), keys, ..pull(1, 0, 0) }));
        matches!(only(out), Message::Pulled(_))
    };
    let known = |key| KeyList::Cached { digest: KeyList::digest(&run, &[key]), count: 1 };
    assert!(ask(&mut world, KeyList::Listed(vec![1])));
    for key in 2..20 {
        assert!(ask(&mut world, KeyList::Listed(vec![key])));
        assert!(ask(&mut world, known(1)), "used again and again");
    }
    assert!(!ask(&mut world, known(2)));
    assert!(world.lane.connections[&0].key_lists.bytes() <= 1000);
}

#[test]
fn a_full_window_stops_reading_until_it_is_half_empty() {
    let config = LaneConfig { window_bytes: 1000, ..config() };
    let mut world = World::with(config, open(2, vec![spec("w", Consistency::Ssp { staleness: 0 })]));
    world.tick(0, 1);
    for index in 0..20 {
        world.push(0, 1, index);
    }
    let pauses = |effects: &[Effect]| effects.iter().filter(|e| matches!(e, Effect::Pause { .. })).count();
    assert_eq!(pauses(&world.effects), 1);
    let out = world.tick(1, 1);
    assert_eq!(out, [Effect::Resume { connection: 0 }]);
    assert_eq!(world.rows(), [20.0; 2]);
    assert_eq!(world.lane.deferred_bytes, 0);
}
