//! Row groups that several tasks read.

use super::{Case, Path, write_table};
use crate::format::FormatTable;
use crate::input::Input;
use crate::parquet_writer::{ColumnData, ColumnType, ParquetWriter, ROW_GROUP_RECORDS};
use crate::{BadLinePolicy, Batch, Error, LabelRule, Source, SourceConfig};

/// Records per row group of the numbered files: more than are decoded together.
const GROUP_RECORDS: u32 = ROW_GROUP_RECORDS as u32;
const GROUP_COUNT: u32 = 3;
const RECORD_COUNT: u32 = GROUP_RECORDS * GROUP_COUNT;

/// Writes a file in which the label of record `r` is `r` and the other columns repeat this number.
fn write_numbered(path: &Path, is_list: bool) {
    let features = if is_list { ("indices", ColumnType::U64List) } else { ("number", ColumnType::F64) };
    let mut writer = ParquetWriter::create(path, &[features, ("label", ColumnType::F64)]).expect("a file");
    for group in 0..GROUP_COUNT {
        let numbers = group * GROUP_RECORDS..(group + 1) * GROUP_RECORDS;
        let labels: Vec<f64> = numbers.clone().map(f64::from).collect();
        let keys: Vec<u64> =
            numbers.flat_map(|number| (0..number % 5).map(move |k| u64::from(number + k))).collect();
        let lengths: Vec<u32> = labels.iter().map(|label| *label as u32 % 5).collect();
        let features = if is_list { ColumnData::U64List(&lengths, &keys) } else { ColumnData::F64(&labels) };
        writer.write(&[features, ColumnData::F64(&labels)]).expect("room enough");
    }
    writer.finish().expect("room enough");
}

fn source(path: &Path, bad_lines: BadLinePolicy) -> Source {
    let mut config = SourceConfig { bad_lines, ..SourceConfig::default() };
    config.options.label_rule = LabelRule::Real;
    config.options.label = Some("label".to_owned());
    let files = vec![Input::file(path).expect("a file")];
    Source::from_inputs(files, &config, None, &FormatTable::builtin()).expect("a good file")
}

/// Returns the labels that each task reads, after a check of the features, and the bytes that it reports.
fn read(source: &Source, task_count: usize, is_list: bool) -> Result<Vec<(Vec<f64>, u64)>, Error> {
    let mut tasks = Vec::new();
    for splits in source.splits(task_count) {
        let size_bytes: u64 = splits.iter().map(|split| split.size_bytes).sum();
        let mut reader = source.reader(splits)?;
        let (mut labels, mut batch) = (Vec::new(), Batch::default());
        while reader.next_batch(700, &mut batch)? {
            for (r, label) in batch.labels.iter().enumerate() {
                let entries = super::entries(&batch, r);
                let expected: Vec<(u64, f32)> = match (is_list, *label as u64) {
                    (true, number) => (0..number % 5).map(|k| (number + k, 1.0)).collect(),
                    (false, 0) => Vec::new(),
                    (false, _) => vec![(0, *label as f32)],
                };
                assert_eq!(entries, expected, "record {label}");
            }
            labels.extend_from_slice(&batch.labels);
        }
        assert_eq!(reader.summary().bytes_read, size_bytes);
        tasks.push((labels, size_bytes));
    }
    Ok(tasks)
}

#[test]
fn tasks_share_row_groups_and_each_record_is_read_once_in_order() {
    for is_list in [false, true] {
        let case = Case::new();
        write_numbered(&case.path(), is_list);
        let source = source(&case.path(), BadLinePolicy::Fail);
        let whole = read(&source, 1, is_list).expect("good records");
        for task_count in 2..7 {
            let tasks = read(&source, task_count, is_list).expect("good records");
            let most = tasks.iter().map(|(labels, _)| labels.len()).max();
            assert!(
                most <= Some(RECORD_COUNT as usize / task_count + GROUP_RECORDS as usize / 4),
                "{most:?}"
            );
            let labels: Vec<f64> = tasks.iter().flat_map(|(labels, _)| labels.clone()).collect();
            assert!(labels == (0..RECORD_COUNT).map(f64::from).collect::<Vec<_>>(), "{task_count}");
            assert_eq!(tasks.iter().map(|(_, bytes)| bytes).sum::<u64>(), whole[0].1);
        }
    }
}

#[test]
fn chunks_of_a_file_are_its_row_groups() {
    let case = Case::new();
    write_numbered(&case.path(), true);
    let source = source(&case.path(), BadLinePolicy::Fail);
    let chunks = source.chunks(100);
    assert_eq!(chunks.len(), GROUP_COUNT as usize);
    let mut labels = Vec::new();
    for chunk in chunks {
        let mut batch = Batch::default();
        let mut reader = source.reader(vec![chunk]).expect("a reader");
        while reader.next_batch(100_000, &mut batch).expect("good records") {
            labels.extend_from_slice(&batch.labels);
        }
    }
    assert!(labels == (0..RECORD_COUNT).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn a_bad_record_is_told_once_with_its_number_in_the_file() {
    let case = Case::new();
    let mut writer =
        ParquetWriter::create(&case.path(), &[("number", ColumnType::F64), ("label", ColumnType::F64)])
            .expect("a file");
    let mut labels = vec![1.0; 2000];
    labels[0] = f64::NAN;
    labels[1300] = f64::INFINITY;
    for _ in 0..2 {
        writer.write(&[ColumnData::F64(&[2.0; 2000]), ColumnData::F64(&labels)]).expect("room enough");
    }
    writer.finish().expect("room enough");
    for task_count in 1..6 {
        let source = source(&case.path(), BadLinePolicy::Skip { limit: 4 });
        for splits in source.splits(task_count) {
            let mut reader = source.reader(splits).expect("a reader");
            while reader.next_batch(100, &mut Batch::default()).expect("four bad records are allowed") {}
        }
        let told = source.bad_lines();
        assert_eq!(told.count, 4, "{task_count} tasks");
        let text = format!("{:?}", told.first);
        assert!(text.contains("records.parquet:1:"), "{text}");
        let strict = self::source(&case.path(), BadLinePolicy::Fail);
        let last = strict.splits(task_count).pop().expect("a task");
        let mut reader = strict.reader(last).expect("a reader");
        let error = loop {
            match reader.next_batch(100, &mut Batch::default()) {
                Ok(goes_on) => assert!(goes_on, "{task_count} tasks: no error"),
                Err(error) => break error.to_string(),
            }
        };
        let expected = [":1:", ":2001:", ":3301:", ":3301:", ":3301:"][task_count - 1];
        assert!(error.contains(expected), "{task_count} tasks: {error}");
    }
}

#[test]
fn a_small_table_is_cut_as_well() {
    let case = Case::new();
    write_table(&case.path(), 3);
    let source = source(&case.path(), BadLinePolicy::Fail);
    for task_count in 1..12 {
        let splits = source.splits(task_count);
        let count: usize = splits
            .into_iter()
            .map(|splits| {
                let mut batch = Batch::default();
                source.reader(splits).expect("a reader").next_batch(100, &mut batch).expect("good records");
                batch.record_count()
            })
            .sum();
        assert_eq!(count, 9, "{task_count} tasks");
    }
}
