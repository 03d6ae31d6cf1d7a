//! Tests of waits: which tasks wait for which, and for how long.

use std::time::Duration;

use matrix::Consistency;
use rpc::message::*;
use rpc::service::{Effect, Service};

use super::world::*;

#[test]
fn under_bsp_a_pull_waits_for_all_and_sees_exactly_the_clocks_before_its_own() {
    let mut world = World::new(2, Consistency::Bsp);
    world.push(0, 0, 0);
    world.tick(0, 1);
    assert!(world.pull(9, 0, 1).is_empty(), "task 1 is at clock 0");
    world.push(1, 0, 0);
    assert_eq!(pulled(world.tick(1, 1)), [2.0, 2.0]);
    world.push(1, 1, 0);
    assert_eq!(pulled(world.pull(10, 0, 1)), [2.0, 2.0], "not the stamp 1");
    assert!(world.tick(0, 2).is_empty(), "answered once");
}

#[test]
fn under_ssp_a_pull_waits_while_the_slowest_is_more_than_s_behind() {
    for s in [0, 1, 3] {
        let mut world = World::new(2, Consistency::Ssp { staleness: s });
        for clock in 0..=s {
            world.push(0, clock, 0);
            assert_eq!(
                pulled(world.pull(1, 0, clock)),
                [clock as f64 + 1.0; 2],
                "own pushes are seen, s {s}"
            );
            world.tick(0, clock + 1);
        }
        assert!(world.pull(2, 0, s + 1).is_empty(), "m is 0, s {s}");
        assert_eq!(pulled(world.tick(1, 1)), [s as f64 + 1.0; 2]);
    }
}

#[test]
fn ssp_0_is_not_bsp() {
    // A push of the same clock is visible under SSP(0), and not under BSP.
    for (consistency, seen) in [(Consistency::Ssp { staleness: 0 }, 1.0), (Consistency::Bsp, 0.0)] {
        let mut world = World::new(2, consistency);
        world.push(1, 0, 0);
        assert_eq!(pulled(world.pull(1, 0, 0)), [seen; 2]);
    }
}

#[test]
fn under_asp_nothing_waits() {
    let mut world = World::new(2, Consistency::Asp);
    for clock in 0..50 {
        assert!(world.push(0, clock, 0).is_empty());
        assert_eq!(pulled(world.pull(1, 0, clock)), [clock as f64 + 1.0; 2]);
        world.tick(0, clock + 1);
    }
    let stats = world.stats();
    assert_eq!((stats.clocks, stats.waits.0), (vec![Some(50), Some(0)], 0));
    assert_eq!(stats.staleness.iter().sum::<u64>(), 50);
    assert_eq!(stats.staleness[16], 34, "clocks 16 to 49");
}

#[test]
fn one_who_only_pushes_is_held_too_with_all_behind_the_push() {
    let mut world = World::new(2, Consistency::Ssp { staleness: 1 });
    for clock in 0..5 {
        world.push(0, clock, 0);
        world.tick(0, clock + 1);
    }
    let stats = world.stats();
    assert_eq!(
        (stats.push_count, &stats.clocks[..]),
        (2, &[Some(2), Some(0)][..]),
        "its push of clock 2 is held"
    );
    assert_eq!(world.rows(), [2.0; 2]);
    world.tick(1, 1);
    assert_eq!(world.stats().clocks[0], Some(3), "one clock more");
    world.tick(1, 4);
    let stats = world.stats();
    assert_eq!((stats.push_count, stats.clocks[0], stats.held_count), (5, Some(5), 0));
    assert_eq!(stats.waits.0, 2);
}

#[test]
fn a_held_pull_does_not_hold_up_what_comes_behind_it() {
    let mut world = World::new(2, Consistency::Bsp);
    assert!(world.pull(1, 0, 1).is_empty(), "a pull of the next clock, ahead of its tick");
    world.push(0, 0, 0);
    world.tick(0, 1);
    assert_eq!(world.stats().clocks[0], Some(1));
    assert_eq!(pulled(world.tick(1, 1)), [1.0; 2]);
}

#[test]
fn the_held_go_in_the_order_of_arrival_once() {
    let mut world = World::new(4, Consistency::Bsp);
    for task in [2u32, 0, 1] {
        world.tick(task, 1);
        assert!(world.pull(u64::from(task) + 10, task, 1).is_empty());
    }
    assert_eq!(answered(&world.tick(3, 1)), [12, 10, 11]);
    assert!(world.tick(3, 2).is_empty());
    assert_eq!(world.stats().waits.0, 3);
}

