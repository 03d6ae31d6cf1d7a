//! The barrier and its sums.

use std::time::Duration;

use matrix::Consistency;
use rpc::message::*;
use rpc::service::{Effect, Service};

use super::world::*;

fn released(effects: &[Effect]) -> Vec<(u64, u64, Vec<f64>)> {
    let released = |effect: &Effect| match effect {
        Effect::Send { connection, message: Message::Released(released) } => {
            Some((*connection, released.clock, released.sum.clone()))
        }
        _ => None,
    };
    effects.iter().filter_map(released).collect()
}

#[test]
fn a_barrier_can_be_used_again_and_sums_in_the_order_of_tasks() {
    let mut world = World::new(3, Consistency::Bsp);
    // In double precision (1e17 + 1) - 1e17 is 0, and (1e17 - 1e17) + 1 is 1. So the result shows the order of tasks,
    // not of arrival.
    for generation in 0..3 {
        for (task, part) in [(2, -1e17), (0, 1e17)] {
            assert!(world.send(task, barrier(1, task as u32, generation, Some(vec![part]))).is_empty());
        }
        let out = world.send(1, barrier(1, 1, generation, Some(vec![1.0])));
        assert_eq!(released(&out), [(0, 0, vec![0.0]), (1, 0, vec![0.0]), (2, 0, vec![0.0])]);
    }
}

#[test]
fn all_leave_the_barrier_at_the_largest_clock_and_hold_nobody_back_before() {
    let mut world = World::new(3, Consistency::Bsp);
    world.send(0, barrier(1, 0, 0, None));
    world.tick(1, 4);
    world.pull(8, 1, 4);
    assert_eq!(answered(&world.tick(2, 4)), [8], "task 0 is at the barrier and not waited for");
    world.send(1, barrier(1, 1, 0, None));
    let out = world.send(2, barrier(1, 2, 0, None));
    assert_eq!(released(&out).iter().map(|entry| entry.1).collect::<Vec<_>>(), [4, 4, 4]);
    assert_eq!(world.stats().clocks, [Some(4); 3]);
}

#[test]
fn a_repeat_of_a_barrier_that_is_over_is_answered_at_once() {
    let mut world = World::new(2, Consistency::Bsp);
    world.tick(0, 1);
    world.send(0, barrier(1, 0, 0, Some(vec![1.0])));
    world.lane.on_closed(world.now, 0, &mut Vec::new());
    let out = world.send(1, barrier(1, 1, 0, Some(vec![2.0])));
    assert_eq!(released(&out), [(1, 1, vec![3.0])], "the lost one counts with what it brought");
    world.send(20, hello(JOB, 0));
    let out = world.send(20, barrier(1, 0, 0, Some(vec![1.0])));
    assert_eq!(released(&out), [(20, 1, vec![3.0])]);
    assert_eq!(fault(&world.send(20, barrier(1, 0, 2, None))).kind, FaultKind::Invalid, "one too far");
    assert!(world.send(20, barrier(1, 0, 1, None)).is_empty(), "the next one waits");
}

#[test]
fn a_repeat_while_the_barrier_is_open_waits_on_the_new_connection() {
    let mut world = World::new(2, Consistency::Bsp);
    world.send(0, barrier(1, 0, 0, Some(vec![1.0])));
    assert!(closes(&world.send(20, hello(JOB, 0)), 0));
    world.send(20, barrier(3, 0, 0, Some(vec![1.0])));
    let out = world.send(1, barrier(1, 1, 0, Some(vec![2.0])));
    assert_eq!(released(&out), [(20, 0, vec![3.0]), (1, 0, vec![3.0])]);
}

#[test]
fn a_barrier_does_not_wait_for_a_task_that_leaves() {
    let mut world = World::new(2, Consistency::Bsp);
    world.send(0, barrier(1, 0, 0, Some(vec![1.0])));
    assert_eq!(released(&world.send(TOOL, leave(1))), [(0, 0, vec![1.0])]);
}

#[test]
fn a_task_that_joined_counts_its_own_barriers() {
    let mut world = World::new(1, Consistency::Bsp);
    world.send(0, barrier(1, 0, 0, None));
    world.send(0, Message::Join(Join { request: 4, job: JOB, task: 1, generation: 0 }));
    world.send(1, hello(JOB, 1));
    assert!(world.send(0, barrier(1, 0, 1, None)).is_empty());
    assert_eq!(released(&world.send(1, barrier(1, 1, 0, None))).len(), 2);
}

