//! Tests of trees as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use data::{Batch, BatchBuilder, MemoryStream, Survey};
use math::random::{Purpose, stream};

use super::bins::{self, Feature, Features};
use super::forest::{Forest, ValueRows};
use super::grow::{Grower, TreeLimits};
use super::histogram::{BinSums, pack, total};
use super::records::Records;
use super::split::{Condition, SplitRule};
use super::tree::Test;
use crate::test_harness;

const RULE: SplitRule = SplitRule {
    l1: 0.0,
    l2: 0.0,
    min_gain: 0.0,
    min_records: 1,
    min_hessian: 0.0,
    gradient_unit: 1.0,
    hessian_unit: 1.0,
};

/// Records of three columns of numbers, with gaps, and a label.
fn table(count: usize, seed: u64) -> Vec<Batch> {
    let mut random = stream(seed, Purpose::Test, 0, 0);
    let mut builder = BatchBuilder::new();
    let mut batches = Vec::new();
    for r in 0..count {
        let mut label = 0.0;
        for key in 0..3u64 {
            if random.below(5) > 0 {
                let value = random.below(20) as f32 - 8.0;
                label += f64::from(value) * (key as f64 - 1.0) + f64::from(u8::from(value > 3.0));
                builder.push(key, value);
            }
        }
        builder.end_record(label + random.normal(), 1.0, None);
        if r % 97 == 96 || r + 1 == count {
            let mut batch = Batch::default();
            builder.finish(&mut batch);
            batches.push(batch);
        }
    }
    batches
}

fn features(batches: &[Batch], is_table: bool) -> Features {
    let mut survey = Survey::with_quantiles();
    for batch in batches {
        survey.add(batch);
    }
    Features::new(&bins::make(&survey, is_table, 255).unwrap(), is_table)
}

fn records(batches: &[Batch], is_table: bool) -> Records {
    let features = features(batches, is_table);
    Records::read(&mut MemoryStream::new(batches.to_vec()), features, |_| Ok(())).unwrap()
}

/// The bin of each record in each feature, and a word for each record.
fn cells(records: &Records) -> Vec<Vec<usize>> {
    let of = |feature| {
        let (mut all, mut out): (Vec<u32>, _) = ((0..records.count() as u32).collect(), Vec::new());
        records.for_each_bin(&mut all, feature, |_, _, bin| out.push(bin));
        out
    };
    (0..records.features().len()).map(of).collect()
}

fn words(records: &Records) -> Vec<u64> {
    let gradients = records.columns.labels.iter().map(|label| -label.round()).collect::<Vec<_>>();
    let mut packed = vec![0; records.count()];
    pack(&gradients, &vec![1.0; records.count()], (1.0, 1.0), &mut packed);
    packed
}