#[test]
fn ticks_early_late_and_twice_have_defined_results() {
    let mut world = World::new(2, Consistency::Bsp);
    world.tick(0, 3);
    assert_eq!(world.stats().clocks[0], Some(3), "early: the clock of the tick counts");
    world.tick(0, 3);
    world.tick(0, 1);
    assert_eq!(world.stats().clocks[0], Some(3), "twice and late: nothing");
    world.send(0, leave(0));
    assert_eq!(fault(&world.tick(0, 4)).kind, FaultKind::TaskLeft);
    let stranger = world.send(1, tick(9, 1));
    assert_eq!(fault(&stranger).kind, FaultKind::Invalid, "in the name of another");
}

#[test]
fn the_slowest_that_leaves_lets_go_whom_it_held() {
    for taken_out_by in [2, TOOL] {
        let mut world = World::new(3, Consistency::Ssp { staleness: 2 });
        world.tick(0, 6);
        world.tick(1, 5);
        assert!(world.pull(10, 0, 6).is_empty() && world.pull(11, 1, 5).is_empty());
        assert_eq!(
            answered(&world.send(taken_out_by, leave(2))),
            [10, 11],
            "m is 5 at once, both gaps are below 3"
        );
        assert!(world.send(taken_out_by, leave(2)).is_empty(), "twice: nothing");
        assert_eq!(world.stats().clocks[2], None);
    }
}

#[test]
fn a_task_that_leaves_releases_nobody_beyond_the_true_minimum() {
    let mut world = World::new(3, Consistency::Bsp);
    world.tick(0, 6);
    world.tick(1, 3);
    assert!(world.pull(10, 0, 6).is_empty() && world.pull(11, 1, 3).is_empty());
    assert_eq!(answered(&world.send(2, leave(2))), [11], "m is 3");
}

#[test]
fn a_task_that_joins_starts_at_the_minimum() {
    let mut world = World::new(2, Consistency::Bsp);
    world.tick(0, 5);
    world.tick(1, 3);
    let join = |task| Message::Join(Join { request: 4, job: JOB, task, generation: 0 });
    let joined = Message::Joined(Joined { request: 4, clock: 3, generation: 0 });
    assert_eq!(only(world.send(TOOL, join(2))), joined);
    assert_eq!(only(world.send(TOOL, join(2))), joined, "a repeat");
    assert_eq!(fault(&world.send(TOOL, join(4))).kind, FaultKind::Invalid, "not the next number");
    world.send(2, hello(JOB, 2));
    world.tick(1, 5);
    assert!(world.pull(1, 0, 5).is_empty(), "it is waited for");
    world.push(2, 3, 0);
    assert_eq!(pulled(world.tick(2, 5)), [1.0; 2]);
}

#[test]
fn a_task_whose_step_never_came_here_still_advances() {
    let mut world = World::new(2, Consistency::Bsp);
    world.tick(1, 1);
    world.tick(1, 2);
    world.tick(0, 1);
    assert_eq!(pulled(world.pull(1, 0, 1)), [0.0; 2], "an empty batch delays no task");
}

#[test]
fn matrices_of_different_consistency_live_in_one_job() {
    let specs = vec![
        spec("bsp", Consistency::Bsp),
        spec("ssp", Consistency::Ssp { staleness: 1 }),
        spec("asp", Consistency::Asp),
    ];
    let mut world = World::with(config(), open(2, specs));
    world.tick(0, 2);
    for (matrix, count) in [(2, 1), (0, 0), (1, 0)] {
        let pull = Pull { matrix, ..pull(u64::from(matrix) + 1, 0, 2) };
        assert_eq!(world.send(0, Message::Pull(pull)).len(), count, "matrix {matrix}");
    }
    assert_eq!(answered(&world.tick(1, 1)), [2]);
    assert_eq!(answered(&world.tick(1, 2)), [1]);
}

#[test]
fn a_wait_beyond_its_limit_says_who_is_waited_for() {
    let mut world = World::new(3, Consistency::Bsp);
    world.tick(0, 1);
    world.tick(2, 1);
    world.now = Duration::from_millis(100);
    world.pull(5, 0, 1);
    assert_eq!(world.lane.next_time(), Some(Duration::from_millis(1100)));
    let mut out = Vec::new();
    world.lane.on_time(Duration::from_millis(1099), &mut out);
    assert!(out.is_empty());
    world.lane.on_time(Duration::from_millis(1100), &mut out);
    let told = fault(&out);
    assert_eq!((told.request, told.kind), (5, FaultKind::WaitedTooLong));
    assert!(told.text.contains("task 1, which is at clock 0"), "{}", told.text);
    assert!(told.text.contains("to pull from matrix \"w\""), "{}", told.text);
    assert_eq!(world.lane.next_time(), None);
    assert!(world.tick(1, 1).is_empty(), "an expired request gets no second answer");
}

