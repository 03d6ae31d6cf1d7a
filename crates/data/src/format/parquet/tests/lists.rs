//! Lists in all the encodings that writers use.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;

use arrow_array::builder::{Float64Builder, ListBuilder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use std::sync::Arc;

use super::{Batch, Case, LISTS, Raw, entries, write, write_with};

/// A way in which other programs write: page version, dictionary, encodings that only the general reader supports,
/// lists over pages, compression.
fn way() -> impl Strategy<Value = WriterProperties> {
    let version = prop_oneof![Just(WriterVersion::PARQUET_1_0), Just(WriterVersion::PARQUET_2_0)];
    let encoding = prop_oneof![3 => Just(Encoding::PLAIN), 1 => Just(Encoding::DELTA_BINARY_PACKED)];
    (version, any::<bool>(), encoding, 1usize..40, any::<bool>()).prop_map(
        |(version, dictionary, encoding, page, compressed)| {
            let compression =
                if compressed { Compression::ZSTD(ZstdLevel::default()) } else { Compression::UNCOMPRESSED };
            WriterProperties::builder()
                .set_writer_version(version)
                .set_dictionary_enabled(dictionary)
                .set_column_encoding("indices.list.element".into(), encoding)
                .set_write_batch_size(page)
                .set_data_page_row_count_limit(page)
                .set_dictionary_page_size_limit(64)
                .set_compression(compression)
                .build()
        },
    )
}

/// Lists of ascending keys; some are null.
fn records() -> impl Strategy<Value = Vec<Option<Vec<i64>>>> {
    let keys = prop_oneof![
        prop::collection::btree_set(0i64..20, 0..9),
        prop::collection::btree_set(0i64..1 << 40, 0..40)
    ];
    let list = prop_oneof![1 => Just(None), 9 => keys.prop_map(|keys| Some(keys.into_iter().collect()))];
    prop::collection::vec(list, 1..60)
}

/// The columns of [`LISTS`]; the value of a key is its remainder.
fn columns(records: &[Option<Vec<i64>>]) -> [Raw; 3] {
    let (mut keys, mut definitions, mut repetitions) = (vec![], vec![], vec![]);
    for record in records {
        match record.as_deref() {
            None | Some([]) => {
                definitions.push(i16::from(record.is_some()));
                repetitions.push(0);
            }
            Some(list) => {
                definitions.resize(definitions.len() + list.len(), 3);
                repetitions.push(0);
                repetitions.resize(definitions.len(), 1);
                keys.extend_from_slice(list);
            }
        }
    }
    let values = keys.iter().map(|&key| value(key)).collect();
    [
        Raw::I32(vec![1; records.len()], vec![], vec![]),
        Raw::I64(keys, definitions.clone(), repetitions.clone()),
        Raw::F64(values, definitions, repetitions),
    ]
}

fn value(key: i64) -> f64 {
    f64::from((key % 7) as i32 + 1)
}

proptest! {
    #[test]
    fn lists_are_read_alike_however_they_are_written(records in records(), way in way()) {
        let case = Case::new();
        write_with(way, &case.path(), LISTS, 1, &columns(&records));
        let batch = case.read().expect("a good file");
        prop_assert_eq!(batch.record_count(), records.len());
        for (r, record) in records.iter().enumerate() {
            let keys = record.iter().flatten();
            let expected: Vec<_> = keys.map(|&key| (key as u64, value(key) as f32)).collect();
            prop_assert_eq!(entries(&batch, r), expected);
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_or_records(
        records in records(),
        way in way(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let case = Case::new();
        write_with(way, &case.path(), LISTS, 1, &columns(&records));
        let mut bytes = std::fs::read(case.path()).expect("written above");
        for (place, byte) in damage {
            *place.get_mut(&mut bytes) = byte;
        }
        std::fs::write(case.path(), bytes).expect("room for as much");
        // The batch may have wrong values, which nothing in the file shows, but it must be consistent.
        if let Ok(batch) = case.read() {
            prop_assert_eq!(batch.offsets.len(), batch.record_count() + 1);
        }
    }
}

#[test]
fn whole_numbers_whose_digits_are_lost_are_told_in_lists_as_in_columns() {
    let case = Case::new();
    let schema = Arc::new(Schema::new(vec![
        Field::new("f", DataType::List(Arc::new(Field::new("item", DataType::Float64, false))), false),
        Field::new("label", DataType::Float64, false),
    ]));
    let mut lists =
        ListBuilder::new(Float64Builder::new()).with_field(Field::new("item", DataType::Float64, false));
    for value in [1.5, 16_777_217.0] {
        lists.values().append_slice(&[0.25, value]);
        lists.append(true);
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(lists.finish()), Arc::new(Float64Array::from(vec![0.0, 1.0]))];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let file = std::fs::File::create(case.path()).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut reader = case.reader([0]).unwrap();
    reader.next_batch(10, &mut Batch::default()).unwrap();
    let notice = reader.summary().rounded.notice().unwrap();
    assert!(notice.contains("feature 1 in 1 record (16777217 becomes 16777216)"), "{notice}");
}

/// Records `[a, b, a]`, null, `[]`, `[null, c d]`: each string is a token, whatever is in it.
#[test]
fn lists_of_strings_are_tokens() {
    let case = Case::new();
    let schema = "message m { required int32 label; optional group words (LIST) { repeated group list { optional \
                  binary element (UTF8); } } }";
    let (definitions, repetitions) = (vec![3, 3, 3, 0, 1, 2, 3], vec![0, 1, 1, 0, 0, 0, 1]);
    let words = Raw::Text(vec!["a", "b", "a", "c d"], definitions, repetitions);
    write(&case.path(), schema, 2, &[Raw::I32(vec![1, 0, 0, 1], vec![], vec![]), words]);
    let batch = case.read().expect("a good file");
    assert_eq!(batch.record_count(), 8);
    let key = |word: &str| math::hash::named_key(b"words", word.as_bytes());
    for (r, expected) in
        [vec![("a", 2.0), ("b", 1.0)], vec![], vec![], vec![("c d", 1.0)]].iter().cycle().take(8).enumerate()
    {
        let mut expected: Vec<(u64, f32)> =
            expected.iter().map(|(word, count)| (key(word), *count)).collect();
        let mut found = entries(&batch, r);
        expected.sort_by_key(|(key, _)| *key);
        found.sort_by_key(|(key, _)| *key);
        assert_eq!(found, expected, "record {r}");
    }
}
