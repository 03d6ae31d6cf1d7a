//! Labels that are strings, and columns from folders.

use super::{
    Case, FormatContext, FormatOptions, Input, LabelRule, OpenFormat, Raw, Schema, entries, open, write,
    write_table,
};
use crate::bad_lines::{BadLinePolicy, BadLineTally};
use crate::reader::Reader;
use crate::schema::PassthroughKind;
use crate::sink::Sink;
use crate::split::{Split, SplitRange};
use crate::{Batch, ColumnKind, InputPurpose};

const WORDS: &str = "message m { required int32 x; required binary y (UTF8); }";

fn with_labels(labels: [&'static str; 3]) -> Case {
    let case = Case::new();
    write(
        &case.path(),
        WORDS,
        1,
        &[Raw::I32(vec![1, 2, 3], vec![], vec![]), Raw::Text(labels.to_vec(), vec![], vec![])],
    );
    case
}

#[test]
fn labels_that_are_numbers_written_as_strings_are_these_numbers() {
    for rule in [LabelRule::Real, LabelRule::Class] {
        let mut case = with_labels(["10", "2", "3"]);
        case.options.label_rule = rule;
        assert!(case.open(None).unwrap().schema().label_names.is_empty());
        assert_eq!(case.read().unwrap().labels, [10.0, 2.0, 3.0]);
    }
}

#[test]
fn names_are_refused_where_labels_are_real_numbers() {
    let mut case = with_labels(["10", "2", "many"]);
    case.options.label_rule = LabelRule::Real;
    let text = case.error();
    assert!(
        text.contains("column 'y'") && text.contains("has names, but this algorithm needs numbers"),
        "{text}"
    );
    case.options.label_rule = LabelRule::Class;
    assert_eq!(case.open(None).unwrap().schema().label_names, ["10", "2", "many"]);
    case.options.text_columns = vec!["y".to_owned()];
    let mut case = with_labels(["10", "2", "3"]);
    (case.options.text_columns, case.options.label_rule) = (vec!["y".to_owned()], LabelRule::Class);
    assert_eq!(case.open(None).unwrap().schema().label_names, ["10", "2", "3"]);
}

#[test]
fn an_unsigned_index_is_told_without_a_sign() {
    let message = "message m { required int32 label; \
                   required group indices (LIST) { repeated group list { required int64 element (UINT_64); } } }";
    let case = Case::new();
    let indices = Raw::I64(vec![1, -1], vec![1, 1], vec![0, 0]);
    write(&case.path(), message, 1, &[Raw::I32(vec![1, 0], vec![], vec![]), indices]);
    let text = case.error();
    assert!(text.contains(":2:2:") && text.contains("found 18446744073709551615"), "{text}");
}

/// Writes one record per file, in folders that give columns.
fn partitioned(folders: &[&str]) -> (tempfile::TempDir, Vec<Input>) {
    let root = tempfile::tempdir().unwrap();
    let message = "message m { required int32 x; required int32 label; }";
    for (x, folder) in (1..).zip(folders) {
        let folder = root.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let columns = [Raw::I32(vec![x], vec![], vec![]), Raw::I32(vec![x % 2], vec![], vec![])];
        write(&folder.join("part-0.parquet"), message, 1, &columns);
    }
    let inputs = crate::resolve::resolve(
        &[root.path().to_str().unwrap().to_owned()],
        &crate::interruptible::StopFlag::default(),
        &crate::arrays::MemoryInputs::default(),
    )
    .unwrap();
    (root, inputs)
}

fn read_all(
    inputs: &[Input],
    options: &FormatOptions,
    like: Option<&Schema>,
) -> Result<(Batch, Schema), crate::Error> {
    let OpenFormat::RowGroups(plan) = open(&FormatContext { files: inputs, options, trained_schema: like })?
    else {
        panic!("Parquet has no lines")
    };
    let whole = |file: usize| {
        let unit = plan.row_groups(file)[0];
        let part = SplitRange::Records { row_group: 0, records: 0..unit.record_count };
        Split { file, range: part, size_bytes: unit.size_bytes }
    };
    let splits: Vec<Split> = (0..inputs.len()).map(whole).collect();
    let sink = Sink::new(options.label_rule, BadLineTally::new(BadLinePolicy::Fail));
    let mut batch = Batch::default();
    Reader::new(plan.reader(inputs, &splits)?, sink).next_batch(100, &mut batch)?;
    Ok((batch, plan.schema()))
}

#[test]
fn folders_named_by_a_column_are_a_column() {
    let (_root, inputs) =
        partitioned(&["day=1/city=Oslo", "day=2/city=Rome", "day=3/city=__HIVE_DEFAULT_PARTITION__"]);
    let (batch, schema) = read_all(&inputs, &FormatOptions::default(), None).unwrap();
    let columns: Vec<_> = schema.columns.iter().map(|column| (column.name.as_str(), column.kind)).collect();
    assert_eq!(
        columns,
        [("x", ColumnKind::Numeric), ("day", ColumnKind::Numeric), ("city", ColumnKind::Text)]
    );
    let city = |name: &[u8]| math::hash::named_key(b"city", name);
    assert_eq!(entries(&batch, 0), [(0, 1.0), (1, 1.0), (city(b"Oslo"), 1.0)]);
    assert_eq!(entries(&batch, 1), [(0, 2.0), (1, 2.0), (city(b"Rome"), 1.0)]);
    assert_eq!(entries(&batch, 2), [(0, 3.0), (1, 3.0)]);
    let (again, _) = read_all(&inputs[1..], &FormatOptions::default(), Some(&schema)).unwrap();
    assert_eq!(entries(&again, 0), entries(&batch, 1));
    let options = FormatOptions { label: Some("day".to_owned()), ..FormatOptions::default() };
    assert_eq!(read_all(&inputs, &options, None).unwrap().0.labels, [1.0, 2.0, 3.0]);
}

#[test]
fn folders_that_give_unlike_columns_are_refused() {
    let (_root, inputs) = partitioned(&["day=1", "hour=2"]);
    let text = read_all(&inputs, &FormatOptions::default(), None).unwrap_err().to_string();
    assert!(text.contains("hour") && text.contains("day"), "{text}");
}

#[test]
fn columns_are_carried_along_with_their_types() {
    let case = Case::of(&super::corpus("types_zstd"));
    let inputs = [Input::file(case.path()).unwrap()];
    let names = ["string", "u64", "label", "f64"].map(str::to_owned).to_vec();
    let options = FormatOptions { keep_columns: names, ..case.options };
    let OpenFormat::RowGroups(plan) =
        open(&FormatContext { files: &inputs, options: &options, trained_schema: None }).unwrap()
    else {
        panic!("Parquet has no lines")
    };
    let kinds: Vec<PassthroughKind> = plan.passthrough_columns().iter().map(|column| column.kind).collect();
    let expected =
        [PassthroughKind::Text, PassthroughKind::Text, PassthroughKind::Integer, PassthroughKind::Real];
    assert_eq!(kinds, expected, "a column with a null, or above 2^63, is text");
    let (batch, _) = read_all(&inputs, &options, None).unwrap();
    let slots: Vec<usize> = plan.passthrough_columns().iter().map(|column| column.slot).collect();
    let carried: Vec<&[u8]> = (0..8).map(|at| batch.passthrough.get(at / 4 * 4 + slots[at % 4])).collect();
    let expected: [&[u8]; 8] = [b"word 1", b"101", b"1", b"1.5", b"word 0", b"102", b"0", b"2.5"];
    assert_eq!(carried, expected);
    assert_eq!(batch.passthrough.get(12 + slots[1]), b"", "a null");
}

#[test]
fn weights_of_training_may_be_absent_where_only_scores_are_wanted() {
    let case = Case::new();
    write_table(&case.path(), 1);
    let inputs = [Input::file(case.path()).unwrap()];
    let training = FormatOptions { weight: Some("age".to_owned()), ..FormatOptions::default() };
    let plan = open(&FormatContext { files: &inputs, options: &training, trained_schema: None });
    let Ok(OpenFormat::RowGroups(plan)) = plan else { panic!("Parquet has no lines") };
    let (schema, mut absent) = (plan.schema(), plan.schema());
    absent.weight = Some("w".to_owned());
    let read = |purpose, schema: &Schema| {
        let options = FormatOptions { purpose, ..case.options.clone() };
        read_all(&inputs, &options, Some(schema)).map(|(batch, _)| batch.weights)
    };
    let error = read(InputPurpose::Prediction, &absent).unwrap_err().to_string();
    assert!(error.contains("'age' was not in the training data"), "it is no weight then: {error}");
    assert!(read(InputPurpose::Prediction, &schema).unwrap().is_empty());
    assert!(read(InputPurpose::Evaluation, &schema).is_err(), "the second record has no weight");
}

/// Makes a table of numbers with columns `x`, `z` and `label`.
fn numbers(x: Vec<f64>, z: Vec<i64>, label: Vec<f64>) -> Case {
    let case = Case::new();
    let message = "message m { required double x; required int64 z; required double label; }";
    let columns = [Raw::F64(x, vec![], vec![]), Raw::I64(z, vec![], vec![]), Raw::F64(label, vec![], vec![])];
    write(&case.path(), message, 1, &columns);
    case
}

#[test]
fn a_guess_that_is_no_label_of_classes_is_refused() {
    let prices: Vec<f64> = (0..200).map(|row| f64::from(row) + 0.5).collect();
    let mut case = numbers(prices.clone(), vec![1; 200], prices);
    case.options.label_rule = LabelRule::Real;
    assert!(case.open(None).is_ok(), "any number is a label of a regression");
    case.options.label_rule = LabelRule::Class;
    let text = case.error();
    assert!(text.contains("200 different values") && text.contains("--label"), "{text}");
    case.options.label = Some("z".to_owned());
    assert!(case.open(None).is_ok());
}

#[test]
fn columns_are_multiplied_by_name_or_number() {
    let product = |keys: &[u64]| math::hash::product_key(keys);
    for asked in [["x", "z"], ["0", "1"], ["z", "x"]] {
        let mut case = numbers(vec![2.0, 0.0], vec![3, 5], vec![1.0, 0.0]);
        case.options.interactions = vec![asked.map(str::to_owned).to_vec()];
        let batch = case.read().unwrap();
        assert_eq!(entries(&batch, 0), [(0, 2.0), (1, 3.0), (product(&[0, 1]), 6.0)], "{asked:?}");
        assert_eq!(entries(&batch, 1), [(1, 5.0)], "a product with zero is none");
        // Scoring finds the columns of training, wherever they are.
        let files = [Input::file(case.path()).unwrap()];
        let (_, schema) = read_all(&files, &case.options, None).unwrap();
        let moved = Case::new();
        let message = "message m { required int64 z; required double x; }";
        let columns = [Raw::I64(vec![3], vec![], vec![]), Raw::F64(vec![2.0], vec![], vec![])];
        write(&moved.path(), message, 1, &columns);
        let files = [Input::file(moved.path()).unwrap()];
        let options = FormatOptions { has_label: false, ..case.options.clone() };
        let (batch, _) = read_all(&files, &options, Some(&schema)).unwrap();
        let mut found = entries(&batch, 0);
        found.sort_by_key(|entry| entry.0);
        let mut expected = vec![(0, 2.0), (1, 3.0), (product(&[0, 1]), 6.0)];
        expected.sort_by_key(|entry| entry.0);
        assert_eq!(found, expected, "{asked:?}");
    }
    let mut case = numbers(vec![2.0], vec![3], vec![1.0]);
    case.options.interactions = vec![vec!["x".to_owned(), "label".to_owned()]];
    assert!(case.error().contains("'label'") && case.error().contains("not a feature"), "{}", case.error());
}

#[test]
fn numbers_that_lose_digits_are_counted_by_column() {
    let mut case = numbers(vec![1.5, 16_777_217.0], vec![1 << 24, 1 << 25], vec![16_777_217.0, 2.0]);
    case.options.label_rule = LabelRule::Real;
    let mut reader = case.reader(0..1).unwrap();
    reader.next_batch(10, &mut Batch::default()).unwrap();
    let rounded = &reader.summary().rounded;
    let numbers = crate::RoundedNumbers { count: 1, first: 16_777_217.0 };
    assert_eq!(rounded.features, [("feature 0".to_owned(), numbers)].into());
}

#[test]
fn the_schema_says_what_the_columns_are_for() {
    let case = Case::new();
    write_table(&case.path(), 1);
    let files = [Input::file(case.path()).unwrap()];
    let options = FormatOptions {
        group: Some("city".into()),
        skip_columns: vec!["income".into()],
        ..FormatOptions::default()
    };
    let (_, schema) = read_all(&files, &options, None).unwrap();
    assert_eq!(schema.order, ["age", "member", "income", "city", "label"]);
    assert_eq!((schema.group.as_deref(), schema.named), (Some("city"), true));
    assert_eq!(schema.skip_columns, ["income"]);
}

#[test]
fn two_columns_of_one_name_are_refused_as_in_csv() {
    let case = Case::new();
    let message = "message m { required int32 a; required int32 a; required int32 label; }";
    let column = || Raw::I32(vec![1, 2], vec![], vec![]);
    write(&case.path(), message, 1, &[column(), column(), column()]);
    let error = case.open(None).err().unwrap().to_string();
    assert!(error.contains("two columns have the name 'a'"), "{error}");
}

#[test]
fn an_empty_string_is_a_missing_label_and_no_class() {
    let mut case = with_labels(["yes", "", "no"]);
    case.options.label_rule = LabelRule::Class;
    assert_eq!(case.open(None).unwrap().schema().label_names, ["no", "yes"]);
    let error = case.error();
    assert!(error.contains("records.parquet:2:2"), "{error}");
}

#[test]
fn names_among_labels_are_told_with_the_file_that_has_them() {
    let (numbers, names) = (with_labels(["1", "2", "3"]), with_labels(["1", "x", "3"]));
    let files = [&numbers, &names].map(|case| Input::file(case.path()).unwrap());
    let options = FormatOptions { label_rule: LabelRule::Real, ..FormatOptions::default() };
    let error = open(&FormatContext { files: &files, options: &options, trained_schema: None })
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains(&format!("of {} has names", names.path().display())), "{error}");
}
