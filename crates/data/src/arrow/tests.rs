//! Record batches of all types give the records that the same values give as text.

mod labels;
mod layout;
mod lists;
mod logical_types;

use std::sync::Arc;

use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};

use super::column::{TextColumn, numbers};
use super::kind::kind_of;
use crate::arrays::Arrays;
use crate::columns::ValueKind;
use crate::format::testing::{Row, names, open_arrays, read_whole, rows_of};
use crate::{Batch, Error, FormatOptions, FormatTable, Input, RoundedNumbers, Schema, Source, SourceConfig};

#[test]
fn numbers_of_every_type_are_their_values_and_times_are_seconds() {
    let decimal = |scale: i8| {
        let values = Decimal128Array::from(vec![Some(12_345), None]);
        values.with_precision_and_scale(20, scale).unwrap()
    };
    let large = Decimal256Array::from(vec![Some(arrow_buffer::i256::from(-125)), None]);
    let table: Vec<(ArrayRef, f64)> = vec![
        (Arc::new(Int8Array::from(vec![Some(-3), None])), -3.0),
        (Arc::new(Int16Array::from(vec![Some(-300), None])), -300.0),
        (Arc::new(Int32Array::from(vec![Some(-70_000), None])), -70_000.0),
        (Arc::new(Int64Array::from(vec![Some(1 << 40), None])), 1_099_511_627_776.0),
        (Arc::new(UInt8Array::from(vec![Some(200), None])), 200.0),
        (Arc::new(UInt16Array::from(vec![Some(60_000), None])), 60_000.0),
        (Arc::new(UInt32Array::from(vec![Some(4_000_000_000), None])), 4_000_000_000.0),
        (Arc::new(UInt64Array::from(vec![Some(1 << 63), None])), 9_223_372_036_854_775_808.0),
        (Arc::new(Float32Array::from(vec![Some(0.5), None])), 0.5),
        (Arc::new(Float64Array::from(vec![Some(0.1), None])), 0.1),
        (Arc::new(BooleanArray::from(vec![Some(true), None])), 1.0),
        (Arc::new(decimal(2)), 123.45),
        (Arc::new(decimal(-2)), 1_234_500.0),
        (Arc::new(large.with_precision_and_scale(40, 1).unwrap()), -12.5),
        (Arc::new(Date32Array::from(vec![Some(2), None])), 172_800.0),
        (Arc::new(Date64Array::from(vec![Some(1500), None])), 1.5),
        (Arc::new(TimestampSecondArray::from(vec![Some(7), None])), 7.0),
        (Arc::new(TimestampMillisecondArray::from(vec![Some(7), None])), 0.007),
        (Arc::new(TimestampMicrosecondArray::from(vec![Some(7), None])), 7e-6),
        (Arc::new(TimestampNanosecondArray::from(vec![Some(7), None])), 7e-9),
        (Arc::new(Time32SecondArray::from(vec![Some(7), None])), 7.0),
        (Arc::new(Time32MillisecondArray::from(vec![Some(7), None])), 0.007),
        (Arc::new(Time64MicrosecondArray::from(vec![Some(7), None])), 7e-6),
        (Arc::new(Time64NanosecondArray::from(vec![Some(7), None])), 7e-9),
        (Arc::new(DurationSecondArray::from(vec![Some(7), None])), 7.0),
        (Arc::new(DurationMillisecondArray::from(vec![Some(7), None])), 0.007),
        (Arc::new(DurationMicrosecondArray::from(vec![Some(7), None])), 7e-6),
        (Arc::new(DurationNanosecondArray::from(vec![Some(7), None])), 7e-9),
    ];
    let mut found = vec![9.0];
    for (array, expected) in table {
        numbers(&array, &mut found);
        assert!(found.len() == 2 && found[1].is_nan(), "{}: {found:?}", array.data_type());
        assert_eq!(found[0], expected, "{}", array.data_type());
        assert_eq!(kind_of(array.data_type()), ValueKind::Number, "{}", array.data_type());
        // Without nulls there is a shorter way.
        numbers(&array.slice(0, 1), &mut found);
        assert_eq!(found, [expected], "{}", array.data_type());
    }
    numbers(&NullArray::new(2), &mut found);
    assert!(found.len() == 2 && found.iter().all(|value| value.is_nan()), "{found:?}");
    numbers(&StringArray::from(vec!["1"]), &mut found);
    assert!(found.is_empty(), "a string is no number");
}

