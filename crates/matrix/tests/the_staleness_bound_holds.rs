//! P3, checked with counters: each task adds 1 to its own counter in each clock, so that a reader sees in the counter
//! of task t how many pushes of t are visible. One task is slow: it continues only when the test allows it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use common::*;
use matrix::{Agent, Consistency, ElementType, Error, PushRule};

const TASKS: u32 = 3;
const SLOW: u32 = 2;
const STEPS: u64 = 30;

fn probe(consistency: Consistency) -> matrix::MatrixSpec {
    spec(ElementType::I64, PushRule::Add, consistency)
}

/// Runs all tasks and calls `check(task, clock, counters)` at each pull. The slow task makes a step only when the
/// others have made as many calls as they can: it takes one token for each of their pulls.
fn run(consistency: Consistency, check: impl Fn(u32, u64, &[i64]) + Sync) -> matrix::StoreStats {
    let store = store_of(TASKS, [probe(consistency)]);
    let (token, tokens): (Sender<()>, Receiver<()>) = channel();
    std::thread::scope(|scope| {
        let check = &check;
        for task in 0..SLOW {
            let (mut agent, token) = (store.agent(task), token.clone());
            scope.spawn(move || {
                for clock in 0..STEPS {
                    token.send(()).unwrap();
                    let seen = pull_i64(&mut agent, &[0, 1, 2]).unwrap();
                    check(task, clock, &seen);
                    push_i64(&mut agent, &[u64::from(task)], &[1]).unwrap();
                    agent.tick().unwrap();
                }
                agent.finish().unwrap();
            });
        }
        drop(token);
        let mut agent = store.agent(SLOW);
        scope.spawn(move || {
            for clock in 0..STEPS {
                // Each of the other two tasks has pulled at this clock or a later one, or has ended.
                for _ in 0..2 {
                    let _ = tokens.recv();
                }
                let seen = pull_i64(&mut agent, &[0, 1, 2]).unwrap();
                check(SLOW, clock, &seen);
                push_i64(&mut agent, &[u64::from(SLOW)], &[1]).unwrap();
                agent.tick().unwrap();
            }
            agent.finish().unwrap();
        });
    });
    store.stats()
}

#[test]
fn bsp_reads_see_exactly_the_pushes_of_clocks_before() {
    let stats = run(Consistency::Bsp, |task, clock, seen| {
        assert_eq!(seen, [clock as i64; 3], "task {task} at clock {clock}");
    });
    assert!(stats.matrices[0].staleness[1..].iter().all(|count| *count == 0), "{stats:?}");
}

#[test]
fn ssp_reads_miss_nothing_older_than_the_staleness_and_see_their_own() {
    for staleness in [0, 2, 5] {
        let stats = run(Consistency::Ssp { staleness }, |task, clock, seen| {
            for (other, seen) in seen.iter().enumerate() {
                assert!(
                    *seen >= clock.saturating_sub(staleness) as i64,
                    "task {task} at {clock} misses pushes of {other}"
                );
                assert!(*seen <= (clock + staleness + 1) as i64, "task {other} ran ahead of the bound");
            }
            assert_eq!(seen[task as usize], clock as i64, "a task sees its own pushes");
        });
        let beyond = &stats.matrices[0].staleness[staleness as usize + 1..];
        assert!(beyond.iter().all(|count| *count == 0), "{stats:?}");
    }
}

#[test]
fn asp_goes_on_with_one_task_paused_for_ever() {
    let store = store_of(2, [probe(Consistency::Asp)]);
    let (mut paused, mut runs) = (store.agent(1), store.agent(0));
    push_i64(&mut paused, &[1], &[7]).unwrap();
    for clock in 0..1_000 {
        assert_eq!(pull_i64(&mut runs, &[0, 1]).unwrap(), [clock, 7]);
        push_i64(&mut runs, &[0], &[1]).unwrap();
        runs.tick().unwrap();
    }
    let stats = store.stats();
    assert_eq!(stats.waits.count, 0, "nothing waits");
    assert_eq!(stats.matrices[0].staleness[16], 984, "staleness is observed all the same");
}

/// A limit that certainly expires, because no task arrives.
const SHORT: Duration = Duration::from_millis(20);

#[test]
fn a_wait_has_a_deadline_and_says_who_is_waited_for() {
    for (consistency, held_at) in [(Consistency::Bsp, 1), (Consistency::Ssp { staleness: 3 }, 4)] {
        let store = store_with(2, SHORT, [probe(consistency)]);
        let (mut ahead, _behind) = (store.agent(0), store.agent(1));
        for _ in 0..held_at {
            pull_i64(&mut ahead, &[0]).unwrap();
            ahead.tick().unwrap();
        }
        let Err(error) = pull_i64(&mut ahead, &[0]) else {
            panic!("{consistency:?} waits at clock {held_at}")
        };
        let text = error.to_string();
        for part in
            [format!("task 0 at clock {held_at}"), "task 1, which is at clock 0".into(), "\"w\"".into()]
        {
            assert!(text.contains(&part), "{text}");
        }
        assert!(push_i64(&mut ahead, &[0], &[1]).is_err(), "pushes are held too");
        assert!(matches!(ahead.barrier(), Err(Error::WaitTimeout { .. })));
    }
}

#[test]
fn ssp_of_zero_is_not_bsp() {
    let see = |consistency| {
        let store = store_of(2, [probe(consistency)]);
        let (mut first, mut second) = (store.agent(0), store.agent(1));
        push_i64(&mut first, &[0], &[1]).unwrap();
        pull_i64(&mut second, &[0]).unwrap()[0]
    };
    assert_eq!(see(Consistency::Bsp), 0);
    assert_eq!(
        see(Consistency::Ssp { staleness: 0 }),
        1,
        "applied on arrival: seen at the clock of its stamp"
    );
}

#[test]
fn whoever_waits_is_released_when_the_slow_task_ends_or_is_removed() {
    for removed in [false, true] {
        let store = store_of(2, [probe(Consistency::Bsp)]);
        let (mut waits, mut slow) = (store.agent(0), store.agent(1));
        push_i64(&mut waits, &[0], &[1]).unwrap();
        waits.tick().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || pull_i64(&mut waits, &[0]).unwrap());
            if removed {
                assert!(store.remove(1));
                assert!(!store.remove(1));
            } else {
                slow.finish().unwrap();
            }
            assert_eq!(waiting.join().unwrap(), [1]);
        });
        assert!(matches!(slow.tick(), Err(Error::Task { task: 1, .. })));
    }
}

#[test]
fn stopping_wakes_all_who_wait_and_says_why() {
    let store = store_of(2, [probe(Consistency::Bsp)]);
    let (mut waits, _other) = (store.agent(0), store.agent(1));
    waits.tick().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || pull_i64(&mut waits, &[0]));
        store.stop("task 1 failed");
        store.stop("another reason");
        assert_eq!(waiting.join().unwrap(), Err(Error::Stopped { reason: "task 1 failed".into() }));
    });
}

#[test]
fn a_reduction_gives_every_task_the_sum_in_the_order_of_tasks() {
    let store = store_of(3, [probe(Consistency::Asp)]);
    // In another order the large numbers would absorb the 1.
    let parts = [1e16, -1e16, 1.0];
    std::thread::scope(|scope| {
        for task in [2, 0, 1] {
            let mut agent = store.agent(task);
            scope.spawn(move || {
                for _ in 0..50 {
                    let mut values = [parts[task as usize], f64::from(task)];
                    agent.all_reduce(&mut values).unwrap();
                    assert_eq!(values, [1.0, 3.0]);
                }
            });
        }
    });
}
