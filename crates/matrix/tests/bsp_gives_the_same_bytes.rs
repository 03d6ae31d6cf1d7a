//! Under BSP a model depends on the seed and the tasks alone: not on the order in which tasks arrive, not on the number
//! of partitions, and not on where they are cut.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::sync::mpsc::channel;

use common::*;
use math::random::{Purpose, stream};
use matrix::{Agent, Consistency, ElementType, Initializer, Partitioner, PushRule, RowBlock};

const TASKS: u32 = 3;
const STEPS: u64 = 25;
const COLUMNS: usize = 2;

fn keys_and_noise(task: u32, step: u64) -> (Vec<u64>, Vec<f32>) {
    let mut random = stream(9, Purpose::Test, u64::from(task), step);
    let mut keys: Vec<u64> = (0..60).map(|_| random.below(200)).collect();
    keys.sort_unstable();
    keys.dedup();
    let noise = (0..keys.len() * COLUMNS).map(|_| random.normal() as f32).collect();
    (keys, noise)
}

/// Number of steps of a task in an epoch. It differs between tasks.
fn steps(task: u32) -> u64 {
    STEPS - 5 * u64::from(task)
}

/// Runs a training whose pushes depend on what was pulled. In each step, task `slow` pushes only after the others have
/// pushed.
fn train(rule: PushRule, partitioner: Partitioner, slow: u32) -> RowBlock {
    let mut spec = spec(ElementType::F32, rule, Consistency::Bsp);
    spec.columns = COLUMNS as u64;
    spec.partitioner = partitioner;
    spec.initializer = Initializer::Uniform { low: -0.1, high: 0.1 };
    let store = store_of(TASKS, [spec]);
    let (pushed, wait) = channel();
    let mut wait = Some(wait);
    std::thread::scope(|scope| {
        for task in 0..TASKS {
            let (mut agent, pushed) = (store.agent(task), pushed.clone());
            let wait = if task == slow { wait.take() } else { None };
            scope.spawn(move || {
                for (epoch, step) in (0..2).flat_map(|epoch| (0..steps(task)).map(move |step| (epoch, step)))
                {
                    let (keys, noise) = keys_and_noise(task, epoch * STEPS + step);
                    let weights = pull_f32(&mut agent, &keys, COLUMNS).unwrap();
                    let gradient: Vec<f32> = weights.iter().zip(&noise).map(|(w, x)| 0.3 * w + x).collect();
                    if let Some(wait) = &wait {
                        let others = (0..TASKS).filter(|other| *other != slow && step < steps(*other));
                        others.for_each(|_| wait.recv().unwrap());
                    }
                    push_f32(&mut agent, &keys, &gradient).unwrap();
                    push_f32(&mut agent, &keys[..5], &gradient[..5 * COLUMNS]).unwrap();
                    if task != slow && step < steps(slow) {
                        pushed.send(()).unwrap();
                    }
                    agent.tick().unwrap();
                    if step + 1 == steps(task) {
                        agent.barrier().unwrap();
                    }
                }
                agent.finish().unwrap();
            });
        }
    });
    store.export(W).unwrap()
}

#[test]
fn whoever_comes_first_and_however_many_partitions() {
    for rule in [ftrl(), adam(), PushRule::Assign, PushRule::Max] {
        let base = train(rule, Partitioner::Hash { partition_count: 1 }, 0);
        assert_eq!(base.keys.len(), 200, "{}: every key was pushed", rule.name());
        for slow in 0..TASKS {
            for partitioner in [
                Partitioner::Hash { partition_count: 7 },
                Partitioner::Range { partition_count: 3 },
                Partitioner::Explicit { starts: vec![0, 10, 150] },
            ] {
                assert_eq!(train(rule, partitioner, slow), base, "{}, slow task {slow}", rule.name());
            }
        }
    }
}

#[test]
fn an_optimizer_makes_one_step_a_clock_with_the_sum_of_all_gradients() {
    let run = |tasks: u32, gradient: f32| {
        let store = store_of(tasks, [spec(ElementType::F32, ftrl(), Consistency::Bsp)]);
        let mut agents: Vec<_> = (0..tasks).map(|task| store.agent(task)).collect();
        for _ in 0..10 {
            for agent in &mut agents {
                push_f32(agent, &[3], &[gradient]).unwrap();
            }
            for agent in &mut agents {
                agent.tick().unwrap();
            }
        }
        store.export(W).unwrap()
    };
    assert_eq!(run(4, 0.5), run(1, 2.0), "exact in binary: four halves are two");
}

#[test]
fn a_pull_sees_exactly_the_stamps_below_its_clock() {
    let store = store_of(2, [spec(ElementType::I64, PushRule::Add, Consistency::Bsp)]);
    let (mut first, mut second) = (store.agent(0), store.agent(1));
    push_i64(&mut first, &[1], &[1]).unwrap();
    assert_eq!(pull_i64(&mut first, &[1]).unwrap(), [0], "not even its own push of this clock");
    first.tick().unwrap();
    assert_eq!(pull_i64(&mut second, &[1]).unwrap(), [0], "stamped 0, read at clock 0");
    push_i64(&mut second, &[1], &[10]).unwrap();
    second.tick().unwrap();
    assert_eq!(pull_i64(&mut first, &[1]).unwrap(), [11]);
    push_i64(&mut first, &[1], &[100]).unwrap();
    assert_eq!(pull_i64(&mut second, &[1]).unwrap(), [11], "at one clock all see the same");
}

#[test]
fn after_a_barrier_all_that_was_pushed_before_is_visible_ticked_or_not() {
    for consistency in [Consistency::Bsp, Consistency::Ssp { staleness: 1 }, Consistency::Asp] {
        let store = store_of(2, [spec(ElementType::I64, PushRule::Add, consistency)]);
        std::thread::scope(|scope| {
            for task in 0..2 {
                let mut agent = store.agent(task);
                scope.spawn(move || {
                    for _ in 0..3 + 4 * task {
                        push_i64(&mut agent, &[1], &[1]).unwrap();
                        agent.tick().unwrap();
                    }
                    push_i64(&mut agent, &[1], &[1]).unwrap();
                    agent.barrier().unwrap();
                    assert_eq!(pull_i64(&mut agent, &[1]).unwrap(), [4 + 8], "{consistency:?}");
                    assert_eq!(agent.clock(), 8, "all leave at the largest clock");
                });
            }
        });
    }
}