#[test]
fn texts_of_every_type_are_their_strings() {
    let texts = vec![Some("a"), None, Some("b")];
    let bytes: Vec<Option<&[u8]>> = texts.iter().map(|text| text.map(str::as_bytes)).collect();
    let dictionary: DictionaryArray<Int32Type> = texts.iter().copied().collect();
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(LargeStringArray::from(texts.clone())),
        Arc::new(StringViewArray::from(texts)),
        Arc::new(BinaryArray::from(bytes.clone())),
        Arc::new(LargeBinaryArray::from(bytes.clone())),
        Arc::new(BinaryViewArray::from(bytes)),
        Arc::new(dictionary),
    ];
    for array in arrays {
        let column = TextColumn::of(&array);
        let found = [0, 1, 2].map(|r| column.get(r));
        assert_eq!(found, [Some(&b"a"[..]), None, Some(b"b")], "{}", array.data_type());
        assert_eq!(kind_of(array.data_type()), ValueKind::Text, "{}", array.data_type());
    }
}

#[test]
fn numbers_as_text_have_no_more_digits_than_they_need_and_times_are_dates() {
    let tenth = <types::Float16Type as ArrowPrimitiveType>::Native::from_f32(0.1);
    let decimal = || {
        let values = Decimal128Array::from(vec![Some(12_345), None]);
        values.with_precision_and_scale(20, 2).unwrap()
    };
    let numbers: Vec<(ArrayRef, &str)> = vec![
        (Arc::new(BooleanArray::from(vec![Some(true), None])), "true"),
        (Arc::new(Int64Array::from(vec![Some(i64::MAX), None])), "9223372036854775807"),
        (Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])), "18446744073709551615"),
        (Arc::new(Float32Array::from(vec![Some(0.1), None])), "0.1"),
        (Arc::new(Float16Array::from(vec![Some(tenth), None])), "0.099975586"),
        (Arc::new(Float64Array::from(vec![Some(0.1), None])), "0.1"),
        (Arc::new(Int32Array::from(vec![Some(-7), None])), "-7"),
        (Arc::new(Date32Array::from(vec![Some(-1), None])), "1969-12-31"),
        (Arc::new(Date64Array::from(vec![Some(86_400_000), None])), "1970-01-02"),
        (Arc::new(TimestampSecondArray::from(vec![Some(86_399), None])), "1970-01-01 23:59:59"),
        (Arc::new(TimestampMillisecondArray::from(vec![Some(1500), None])), "1970-01-01 00:00:01.500"),
        (Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None])), "1969-12-31 23:59:59.999999"),
        (Arc::new(TimestampNanosecondArray::from(vec![Some(1), None])), "1970-01-01 00:00:00.000000001"),
        (
            Arc::new(TimestampSecondArray::from(vec![Some(60), None]).with_timezone("Europe/Rome")),
            "1970-01-01T00:01:00Z",
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![Some(500_000_000), None]).with_timezone("+01:00")),
            "1970-01-01T00:00:00.500Z",
        ),
        (Arc::new(TimestampSecondArray::from(vec![Some(i64::MAX), None])), "9223372036854775807"),
        (Arc::new(Time32SecondArray::from(vec![Some(3661), None])), "01:01:01"),
        (Arc::new(Time32MillisecondArray::from(vec![Some(1), None])), "00:00:00.001"),
        (Arc::new(Time64MicrosecondArray::from(vec![Some(60_000_000), None])), "00:01:00"),
        (Arc::new(Time64NanosecondArray::from(vec![Some(1), None])), "00:00:00.000000001"),
        (Arc::new(DurationMillisecondArray::from(vec![Some(1500), None])), "1.5"),
        (Arc::new(decimal()), "123.45"),
    ];
    for (array, expected) in numbers {
        let column = TextColumn::of(&array);
        assert_eq!(
            (column.get(0), column.get(1)),
            (Some(expected.as_bytes()), None),
            "{}",
            array.data_type()
        );
        // What is written of a point in time is read as the same point.
        if matches!(array.data_type(), DataType::Date32 | DataType::Timestamp(..)) && expected.contains('-') {
            let mut seconds = Vec::new();
            super::column::numbers(&array, &mut seconds);
            let again = crate::time::parse_time(expected.as_bytes()).expect("a date");
            assert!((again - seconds[0]).abs() < 1e-9, "{expected}: {again}");
        }
    }
}

