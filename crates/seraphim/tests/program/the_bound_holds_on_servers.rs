//! Promise: the bound on staleness holds across processes. Two servers are real, the test plays the tasks, and one of
//! them is slow. Every pull shows pushes of every task within what the consistency of its matrix allows. A task that
//! runs ahead is blocked and later released. No read goes back, a task sees its own pushes, and at the end every push
//! has counted once.
#![cfg(unix)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::probe::{PARTITIONS, Probe, PulledCounters, SERVERS};
use matrix::{Agent, Consistency, MatrixId, OwnedValues};
use rpc::Message;
use rpc::message::{KeyList, Leave, PartitionRun, Push};
use worker::RemoteAgent;

const TASKS: u32 = 3;
const CLOCKS: u64 = 40;
/// The matrix of a job with one matrix.
const ONE: u32 = 0;
/// The slow task.
const SLOW: u32 = TASKS - 1;
/// Time of a step of the slow task, many times that of the others.
const SLOW_STEP: Duration = Duration::from_millis(10);
/// Longest wait for a thread of the test.
const PATIENCE: Duration = Duration::from_secs(20);

fn work(task: u32) {
    if task == SLOW {
        std::thread::sleep(SLOW_STEP);
    }
}

fn clocks() -> Vec<AtomicU64> {
    (0..TASKS).map(|_| AtomicU64::new(0)).collect()
}

#[test]
fn under_bsp_all_see_exactly_the_steps_before_theirs_and_the_same_bytes() {
    let probe = Probe::start(TASKS, &[Consistency::Bsp]);
    // Per task: the clock that it is about to reach, and the clock of its last pull.
    let (announced, pulled) = (clocks(), clocks());
    let seen = probe.run(|task, agent| {
        let mut all = Vec::new();
        for clock in 0..CLOCKS {
            let seen = probe.look(agent, ONE);
            for other in 0..TASKS {
                let counts = seen.of(other);
                assert_eq!(counts, vec![(clock, clock); PARTITIONS as usize], "{task} sees of {other}");
                let reached = announced[other as usize].load(Ordering::SeqCst);
                assert!(reached >= clock, "task {task} read at {clock}, task {other} is at {reached}");
            }
            pulled[task as usize].store(clock, Ordering::SeqCst);
            all.push(seen.bytes());
            work(task);
            probe.push(agent, ONE, 0..PARTITIONS);
            for other in &pulled {
                let ahead = other.load(Ordering::SeqCst);
                assert!(ahead <= clock, "somebody read at {ahead} while task {task} was at {clock}");
            }
            announced[task as usize].store(clock + 1, Ordering::SeqCst);
            agent.tick().expect("a tick waits for nobody");
        }
        all
    });
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "other bytes for other readers");
    probe.assert_conserved(ONE, &[CLOCKS; TASKS as usize]);
    for lane in 0..SERVERS {
        assert!(probe.stats(lane).waits.0 > 0, "nobody waited for the slow task at server {lane}");
    }
}

/// Checks a read that is not under BSP. `own`: number of pushes that the reader has made, including those of this step.
fn check(
    seen: &PulledCounters,
    earlier: Option<&PulledCounters>,
    (task, own): (u32, u64),
    bounds: (u64, u64),
) {
    for other in 0..TASKS {
        for (first, second) in seen.of(other) {
            assert!(first >= second, "of task {other} the later push is seen, not the earlier");
            let (least, most) = if other == task { (own, own) } else { bounds };
            assert!(second >= least, "{task} misses pushes of {other}: {second}, at least {least}");
            assert!(first <= most, "{task} sees {first} pushes of {other}, at most {most}");
        }
    }
    assert!(earlier.is_none_or(|earlier| seen.is_not_before(earlier)), "a read of task {task} went back");
}

/// Runs the steps of a task under SSP or ASP. It reads before and after its push, and prefetches every third read.
fn play(probe: &Probe, task: u32, agent: &mut RemoteAgent, bounds: impl Fn(u64) -> (u64, u64)) {
    let mut earlier = None;
    let mut ticket = None;
    for clock in 0..CLOCKS {
        let seen = match ticket.take() {
            Some(ticket) => probe.wait(agent, &ticket),
            None => probe.look(agent, ONE),
        };
        check(&seen, earlier.as_ref(), (task, clock), bounds(clock));
        work(task);
        probe.push(agent, ONE, 0..PARTITIONS);
        let after = probe.look(agent, ONE);
        check(&after, Some(&seen), (task, clock + 1), bounds(clock));
        earlier = Some(after);
        agent.tick().expect("a tick waits for nobody");
        if clock % 3 == 0 {
            ticket = Some(agent.prefetch(MatrixId(ONE), probe.everything(), clock + 1));
        }
    }
}

