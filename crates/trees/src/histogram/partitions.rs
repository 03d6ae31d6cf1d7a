//! Histograms at the partitions of a matrix: tasks push their parts, the partitions add them up, and find the best splits.
//!
//! The matrix `histograms` has a column for each bin of all features. Row 0 describes the features; slot `s` has the rows
//! `3 s + 1` and the two after it, with gradients, hessians and counts. Partitions are cut between features, so that a
//! partition sees a feature whole. Of two children only the smaller one is pushed; the larger one is what is left of the
//! parent, at the partition.

use matrix::function::call::call_pull;
use matrix::function::zip::Zip;
use matrix::{
    Axis, Consistency, ElementType, FunctionCall, FunctionFault, FunctionTable, Initializer, Keys, MatrixId,
    MatrixSpec, Partitioner, PushRule, Selection, Storage, Values,
};

use super::super::model::Model;
use super::super::records::Records;
use super::super::split::{Condition, FeatureBins, LEFT_CATEGORIES, LeafQuery, Split, SplitRule};
use super::add_histogram::{AddHistogram, encode};
use super::best_splits::BestSplits;
use super::layout::{FEATURE_ROW, NewHistogram, SLOT_ROWS, describe, groups, rows_of_slot};
use super::sums::{Histogram, Sums, total};
use algo::error::Error;
use algo::exchange::Exchange;

/// Largest number of leaves whose slots have rows in one matrix.
pub(in super::super) const LEAF_LIMIT: u64 = 17_000;

/// The matrix of histograms; it follows those of the model.
const HISTOGRAMS: MatrixId = MatrixId(Model::MATRIX_COUNT);

/// Adds the functions of histograms to a table.
pub(in super::super) fn register(table: &mut FunctionTable) -> Result<(), FunctionFault> {
    table.add_push(AddHistogram)?.add_pull(BestSplits)?;
    Ok(())
}

/// The matrix of histograms of so many slots; `starts`: the first bin of each feature, and the end.
pub(in super::super) fn spec(starts: &[u32], slots: usize, partition_count: u32) -> MatrixSpec {
    let columns = u64::from(starts[starts.len() - 1]);
    let groups: Vec<u64> = groups(starts).map(|group| u64::from(group.start)).collect();
    let count = (partition_count as usize).clamp(1, groups.len());
    let cuts = (0..count).map(|i| groups[i * groups.len() / count]).collect();
    MatrixSpec {
        name: "histograms".to_owned(),
        element: ElementType::I64,
        rows: 1 + u64::from(SLOT_ROWS) * slots as u64,
        columns,
        axis: Axis::Column,
        storage: Storage::Dense,
        partitioner: Partitioner::Explicit { starts: cuts },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Bsp,
        seed: 0,
    }
}

/// Describes the features at the partitions. One task does so before the first tree.
pub(in super::super) fn push_features(
    exchange: &mut Exchange<'_>,
    features: &[FeatureBins],
) -> Result<(), Error> {
    let mut column = 0;
    let (mut columns, mut codes) = (Vec::new(), Vec::new());
    for feature in features {
        columns.push(column);
        codes.push(describe(feature));
        column += u64::from(feature.count);
    }
    let part = Selection::Columns { row: FEATURE_ROW, keys: Keys::Sorted(&columns) };
    Ok(exchange.agent.push(HISTOGRAMS, part, Values::I64(&codes))?)
}