#[test]
fn histograms_are_the_sums_of_the_records_of_each_bin_in_every_layout() {
    // A table has its cells as bytes; few entries are stored sparsely.
    for (is_table, every) in [(true, 1), (false, 1), (false, 9)] {
        let mut batches = table(5000, 1);
        if every > 1 {
            for batch in &mut batches {
                for (i, index) in batch.indices.iter_mut().enumerate() {
                    if i % every > 0 {
                        *index = 0;
                    }
                }
            }
        }
        let records = records(&batches, is_table);
        let (packed, cells) = (words(&records), cells(&records));
        let leaf: Vec<u32> = (0..records.count() as u32).filter(|r| r % 3 > 0).collect();
        let starts = records.starts().to_vec();
        let mut found = vec![BinSums::default(); starts[cells.len()] as usize];
        records.histogram(&leaf, &packed, &mut Vec::new(), &mut found);
        let mut expected = vec![BinSums::default(); found.len()];
        for (feature, bins) in cells.iter().enumerate() {
            for &r in &leaf {
                expected[starts[feature] as usize + bins[r as usize]] += total(&[r], &packed);
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn the_best_split_is_that_of_all_that_there_are() {
    let batches = table(600, 2);
    let records = records(&batches, true);
    let (packed, cells) = (words(&records), cells(&records));
    let leaf: Vec<u32> = (0..records.count() as u32).collect();
    let all = total(&leaf, &packed);
    let score = |sums: BinSums| (sums.gradient as f64).powi(2) / sums.hessian as f64;
    let mut histogram = vec![BinSums::default(); *records.starts().last().unwrap() as usize];
    records.histogram(&leaf, &packed, &mut Vec::new(), &mut histogram);
    for (number, feature) in records.features().iter().enumerate() {
        let Feature::Numbers { bounds, .. } = feature else { panic!("there are only numbers") };
        let mut best = 0.0f64;
        for bin in 0..=bounds.len() {
            for missing_left in [false, true] {
                let is_left = |own: usize| if own == bounds.len() + 1 { missing_left } else { own <= bin };
                let left: Vec<u32> =
                    leaf.iter().copied().filter(|r| is_left(cells[number][*r as usize])).collect();
                let left = total(&left, &packed);
                if left.count > 0 && left.count < all.count {
                    best = best.max(score(left) + score(all - left) - score(all));
                }
            }
        }
        let range = records.starts()[number] as usize..records.starts()[number + 1] as usize;
        let found = RULE.best_of_feature(number, feature, &histogram[range], all).unwrap();
        assert!((found.gain - best).abs() < 1e-9 * best, "{number}: {} {best}", found.gain);
        assert!(matches!(found.condition, Condition::UpTo(_)));
    }
}

#[test]
fn equal_columns_are_split_at_the_first_and_a_constant_one_never() {
    let feature = Feature::Numbers { bounds: vec![0.5], has_missing: false };
    let sums = |gradient, count| BinSums { gradient, hessian: count, count };
    let bins = [sums(-50, 10), sums(50, 10)];
    let split = RULE.best_of_feature(3, &feature, &bins, sums(0, 20)).unwrap();
    assert_eq!((split.feature, split.condition), (3, Condition::UpTo(0)));
    let constant = Feature::Numbers { bounds: Vec::new(), has_missing: false };
    assert_eq!(RULE.best_of_feature(0, &constant, &[sums(-50, 20)], sums(-50, 20)), None);
    let rule = SplitRule { min_records: 11, ..RULE };
    assert_eq!(rule.best_of_feature(0, &feature, &bins, sums(0, 20)), None, "too few records");
}

#[test]
fn many_categories_are_divided_by_their_gradients() {
    let feature = Feature::Categories { count: 6 };
    let sums = |gradient| BinSums { gradient, hessian: 200, count: 200 };
    let bins: Vec<BinSums> = [900, -800, 850, -900, 880, 0, 0].map(sums).to_vec();
    let leaf = bins.iter().fold(BinSums::default(), |mut all, bin| {
        all += *bin;
        all
    });
    let split = RULE.best_of_feature(0, &feature, &bins, leaf).unwrap();
    assert!([vec![1, 3], vec![0, 2, 4]].map(Condition::Among).contains(&split.condition), "{split:?}");
}

#[test]
fn a_grown_tree_sends_records_where_its_leaves_have_them() {
    for is_table in [true, false] {
        let batches = table(2000, 3);
        let records = records(&batches, is_table);
        let packed = words(&records);
        let mut grower = Grower::default();
        let store = matrix::LocalStore::with_functions(
            matrix::LocalConfig { task_count: 1, wait_limit: test_harness::WAIT_LIMIT },
            matrix::FunctionTable::builtin(),
        );
        let mut agent = Arc::new(store).agent(0);
        let mut exchange = super::exchange::Exchange::new(&mut agent);
        let limits = TreeLimits { leaves: 15, depth: usize::MAX };
        let all = 0..records.count() as u32;
        let grown = grower.grow(&records, &packed, all, (&RULE, limits, &[true; 3]), &mut exchange).unwrap();
        assert_eq!((grown.leaves.len(), grown.tree.len()), (15, 29));
        let (mut tree, mut expected) = (grown.tree.clone(), vec![0.0; records.count()]);
        for (number, (node, own)) in grown.leaves.iter().enumerate() {
            tree[*node].value = number as f64 + 1.0;
            assert_eq!(tree[*node].count, own.len() as f64);
            own.iter().for_each(|r| expected[*r as usize] = number as f64 + 1.0);
        }
        assert!(tree.iter().all(|node| node.is_leaf() || matches!(node.test, Test::UpTo(_))));
        let features = features(&batches, is_table);
        let (mut forest, rows) = (Forest::new(&features), ValueRows::new(&features));
        forest.push(&tree);
        let mut found = Vec::new();
        for batch in &batches {
            let mut scores = vec![0.0; batch.record_count()];
            rows.add_scores(&forest, batch, 1, &mut scores);
            found.extend(scores);
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    for setting in [
        "iterations=0",
        "leaves=1",
        "max_bins=2",
        "learning_rate=0",
        "min_records=0",
        "objective=best",
        "l2=-1",
    ] {
        let (name, value) = setting.split_once('=').unwrap();
        let given = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert!(super::params::check(&given).is_err(), "{setting}");
    }
}