#[test]
fn under_ssp_no_read_misses_or_sees_more_than_the_bound_allows() {
    for staleness in [0, 1, 8] {
        let probe = Probe::start(TASKS, &[Consistency::Ssp { staleness }]);
        let bounds = |clock: u64| (clock.saturating_sub(staleness), clock + staleness + 1);
        probe.run(|task, agent| play(&probe, task, agent, bounds));
        probe.assert_conserved(ONE, &[CLOCKS; TASKS as usize]);
        for lane in 0..SERVERS {
            let stats = probe.stats(lane);
            assert!(stats.waits.0 > 0, "nobody ever waited for the slow task: {stats:?}");
            let beyond: u64 = stats.staleness.iter().skip(staleness as usize + 1).sum();
            assert_eq!(beyond, 0, "answered beyond SSP({staleness}): {stats:?}");
        }
    }
}

#[test]
fn under_asp_one_task_that_stands_still_for_ever_holds_nobody_up() {
    let probe = Probe::start(TASKS, &[Consistency::Asp]);
    let still = SLOW;
    let mut sleeper = probe.agent(still);
    probe.push(&mut sleeper, ONE, 0..PARTITIONS);
    // The pushes of the task arrive; after that it does nothing.
    probe.look(&mut sleeper, ONE);
    std::thread::scope(|scope| {
        for task in 0..still {
            let probe = &probe;
            scope.spawn(move || {
                let mut agent = probe.agent(task);
                play(probe, task, &mut agent, |_| (0, CLOCKS));
                agent.finish().expect("nothing hinders the end");
            });
        }
    });
    for lane in 0..SERVERS {
        let stats = probe.stats(lane);
        assert_eq!((stats.clocks, stats.waits.0), (vec![None, None, Some(0)], 0));
    }
    probe.assert_conserved(ONE, &[CLOCKS, CLOCKS, 1]);
}

#[test]
fn a_pull_beyond_the_bound_is_held_and_released_once_by_the_tick_that_lifts_the_minimum() {
    let staleness = 2;
    let probe = Probe::start(2, &[Consistency::Ssp { staleness }]);
    let (mut fast, mut slow) = (probe.agent(0), probe.agent(1));
    for clock in 0..=staleness {
        assert_eq!(probe.look(&mut fast, ONE).of(0)[0].0, clock, "within the bound it is free");
        probe.step(&mut fast, ONE);
    }
    probe.wait_until(|stats| stats.waits.0 == 0 && stats.held_count == 0);
    for minimum in 1..4 {
        let (say, answered) = channel();
        std::thread::scope(|scope| {
            let (probe, fast) = (&probe, &mut fast);
            scope.spawn(move || {
                let seen = probe.look(fast, ONE);
                say.send(seen.of(0)[0].0).expect("the test listens");
            });
            probe.wait_until(|stats| stats.held_count == 1);
            assert!(answered.try_recv().is_err(), "answered although m is {}", minimum - 1);
            probe.step(&mut slow, ONE);
            assert_eq!(answered.recv_timeout(PATIENCE), Ok(staleness + minimum));
        });
        probe.wait_until(|stats| stats.held_count == 0 && stats.waits.0 == minimum);
        probe.step(&mut fast, ONE);
    }
}

#[test]
fn one_who_only_pushes_is_bounded_too() {
    let staleness = 3;
    let probe = Probe::start(2, &[Consistency::Ssp { staleness }]);
    let (mut pusher, mut slow) = (probe.agent(0), probe.agent(1));
    for _ in 0..CLOCKS {
        probe.step(&mut pusher, ONE);
    }
    // A step makes two pushes per server. Those of clocks 0 to 3 are applied; that of clock 4 is deferred, with the
    // ticks after it.
    let applied = 2 * (staleness + 1);
    probe.wait_until(|stats| stats.held_count > 0 && stats.clocks[0] == Some(staleness + 1));
    for lane in 0..SERVERS {
        assert_eq!(probe.stats(lane).push_count, applied);
    }
    let seen = probe.look(&mut slow, ONE);
    assert!(seen.of(0).iter().all(|counts| *counts == (staleness + 1, staleness + 1)), "{seen:?}");
    slow.finish().expect("nothing hinders the end");
    pusher.finish().expect("nobody holds it any more");
    probe.assert_conserved(ONE, &[CLOCKS, 0]);
}

