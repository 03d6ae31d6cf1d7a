//! A prefetch is used if a pull at that time might have returned the same, and is dropped otherwise.

mod common;

use common::{World, layout, spec};
use matrix::{Consistency, Element, Error, Keys, MatrixId, Partitioner, Selection, ValuesMut};
use rpc::Message;
use worker::{CallOutput, Prefetch};

const W: MatrixId = MatrixId(0);
const OTHER: MatrixId = MatrixId(1);
const KEYS: [u64; 3] = [2, 5, 11];

fn world(consistency: Consistency, ignores_own: bool) -> World {
    let partitioner = Partitioner::Hash { partition_count: 4 };
    let specs = vec![spec("w", consistency, 1, partitioner.clone()), spec("o", consistency, 1, partitioner)];
    let mut layout = layout(specs, 1, 1 << 20);
    layout.prefetch = if ignores_own { Prefetch::Stale } else { Prefetch::Exact };
    World::new(layout)
}

fn part(keys: &[u64]) -> Selection<'_> {
    Selection::Rows(Keys::Sorted(keys))
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
    assert_eq!(world.run(), Ok(CallOutput::Done));
}

fn pull(world: &mut World, keys: &[u64]) -> Vec<i64> {
    world.agent.pull(world.now, W, part(keys));
    assert_eq!(world.run(), Ok(CallOutput::ValuesReady));
    let mut out = vec![0; keys.len()];
    assert_eq!(world.agent.read_pulled(ValuesMut::I64(&mut out)), Ok(()));
    out
}

fn tick(world: &mut World) {
    world.agent.tick(world.now);
    assert_eq!(world.run(), Ok(CallOutput::Done));
}

fn pull_count(world: &World) -> usize {
    world.sent.iter().filter(|(_, message)| matches!(message, Message::Pull(_))).count()
}

