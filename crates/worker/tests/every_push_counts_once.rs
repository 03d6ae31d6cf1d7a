//! Given an agent and lanes whose connections break at any point, and whose answers come twice or never; when the agent
//! pulls, pushes and ticks; then every key is the sum of all pushes, and the task sees its own pushes. The lanes check
//! that push ids have no gaps, that no tick overtakes a push, and that nothing is sent without a connection.

mod common;

use std::collections::BTreeMap;

use common::{World, layout, spec};
use matrix::{Consistency, Element, Keys, MatrixId, Partitioner, PullTicket, Selection, ValuesMut};
use proptest::prelude::*;
use worker::CallOutput;

#[derive(Clone, Debug)]
enum Act {
    Pull { matrix: u32, keys: Vec<u64> },
    Push { matrix: u32, keys: Vec<u64>, value: i64 },
    PullRange { matrix: u32, start: u64, count: u64 },
    PushRange { matrix: u32, start: u64, count: u64, value: i64 },
    Prefetch { matrix: u32, keys: Vec<u64> },
    Tick,
    Barrier,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    // There are few key lists, so that they repeat. Some of them are long enough for digests.
    let keys = (0u64..4, 1u64..60, 1u64..500).prop_map(|(start, count, step)| {
        (0..count).map(|i| start * 7 + i * step % (1 << 20)).collect::<Vec<_>>()
    });
    let keys = (keys, 0u8..3).prop_map(|(mut keys, fixed)| {
        if fixed > 0 {
            keys = (0..30 * u64::from(fixed)).map(|i| i * i).collect();
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    });
    let act =
        (0u8..12, 0u32..3, keys, -9i64..9, 0u64..100).prop_map(
            |(kind, matrix, keys, value, start)| match kind {
                0 | 1 => Act::Pull { matrix, keys },
                2..=4 => Act::Push { matrix, keys, value },
                5 => Act::PullRange { matrix, start, count: 1 + start % 40 },
                6 => Act::PushRange { matrix, start, count: 1 + start % 40, value },
                7 => Act::Prefetch { matrix, keys },
                8..=10 => Act::Tick,
                _ => Act::Barrier,
            },
        );
    prop::collection::vec(act, 1..30)
}

/// Steps of the network: lane, kind (mostly delivery), and the messages that still pass before a reset.
fn moves() -> impl Strategy<Value = Vec<(usize, u8, usize, usize)>> {
    let kind = prop_oneof![6 => Just(0u8), 6 => Just(1u8), 1 => Just(2u8), 1 => Just(3u8)];
    prop::collection::vec((0usize..3, kind, 0usize..4, 0usize..3), 0..300)
}

struct Model {
    sums: BTreeMap<(u32, u64), i64>,
}

impl Model {
    fn push(&mut self, matrix: u32, keys: impl Iterator<Item = u64>, value: i64) {
        for key in keys {
            *self.sums.entry((matrix, key)).or_default() += value + key as i64;
        }
    }