#[test]
fn the_kind_of_a_column_follows_its_type() {
    use DataType::{Binary, Boolean, Float32, Float64, Int32, Int64, LargeUtf8, Utf8};
    let field = |kind: DataType| Arc::new(Field::new("item", kind, true));
    let list = |kind: DataType| DataType::List(field(kind));
    let pair = |first: DataType, second: DataType| {
        DataType::Struct(vec![Field::new("a", first, true), Field::new("b", second, true)].into())
    };
    let vector = |indices: DataType, size: DataType| {
        let fields =
            [("type", DataType::Int8), ("size", size), ("indices", list(indices)), ("values", list(Float64))];
        DataType::Struct(fields.map(|(name, kind)| Field::new(name, kind, true)).to_vec().into())
    };
    let map = |key: DataType| DataType::Map(field(pair(key, Float32)), false);
    let other = |text: &str| ValueKind::Other(text.to_owned());
    for (kind, expected) in [
        (list(Int32), ValueKind::IntegerList),
        (DataType::LargeList(field(DataType::UInt64)), ValueKind::IntegerList),
        (DataType::FixedSizeList(field(Float32), 3), ValueKind::FloatList),
        (list(Boolean), ValueKind::FloatList),
        (list(DataType::Date32), ValueKind::FloatList),
        (list(Utf8), ValueKind::TextList),
        (list(Binary), ValueKind::TextList),
        (list(pair(Int64, Float64)), ValueKind::PairList),
        (list(pair(Float64, Int64)), ValueKind::PairList),
        (list(pair(Float64, Float64)), other("a list of values that are neither numbers nor strings")),
        (list(pair(Int64, Utf8)), other("a list of values that are neither numbers nor strings")),
        (list(list(Int32)), other("a list of lists")),
        (map(Int64), ValueKind::PairList),
        (map(Utf8), other("a map that is not from integers to numbers")),
        (vector(Int32, Int32), ValueKind::Vector),
        (vector(Float64, Int32), other("a struct")),
        (vector(Int32, Utf8), other("a struct")),
        (pair(Int64, Float64), other("a struct")),
        (DataType::FixedSizeBinary(3), other("3 bytes that are not a number")),
        (
            DataType::Interval(IntervalUnit::MonthDayNano),
            other("an interval of months, days and milliseconds"),
        ),
        (DataType::Dictionary(Box::new(Int32), Box::new(LargeUtf8)), ValueKind::Text),
        (DataType::Dictionary(Box::new(Int32), Box::new(Int64)), ValueKind::Number),
        (DataType::Timestamp(TimeUnit::Second, Some("UTC".into())), ValueKind::Number),
        (DataType::Null, ValueKind::Number),
    ] {
        assert_eq!(kind_of(&kind), expected, "{kind}");
    }
}

/// What a source gives: records, texts of passthrough columns, names of features, the first rounded numbers.
#[derive(Debug, PartialEq)]
struct Read {
    rows: Vec<Row>,
    passthrough: Vec<Vec<u8>>,
    names: Vec<(u64, String)>,
}

fn read_source(source: &Source) -> Result<Read, Error> {
    let (mut batch, mut found) =
        (Batch::default(), Read { rows: vec![], passthrough: vec![], names: vec![] });
    let mut reader = source.reader(source.splits(1).remove(0))?;
    while reader.next_batch(3, &mut batch)? {
        assert!(batch.record_count() <= 3, "{} records", batch.record_count());
        found.rows.extend(rows_of(&batch));
        let columns = source.passthrough_columns();
        for r in 0..batch.record_count() {
            let text = |slot: usize| batch.passthrough.get(r * columns.len() + slot).to_vec();
            found.passthrough.extend(columns.iter().map(|column| text(column.slot)));
        }
    }
    found.names = reader.take_dictionary().iter().map(|(key, name)| (key, name.to_owned())).collect();
    Ok(found)
}