/// Sets the clock of the other task, and answers the pulls that waited for it.
fn other_comes_to(world: &mut World, clock: u64) {
    world.lanes[0].other = clock;
    let mut answers = Vec::new();
    world.lanes[0].release(&mut answers);
    world.wires[0].to_agent.extend(answers);
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
fn it_is_thrown_away_when_an_earlier_ask_was_answered_after_it() {
    let mut world = world(Consistency::Asp, false);
    settle(&mut world);
    assert_eq!(world.agent.prefetch(world.now, W, part(&[5])), Ok(()));
    assert_eq!(world.agent.prefetch(world.now, W, part(&KEYS)), Ok(()));
    (0..2).for_each(|_| world.step(0, 0, (0, 0)));
    // The first answer is lost, and the connection breaks while its pull waits.
    assert!(world.wires[0].to_agent.pop_front().is_some());
    world.step(0, 1, (0, 0));
    world.agent.pull(world.now, W, part(&[5]));
    world.step(0, 3, (0, 0));
    // Another task pushes before the pull is sent again.
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(world.run(), Ok(CallOutput::ValuesReady));
    let mut out = [0];
    assert_eq!(world.agent.read_pulled(ValuesMut::I64(&mut out)), Ok(()));
    assert_eq!(out, [7]);
    assert_eq!(pull(&mut world, &KEYS), [0, 7, 0], "reads never go back");
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
fn a_bad_part_is_an_error_and_nothing_is_asked() {
    let mut world = world(Consistency::Asp, false);
    let error = world.agent.prefetch(world.now, W, part(&[3, 3]));
    assert!(matches!(error, Err(Error::KeysNotAscending { .. })), "{error:?}");
    let error = world.agent.prefetch_next(world.now, MatrixId(2), part(&[3]));
    assert!(matches!(error, Err(Error::NoSuchMatrix { id: 2, count: 2 })), "{error:?}");
    settle(&mut world);
    assert_eq!(pull_count(&world), 0);
}

#[test]
fn under_bsp_an_answer_is_of_its_clock_alone() {
    let mut world = world(Consistency::Bsp, false);
    world.lanes[0].other = 0;
    push(&mut world, W);
    tick(&mut world);
    // The prefetch is sent after the tick. The lane defers it until the other task has reached the clock, and then the
    // answer has all pushes.
    prefetch(&mut world);
    assert_eq!(world.lanes[0].held.len(), 1);
    world.lanes[0].rows.insert((0, 0, 11), 7);
    other_comes_to(&mut world, 1);
    assert_eq!(pull(&mut world, &KEYS), [0, 1, 7]);
    assert_eq!(pull_count(&world), 1);
    // It is not used at another clock, although nothing was pushed.
    prefetch(&mut world);
    tick(&mut world);
    world.lanes[0].rows.insert((0, 0, 11), 8);
    other_comes_to(&mut world, 2);
    assert_eq!(pull(&mut world, &KEYS), [0, 1, 8]);
    assert_eq!(pull_count(&world), 3);
    let counts = world.agent.ahead_counts();
    assert_eq!((counts.asked, counts.used, counts.unused), (2, 1, 1));
}

/// Prefetches for the next clock, pushes, ticks and pulls. Returns whether the prefetch was sent, the values, and the
/// number of pulls that were sent.
fn ahead_of_the_push(world: &mut World) -> (bool, Vec<i64>, usize) {
    let asked = world.agent.prefetch_next(world.now, W, part(&KEYS)).expect("keys of the matrix");
    settle(world);
    push(world, W);
    tick(world);
    world.lanes[0].other = world.agent.clock();
    let seen = pull(world, &KEYS);
    (asked, seen, pull_count(world))
}

#[test]
fn ahead_of_the_push_is_asked_only_where_a_read_may_miss_it() {
    for consistency in [Consistency::Bsp, Consistency::Asp, Consistency::Ssp { staleness: 1 }] {
        let mut exact = world(consistency, false);
        assert_eq!(ahead_of_the_push(&mut exact), (false, vec![0, 1, 0], 1), "{consistency:?}");
        let mut stale = world(consistency, true);
        let expected = match consistency {
            Consistency::Bsp => (false, vec![0, 1, 0], 1),
            _ => (true, vec![0, 0, 0], 1),
        };
        assert_eq!(ahead_of_the_push(&mut stale), expected, "{consistency:?}");
        if consistency != Consistency::Bsp {
            assert_eq!(
                ahead_of_the_push(&mut stale),
                (true, vec![0, 1, 0], 2),
                "the push of one step, no more"
            );
        }
    }
    // With staleness 0 a lane also waits for the tick of this task, and so for its push.
    let mut strict = world(Consistency::Ssp { staleness: 0 }, true);
    assert_eq!(ahead_of_the_push(&mut strict), (true, vec![0, 1, 0], 1));
}

#[test]
fn an_answer_for_the_next_clock_waits_for_the_others_as_a_pull_would() {
    let mut world = world(Consistency::Ssp { staleness: 1 }, true);
    world.lanes[0].other = 0;
    tick(&mut world);
    assert_eq!(world.agent.prefetch_next(world.now, W, part(&KEYS)), Ok(true));
    settle(&mut world);
    assert_eq!(world.lanes[0].held.len(), 1, "a pull at clock 2 needs 1");
    // The prefetch is not for this clock.
    assert_eq!(pull(&mut world, &KEYS), [0, 0, 0]);
    assert_eq!(pull_count(&world), 2);
    world.lanes[0].other = 1;
    tick(&mut world);
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(pull(&mut world, &KEYS), [0, 7, 0]);
    assert_eq!(pull_count(&world), 3, "a later read forbade it");
}

#[test]
fn reads_do_not_go_back_behind_an_answer_for_a_later_clock() {
    let mut world = world(Consistency::Ssp { staleness: 1 }, true);
    world.lanes[0].other = 0;
    tick(&mut world);
    // The prefetch for the later clock is sent first and answered last.
    assert_eq!(world.agent.prefetch_next(world.now, W, part(&KEYS)), Ok(true));
    assert_eq!(world.agent.prefetch(world.now, W, part(&[5])), Ok(()));
    settle(&mut world);
    tick(&mut world);
    world.lanes[0].rows.insert((0, 0, 5), 7);
    other_comes_to(&mut world, 1);
    assert_eq!(pull(&mut world, &KEYS), [0, 7, 0]);
    assert_eq!(pull(&mut world, &[5]), [7]);
}

#[test]
fn what_is_switched_off_is_not_asked() {
    let partitioner = Partitioner::Hash { partition_count: 4 };
    let mut layout = layout(vec![spec("w", Consistency::Asp, 1, partitioner)], 1, 1 << 20);
    layout.prefetch = Prefetch::Off;
    let mut world = World::new(layout);
    prefetch(&mut world);
    assert_eq!(world.agent.prefetch_next(world.now, W, part(&KEYS)), Ok(false));
    settle(&mut world);
    assert_eq!(pull_count(&world), 0);
}

#[test]
fn what_is_asked_and_never_pulled_is_dropped_beyond_a_number() {
    let mut world = world(Consistency::Asp, false);
    for _ in 0..20 {
        prefetch(&mut world);
    }
    let counts = world.agent.ahead_counts();
    assert_eq!((counts.asked, counts.used, counts.unused), (20, 0, 12));
    world.agent.barrier(world.now, None);
    assert_eq!(world.run(), Ok(CallOutput::BarrierSum(Vec::new())));
    assert_eq!(world.agent.ahead_counts().unused, 20, "behind a barrier all see all");
}
