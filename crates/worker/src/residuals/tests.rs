use std::sync::Arc;
use std::time::Duration;

use matrix::{
    Axis, Consistency, ElementType, FunctionTable, Initializer, MatrixId, OwnedValues, Partitioner, PushRule,
    Selection, Storage,
};
use proptest::prelude::*;
use rpc::Message;
use rpc::layout::{JobLayout, LaneAddress, LayoutError, assign_partitions};
use rpc::message::{KeyList, Push, PushPosition, Welcome};

use super::*;
use crate::AgentEffect;

const ROUNDED: [WireType; 2] = [WireType::Bf16, WireType::Int8];
const LANES: u16 = 2;
const COLUMNS: usize = 2;

fn layout(wire: WireType) -> JobLayout {
    let spec = MatrixSpec {
        name: "w".into(),
        element: ElementType::F32,
        rows: 1000,
        columns: COLUMNS as u64,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner: Partitioner::Hash { partition_count: 4 },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    };
    let lane = |lane| LaneAddress::new(vec![format!("tcp:host{lane}:1")], 0);
    JobLayout {
        job: 1,
        task_count: 1,
        wait_limit: Duration::from_secs(10),
        window_bytes: 1 << 30,
        matrices: vec![spec],
        lanes: (0..LANES).map(lane).collect(),
        owners: vec![assign_partitions(4, LANES)],
        home: 0,
        prefetch: matrix::Prefetch::default(),
        wire: vec![wire],
    }
}

fn connect(agent: &mut AgentState, applied: PushPosition) {
    for lane in 0..LANES {
        let welcome = Welcome {
            request: 1,
            incarnation: 1,
            lanes: 1,
            window_bytes: 1 << 30,
            applied,
            clock: 0,
            minimum: 0,
        };
        agent.on_connected(Duration::ZERO, lane, &welcome);
    }
}

fn agent(wire: WireType) -> AgentState {
    let mut agent = AgentState::new(Duration::ZERO, layout(wire), 0, FunctionTable::builtin()).unwrap();
    agent.take_effects();
    connect(&mut agent, PushPosition::default());
    agent
}

/// The pushes that the agent sends now.
fn sent(agent: &mut AgentState) -> Vec<Push> {
    let push = |effect| match effect {
        AgentEffect::Send { message, .. } => match Arc::unwrap_or_clone(message) {
            Message::Push(push) => Some(push),
            _ => None,
        },
        AgentEffect::Connect { .. } | AgentEffect::Close { .. } => None,
    };
    agent.take_effects().into_iter().filter_map(push).collect()
}

fn push(agent: &mut AgentState, keys: &[u64], values: &[f32]) -> Vec<Push> {
    agent.push(Duration::ZERO, MatrixId(0), Selection::Rows(Keys::Sorted(keys)), Values::F32(values));
    agent.take_result().unwrap().unwrap();
    sent(agent)
}

/// Adds up the pushes by key. Keys come as lists, because a list of fewer than 16 keys has no digest.
fn add_up(sums: &mut BTreeMap<u64, [f64; COLUMNS]>, pushes: Vec<Push>) {
    for push in pushes {
        let OwnedValues::F32(values) = push.values.into_values() else { panic!("f32") };
        let keys: Vec<u64> = match push.keys {
            KeyList::Listed(keys) => keys,
            KeyList::Range { start, end } => (start..end).collect(),
            KeyList::Cached { .. } => panic!("short lists are always sent"),
        };
        for (key, row) in keys.into_iter().zip(values.chunks_exact(COLUMNS)) {
            let sum = sums.entry(key).or_default();
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        }
    }
}

/// Pushes of 1 to 8 keys.
fn pushes() -> impl Strategy<Value = Vec<Vec<(u64, [f32; COLUMNS])>>> {
    let row = (0u64..40, [-10.0f32..10.0, -1e-3f32..1e-3]);
    let push = prop::collection::btree_map(row.clone().prop_map(|(key, _)| key), row.prop_map(|r| r.1), 1..8);
    prop::collection::vec(push.prop_map(|push| push.into_iter().collect()), 1..30)
}

