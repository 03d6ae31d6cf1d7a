//! Labels that are strings, and what several tables have in common.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal32Array, Decimal64Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::DataType;

use super::super::column::numbers;
use super::super::{add_labels, check_guess, describe, merged_notices, merged_passthrough_columns};
use super::{read_source, source_of};
use crate::columns::{ColumnPlan, LabelScan, plan};
use crate::label::CLASS_LIMIT;
use crate::{Error, FormatOptions, LabelRule, PassthroughKind};

fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn labels_are_numbers_until_one_is_a_name() {
    let finish = |columns: &[(&str, &[&str])], label_rule, said: bool| {
        let text_columns = said.then(|| "y".to_owned()).into_iter().collect();
        let options = FormatOptions { text_columns, label_rule, ..FormatOptions::default() };
        let mut scan = LabelScan::new("y", &options, None)?;
        for (file, values) in columns {
            add_labels(&mut scan, file, &strings(values))?;
        }
        scan.finish()
    };
    let numbers: &[(&str, &[&str])] = &[("a", &["1", "0", "NA", ""]), ("b", &["2.5"])];
    assert!(finish(numbers, LabelRule::Class, false).unwrap().is_empty());
    assert_eq!(finish(numbers, LabelRule::Class, true).unwrap(), ["0", "1", "2.5", "NA"]);
    let mixed: &[(&str, &[&str])] = &[("a", &["1"]), ("b", &["x", "1"]), ("c", &["z"])];
    assert_eq!(finish(mixed, LabelRule::Class, false).unwrap(), ["1", "x", "z"]);
    let error = finish(mixed, LabelRule::Real, false).unwrap_err().to_string();
    assert!(error.contains("column 'y' of b has names, but this algorithm needs numbers"), "{error}");
    let error = finish(numbers, LabelRule::Real, true).unwrap_err().to_string();
    assert!(error.contains("column 'y' has names, but this algorithm needs numbers"), "{error}");
}

#[test]
fn names_of_classes_are_limited() {
    let scan = |count: usize| -> Result<Vec<String>, Error> {
        let options = FormatOptions { label_rule: LabelRule::Class, ..FormatOptions::default() };
        let mut scan = LabelScan::new("y", &options, None)?;
        let names: Vec<String> = (0..count).map(|at| format!("class {at}")).collect();
        for part in names.chunks(1000) {
            let array: ArrayRef = Arc::new(StringArray::from_iter_values(part));
            add_labels(&mut scan, "t", &array)?;
            add_labels(&mut scan, "t", &array)?;
        }
        scan.finish()
    };
    assert_eq!(scan(CLASS_LIMIT).unwrap().len(), CLASS_LIMIT);
    for count in [CLASS_LIMIT + 1, CLASS_LIMIT + 5] {
        let error = scan(count).unwrap_err().to_string();
        assert!(error.contains("column 'y' has more than 4096 different names; is it the label?"), "{error}");
    }
}

#[test]
fn a_guess_is_checked_by_its_first_values() {
    let many: ArrayRef = Arc::new(Int64Array::from_iter_values(0..101));
    let few: ArrayRef = Arc::new(Int64Array::from_iter_values((0..200).map(|row| row % 100)));
    assert!(check_guess("t", "x", &few).is_ok());
    let error = check_guess("t", "x", &many).unwrap_err().to_string();
    assert!(
        error.contains("column 'x' of t") && error.contains("101 different values in the first 101 rows"),
        "{error}"
    );
    assert!(check_guess("t", "Label", &many).is_ok(), "its name says that it is the label");
    let halves: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 0.5, 1.0]));
    assert!(check_guess("t", "label", &halves).is_err());
    let two: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.0]));
    assert!(check_guess("t", "x", &two).is_ok());
}

#[test]
fn a_guess_is_checked_in_the_first_batch_that_has_records() {
    let batch = |count: i64| {
        let columns: [(&str, ArrayRef); 2] = [
            ("a", Arc::new(Int64Array::from_iter_values(0..count))),
            ("b", Arc::new(Int64Array::from_iter_values(0..count))),
        ];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    };
    let options = FormatOptions { label_rule: LabelRule::Class, ..FormatOptions::default() };
    for batches in [vec![batch(200)], vec![batch(0), batch(0), batch(200)]] {
        let error = source_of(batches, &options, None).err().expect("a guess that is no class").to_string();
        assert!(
            error.contains("column 'b' of memory:table") && error.contains("200 different values"),
            "{error}"
        );
    }
    assert!(source_of(vec![batch(0), batch(50)], &options, None).is_ok());
}