/// Adds the histograms of all tasks in their slots, and subtracts them from those of the parents.
pub(in super::super) fn fill(
    records: &Records,
    packed: &[u64],
    leaves: &[NewHistogram<'_>],
    words: &mut Vec<u64>,
    exchange: &mut Exchange<'_>,
) -> Result<(), Error> {
    let agent = &mut *exchange.agent;
    // Pushes of one clock are merged in the order of tasks: when those of the last come, the histograms are complete.
    let (is_first, is_last) = (agent.task() == 0, agent.task() + 1 == agent.task_count());
    let (mut histogram, mut calls) = (Histogram::default(), Vec::new());
    for leaf in leaves {
        let own = rows_of_slot(leaf.slot);
        if is_first || !leaf.records.is_empty() {
            records.histogram(leaf.records, packed, words, &mut histogram);
            let sent = encode(&histogram, total(leaf.records, packed), records.starts(), is_first);
            calls.push(FunctionCall::push(&AddHistogram, &[], &own, &sent));
        }
        if let Some(parent) = leaf.parent.filter(|_| is_last) {
            let rows = rows_of_slot(parent).into_iter().zip(own);
            calls.extend(
                rows.map(|(parent, own)| FunctionCall::push(&Zip::Sub, &[parent, own], &[parent], &())),
            );
        }
    }
    if !calls.is_empty() {
        agent.push_function(HISTOGRAMS, &calls)?;
    }
    Ok(agent.tick()?)
}

/// The best splits of leaves. Each task asks for some of them, and tells the others.
pub(in super::super) fn best_splits(
    rule: &SplitRule,
    leaves: &[(usize, &LeafQuery)],
    exchange: &mut Exchange<'_>,
) -> Result<Vec<Option<Split>>, Error> {
    let (task, count) = (exchange.agent.task() as usize, exchange.agent.task_count() as usize);
    let own = || leaves.iter().skip(task).step_by(count);
    let mut rows = vec![0.0; SPLIT_WIDTH * leaves.len()];
    if own().next().is_some() {
        let slots = own().flat_map(|(slot, _)| rows_of_slot(*slot));
        let from: Vec<u32> = std::iter::once(FEATURE_ROW).chain(slots).collect();
        let argument = (*rule, own().map(|(_, leaf)| (*leaf).clone()).collect());
        let splits = call_pull(exchange.agent, HISTOGRAMS, &BestSplits, &from, &argument)?;
        let own_rows = rows.as_chunks_mut::<SPLIT_WIDTH>().0.iter_mut().skip(task).step_by(count);
        own_rows.zip(&splits).for_each(|(row, split)| *row = to_row(split.as_ref()));
    }
    exchange.agent.all_reduce(&mut rows)?;
    Ok(rows.as_chunks::<SPLIT_WIDTH>().0.iter().map(of_row).collect())
}

/// Numbers of a split that tasks tell each other, before its categories.
const SPLIT_NUMBERS: usize = 10;
const SPLIT_WIDTH: usize = SPLIT_NUMBERS + LEFT_CATEGORIES;

/// A split as numbers, of which only that of no split begins with 0.
fn to_row(split: Option<&Split>) -> [f64; SPLIT_WIDTH] {
    let mut row = [0.0; SPLIT_WIDTH];
    let Some(split) = split else { return row };
    let (bin, categories) = match &split.condition {
        Condition::UpTo(bin) => (*bin as f64, &[][..]),
        Condition::Among(categories) => (-1.0, &categories[..]),
    };
    let (left, right) = (split.left, split.right);
    row[0] = split.gain;
    row[1] = f64::from(split.feature);
    row[2] = f64::from(u8::from(split.missing_left));
    row[3] = bin;
    let sums = [left.gradient, left.hessian, left.count, right.gradient, right.hessian, right.count];
    row[4..SPLIT_NUMBERS].copy_from_slice(&sums.map(|sum| sum as f64));
    for (number, category) in row[SPLIT_NUMBERS..].iter_mut().zip(categories) {
        *number = 1.0 + f64::from(*category);
    }
    row
}

fn of_row(row: &[f64; SPLIT_WIDTH]) -> Option<Split> {
    let sums =
        |at: usize| Sums { gradient: row[at] as i64, hessian: row[at + 1] as i64, count: row[at + 2] as i64 };
    let categories =
        || row[SPLIT_NUMBERS..].iter().take_while(|number| **number > 0.0).map(|number| *number as u32 - 1);
    (row[0] > 0.0).then(|| Split {
        gain: row[0],
        feature: row[1] as u32,
        missing_left: row[2] > 0.0,
        condition: if row[3] < 0.0 {
            Condition::Among(categories().collect())
        } else {
            Condition::UpTo(row[3] as usize)
        },
        left: sums(4),
        right: sums(7),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::split::BinKind;
    use super::super::layout::described;
    use super::*;

    #[test]
    fn features_and_splits_come_out_as_they_went_in() {
        for kind in [
            BinKind::Numbers { has_missing: true },
            BinKind::Numbers { has_missing: false },
            BinKind::Categories,
        ] {
            for monotone in [-1, 0, 1] {
                let feature = FeatureBins { number: 70_000, count: 65_537, kind, monotone };
                assert_eq!(described(describe(&feature)), Some(feature));
            }
        }
        assert_eq!(described(0), None);
        let sums = |gradient| Sums { gradient, hessian: 7, count: 3 };
        for condition in [Condition::UpTo(0), Condition::Among(vec![0, 5, 900])] {
            let (left, right) = (sums(-5), sums(9));
            let split = Split { feature: 0, condition, missing_left: true, gain: 0.25, left, right };
            assert_eq!(of_row(&to_row(Some(&split))), Some(split));
        }
        assert_eq!(of_row(&to_row(None)), None);
    }

    #[test]
    fn partitions_are_cut_between_features() {
        let starts = [0, 200, 300, 900, 901, 1400];
        assert_eq!(groups(&starts).collect::<Vec<_>>(), [0..300, 300..900, 900..1400]);
        let cuts = |count| spec(&starts, 3, count).partitioner;
        assert_eq!(cuts(2), Partitioner::Explicit { starts: vec![0, 300] });
        assert_eq!(cuts(9), Partitioner::Explicit { starts: vec![0, 300, 900] });
        assert_eq!(spec(&starts, 3, 1).rows, 10);
    }
}
