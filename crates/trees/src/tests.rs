//! Tests of trees as a whole.

use std::sync::Arc;

use data::{Batch, BatchBuilder, MemoryStream, Survey};
use math::random::{Purpose, stream};

use super::bins::{self, Feature, Features};
use super::grow::{Grower, TreeInput, TreeSize};
use super::histogram::store::Histograms;
use super::histogram::sums::pack;
use super::histogram::{BinSums, Histogram, Sums, total};
use super::records::Records;
use super::sampling::FeatureSample;
use super::scoring::forest::{Forest, ValueRows};
use super::split::{
    BinKind, Condition, FeatureBins, LeafQuery, NO_LIMITS, Scratch, Split, SplitRule, SplitSearch,
};
use super::tree::Test;
use algo::test_harness;

const RULE: SplitRule = SplitRule {
    l1: 0.0,
    l2: 0.0,
    min_gain: 0.0,
    min_records: 1,
    min_hessian: 0.0,
    smoothing: 0.0,
    extra_draws: None,
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
        let mut found = Histogram::default();
        records.histogram(&leaf, &packed, &mut Vec::new(), &mut found);
        let mut expected = vec![Sums::default(); starts[cells.len()] as usize];
        for (feature, bins) in cells.iter().enumerate() {
            for &r in &leaf {
                expected[starts[feature] as usize + bins[r as usize]] += total(&[r], &packed);
            }
        }
        let found: Vec<Sums> = (0..expected.len()).map(|bin| found.bins().of(bin)).collect();
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
    let score = |sums: Sums| (sums.gradient as f64).powi(2) / sums.hessian as f64;
    let mut histogram = Histogram::default();
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
        let bins = histogram.bins().slice(range);
        let found = best_of_feature(&RULE, &feature.bins(number as u32, 0), bins, all).unwrap();
        assert!((found.gain - best).abs() < 1e-9 * best, "{number}: {} {best}", found.gain);
        assert!(matches!(found.condition, Condition::UpTo(_)));
    }
}

/// The best split of a leaf by a feature.
fn best_of_feature(rule: &SplitRule, feature: &FeatureBins, bins: BinSums<'_>, sums: Sums) -> Option<Split> {
    let leaf = LeafQuery { sums, output: 0.0, limits: NO_LIMITS, name: 0, allowed: Vec::new() };
    let mut scratch = Scratch::default();
    let mut search = SplitSearch::new(rule, &leaf, &mut scratch);
    search.try_feature(feature, bins);
    search.end()
}

fn numbers(number: u32, count: u32) -> FeatureBins {
    FeatureBins { number, count, kind: BinKind::Numbers { has_missing: false }, monotone: 0 }
}

#[test]
fn equal_columns_are_split_at_the_first_and_a_constant_one_never() {
    let sums = |gradient, count| Sums { gradient, hessian: count, count };
    let (lists, leaf) = ([[-50, 50], [10, 10]], sums(0, 20));
    let bins = BinSums { gradients: &lists[0], hessians: &lists[1], counts: &lists[1] };
    let split = best_of_feature(&RULE, &numbers(3, 2), bins, leaf).unwrap();
    assert_eq!((split.feature, split.condition), (3, Condition::UpTo(0)));
    let query = LeafQuery { sums: leaf, output: 0.0, limits: NO_LIMITS, name: 0, allowed: Vec::new() };
    let mut scratch = Scratch::default();
    let mut search = SplitSearch::new(&RULE, &query, &mut scratch);
    (3..6).for_each(|number| search.try_feature(&numbers(number, 2), bins));
    assert_eq!(search.end().unwrap().feature, 3);
    assert_eq!(best_of_feature(&RULE, &numbers(0, 1), bins.slice(0..1), sums(-50, 10)), None);
    let rule = SplitRule { min_records: 11, ..RULE };
    assert_eq!(best_of_feature(&rule, &numbers(0, 2), bins, leaf), None, "too few records");
}

