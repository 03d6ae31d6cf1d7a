//! Which inputs can be read as Parquet, and what is checked before their records are.

use parquet::file::metadata::{ColumnChunkMetaData, FileMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;

use super::super::checks::check_metadata;
use super::*;
use crate::format::testing::gzip;

/// Writes `counts` records as row groups of one file: `x` and `z`, both the number of the record.
fn numbered(path: &Path, counts: &[usize]) {
    let schema = Arc::new(
        parse_message_type("message m { required double x; required double z; }").expect("a schema"),
    );
    let file = File::create(path).expect("a file");
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::new())).expect("a writer");
    for &count in counts {
        let mut group = writer.next_row_group().expect("a row group");
        let values: Vec<f64> = (0..count).map(|row| row as f64).collect();
        for _ in 0..2 {
            let mut column = group.next_column().expect("a column").expect("as many as in the schema");
            column
                .typed::<parquet::data_type::DoubleType>()
                .write_batch(&values, None, None)
                .expect("written");
            column.close().expect("closed");
        }
        group.close().expect("closed");
    }
    writer.close().expect("closed");
}

#[test]
fn a_guess_is_checked_in_the_first_file_and_row_group_with_records() {
    let folder = tempfile::tempdir().unwrap();
    let open_files = |files: &[&[usize]]| {
        let paths: Vec<PathBuf> =
            (0..files.len()).map(|at| folder.path().join(format!("{at}.parquet"))).collect();
        paths.iter().zip(files).for_each(|(path, counts)| numbered(path, counts));
        let inputs: Vec<Input> = paths.into_iter().map(|path| Input::file(path).unwrap()).collect();
        let options = FormatOptions { label_rule: LabelRule::Class, ..FormatOptions::default() };
        let context = FormatContext { files: &inputs, options: &options, trained_schema: None };
        open(&context).map(drop).map_err(|error| error.to_string())
    };
    for (files, name) in [
        (&[&[200][..]][..], "0.parquet"),
        (&[&[0, 200]], "0.parquet"),
        (&[&[], &[200]], "1.parquet"),
        (&[&[0], &[0, 200]], "1.parquet"),
    ] {
        let error = open_files(files).unwrap_err();
        assert!(error.contains(name) && error.contains("200 different values"), "{files:?}: {error}");
    }
    assert_eq!(open_files(&[&[50], &[200]]), Ok(()), "the first records decide");
    assert_eq!(open_files(&[&[0], &[]]), Ok(()));
}

#[test]
fn parquet_is_read_from_its_end() {
    let case = Case::new();
    write_table(&case.path(), 1);
    let bytes = std::fs::read(case.path()).unwrap();
    let open_input = |input: Input| {
        let context = FormatContext { files: &[input], options: &case.options, trained_schema: None };
        open(&context).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(open_input(Input::memory("m", &bytes[..]).unwrap()), Ok(()));
    let zipped = case.folder.path().join("z.parquet.gz");
    std::fs::write(&zipped, gzip(&bytes)).unwrap();
    let error = open_input(Input::file(&zipped).unwrap()).unwrap_err();
    assert!(error.contains("z.parquet.gz must be decompressed first"), "{error}");
    let pipe = Input::stream("pipe".to_owned(), Box::new(std::io::Cursor::new(bytes))).unwrap();
    let error = open_input(pipe).unwrap_err();
    assert!(error.contains("Parquet is read from its end, so pipe must be a file"), "{error}");
}

#[test]
fn counts_of_records_are_possible() {
    let message = parse_message_type("message m { required double x; }").expect("a schema");
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(message)));
    let checked = |counts: &[i64]| {
        let group = |rows: &i64| {
            let column =
                ColumnChunkMetaData::builder(schema.column(0)).set_num_values(*rows).build().unwrap();
            RowGroupMetaData::builder(Arc::clone(&schema))
                .set_num_rows(*rows)
                .set_column_metadata(vec![column])
                .build()
                .unwrap()
        };
        let file = FileMetaData::new(1, 0, None, None, Arc::clone(&schema), None);
        let metadata = ParquetMetaData::new(file, counts.iter().map(group).collect());
        check_metadata(&metadata, 1000).map_err(|error| error.to_string())
    };
    assert_eq!(checked(&[]), Ok(()));
    assert_eq!(checked(&[0, 3, i64::MAX - 3]), Ok(()));
    for (counts, rows) in [(&[3, -1][..], -1), (&[1, i64::MAX], i64::MAX)] {
        let error = checked(counts).unwrap_err();
        assert!(error.contains(&format!("a row group of {rows} records")), "{error}");
    }
}

#[test]
fn a_column_that_no_reader_knows_is_told() {
    let case = Case::new();
    let message = "message m { optional group pairs (MAP) { required int32 a; } required int32 label; }";
    let columns = [Raw::I32(vec![1], vec![1], vec![]), Raw::I32(vec![1], vec![], vec![])];
    write(&case.path(), message, 1, &columns);
    let error = case.error();
    assert!(
        error.contains("its columns cannot be read") && error.contains("convert them to numbers"),
        "{error}"
    );
}
