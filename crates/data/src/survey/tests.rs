//! Tests of `survey.rs`.

use super::*;
use crate::BatchBuilder;

fn batch(records: &[&[(u64, f32)]]) -> Batch {
    let (mut builder, mut batch) = (BatchBuilder::new(), Batch::default());
    for record in records {
        record.iter().for_each(|&(key, value)| builder.push(key, value));
        builder.end_record(0.0, 1.0, None);
    }
    builder.finish(&mut batch);
    batch
}

#[test]
fn scales_and_lengths_are_those_of_the_entries() {
    let mut survey = Survey::default();
    survey.add(&batch(&[&[(0, 3.0), (1, 400.0)], &[(0, -3.0)]]));
    survey.add(&batch(&[&[(7 | NAMED_KEY_BIT, 1.0), (2, 1.0)]]));
    assert_eq!((survey.record_count, survey.entry_count, survey.column_count()), (3, 5, 4));
    assert_eq!((survey.negative_count, survey.one_weight), (1, 2.0));
    assert_eq!(survey.scale_ratio(), Some(400.0));
    assert!(survey.length_spread() > 1.0);
    assert_eq!((survey.whole_count, survey.label_sum), (5, 0.0));
    assert!((survey.entry_count_spread() - 8f64.sqrt() / 5.0 / 2.0).abs() < 1e-12);
    assert!((survey.entry_scale() - ((9.0 + 160_000.0 + 9.0 + 2.0) / 5.0f64).sqrt()).abs() < 1e-9);
    assert!((survey.density() - 5.0 / 12.0).abs() < 1e-12);
}

#[test]
fn quantiles_are_those_of_the_entries_of_numbered_columns() {
    let (mut left, mut right) = (Survey::with_quantiles(), Survey::with_quantiles());
    left.add(&batch(&[&[(0, 3.0), (7 | NAMED_KEY_BIT, 1.0)], &[(0, 1.0)]]));
    right.add(&batch(&[&[(0, 2.0), (4, 1.0)], &[(0, 4.0)]]));
    left.merge(&right);
    let sketch = left.quantiles(0).expect("column 0 has entries");
    assert_eq!((sketch.count(), sketch.bounds(2)), (4, vec![3.0]));
    assert_eq!(left.quantiles(4).map(QuantileSketch::count), Some(1));
    assert!(left.quantiles(7 | NAMED_KEY_BIT).is_some(), "a name without a field is a column");
    let mut without = Survey::default();
    without.add(&batch(&[&[(0, 3.0)]]));
    assert_eq!(without.quantiles(0), None);
    let wide: Vec<(u64, f32)> = (0..140_000).map(|key| (key, 2.0)).collect();
    left.add(&batch(&[&wide]));
    assert_eq!(left.quantiles(0), None, "there are too many columns");
}

#[test]
fn a_record_of_weight_w_counts_as_w_records() {
    let mut random = math::random::stream(1, math::random::Purpose::Test, 0, 0);
    let (mut weighted, mut repeated) = (Survey::with_quantiles(), Survey::with_quantiles());
    let (mut few, mut all) = (BatchBuilder::new(), BatchBuilder::new());
    for r in 0..40u64 {
        let entries: Vec<(u64, f32)> =
            (0..r % 5).map(|key| (key + r % 3, (random.uniform() * 8.0).round() as f32)).collect();
        let weight = 1 + r % 4;
        let add = |builder: &mut BatchBuilder, weight| {
            for &(key, value) in &entries {
                builder.push(key, value);
            }
            builder.end_record(r as f64, weight, None);
        };
        add(&mut few, weight as f32);
        (0..weight).for_each(|_| add(&mut all, 1.0));
    }
    for (builder, survey) in [(&mut few, &mut weighted), (&mut all, &mut repeated)] {
        let mut batch = Batch::default();
        builder.finish(&mut batch);
        survey.add(&batch);
    }
    let statistics = |survey: &Survey| {
        let bounds = survey.quantiles(1).expect("column 1 has entries").bounds(5);
        let sums = [survey.sample_size(), survey.density(), survey.one_share(), survey.label_mean()];
        let scales = [survey.entry_scale(), survey.scale_ratio().unwrap(), survey.mean_entry_count()];
        let spreads = [survey.length_spread(), survey.entry_count_spread()];
        let numbers = sums.into_iter().chain(scales).chain(spreads);
        // Sums of other terms differ in their last bits.
        (bounds, numbers.map(|number| format!("{number:.10e}")).collect::<Vec<_>>())
    };
    assert_eq!(statistics(&weighted), statistics(&repeated));
    assert!(weighted.record_count < repeated.record_count, "it tells how much is read");
}

#[test]
fn columns_are_counted_alike_however_records_are_divided() {
    /// Four standard deviations of an estimate from 1,024 hashes.
    const TOLERANCE: f64 = 4.0 / 32.0;
    let keys: Vec<(u64, f32)> = (0..50_000).map(|key| (key * 3, 1.0)).collect();
    let (mut one, mut left, mut right) = (Survey::default(), Survey::default(), Survey::default());
    for (i, record) in keys.chunks(10).enumerate() {
        one.add(&batch(&[record]));
        if i % 3 == 0 { left.add(&batch(&[record])) } else { right.add(&batch(&[record])) }
    }
    left.merge(&right);
    assert_eq!(one.column_count(), left.column_count());
    assert!((one.column_count() as f64 / 50_000.0 - 1.0).abs() < TOLERANCE, "{}", one.column_count());
    assert_eq!((one.scale_ratio(), left.scale_ratio()), (None, None), "too many to follow");
    let mut few = Survey::default();
    few.add(&batch(&[&[(0, 1.0)]]));
    assert_eq!(few.scale_ratio(), Some(1.0));
    few.merge(&left);
    assert_eq!(few.scale_ratio(), None, "one of both had too many");
}

#[test]
fn merged_surveys_are_those_of_all_records() {
    let records: Vec<Vec<(u64, f32)>> = (0..60u64)
        .map(|r| (0..r % 4).map(|k| (k * 2 + r % 3, [1.0, -2.0, 0.5, 3.0][(r + k) as usize % 4])).collect())
        .collect();
    let of = |range: std::ops::Range<usize>, has_values: bool| {
        let (mut builder, mut batch) = (BatchBuilder::new(), Batch::default());
        for r in range {
            for &(key, value) in &records[r] {
                if has_values { builder.push(key, value) } else { builder.push_one(key) }
            }
            builder.end_record(r as f64, 1.0, None);
        }
        builder.finish(&mut batch);
        let mut survey = Survey::with_quantiles();
        survey.add(&batch);
        survey
    };
    for has_values in [true, false] {
        let (first, second, mut all) = (of(0..17, has_values), of(17..60, has_values), of(0..60, has_values));
        let mut merged = first.clone();
        merged.merge(&second);
        assert!((merged.length_sums[0] / all.length_sums[0] - 1.0).abs() < 1e-12);
        all.length_sums[0] = merged.length_sums[0];
        assert_eq!(merged, all);
        assert_eq!((all.record_count, all.empty_weight, all.entry_count), (60, 15.0, 90));
        assert_eq!(all.label_sum, 59.0 * 30.0);
        assert_eq!(
            (all.negative_count > 0, all.whole_count < 90, all.one_weight < 90.0),
            (has_values, has_values, has_values)
        );
        let mut from_none = Survey::with_quantiles();
        from_none.merge(&second);
        assert_eq!(from_none, second);
    }
}
