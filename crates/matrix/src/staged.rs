//! Pushes under BSP. They are staged until the clock of their stamp has ended, then merged into one change for each
//! key.
//!
//! The result for a partition depends on the (task, index) of the pushes of one clock, never on their order of arrival:
//! for each key the changes are folded in the order of (task, index), then the push rule makes one update.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Clock;
use crate::element::{Element, OwnedValues};
use crate::rule::MergeOp;
use crate::storage::rows::ABSENT;

/// The identity of a push. It is the same when a restarted task repeats the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PushId {
    /// The clock of the task when it pushed.
    pub clock: Clock,
    pub task: u32,
    /// Index among the task's pushes under that clock.
    pub index: u32,
}

/// A copy of a push that is staged for one table of one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct StagedRun {
    pub partition: u32,
    pub table: u32,
    pub id: PushId,
    /// n keys, ascending.
    pub keys: Vec<u64>,
    /// n x columns, row-major.
    pub values: OwnedValues,
}

/// One push to one table of one partition.
#[derive(Clone, Debug)]
pub(crate) struct StagedPush<E> {
    pub(crate) id: PushId,
    pub(crate) table: u32,
    /// Strictly ascending.
    pub(crate) keys: Vec<u64>,
    /// The known row positions.
    pub(crate) positions: Vec<u32>,
    /// The generation of `positions`.
    pub(crate) generation: u64,
    pub(crate) values: Vec<E>,
}

impl<E> Default for StagedPush<E> {
    fn default() -> Self {
        Self {
            id: PushId::default(),
            table: 0,
            keys: Vec::new(),
            positions: Vec::new(),
            generation: 0,
            values: Vec::new(),
        }
    }
}

impl<E: Element> StagedPush<E> {
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.positions.clear();
        self.values.clear();
    }

    fn row(&self, i: usize, columns: usize) -> &[E] {
        &self.values[i * columns..(i + 1) * columns]
    }

    fn append(&mut self, from: &Self, i: usize, columns: usize) {
        self.keys.push(from.keys[i]);
        self.positions.push(from.positions[i]);
        self.values.extend_from_slice(from.row(i, columns));
    }

    /// Folds row `i` of `from` into the last row, which has the same key.
    fn fold(&mut self, from: &Self, i: usize, columns: usize, merge: MergeOp) {
        let last = self.keys.len() - 1;
        if self.positions[last] == ABSENT {
            self.positions[last] = from.positions[i];
        }
        for (into, next) in self.values[last * columns..].iter_mut().zip(from.row(i, columns)) {
            merge.merge(into, *next);
        }
    }
}

/// Merges pushes of one clock, given in order, into `out`. Each key occurs once; keys are ascending.
pub(crate) fn merge_pushes<E: Element>(
    pushes: &[StagedPush<E>],
    columns: usize,
    merge: MergeOp,
    out: &mut StagedPush<E>,
) {
    out.clear();
    if let [first, second] = pushes {
        merge_two(first, second, columns, merge, out);
        return;
    }
    // The heap returns equal keys in the order of their pushes, so that the fold is the same as for two pushes.
    let heads = pushes.iter().enumerate().filter(|(_, push)| !push.keys.is_empty());
    let mut heap: BinaryHeap<_> = heads.map(|(run, push)| Reverse((push.keys[0], run, 0))).collect();
    while let Some(Reverse((key, run, i))) = heap.pop() {
        let push = &pushes[run];
        if out.keys.last() == Some(&key) {
            out.fold(push, i, columns, merge);
        } else {
            out.append(push, i, columns);
        }
        if let Some(next) = push.keys.get(i + 1) {
            heap.push(Reverse((*next, run, i + 1)));
        }
    }
}

fn merge_two<E: Element>(
    first: &StagedPush<E>,
    second: &StagedPush<E>,
    columns: usize,
    merge: MergeOp,
    out: &mut StagedPush<E>,
) {
    let (mut i, mut j) = (0, 0);
    while i < first.keys.len() && j < second.keys.len() {
        let (a, b) = (first.keys[i], second.keys[j]);
        if a <= b {
            out.append(first, i, columns);
        } else {
            out.append(second, j, columns);
        }
        if a == b {
            out.fold(second, j, columns, merge);
        }
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    (i..first.keys.len()).for_each(|i| out.append(first, i, columns));
    (j..second.keys.len()).for_each(|j| out.append(second, j, columns));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn push(keys: &BTreeMap<u64, i64>) -> StagedPush<i64> {
        StagedPush {
            keys: keys.keys().copied().collect(),
            positions: vec![ABSENT; keys.len()],
            values: keys.values().copied().collect(),
            ..StagedPush::default()
        }
    }

    proptest! {
        #[test]
        fn a_merge_is_a_fold_by_key_in_order(
            runs in prop::collection::vec(prop::collection::btree_map(0u64..30, -9i64..9, 0..20), 2..6),
        ) {
            for (kind, fold) in [
                (MergeOp::Sum, (|a, b| a + b) as fn(i64, i64) -> i64),
                (MergeOp::Last, |_, b| b),
                (MergeOp::Smallest, Ord::min),
                (MergeOp::Largest, Ord::max),
            ] {
                let mut model = BTreeMap::new();
                for (key, value) in runs.iter().flatten() {
                    model.entry(*key).and_modify(|old| *old = fold(*old, *value)).or_insert(*value);
                }
                let pushes: Vec<_> = runs.iter().map(push).collect();
                let mut out = StagedPush::default();
                merge_pushes(&pushes, 1, kind, &mut out);
                let merged: BTreeMap<u64, i64> = out.keys.iter().copied().zip(out.values.iter().copied()).collect();
                prop_assert_eq!(&merged, &model);
                prop_assert!(out.keys.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn floats_are_summed_in_the_order_of_pushes_for_two_and_for_more() {
        let run = |values: &[f32]| StagedPush {
            keys: (0..values.len() as u64).collect(),
            positions: vec![ABSENT; values.len()],
            values: values.to_vec(),
            ..StagedPush::default()
        };
        // (1e8 + 1) - 1e8 is 0 in single precision, (1e8 - 1e8) + 1 is 1.
        let mut out = StagedPush::default();
        merge_pushes(&[run(&[1e8]), run(&[1.0]), run(&[-1e8])], 1, MergeOp::Sum, &mut out);
        assert_eq!(out.values, [0.0]);
        merge_pushes(&[run(&[1e8]), run(&[-1e8]), run(&[1.0])], 1, MergeOp::Sum, &mut out);
        assert_eq!(out.values, [1.0]);
    }
}
