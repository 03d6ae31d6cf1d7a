//! The answer of a prefetch is used if a pull at that time might have returned the same, and is dropped otherwise: the
//! wait for its ticket returns what a pull returns.

mod common;

use common::{World, fault, layout, spec};
use matrix::{
    Consistency, Element, Error, Keys, MatrixId, Partitioner, Prefetch, PullTicket, Selection, ValuesMut,
};
use rpc::Message;
use rpc::message::FaultKind;
use worker::CallOutput;

const W: MatrixId = MatrixId(0);
const OTHER: MatrixId = MatrixId(1);
const KEYS: [u64; 3] = [2, 5, 11];

fn world(consistency: Consistency) -> World {
    let partitioner = Partitioner::Hash { partition_count: 4 };
    let specs = vec![spec("w", consistency, 1, partitioner.clone()), spec("o", consistency, 1, partitioner)];
    let mut layout = layout(specs, 1, 1 << 20);
    layout.prefetch = Prefetch::Exact;
    World::new(layout)
}

fn part(keys: &[u64]) -> Selection<'_> {
    Selection::Rows(Keys::Sorted(keys))
}

/// Prefetches for the current clock.
fn prefetch(world: &mut World) -> PullTicket {
    prefetch_at(world, 0)
}

/// Prefetches for the clock that is this many steps ahead.
fn prefetch_at(world: &mut World, steps: u64) -> PullTicket {
    let clock = world.agent.clock() + steps;
    let ticket = world.agent.prefetch(world.now, W, part(&KEYS), clock);
    settle(world);
    ticket
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
    read(world, keys.len())
}

fn wait(world: &mut World, ticket: &PullTicket) -> Vec<i64> {
    world.agent.wait(world.now, ticket);
    read(world, KEYS.len())
}

fn read(world: &mut World, count: usize) -> Vec<i64> {
    assert_eq!(world.run(), Ok(CallOutput::ValuesReady));
    let mut out = vec![0; count];
    assert_eq!(world.agent.read_pulled(ValuesMut::I64(&mut out)), Ok(()));
    out
}

