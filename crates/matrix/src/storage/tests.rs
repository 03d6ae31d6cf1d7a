use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::initializer::Initializer;
use crate::rule::{PushRule, RuleVisitor};

fn row_initializer(rule: PushRule, columns: usize, initializer: Initializer) -> RowInitializer {
    RowInitializer { rule, columns, initial: InitialValues::new(initializer, 3, "m"), key_offset: 0 }
}

struct PushAll<'a, E> {
    table: &'a mut Table<E>,
    keys: &'a [u64],
    positions: &'a mut [u32],
    values: &'a [E],
}

impl<E: RuleElement> RuleVisitor<E> for PushAll<'_, E> {
    type Out = bool;
    fn visit<S: PreparedRule<E>>(self, step: &S) -> bool {
        self.table.push(self.keys, self.positions, self.values, |i| i, step)
    }
}

/// Returns whether rows have moved.
fn push<E: RuleElement>(table: &mut Table<E>, keys: &[u64], values: &[E], positions: &mut [u32]) -> bool {
    let rule = table.initializer.rule;
    E::with_prepared_rule(&rule, 0, PushAll { table, keys, positions, values })
}

/// Compares a table with a map: pulls with and without known positions, and pushes to new and to existing rows, in any
/// order.
fn check_map_of_rows<E: RuleElement>(
    batches: Vec<(bool, Vec<u64>)>,
    columns: usize,
    element: fn(f64) -> E,
) -> Result<(), TestCaseError> {
    let mut table: Table<E> =
        Table::sparse(row_initializer(PushRule::Add, columns, Initializer::Constant { value: 5.0 }));
    let mut model: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut known: BTreeMap<u64, u32> = BTreeMap::new();
    for (pull_first, keys) in batches {
        let mut positions: Vec<u32> =
            keys.iter().map(|key| known.get(key).copied().unwrap_or(ABSENT)).collect();
        let count_before = table.row_count();
        if pull_first {
            let mut out = vec![E::ZERO; keys.len() * columns];
            table.pull(&keys, &mut positions, &mut out, |i| i);
            let expected: Vec<f64> =
                keys.iter().flat_map(|key| model.get(key).cloned().unwrap_or(vec![5.0; columns])).collect();
            prop_assert_eq!(out.iter().map(|x| x.to_f64()).collect::<Vec<_>>(), expected);
            prop_assert_eq!(table.row_count(), count_before, "a pull creates nothing");
        }
        let values: Vec<E> = (0..keys.len() * columns).map(|i| element(i as f64)).collect();
        if push(&mut table, &keys, &values, &mut positions) {
            known.clear();
        }
        known.extend(keys.iter().copied().zip(positions).filter(|(_, position)| *position != ABSENT));
        for (key, change) in keys.iter().zip(values.chunks(columns)) {
            let row = model.entry(*key).or_insert(vec![5.0; columns]);
            row.iter_mut().zip(change).for_each(|(w, x)| *w += x.to_f64());
        }
    }
    prop_assert_eq!(table.row_count() as usize, model.len());
    let mut rows = BTreeMap::new();
    table.for_each_key(Share::WHOLE, |key, position| {
        rows.insert(key, table.row(position).iter().map(|x| x.to_f64()).collect::<Vec<_>>());
    });
    prop_assert_eq!(rows, model);
    Ok(())
}

fn batches() -> impl Strategy<Value = Vec<(bool, Vec<u64>)>> {
    let key = prop_oneof![120 => 0u64..400, 1 => (1u64 << 32) - 3..(1 << 32) + 300];
    let keys = prop::collection::btree_set(key, 0..80).prop_map(|keys| keys.into_iter().collect());
    prop::collection::vec((any::<bool>(), keys), 1..12)
}

proptest! {
    /// Checks every kind of store: narrow rows of one to three elements, and rows in chunks.
    #[test]
    fn a_sparse_table_is_a_map_of_rows(batches in batches(), columns in 1usize..6) {
        check_map_of_rows::<f32>(batches.clone(), columns, |x| x as f32)?;
        check_map_of_rows::<f64>(batches.clone(), columns, |x| x)?;
        check_map_of_rows::<i64>(batches, columns, |x| x as i64)?;
    }
}

#[test]
fn dense_and_sparse_tables_hold_the_same() {
    let make = row_initializer(
        PushRule::Momentum {
            rate: 0.1,
            momentum: 0.5,
            schedule: crate::Schedule::Constant,
            l1: 0.0,
            l2: 0.1,
        },
        2,
        Initializer::Normal { deviation: 1.0 },
    );
    let (mut dense, mut sparse) = (Table::<f64>::dense(100..200, make), Table::<f64>::sparse(make));
    let keys: Vec<u64> = (100..200).step_by(3).collect();
    let values: Vec<f64> = (0..keys.len() * 2).map(|i| i as f64 * 0.01).collect();
    for table in [&mut dense, &mut sparse] {
        push(table, &keys, &values, &mut vec![ABSENT; keys.len()]);
    }
    let read = |table: &Table<f64>| {
        let all: Vec<u64> = (100..200).collect();
        let mut out = vec![0.0; 200];
        table.pull(&all, &mut [ABSENT; 100], &mut out, |i| i);
        out
    };
    assert_eq!(read(&dense), read(&sparse));
    dense.clear(0);
    sparse.clear(0);
    assert_eq!(sparse.row_count(), 0);
    assert_eq!(read(&dense), read(&sparse), "cleared tables hold first values");
}

