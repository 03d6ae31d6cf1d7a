//! A table with a column of every logical type is the same in every format, for training and for predictions.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use parquet::arrow::ArrowWriter;

use super::{read_source, source_of};
use crate::format::testing::{Row, names};
use crate::{FormatOptions, FormatTable, Input, NumberForm, Schema, Source, SourceConfig};

const CSV: &str = "\
label,count,size,price,open,day,at,clock,delay,city,shape,seats
1,3,1.5,1.25,true,2026-01-31,2026-01-31 08:15:00,08:15:00,0 days 00:00:01.5,Rome,round,4
0,-7,0.25,-3.50,false,1969-12-31,1970-01-01 00:00:01,00:00:30,2 days 00:00:00,Oslo,flat,
1,40,,0.75,true,2000-02-29,2000-01-01 00:00:00,23:59:59,0 days 01:00:00,NA,round,2
0,0,2.0,,,,,,,,,9
";

fn batch() -> RecordBatch {
    let price = Decimal128Array::from(vec![Some(125), Some(-350), Some(75), None]);
    let shapes: DictionaryArray<Int32Type> =
        [Some("round"), Some("flat"), Some("round"), None].into_iter().collect();
    let day = 86_400_000_000;
    let columns: [(&str, ArrayRef); 12] = [
        ("label", Arc::new(Int8Array::from(vec![1, 0, 1, 0]))),
        ("count", Arc::new(Int64Array::from(vec![3, -7, 40, 0]))),
        ("size", Arc::new(Float64Array::from(vec![Some(1.5), Some(0.25), None, Some(2.0)]))),
        ("price", Arc::new(price.with_precision_and_scale(10, 2).unwrap())),
        ("open", Arc::new(BooleanArray::from(vec![Some(true), Some(false), Some(true), None]))),
        ("day", Arc::new(Date32Array::from(vec![Some(20_484), Some(-1), Some(11_016), None]))),
        (
            "at",
            Arc::new(TimestampMillisecondArray::from(vec![
                Some(1_769_847_300_000),
                Some(1000),
                Some(946_684_800_000),
                None,
            ])),
        ),
        (
            "clock",
            Arc::new(Time64NanosecondArray::from(vec![
                Some(29_700_000_000_000),
                Some(30_000_000_000),
                Some(86_399_000_000_000),
                None,
            ])),
        ),
        (
            "delay",
            Arc::new(DurationMicrosecondArray::from(vec![
                Some(1_500_000),
                Some(2 * day),
                Some(3_600_000_000),
                None,
            ])),
        ),
        ("city", Arc::new(StringArray::from(vec![Some(" Rome "), Some("Oslo"), Some("NA"), None]))),
        ("shape", Arc::new(shapes)),
        ("seats", Arc::new(Int32Array::from(vec![Some(4), None, Some(2), Some(9)]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

/// Opens the table in each format.
fn sources(folder: &std::path::Path, options: &FormatOptions, like: Option<&Schema>) -> Vec<Source> {
    sources_of(&batch(), CSV, folder, options, like)
}

fn sources_of(
    batch: &RecordBatch,
    csv: &str,
    folder: &std::path::Path,
    options: &FormatOptions,
    like: Option<&Schema>,
) -> Vec<Source> {
    let (parquet, arrow) = (folder.join("t.parquet"), folder.join("t.arrow"));
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(&parquet).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    let file = std::fs::File::create(&arrow).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    let open = |input: Input, format: &str| {
        let format = Some(format.to_owned());
        let config = SourceConfig { format, options: options.clone(), ..SourceConfig::default() };
        Source::from_inputs(vec![input], &config, like, &FormatTable::builtin()).unwrap()
    };
    let text = (!csv.is_empty()).then(|| open(Input::memory("t.csv", csv.as_bytes()).unwrap(), "csv"));
    let tables = [
        open(Input::file(parquet).unwrap(), "parquet"),
        open(Input::file(arrow).unwrap(), "arrow"),
        source_of(vec![batch.clone()], options, like).unwrap(),
    ];
    text.into_iter().chain(tables).collect()
}

#[test]
fn every_format_trains_on_and_scores_the_same_numbers() {
    use NumberForm::{Boolean, Duration, Plain, Time, TimeOfDay};
    let folder = tempfile::tempdir().unwrap();
    let options = FormatOptions::default();
    let trained = sources(folder.path(), &options, None);
    let rows = |source: &Source| -> Vec<Row> { read_source(source).unwrap().rows };
    let expected = rows(&trained[0]);
    let forms: Vec<NumberForm> = trained[0].schema().columns.iter().map(|column| column.form).collect();
    assert_eq!(forms, [Plain, Plain, Plain, Boolean, Time, Time, TimeOfDay, Duration, Plain, Plain, Plain]);
    let number = |row: &Row, key: u64| row.entries.iter().find(|entry| entry.0 == key).map(|entry| entry.1);
    let of_first: Vec<_> = (0..8).map(|key| number(&expected[0], key)).collect();
    let seconds = [1_769_817_600.0, 1_769_847_300.0, 29_700.0, 1.5].map(Some);
    assert_eq!(of_first, [&[3.0, 1.5, 1.25, 1.0].map(Some)[..], &seconds].concat());
    for source in &trained {
        let format = &source.schema().format;
        assert_eq!(source.schema().columns, trained[0].schema().columns, "{format}");
        assert_eq!(rows(source), expected, "{format}");
        for purpose in [crate::InputPurpose::Evaluation, crate::InputPurpose::Prediction] {
            let options = FormatOptions { purpose, ..options.clone() };
            for scored in sources(folder.path(), &options, Some(source.schema())) {
                assert_eq!(rows(&scored), expected, "{format}, then {}", scored.schema().format);
            }
        }
    }
}

#[test]
fn words_for_missing_values_are_labels_of_classes_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let text_label = FormatOptions {
        label: Some("city".to_owned()),
        label_rule: crate::LabelRule::Class,
        skip_columns: names(&["label"]),
        ..FormatOptions::default()
    };
    for source in sources(folder.path(), &text_label, None) {
        assert_eq!(source.schema().label_names, ["NA", "Oslo", "Rome"], "{}", source.schema().format);
    }
}

#[test]
fn names_that_occur_once_are_left_out_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let ids: Vec<String> = (0..60).map(|row| format!("user{row}")).collect();
    let numbers: Vec<i64> = (0..60).collect();
    let labels: Vec<i64> = numbers.iter().map(|row| row % 2).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(StringArray::from(ids))),
        ("x", Arc::new(Int64Array::from(numbers))),
        ("y", Arc::new(Int64Array::from(labels))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for source in sources_of(&batch, "", folder.path(), &FormatOptions::default(), None) {
        assert_eq!(source.schema().skip_columns, names(&["id"]), "{}", source.schema().format);
        assert!(source.notices().iter().any(|notice| notice.contains("a name of its own in 'id'")));
    }
}

#[test]
fn numbers_that_are_close_together_keep_their_digits_in_every_format() {
    const CSV: &str = "\
time,day,size,label
1764200001,2026-01-31 08:15:01,5,1764200001
1764200003,2026-01-31 08:15:00,6,1764200002
,2026-01-31 08:15:02,7,1764200003
";
    let folder = tempfile::tempdir().unwrap();
    let days = vec![1_769_847_301_000, 1_769_847_300_000, 1_769_847_302_000];
    let columns: [(&str, ArrayRef); 4] = [
        ("time", Arc::new(Int64Array::from(vec![Some(1_764_200_001), Some(1_764_200_003), None]))),
        ("day", Arc::new(TimestampMillisecondArray::from(days))),
        ("size", Arc::new(Int32Array::from(vec![5, 6, 7]))),
        ("label", Arc::new(Float64Array::from(vec![1_764_200_001.0, 1_764_200_002.0, 1_764_200_003.0]))),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let options = FormatOptions { subtracts_origins: true, keep_zeros: true, ..FormatOptions::default() };
    let trained = sources_of(&batch, CSV, folder.path(), &options, None);
    for source in &trained {
        let origins: Vec<f64> = source.schema().columns.iter().map(|column| column.origin).collect();
        assert_eq!(origins, [1_764_200_001.0, 1_769_847_301.0, 0.0], "{}", source.schema().format);
        // The model stores the origins, and later data are counted from them.
        let json = serde_json::to_string(source.schema()).unwrap();
        let schema: Schema = serde_json::from_str(&json).unwrap();
        for scored in sources_of(&batch, CSV, folder.path(), &options, Some(&schema)) {
            let read = read_source(&scored).unwrap();
            let sorted = |row: &Row| {
                let mut entries = row.entries.clone();
                entries.sort_by_key(|entry| entry.0);
                (row.label, entries)
            };
            let rows: Vec<_> = read.rows.iter().map(sorted).collect();
            let missing = (math::hash::named_key(b"time", b"missing"), 1.0);
            assert_eq!(
                rows,
                [
                    (1_764_200_001.0, vec![(0, 0.0), (1, 0.0), (2, 5.0)]),
                    (1_764_200_002.0, vec![(0, 2.0), (1, -1.0), (2, 6.0)]),
                    (1_764_200_003.0, vec![(1, 1.0), (2, 7.0), missing]),
                ],
                "{}, then {}",
                source.schema().format,
                scored.schema().format
            );
        }
    }
    // Without an intercept, numbers are counted from 0.
    let options = FormatOptions { subtracts_origins: false, ..options };
    for source in sources_of(&batch, CSV, folder.path(), &options, None) {
        assert!(source.schema().columns.iter().all(|column| column.origin == 0.0));
    }
}
