//! Metrics compared with their definitions, which are written as plain loops.

use math::random::{Purpose, RandomStream, stream};
use proptest::prelude::*;

use super::auc::AucAccumulator;
use super::calibration::CalibrationAccumulator;
use super::classification::{BinaryCounts, ClassCounts};
use super::gauc::GaucAccumulator;
use super::named::{MergeRule, NamedAccumulator, NamedMetric};
use super::regression::RegressionAccumulator;
use super::{
    BinaryAccumulator, ClassAccumulator, LossAccumulator, MetricAccumulator, RealAccumulator,
    STOPPING_METRICS, entropy,
};
use crate::param::common::EARLY_STOPPING_METRIC;

/// Rounding of sums of at most 1,000 products, in f64.
const ROUNDING: f64 = 1e-10;

/// `(score, positive, weight)`.
type Scored = (f64, bool, f32);

/// AUC as a sum over all pairs.
fn auc_by_pairs(records: &[Scored]) -> Option<f64> {
    let (mut right, mut all) = (0.0, 0.0);
    for positive in records.iter().filter(|record| record.1) {
        for negative in records.iter().filter(|record| !record.1) {
            let weight = f64::from(positive.2) * f64::from(negative.2);
            all += weight;
            right += weight
                * match positive.0.total_cmp(&negative.0) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                };
        }
    }
    (all > 0.0).then(|| right / all)
}

fn auc_parts(records: &[Scored]) -> AucAccumulator {
    let mut parts = AucAccumulator::default();
    for &(score, positive, weight) in records {
        parts.add(score, positive, weight);
    }
    parts
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() < ROUNDING,
        (a, b) => a == b,
    }
}

/// Draws few distinct scores, so that ties are common; they are exact in f32.
fn draw(random: &mut RandomStream, count: usize, weighted: bool) -> Vec<Scored> {
    let mut record = || {
        let score = random.below(20) as f64 / 4.0 - 2.0;
        let weight = if weighted { random.below(4) as f32 * 0.5 } else { 1.0 };
        (score, random.below(3) == 0, weight)
    };
    (0..count).map(|_| record()).collect()
}

#[test]
fn auc_equals_the_share_of_ordered_pairs_with_ties_and_weights() {
    let mut random = stream(1, Purpose::Test, 0, 0);
    for round in 0..200 {
        let records = draw(&mut random, round % 60, round % 2 == 1);
        assert!(close(auc_parts(&records).value(), auc_by_pairs(&records)), "{records:?}");
    }
}

#[test]
fn auc_of_many_records_sorts_rightly() {
    let mut random = stream(2, Purpose::Test, 0, 0);
    let records: Vec<Scored> = (0..20_000)
        .map(|_| {
            let positive = random.below(2) == 1;
            (random.normal() as f32 as f64 + f64::from(positive), positive, 1.0)
        })
        .collect();
    // With weights of 2 instead of 1, the weighted code computes the area.
    let doubled: Vec<Scored> = records.iter().map(|&(score, positive, _)| (score, positive, 2.0)).collect();
    assert!(close(auc_parts(&records).value(), auc_parts(&doubled).value()));
}

#[test]
fn the_limit_of_auc_is_one_of_records_and_not_of_their_pairs() {
    let mut random = stream(6, Purpose::Test, 0, 0);
    // 10,000 records of each class give 100 M pairs.
    let records: Vec<Scored> = (0..20_000).map(|i| (random.normal(), i % 2 == 0, 1.0)).collect();
    let (mut head, tail) = (auc_parts(&records[..7_000]), auc_parts(&records[7_000..]));
    head.merge(&tail);
    assert!(head.value().is_some());
    assert_eq!(head.value(), auc_parts(&records).value());
}

#[test]
fn minus_zero_and_zero_are_a_tie() {
    assert_eq!(auc_parts(&[(-0.0, true, 1.0), (0.0, false, 1.0)]).value(), Some(0.5));
}

#[test]
fn one_class_has_no_auc() {
    assert_eq!(auc_parts(&[(1.0, true, 1.0)]).value(), None);
    assert_eq!(auc_parts(&[]).value(), None);
}

#[test]
fn gauc_is_the_mean_of_the_groups_that_have_both_classes() {
    let mut random = stream(3, Purpose::Test, 0, 0);
    let (mut parts, mut expected, mut total) = (GaucAccumulator::default(), 0.0, 0.0);
    for group in 0..30 {
        let records = draw(&mut random, group as usize % 9, false);
        for &(score, positive, weight) in &records {
            parts.add(group, score, positive, weight);
        }
        if let Some(auc) = auc_by_pairs(&records) {
            expected += auc * records.len() as f64;
            total += records.len() as f64;
        }
    }
    assert!(close(parts.value(), Some(expected / total)));
}

