//! Single promises of the agent, each against the minimal lanes of `common`.

mod common;

use std::time::Duration;

use common::{World, fault, layout, spec};
use matrix::{
    Consistency, Element, Error, FunctionTable, Keys, MatrixId, Partitioner, Selection, Values, ValuesMut,
};
use rpc::Message;
use rpc::message::{FaultKind, KeyList};
use worker::{AgentEffect, AgentState, CallOutput};

const W: MatrixId = MatrixId(0);

fn world(consistency: Consistency, lane_count: u16) -> World {
    let partitioner = Partitioner::Hash { partition_count: 4 };
    World::new(layout(vec![spec("w", consistency, 1, partitioner)], lane_count, 1 << 20))
}

fn rows(keys: &[u64]) -> Selection<'_> {
    Selection::Rows(Keys::Sorted(keys))
}

fn push(world: &mut World, keys: &[u64], value: i64) -> Result<CallOutput, Error> {
    let values = i64::owned(vec![value; keys.len()]);
    world.agent.push(world.now, W, rows(keys), values.as_values());
    world.run()
}

fn pull(world: &mut World, keys: &[u64]) -> Result<Vec<i64>, Error> {
    world.agent.pull(world.now, W, rows(keys));
    world.run()?;
    let mut out = vec![0; keys.len()];
    world.agent.read_pulled(ValuesMut::I64(&mut out))?;
    Ok(out)
}

fn tick(world: &mut World) {
    world.agent.tick(world.now);
    assert_eq!(world.run(), Ok(CallOutput::Done));
}

/// Delivers all messages that are under way.
fn settle(world: &mut World) {
    while world.move_all() {}
}

fn listed_count(world: &World) -> usize {
    let keys = world.sent.iter().filter_map(|(_, message)| match message {
        Message::Pull(pull) => Some(&pull.keys),
        Message::Push(push) => Some(&push.keys),
        _ => None,
    });
    keys.filter(|keys| matches!(keys, KeyList::Listed(_))).count()
}

/// Scattered keys, so that they are not a range.
fn many_keys() -> Vec<u64> {
    (0..200).map(|i| i * 7).collect()
}

#[test]
fn a_list_goes_once_over_a_connection_and_again_over_the_next() {
    let mut world = world(Consistency::Asp, 2);
    let keys = many_keys();
    pull(&mut world, &keys).unwrap();
    push(&mut world, &keys, 1).unwrap();
    assert_eq!(pull(&mut world, &keys).unwrap(), vec![1; 200]);
    assert_eq!(listed_count(&world), 2, "one a lane");
    world.step(1, 3, (0, 0));
    push(&mut world, &keys, 1).unwrap();
    assert_eq!(pull(&mut world, &keys).unwrap(), vec![2; 200]);
    assert_eq!(listed_count(&world), 3, "one more at the lane that was lost");
}

#[test]
fn keys_that_a_lane_has_forgotten_are_sent_again_in_full() {
    let mut world = world(Consistency::Asp, 1);
    let keys = many_keys();
    pull(&mut world, &keys).unwrap();
    world.lanes[0].known.clear();
    assert_eq!(pull(&mut world, &keys).unwrap(), vec![0; 200]);
    assert_eq!((world.lanes[0].forgotten, listed_count(&world)), (1, 2));
    // For a push, the lane closes the connection, and everything behind the push is sent again too.
    world.lanes[0].known.clear();
    push(&mut world, &keys, 1).unwrap();
    push(&mut world, &[3], 5).unwrap();
    tick(&mut world);
    push(&mut world, &keys, 1).unwrap();
    assert_eq!(pull(&mut world, &keys).unwrap(), vec![2; 200]);
    assert_eq!(pull(&mut world, &[3]).unwrap(), [5]);
    assert_eq!(world.lanes[0].forgotten, 2);
}

#[test]
fn a_range_with_a_gap_at_each_lane_is_listed_and_no_digest_is_in_doubt() {
    let partitioner = Partitioner::Range { partition_count: 4 };
    let mut layout = layout(vec![spec("w", Consistency::Asp, 1, partitioner)], 2, 1 << 20);
    layout.owners = vec![vec![0, 1, 0, 1]];
    let mut world = World::new(layout);
    let quarter = 1 << 18;
    let mut out = vec![0i64; 2 * quarter + 20];
    let part = Selection::Rows(Keys::Range(quarter as u64 - 10, 3 * quarter as u64 + 10));
    for pushes in 1..=2 {
        world.agent.push(world.now, W, part, Values::I64(&vec![1; out.len()]));
        world.run().unwrap();
        world.agent.pull(world.now, W, part);
        world.run().unwrap();
        world.agent.read_pulled(ValuesMut::I64(&mut out)).unwrap();
        assert!(out.iter().all(|value| *value == pushes));
    }
    assert_eq!(world.lanes.iter().map(|lane| lane.forgotten).sum::<u32>(), 0);
}

