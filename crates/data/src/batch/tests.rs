use super::*;

fn build(records: &[&[(u64, f32)]]) -> Batch {
    let mut builder = BatchBuilder::new();
    for record in records {
        for &(key, value) in *record {
            builder.push(key, value);
        }
        builder.end_record(1.0, 1.0, None);
    }
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    batch
}

#[test]
fn columns_are_sorted_and_distinct_and_entries_point_at_them() {
    let batch = build(&[&[(9, 1.0), (4, 1.0)], &[], &[(4, 1.0), (1 << 40, 1.0)]]);
    assert_eq!(batch.columns, [4, 9, 1 << 40]);
    assert_eq!(batch.indices, [1, 0, 0, 2]);
    assert_eq!(batch.offsets, [0, 2, 2, 4]);
    assert!(batch.values.is_empty(), "all values are 1");
}

#[test]
fn values_are_written_out_from_the_first_that_is_not_one() {
    let batch = build(&[&[(1, 1.0), (2, 0.5)], &[(2, 1.0)]]);
    assert_eq!(batch.values, [1.0, 0.5, 1.0]);
}

#[test]
fn an_abandoned_record_leaves_nothing() {
    let mut builder = BatchBuilder::new();
    builder.push(7, 2.0);
    builder.end_record(0.0, 3.0, Some(5));
    builder.push(8, 2.0);
    builder.discard_record();
    builder.end_record(1.0, 1.0, None);
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    assert_eq!(batch.columns, [7]);
    assert_eq!(batch.offsets, [0, 1, 1]);
    assert_eq!(batch.weights, [3.0, 1.0]);
    assert_eq!(batch.groups, [5, 0]);
}

#[test]
fn duplicates_are_added_up_on_request() {
    let mut builder = BatchBuilder::new();
    builder.push(1, 5.0);
    builder.end_record(0.0, 1.0, None);
    for (key, value) in [(9, 1.0), (4, 0.5), (9, 2.0)] {
        builder.push(key, value);
    }
    assert!(builder.sum_duplicates());
    builder.end_record(1.0, 1.0, None);
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    assert_eq!((batch.columns, batch.indices), (vec![1, 4, 9], vec![0, 1, 2]));
    assert_eq!(batch.values, [5.0, 0.5, 3.0]);
}

#[test]
fn duplicates_are_seen_in_any_order() {
    let mut builder = BatchBuilder::new();
    for key in [3, 9, 4, 9] {
        builder.push_one(key);
    }
    assert_eq!(builder.duplicate_key(), Some(9));
}

#[test]
fn a_record_that_moves_keeps_its_values() {
    let (mut from, mut to) = (BatchBuilder::new(), BatchBuilder::new());
    from.push(1, 2.0);
    from.push(2, 3.0);
    from.end_record(1.0, 1.0, None);
    for (key, value) in [(3, 5.0), (4, 6.0), (5, 7.0)] {
        from.push(key, value);
    }
    from.move_open_record(&mut to);
    to.end_record(0.0, 1.0, None);
    let (mut kept, mut moved) = (Batch::default(), Batch::default());
    from.finish(&mut kept);
    to.finish(&mut moved);
    assert_eq!((kept.columns, kept.values), (vec![1, 2], vec![2.0, 3.0]));
    assert_eq!((moved.columns, moved.values), (vec![3, 4, 5], vec![5.0, 6.0, 7.0]));
}

/// Two records with everything that a batch may have.
fn full() -> Batch {
    let mut builder = BatchBuilder::new();
    for (at, group) in [(1_u32, 7), (2, 8)] {
        builder.push_with_field(at, u64::from(at) + 10, 0.5);
        builder.set_time(f64::from(at) * 0.25);
        builder.push_passthrough(format!("text {at}").as_bytes());
        builder.end_record(at as f64, 3.0, Some(group));
    }
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    batch.numbers = vec![4, 5];
    batch
}

#[test]
fn a_copy_has_everything_and_clearing_takes_everything() {
    let original = full();
    let mut copy = build(&[&[(3, 1.0)], &[(4, 1.0)], &[(5, 1.0)]]);
    copy.copy_from(&original);
    assert_eq!(copy, original);
    assert_eq!((copy.weight(0), copy.weight(1), build(&[&[]]).weight(0)), (3.0, 3.0, 1.0));
    assert_eq!((copy.passthrough.len(), copy.passthrough.is_empty()), (2, false));
    assert_eq!((copy.passthrough.get(0), copy.passthrough.get(1)), (&b"text 1"[..], &b"text 2"[..]));
    copy.clear();
    assert_eq!(copy, Batch::default());
    assert!(copy.passthrough.is_empty());
}

#[test]
fn ones_of_every_width_follow_a_value() {
    let mut builder = BatchBuilder::new();
    builder.extend_ones(&[1]);
    builder.extend_small_ones(&[2]);
    builder.push(3, 0.5);
    builder.push_one(4);
    builder.extend_ones(&[5, 6]);
    builder.extend_small_ones(&[7, 8]);
    #[cfg(feature = "parquet")]
    builder.extend_ones_u32(&[9]);
    builder.end_record(0.0, 1.0, None);
    builder.extend_ones(&[1 << 40]);
    builder.end_record(0.0, 1.0, None);
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    let ones = 5 + usize::from(cfg!(feature = "parquet"));
    assert_eq!(batch.values, [vec![1.0, 1.0, 0.5], vec![1.0; ones + 1]].concat());
    assert_eq!(batch.offsets, [0, 3 + ones as u32, 4 + ones as u32]);
}