#[test]
fn a_push_that_is_given_up_closes_its_connection_and_nothing_behind_it_is_applied() {
    let mut world = World::new(2, Consistency::Ssp { staleness: 0 });
    world.tick(0, 1);
    world.push(0, 1, 0);
    world.tick(0, 2);
    let mut out = Vec::new();
    world.lane.on_time(Duration::from_secs(1), &mut out);
    assert_eq!(fault(&out).kind, FaultKind::WaitedTooLong);
    assert!(closes(&out, 0));
    world.tick(1, 5);
    assert_eq!(world.rows(), [0.0; 2]);
    assert_eq!(world.stats().clocks[0], Some(1), "the tick after it was not processed");
    assert_eq!(world.lane.deferred_bytes, 0);
}

#[test]
fn a_request_whose_task_no_longer_waits_is_dropped_and_told_for_whom_it_waited() {
    let mut world = World::new(2, Consistency::Bsp);
    world.tick(0, 1);
    world.now = Duration::from_secs(7);
    world.send(0, Message::Pull(Pull { wait_ms: 100, ..pull(4, 0, 1) }));
    let end = Duration::from_millis(7100);
    assert_eq!(world.lane.next_time(), Some(end), "counted from its arrival at the lane");
    let mut out = Vec::new();
    world.lane.on_time(Duration::from_millis(7099), &mut out);
    assert!(out.is_empty(), "{out:?}");
    world.lane.on_time(end, &mut out);
    let fault = fault(&out);
    assert_eq!((fault.request, fault.kind), (4, FaultKind::WaitedTooLong));
    assert!(fault.text.contains("task 1"), "{}", fault.text);
    assert_eq!(world.lane.next_time(), None);
    assert!(answered(&world.tick(1, 1)).is_empty(), "an expired request gets no second answer");
}

#[test]
fn a_task_at_a_barrier_is_dropped_when_it_no_longer_waits() {
    let mut world = World::new(2, Consistency::Bsp);
    let Message::Barrier(meet) = barrier(5, 0, 0, None) else { panic!() };
    world.send(0, Message::Barrier(Barrier { wait_ms: 250, ..meet }));
    let mut out = Vec::new();
    assert_eq!(world.lane.next_time(), Some(Duration::from_millis(250)));
    world.lane.on_time(Duration::from_millis(250), &mut out);
    assert_eq!((fault(&out).request, fault(&out).kind), (5, FaultKind::WaitedTooLong));
}

#[test]
fn a_task_cannot_wait_longer_than_its_job_allows() {
    let mut world = World::new(2, Consistency::Bsp);
    world.tick(0, 1);
    world.pull(3, 0, 1);
    let limit = world.lane.next_time().expect("it waits");
    let mut world = World::new(2, Consistency::Bsp);
    world.tick(0, 1);
    world.send(0, Message::Pull(Pull { wait_ms: u32::MAX, ..pull(3, 0, 1) }));
    assert_eq!(world.lane.next_time(), Some(limit));
}

#[test]
fn answers_say_how_long_they_were_held() {
    let mut world = World::new(2, Consistency::Bsp);
    let held = |effects: Vec<Effect>| match only(effects) {
        Message::Pulled(pulled) => pulled.deferred_ns,
        other => panic!("{other:?}"),
    };
    assert_eq!(held(world.pull(2, 0, 0)), 0);
    world.tick(0, 1);
    world.now = Duration::from_millis(30);
    assert!(world.pull(3, 0, 1).is_empty());
    world.now = Duration::from_millis(42);
    assert_eq!(held(world.tick(1, 1)), 12_000_000);
    assert!(world.send(0, barrier(4, 0, 0, None)).is_empty());
    world.now = Duration::from_millis(47);
    let released: Vec<u64> = world
        .send(1, barrier(5, 1, 0, None))
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send { message: Message::Released(released), .. } => Some(released.deferred_ns),
            _ => None,
        })
        .collect();
    assert_eq!(released, [5_000_000, 0]);
}

#[test]
fn the_stats_of_tasks_say_who_waits_for_whom() {
    let mut world = World::new(3, Consistency::Bsp);
    world.tick(0, 1);
    world.pull(3, 0, 1);
    world.send(2, barrier(4, 2, 0, None));
    world.lane.on_closed(world.now, 1, &mut Vec::new());
    world.now = Duration::from_millis(1500);
    let tasks = world.stats().tasks;
    let wait = |call| Some(TaskWait { call, waited_ms: 1500, waits_for: Some(1) });
    let task = |clock, state, connected, wait| TaskStats { clock, state, connected, wait };
    assert_eq!(
        tasks,
        [
            task(1, TaskStatus::Live, true, wait(WaitKind::Pull)),
            task(0, TaskStatus::Live, false, None),
            task(0, TaskStatus::AtBarrier, true, wait(WaitKind::Barrier)),
        ]
    );
    world.send(TOOL, leave(1));
    assert_eq!(world.stats().tasks[1].state, TaskStatus::Left);
}
