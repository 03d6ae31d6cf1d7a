//! A cached row serves a later pull exactly as long as that pull might have read it, and no longer.

mod common;

use common::{World, layout, spec};
use matrix::{Consistency, Element, Keys, MatrixId, Partitioner, Selection, ValuesMut};
use rpc::Message;
use rpc::message::KeyList;
use worker::CallOutput;

const W: MatrixId = MatrixId(0);
const KEYS: [u64; 4] = [2, 5, 11, 40];
const SSP: Consistency = Consistency::Ssp { staleness: 1 };
/// Bytes for more rows than these tests read.
const ROOM: u64 = 1 << 20;

fn world(consistency: Consistency, cache_bytes: u64) -> World {
    let mut layout =
        layout(vec![spec("w", consistency, 2, Partitioner::Hash { partition_count: 4 })], 2, 1 << 20);
    layout.cache_bytes = cache_bytes;
    let mut world = World::new(layout);
    for lane in 0..2 {
        others_are_at(&mut world, lane, 0);
        for key in KEYS {
            set(&mut world, key, key as i64);
        }
    }
    world
}

fn others_are_at(world: &mut World, lane: usize, clock: u64) {
    world.lanes[lane].other = clock;
}

/// Sets a row, as a push of another task would.
fn set(world: &mut World, key: u64, value: i64) {
    for lane in 0..2 {
        for column in 0..2 {
            world.lanes[lane].rows.insert((0, column, key), value);
        }
    }
}

/// The first column of the values of a pull. Both columns are equal.
fn pull(world: &mut World, keys: &[u64]) -> Vec<i64> {
    world.agent.pull(world.now, W, Selection::Rows(Keys::Sorted(keys)));
    read(world, keys.len())
}

fn read(world: &mut World, count: usize) -> Vec<i64> {
    assert_eq!(world.run(), Ok(CallOutput::ValuesReady));
    let mut out = vec![-1; 2 * count];
    assert_eq!(world.agent.read_pulled(ValuesMut::I64(&mut out)), Ok(()));
    out.chunks(2).map(|row| if row[0] == row[1] { row[0] } else { panic!("{row:?}") }).collect()
}

fn push(world: &mut World, keys: &[u64]) {
    let ones = i64::owned(vec![1; 2 * keys.len()]);
    world.agent.push(world.now, W, Selection::Rows(Keys::Sorted(keys)), ones.as_values());
    assert_eq!(world.run(), Ok(CallOutput::Done));
}

fn tick(world: &mut World) {
    world.agent.tick(world.now);
    assert_eq!(world.run(), Ok(CallOutput::Done));
}

/// The keys of all pulls that were sent since the last call, ascending.
fn asked(world: &mut World) -> Vec<u64> {
    let mut keys: Vec<u64> = Vec::new();
    for (_, message) in world.sent.drain(..) {
        if let Message::Pull(pull) = message {
            match pull.keys {
                KeyList::Listed(list) => keys.extend(list),
                KeyList::Range { start, end } => keys.extend(start..end),
                KeyList::Cached { .. } => panic!("lists of a few keys are always sent"),
            }
        }
    }
    keys.sort_unstable();
    keys
}

#[test]
fn under_ssp_a_row_serves_until_a_pull_must_see_more() {
    let mut world = world(SSP, ROOM);
    assert_eq!(pull(&mut world, &KEYS), [2, 5, 11, 40]);
    assert_eq!(asked(&mut world), KEYS);
    set(&mut world, 5, 50);
    assert_eq!(pull(&mut world, &KEYS), [2, 5, 11, 40]);
    tick(&mut world);
    assert_eq!(pull(&mut world, &[5, 11]), [5, 11], "m was 0, and a pull at clock 1 needs 0");
    assert!(asked(&mut world).is_empty());
    tick(&mut world);
    (0..2).for_each(|lane| others_are_at(&mut world, lane, 1));
    assert_eq!(pull(&mut world, &[5, 11]), [50, 11], "m was 0, and a pull at clock 2 needs 1");
    assert_eq!(asked(&mut world), [5, 11]);
    let counts = world.agent.cache_counts();
    assert_eq!((counts.hits, counts.misses, counts.evictions), (6, 6, 0));
}

#[test]
fn a_row_that_the_task_pushes_to_is_read_again_and_only_that() {
    let mut world = world(SSP, ROOM);
    pull(&mut world, &KEYS);
    push(&mut world, &[5]);
    asked(&mut world);
    set(&mut world, 2, 20);
    assert_eq!(pull(&mut world, &KEYS), [2, 6, 11, 40]);
    assert_eq!(asked(&mut world), [5]);
    // Rows that are not cached are pulled together with cached ones.
    assert_eq!(pull(&mut world, &[2, 3, 5, 7]), [2, 0, 6, 0]);
    assert_eq!(asked(&mut world), [3, 7]);
}