#[test]
fn a_field_is_marked_for_the_entries_since_the_last_mark() {
    let mut builder = BatchBuilder::new();
    builder.extend_ones(&[1, 2]);
    builder.mark_field(4);
    builder.mark_field(5);
    builder.push_one(3);
    builder.mark_field(6);
    builder.end_record(0.0, 1.0, None);
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    assert_eq!(batch.fields, [4, 4, 6]);
}

#[test]
fn tokens_keep_their_order_or_are_counted() {
    for (keeps_order, keys, values) in [(true, vec![5, 3, 5], vec![]), (false, vec![3, 5], vec![1.0, 2.0])] {
        let mut builder = BatchBuilder::new();
        builder.push_tokens(&mut [5, 3, 5], keeps_order);
        assert_eq!((builder.open_keys(), builder.entry_count()), (keys.clone(), keys.len()));
        builder.end_record(0.0, 1.0, None);
        let mut batch = Batch::default();
        builder.finish(&mut batch);
        assert_eq!(batch.values, values);
    }
}

#[test]
fn the_largest_key_is_that_of_the_open_record() {
    for wide in [0, 1 << 40] {
        let mut builder = BatchBuilder::new();
        builder.push_one(99 + wide);
        builder.end_record(0.0, 1.0, None);
        assert_eq!(builder.largest_open_key(), None);
        builder.extend_ones(&[3, 8 + wide, 5]);
        assert_eq!(builder.largest_open_key(), Some(8 + wide));
        assert_eq!(builder.duplicate_key(), None);
    }
}

#[test]
fn weights_and_groups_begin_at_any_record() {
    let mut builder = BatchBuilder::new();
    for (weight, group) in [(1.0, None), (1.0, Some(9)), (2.0, None), (1.0, Some(8))] {
        builder.end_record(0.0, weight, group);
    }
    assert_eq!(builder.record_count(), 4);
    let mut batch = Batch::default();
    builder.finish(&mut batch);
    assert_eq!((batch.weights, batch.groups), (vec![1.0, 1.0, 2.0, 1.0], vec![0, 9, 0, 8]));
}

#[test]
fn a_sum_beyond_f32_is_refused_wherever_it_stands() {
    for keys in [[1, 1, 2], [1, 2, 2]] {
        let mut builder = BatchBuilder::new();
        for key in keys {
            builder.push(key, f32::MAX);
        }
        assert!(!builder.sum_duplicates(), "{keys:?}");
    }
}

#[test]
fn numbers_that_lose_digits_are_noted_until_their_record_ends() {
    let mut builder = BatchBuilder::new();
    let note = |builder: &mut BatchBuilder, key, written: f64| {
        builder.note_rounding(key, written as f32, || Some(written));
    };
    let taken = |builder: &mut BatchBuilder| {
        let mut all = Vec::new();
        builder.take_rounded(|key, written| all.push((key, written)));
        all
    };
    for (key, written) in [(0, 16_777_217.0), (1, 16_777_216.0), (2, 0.1), (3, -16_777_219.0)] {
        note(&mut builder, key, written);
    }
    assert_eq!(taken(&mut builder), [(0, 16_777_217.0), (3, -16_777_219.0)]);
    assert!(taken(&mut builder).is_empty());
    note(&mut builder, 4, 16_777_217.0);
    builder.discard_record();
    assert!(taken(&mut builder).is_empty());
    note(&mut builder, 5, 16_777_217.0);
    let mut other = BatchBuilder::new();
    builder.move_open_record(&mut other);
    assert_eq!((taken(&mut builder), taken(&mut other)), (vec![], vec![(5, 16_777_217.0)]));
}

#[test]
fn a_record_moves_with_its_fields_its_time_and_its_texts() {
    let (mut from, mut to) = (BatchBuilder::new(), BatchBuilder::new());
    let push = |builder: &mut BatchBuilder, field, time, texts: &[&str]| {
        builder.push_with_field(field, 10, 2.0);
        builder.set_time(time);
        assert_eq!(builder.open_time(), Some(time));
        for text in texts {
            builder.push_passthrough(text.as_bytes());
        }
    };
    push(&mut to, 1, 1.0, &["a"]);
    to.end_record(0.0, 1.0, None);
    push(&mut from, 1, 1.0, &["b"]);
    from.end_record(0.0, 1.0, None);
    push(&mut from, 1, 2.0, &["c", "d"]);
    from.push_with_field(2, 11, 3.0);
    from.move_open_record(&mut to);
    assert_eq!(from.open_time(), None);
    to.end_record(0.0, 1.0, None);
    let (mut kept, mut moved) = (Batch::default(), Batch::default());
    from.finish(&mut kept);
    to.finish(&mut moved);
    assert_eq!((kept.fields, kept.times, kept.passthrough.len()), (vec![1], vec![1.0], 1));
    assert_eq!((moved.fields, moved.times, moved.passthrough.len()), (vec![1, 1, 2], vec![1.0, 2.0], 3));
    assert_eq!(moved.passthrough.get(2), b"d");
}

#[test]
fn a_builder_begins_anew_after_each_batch() {
    let mut builder = BatchBuilder::new();
    let mut batch = Batch::default();
    for texts in [2, 1] {
        for at in 0..texts {
            builder.push(at, 2.0);
            builder.push_passthrough(b"kept");
            builder.end_record(0.0, 1.0, None);
        }
        builder.push_passthrough(b"dropped");
        builder.discard_record();
        builder.finish(&mut batch);
        assert_eq!((batch.record_count(), batch.passthrough.len()), (texts as usize, texts as usize));
        assert_eq!((builder.record_count(), builder.entry_count()), (0, 0));
    }
}

#[test]
#[should_panic(expected = "a record is still open")]
fn an_open_record_is_not_lost_without_a_word() {
    let mut builder = BatchBuilder::new();
    builder.push_one(1);
    builder.finish(&mut Batch::default());
}