proptest! {
    #[test]
    fn all_that_was_pushed_has_arrived_at_a_barrier_and_at_the_end(pushes in pushes(), limit in 100u64..3000) {
        // Error bound: at most 30 values below 10 are summed in f32, and each residual is rounded when it is added.
        const TOLERANCE: f64 = 30.0 * 10.0 * 1.2e-7;
        for wire in ROUNDED {
            for ends in [false, true] {
                let mut agent = agent(wire);
                agent.residual_limit_bytes = limit;
                let (mut wanted, mut arrived) = (BTreeMap::new(), BTreeMap::new());
                for rows in &pushes {
                    let keys: Vec<u64> = rows.iter().map(|(key, _)| *key).collect();
                    let values: Vec<f32> = rows.iter().flat_map(|(_, row)| *row).collect();
                    for (key, row) in rows {
                        let sum: &mut [f64; COLUMNS] = wanted.entry(*key).or_default();
                        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
                    }
                    add_up(&mut arrived, push(&mut agent, &keys, &values));
                    prop_assert!(agent.matrices[0].residuals.bytes() <= limit);
                }
                if ends { agent.finish(Duration::ZERO) } else { agent.barrier(Duration::ZERO, None) }
                add_up(&mut arrived, sent(&mut agent));
                prop_assert_eq!(agent.matrices[0].residuals.bytes(), 0, "nothing stays behind");
                for (key, sums) in wanted {
                    for (sum, got) in sums.iter().zip(arrived.get(&key).copied().unwrap_or_default()) {
                        prop_assert!((sum - got).abs() <= TOLERANCE, "{wire:?}, key {key}: {sum} {got}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_push_carries_what_was_taken_from_the_one_before() {
    let mut agent = agent(WireType::Bf16);
    let value = |pushes: Vec<Push>| match pushes.into_iter().next().unwrap().values.into_values() {
        OwnedValues::F32(values) => values,
        other => panic!("{other:?}"),
    };
    // The value lies halfway between two bf16. The first push rounds down to the even one. In the second push the
    // residual half is added to the new half.
    let tie = 1.0 + 1.0 / 256.0;
    assert_eq!(value(push(&mut agent, &[7], &[tie, 0.0])), [1.0, 0.0]);
    assert_eq!(value(push(&mut agent, &[7], &[tie, 0.0])), [1.0 + 1.0 / 128.0, 0.0]);
    assert_eq!(value(push(&mut agent, &[8], &[tie, 0.0])), [1.0, 0.0], "each key has its own");
    agent.barrier(Duration::ZERO, None);
    assert_eq!(value(sent(&mut agent)), [tie - 1.0, 0.0], "key 8 is owed, key 7 not");
}

#[test]
fn a_push_that_is_sent_again_has_the_same_bytes() {
    for wire in ROUNDED {
        let mut agent = agent(wire);
        let first: Vec<Push> =
            (0..5).flat_map(|i| push(&mut agent, &[3, 4 + i], &[0.1, 7.3, -0.01, i as f32])).collect();
        for lane in 0..LANES {
            agent.on_closed(Duration::ZERO, lane, "reset");
        }
        agent.on_time(Duration::from_secs(1));
        agent.take_effects();
        connect(&mut agent, PushPosition::default());
        let mut again = sent(&mut agent);
        again.sort_by_key(|push| (push.runs[0].partition >= 2, push.index));
        let mut first = first;
        first.sort_by_key(|push| (push.runs[0].partition >= 2, push.index));
        assert_eq!(again, first);
        assert!(again.iter().all(|push| push.values.value_type().is_encoded()));
    }
}

#[test]
fn a_push_too_large_for_the_limit_goes_exactly() {
    let mut agent = agent(WireType::Int8);
    agent.residual_limit_bytes = 100;
    let pushes = push(&mut agent, &[1, 2, 3], &[0.1; 6]);
    assert!(pushes.iter().all(|push| !push.values.value_type().is_encoded()), "{pushes:?}");
    assert_eq!(agent.matrices[0].residuals.bytes(), 0);
}

#[test]
fn residuals_fill_their_limit_and_are_sent_when_it_would_be_passed() {
    /// Bytes of a key with its residuals.
    const KEY: u64 = 40;
    let mut agent = agent(WireType::Int8);
    agent.residual_limit_bytes = 2 * KEY;
    let mut pushed = |keys: &[u64]| {
        let pushes = push(&mut agent, keys, &[0.1, 0.033].repeat(keys.len()));
        let exact = pushes.iter().filter(|push| !push.values.value_type().is_encoded()).count();
        (exact, pushes.len() - exact, agent.matrices[0].residuals.bytes())
    };
    assert_eq!(pushed(&[1]), (0, 1, KEY));
    assert_eq!(pushed(&[2]), (0, 1, 2 * KEY), "as many as the limit allows");
    let (exact, rounded, kept) = pushed(&[3]);
    assert!(exact > 0 && rounded == 1, "{exact} pushes of residuals, {rounded} of values");
    assert_eq!(kept, KEY);
    let (_, rounded, kept) = pushed(&[4, 5]);
    assert_eq!((rounded > 0, kept), (true, 2 * KEY), "as large as the limit allows");
}

#[test]
fn the_largest_values_do_not_overflow_with_their_rest() {
    for wire in ROUNDED {
        let mut agent = agent(wire);
        for _ in 0..3 {
            for push in push(&mut agent, &[1], &[f32::MAX, -f32::MAX]) {
                let OwnedValues::F32(values) = push.values.into_values() else { panic!("f32") };
                assert!(values.iter().all(|value| value.is_finite()), "{values:?}");
            }
        }
    }
}

/// Gradient descent on `0.5 * |w - 1|^2` by pushes in blocks. The first coordinate is noise of size 1000, whose scale
/// rounds all other coordinates to 0. Returns how far the others are from 1 at the end.
fn descend(keeps_rest: bool) -> f32 {
    const STEPS: usize = 2000;
    const RATE: f32 = 0.02;
    let spec = &layout(WireType::Int8).matrices[0];
    let mut rests = Residuals::new(spec);
    let mut w = [0.0f32; 4];
    for step in 0..STEPS {
        let mut gradient: Vec<f32> = w.iter().map(|w| w - 1.0).collect();
        gradient[0] = if step % 2 == 0 { 1000.0 } else { -1000.0 };
        if !keeps_rest {
            rests = Residuals::new(spec);
        }
        let sent = rests.round(0, &[5, 6], &mut gradient, WireType::Int8);
        let OwnedValues::F32(sent) = sent.into_values() else { panic!("f32") };
        w.iter_mut().zip(sent).for_each(|(w, g)| *w -= RATE * g);
    }
    w[1..].iter().map(|w| (w - 1.0).abs()).fold(0.0, f32::max)
}

#[test]
fn int8_stalls_without_the_rest_and_converges_with_it() {
    assert_eq!(descend(false), 1.0, "without: no gradient but the noise ever arrives");
    // A residual is at most half a step of 1000 / 127, and moves a coordinate by that times the rate.
    let bound = 0.02 * 1000.0 / 127.0;
    let with = descend(true);
    assert!(with <= bound, "with: {with}, expected at most {bound}");
}

#[test]
fn what_cannot_be_rounded_is_refused_by_name() {
    let refused = |change: fn(&mut MatrixSpec)| {
        let mut layout = layout(WireType::Bf16);
        change(&mut layout.matrices[0]);
        let error = layout.check(&FunctionTable::builtin()).unwrap_err();
        assert!(matches!(error, LayoutError::Wire { .. }));
        error.to_string()
    };
    assert!(refused(|spec| spec.element = ElementType::F64).contains("\"w\" of F64"));
    assert!(refused(|spec| spec.element = ElementType::I64).contains("cannot be sent as bf16"));
    for rule in [PushRule::Assign, PushRule::Min, PushRule::Max] {
        let mut layout = layout(WireType::Int8);
        layout.matrices[0].rule = rule;
        let text = layout.check(&FunctionTable::builtin()).unwrap_err().to_string();
        assert!(text.contains(rule.name()) && text.contains("send it as f32"), "{text}");
        layout.wire.clear();
        assert_eq!(layout.check(&FunctionTable::builtin()), Ok(()));
    }
}