#[test]
fn decisions_are_counted_as_the_textbook_does() {
    let mut counts = BinaryCounts::default();
    for (said, is, times) in [(true, true, 6), (true, false, 2), (false, false, 9), (false, true, 3)] {
        (0..times).for_each(|_| counts.add(said, is, 1.0));
    }
    assert!(close(counts.accuracy(), Some(15.0 / 20.0)));
    assert!(close(counts.precision(), Some(6.0 / 8.0)));
    assert!(close(counts.recall(), Some(6.0 / 9.0)));
    assert!(close(counts.f1(), Some(2.0 * 0.75 * (2.0 / 3.0) / (0.75 + 2.0 / 3.0))));
    assert_eq!(BinaryCounts::default().precision(), None);
}

#[test]
fn macro_f1_is_the_mean_over_the_classes_that_occur() {
    let mut counts = ClassCounts::new(4);
    for (said, is) in [(0, 0), (0, 1), (1, 1), (2, 2), (0, 2)] {
        counts.add(said, is, 1.0);
    }
    // Class 0: p 1/3, r 1 -> 1/2; class 1: p 1, r 1/2 -> 2/3; class 2: the same; class 3: never occurs, never
    // predicted.
    assert!(close(counts.macro_f1(), Some((0.5 + 2.0 / 3.0 + 2.0 / 3.0) / 3.0)));
    assert!(close(counts.accuracy(), Some(0.6)));
}

#[test]
fn regression_errors_are_those_of_two_passes() {
    // Labels of 1e6 have an absolute error of 1e-10 each; 500 of them are compared with a spread of 500.
    const TOLERANCE: f64 = 1e-8;
    let mut random = stream(4, Purpose::Test, 0, 0);
    // Labels are far from 0, where the one-pass textbook formula of the variance loses its digits.
    let records: Vec<(f64, f64)> = (0..500).map(|_| (1e6 + random.normal(), 1e6 + random.normal())).collect();
    let mut halves = [RegressionAccumulator::default(), RegressionAccumulator::default()];
    for (i, (prediction, label)) in records.iter().enumerate() {
        halves[i / 250].add(*prediction, *label, 1.0);
    }
    let [mut parts, second] = halves;
    parts.merge(&second);
    let n = records.len() as f64;
    let mean = records.iter().map(|record| record.1).sum::<f64>() / n;
    let square: f64 = records.iter().map(|(p, y)| (p - y).powi(2)).sum();
    let spread: f64 = records.iter().map(|(_, y)| (y - mean).powi(2)).sum();
    assert!((parts.rmse().unwrap() - (square / n).sqrt()).abs() < TOLERANCE);
    assert!((parts.r2().unwrap() - (1.0 - square / spread)).abs() < TOLERANCE);
    assert!(
        (parts.mae().unwrap() - records.iter().map(|(p, y)| (p - y).abs()).sum::<f64>() / n).abs()
            < TOLERANCE
    );
}

#[test]
fn calibration_bins_hold_what_a_plain_loop_puts_there() {
    let mut random = stream(5, Purpose::Test, 0, 0);
    let edges = (0..=10).map(|i| (f64::from(i) / 10.0, i == 3, 1.0));
    let drawn = (0..500).map(|i| (random.uniform(), i % 3 == 0, f64::from(i % 4)));
    let records: Vec<(f64, bool, f64)> = drawn.chain(edges).collect();
    let mut halves = [CalibrationAccumulator::default(), CalibrationAccumulator::default()];
    for (i, &(prediction, label, weight)) in records.iter().enumerate() {
        halves[i % 2].add(prediction, f64::from(u8::from(label)), weight);
    }
    let [mut parts, second] = halves;
    parts.merge(&second);
    let table = parts.table();
    assert_eq!(table.len(), 10);
    for row in table {
        let inside: Vec<_> = records
            .iter()
            .filter(|record| (record.0 > row.low || row.low == 0.0) && record.0 <= row.high)
            .collect();
        let weight: f64 = inside.iter().map(|record| record.2).sum();
        let mean: f64 = inside.iter().map(|record| record.0 * record.2).sum::<f64>() / weight;
        let share: f64 = inside.iter().filter(|record| record.1).map(|record| record.2).sum::<f64>() / weight;
        assert_eq!(row.records, inside.len() as u64, "{row:?}");
        assert!(close(Some(row.mean_predicted), Some(mean)) && close(Some(row.observed_share), Some(share)));
    }
}