#[test]
fn smoothed_and_limited_gains_are_the_plain_ones_where_nothing_is_smoothed_or_limited() {
    let lists: [Vec<i64>; 3] = [
        (0..40).map(|i| (i * 7919 % 501) - 250).collect(),
        (0..40).map(|i| i * 31 % 17).collect(),
        (0..40).map(|i| i % 5).collect(),
    ];
    let bins = BinSums { gradients: &lists[0], hessians: &lists[1], counts: &lists[2] };
    let [gradient, hessian, count] = lists.each_ref().map(|list| list.iter().sum());
    let leaf = Sums { gradient, hessian, count };
    let plain = best_of_feature(&RULE, &numbers(0, 40), bins, leaf).unwrap();
    let query = LeafQuery {
        sums: leaf,
        output: RULE.output(leaf, 0.0, NO_LIMITS),
        limits: [-1e9, 1e9],
        name: 0,
        allowed: Vec::new(),
    };
    let mut scratch = Scratch::default();
    let mut search = SplitSearch::new(&RULE, &query, &mut scratch);
    search.try_feature(&numbers(0, 40), bins);
    let limited = search.end().unwrap();
    assert_eq!(limited.condition, plain.condition);
    assert!((limited.gain - plain.gain).abs() < 1e-9 * plain.gain, "{} {}", limited.gain, plain.gain);
}

#[test]
fn many_categories_are_divided_by_their_gradients() {
    let feature = FeatureBins { number: 0, count: 7, kind: BinKind::Categories, monotone: 0 };
    let (gradients, counts) = ([900, -800, 850, -900, 880, 0, 0], [200; 7]);
    let bins = BinSums { gradients: &gradients, hessians: &counts, counts: &counts };
    let leaf = Sums { gradient: gradients.iter().sum(), hessian: 1400, count: 1400 };
    let split = best_of_feature(&RULE, &feature, bins, leaf).unwrap();
    assert!([vec![1, 3], vec![0, 2, 4]].map(Condition::Among).contains(&split.condition), "{split:?}");
}

#[test]
fn a_grown_tree_sends_records_where_its_leaves_have_them() {
    for is_table in [true, false] {
        let batches = table(2000, 3);
        let records = records(&batches, is_table);
        let packed = words(&records);
        let bins = (0..).zip(records.features()).map(|(number, feature)| feature.bins(number, 0)).collect();
        let mut grower = Grower::new(Histograms::new(bins, 15, false));
        let store = matrix::LocalStore::with_functions(
            matrix::LocalConfig { task_count: 1, wait_limit: test_harness::WAIT_LIMIT },
            matrix::FunctionTable::builtin(),
        );
        let mut agent = Arc::new(store).agent(0);
        let mut exchange = algo::exchange::Exchange::new(&mut agent);
        let all = 0..records.count() as u32;
        let sample = FeatureSample {
            seed: 1,
            tree: 0,
            feature_count: 3,
            tree_share: 1.0,
            level_share: 1.0,
            interactions: &[],
        };
        let size = TreeSize { leaves: 15, depth: usize::MAX, is_depth_wise: false };
        let input = TreeInput { records: &records, packed: &packed, rule: &RULE, size, sample: &sample };
        let grown = grower.grow(input, all, &mut exchange).unwrap();
        assert_eq!((grown.leaves.len(), grown.tree.len()), (15, 29));
        let (mut tree, mut expected) = (grown.tree.clone(), vec![0.0; records.count()]);
        for (number, leaf) in grown.leaves.iter().enumerate() {
            tree[leaf.node].value = number as f64 + 1.0;
            assert_eq!(tree[leaf.node].count, leaf.records.len() as f64);
            leaf.records.iter().for_each(|r| expected[*r as usize] = number as f64 + 1.0);
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
        let given = std::iter::once((name, value)).collect();
        assert!(super::params::check(&given).is_err(), "{setting}");
    }
}