#[test]
fn a_range_goes_without_a_list() {
    let partitioner = Partitioner::Range { partition_count: 4 };
    let mut world = World::new(layout(vec![spec("w", Consistency::Asp, 1, partitioner)], 2, 1 << 20));
    let all = Selection::Rows(Keys::Range(0, 1 << 20));
    world.agent.push(world.now, W, all, Values::I64(&vec![1; 1 << 20]));
    world.run().unwrap();
    world.agent.pull(world.now, W, all);
    world.run().unwrap();
    let mut out = vec![0i64; 1 << 20];
    world.agent.read_pulled(ValuesMut::I64(&mut out)).unwrap();
    assert!(out.iter().all(|value| *value == 1));
    assert_eq!(listed_count(&world), 0);
    // Consecutive keys are sent as a range, even if the caller lists them.
    let keys: Vec<u64> = (1000..2000).collect();
    assert_eq!(pull(&mut world, &keys).unwrap(), vec![1; 1000]);
    assert_eq!(listed_count(&world), 0);
}

#[test]
fn no_frame_has_more_than_four_mebibytes_of_keys_or_values() {
    let partitioner = Partitioner::Hash { partition_count: 3 };
    let specs = vec![spec("w", Consistency::Asp, 1, partitioner)];
    let mut world = World::new(layout(specs, 1, 64 << 20));
    world.lanes[0].window = 64 << 20;
    let keys: Vec<u64> = (0..(1 << 20)).filter(|key| key % 8 != 3).collect();
    push(&mut world, &keys, 1).unwrap();
    assert_eq!(pull(&mut world, &keys).unwrap(), vec![1; keys.len()]);
    let lane = &world.lanes[0];
    assert!(lane.largest_values <= 1 << 19 && lane.largest_keys <= 1 << 19);
    assert!(lane.mark.index >= 2, "each part of the push has an index of its own");
}

#[test]
fn a_push_waits_when_the_window_is_full_and_not_before() {
    let mut world = world(Consistency::Asp, 1);
    world.lanes[0].window = 3_000;
    world.step(0, 0, (0, 0));
    let keys = many_keys();
    let values = i64::owned(vec![1; 200]);
    let mut sent_at_once = 0;
    let is_held = (0..10).any(|_| {
        world.agent.push(world.now, W, rows(&keys), values.as_values());
        world.carry_out();
        let outcome = world.agent.take_result();
        sent_at_once += u32::from(outcome.is_some());
        outcome.is_none()
    });
    assert!(is_held && sent_at_once <= 2, "{sent_at_once} of 3.2 kB each in a window of 3 kB");
    assert_eq!(world.run(), Ok(CallOutput::Done));
    assert_eq!(pull(&mut world, &keys).unwrap(), vec![i64::from(sent_at_once) + 1; 200]);
}

#[test]
fn bad_parts_and_values_are_refused_before_anything_is_sent() {
    let mut f32_spec = spec("x", Consistency::Asp, 2, Partitioner::Hash { partition_count: 2 });
    f32_spec.element = matrix::ElementType::F32;
    let specs = vec![spec("w", Consistency::Asp, 1, Partitioner::Range { partition_count: 2 }), f32_spec];
    let mut world = World::new(layout(specs, 1, 1 << 20));
    settle(&mut world);
    let now = world.now;
    let mut refused = |id: u32, part: Selection<'_>, values: Values<'_>| {
        world.agent.push(now, MatrixId(id), part, values);
        world.agent.take_result().unwrap().unwrap_err()
    };
    let error = refused(1, rows(&[4, 9]), Values::F32(&[1.0, 2.0, 3.0, f32::NAN]));
    assert!(matches!(error, Error::NonFinite { key: 9, column: 1, .. }), "{error}");
    let error = refused(0, rows(&[4]), Values::F64(&[1.0]));
    assert!(matches!(error, Error::ElementType { .. }), "{error}");
    let error = refused(0, rows(&[4, 4]), Values::I64(&[1, 2]));
    assert!(matches!(error, Error::KeysNotAscending { .. }), "{error}");
    let error = refused(0, Selection::Rows(Keys::Range((1 << 20) - 1, (1 << 20) + 1)), Values::I64(&[1, 2]));
    assert!(matches!(error, Error::KeyOutOfRange { .. }), "{error}");
    let error = refused(9, rows(&[]), Values::I64(&[]));
    assert!(matches!(error, Error::NoSuchMatrix { id: 9, count: 2 }), "{error}");
    let part = Selection::Columns { row: 0, keys: Keys::Range(0, 1) };
    let error = refused(0, part, Values::I64(&[1]));
    assert!(matches!(error, Error::WrongAxis { .. }), "{error}");
    assert!(world.sent.is_empty());
    assert_eq!(push(&mut world, &[1], 1), Ok(CallOutput::Done), "the agent is as before");
}