#[test]
fn ssp_without_staleness_is_not_bsp() {
    for (consistency, shown) in [(Consistency::Ssp { staleness: 0 }, 1), (Consistency::Bsp, 0)] {
        let probe = Probe::start(2, &[consistency]);
        let (mut reader, mut writer) = (probe.agent(0), probe.agent(1));
        probe.push(&mut writer, ONE, 0..PARTITIONS);
        assert_eq!(probe.look(&mut writer, ONE).of(1)[0].0, shown, "{consistency:?}: its own push");
        assert_eq!(probe.look(&mut reader, ONE).of(1)[0].0, shown, "{consistency:?}: that of another");
    }
}

#[test]
fn every_push_counts_once_although_connections_are_torn() {
    for consistency in [Consistency::Bsp, Consistency::Ssp { staleness: 1 }, Consistency::Asp] {
        let probe = Probe::start(TASKS, &[consistency]);
        let connections = probe.run(|task, agent| {
            for clock in 0..CLOCKS {
                probe.push(agent, ONE, 0..PARTITIONS);
                // A server drops the earlier connection of a task that sends a hello again, here with pushes in flight.
                if clock % 3 == u64::from(task) {
                    drop(probe.line((clock % 2) as u16, task));
                }
                agent.tick().expect("a tick waits for nobody");
                probe.look(agent, ONE);
            }
            agent.stats().connection_count
        });
        assert!(
            connections.iter().all(|count| *count > u64::from(SERVERS)),
            "nothing was torn: {connections:?}"
        );
        probe.assert_conserved(ONE, &[CLOCKS; TASKS as usize]);
    }
}

/// One task is slow, another one leaves early, and connections are torn with prefetches in flight.
#[test]
fn prefetches_under_bsp_are_exact_although_connections_are_torn_and_a_task_leaves() {
    let probe = Probe::start(TASKS, &[Consistency::Bsp]);
    let steps = |task: u32| if task == 0 { CLOCKS / 2 } else { CLOCKS };
    probe.run(|task, agent| {
        let mut ticket = agent.prefetch(MatrixId(ONE), probe.everything(), 0);
        for clock in 0..steps(task) {
            let seen = probe.wait(agent, &ticket);
            for other in 0..TASKS {
                let count = clock.min(steps(other));
                assert_eq!(
                    seen.of(other),
                    vec![(count, count); PARTITIONS as usize],
                    "{task} sees of {other}"
                );
            }
            ticket = agent.prefetch(MatrixId(ONE), probe.everything(), clock + 1);
            probe.push(agent, ONE, 0..PARTITIONS);
            work(task);
            agent.tick().expect("a tick waits for nobody");
            if clock % 5 == u64::from(task) {
                drop(probe.line((clock % 2) as u16, task));
            }
        }
    });
    let pushed: Vec<u64> = (0..TASKS).map(steps).collect();
    probe.assert_conserved(ONE, &pushed);
}

#[test]
fn a_push_that_comes_again_is_dropped_and_counted() {
    const TIMES: u64 = 3;
    for consistency in [Consistency::Bsp, Consistency::Asp] {
        let probe = Probe::start(2, &[consistency]);
        // Each round pushes to the first and the second key of task 0 in partition 0 over a connection of its own, and
        // to the first key twice.
        for again in 0..TIMES {
            let (mut sender, mut receiver) = probe.line(0, 0);
            for (index, key) in [(0, 0), (1, 2), (0, 0)] {
                let push = Push {
                    request: 9,
                    job: probe.layout.job,
                    task: 0,
                    clock: 0,
                    index,
                    matrix: ONE,
                    table: 0,
                    runs: vec![PartitionRun { partition: 0, count: 1 }],
                    keys: KeyList::Listed(vec![key]),
                    values: OwnedValues::F32(vec![1.0]).into(),
                };
                sender.send(&Message::Push(push)).expect("the server lives");
                let answer = receiver.receive().expect("the server answers");
                assert!(matches!(answer, Message::Done(_)), "time {again}: {answer:?}");
            }
        }
        let mut reader = probe.agent(1);
        for lane in 0..SERVERS {
            let leave = Leave { request: 5, job: probe.layout.job, task: 0 };
            assert!(matches!(probe.ask(lane, &Message::Leave(leave)), Message::Done(_)));
        }
        reader.tick().expect("a tick waits for nobody");
        assert_eq!(probe.look(&mut reader, ONE).of(0)[0], (1, 1), "{consistency:?}");
        let stats = probe.stats(0);
        assert_eq!((stats.push_count, stats.duplicate_count), (2, 3 * TIMES - 2), "{consistency:?}");
    }
}
