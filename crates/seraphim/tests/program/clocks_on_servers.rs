//! Every server has clocks of its own. The clock of a server that no batch touches still advances. Ticks may come
//! early, late and twice. A task that leaves releases the tasks that waited for it, and a task that joins starts at the
//! minimum. Matrices of one job may differ in consistency, and a barrier can be passed many times. The servers are
//! real; the test plays the tasks.
#![cfg(unix)]

use crate::common::probe::{PARTITIONS, Probe, SERVERS};
use matrix::{Agent, Consistency};
use rpc::Message;
use rpc::message::{FaultKind, Join, Joined, Leave, Tick};
use worker::RemoteAgent;

/// The matrix of a job with one matrix.
const ONE: u32 = 0;
const JOB: u32 = 1;
/// Number of barriers that the tasks pass.
const BARRIERS: u64 = 25;

/// Ticks this often without a push, and waits until the servers have acknowledged it.
fn advance(probe: &Probe, agent: &mut RemoteAgent, clocks: u64) {
    for _ in 0..clocks {
        agent.tick().expect("a tick waits for nobody");
    }
    let (task, clock) = (agent.task() as usize, agent.clock());
    probe.wait_until(|stats| stats.clocks[task] == Some(clock));
}

#[test]
fn a_server_that_no_batch_touches_still_advances() {
    let clocks = 20;
    let probe = Probe::start(2, &[Consistency::Bsp]);
    // All partitions of the first server, none of the second.
    let touched = 0..PARTITIONS / u32::from(SERVERS);
    probe.run(|_, agent| {
        for clock in 0..clocks {
            probe.push(agent, ONE, touched.clone());
            agent.tick().expect("a tick waits for nobody");
            // This pull would block if the clock of the second server did not advance.
            let seen = probe.look(agent, ONE);
            for (partition, counts) in (0u32..).zip(seen.of(0)) {
                let count = if touched.contains(&partition) { clock + 1 } else { 0 };
                assert_eq!(counts, (count, count), "partition {partition}");
            }
        }
    });
    assert_eq!((probe.stats(0).push_count, probe.stats(1).push_count), (4 * clocks, 0));
}

#[test]
fn a_task_without_data_stalls_nobody() {
    for consistency in [Consistency::Bsp, Consistency::Ssp { staleness: 1 }] {
        let probe = Probe::start(3, &[consistency]);
        probe.run(|task, agent| {
            for _ in 0..if task == 1 { 0 } else { 20 } {
                probe.look(agent, ONE);
                probe.step(agent, ONE);
            }
        });
        probe.assert_conserved(ONE, &[20, 0, 20]);
    }
}

