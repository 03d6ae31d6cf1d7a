use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use super::*;
use crate::LabelRule;
use crate::bad_lines::{BadLinePolicy, BadLineTally};
use crate::batch::Batch;
use crate::parquet_writer::{ColumnData, ColumnType, ParquetWriter};
use crate::reader::Reader;
use crate::sink::Sink;
use crate::split::SplitRange;

mod damage;
mod inputs;
mod lists;
mod pages;
mod pyarrow;
mod roles;
mod splits;

/// Files of other programs, with which fuzzing also begins.
fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parquet")
}

fn corpus(name: &str) -> Vec<u8> {
    std::fs::read(corpus_folder().join(name)).expect("a file of the corpus")
}

/// One column of one row group: values, definition levels, repetition levels.
enum Raw {
    I32(Vec<i32>, Vec<i16>, Vec<i16>),
    I64(Vec<i64>, Vec<i16>, Vec<i16>),
    F64(Vec<f64>, Vec<i16>, Vec<i16>),
    Bool(Vec<bool>, Vec<i16>, Vec<i16>),
    Text(Vec<&'static str>, Vec<i16>, Vec<i16>),
}

fn levels(levels: &[i16]) -> Option<&[i16]> {
    (!levels.is_empty()).then_some(levels)
}

/// Writes a file whose row groups all have these columns.
fn write(path: &Path, message: &str, group_count: usize, columns: &[Raw]) {
    write_with(WriterProperties::new(), path, message, group_count, columns);
}

fn write_with(way: WriterProperties, path: &Path, message: &str, group_count: usize, columns: &[Raw]) {
    let schema = Arc::new(parse_message_type(message).expect("a schema"));
    let file = File::create(path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(way)).expect("a writer");
    for _ in 0..group_count {
        let mut group = writer.next_row_group().expect("a row group");
        for column in columns {
            let mut out = group.next_column().expect("a column").expect("as many as in the schema");
            match column {
                Raw::I32(v, d, r) => {
                    out.typed::<parquet::data_type::Int32Type>().write_batch(v, levels(d), levels(r))
                }
                Raw::I64(v, d, r) => {
                    out.typed::<parquet::data_type::Int64Type>().write_batch(v, levels(d), levels(r))
                }
                Raw::F64(v, d, r) => {
                    out.typed::<parquet::data_type::DoubleType>().write_batch(v, levels(d), levels(r))
                }
                Raw::Bool(v, d, r) => {
                    out.typed::<parquet::data_type::BoolType>().write_batch(v, levels(d), levels(r))
                }
                Raw::Text(v, d, r) => {
                    let v: Vec<ByteArray> = v.iter().map(|&text| text.into()).collect();
                    out.typed::<parquet::data_type::ByteArrayType>().write_batch(&v, levels(d), levels(r))
                }
            }
            .expect("written");
            out.close().expect("closed");
        }
        group.close().expect("closed");
    }
    writer.close().expect("closed");
}

struct Case {
    folder: tempfile::TempDir,
    options: FormatOptions,
}

impl Case {
    fn new() -> Self {
        let options = FormatOptions { label_rule: LabelRule::Class, ..FormatOptions::default() };
        Self { folder: tempfile::tempdir().expect("a folder"), options }
    }

    /// Makes a case with a file of these bytes.
    fn of(bytes: &[u8]) -> Self {
        let case = Self::new();
        std::fs::write(case.path(), bytes).expect("room for a small file");
        case
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("records.parquet")
    }

    fn open(&self, like: Option<&Schema>) -> Result<Box<dyn RowGroupFormat>, Error> {
        let files = [Input::file(self.path())?];
        match open(&FormatContext { files: &files, options: &self.options, trained_schema: like })? {
            OpenFormat::RowGroups(plan) => Ok(plan),
            OpenFormat::Lines(_) => panic!("Parquet has no lines"),
        }
    }