#[test]
fn labels_that_are_no_numbers_or_names_are_bad_records() {
    let batch = |labels: &[Option<&str>]| {
        let labels: ArrayRef = Arc::new(StringArray::from(labels.to_vec()));
        let x: ArrayRef = Arc::new(Float64Array::from(vec![1.0; labels.len()]));
        RecordBatch::try_from_iter([("x", x), ("label", labels)]).expect("columns of one length")
    };
    let options = FormatOptions::default();
    let read = |labels: &[Option<&str>], trained: &[Option<&str>], options: &FormatOptions| {
        let trained = source_of(vec![batch(trained)], options, None).unwrap();
        let source = source_of(vec![batch(labels)], options, Some(trained.schema())).unwrap();
        read_source(&source).map(|read| read.rows.iter().map(|row| row.label).collect::<Vec<_>>())
    };
    let numbers = [Some("1"), Some("0")];
    assert_eq!(read(&[Some("2"), Some("3")], &numbers, &options).unwrap(), [2.0, 3.0]);
    for (label, found) in [(Some("x"), "found 'x'"), (Some("inf"), "found 'inf'"), (None, "found null")] {
        let error = read(&[Some("1"), label], &numbers, &options).unwrap_err().to_string();
        assert!(error.contains("table:2:2") && error.contains(found), "{label:?}: {error}");
    }
    let classes = FormatOptions { label_rule: LabelRule::Class, ..FormatOptions::default() };
    let names = [Some("blue"), Some("red")];
    assert_eq!(read(&[Some("red"), Some("blue")], &names, &classes).unwrap(), [1.0, 0.0]);
    let error = read(&[Some("redd")], &names, &classes).unwrap_err().to_string();
    assert!(error.contains("one of the 2 label names of training, did you mean 'red'?"), "{error}");
}

#[test]
fn several_files_have_the_notices_and_kinds_that_they_share() {
    let table = |kind: DataType, name: &str| {
        let fields = vec![
            arrow_schema::Field::new("index", DataType::Int64, false),
            arrow_schema::Field::new("kept", kind, false),
            arrow_schema::Field::new("x", DataType::Float64, false),
            arrow_schema::Field::new(name, DataType::Int8, false),
        ];
        let schema = arrow_schema::Schema::new(fields);
        let row_numbers = ["index".to_owned()];
        let options = FormatOptions {
            keep_columns: vec!["kept".to_owned(), "x".to_owned()],
            ..FormatOptions::default()
        };
        let table = describe("t", &schema, &row_numbers, &options).expect("a table");
        plan(&table, &options, None).expect("a plan")
    };
    let plans = [table(DataType::Int64, "label"), table(DataType::Int64, "y")];
    let notices = merged_notices(plans.iter());
    assert_eq!(notices.len(), 3, "the index once, each label: {notices:?}");
    let kinds = |plans: &[ColumnPlan]| {
        merged_passthrough_columns(plans.iter()).into_iter().map(|column| column.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&plans), [PassthroughKind::Integer, PassthroughKind::Real]);
    let mixed = [table(DataType::Int64, "label"), table(DataType::Float64, "label")];
    assert_eq!(kinds(&mixed), [PassthroughKind::Text, PassthroughKind::Real]);
    assert!(kinds(&[]).is_empty());
}

#[test]
fn small_decimals_are_numbers() {
    let mut found = Vec::new();
    let small = Decimal32Array::from(vec![Some(12_345), None]).with_precision_and_scale(9, 2).unwrap();
    numbers(&small, &mut found);
    assert!(found[0] == 123.45 && found[1].is_nan(), "{found:?}");
    let wide = Decimal64Array::from(vec![Some(-12_345), None]).with_precision_and_scale(18, 4).unwrap();
    numbers(&wide, &mut found);
    assert!(found[0] == -1.2345 && found[1].is_nan(), "{found:?}");
}

#[test]
fn attributes_that_cannot_be_are_bad_records() {
    let batch = |weight: f64, time: Option<f64>| {
        let columns: [(&str, ArrayRef); 4] = [
            ("x", Arc::new(Float64Array::from(vec![1.0, 1.0]))),
            ("w", Arc::new(Float64Array::from(vec![0.5, weight]))),
            ("t", Arc::new(Float64Array::from(vec![Some(-3.0), time]))),
            ("label", Arc::new(Float64Array::from(vec![1.0, 0.0]))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
    };
    let options = FormatOptions {
        weight: Some("w".to_owned()),
        time: Some("t".to_owned()),
        ..FormatOptions::default()
    };
    let read = |batch| read_source(&source_of(vec![batch], &options, None).unwrap());
    let rows = read(batch(2.5, Some(7.0))).unwrap().rows;
    assert_eq!(
        rows.iter().map(|row| (row.weight, row.time)).collect::<Vec<_>>(),
        [(0.5, Some(-3.0)), (2.5, Some(7.0))]
    );
    for (weight, time, expected) in [
        (-1.0, Some(1.0), "table:2:2: expected a finite weight of at least 0 in column 'w', found -1"),
        (
            f64::INFINITY,
            Some(1.0),
            "table:2:2: expected a finite weight of at least 0 in column 'w', found inf",
        ),
        (1e39, Some(1.0), "table:2:2: expected a finite weight of at least 0"),
        (1.0, None, "table:2:3: expected a time in column 't': a number, or a date as in 2026-01-31"),
        (1.0, Some(f64::INFINITY), "table:2:3: expected a time"),
    ] {
        match read(batch(weight, time)) {
            Err(error @ Error::BadLine(_)) => assert!(error.to_string().contains(expected), "{error}"),
            other => panic!("{weight}, {time:?}: {other:?}"),
        }
    }
}