/// A lane that is not the home lane. Its only task has passed `passed` barriers.
fn other_lane(passed: u64) -> World {
    let mut world = World::with(config(), OpenJob { home: false, ..open(1, vec![]) });
    (0..passed).for_each(|generation| assert_eq!(world.send(0, barrier(1, 0, generation, None)).len(), 1));
    world
}

fn join(generation: u32) -> Message {
    Message::Join(Join { request: 4, job: JOB, task: 1, generation })
}

#[test]
fn a_task_joins_only_where_no_barrier_is_open_that_is_over_at_the_home_lane() {
    let mut world = other_lane(1);
    let out = world.send(TOOL, join(2));
    assert_eq!((fault(&out).kind, fault(&out).retry_after_ms), (FaultKind::Busy, 10), "{out:?}");
    assert_eq!(released(&world.send(0, barrier(1, 0, 1, None))).len(), 1, "it is not waited for");
    let joined = Message::Joined(Joined { request: 4, clock: 0, generation: 2 });
    assert_eq!(only(world.send(TOOL, join(2))), joined);
    world.send(1, hello(JOB, 1));
    assert!(world.send(0, barrier(1, 0, 2, None)).is_empty(), "it is waited for");
    assert_eq!(released(&world.send(1, barrier(1, 1, 0, None))).len(), 2);
}

#[test]
fn a_task_that_joins_passes_at_once_what_is_over_here_and_open_at_the_home_lane() {
    let mut world = other_lane(1);
    let joined = Message::Joined(Joined { request: 4, clock: 0, generation: 0 });
    assert_eq!(only(world.send(TOOL, join(0))), joined);
    world.send(1, hello(JOB, 1));
    assert_eq!(released(&world.send(1, barrier(1, 1, 0, None))).len(), 1);
    assert!(world.send(0, barrier(1, 0, 1, None)).is_empty(), "the next one is for both");
    assert_eq!(released(&world.send(1, barrier(1, 1, 1, None))).len(), 2);
}

#[test]
fn a_task_for_which_others_wait_at_the_home_lane_does_not_wait_for_them() {
    let matrices = vec![spec("w", Consistency::Bsp)];
    let mut world = World::with(config(), OpenJob { home: false, ..open(1, matrices) });
    world.send(0, barrier(1, 0, 0, None));
    world.send(TOOL, join(0));
    world.send(1, hello(JOB, 1));
    world.tick(1, 1);
    assert_eq!(answered(&world.pull(8, 1, 1)), [8], "task 0 waits for task 1, not task 1 for task 0");
    // The home lane has released both tasks, and this lane gets the message of task 0 first.
    world.tick(0, 2);
    assert!(world.pull(9, 0, 2).is_empty(), "task 1 is at clock 1");
    assert_eq!(released(&world.send(1, barrier(1, 1, 0, None))), [(1, 1, vec![])]);
    assert_eq!(answered(&world.tick(1, 3)), [9]);
    assert!(world.pull(11, 1, 3).is_empty(), "task 0 counts again");
}

#[test]
fn parts_of_different_lengths_are_refused_to_all() {
    let mut world = World::new(2, Consistency::Bsp);
    world.send(0, barrier(1, 0, 0, Some(vec![1.0])));
    let out = world.send(1, barrier(1, 1, 0, Some(vec![1.0, 2.0])));
    assert_eq!(out.len(), 2);
    assert!(fault(&out).text.contains("task 1 passed 2"), "{out:?}");
}

#[test]
fn a_barrier_that_waits_too_long_names_the_missing() {
    let mut world = World::new(2, Consistency::Bsp);
    world.send(0, barrier(6, 0, 0, None));
    let mut out = Vec::new();
    world.lane.on_time(Duration::from_secs(1), &mut out);
    let told = fault(&out);
    assert_eq!((told.request, told.kind), (6, FaultKind::WaitedTooLong));
    assert!(told.text.contains("at a barrier") && told.text.contains("task 1"), "{}", told.text);
}