    fn reader(&self, units: impl IntoIterator<Item = usize>) -> Result<Reader, Error> {
        let plan = self.open(None)?;
        let all = plan.row_groups(0);
        let split = |unit: usize| {
            let records = 0..all[unit].record_count;
            Split {
                file: 0,
                range: SplitRange::Records { row_group: unit, records },
                size_bytes: all[unit].size_bytes,
            }
        };
        let splits: Vec<Split> = units.into_iter().map(split).collect();
        let records = plan.reader(&[Input::file(self.path())?], &splits)?;
        Ok(Reader::new(records, Sink::new(self.options.label_rule, BadLineTally::new(BadLinePolicy::Fail))))
    }

    /// Reads all records as one batch.
    fn read(&self) -> Result<Batch, Error> {
        let mut reader = self.reader(0..self.open(None)?.row_groups(0).len())?;
        let mut batch = Batch::default();
        reader.next_batch(usize::MAX, &mut batch)?;
        Ok(batch)
    }

    fn error(&self) -> String {
        self.read().expect_err("this file is bad").to_string()
    }
}

fn entries(batch: &Batch, r: usize) -> Vec<(u64, f32)> {
    let value = |e: usize| batch.values.get(e).copied().unwrap_or(1.0);
    batch.entries(r).map(|e| (batch.columns[batch.indices[e] as usize], value(e))).collect()
}

const TABLE: &str = "message m { optional int32 age; required boolean member; optional double income; \
                     optional binary city (UTF8); required int32 label (INTEGER(8,true)); }";

fn write_table(path: &Path, group_count: usize) {
    let columns = [
        Raw::I32(vec![30, 50], vec![1, 0, 1], vec![]),
        Raw::Bool(vec![true, false, true], vec![], vec![]),
        Raw::F64(vec![0.5, f64::NAN, 0.0], vec![1, 1, 1], vec![]),
        Raw::Text(vec!["Rome", "Oslo"], vec![1, 1, 0], vec![]),
        Raw::I32(vec![1, 0, 1], vec![], vec![]),
    ];
    write(path, TABLE, group_count, &columns);
}

#[test]
fn a_table_gives_numbers_by_position_strings_by_name_and_a_mark_for_missing_numbers() {
    let case = Case::new();
    write_table(&case.path(), 1);
    let batch = case.read().expect("a good file");
    let city = |name: &[u8]| math::hash::named_key(b"city", name);
    assert_eq!(batch.labels, [1.0, 0.0, 1.0]);
    assert_eq!(entries(&batch, 0), [(0, 30.0), (1, 1.0), (2, 0.5), (city(b"Rome"), 1.0)]);
    let missing = |column: &[u8]| (math::hash::named_key(column, b"missing"), 1.0);
    let second = [missing(b"age"), missing(b"income"), (city(b"Oslo"), 1.0)];
    assert_eq!(entries(&batch, 1), second, "a null, a false, a NaN, a string");
    assert_eq!(entries(&batch, 2), [(0, 50.0), (1, 1.0)], "zero is no entry");
    let schema = case.open(None).expect("a good file").schema();
    let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["age", "member", "income", "city"]);
    assert_eq!(schema.label.as_deref(), Some("label"));
}

#[test]
fn zeros_are_kept_when_asked_for() {
    let mut case = Case::new();
    case.options.keep_zeros = true;
    write_table(&case.path(), 1);
    let batch = case.read().expect("a good file");
    assert_eq!(entries(&batch, 2), [(0, 50.0), (1, 1.0), (2, 0.0)]);
}