/// Opens record batches; `like` is the schema of a model.
fn source_of(
    batches: Vec<RecordBatch>,
    options: &FormatOptions,
    like: Option<&Schema>,
) -> Result<Source, Error> {
    open_arrays("table", Arrays::Arrow(batches.into()), options, like)
}

fn source_of_csv(text: &str, options: &FormatOptions, like: Option<&Schema>) -> Result<Source, Error> {
    let config =
        SourceConfig { format: Some("csv".to_owned()), options: options.clone(), ..SourceConfig::default() };
    Source::from_inputs(
        vec![Input::memory("table", text.as_bytes())?],
        &config,
        like,
        &FormatTable::builtin(),
    )
}

/// A table with every role, and the same as CSV.
fn table() -> (Vec<RecordBatch>, String) {
    let label = [1.0, 0.0, 1.0, 0.0, 1.0];
    let weight = [1.0, 2.5, 0.5, 1.0, 3.0];
    let group = ["7", "seven", "4611686018427387904", "4611686018427387903", ""];
    let time = [5, -3, 0, 9, 12];
    let city = [Some("Rome"), None, Some("Ostia"), Some("Rome"), Some("a b")];
    let size = [Some(1.5), Some(0.0), None, Some(-2.0), Some(1e15)];
    let count = [0, 3, 0, 4, 5];
    let words = [Some("b a b"), Some("c"), None, Some("a"), Some("a a")];
    let mut text = "label,weight,group,time,city,size,count,words\n".to_owned();
    for r in 0..5 {
        let (city, words) = (city[r].unwrap_or_default(), words[r].unwrap_or_default());
        let size = size[r].map_or(String::new(), |size| f64::to_string(&size));
        let (label, weight, group, time, count) = (label[r], weight[r], group[r], time[r], count[r]);
        let record = format!("{label},{weight},{group},{time},{city},{size},{count},{words}\n");
        text.push_str(&record);
    }
    let batch = |range: std::ops::Range<usize>| {
        let columns: [(&str, ArrayRef); 8] = [
            ("label", Arc::new(Float64Array::from(label[range.clone()].to_vec()))),
            ("weight", Arc::new(Float32Array::from_iter_values(weight[range.clone()].iter().copied()))),
            ("group", Arc::new(StringArray::from(group[range.clone()].to_vec()))),
            ("time", Arc::new(Int64Array::from(time[range.clone()].to_vec()))),
            ("city", Arc::new(StringArray::from(city[range.clone()].to_vec()))),
            ("size", Arc::new(Float64Array::from(size[range.clone()].to_vec()))),
            ("count", Arc::new(Int32Array::from(count[range.clone()].to_vec()))),
            ("words", Arc::new(LargeStringArray::from(words[range].to_vec()))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
            .expect("columns of one length")
    };
    (vec![batch(0..2), batch(2..5)], text)
}

/// Settings with which a table is read, and what they are about.
fn cases() -> [(&'static str, FormatOptions); 10] {
    let roles = FormatOptions {
        label: Some("label".into()),
        weight: Some("weight".into()),
        group: Some("group".into()),
        time: Some("time".into()),
        token_columns: vec!["words".into()],
        ..FormatOptions::default()
    };
    [
        ("all roles", roles.clone()),
        (
            "the label alone",
            FormatOptions {
                label: Some("label".into()),
                skip_columns: names(&["group"]),
                ..FormatOptions::default()
            },
        ),
        ("tokens in their order", FormatOptions { keeps_token_order: true, ..roles.clone() }),
        ("fields", FormatOptions { uses_fields: true, ..roles.clone() }),
        ("zeros", FormatOptions { keep_zeros: true, ..roles.clone() }),
        ("numbers as names", FormatOptions { text_columns: names(&["count"]), ..roles.clone() }),
        ("skipped", FormatOptions { skip_columns: names(&["size", "city"]), ..roles.clone() }),
        (
            "products",
            FormatOptions {
                interactions: vec![names(&["city", "count"]), names(&["size", "size"])],
                ..roles.clone()
            },
        ),
        (
            "products with fields",
            FormatOptions {
                interactions: vec![names(&["city", "count"])],
                uses_fields: true,
                ..roles.clone()
            },
        ),
        ("passthrough", FormatOptions { keep_columns: names(&["words", "time", "city"]), ..roles }),
    ]
}

#[test]
fn a_table_has_the_same_records_as_batches_and_as_csv() {
    let (batches, text) = table();
    for (case, options) in cases() {
        let (table, csv) = (source_of(batches.clone(), &options, None), source_of_csv(&text, &options, None));
        let (table, csv) = (table.unwrap(), csv.unwrap());
        let (mut found, mut expected) = (read_source(&table).unwrap(), read_source(&csv).unwrap());
        for read in [&mut found, &mut expected] {
            read.names.sort();
        }
        assert_eq!(found, expected, "{case}");
        assert!(found.rows.len() == 5 && !found.names.is_empty(), "{case}");
        let mut schema = table.schema().clone();
        schema.format.clone_from(&csv.schema().format);
        schema.delimiter = csv.schema().delimiter;
        let schema_of_csv = csv.schema().clone();
        assert_eq!(schema, schema_of_csv, "{case}");
        let entries = |read: &Read| read.rows.iter().map(|row| row.entries.clone()).collect::<Vec<_>>();
        for purpose in [crate::InputPurpose::Prediction, crate::InputPurpose::Evaluation] {
            // A passthrough column need not be one of training.
            let kept = vec!["label".to_owned(), "group".to_owned()];
            let scored =
                FormatOptions { has_label: false, purpose, keep_columns: kept, ..FormatOptions::default() };
            let again =
                read_source(&source_of(batches.clone(), &scored, Some(csv.schema())).unwrap()).unwrap();
            assert_eq!(entries(&again), entries(&expected), "{case}: a table");
            assert_eq!(again.passthrough.len(), 10);
            let text = read_source(&source_of_csv(&text, &scored, Some(&schema_of_csv)).unwrap()).unwrap();
            assert_eq!((&text.rows, &text.passthrough), (&again.rows, &again.passthrough), "{case}: CSV");
        }
    }
}

#[test]
fn columns_that_cannot_have_a_role_are_refused_with_their_kind() {
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<UInt64Type, _, _>([Some(vec![Some(1)])]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let batch = RecordBatch::try_from_iter([
        ("size", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef),
        ("list", lists),
        ("text", texts),
        ("label", Arc::new(Float64Array::from(vec![1.0]))),
    ])
    .unwrap();
    let named = |name: &str| Some(name.to_owned());
    let base = || FormatOptions { skip_columns: vec!["list".to_owned()], ..FormatOptions::default() };
    for (options, expected) in [
        (FormatOptions { weight: named("text"), ..base() }, "a weight must be a number"),
        (
            FormatOptions { group: named("list"), ..FormatOptions::default() },
            "a group must be a number or a string",
        ),
        (
            FormatOptions { time: named("list"), ..FormatOptions::default() },
            "a time must be a number, a date or a string",
        ),
        (FormatOptions { group: named("text"), ..base() }, ""),
    ] {
        let error = source_of(vec![batch.clone()], &options, None).err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{expected}: {error}");
    }
}

/// Batches of `sizes` records: `x`, `z` and `label`. The value of `x` is the number of the record.
fn numbered(sizes: &[usize], change: impl Fn(usize, f64) -> f64) -> Vec<RecordBatch> {
    let mut start = 0;
    let batch = |size: &usize| {
        let records = start..start + size;
        start = records.end;
        let columns: [(&str, ArrayRef); 3] = [
            (
                "x",
                Arc::new(Float64Array::from_iter_values(records.clone().map(|r| change(r, r as f64 + 0.5)))),
            ),
            ("z", Arc::new(Int64Array::from_iter_values(records.clone().map(|r| r as i64 % 5)))),
            ("label", Arc::new(Float64Array::from_iter_values(records.map(|r| (r % 2) as f64)))),
        ];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    };
    sizes.iter().map(batch).collect()
}

#[test]
fn a_bad_record_has_the_number_of_its_record_in_all_batches() {
    for (at, value) in [(0, f64::INFINITY), (2999, f64::INFINITY), (3000, 1e39), (9000, f64::NEG_INFINITY)] {
        let batches = numbered(&[3000, 1, 6100], |r, x| if r == at { value } else { x });
        let source = source_of(batches, &FormatOptions::default(), None).unwrap();
        for task_count in [1, 3] {
            let read = |splits| -> Result<(), Error> {
                let (mut reader, mut batch) = (source.reader(splits)?, Batch::default());
                while reader.next_batch(100, &mut batch)? {}
                Ok(())
            };
            let errors: Vec<Error> =
                source.splits(task_count).into_iter().filter_map(|splits| read(splits).err()).collect();
            assert!(
                matches!(&errors[..], [Error::BadLine(bad)] if bad.line == at as u64 + 1 && bad.column == 1),
                "{errors:?}"
            );
        }
    }
}

#[test]
fn numbers_that_lose_digits_are_counted_by_column() {
    let batches = numbered(&[3000, 1, 6100], |r, x| if r == 7000 { 16_777_217.0 } else { x });
    let source = source_of(batches, &FormatOptions::default(), None).unwrap();
    let reader = read_whole(&source);
    let rounded = &reader.summary().rounded;
    let numbers = RoundedNumbers { count: 1, first: 16_777_217.0 };
    assert_eq!(rounded.features, [("column 'x'".to_owned(), numbers)].into());
    assert_eq!(reader.summary().record_count, 9101);
}

#[test]
fn tasks_share_record_batches_by_size_and_read_each_record_once() {
    let batches = numbered(&[3000, 1, 6100, 0], |_, x| x);
    let size: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    let source = source_of(batches, &FormatOptions::default(), None).unwrap();
    assert_eq!(source.size_bytes(), Some(size as u64));
    for task_count in [1, 2, 5] {
        let (mut all, mut bytes) = (Vec::new(), 0);
        for splits in source.splits(task_count) {
            let (mut reader, mut batch) = (source.reader(splits).unwrap(), Batch::default());
            let mut count = 0;
            while reader.next_batch(700, &mut batch).unwrap() {
                count += batch.record_count();
                all.extend(rows_of(&batch).into_iter().map(|row| row.entries[0].1));
            }
            let share = 9101 / task_count;
            assert!(count.abs_diff(share) < 2600, "{count} of {share}");
            bytes += reader.summary().bytes_read;
        }
        assert!(all.iter().zip(0..).all(|(x, r)| *x == r as f32 + 0.5) && all.len() == 9101);
        // A batch without records is not read.
        assert!(bytes.abs_diff(size as u64) < 500, "{bytes} of {size}");
    }
}

#[test]
fn dates_that_training_read_as_text_from_csv_are_the_same_features_in_a_table() {
    let csv = source_of_csv(
        "day,at,y\n1970-01-02,1970-01-01 00:00:01,1\n1970-01-03,,0\n",
        &FormatOptions::default(),
        None,
    );
    let csv = csv.unwrap();
    let columns: [(&str, ArrayRef); 3] = [
        ("day", Arc::new(Date32Array::from(vec![1, 2]))),
        ("at", Arc::new(TimestampSecondArray::from(vec![Some(1), None]))),
        ("y", Arc::new(Float64Array::from(vec![1.0, 0.0]))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
    let options =
        FormatOptions { keep_columns: vec!["at".to_owned(), "day".to_owned()], ..FormatOptions::default() };
    let table = source_of(vec![batch.unwrap()], &options, Some(csv.schema())).unwrap();
    let found = read_source(&table).unwrap();
    assert_eq!(found.rows, read_source(&csv).unwrap().rows);
    let copied: Vec<&str> = found.passthrough.iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
    assert_eq!(copied, ["1970-01-01 00:00:01", "1970-01-02", "", "1970-01-03"]);
}