/// Prefetches one row and then all, and delivers both requests. The first answer is lost.
fn two_prefetches_without_the_first_answer(world: &mut World) -> [PullTicket; 2] {
    settle(world);
    let first = world.agent.prefetch(world.now, W, part(&[5]), 0);
    let second = world.agent.prefetch(world.now, W, part(&KEYS), 0);
    (0..2).for_each(|_| world.step(0, 0, (0, 0)));
    assert!(world.wires[0].to_agent.pop_front().is_some());
    [first, second]
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
fn it_is_used_once_when_nothing_has_changed() {
    let mut world = world(Consistency::Asp);
    let ticket = prefetch(&mut world);
    push(&mut world, OTHER);
    tick(&mut world);
    assert_eq!(wait(&mut world, &ticket), [0, 0, 0]);
    assert_eq!(pull_count(&world), 1, "the push was to another matrix");
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(wait(&mut world, &ticket), [0, 7, 0]);
    assert_eq!(pull_count(&world), 2, "an answer is used once");
}

#[test]
fn a_pull_of_the_same_keys_does_not_take_the_answer_of_a_ticket() {
    let mut world = world(Consistency::Asp);
    let tickets = [prefetch(&mut world), prefetch(&mut world)];
    world.agent.pull(world.now, OTHER, part(&KEYS));
    assert_eq!(world.run(), Ok(CallOutput::ValuesReady));
    assert_eq!(pull_count(&world), 3);
    // Tickets of equal pulls are different, and may be waited for in any order.
    assert_eq!(wait(&mut world, &tickets[0]), [0, 0, 0]);
    assert_eq!(wait(&mut world, &tickets[1]), [0, 0, 0]);
    assert_eq!((pull_count(&world), world.agent.prefetch_counts().used), (3, 2));
}

#[test]
fn it_is_thrown_away_after_an_own_push() {
    let mut world = world(Consistency::Asp);
    let ticket = prefetch(&mut world);
    push(&mut world, W);
    assert_eq!(wait(&mut world, &ticket), [0, 1, 0]);
    assert_eq!(pull_count(&world), 2);
}

#[test]
fn it_is_thrown_away_when_something_newer_was_read() {
    let mut world = world(Consistency::Asp);
    let ticket = prefetch(&mut world);
    // Another task pushes, and a pull sees it.
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(pull(&mut world, &[5]), [7]);
    assert_eq!(wait(&mut world, &ticket), [0, 7, 0], "reads never go back");
    assert_eq!(pull_count(&world), 3);
}

#[test]
fn it_is_thrown_away_when_an_earlier_ask_was_answered_after_it() {
    let mut world = world(Consistency::Asp);
    let [first, second] = two_prefetches_without_the_first_answer(&mut world);
    // The connection breaks while the first pull waits.
    world.step(0, 1, (0, 0));
    world.agent.wait(world.now, &first);
    world.step(0, 3, (0, 0));
    // Another task pushes before the pull is sent again.
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(read(&mut world, 1), [7]);
    assert_eq!(wait(&mut world, &second), [0, 7, 0], "reads never go back");
}

#[test]
fn it_is_thrown_away_when_it_is_not_fresh_enough_any_more() {
    let mut world = world(Consistency::Ssp { staleness: 1 });
    world.lanes[0].other = 0;
    let ticket = prefetch(&mut world);
    tick(&mut world);
    assert_eq!(wait(&mut world, &ticket), [0, 0, 0]);
    assert_eq!(pull_count(&world), 1, "m was 0, and a pull at clock 1 needs 0");
    let ticket = prefetch(&mut world);
    tick(&mut world);
    world.lanes[0].other = 1;
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(wait(&mut world, &ticket), [0, 7, 0]);
    assert_eq!(pull_count(&world), 3, "m was 0, and a pull at clock 2 needs 1");
}

#[test]
fn a_pull_waits_for_the_answer_that_is_under_way() {
    let mut world = world(Consistency::Asp);
    settle(&mut world);
    let ticket = world.agent.prefetch(world.now, W, part(&KEYS), 0);
    world.step(0, 3, (1, 0));
    assert_eq!(wait(&mut world, &ticket), [0, 0, 0], "asked again after the reset");
    assert_eq!(pull_count(&world), 2);
}

#[test]
fn a_bad_selection_is_an_error_of_the_wait_and_nothing_is_asked() {
    let mut world = world(Consistency::Asp);
    let unsorted = world.agent.prefetch(world.now, W, part(&[3, 3]), 0);
    let missing = world.agent.prefetch(world.now, MatrixId(2), part(&[3]), 1);
    settle(&mut world);
    world.agent.wait(world.now, &unsorted);
    let error = world.run();
    assert!(matches!(error, Err(Error::KeysNotAscending { .. })), "{error:?}");
    world.agent.wait(world.now, &missing);
    let error = world.run();
    assert!(matches!(error, Err(Error::NoSuchMatrix { id: 2, count: 2 })), "{error:?}");
    assert_eq!((pull_count(&world), world.agent.prefetch_counts().sent), (0, 0));
}

#[test]
fn under_bsp_an_answer_is_of_its_clock_alone() {
    let mut world = world(Consistency::Bsp);
    world.lanes[0].other = 0;
    push(&mut world, W);
    tick(&mut world);
    // The prefetch is sent after the tick. The lane defers it until the other task has reached the clock, and then the
    // answer has all pushes.
    let ticket = prefetch(&mut world);
    assert_eq!(world.lanes[0].deferred_pulls.len(), 1);
    world.lanes[0].rows.insert((0, 0, 11), 7);
    other_comes_to(&mut world, 1);
    assert_eq!(wait(&mut world, &ticket), [0, 1, 7]);
    assert_eq!(pull_count(&world), 1);
    // It is not used at another clock, although nothing was pushed.
    let ticket = prefetch(&mut world);
    tick(&mut world);
    world.lanes[0].rows.insert((0, 0, 11), 8);
    other_comes_to(&mut world, 2);
    assert_eq!(wait(&mut world, &ticket), [0, 1, 8]);
    assert_eq!(pull_count(&world), 3);
    let counts = world.agent.prefetch_counts();
    assert_eq!((counts.sent, counts.used, counts.dropped), (2, 1, 1));
}

#[test]
fn for_the_next_clock_it_is_asked_behind_the_push() {
    for consistency in [Consistency::Bsp, Consistency::Asp, Consistency::Ssp { staleness: 1 }] {
        let mut world = world(consistency);
        let ticket = prefetch_at(&mut world, 1);
        assert_eq!(pull_count(&world), 0, "{consistency:?}");
        push(&mut world, W);
        tick(&mut world);
        world.lanes[0].other = world.agent.clock();
        assert_eq!((wait(&mut world, &ticket), pull_count(&world)), (vec![0, 1, 0], 1), "{consistency:?}");
    }
}

#[test]
fn what_is_asked_several_steps_ahead_is_sent_behind_the_tick_that_begins_its_step() {
    for consistency in [Consistency::Bsp, Consistency::Asp] {
        let mut world = world(consistency);
        let ticket = prefetch_at(&mut world, 3);
        for clock in 1..=3 {
            push(&mut world, W);
            let before = world.sent.len();
            tick(&mut world);
            let kinds: Vec<bool> =
                world.sent[before..].iter().map(|(_, sent)| matches!(sent, Message::Pull(_))).collect();
            assert_eq!(kinds == [false, true], clock == 3, "the tick, then the pull: {kinds:?}");
            assert_eq!(pull_count(&world), usize::from(clock == 3), "{consistency:?} at {clock}");
        }
        world.lanes[0].other = 3;
        assert_eq!(wait(&mut world, &ticket), [0, 3, 0]);
        assert_eq!(pull_count(&world), 1);
    }
}

#[test]
fn a_wait_before_its_clock_pulls_and_sends_no_prefetch_later() {
    let mut world = world(Consistency::Ssp { staleness: 1 });
    let ticket = prefetch_at(&mut world, 1);
    world.lanes[0].rows.insert((0, 0, 5), 7);
    assert_eq!(wait(&mut world, &ticket), [0, 7, 0]);
    assert_eq!(pull_count(&world), 1);
    tick(&mut world);
    settle(&mut world);
    assert_eq!(pull_count(&world), 1);
}

#[test]
fn what_is_switched_off_is_pulled_at_the_wait() {
    let partitioner = Partitioner::Hash { partition_count: 4 };
    let mut layout = layout(vec![spec("w", Consistency::Asp, 1, partitioner)], 1, 1 << 20);
    layout.prefetch = Prefetch::Off;
    let mut world = World::new(layout);
    let tickets = [prefetch(&mut world), prefetch_at(&mut world, 1)];
    tick(&mut world);
    settle(&mut world);
    assert_eq!(pull_count(&world), 0);
    world.lanes[0].rows.insert((0, 0, 5), 7);
    for (ticket, count) in tickets.iter().zip(1..) {
        assert_eq!((wait(&mut world, ticket), pull_count(&world)), (vec![0, 7, 0], count));
    }
}

#[test]
fn what_is_asked_and_never_read_is_dropped_beyond_a_number_and_at_a_barrier() {
    let mut world = world(Consistency::Asp);
    let tickets: Vec<PullTicket> = (0..40).map(|_| prefetch(&mut world)).collect();
    let counts = world.agent.prefetch_counts();
    assert_eq!((counts.sent, counts.used, counts.dropped), (40, 0, 8));
    let queued: Vec<PullTicket> = (0..40).map(|_| prefetch_at(&mut world, 1)).collect();
    world.agent.barrier(world.now, None);
    assert_eq!(world.run(), Ok(CallOutput::BarrierSum(Vec::new())));
    assert_eq!(world.agent.prefetch_counts().dropped, 40, "behind a barrier all see all");
    tick(&mut world);
    settle(&mut world);
    assert_eq!(pull_count(&world), 40, "what was not sent yet is dropped too");
    // A ticket is good for a pull, whatever became of its request.
    world.lanes[0].rows.insert((0, 0, 5), 7);
    for ticket in [&tickets[0], &tickets[39], &queued[0], &queued[39]] {
        assert_eq!(wait(&mut world, ticket), [0, 7, 0]);
    }
    assert_eq!((pull_count(&world), world.agent.prefetch_counts().used), (44, 0));
}

#[test]
fn a_stopped_agent_refuses_the_wait_with_the_reason() {
    let mut world = world(Consistency::Asp);
    let sent = prefetch(&mut world);
    world.agent.stop("the job is over");
    let late = prefetch(&mut world);
    let stopped = Error::Stopped { reason: "the job is over".into() };
    for ticket in [&sent, &late] {
        world.agent.wait(world.now, ticket);
        assert_eq!(world.agent.take_result(), Some(Err(stopped.clone())));
    }
}

#[test]
fn it_is_thrown_away_when_an_earlier_pull_was_refused_and_sent_again_after_it() {
    let mut world = world(Consistency::Asp);
    let [first, second] = two_prefetches_without_the_first_answer(&mut world);
    let Some((0, Message::Pull(sent))) = world.sent.first().cloned() else { panic!("{:?}", world.sent) };
    // The lane was busy at the first pull.
    world.agent.on_message(world.now, 0, fault(sent.request, FaultKind::Busy, 10));
    world.step(0, 1, (0, 0));
    // Another task pushes before the first pull is sent again.
    world.lanes[0].rows.insert((0, 0, 5), 7);
    world.agent.wait(world.now, &first);
    assert_eq!(read(&mut world, 1), [7]);
    assert_eq!(wait(&mut world, &second), [0, 7, 0], "reads never go back");
}