/// The initial values of a row depend only on its number in the matrix, not on the partition or on which access comes
/// first.
#[test]
fn a_row_begins_with_the_first_values_of_its_number_in_the_matrix() {
    let first = InitialValues::new(Initializer::Normal { deviation: 1.0 }, 3, "m");
    let make = RowInitializer {
        key_offset: 7000,
        ..row_initializer(PushRule::Add, 2, Initializer::Normal { deviation: 1.0 })
    };
    let mut expected = [0.0f64; 2];
    first.fill(7005, &mut expected);
    for mut table in [Table::<f64>::sparse(make), Table::dense(0..10, make)] {
        let mut pulled = [9.0; 2];
        table.pull(&[5], &mut [ABSENT], &mut pulled, |i| i);
        assert_eq!(pulled, expected, "read before anybody has changed it");
        push(&mut table, &[5], &[0.0, 0.0], &mut [ABSENT]);
        table.pull(&[5], &mut [ABSENT], &mut pulled, |i| i);
        assert_eq!(pulled, expected, "changed by nothing");
    }
}

#[test]
fn a_row_that_reads_as_zero_begins_with_its_first_values_when_it_is_pushed() {
    let first = InitialValues::new(Initializer::Normal { deviation: 1.0 }, 3, "m");
    let make = row_initializer(PushRule::Add, 2, Initializer::NormalOnFirstPush { deviation: 1.0 });
    let mut expected = [0.0f64; 2];
    first.fill(5, &mut expected);
    let mut table = Table::<f64>::sparse(make);
    let mut pulled = [9.0; 2];
    table.pull(&[5], &mut [ABSENT], &mut pulled, |i| i);
    assert_eq!((pulled, table.row_count()), ([0.0; 2], 0), "nobody has pushed it");
    push(&mut table, &[5], &[0.0, 0.5], &mut [ABSENT]);
    table.pull(&[5], &mut [ABSENT], &mut pulled, |i| i);
    assert_eq!(pulled, [expected[0], expected[1] + 0.5]);
}

/// FTRL stores the sum z, which determines the weight: the initial z must give the initial value.
#[test]
fn the_slots_of_a_new_row_are_those_that_go_with_its_first_values() {
    let rule = PushRule::FtrlProximal { alpha: 0.5, beta: 1.0, l1: 0.25, l2: 0.125 };
    let make = row_initializer(rule, 1, Initializer::Constant { value: -0.75 });
    for mut table in [Table::<f64>::sparse(make), Table::dense(0..10, make)] {
        let mut positions = [ABSENT];
        push(&mut table, &[5], &[0.0], &mut positions);
        // The row is w, z = -w (beta / alpha + l2) + l1 for w < 0 (McMahan and others, KDD 2013, algorithm 1), and n.
        assert_eq!(table.row(positions[0]), [-0.75, 0.75 * (1.0 / 0.5 + 0.125) + 0.25, 0.0]);
    }
}

#[test]
fn the_shares_of_a_snapshot_stay_while_the_table_grows() {
    use before_images::{RowsOfSnapshot, SnapshotId};
    for rule in [PushRule::Add, PushRule::Assign] {
        for columns in [1, 3, 7] {
            let mut table: Table<f32> = Table::sparse(row_initializer(rule, columns, Initializer::Zero));
            let push_keys = |table: &mut Table<f32>, keys: Range<u64>, value: f32| {
                let keys: Vec<u64> = keys.collect();
                push(table, &keys, &vec![value; keys.len() * columns], &mut vec![ABSENT; keys.len()]);
            };
            push_keys(&mut table, 0..1_000, 1.0);
            let id = SnapshotId(1);
            table.begin_snapshot(id, false);
            let mut rows = BTreeMap::new();
            for index in 0..4 {
                table.for_each_snapshot_row(
                    id,
                    RowsOfSnapshot::All,
                    Share { index, count: 4 },
                    |key, row| {
                        assert!(rows.insert(key, row.to_vec()).is_none(), "{key} is in two shares");
                    },
                );
                // The old rows change, and many new ones make the table grow, at the latest for the second time.
                push_keys(&mut table, 0..1_500 << index, 2.0);
            }
            let expected = (0..1_000).map(|key| (key, vec![1.0; columns]));
            assert_eq!(rows, expected.collect(), "{rule:?}, {columns} columns");
            table.end_snapshot(id);
            assert_eq!(table.snapshot_row_count(id), 0);
        }
    }
}