    fn expect(&self, matrix: u32, keys: impl Iterator<Item = u64>) -> Vec<i64> {
        let sum = |key| self.sums.get(&(matrix, key)).copied().unwrap_or(0);
        keys.flat_map(|key| [sum(key), 2 * sum(key)]).collect()
    }
}

fn values(keys: impl Iterator<Item = u64>, value: i64) -> Vec<i64> {
    keys.flat_map(|key| [value + key as i64, 2 * (value + key as i64)]).collect()
}

/// Runs steps of the network until the call ends.
fn finish_call(world: &mut World, moves: &mut std::vec::IntoIter<(usize, u8, usize, usize)>) -> CallOutput {
    loop {
        if let Some(outcome) = world.agent.take_result() {
            world.carry_out();
            return outcome.expect("nothing that happens here is an error");
        }
        let Some((lane, kind, there, back)) = moves.next() else {
            return world.run().expect("all are there");
        };
        world.step(lane, kind, (there, back));
        if kind == 3 {
            world.wait();
        }
    }
}

fn act(
    world: &mut World,
    model: &mut Model,
    tickets: &mut Vec<PullTicket>,
    act: &Act,
) -> Option<(u32, Vec<u64>)> {
    let now = world.now;
    let rows = |keys: &[u64]| keys.to_vec();
    match act {
        Act::Pull { matrix, keys } => {
            let (id, selection) = (MatrixId(*matrix), Selection::Rows(Keys::Sorted(keys)));
            let is_same = |ticket: &PullTicket| ticket.matrix() == id && ticket.selection() == selection;
            match tickets.iter().rposition(is_same) {
                Some(at) => world.agent.wait(now, &tickets.remove(at)),
                None => world.agent.pull(now, id, selection),
            }
            return Some((*matrix, rows(keys)));
        }
        Act::PullRange { matrix, start, count } => {
            world.agent.pull(now, MatrixId(*matrix), Selection::Rows(Keys::Range(*start, start + count)));
            return Some((*matrix, (*start..start + count).collect()));
        }
        Act::Push { matrix, keys, value } => {
            model.push(*matrix, keys.iter().copied(), *value);
            let values = i64::owned(values(keys.iter().copied(), *value));
            world.agent.push(now, MatrixId(*matrix), Selection::Rows(Keys::Sorted(keys)), values.as_values());
        }
        Act::PushRange { matrix, start, count, value } => {
            let keys = *start..start + count;
            model.push(*matrix, keys.clone(), *value);
            let values = i64::owned(values(keys.clone(), *value));
            let part = Selection::Rows(Keys::Range(keys.start, keys.end));
            world.agent.push(now, MatrixId(*matrix), part, values.as_values());
        }
        Act::Prefetch { matrix, keys } => {
            let clock = world.agent.clock();
            let selection = Selection::Rows(Keys::Sorted(keys));
            tickets.push(world.agent.prefetch(now, MatrixId(*matrix), selection, clock));
        }
        Act::Tick => world.agent.tick(now),
        Act::Barrier => world.agent.barrier(now, None),
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn under_resets_echoes_and_losses(
        acts in acts(),
        moves in moves(),
        window in prop_oneof![Just(1u64), Just(2_000), Just(1 << 20)],
        lane_count in 1u16..4,
    ) {
        let specs = vec![
            spec("a", Consistency::Asp, 2, Partitioner::Hash { partition_count: 5 }),
            spec("r", Consistency::Ssp { staleness: 1 }, 2, Partitioner::Range { partition_count: 4 }),
            spec("e", Consistency::Asp, 2, Partitioner::Explicit { starts: vec![0, 10, 17, 1000, 5000] }),
        ];
        let mut world = World::new(layout(specs, lane_count, window));
        let mut model = Model { sums: BTreeMap::new() };
        let mut tickets = Vec::new();
        let moves: Vec<_> = moves.into_iter().map(|(lane, k, a, b)| (lane % usize::from(lane_count), k, a, b)).collect();
        let mut moves = moves.into_iter();
        for one in &acts {
            let pulled = act(&mut world, &mut model, &mut tickets, one);
            if matches!(one, Act::Prefetch { .. }) {
                continue;
            }
            finish_call(&mut world, &mut moves);
            if let Some((matrix, keys)) = pulled {
                let mut out = vec![0i64; keys.len() * 2];
                world.agent.read_pulled(ValuesMut::I64(&mut out)).unwrap();
                prop_assert_eq!(out, model.expect(matrix, keys.into_iter()));
            }
        }
        world.agent.finish(world.now);
        finish_call(&mut world, &mut moves);
        let mut sums = BTreeMap::new();
        for ((matrix, column, key), value) in world.lanes.iter().flat_map(|lane| &lane.rows) {
            prop_assert!(*column < 2);
            if *column == 0 {
                sums.insert((*matrix, *key), *value);
            }
        }
        prop_assert_eq!(sums, model.sums);
        prop_assert!(world.lanes.iter().all(|lane| lane.has_left && lane.clock == world.agent.clock()));
    }
}
