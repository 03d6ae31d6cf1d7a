use proptest::prelude::*;

use super::*;
use crate::{
    Consistency, ElementType, FunctionTable, Initializer, OwnPartitioner, Partitioner, PushRule, Storage,
};

const KEY_BOUND: u64 = 5_000;

fn spec(partitioner: Partitioner) -> MatrixSpec {
    MatrixSpec {
        name: "m".into(),
        element: ElementType::F64,
        rows: KEY_BOUND,
        columns: 1,
        axis: Axis::Row,
        storage: Storage::Sparse,
        partitioner,
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

fn listed(keys: Keys<'_>) -> Vec<u64> {
    match keys {
        Keys::Sorted(keys) => keys.to_vec(),
        Keys::Range(start, end) => (start..end).collect(),
    }
}

/// Checks that each of `keys` is in the run of its partition, also in slices of it, and that values find the way to the
/// run and back.
fn check_runs(runs: &KeyRuns, placement: &Placement, keys: &[u64]) -> Result<(), TestCaseError> {
    const COLUMNS: usize = 2;
    let values: Vec<f64> = keys.iter().flat_map(|key| [*key as f64, -1.0]).collect();
    let mut back = vec![0.0; values.len()];
    let mut seen = 0;
    prop_assert_eq!(runs.key_count(), keys.len());
    for p in 0..placement.partition_count() {
        let run = runs.run(p as u32);
        let half = run.keys.len() / 2;
        for (run, count) in
            [(run.slice(0..half), half), (run.slice(half..run.keys.len()), run.keys.len() - half)]
        {
            let own = listed(run.keys);
            prop_assert!(own.len() == count && own.is_sorted());
            prop_assert!(own.iter().all(|key| placement.partition_of(*key) == p));
            let mut gathered = Vec::new();
            run.order.gather(COLUMNS, &values, &mut gathered);
            prop_assert_eq!(&gathered, &own.iter().flat_map(|key| [*key as f64, -1.0]).collect::<Vec<_>>());
            run.order.scatter(COLUMNS, &gathered, &mut back);
            let mut first = Vec::new();
            run.order.gather(1, &values[..keys.len()], &mut first);
            run.order.scatter(1, &first, &mut values.clone());
            seen += count;
        }
    }
    prop_assert_eq!(seen, keys.len());
    prop_assert_eq!(back, values);
    Ok(())
}

const BY_UPPER_BITS: OwnPartitioner =
    OwnPartitioner { name: "by_upper_bits", partition_of: |key, _| (key >> 9) as u32 };

fn placement(spec: &MatrixSpec) -> Placement {
    let mut functions = FunctionTable::builtin();
    functions.add_partitioner(BY_UPPER_BITS).expect("the name is free");
    spec.placement(&functions).expect("a good spec")
}

fn partitioners() -> impl Strategy<Value = Partitioner> {
    (1u32..20, 0u8..4).prop_map(|(count, kind)| match kind {
        0 => Partitioner::Hash { partition_count: count },
        3 => Partitioner::Own { name: BY_UPPER_BITS.name.into(), partition_count: count },
        1 => Partitioner::Range { partition_count: count },
        _ => Partitioner::Explicit { starts: (0..u64::from(count)).map(|i| i * i).collect() },
    })
}

proptest! {
    #[test]
    fn each_key_comes_in_the_run_of_its_partition_with_its_values(
        keys in prop::collection::btree_set(0u64..KEY_BOUND, 0..300),
        partitioner in partitioners(),
    ) {
        let keys: Vec<u64> = keys.into_iter().collect();
        let spec = spec(partitioner);
        let placement = placement(&spec);
        let mut runs = KeyRuns::default();
        for _ in 0..2 {
            runs.set(&spec, &placement, Selection::Rows(Keys::Sorted(&keys))).unwrap();
            check_runs(&runs, &placement, &keys)?;
        }
    }

    #[test]
    fn a_range_has_the_runs_of_its_keys_listed_or_not(
        (start, count) in (0u64..4_000, 0u64..1_000),
        partitioner in partitioners(),
    ) {
        let keys: Vec<u64> = (start..start + count).collect();
        let spec = spec(partitioner);
        let placement = placement(&spec);
        let range = Selection::Rows(Keys::Range(start, start + count));
        let mut runs = KeyRuns::default();
        runs.set(&spec, &placement, range).unwrap();
        prop_assert!(runs.matches(range) && runs.matches(Selection::Rows(Keys::Sorted(&keys))));
        check_runs(&runs, &placement, &keys)?;
        let was_listed = !matches!(placement, Placement::Ranges { .. });
        prop_assert_eq!(runs.set_listed(&spec, &placement, range).unwrap(), !was_listed);
        prop_assert!(!runs.set_listed(&spec, &placement, Selection::Rows(Keys::Sorted(&keys))).unwrap());
        check_runs(&runs, &placement, &keys)?;
    }
}

#[test]
fn bad_keys_are_refused_and_the_runs_before_are_forgotten() {
    for partitioner in [Partitioner::Hash { partition_count: 4 }, Partitioner::Range { partition_count: 4 }] {
        let spec = spec(partitioner);
        let placement = placement(&spec);
        let mut runs = KeyRuns::default();
        let mut set = |keys| runs.set(&spec, &placement, Selection::Rows(keys)).map(|()| runs.key_count());
        assert_eq!(set(Keys::Sorted(&[1, 2])), Ok(2));
        let falls = Error::KeysNotAscending { matrix: "m".into(), before: 3, key: 3 };
        assert_eq!(set(Keys::Sorted(&[1, 3, 3])), Err(falls));
        let beyond = Error::KeyOutOfRange { matrix: "m".into(), key: KEY_BOUND, bound: KEY_BOUND };
        assert_eq!(set(Keys::Sorted(&[1, KEY_BOUND])), Err(beyond.clone()));
        assert_eq!(set(Keys::Range(1, KEY_BOUND + 1)), Err(beyond));
        assert_eq!(set(Keys::Range(7, 3)), Ok(0));
        assert_eq!(set(Keys::Sorted(&[1, 2])), Ok(2));
        assert_eq!((0..4).map(|p| runs.run(p).keys.len()).sum::<usize>(), 2);
    }
}

#[test]
fn runs_are_those_of_the_same_keys_however_they_are_named_and_of_no_others() {
    let spec = spec(Partitioner::Hash { partition_count: 2 });
    let placement = placement(&spec);
    let mut runs = KeyRuns::default();
    runs.set(&spec, &placement, Selection::Rows(Keys::Sorted(&[3, 4, 5]))).unwrap();
    for (keys, expected) in [
        (Keys::Sorted(&[3, 4, 5]), true),
        (Keys::Range(3, 6), true),
        (Keys::Range(2, 5), false),
        (Keys::Range(3, 7), false),
        (Keys::Sorted(&[3, 4, 6]), false),
        (Keys::Sorted(&[3, 4]), false),
    ] {
        assert_eq!(runs.matches(Selection::Rows(keys)), expected, "{keys:?}");
    }
    assert!(!runs.matches(Selection::Columns { row: 1, keys: Keys::Range(3, 6) }));
}

#[test]
fn a_row_behind_the_last_of_a_matrix_partitioned_by_column_is_refused() {
    let by_row = spec(Partitioner::Range { partition_count: 2 });
    let spec = MatrixSpec { rows: 3, columns: 50, axis: Axis::Column, ..by_row };
    let check = |row| check_selection(&spec, Selection::Columns { row, keys: Keys::Range(0, 50) });
    assert_eq!(check(2), Ok(Keys::Range(0, 50)));
    assert_eq!(check(3), Err(Error::NoSuchRow { matrix: "m".into(), row: 3, rows: 3 }));
}
