use super::*;
use crate::{Axis, Consistency, Initializer, Partitioner, PushRule, Storage};

fn spec(consistency: Consistency, partitioner: Partitioner, storage: Storage) -> MatrixSpec {
    MatrixSpec {
        name: "m".into(),
        element: ElementType::F32,
        rows: 1000,
        columns: 2,
        axis: Axis::Row,
        storage,
        partitioner,
        initializer: Initializer::Constant { value: 1.0 },
        rule: PushRule::Add,
        consistency,
        seed: 1,
    }
}

fn name(clock: Clock, task: u32) -> PushId {
    PushId { clock, task, index: 0 }
}

#[test]
fn two_halves_hold_what_the_whole_holds() {
    for (partitioner, storage) in [
        (Partitioner::Hash { partition_count: 4 }, Storage::Sparse),
        (Partitioner::Range { partition_count: 4 }, Storage::Dense),
    ] {
        let spec = spec(Consistency::Asp, partitioner, storage);
        let placement = spec.placement(&FunctionTable::builtin()).unwrap();
        let mut whole = Matrix::new(spec.clone(), &[0, 1, 2, 3], &FunctionTable::builtin()).unwrap();
        let mut halves = [&[0, 2][..], &[1, 3]]
            .map(|held| Matrix::new(spec.clone(), held, &FunctionTable::builtin()).unwrap());
        let keys: Vec<u64> = (0..1000).step_by(7).collect();
        for partition in 0..4u32 {
            let keys: Vec<u64> = keys
                .iter()
                .copied()
                .filter(|key| placement.partition_of(*key) == partition as usize)
                .collect();
            let run = KeyRun { partition, table: 0, keys: &keys };
            let values: Vec<f32> = keys.iter().flat_map(|key| [*key as f32, 0.5]).collect();
            let half = &mut halves[(partition % 2) as usize];
            for held in [&mut whole, half] {
                held.push(run, &mut RowPositions::default(), name(0, 0), Values::F32(&values)).unwrap();
                let mut out = OwnedValues::F32(vec![9.0]);
                held.pull(run, &mut RowPositions::default(), 0, &mut out).unwrap();
                let seen: Vec<f32> = values.iter().map(|value| value + 1.0).collect();
                assert_eq!(out, OwnedValues::F32([&[9.0], &seen[..]].concat()), "behind what was there");
            }
            let other = &mut halves[1 - (partition % 2) as usize];
            let refused = other.push(run, &mut RowPositions::default(), name(0, 0), Values::F32(&values));
            assert!(matches!(refused, Err(Error::NoSuchPartition { .. })), "{refused:?}");
        }
        assert_eq!(halves.iter().map(Matrix::row_count).sum::<u64>(), whole.row_count());
        let expected = if storage == Storage::Sparse { keys.len() as u64 } else { 1000 };
        assert_eq!(whole.row_count(), expected);
        let all = whole.export(Clock::MAX).unwrap();
        let mut imported = halves.map(|half| {
            let own = half.export(Clock::MAX).unwrap();
            half.import(&all, Some(0)).unwrap();
            assert_eq!(half.export(Clock::MAX).unwrap(), own);
            own.keys
        });
        let mut joined: Vec<u64> = imported.iter_mut().flat_map(std::mem::take).collect();
        joined.sort_unstable();
        assert_eq!(joined, all.keys);
    }
}

#[test]
fn under_bsp_a_pull_sees_the_stamps_below_its_clock() {
    let spec = spec(Consistency::Bsp, Partitioner::Hash { partition_count: 1 }, Storage::Sparse);
    let mut held = Matrix::new(spec, &[0], &FunctionTable::builtin()).unwrap();
    let run = KeyRun { partition: 0, table: 0, keys: &[3] };
    for (clock, task) in [(1, 0), (0, 1), (0, 0)] {
        held.push(run, &mut RowPositions::default(), name(clock, task), Values::F32(&[1.0, 2.0])).unwrap();
    }
    for (clock, seen) in [(0, 1.0), (1, 3.0), (2, 4.0)] {
        let mut out = OwnedValues::with_capacity(ElementType::F32, 2);
        held.pull(run, &mut RowPositions::default(), clock, &mut out).unwrap();
        assert_eq!(out, OwnedValues::F32(vec![seen, 2.0 * seen - 1.0]), "clock {clock}");
    }
}

