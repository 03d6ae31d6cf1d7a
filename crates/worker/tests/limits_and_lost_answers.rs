//! Promises of the agent at the limit of the window, and when the answer to its last request was lost.

mod common;

use common::{World, fault, layout, spec};
use std::time::Duration;

use matrix::{Consistency, Element, Keys, MatrixId, MatrixSpec, OwnedValues, Partitioner, Selection};
use rpc::Message;
use rpc::message::{FaultKind, Pulled, PushPosition};
use worker::{AgentEffect, CallOutput};

const W: MatrixId = MatrixId(0);

fn world(window: u64) -> World {
    let spec = MatrixSpec {
        rows: 1 << 21,
        ..spec("w", Consistency::Asp, 1, Partitioner::Range { partition_count: 4 })
    };
    let mut world = World::new(layout(vec![spec], 1, window));
    world.lanes[0].window = window;
    world.step(0, 0, (0, 0));
    world
}

/// A range has no list of keys, so that only the values of the answers count: sixteen messages with 1 MiB each.
#[test]
fn a_pull_of_a_range_has_no_more_values_under_way_than_the_window_and_one_frame() {
    for (window, expected) in [(1, 1), (4 << 20, 4), (9 << 20, 9), (64 << 20, 16)] {
        let mut world = world(window);
        world.agent.pull(world.now, W, Selection::Rows(Keys::Range(0, 1 << 21)));
        world.carry_out();
        assert_eq!(world.sent.len(), expected, "window of {window} bytes");
        world.run().unwrap();
    }
}

#[test]
fn a_lane_that_says_that_the_task_has_left_ends_the_finish() {
    let mut world = world(1 << 20);
    world.agent.finish(world.now);
    world.carry_out();
    world.wires[0].to_lane.clear();
    // The answer to the leave was lost: it is the lane's answer to something that was sent before.
    world.agent.on_message(world.now, 0, fault(0, FaultKind::TaskLeft, 0));
    assert_eq!(world.agent.take_result(), Some(Ok(CallOutput::Done)));
}

#[test]
fn a_refused_connection_is_tried_again_only_if_that_may_help() {
    for (kind, may_help) in [
        (FaultKind::Busy, true),
        (FaultKind::NoSuchJob, false),
        (FaultKind::BadToken, false),
        (FaultKind::TaskLeft, false),
    ] {
        let spec = spec("w", Consistency::Asp, 1, Partitioner::Range { partition_count: 1 });
        let mut world = World::new(layout(vec![spec], 1, 1 << 20));
        world.agent.pull(world.now, W, Selection::Rows(Keys::Range(0, 1)));
        world.carry_out();
        world.agent.on_message(world.now, 0, fault(0, kind, 0));
        match world.agent.take_result() {
            None => assert!(may_help && world.agent.next_time() > Some(Duration::ZERO), "{kind:?}"),
            Some(ended) => {
                let error = ended.unwrap_err().to_string();
                assert!(!may_help && error.contains(&format!("{kind:?}")), "{error}");
            }
        }
    }
}

#[test]
fn a_lane_that_says_that_a_task_at_work_has_left_ends_the_task() {
    for is_answer in [true, false] {
        let mut world = world(1 << 20);
        world.agent.pull(world.now, W, Selection::Rows(Keys::Range(0, 1)));
        world.carry_out();
        let Some((0, Message::Pull(sent))) = world.sent.last().cloned() else { panic!("{:?}", world.sent) };
        let request = if is_answer { sent.request } else { 0 };
        world.agent.on_message(world.now, 0, fault(request, FaultKind::TaskLeft, 0));
        let error = world.agent.take_result().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("server tcp:host0:1") && error.contains("TaskLeft"), "{error}");
    }
}

#[test]
fn a_call_knows_for_how_long_its_answer_was_deferred() {
    let mut world = world(1 << 20);
    let mut pull = |deferred_ns: u64| {
        world.agent.pull(world.now, W, Selection::Rows(Keys::Range(0, 1)));
        world.carry_out();
        let Some((0, Message::Pull(sent))) = world.sent.pop() else { panic!("no pull") };
        let (applied, values) = (PushPosition::default(), OwnedValues::I64(vec![5]).into());
        let answer = Pulled { request: sent.request, minimum: u64::MAX, deferred_ns, applied, values };
        world.agent.on_message(world.now, 0, Message::Pulled(answer));
        assert_eq!(world.agent.take_result(), Some(Ok(CallOutput::ValuesReady)));
        world.agent.deferred_ns()
    };
    assert_eq!([7000, 200, 0].map(&mut pull), [7000, 200, 0]);
}

/// Makes eleven pushes in a window of ten: the last one waits.
fn window_that_is_full() -> World {
    let spec = spec("w", Consistency::Asp, 1, Partitioner::Hash { partition_count: 4 });
    let mut world = World::new(layout(vec![spec], 1, 1 << 20));
    let one = i64::owned(vec![1]);
    for count in 1..=11 {
        world.agent.push(world.now, W, Selection::Rows(Keys::Range(5, 6)), one.as_values());
        world.carry_out();
        assert_eq!(world.agent.take_result().is_none(), count == 11, "push {count} in a window of ten");
        if count == 1 {
            world.lanes[0].window = 10 * world.agent.unacknowledged_bytes();
            world.step(0, 0, (0, 0));
        }
    }
    world
}

/// The request ids of the pushes; 0 for those that do not request an answer.
fn requests_of_pushes(world: &World) -> Vec<u64> {
    let request =
        |message: &Message| if let Message::Push(push) = message { Some(push.request) } else { None };
    world.sent.iter().filter_map(|(_, message)| request(message)).collect()
}

#[test]
fn a_push_asks_for_an_answer_when_the_window_is_half_full_and_when_it_is_full() {
    let mut world = window_that_is_full();
    let requests = requests_of_pushes(&world);
    let asks = requests.iter().zip(1..).filter_map(|(request, count)| (*request != 0).then_some(count));
    assert_eq!(asks.collect::<Vec<u32>>(), [6, 11]);
    assert_eq!(world.run(), Ok(CallOutput::Done));
}

#[test]
fn a_fault_of_a_push_ends_the_task_and_one_of_a_request_that_nobody_made_does_not() {
    let mut world = window_that_is_full();
    let asked = requests_of_pushes(&world).into_iter().find(|request| *request != 0).expect("the sixth push");
    world.agent.on_message(world.now, 0, fault(asked + 1000, FaultKind::Stopped, 0));
    assert!(world.agent.take_result().is_none(), "it waits for the window");
    world.agent.on_message(world.now, 0, fault(asked, FaultKind::Stopped, 0));
    let error = world.agent.take_result().expect("the task has ended").expect_err("by the fault").to_string();
    assert!(error.starts_with("stopped: "), "{error}");
}

#[test]
fn a_busy_lane_gets_all_pushes_again_over_a_new_connection_when_it_said_so() {
    let mut world = window_that_is_full();
    let asked = requests_of_pushes(&world).into_iter().find(|request| *request != 0).expect("the sixth push");
    let pause = Duration::from_millis(250);
    world.agent.on_message(world.now, 0, fault(asked, FaultKind::Busy, 250));
    let effects = world.agent.take_effects();
    assert!(matches!(effects[..], [AgentEffect::Close { lane: 0 }]), "{effects:?}");
    assert_eq!(world.agent.next_time(), Some(world.now + pause));
    world.agent.on_time(world.now + pause);
    let effects = world.agent.take_effects();
    assert!(matches!(effects[..], [AgentEffect::Connect { lane: 0 }]), "{effects:?}");
}
