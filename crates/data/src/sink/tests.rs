//! Tests of `sink.rs`.

use math::random::{Purpose, stream};

use super::*;
use crate::bad_lines::BadLinePolicy;
use crate::rounding::RoundedNumbers;

fn sink(rule: LabelRule) -> Sink {
    Sink::new(rule, BadLineTally::new(BadLinePolicy::Fail))
}

fn finished(sink: &mut Sink) -> Batch {
    let mut batch = Batch::default();
    sink.finish(&mut batch);
    batch
}

#[test]
fn a_refused_record_leaves_nothing() {
    let mut sink = sink(LabelRule::Binary { positive: None });
    sink.set_key_limit(Some(KeyLimit { limit: 5, setting: "dimensions" }));
    sink.builder().push(4, 1.0);
    assert_eq!(sink.key_beyond_limit(), None);
    sink.end_record(Some(1.0), 1.0, None).unwrap();
    sink.builder().push(5, 1.0);
    sink.builder().push(2, 1.0);
    let expected = "feature numbers below 5 (dimensions = 5)".to_owned();
    assert_eq!(sink.key_beyond_limit(), Some((5, expected.clone())));
    assert_eq!(sink.end_record(Some(1.0), 1.0, None), Err(format!("{expected}, not 5")));
    sink.builder().push(1, 1.0);
    assert!(sink.end_record(Some(7.0), 1.0, None).is_err());
    sink.builder().push(3, 1.0);
    sink.skip_unlabelled();
    assert_eq!((sink.record_count(), sink.entry_count()), (1, 1));
    assert_eq!((sink.total_records(), sink.unlabelled_count()), (1, 1));
    assert_eq!(finished(&mut sink).columns, [4]);
    assert_eq!((sink.record_count(), sink.total_records()), (0, 1));
}

#[test]
fn a_record_of_weight_0_is_left_out_of_the_labels_the_holdout_and_the_batch() {
    let mut sink = sink(LabelRule::Binary { positive: None });
    sink.skip_weightless();
    sink.set_holdout(HoldoutRule::Share(0.5, stream(1, Purpose::Validation, 0, 0)));
    let mut without = self::sink(LabelRule::Binary { positive: None });
    without.set_holdout(HoldoutRule::Share(0.5, stream(1, Purpose::Validation, 0, 0)));
    for record in 0..50u32 {
        sink.builder().push(99, 1.0);
        // Nothing of it counts, also not a label that would be refused.
        sink.end_record(Some(7.0), 0.0, None).unwrap();
        for sink in [&mut sink, &mut without] {
            sink.builder().push(u64::from(record), 1.0);
            sink.end_record(Some(f64::from(record % 2)), 2.0, None).unwrap();
        }
    }
    assert_eq!((sink.total_records(), sink.weightless_count()), (50, 50));
    assert_eq!(sink.labels(), without.labels());
    assert_eq!(sink.take_holdout(), without.take_holdout());
    assert_eq!(finished(&mut sink), finished(&mut without));
}

#[test]
fn a_rounded_value_of_a_refused_record_is_not_told() {
    let mut sink = sink(LabelRule::Real);
    let written = 16_777_217.0;
    for is_refused in [true, false] {
        sink.builder().note_rounding(3, written as f32, || Some(written));
        if is_refused {
            sink.discard_record();
        } else {
            sink.end_record(Some(written), 1.0, None).unwrap();
        }
    }
    let rounded = RoundedNumbers { count: 1, first: written };
    let features = [("feature 3".to_owned(), rounded)].into_iter().collect();
    assert_eq!(sink.rounded(), RoundingReport { features });
}

#[test]
fn late_records_are_held_out_and_one_without_a_time_is_refused() {
    let mut sink = sink(LabelRule::Real);
    sink.set_holdout(HoldoutRule::From(10.0));
    for (label, time) in [(1.0, 9.5), (2.0, 10.0), (3.0, 11.0), (4.0, -1.0)] {
        sink.builder().push(label as u64, 1.0);
        sink.builder().set_time(time);
        sink.end_record(Some(label), 1.0, None).unwrap();
    }
    sink.builder().push(9, 1.0);
    let expected = "a time of the record, which decides whether it is held out";
    assert_eq!(sink.end_record(Some(5.0), 1.0, None), Err(expected.to_owned()));
    let held = sink.take_holdout();
    assert_eq!(
        (held.len(), &held[0].labels[..], &held[0].times[..]),
        (1, &[2.0, 3.0][..], &[10.0, 11.0][..])
    );
    let batch = finished(&mut sink);
    assert_eq!((&batch.labels[..], &batch.columns[..]), (&[1.0, 4.0][..], &[1, 4][..]));
    assert_eq!(sink.total_records(), 4);
    assert!(sink.take_holdout().is_empty());
}

#[test]
fn held_out_records_come_in_batches() {
    let mut sink = sink(LabelRule::Real);
    sink.set_holdout(HoldoutRule::Share(1.0, stream(1, Purpose::Validation, 0, 0)));
    for record in 0..=HOLDOUT_BATCH_SIZE as u64 {
        sink.builder().push(record, 1.0);
        sink.end_record(Some(0.0), 1.0, None).unwrap();
    }
    let sizes: Vec<usize> = sink.take_holdout().iter().map(Batch::record_count).collect();
    assert_eq!(sizes, [HOLDOUT_BATCH_SIZE, 1]);
    assert_eq!(sink.record_count(), 0);
    sink.set_holdout(HoldoutRule::Share(0.0, stream(1, Purpose::Validation, 0, 0)));
    sink.end_record(Some(0.0), 1.0, None).unwrap();
    assert_eq!((sink.record_count(), sink.take_holdout().len()), (1, 0));
}

#[test]
fn a_notice_is_stored_once() {
    let mut sink = sink(LabelRule::Real);
    for text in ["a", "b", "a"] {
        sink.add_notice(text);
    }
    assert_eq!(sink.notices(), ["a", "b"]);
}