#[test]
fn ticks_early_late_and_twice_have_defined_results() {
    let probe = Probe::start(2, &[Consistency::Bsp]);
    let (mut sender, mut receiver) = probe.line(0, 0);
    let mut tick = |task, clock| {
        sender.send(&Message::Tick(Tick { request: 9, job: JOB, task, clock })).expect("the server lives");
        receiver.receive().expect("the server answers")
    };
    for (clock, known) in [(3, 3), (3, 3), (1, 3), (4, 4)] {
        assert!(matches!(tick(0, clock), Message::Done(_)));
        assert_eq!(probe.stats(0).clocks[0], Some(known), "after a tick to {clock}");
    }
    match tick(1, 1) {
        Message::Fault(fault) => assert_eq!(fault.kind, FaultKind::Invalid, "in the name of another"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(probe.ask(0, &leave(0)), Message::Done(_)));
    match tick(0, 5) {
        Message::Fault(fault) => assert_eq!(fault.kind, FaultKind::TaskLeft),
        other => panic!("{other:?}"),
    }
}

fn leave(task: u32) -> Message {
    Message::Leave(Leave { request: 5, job: JOB, task })
}

#[test]
fn the_slowest_that_ends_or_is_removed_releases_all_whom_it_held_and_who_joins_starts_at_the_minimum() {
    for removed in [false, true] {
        let probe = Probe::start(3, &[Consistency::Ssp { staleness: 2 }]);
        let mut agents = [0, 1, 2].map(|task| probe.agent(task));
        advance(&probe, &mut agents[0], 6);
        advance(&probe, &mut agents[1], 5);
        let [first, second, slowest] = &mut agents;
        std::thread::scope(|scope| {
            let probe = &probe;
            let held = [first, second].map(|agent| scope.spawn(move || probe.look(agent, ONE)));
            probe.wait_until(|stats| stats.held_count == 2);
            if removed {
                for lane in 0..SERVERS {
                    assert!(matches!(probe.ask(lane, &leave(2)), Message::Done(_)));
                }
            } else {
                slowest.finish().expect("nothing hinders the end");
            }
            for thread in held {
                thread.join().expect("both are released: 5 is at most 2 behind 6");
            }
        });
        for lane in 0..SERVERS {
            let joined =
                probe.ask(lane, &Message::Join(Join { request: 6, job: JOB, task: 3, generation: 0 }));
            assert_eq!(
                joined,
                Message::Joined(Joined { request: 6, clock: 5, generation: 0 }),
                "m is the true minimum"
            );
        }
        let [first, ..] = &mut agents;
        advance(&probe, first, 2);
        // At clock 8 the task needs clock 6; tasks 1 and 3 are at 5.
        std::thread::scope(|scope| {
            let probe = &probe;
            let held = scope.spawn(move || probe.look(first, ONE));
            probe.wait_until(|stats| stats.held_count == 1);
            for lane in 0..SERVERS {
                assert!(matches!(probe.ask(lane, &leave(1)), Message::Done(_)));
                assert_eq!(probe.stats(lane).held_count, 1, "the one who joined holds it too");
                assert!(matches!(probe.ask(lane, &leave(3)), Message::Done(_)));
            }
            held.join().expect("nobody holds it any more");
        });
    }
}

#[test]
fn matrices_of_one_job_keep_each_its_own_consistency() {
    let consistencies = [Consistency::Bsp, Consistency::Ssp { staleness: 1 }, Consistency::Asp];
    let probe = Probe::start(2, &consistencies);
    let [mut fast, mut slow] = [0, 1].map(|task| probe.agent(task));
    let (bsp, ssp, asp) = (0, 1, 2);
    for matrix in [bsp, ssp, asp] {
        probe.push(&mut slow, matrix, 0..PARTITIONS);
    }
    // The pull comes after the pushes on the same connection.
    assert_eq!(probe.look(&mut slow, bsp).of(1)[0], (0, 0), "staged");
    advance(&probe, &mut fast, 2);
    assert_eq!(probe.look(&mut fast, asp).of(1)[0], (1, 1), "free at a gap of 2");
    let mut held = fast;
    for (matrix, minimum) in [(ssp, 1), (bsp, 2)] {
        held = std::thread::scope(|scope| {
            let probe = &probe;
            let thread = scope.spawn(move || {
                assert_eq!(probe.look(&mut held, matrix).of(1)[0], (1, 1), "matrix {matrix}");
                held
            });
            probe.wait_until(|stats| stats.held_count == 1);
            advance(probe, &mut slow, 1);
            assert_eq!(slow.clock(), minimum);
            thread.join().expect("the tick releases it")
        });
    }
}

#[test]
fn a_barrier_is_passed_again_and_again_and_sums_in_the_order_of_tasks() {
    let tasks = 3;
    let probe = Probe::start(tasks, &[Consistency::Asp]);
    probe.run(|task, agent| {
        for round in 1..=BARRIERS {
            // Tasks make different numbers of steps. After the barrier all are at the largest clock and see all pushes.
            for _ in 0..=task {
                probe.step(agent, ONE);
            }
            let mut sum = [f64::from(task), 1.0, round as f64];
            agent.all_reduce(&mut sum).expect("all come");
            assert_eq!(sum, [3.0, 3.0, 3.0 * round as f64]);
            assert_eq!(agent.clock(), round * u64::from(tasks));
            let seen = probe.look(agent, ONE);
            for other in 0..tasks {
                let steps = round * u64::from(other + 1);
                assert!(seen.of(other).iter().all(|counts| *counts == (steps, steps)), "round {round}");
            }
            agent.barrier().expect("all come");
        }
    });
    probe.assert_conserved(ONE, &[BARRIERS, 2 * BARRIERS, 3 * BARRIERS]);
}