#[test]
fn a_lane_that_lost_its_state_ends_the_task_with_its_address() {
    let mut world = world(Consistency::Asp, 2);
    push(&mut world, &[1, 2, 3, 4, 5, 6, 7, 8], 1).unwrap();
    settle(&mut world);
    world.lanes[1].incarnation = 2;
    world.step(1, 3, (0, 0));
    let error = pull(&mut world, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap_err();
    assert!(error.to_string().contains("tcp:host1:1 (lane 0): it was restarted"), "{error}");
    assert_eq!(push(&mut world, &[1], 1).unwrap_err(), error, "and all later calls too");
}

#[test]
fn a_lane_that_is_lost_or_silent_is_given_up_at_the_limit_with_the_reason() {
    let mut lost = world(Consistency::Asp, 1);
    lost.agent.pull(lost.now, W, rows(&[1]));
    let error = loop {
        lost.carry_out();
        match lost.agent.take_result() {
            Some(outcome) => break outcome.unwrap_err(),
            None => lost.step(0, 3, (0, 0)),
        }
        lost.wait();
    };
    assert!(lost.now >= Duration::from_secs(10) && lost.now < Duration::from_secs(12), "{:?}", lost.now);
    let text = error.to_string();
    assert!(text.contains("tcp:host0:1") && text.contains("could not reach it for 1"), "{text}");
    assert!(text.ends_with("refused"), "{text}");

    let mut silent = world(Consistency::Bsp, 1);
    silent.lanes[0].other = 0;
    tick(&mut silent);
    let error = pull(&mut silent, &[1]).unwrap_err();
    assert!(error.to_string().contains("it has not answered task 0 for 15.0 s"), "{error}");
}

#[test]
fn a_fault_ends_the_call_with_the_words_of_the_server() {
    for (kind, starts) in
        [(FaultKind::WaitedTooLong, "server tcp:host0:1"), (FaultKind::Stopped, "stopped: ")]
    {
        let mut world = world(Consistency::Asp, 1);
        world.agent.pull(world.now, W, rows(&[1]));
        world.step(0, 0, (0, 0));
        let Some((0, Message::Pull(sent))) = world.sent.last().cloned() else { panic!("{:?}", world.sent) };
        world.agent.on_message(world.now, 0, fault(sent.request, kind, 0));
        let error = world.agent.take_result().unwrap().unwrap_err().to_string();
        assert!(error.starts_with(starts) && error.contains(&format!("{kind:?}")), "{error}");
        let effects = world.agent.take_effects();
        let [AgentEffect::Send { message, .. }, AgentEffect::Close { lane: 0 }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert!(matches!(**message, Message::Leave(_)), "it holds nobody back");
    }
}

#[test]
fn a_busy_lane_is_asked_again_when_it_said_so() {
    let mut world = world(Consistency::Asp, 1);
    world.agent.pull(world.now, W, rows(&[1]));
    world.step(0, 0, (0, 0));
    let request = world.sent.len() as u64;
    world.agent.on_message(world.now, 0, fault(request, FaultKind::Busy, 250));
    assert_eq!(world.agent.next_time(), Some(Duration::from_millis(250)));
    world.agent.on_time(Duration::from_millis(249));
    assert!(world.agent.take_effects().is_empty());
    world.wires[0].to_lane.clear();
    assert_eq!(world.run(), Ok(CallOutput::ValuesReady));
    assert_eq!((world.now, world.agent.resend_count()), (Duration::from_millis(250), 1));
}

#[test]
fn pauses_between_attempts_grow_to_a_second() {
    let mut world = world(Consistency::Asp, 1);
    world.carry_out();
    let mut times = Vec::new();
    for _ in 0..10 {
        world.step(0, 3, (0, 0));
        let before = world.now;
        world.wait();
        times.push(world.now.saturating_sub(before).as_millis());
    }
    assert_eq!(times, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
}

#[test]
fn a_barrier_ends_an_open_step_and_brings_the_sum_to_the_home_lane_only() {
    let mut world = world(Consistency::Bsp, 3);
    push(&mut world, &[1], 1).unwrap();
    settle(&mut world);
    world.lanes[1].clock = 9;
    world.agent.barrier(world.now, Some(vec![1.5, 2.0]));
    assert_eq!(world.run(), Ok(CallOutput::BarrierSum(vec![2.5, 3.0])));
    assert_eq!(world.agent.clock(), 9, "the largest that any lane says");
    settle(&mut world);
    assert_eq!(world.lanes.iter().map(|lane| lane.clock).collect::<Vec<_>>(), [9, 9, 9]);
    let parts = world.sent.iter().filter_map(|(lane, message)| match message {
        Message::Barrier(barrier) => Some((*lane, barrier.part.is_some(), barrier.clock)),
        _ => None,
    });
    let mut parts: Vec<_> = parts.collect();
    parts.sort_unstable();
    assert_eq!(parts, [(0, false, 1), (1, false, 1), (2, true, 1)]);
    push(&mut world, &[1], 1).unwrap();
    assert_eq!(world.agent.clock(), 9);
}

#[test]
fn a_tick_goes_to_all_lanes_and_costs_no_answer() {
    let mut world = world(Consistency::Asp, 2);
    settle(&mut world);
    for _ in 0..5 {
        world.agent.tick(world.now);
        world.carry_out();
        assert_eq!(world.agent.take_result(), Some(Ok(CallOutput::Done)));
    }
    let ticks = world.sent.iter().filter(|(_, message)| matches!(message, Message::Tick(_)));
    assert_eq!((ticks.count(), world.sent.len()), (10, 10));
    settle(&mut world);
    assert!(world.lanes.iter().all(|lane| lane.clock == 5));
}

#[test]
fn a_tick_ends_when_a_lane_that_is_away_is_told_too() {
    let mut world = world(Consistency::Asp, 2);
    settle(&mut world);
    world.step(1, 3, (0, 0));
    world.agent.tick(world.now);
    world.carry_out();
    assert_eq!(world.agent.take_result(), None, "lane 1 is away");
    settle(&mut world);
    assert_eq!((world.agent.take_result(), world.lanes[0].clock), (None, 1));
    world.wait();
    world.step(1, 0, (0, 0));
    assert_eq!(world.agent.take_result(), Some(Ok(CallOutput::Done)));
    settle(&mut world);
    assert_eq!(world.lanes[1].clock, 1);
}

#[test]
fn a_tick_behind_a_push_that_fills_the_window_of_the_lane_ends_when_it_is_out() {
    let mut world = world(Consistency::Asp, 1);
    world.lanes[0].window = 1;
    let values = i64::owned(vec![1; 200]);
    world.agent.push(world.now, W, rows(&many_keys()), values.as_values());
    world.carry_out();
    assert_eq!(
        world.agent.take_result(),
        Some(Ok(CallOutput::Done)),
        "how small the window is is not known yet"
    );
    world.agent.tick(world.now);
    world.step(0, 0, (0, 0));
    assert_eq!(world.agent.take_result(), None, "the push fills the window");
    assert_eq!(world.run(), Ok(CallOutput::Done));
    settle(&mut world);
    assert_eq!(world.lanes[0].clock, 1);
}

#[test]
fn another_attempt_goes_on_at_the_lowest_clock_and_its_repeats_are_not_sent() {
    let mut world = world(Consistency::Asp, 2);
    let keys = many_keys();
    for _ in 0..2 {
        push(&mut world, &keys, 1).unwrap();
        tick(&mut world);
    }
    settle(&mut world);
    world.lanes[1].clock = 1;
    let layout = world.agent.layout().clone();
    let agent = AgentState::new(world.now, layout, 0, FunctionTable::builtin()).unwrap();
    let mut next = World { agent, ..world };
    next.wires = vec![common::Wire::default(), common::Wire::default()];
    next.sent.clear();
    assert_eq!(next.agent.resume_clock(), None, "no lane has said where the task is");
    settle(&mut next);
    assert_eq!(next.agent.resume_clock(), Some(1));
    next.agent.start_at(1);
    push(&mut next, &keys, 1).unwrap();
    tick(&mut next);
    assert_eq!(pull(&mut next, &keys).unwrap(), vec![2; keys.len()]);
    assert!(next.sent.iter().all(|(_, message)| !matches!(message, Message::Push(_))), "both lanes have it");
    assert_eq!((next.lanes[0].clock, next.lanes[1].clock), (2, 2));
}

#[test]
fn a_pull_of_nothing_waits_as_any_pull_does() {
    let mut world = world(Consistency::Bsp, 2);
    world.lanes[1].other = 0;
    tick(&mut world);
    world.agent.pull(world.now, W, rows(&[]));
    settle(&mut world);
    assert_eq!(world.agent.take_result(), None, "task 1 is at clock 0");
    world.lanes[1].other = 1;
    let mut out = Vec::new();
    world.lanes[1].release(&mut out);
    world.wires[1].to_agent.extend(out);
    assert_eq!(world.run(), Ok(CallOutput::ValuesReady));
    world.agent.read_pulled(ValuesMut::I64(&mut [])).unwrap();
}

#[test]
fn after_finish_only_finish_is_allowed_and_it_is_repeated_until_all_lanes_know() {
    let mut world = world(Consistency::Asp, 2);
    push(&mut world, &many_keys(), 1).unwrap();
    settle(&mut world);
    world.agent.finish(world.now);
    world.step(1, 3, (9, 0));
    assert!(world.lanes[1].has_left, "it came, and its answer was lost");
    assert_eq!(world.run(), Ok(CallOutput::Done));
    assert!(world.lanes.iter().all(|lane| lane.has_left && lane.mark.index == 1));
    world.agent.finish(world.now);
    assert_eq!(world.agent.take_result(), Some(Ok(CallOutput::Done)));
    world.agent.tick(world.now);
    let error = world.agent.take_result().unwrap().unwrap_err();
    assert!(matches!(error, Error::Task { task: 0, call: "tick", .. }), "{error}");
    assert_eq!(world.agent.next_time(), None);
}

/// Checks the remaining wait in requests that are sent again after a quarter of the limit has passed.
fn waits_said(calls: impl Fn(&mut World), wait_of: impl Fn(&Message) -> Option<u32>) {
    let mut world = world(Consistency::Bsp, 1);
    settle(&mut world);
    let limit = world.agent.layout().wait_limit;
    calls(&mut world);
    world.carry_out();
    world.now += limit / 4;
    world.step(0, 3, (0, 0));
    world.run().expect("the call ends");
    let waits: Vec<u32> = world.sent.iter().filter_map(|(_, message)| wait_of(message)).collect();
    let all = limit.as_millis() as u32;
    assert_eq!(waits.len(), 2, "{waits:?}");
    assert_eq!(waits[0], all);
    assert!(waits[1] <= all - all / 4 && waits[1] > all / 2, "what is left: {waits:?} of {all}");
    assert_eq!(world.agent.resend_count(), 1);
}

#[test]
fn a_request_says_how_long_its_task_still_waits() {
    waits_said(
        |world| world.agent.pull(world.now, W, rows(&[3])),
        |message| if let Message::Pull(pull) = message { Some(pull.wait_ms) } else { None },
    );
    waits_said(
        |world| world.agent.barrier(world.now, None),
        |message| if let Message::Barrier(barrier) = message { Some(barrier.wait_ms) } else { None },
    );
}

#[test]
fn a_long_pull_has_no_more_under_way_than_the_window_and_one_frame() {
    for (window, expected) in [(1, 1), (5 << 19, 2), (64 << 20, 4)] {
        let spec = spec("w", Consistency::Asp, 1, Partitioner::Hash { partition_count: 3 });
        let mut world = World::new(layout(vec![spec], 1, window));
        world.lanes[0].window = window;
        world.step(0, 0, (0, 0));
        let keys: Vec<u64> = (0..(1 << 19)).filter(|key| key % 8 != 3).collect();
        world.agent.pull(world.now, W, rows(&keys));
        world.carry_out();
        assert_eq!(world.sent.len(), expected, "window of {window} bytes");
        world.run().unwrap();
    }
}
