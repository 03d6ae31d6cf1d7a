//! Each push id is applied once.

use matrix::{Consistency, OwnedValues};
use rpc::message::*;
use rpc::service::Service;

use super::world::*;

#[test]
fn a_push_that_comes_again_is_dropped_counted_and_answered() {
    let mut world = World::new(1, Consistency::Asp);
    for index in [0, 1, 0, 1, 1] {
        world.push(0, 0, index);
    }
    assert_eq!(world.rows(), [2.0; 2]);
    let again = Push { request: 6, ..push(0, 0, 1, 1.0) };
    let done = Done { request: 6, minimum: 0, applied: PushPosition { clock: 0, index: 2 } };
    assert_eq!(only(world.send(0, Message::Push(again))), Message::Done(done));
    let stats = world.stats();
    assert_eq!((stats.push_count, stats.duplicate_count), (2, 4));
}

#[test]
fn after_a_reset_the_marks_say_what_to_send_again() {
    for consistency in [Consistency::Bsp, Consistency::Asp] {
        let mut world = World::new(1, consistency);
        world.push(0, 0, 0);
        world.push(0, 0, 1);
        world.lane.on_closed(world.now, 0, &mut Vec::new());
        let Message::Welcome(welcome) = only(world.send(50, hello(JOB, 0))) else { panic!() };
        assert_eq!((welcome.applied, welcome.clock), (PushPosition { clock: 0, index: 2 }, 0));
        // The task sends all pushes again.
        for index in 0..3 {
            world.send(50, Message::Push(push(0, 0, index, 1.0)));
        }
        world.send(50, tick(0, 1));
        assert_eq!(world.rows(), [3.0; 2]);
        assert_eq!(world.stats().duplicate_count, 2);
    }
}

#[test]
fn a_gap_is_refused_and_the_connection_closed() {
    for (clock, index) in [(0, 2), (1, 1)] {
        let mut world = World::new(1, Consistency::Asp);
        world.push(0, 0, 0);
        let refused = world.push(0, clock, index);
        assert_eq!(fault(&refused).kind, FaultKind::Invalid);
        let text = &fault(&refused).text;
        assert!(text.contains(&format!("(task 0, clock {clock}, index {index})")), "{text}");
        assert!(text.contains("expected clock 0, index 1"), "{text}");
        assert!(closes(&refused, 0));
        assert_eq!(world.rows(), [1.0; 2]);
    }
}

#[test]
fn a_clock_may_be_left_out_and_one_that_is_over_is_refused() {
    let mut world = World::new(1, Consistency::Asp);
    world.tick(0, 4);
    assert!(world.push(0, 4, 0).is_empty());
    world.tick(0, 6);
    assert_eq!(fault(&world.push(0, 4, 1)).kind, FaultKind::Invalid);
    assert!(world.push(0, 6, 0).is_empty());
    assert_eq!(world.rows(), [2.0; 2]);
}

#[test]
fn a_push_is_refused_whole() {
    let mut world = World::new(1, Consistency::Asp);
    let mut refused = |change: fn(&mut Push)| {
        let mut bad = push(0, 0, 0, 1.0);
        change(&mut bad);
        let out = world.send(0, Message::Push(bad));
        assert_eq!(world.rows(), [0.0; 2]);
        fault(&out).clone()
    };
    assert_eq!(
        refused(|push| push.values = OwnedValues::F64(vec![1.0, f64::NAN]).into()).kind,
        FaultKind::NonFinite
    );
    assert_eq!(refused(|push| push.keys = KeyList::Listed(vec![10, 20])).kind, FaultKind::Invalid);
    assert_eq!(refused(|push| push.values = OwnedValues::F64(vec![1.0]).into()).kind, FaultKind::Invalid);
    assert_eq!(refused(|push| push.values = OwnedValues::F32(vec![1.0; 2]).into()).kind, FaultKind::Invalid);
    assert_eq!(refused(|push| push.runs[1].partition = 2).kind, FaultKind::NotFound);
    assert_eq!(refused(|push| push.runs[1].count = 2).kind, FaultKind::Invalid);
    assert_eq!(refused(|push| push.matrix = 3).kind, FaultKind::NotFound);
    let told = refused(|push| push.table = 1);
    assert_eq!(
        (told.kind, told.request),
        (FaultKind::NotFound, 0),
        "refused although no answer was requested"
    );
    assert!(world.push(0, 0, 0).is_empty(), "the name is free after a refusal");
    assert_eq!(world.rows(), [1.0; 2]);
}

#[test]
fn a_held_push_of_a_task_that_is_taken_out_is_not_applied() {
    let mut world = World::new(2, Consistency::Ssp { staleness: 0 });
    world.tick(0, 1);
    world.push(0, 1, 0);
    world.send(TOOL, leave(0));
    let out = world.tick(1, 1);
    assert_eq!(fault(&out).kind, FaultKind::TaskLeft);
    assert_eq!(world.rows(), [0.0; 2]);
}
