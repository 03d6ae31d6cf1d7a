use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::initializer::Initializer;
use crate::rule::{PushRule, Visit};

fn birth(rule: PushRule, columns: usize, initializer: Initializer) -> Birth {
    Birth { rule, columns, first: FirstValues::new(initializer, 3, "m"), key_offset: 0 }
}

struct PushAll<'a> {
    table: &'a mut Table<f64>,
    keys: &'a [u64],
    positions: &'a mut [u32],
    values: &'a [f64],
}

impl Visit<f64> for PushAll<'_> {
    type Out = ();
    fn visit<S: Step<f64>>(self, step: &S) {
        self.table.push(self.keys, self.positions, self.values, |i| i, step);
    }
}

fn push(table: &mut Table<f64>, keys: &[u64], values: &[f64], positions: &mut [u32]) {
    let rule = table.birth.rule;
    f64::with_step(&rule, 0, PushAll { table, keys, positions, values });
}

proptest! {
    /// Against a map: pulls with and without known positions, pushes that create and that find, in any order.
    #[test]
    fn a_sparse_table_is_a_map_of_rows(
        batches in prop::collection::vec((any::<bool>(), prop::collection::btree_set(0u64..400, 0..80)), 1..12),
        columns in 1usize..4,
    ) {
        let mut table = Table::sparse(birth(PushRule::Add, columns, Initializer::Constant { value: 0.5 }));
        let mut model: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (pull_first, keys) in batches {
            let keys: Vec<u64> = keys.into_iter().collect();
            let mut positions = vec![ABSENT; keys.len()];
            let count_before = table.row_count();
            if pull_first {
                let mut out = vec![0.0; keys.len() * columns];
                table.pull(&keys, &mut positions, &mut out, |i| i);
                let expected: Vec<f64> =
                    keys.iter().flat_map(|key| model.get(key).cloned().unwrap_or(vec![0.5; columns])).collect();
                prop_assert_eq!(out, expected);
                prop_assert_eq!(table.row_count(), count_before, "a pull creates nothing");
            }
            let values: Vec<f64> = (0..keys.len() * columns).map(|i| i as f64).collect();
            push(&mut table, &keys, &values, &mut positions);
            for (key, change) in keys.iter().zip(values.chunks(columns)) {
                let row = model.entry(*key).or_insert(vec![0.5; columns]);
                row.iter_mut().zip(change).for_each(|(w, x)| *w += x);
            }
        }
        prop_assert_eq!(table.row_count() as usize, model.len());
        let mut rows = BTreeMap::new();
        table.each_key(|key, position| { rows.insert(key, table.row(position).to_vec()); });
        prop_assert_eq!(rows, model);
    }
}

#[test]
fn dense_and_sparse_tables_hold_the_same() {
    let make = birth(
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
    dense.clear();
    sparse.clear();
    assert_eq!(sparse.row_count(), 0);
    assert_eq!(read(&dense), read(&sparse), "cleared tables hold first values");
}