#[test]
fn the_loss_of_a_constant_is_the_entropy_of_the_labels() {
    assert_eq!([entropy(0.0), entropy(1.0)], [0.0, 0.0]);
    assert!((entropy(0.25) - 0.25 * 4f64.ln()).abs() < ROUNDING);
}

#[test]
fn every_watched_metric_can_be_named_and_is_reported() {
    let names: Vec<&str> = STOPPING_METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(EARLY_STOPPING_METRIC.kind.describe(), names.join(" | "));
}

proptest! {
    #[test]
    fn merged_parts_equal_the_parts_of_all_records(
        records in prop::collection::vec((-3i8..3, any::<bool>(), 0u8..3, 0u64..3), 0..60),
        cut in 0usize..60,
    ) {
        let cut = cut.min(records.len());
        let (mut all, mut head, mut tail) = Default::default();
        let add = |auc: &mut AucAccumulator, (score, positive, weight, _): (i8, bool, u8, u64)| {
            auc.add(f64::from(score), positive, f32::from(weight));
        };
        for &record in &records {
            add(&mut all, record);
        }
        for &record in &records[..cut] {
            add(&mut head, record);
        }
        for &record in &records[cut..] {
            add(&mut tail, record);
        }
        head.merge(&tail);
        prop_assert_eq!(head.value(), all.value());
        let (mut all, mut head, mut tail) = Default::default();
        let add = |gauc: &mut GaucAccumulator, (score, positive, weight, group): (i8, bool, u8, u64)| {
            gauc.add(group, f64::from(score), positive, f32::from(weight));
        };
        for &record in &records {
            add(&mut all, record);
        }
        for &record in &records[..cut] {
            add(&mut head, record);
        }
        for &record in &records[cut..] {
            add(&mut tail, record);
        }
        head.merge(&tail);
        prop_assert_eq!(head.value(), all.value());
    }
}

#[test]
fn the_best_constant_prediction_is_the_share_of_the_ones() {
    let loss = |probabilities| {
        let mut parts = BinaryAccumulator { probabilities, ..Default::default() };
        for (is, weight) in [(true, 1.0), (false, 2.0), (false, 1.0)] {
            parts.counts.add(true, is, weight);
        }
        MetricAccumulator::Binary(Box::new(parts)).constant_loss().unwrap()
    };
    // A share of one quarter.
    let expected = -(0.25f64.ln() * 0.25 + 0.75f64.ln() * 0.75);
    assert!((loss(true) - expected).abs() < ROUNDING, "{} {expected}", loss(true));
    assert_eq!(loss(false), 0.75, "4 x 1/4 x 3/4");
    assert_eq!(MetricAccumulator::Binary(Box::default()).constant_loss(), None);
    assert_eq!(MetricAccumulator::Real(RealAccumulator::default()).constant_loss(), None);
    let mut counts = ClassCounts::new(3);
    for class in [0, 1, 1, 2] {
        counts.add(0, class, 1.0);
    }
    let classes = ClassAccumulator { loss: LossAccumulator::default(), counts, confusion: None };
    let found = MetricAccumulator::Classes(Box::new(classes)).constant_loss().unwrap();
    assert!((found - 1.5 * 2f64.ln()).abs() < ROUNDING, "{found}");
}

#[test]
fn metrics_of_a_family_are_sums_or_means_over_all_tasks() {
    let of = |records: &[(f64, f64)]| {
        let metrics =
            vec![NamedMetric::new("sum", MergeRule::Sum), NamedMetric::new("mean", MergeRule::Mean)];
        let mut parts = NamedAccumulator { metrics, ..NamedAccumulator::default() };
        for &(value, weight) in records {
            parts.loss.add(value, weight);
            parts.metrics.iter_mut().for_each(|metric| metric.add(value, weight));
        }
        parts
    };
    let mut all = of(&[(5.0, 2.0), (1.0, 0.5)]);
    all.merge(&of(&[(-2.0, 1.5)]));
    assert_eq!(all, of(&[(5.0, 2.0), (1.0, 0.5), (-2.0, 1.5)]));
    let values = |parts: &NamedAccumulator| parts.values().map(|(_, value)| value).collect::<Vec<_>>();
    assert_eq!(values(&all), [7.5, 7.5 / 4.0]);
    assert_eq!(values(&of(&[])), [0.0], "a mean of no records is not there");
    assert_eq!((all.loss.loss_sum, all.loss.weight_sum, all.loss.record_count), (7.5, 4.0, 3));
}

#[test]
fn of_equal_scores_the_first_class_is_predicted() {
    assert_eq!(
        [super::argmax(&[1.0, 3.0, 3.0, 2.0]), super::argmax(&[-2.0, -1.0]), super::argmax(&[0.0, 0.0])],
        [1, 1, 0]
    );
}