/// Single precision distinguishes the orders: (1e8 + 1) - 1e8 is 0, and (1e8 - 1e8) + 1 is 1.
#[test]
fn pushes_of_a_clock_are_added_up_by_task_then_index_whoever_comes_first() {
    let pushes = [((0, 0), 1e8), ((0, 1), 1.0), ((1, 0), -1e8)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let spec = MatrixSpec {
            columns: 1,
            initializer: Initializer::Zero,
            ..spec(Consistency::Bsp, Partitioner::Hash { partition_count: 1 }, Storage::Sparse)
        };
        let mut held = Matrix::new(spec, &[0], &FunctionTable::builtin()).unwrap();
        let run = KeyRun { partition: 0, table: 0, keys: &[3] };
        for ((task, index), value) in order.map(|i| pushes[i]) {
            let name = PushId { clock: 0, task, index };
            held.push(run, &mut RowPositions::default(), name, Values::F32(&[value])).unwrap();
        }
        assert_eq!(held.export(Clock::MAX).unwrap().values, OwnedValues::F32(vec![0.0]), "{order:?}");
    }
}

/// Narrow rows move when their table grows, so that positions found before belong to other keys.
#[test]
fn rows_that_were_found_before_others_made_them_move_are_found_again() {
    fn of(keys: &[u64]) -> KeyRun<'_> {
        KeyRun { partition: 0, table: 0, keys }
    }
    for consistency in [Consistency::Asp, Consistency::Bsp] {
        let spec = MatrixSpec {
            rows: 1 << 30,
            columns: 1,
            initializer: Initializer::Zero,
            ..spec(consistency, Partitioner::Hash { partition_count: 1 }, Storage::Sparse)
        };
        let mut held = Matrix::new(spec, &[0], &FunctionTable::builtin()).unwrap();
        let (few, more): (Vec<u64>, Vec<u64>) = ((0..10).collect(), (10..2000).collect());
        let (mut found, mut other) = (RowPositions::default(), RowPositions::default());
        let values = |keys: &[u64]| keys.iter().map(|key| *key as f32).collect::<Vec<_>>();
        let mut index = 0;
        let mut push = |held: &mut Matrix, clock, keys: &[u64], found: &mut RowPositions| {
            index += 1;
            let name = PushId { clock, task: 0, index };
            held.push(of(keys), found, name, Values::F32(&values(keys))).unwrap();
        };
        let pull = |held: &mut Matrix, clock, found: &mut RowPositions| {
            let mut out = OwnedValues::with_capacity(ElementType::F32, few.len());
            held.pull(of(&few), found, clock, &mut out).unwrap();
            out
        };
        let times = |n: f32| OwnedValues::F32(values(&few).iter().map(|value| n * value).collect());
        push(&mut held, 0, &few, &mut found);
        assert_eq!(pull(&mut held, 1, &mut found), times(1.0));
        // The push is staged with the positions found now and merged after the rows have moved.
        push(&mut held, 2, &few, &mut found);
        push(&mut held, 1, &more, &mut other);
        assert_eq!(pull(&mut held, 3, &mut found), times(2.0), "{consistency:?}: read");
        push(&mut held, 3, &few, &mut found);
        let all: Vec<u64> = (0..2000).collect();
        let expected = all.iter().map(|key| *key as f32 * if *key < 10 { 3.0 } else { 1.0 });
        let whole = held.export(Clock::MAX).unwrap();
        assert_eq!(whole.values, OwnedValues::F32(expected.collect()), "{consistency:?}: all rows");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let spec = spec(Consistency::Asp, Partitioner::Range { partition_count: 4 }, Storage::Dense);
    assert!(matches!(
        Matrix::new(spec.clone(), &[4], &FunctionTable::builtin()),
        Err(Error::NoSuchPartition { .. })
    ));
    let mut held = Matrix::new(spec, &[1], &FunctionTable::builtin()).unwrap();
    let mut push = |partition, table, keys: &[u64], values: &[f32]| {
        let run = KeyRun { partition, table, keys };
        held.push(run, &mut RowPositions::default(), name(0, 0), Values::F32(values)).unwrap_err()
    };
    for key in [249, 500] {
        let text = push(1, 0, &[key], &[0.0; 2]).to_string();
        for part in
            [format!("key {key} is not of partition 1").as_str(), "from 250 to below 500", "below 1000"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
    assert!(matches!(push(1, 0, &[1000], &[0.0; 2]), Error::KeyOutOfRange { bound: 1000, .. }));
    assert!(matches!(push(1, 0, &[251, 250], &[0.0; 4]), Error::KeysNotAscending { .. }));
    assert!(matches!(push(1, 0, &[250], &[0.0; 3]), Error::ValueCount { .. }));
    assert!(matches!(push(1, 1, &[250], &[0.0; 2]), Error::NoSuchRow { .. }));
    assert!(matches!(push(9, 0, &[250], &[0.0; 2]), Error::NoSuchPartition { .. }));
    assert!(matches!(push(1, 0, &[250], &[0.0, f32::NAN]), Error::NonFinite { key: 250, column: 1, .. }));
    assert_eq!(held.export(0).unwrap().values, OwnedValues::F32([1.0].repeat(500)));
}

/// Contiguous keys are copied as one slice, others one by one. Both give the same values, with and without slots.
#[test]
fn rows_in_one_piece_are_the_rows_one_by_one() {
    let rule = PushRule::Momentum {
        rate: 0.1,
        momentum: 0.5,
        schedule: crate::Schedule::Constant,
        l1: 0.01,
        l2: 0.1,
    };
    let sgd = PushRule::Sgd { rate: 0.1, schedule: crate::Schedule::Constant, l1: 0.01, l2: 0.1 };
    for rule in [PushRule::Add, sgd, rule] {
        for consistency in [Consistency::Asp, Consistency::Bsp] {
            let spec = MatrixSpec {
                rule,
                initializer: Initializer::Normal { deviation: 1.0 },
                ..spec(consistency, Partitioner::Range { partition_count: 2 }, Storage::Dense)
            };
            let [mut one, mut other] =
                [(); 2].map(|()| Matrix::new(spec.clone(), &[1], &FunctionTable::builtin()).unwrap());
            let keys: Vec<u64> = (600..700).collect();
            let values: Vec<f32> = (0..200).map(|i| i as f32 * 0.1 - 5.0).collect();
            for clock in 0..3 {
                let run = KeyRun { partition: 1, table: 0, keys: &keys };
                one.push(run, &mut RowPositions::default(), name(clock, 0), Values::F32(&values)).unwrap();
                for (i, parity) in [0, 1].into_iter().zip(0u32..) {
                    let keys: Vec<u64> = keys.iter().copied().filter(|key| key % 2 == i).collect();
                    let pairs = values.chunks(2).skip(i as usize).step_by(2);
                    let values: Vec<f32> = pairs.flatten().copied().collect();
                    let run = KeyRun { partition: 1, table: 0, keys: &keys };
                    let name = PushId { clock, task: 0, index: parity };
                    other.push(run, &mut RowPositions::default(), name, Values::F32(&values)).unwrap();
                }
            }
            assert_eq!(one.export(Clock::MAX).unwrap(), other.export(Clock::MAX).unwrap(), "{rule:?}");
            let run = KeyRun { partition: 1, table: 0, keys: &keys };
            let mut together = OwnedValues::with_capacity(ElementType::F32, 0);
            one.pull(run, &mut RowPositions::default(), 9, &mut together).unwrap();
            let OwnedValues::F32(together) = together else { panic!("{together:?}") };
            for parity in 0..2 {
                let keys: Vec<u64> = keys.iter().copied().filter(|key| key % 2 == parity).collect();
                let run = KeyRun { partition: 1, table: 0, keys: &keys };
                let mut apart = OwnedValues::with_capacity(ElementType::F32, 0);
                other.pull(run, &mut RowPositions::default(), 9, &mut apart).unwrap();
                let expected = together.chunks(2).skip(parity as usize).step_by(2).flatten().copied();
                assert_eq!(apart, OwnedValues::F32(expected.collect()));
            }
        }
    }
}
