//! A pull that was asked ahead is used when a pull at that time might have given the same, and thrown away otherwise.

mod common;

use common::{World, layout, spec};
use matrix::{Consistency, Element, Error, Keys, MatrixId, Part, Partitioner, ValuesMut};
use rpc::Message;
use worker::Outcome;

const W: MatrixId = MatrixId(0);
const OTHER: MatrixId = MatrixId(1);
const KEYS: [u64; 3] = [2, 5, 11];

fn world(consistency: Consistency, ignores_own: bool) -> World {
    let partitioner = Partitioner::Hash { partition_count: 4 };
    let specs = vec![spec("w", consistency, 1, partitioner.clone()), spec("o", consistency, 1, partitioner)];
    let mut layout = layout(specs, 1, 1 << 20);
    layout.prefetch_ignores_own_pushes = ignores_own;
    World::new(layout)
}

fn part(keys: &[u64]) -> Part<'_> {
    Part::Rows(Keys::Sorted(keys))
}

fn prefetch(world: &mut World) {
    assert_eq!(world.agent.prefetch(world.now, W, part(&KEYS)), Ok(()));
    settle(world);
}

fn settle(world: &mut World) {
    while world.move_all() {}
}

fn push(world: &mut World, matrix: MatrixId) {
    world.agent.push(world.now, matrix, part(&[5]), i64::owned(vec![1]).as_values());
    assert_eq!(world.run(), Ok(Outcome::Done));
}

fn pull(world: &mut World, keys: &[u64]) -> Vec<i64> {
    world.agent.pull(world.now, W, part(keys));
    assert_eq!(world.run(), Ok(Outcome::Pulled));
    let mut out = vec![0; keys.len()];
    assert_eq!(world.agent.read_pulled(ValuesMut::I64(&mut out)), Ok(()));
    out
}

fn tick(world: &mut World) {
    world.agent.tick(world.now);
    assert_eq!(world.run(), Ok(Outcome::Done));
}

fn pull_count(world: &World) -> usize {
    world.sent.iter().filter(|(_, message)| matches!(message, Message::Pull(_))).count()
}

#[test]
fn it_is_used_when_nothing_has_changed() {
    let mut world = world(Consistency::Asp, false);
    prefetch(&mut world);
    push(&mut world, OTHER);
    tick(&mut world);
    assert_eq!(pull(&mut world, &KEYS), [0, 0, 0]);
    assert_eq!(pull_count(&world), 1, "the push was to another matrix");
    assert_eq!(pull(&mut world, &KEYS), [0, 0, 0]);
    assert_eq!(pull_count(&world), 2, "an answer is used once");
}

#[test]
fn it_is_thrown_away_after_an_own_push_unless_the_layout_says_otherwise() {
    for (ignores_own, values, count) in [(false, [0, 1, 0], 2), (true, [0, 0, 0], 1)] {
        let mut world = world(Consistency::Asp, ignores_own);
        prefetch(&mut world);
        push(&mut world, W);
        assert_eq!(pull(&mut world, &KEYS), values);
        assert_eq!(pull_count(&world), count);
    }
}

#[test]
fn it_is_thrown_away_when_something_newer_was_read() {
    let mut world = world(Consistency::Asp, false);
    prefetch(&mut world);
    // Another task pushes, and a pull sees it.
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(pull(&mut world, &[5]), [7]);
    assert_eq!(pull(&mut world, &KEYS), [0, 7, 0], "reads never go back");
    assert_eq!(pull_count(&world), 3);
}

#[test]
fn it_is_thrown_away_when_it_is_not_fresh_enough_any_more() {
    let mut world = world(Consistency::Ssp { staleness: 1 }, false);
    world.lanes[0].other = 0;
    prefetch(&mut world);
    tick(&mut world);
    assert_eq!(pull(&mut world, &KEYS), [0, 0, 0]);
    assert_eq!(pull_count(&world), 1, "m was 0, and a pull at clock 1 needs 0");
    prefetch(&mut world);
    tick(&mut world);
    world.lanes[0].other = 1;
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(pull(&mut world, &KEYS), [0, 7, 0]);
    assert_eq!(pull_count(&world), 3, "m was 0, and a pull at clock 2 needs 1");
}

#[test]
fn a_pull_waits_for_the_answer_that_is_under_way() {
    let mut world = world(Consistency::Asp, false);
    settle(&mut world);
    assert_eq!(world.agent.prefetch(world.now, W, part(&KEYS)), Ok(()));
    world.step(0, 3, (1, 0));
    assert_eq!(pull(&mut world, &KEYS), [0, 0, 0], "asked again after the reset");
    assert_eq!(pull_count(&world), 2);
}

#[test]
fn under_bsp_nothing_is_asked_and_bad_parts_are_errors() {
    let mut bsp = world(Consistency::Bsp, false);
    prefetch(&mut bsp);
    assert_eq!(pull_count(&bsp), 0);
    let mut asp = world(Consistency::Asp, false);
    let error = asp.agent.prefetch(asp.now, W, part(&[3, 3]));
    assert!(matches!(error, Err(Error::KeysNotAscending { .. })), "{error:?}");
}