#[test]
fn under_bsp_a_row_serves_within_its_clock_alone() {
    let mut world = world(Consistency::Bsp, ROOM);
    pull(&mut world, &KEYS);
    assert_eq!(pull(&mut world, &KEYS), [2, 5, 11, 40]);
    assert_eq!(asked(&mut world), KEYS);
    tick(&mut world);
    (0..2).for_each(|lane| others_are_at(&mut world, lane, 1));
    set(&mut world, 5, 50);
    assert_eq!(pull(&mut world, &KEYS), [2, 50, 11, 40]);
    assert_eq!(asked(&mut world), KEYS);
}

#[test]
fn where_nothing_is_promised_or_no_room_is_given_every_row_is_asked_for() {
    for (consistency, room) in [(Consistency::Asp, ROOM), (SSP, 0), (SSP, 79)] {
        let mut world = world(consistency, room);
        pull(&mut world, &KEYS);
        pull(&mut world, &KEYS);
        assert_eq!(asked(&mut world).len(), 8, "{consistency:?}, {room} bytes");
        assert_eq!(world.agent.cache_counts().hits, 0);
    }
}

#[test]
fn a_full_cache_loses_what_it_kept_longest_and_reads_it_again() {
    // The cache has room for two rows of two columns.
    let mut world = world(SSP, 2 * (64 + 16));
    assert_eq!(pull(&mut world, &[2, 5]), [2, 5]);
    assert_eq!(pull(&mut world, &[11]), [11]);
    asked(&mut world);
    set(&mut world, 2, 20);
    assert_eq!(pull(&mut world, &[2, 5, 11]), [20, 5, 11]);
    assert_eq!(asked(&mut world), [2]);
    // This pull has more rows than the cache has room for.
    assert_eq!(pull(&mut world, &KEYS).len(), 4);
    assert_eq!(pull(&mut world, &KEYS), [20, 5, 11, 40]);
    assert!(world.agent.cache_counts().evictions >= 4);
    push(&mut world, &[40]);
    assert_eq!(pull(&mut world, &KEYS), [20, 5, 11, 41], "own pushes, also of what was kept and lost");
}

#[test]
fn behind_a_barrier_everything_is_read_again() {
    let mut world = world(SSP, ROOM);
    pull(&mut world, &KEYS);
    world.agent.barrier(world.now, None);
    assert_eq!(world.run(), Ok(CallOutput::BarrierSum(Vec::new())));
    set(&mut world, 5, 50);
    asked(&mut world);
    assert_eq!(pull(&mut world, &KEYS), [2, 50, 11, 40]);
    assert_eq!(asked(&mut world), KEYS);
}

#[test]
fn a_pull_asked_ahead_asks_for_the_rest_and_is_thrown_away_when_what_was_kept_is_too_old() {
    let mut world = world(SSP, ROOM);
    pull(&mut world, &[2, 5]);
    asked(&mut world);
    let part = Selection::Rows(Keys::Sorted(&KEYS));
    let ticket = world.agent.prefetch(world.now, W, part, 0);
    world.agent.wait(world.now, &ticket);
    assert_eq!(read(&mut world, 4), [2, 5, 11, 40]);
    assert_eq!(asked(&mut world), [11, 40]);
    assert_eq!(world.agent.prefetch_counts().used, 1);
    tick(&mut world);
    let ticket = world.agent.prefetch(world.now, W, part, 1);
    tick(&mut world);
    (0..2).for_each(|lane| others_are_at(&mut world, lane, 1));
    set(&mut world, 5, 50);
    world.agent.wait(world.now, &ticket);
    assert_eq!(read(&mut world, 4), [2, 50, 11, 40], "m was 0 when they were read");
    assert_eq!(world.agent.prefetch_counts().dropped, 1);
}

#[cfg(feature = "fault-injection")]
#[test]
fn with_the_rule_of_freshness_taken_out_a_row_serves_any_pull() {
    let mut world = world(SSP, ROOM);
    let layout = world.agent.layout().clone();
    let agent = worker::AgentState::new(world.now, layout, 0, matrix::FunctionTable::builtin());
    world.agent = agent.unwrap().with_fault(Some(worker::InjectedFault::CacheIgnoresFreshness));
    assert_eq!(pull(&mut world, &KEYS), [2, 5, 11, 40]);
    tick(&mut world);
    tick(&mut world);
    (0..2).for_each(|lane| others_are_at(&mut world, lane, 1));
    set(&mut world, 5, 50);
    assert_eq!(pull(&mut world, &[5, 11]), [5, 11], "m was 0, and a pull at clock 2 needs 1");
}
