//! Tests of `label.rs`.

use super::*;

fn stats(rule: LabelRule, labels: &[f64]) -> LabelStats {
    let mut labeler = Labeler::new(rule);
    for &label in labels {
        labeler.apply(label, 1.0).unwrap();
    }
    labeler.stats
}

#[test]
fn kinds_are_recognized() {
    for (labels, kind) in [
        (&[][..], LabelKind::None),
        (&[1.0, 1.0], LabelKind::Constant),
        (&[1.0, 0.0], LabelKind::ZeroOne),
        (&[1.0, -1.0], LabelKind::MinusPlusOne),
        (&[1.0, 2.0, 5.0], LabelKind::Classes),
        (&[1.0, 2.5], LabelKind::Real),
    ] {
        assert_eq!(stats(LabelRule::Real, labels).kind(), kind, "{labels:?}");
    }
}

#[test]
fn mean_and_variance_are_those_of_the_labels() {
    let stats = stats(LabelRule::Real, &[1.0, 2.0, 6.0]);
    assert_eq!(stats.mean(), 3.0);
    assert!((stats.variance() - 14.0 / 3.0).abs() < 1e-12, "{}", stats.variance());
}

#[test]
fn a_weight_counts_as_so_many_labels() {
    let mut weighted = Labeler::new(LabelRule::Real);
    for (label, weight) in [(1.0, 3.0), (2.5, 1.0), (-4.0, 2.0)] {
        weighted.apply(label, weight).unwrap();
    }
    let repeated = stats(LabelRule::Real, &[1.0, 1.0, 1.0, 2.5, -4.0, -4.0]);
    assert_eq!((weighted.stats.mean(), weighted.stats.variance()), (repeated.mean(), repeated.variance()));
}

#[test]
fn binary_labels_are_mapped_to_zero_and_one() {
    let mut labeler = Labeler::new(LabelRule::Binary { positive: None });
    assert_eq!(labeler.apply(-1.0, 1.0), Ok(0.0));
    assert_eq!(labeler.apply(1.0, 1.0), Ok(1.0));
    assert!(labeler.apply(2.0, 1.0).unwrap_err().contains("positive_label=2"));
    assert!(labeler.apply(0.0, 1.0).is_err(), "-1 and 0 do not mix");
    let mut labeler = Labeler::new(LabelRule::Binary { positive: Some(2.0) });
    assert_eq!(labeler.apply(2.0, 1.0), Ok(1.0));
    assert_eq!(labeler.apply(1.0, 1.0), Ok(0.0));
    assert_eq!(labeler.stats.positive_count(), 1);
}

#[test]
fn classes_are_whole_numbers() {
    let mut labeler = Labeler::new(LabelRule::Class);
    assert_eq!(labeler.apply(7.0, 1.0), Ok(7.0));
    assert!(labeler.apply(0.5, 1.0).is_err());
    assert!(labeler.apply(1e10, 1.0).is_err());
}

#[test]
fn real_labels_and_their_statistics_keep_all_digits() {
    let labels = [1_764_200_000.125, 1_764_200_001.125, 1_764_200_002.125];
    let mut labeler = Labeler::new(LabelRule::Real);
    let kept = labels.map(|label| labeler.apply(label, 1.0).unwrap());
    assert_eq!(kept, labels);
    assert_eq!(labeler.stats.mean(), labels[1]);
    assert!((labeler.stats.variance() - 2.0 / 3.0).abs() < 1e-12, "{}", labeler.stats.variance());
    assert!(labeler.apply(1e39, 1.0).unwrap_err().contains("range of f32"));
}

#[test]
fn merged_statistics_equal_those_of_all_labels() {
    let (a, b) = ([1.0, 3.0, 3.0], [0.0, 3.0, -1.0]);
    let mut merged = stats(LabelRule::Real, &a);
    merged.merge(&stats(LabelRule::Real, &b));
    assert_eq!(merged, stats(LabelRule::Real, &[1.0, 3.0, 3.0, 0.0, 3.0, -1.0]));
    assert_eq!(merged.classes().unwrap(), [(-1.0, 1), (0.0, 1), (1.0, 1), (3.0, 3)]);
    let mut mixed = merged.clone();
    mixed.merge(&stats(LabelRule::Real, &[0.5]));
    assert_eq!((mixed.kind(), mixed.classes()), (LabelKind::Real, None));
    assert!(merged.check(LabelRule::Binary { positive: None }).is_err());
}

