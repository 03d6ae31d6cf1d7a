//! Tests of `parquet_writer.rs`.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int8Type, Int64Type, UInt32Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::RowGroupMetaData;

use super::*;

#[test]
fn every_type_of_column_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.parquet");
    let columns = [
        ("i8", ColumnType::I8),
        ("f32", ColumnType::F32),
        ("f64", ColumnType::F64),
        ("i64", ColumnType::I64),
        ("text", ColumnType::Text),
        ("u32s", ColumnType::U32List),
        ("u64s", ColumnType::U64List),
        ("f32s", ColumnType::F32List),
    ];
    let mut writer = ParquetWriter::create(&path, &columns).unwrap();
    let lengths = [2, 0];
    writer
        .write(&[
            ColumnData::I8(&[-1, 2]),
            ColumnData::F32(&[0.5, -1.5]),
            ColumnData::F64(&[0.1, 1e300]),
            ColumnData::I64(&[i64::MIN, 3]),
            ColumnData::Text(&["ä".to_owned(), String::new()]),
            ColumnData::U32List(&lengths, &[u32::MAX, 1]),
            ColumnData::U64List(&lengths, &[u64::MAX, 2]),
            ColumnData::F32List(&lengths, &[0.25, 4.0]),
        ])
        .unwrap();
    assert_eq!(writer.finish().unwrap(), 2);

    let file = File::open(&path).unwrap();
    let mut batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none());
    let column = |name: &str| Arc::clone(batch.column_by_name(name).unwrap());
    assert!(columns.iter().all(|(name, _)| column(name).null_count() == 0));
    assert_eq!(column("i8").as_primitive::<Int8Type>().values()[..], [-1, 2]);
    assert_eq!(column("f32").as_primitive::<Float32Type>().values()[..], [0.5, -1.5]);
    assert_eq!(column("f64").as_primitive::<Float64Type>().values()[..], [0.1, 1e300]);
    assert_eq!(column("i64").as_primitive::<Int64Type>().values()[..], [i64::MIN, 3]);
    assert_eq!(column("text").as_string::<i32>().iter().collect::<Vec<_>>(), [Some("ä"), Some("")]);
    let first = |name: &str| {
        let lists = column(name);
        assert_eq!(lists.as_list::<i32>().value_length(1), 0, "{name}");
        lists.as_list::<i32>().value(0)
    };
    assert_eq!(first("u32s").as_primitive::<UInt32Type>().values()[..], [u32::MAX, 1]);
    assert_eq!(first("u64s").as_primitive::<UInt64Type>().values()[..], [u64::MAX, 2]);
    assert_eq!(first("f32s").as_primitive::<Float32Type>().values()[..], [0.25, 4.0]);
}

#[test]
fn a_row_group_ends_with_the_call_that_fills_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("groups.parquet");
    let mut writer = ParquetWriter::create(&path, &[("x", ColumnType::I8)]).unwrap();
    for count in [ROW_GROUP_RECORDS - 1, 2, ROW_GROUP_RECORDS, 1] {
        writer.write(&[ColumnData::I8(&vec![0; count])]).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), 2 * ROW_GROUP_RECORDS as u64 + 2);
    let metadata = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let counts: Vec<i64> = metadata.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect();
    assert_eq!(counts, [ROW_GROUP_RECORDS as i64 + 1, ROW_GROUP_RECORDS as i64, 1]);
}

#[test]
fn keys_are_written_plainly_and_all_else_with_zstd() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codecs.parquet");
    let columns = [
        ("a", ColumnType::U32List),
        ("b", ColumnType::U64List),
        ("c", ColumnType::F32List),
        ("d", ColumnType::I64),
    ];
    let mut writer = ParquetWriter::create(&path, &columns).unwrap();
    writer
        .write(&[
            ColumnData::U32List(&[1], &[1]),
            ColumnData::U64List(&[1], &[1]),
            ColumnData::F32List(&[1], &[1.0]),
            ColumnData::I64(&[1]),
        ])
        .unwrap();
    writer.finish().unwrap();
    let metadata = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let group = metadata.metadata().row_group(0);
    let is_plain = |at: usize| group.column(at).compression() == Compression::UNCOMPRESSED;
    let has_dictionary = |at: usize| group.column(at).dictionary_page_offset().is_some();
    assert_eq!([0, 1, 2, 3].map(is_plain), [true, true, false, false]);
    assert_eq!([0, 1, 2, 3].map(has_dictionary), [false, false, true, true]);
}

#[test]
#[should_panic(expected = "write: the data do not fit the columns")]
fn data_of_another_type_are_a_fault_of_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let mut writer = ParquetWriter::create(&path, &[("x", ColumnType::I8)]).unwrap();
    let _ = writer.write(&[ColumnData::F64(&[1.0])]);
}