#[test]
fn names_of_strings_are_given_once() {
    let case = Case::new();
    write_table(&case.path(), 2);
    let mut reader = case.reader(0..2).expect("a good file");
    reader.next_batch(1, &mut Batch::default()).expect("a record");
    let texts = |names: crate::KeyNames| names.iter().map(|(_, name)| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(texts(reader.take_dictionary()), ["city=Rome"]);
    reader.next_batch(100, &mut Batch::default()).expect("the rest");
    let mut rest = texts(reader.take_dictionary());
    rest.sort();
    assert_eq!(rest, ["age=missing", "city=Oslo", "income=missing"]);
}

#[test]
fn columns_take_the_roles_they_are_given() {
    let mut case = Case::new();
    case.options.label = Some("member".to_owned());
    case.options.weight = Some("label".to_owned());
    case.options.group = Some("3".to_owned());
    case.options.text_columns = vec!["age".to_owned()];
    case.options.skip_columns = vec!["income".to_owned()];
    write_table(&case.path(), 1);
    let batch = case.read().expect("a good file");
    assert_eq!(batch.labels, [1.0, 0.0, 1.0]);
    assert_eq!(batch.weights, [1.0, 0.0, 1.0]);
    assert!(batch.groups[0] != batch.groups[1] && batch.groups.len() == 3);
    assert_eq!(entries(&batch, 0), [(math::hash::named_key(b"age", b"30"), 1.0)]);
}

#[test]
fn another_file_is_read_with_the_columns_of_training() {
    let mut case = Case::new();
    write_table(&case.path(), 1);
    let schema = case.open(None).expect("a good file").schema();
    let other = "message m { optional binary city (UTF8); required int64 age; optional double income; \
                 required boolean member; }";
    let columns = [
        Raw::Text(vec!["Rome"], vec![1], vec![]),
        Raw::I64(vec![7], vec![], vec![]),
        Raw::F64(vec![], vec![0], vec![]),
        Raw::Bool(vec![true], vec![], vec![]),
    ];
    write(&case.path(), other, 1, &columns);
    case.options.has_label = false;
    let split =
        [Split { file: 0, range: SplitRange::Records { row_group: 0, records: 0..1 }, size_bytes: 0 }];
    let plan = case.open(Some(&schema)).expect("the columns of training");
    let records = plan.reader(&[Input::file(case.path()).expect("a file")], &split).expect("a reader");
    let mut batch = Batch::default();
    let mut reader =
        Reader::new(records, Sink::new(case.options.label_rule, BadLineTally::new(BadLinePolicy::Fail)));
    reader.next_batch(10, &mut batch).expect("a record");
    let named = |column: &[u8], value: &[u8]| (math::hash::named_key(column, value), 1.0);
    let expected = [(0, 7.0), (1, 1.0), named(b"income", b"missing"), named(b"city", b"Rome")];
    let mut found = entries(&batch, 0);
    found.sort_by_key(|entry| expected.iter().position(|known| known == entry));
    assert_eq!(found, expected);

    case.options.skip_columns = vec!["income".to_owned()];
    let text = case.open(Some(&schema)).err().expect("a column is missing").to_string();
    assert!(text.contains("1 of the 4 feature columns of training are missing: income"), "{text}");
    let mut narrow = schema.clone();
    narrow.columns.remove(0);
    case.options.skip_columns.clear();
    let text = case.open(Some(&narrow)).err().expect("a column is too many").to_string();
    assert!(text.contains("column 'age' was not in the training data"), "{text}");
}

#[test]
fn labels_that_are_strings_become_class_numbers_by_name() {
    let case = Case::new();
    let message = "message m { required int32 x; required binary y (UTF8); }";
    let columns =
        [Raw::I32(vec![1, 2, 3], vec![], vec![]), Raw::Text(vec!["pear", "apple", "pear"], vec![], vec![])];
    write(&case.path(), message, 2, &columns);
    assert_eq!(case.open(None).expect("a good file").schema().label_names, ["apple", "pear"]);
    assert_eq!(case.read().expect("a good file").labels, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
}

const LISTS: &str = "message m { required int32 label; \
                     optional group indices (LIST) { repeated group list { optional int64 element; } } \
                     optional group values (LIST) { repeated group list { optional double element; } } }";

/// Four records: two entries, an empty list, a null list, one entry.
fn lists(keys: Vec<i64>, values: Vec<f64>) -> [Raw; 3] {
    let (definitions, repetitions) = (vec![3, 3, 1, 0, 3], vec![0, 1, 0, 0, 0]);
    [
        Raw::I32(vec![1, 0, 1, 0], vec![], vec![]),
        Raw::I64(keys, definitions.clone(), repetitions.clone()),
        Raw::F64(values, definitions, repetitions),
    ]
}

#[test]
fn lists_give_their_keys_and_values() {
    let case = Case::new();
    write(&case.path(), LISTS, 1, &lists(vec![5, 1 << 40, 7], vec![0.5, 2.0, 1.0]));
    let batch = case.read().expect("a good file");
    assert_eq!(entries(&batch, 0), [(5, 0.5), (1 << 40, 2.0)]);
    assert_eq!((entries(&batch, 1), entries(&batch, 2)), (vec![], vec![]));
    assert_eq!(entries(&batch, 3), [(7, 1.0)]);
    assert!(case.open(None).expect("a good file").schema().columns.is_empty());
}

#[test]
fn indices_of_32_bits_are_what_the_file_says_they_are() {
    let read = |kind: &str, keys: Vec<i32>| {
        let case = Case::new();
        let element = format!("optional int32 element {kind}");
        let schema = LISTS.replacen("optional int64 element", &element, 1);
        let [label, _, values] = lists(vec![], vec![0.5, 2.0, 1.0]);
        let indices = Raw::I32(keys, vec![3, 3, 1, 0, 3], vec![0, 1, 0, 0, 0]);
        write(&case.path(), &schema, 1, &[label, indices, values]);
        let batch = case.read().map_err(|error| error.to_string())?;
        Ok::<_, String>([entries(&batch, 0), entries(&batch, 3)].concat())
    };
    assert_eq!(read("", vec![5, 1 << 30, 7]).expect("good"), [(5, 0.5), (1 << 30, 2.0), (7, 1.0)]);
    let expected = [(5, 0.5), ((1 << 32) - 2, 2.0), (7, 1.0)];
    assert_eq!(read("(UINT_32)", vec![5, -2, 7]).expect("good"), expected);
    let error = read("", vec![5, 6, -7]).expect_err("a negative index");
    assert!(error.contains("records.parquet:4:2: expected an index from 0 to 2^63 - 1, found -7"), "{error}");
}

#[test]
fn bad_lists_are_errors_with_their_record() {
    let case = Case::new();
    let errors = [
        (
            vec![5, 5, 7],
            vec![1.0; 3],
            "records.parquet:1:2: expected each index once in a record, found 5 twice",
        ),
        (vec![5, 6, -7], vec![1.0; 3], "records.parquet:4:2: expected an index from 0 to 2^63 - 1, found -7"),
        (vec![5, 6, 7], vec![1.0, f64::INFINITY, 1.0], "records.parquet:1:3: expected a finite number"),
    ];
    for (keys, values, expected) in errors {
        write(&case.path(), LISTS, 1, &lists(keys, values));
        let text = case.error();
        assert!(text.contains(expected), "{text}");
    }
    let mut columns = lists(vec![5, 6, 7], vec![1.0, 1.0]);
    columns[2] = Raw::F64(vec![1.0, 1.0], vec![3, 1, 0, 3], vec![0, 0, 0, 0]);
    write(&case.path(), LISTS, 1, &columns);
    assert!(
        case.error().contains(":1:3: expected 2 values, one for each index, found 1"),
        "{}",
        case.error()
    );
    columns[1] = Raw::I64(vec![5, 7], vec![3, 2, 1, 0, 3], vec![0, 1, 0, 0, 0]);
    write(&case.path(), LISTS, 1, &columns);
    assert!(case.error().contains(":1:2: expected a list without null"), "{}", case.error());
}

#[test]
fn a_column_that_is_not_there_is_an_error_that_names_the_nearest() {
    let mut case = Case::new();
    case.options.label = Some("lable".to_owned());
    write_table(&case.path(), 1);
    let text = case.error();
    assert!(text.contains("did you mean 'label'?") && text.contains("age, member"), "{text}");
}

#[test]
fn a_type_that_cannot_be_a_feature_is_an_error_that_says_what_to_do() {
    let cases = [
        ("required group seen { required int64 a; }", "'seen' is a struct"),
        (
            "required group seen (LIST) { repeated group list { required group a { required int64 b; } } }",
            "'seen' is a list of values that are neither numbers nor strings",
        ),
    ];
    for (column, expected) in cases {
        let case = Case::new();
        let message = format!("message m {{ {column} required int32 label; }}");
        let levels = |level| if column.contains("LIST") { vec![level] } else { vec![] };
        let value = Raw::I64(vec![1], levels(1), levels(0));
        write(&case.path(), &message, 1, &[value, Raw::I32(vec![1], vec![], vec![])]);
        let text = case.error();
        assert!(text.contains(expected) && text.contains("skip_columns"), "{text}");
    }
}

#[test]
fn a_missing_label_is_an_error_with_its_record() {
    let case = Case::new();
    let message = "message m { optional int32 label; required int32 x; }";
    let columns = [Raw::I32(vec![1], vec![1, 0], vec![]), Raw::I32(vec![1, 1], vec![], vec![])];
    write(&case.path(), message, 1, &columns);
    assert!(
        case.error().contains("records.parquet:2:1: expected a finite number as the label"),
        "{}",
        case.error()
    );
    assert!(case.error().contains("found null, which counts as a missing value"), "{}", case.error());
}

#[test]
fn a_truncated_file_is_an_error() {
    let case = Case::new();
    write_table(&case.path(), 1);
    let bytes = std::fs::read(case.path()).expect("written above");
    for length in [0, 3, 8, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(case.path(), &bytes[..length]).expect("room for less");
        let text = case.error();
        assert!(text.contains("records.parquet") && text.contains("cut short"), "{text}");
    }
}

proptest! {
    #[test]
    fn written_records_are_read_again_in_any_batches_and_splits(
        records in prop::collection::vec(
            (0i8..2, prop::collection::btree_map(0u64..1 << 63, 1u8..5, 0..6)),
            0..60,
        ),
        record_limit in 1usize..70,
        cuts in 1usize..5,
    ) {
        let case = Case::new();
        let columns =
            [("label", ColumnType::I8), ("indices", ColumnType::U64List), ("values", ColumnType::F32List)];
        let mut writer = ParquetWriter::create(&case.path(), &columns).expect("a file");
        for part in records.chunks(records.len().div_ceil(cuts).max(1)) {
            let labels: Vec<i8> = part.iter().map(|record| record.0).collect();
            let lengths: Vec<u32> = part.iter().map(|record| record.1.len() as u32).collect();
            let keys: Vec<u64> = part.iter().flat_map(|record| record.1.keys().copied()).collect();
            let values: Vec<f32> = part.iter().flat_map(|record| record.1.values().map(|&v| f32::from(v))).collect();
            writer.write(&[
                ColumnData::I8(&labels),
                ColumnData::U64List(&lengths, &keys),
                ColumnData::F32List(&lengths, &values),
            ]).expect("room enough");
        }
        prop_assert_eq!(writer.finish().expect("room enough"), records.len() as u64);
        let mut reader = case.reader(0..case.open(None).expect("a good file").row_groups(0).len()).expect("a reader");
        let mut batch = Batch::default();
        let mut seen = Vec::new();
        while reader.next_batch(record_limit, &mut batch).expect("good records") {
            prop_assert!(batch.record_count() <= record_limit);
            for r in 0..batch.record_count() {
                let entries = entries(&batch, r).into_iter().map(|(key, value)| (key, value as u8)).collect();
                seen.push((batch.labels[r] as i8, entries));
            }
        }
        prop_assert_eq!(seen, records);
    }
}

#[test]
fn a_full_disk_while_writing_is_an_error_that_names_the_file() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let mut writer =
        ParquetWriter::create(Path::new("/dev/full"), &[("score", ColumnType::F64)]).expect("it opens");
    writer.write(&[ColumnData::F64(&[0.5; 100])]).expect("it waits");
    let text = writer.finish().expect_err("no room").to_string();
    assert!(text.contains("cannot write /dev/full") && text.contains("No space left"), "{text}");
}