#[test]
fn too_many_classes_are_real_numbers() {
    let labels: Vec<f64> = (0..CLASS_LIMIT + 10).map(|i| i as f64).collect();
    let stats = stats(LabelRule::Real, &labels);
    assert_eq!(stats.kind(), LabelKind::Real);
    assert_eq!(stats.classes(), None);
}

#[test]
fn counts_and_the_range_are_those_of_the_labels() {
    let none = LabelStats::default();
    assert_eq!((none.count(), none.positive_count(), none.range()), (0, 0, None));
    assert_eq!((none.mean(), none.variance(), none.classes()), (0.0, 0.0, Some(vec![])));
    let some = stats(LabelRule::Real, &[-2.0, 5.0, 0.0, 3.0]);
    assert_eq!((some.count(), some.positive_count(), some.range()), (4, 2, Some((-2.0, 5.0))));
    let below = stats(LabelRule::Real, &[-2.0, -5.0]);
    assert_eq!(below.range(), Some((-5.0, -2.0)), "the first label is not compared with zero");
    let mut merged = below.clone();
    merged.merge(&none);
    assert_eq!(merged, below);
    let mut from_none = none;
    from_none.merge(&below);
    assert_eq!(from_none, below);
}

#[test]
fn the_largest_integer_that_is_counted_is_exact_in_f32() {
    let exact = stats(LabelRule::Real, &[0.0, 16_777_216.0]);
    assert_eq!((exact.kind(), exact.classes().map(|all| all.len())), (LabelKind::Classes, Some(2)));
    let beyond = stats(LabelRule::Real, &[0.0, 16_777_217.0]);
    assert_eq!((beyond.kind(), beyond.classes()), (LabelKind::Real, None));
    let mut labeler = Labeler::new(LabelRule::Class);
    assert!(labeler.apply(-16_777_216.0, 1.0).is_ok() && labeler.apply(16_777_217.0, 1.0).is_err());
}

#[test]
fn as_many_classes_as_the_limit_are_counted_also_after_a_merge() {
    let labels: Vec<f64> = (10..CLASS_LIMIT + 10).map(|i| i as f64).collect();
    let all = stats(LabelRule::Real, &labels);
    assert_eq!(all.classes().map(|all| all.len()), Some(CLASS_LIMIT));
    let mut same = all.clone();
    same.merge(&all);
    assert_eq!(same.classes().map(|all| all.len()), Some(CLASS_LIMIT));
    let mut more = all;
    more.merge(&stats(LabelRule::Real, &[5.0]));
    assert_eq!((more.kind(), more.classes()), (LabelKind::Real, None));
}

#[test]
fn a_label_beyond_f32_is_refused() {
    let mut labeler = Labeler::new(LabelRule::Real);
    assert!(labeler.apply(1e39, 1.0).unwrap_err().contains("within the range of f32"));
    assert!(labeler.apply(-3e38, 1.0).is_ok());
    assert_eq!(labeler.stats.count(), 1, "a refused label is not counted");
}

#[test]
fn labels_outside_of_the_range_of_an_objective_are_refused() {
    for (range, inside, outside) in [
        (LabelRange::NotNegative, [0.0, 0.5, 7.0], [-0.5, -3.0]),
        (LabelRange::Positive, [1e-30, 0.5, 7.0], [0.0, -3.0]),
        (LabelRange::Grades, [0.0, 1.0, 31.0], [0.5, 32.0]),
    ] {
        let mut labeler = Labeler::new(LabelRule::Range { range, objective: "own" });
        for label in inside {
            assert_eq!(labeler.apply(label, 1.0), Ok(label), "{range:?}");
        }
        for label in outside {
            let error = labeler.apply(label, 1.0).unwrap_err();
            assert!(error.contains("objective=own"), "{range:?} {label}: {error}");
        }
        assert_eq!(labeler.stats.count(), 3);
    }
}
