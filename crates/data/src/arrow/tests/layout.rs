//! The roles of the columns of a table, from its types and names alone.

use std::sync::Arc;

use arrow_schema::{DataType, Field};

use super::super::describe;
use crate::columns::{ColumnPlan, Role, plan};
use crate::format::testing::names;
use crate::{Error, FormatOptions, InputPurpose, KeyLimit, PassthroughKind, Schema};

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, true)))
}

/// Gives the columns of the table `t` their roles; those in `row_numbers` number the rows.
fn roles_with(
    columns: &[(&str, DataType)],
    row_numbers: &[&str],
    options: &FormatOptions,
    like: Option<&Schema>,
) -> Result<ColumnPlan, Error> {
    let fields = columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true));
    let schema = arrow_schema::Schema::new(fields.collect::<Vec<_>>());
    plan(&describe("t", &schema, &names(row_numbers), options)?, options, like)
}

fn roles(
    columns: &[(&str, DataType)],
    options: &FormatOptions,
    like: Option<&Schema>,
) -> Result<ColumnPlan, Error> {
    roles_with(columns, &[], options, like)
}

/// Returns the error of settings that do not fit the columns.
fn refused(columns: &[(&str, DataType)], options: &FormatOptions, like: Option<&Schema>) -> String {
    roles(columns, options, like).expect_err("settings that do not fit").to_string()
}

/// A table of two numbers and a label.
fn table() -> [(&'static str, DataType); 3] {
    [("size", DataType::Float64), ("count", DataType::Int64), ("label", DataType::Int8)]
}

#[test]
fn a_setting_that_names_no_column_is_an_error_of_its_own() {
    let base = FormatOptions::default;
    let unknown = || Some("sizes".to_owned());
    for options in [
        FormatOptions { label: unknown(), ..base() },
        FormatOptions { weight: unknown(), ..base() },
        FormatOptions { group: unknown(), ..base() },
        FormatOptions { time: unknown(), ..base() },
        FormatOptions { text_columns: names(&["sizes"]), ..base() },
        FormatOptions { token_columns: names(&["sizes"]), ..base() },
        FormatOptions { skip_columns: names(&["sizes"]), ..base() },
        FormatOptions { keep_columns: names(&["sizes"]), ..base() },
        FormatOptions { interactions: vec![names(&["count", "sizes"])], ..base() },
    ] {
        match roles(&table(), &options, None) {
            Err(Error::UnknownColumn { file, column, nearest, known }) => {
                assert_eq!((file.as_str(), column.as_str()), ("t", "sizes"), "{options:?}");
                assert_eq!((nearest.as_deref(), known.as_str()), (Some("size"), "size, count, label"));
            }
            other => panic!("{options:?}: {other:?}"),
        }
    }
    // Numbers from 0 on name columns, too, but not the number behind the last one.
    let by_number = |number: &str| {
        let options = FormatOptions { weight: Some(number.to_owned()), ..base() };
        roles(&table(), &options, None).map(|plan| plan.find(Role::Weight))
    };
    assert_eq!(by_number("1").unwrap(), Some(1));
    assert!(matches!(by_number("3"), Err(Error::UnknownColumn { .. })));
}

#[test]
fn a_column_that_training_skipped_may_be_absent_afterwards() {
    let options = FormatOptions { skip_columns: names(&["id", "count"]), ..FormatOptions::default() };
    let with_id = [("id", DataType::Utf8)].into_iter().chain(table()).collect::<Vec<_>>();
    let plan = roles(&with_id, &options, None).unwrap();
    assert_eq!(plan.read_columns(), [1, 3]);
    let plan = roles(&table(), &options, Some(&plan.schema)).unwrap();
    assert_eq!(plan.read_columns(), [0, 2]);
}

#[test]
fn columns_to_copy_are_values_and_each_is_listed_once() {
    let columns = [("list", list(DataType::Int32)), ("name", DataType::Utf8), ("label", DataType::Int8)];
    let keep = |kept: &[&str]| FormatOptions { keep_columns: names(kept), ..FormatOptions::default() };
    let text = refused(&columns, &keep(&["list"]), None);
    assert!(text.contains("column 'list' is a list of integers; a passthrough column must be"), "{text}");
    for twice in [["name", "name"], ["name", "1"]] {
        let text = refused(&columns, &keep(&twice), None);
        assert!(text.contains(&format!("column '{}' is listed twice", twice[1])), "{text}");
    }
}

#[test]
fn copied_columns_keep_their_types_where_no_value_is_lost() {
    use PassthroughKind::{Integer, Real, Text};
    for (kind, is_nullable, expected) in [
        (DataType::Int64, false, Integer),
        (DataType::Int64, true, Text),
        (DataType::UInt32, false, Integer),
        (DataType::UInt64, false, Text),
        (DataType::Float32, false, Real),
        (DataType::Float64, true, Real),
        (DataType::Boolean, false, Text),
        (DataType::Date32, false, Text),
        (DataType::Decimal128(10, 2), false, Text),
        (DataType::Utf8, false, Text),
    ] {
        let fields =
            vec![Field::new("x", kind.clone(), is_nullable), Field::new("label", DataType::Int8, true)];
        let schema = arrow_schema::Schema::new(fields);
        let options = FormatOptions { keep_columns: names(&["x"]), ..FormatOptions::default() };
        let plan = plan(&describe("t", &schema, &[], &options).unwrap(), &options, None).unwrap();
        assert_eq!(plan.passthrough[0].kind, expected, "{kind}, null: {is_nullable}");
    }
}

#[test]
fn an_index_is_skipped_unless_it_has_a_role() {
    let columns = [("index", DataType::Int64), ("size", DataType::Float64), ("label", DataType::Int8)];
    let read = |options: FormatOptions, like: Option<&Schema>| {
        let plan = roles_with(&columns, &["index"], &options, like).unwrap();
        let is_told =
            plan.notices.iter().any(|notice| notice.contains("'index' is an index that pandas wrote"));
        (plan.read_columns(), is_told, plan.schema)
    };
    let base = FormatOptions::default;
    let (fields, is_told, without) = read(base(), None);
    assert_eq!((fields, is_told), (vec![1, 2], true));
    let as_label = FormatOptions { label: Some("index".to_owned()), ..base() };
    let (fields, is_told, labelled) = read(as_label, None);
    assert_eq!((fields, is_told), (vec![0, 1, 2], false));
    let as_weight = FormatOptions { weight: Some("0".to_owned()), ..base() };
    assert!(!read(as_weight, None).1);
    let skipped = FormatOptions { skip_columns: names(&["index"]), ..base() };
    let (fields, is_told, _) = read(skipped, None);
    assert_eq!((fields, is_told), (vec![1, 2], false), "no notice of what was asked for");
    // A model that was trained with this column reads it again.
    let with_feature = roles(&columns, &base(), None).unwrap().schema;
    assert_eq!(read(base(), Some(&with_feature)).0, [0, 1, 2]);
    assert_eq!(read(base(), Some(&without)).0, [1, 2]);
    let others = [("index", DataType::Int64), ("size", DataType::Float64), ("label", DataType::Int8)];
    let options = FormatOptions { label: labelled.label.clone(), ..base() };
    let plan = roles_with(&others, &["index"], &options, Some(&labelled)).unwrap();
    assert_eq!(plan.find(Role::Label), Some(0));
    let plan = roles_with(&others, &["index"], &base(), Some(&labelled)).unwrap();
    assert_eq!((plan.find(Role::Label), plan.notices.len()), (Some(0), 0));
}

#[test]
fn the_label_is_that_of_the_setting_the_training_the_name_or_the_last_value() {
    let base = FormatOptions::default;
    let label_of = |columns: &[(&str, DataType)], options: &FormatOptions| {
        let plan = roles(columns, options, None).unwrap();
        (plan.find(Role::Label), plan.schema.label, plan.notices.into_iter().next().unwrap_or_default())
    };
    let by_name = [("Target", DataType::Int8), ("x", DataType::Float64)];
    let (label, name, notice) = label_of(&by_name, &base());
    assert_eq!((label, name.as_deref()), (Some(0), Some("Target")));
    assert_eq!(notice, "label: column 'Target', by its name");
    let last = [("x", DataType::Float64), ("z", DataType::Utf8), ("list", list(DataType::Utf8))];
    let (label, name, notice) = label_of(&last, &base());
    assert_eq!(
        (label, name.as_deref(), notice.as_str()),
        (Some(1), Some("z"), "label: column 'z', the last")
    );
    let asked = FormatOptions { label: Some("x".to_owned()), ..base() };
    assert_eq!(label_of(&last, &asked), (Some(0), Some("x".to_owned()), String::new()));

    let unlabelled = FormatOptions { has_label: false, ..base() };
    assert_eq!(label_of(&last, &unlabelled), (None, None, String::new()));
    let plan = roles(&by_name, &unlabelled, None).unwrap();
    let label = plan.schema.label.as_deref();
    assert_eq!((plan.find(Role::Label), plan.read_columns(), label), (None, vec![1], Some("Target")));
    let unused = FormatOptions { uses_labels: false, ..base() };
    let plan = roles(&by_name, &unused, None).unwrap();
    assert_eq!((plan.find(Role::Label), plan.read_columns(), plan.schema.label), (None, vec![0, 1], None));
    let absent = FormatOptions { label: Some("gone".to_owned()), ..unlabelled };
    assert_eq!(label_of(&last, &absent).0, None);

    let text = refused(&[("list", list(DataType::Utf8))], &base(), None);
    assert!(text.contains("label"), "{text}");
    let text = refused(&last, &FormatOptions { label: Some("list".to_owned()), ..base() }, None);
    assert!(
        text.contains("column 'list' is a list of strings; a label must be a number or a string"),
        "{text}"
    );
    let text = refused(&[("x", DataType::Int8), ("y", list(DataType::Int8))], &base(), None);
    assert!(text.contains("a label must be a number or a string"), "{text}");
}

#[test]
fn lists_are_the_features_alone_and_of_several_the_named_one() {
    let integers = || list(DataType::Int64);
    let floats = || list(DataType::Float64);
    let label = || ("label", DataType::Int8);
    let features = |columns: &[(&str, DataType)]| {
        let plan = roles(columns, &FormatOptions::default(), None).unwrap();
        let found = [Role::Indices, Role::Values, Role::Entries].map(|role| plan.find(role));
        (plan.read_columns(), plan.list(), found)
    };
    for (columns, expected) in [
        (vec![("a", integers()), label()], [Some(0), None, None]),
        (vec![("b", floats()), ("a", integers()), label()], [Some(1), Some(0), None]),
        (vec![("values", integers()), ("indices", integers()), label()], [Some(1), Some(0), None]),
        (vec![("indices", integers()), label()], [Some(0), None, None]),
        (vec![label(), ("a", floats())], [None, None, Some(1)]),
    ] {
        let (read, list, found) = features(&columns);
        assert_eq!(found, expected, "{columns:?}");
        assert_eq!(read.len(), columns.len(), "{columns:?}");
        assert_eq!(list, expected[0].or(expected[2]), "{columns:?}");
    }
    assert_eq!(features(&table()).1, None);
    for (columns, expected) in [
        (
            vec![("a", floats()), ("b", floats()), label()],
            "of several such columns one must be named 'features'",
        ),
        (
            vec![("a", integers()), ("b", integers()), label()],
            "of several such columns one must be named 'indices'",
        ),
        (
            vec![("a", integers()), ("b", floats()), ("c", floats()), label()],
            "of several such columns one must be named 'values'",
        ),
        (
            vec![("features", floats()), ("b", floats()), label()],
            "a file with a list of floats ('features') has no",
        ),
        (
            vec![("a", integers()), ("x", DataType::Int8), label()],
            "column 'x' is a number; a file with a list of",
        ),
        (
            vec![("x", DataType::Interval(arrow_schema::IntervalUnit::DayTime)), label()],
            "a feature must be a number",
        ),
    ] {
        let text = refused(&columns, &FormatOptions::default(), None);
        assert!(text.contains(expected), "{columns:?}: {text}");
    }
    let options = FormatOptions { interactions: vec![names(&["a", "a"])], ..FormatOptions::default() };
    let text = refused(&[("a", floats()), label()], &options, None);
    assert!(text.contains("t has no columns to multiply, its features are in a list"), "{text}");
}

#[test]
fn a_model_reads_the_columns_that_it_knows() {
    let base = FormatOptions::default;
    let columns = [("size", DataType::Float64), ("city", DataType::Utf8), ("label", DataType::Int8)];
    let trained = roles(&columns, &base(), None).unwrap().schema;
    // The order in the file is another one, the keys are those of training.
    let turned = [columns[1].clone(), columns[2].clone(), columns[0].clone()];
    let roles_of = |columns: &[(&str, DataType)]| {
        let plan = roles(columns, &base(), Some(&trained)).unwrap();
        plan.columns.iter().map(|column| (column.role, column.field)).collect::<Vec<_>>()
    };
    assert_eq!(roles_of(&turned), [(Role::Text, 1), (Role::Label, 0), (Role::Numeric(0), 0)]);
    for (columns, expected) in [
        (
            vec![columns[0].clone(), columns[2].clone()],
            "1 of the 2 feature columns of training are missing: city",
        ),
        (
            [columns.to_vec(), vec![("more", DataType::Int8)]].concat(),
            "column 'more' was not in the training data (3 feature columns here, 2 in training); skip it",
        ),
        (
            vec![("size", DataType::Utf8), columns[1].clone(), columns[2].clone()],
            "column 'size' is a string here, but was a number in training",
        ),
        (
            vec![columns[0].clone(), ("city", list(DataType::Utf8)), columns[2].clone()],
            "column 'city' is a list of strings here, but was none in training",
        ),
        (
            vec![("a", list(DataType::Float64)), columns[2].clone()],
            "column 'size' of training is missing, this file has a list of floats",
        ),
    ] {
        let text = refused(&columns, &base(), Some(&trained));
        assert!(text.contains(expected), "{columns:?}: {text}");
    }
    // A number where training had strings is read as a string.
    let number = [columns[0].clone(), ("city", DataType::Int64), columns[2].clone()];
    assert_eq!(roles_of(&number)[1].0, Role::Text);
    let tokens = FormatOptions { token_columns: names(&["city"]), ..base() };
    let trained = roles(&columns, &tokens, None).unwrap().schema;
    let text = refused(&number, &base(), Some(&trained));
    assert!(
        text.contains("column 'city' is a number; tokens must be a string or a list of strings"),
        "{text}"
    );
    let text = refused(&number, &tokens, None);
    assert!(
        text.contains("column 'city' is a number; tokens must be a string or a list of strings"),
        "{text}"
    );
    let lists = [columns[0].clone(), ("city", list(DataType::Utf8)), columns[2].clone()];
    let plan = roles(&lists, &base(), Some(&trained)).unwrap();
    assert_eq!(plan.columns[1].role, Role::Tokens);
}

#[test]
fn weights_of_training_may_be_absent_for_metrics_with_a_notice() {
    let columns = [("w", DataType::Float64), ("x", DataType::Float64), ("label", DataType::Int8)];
    let options = FormatOptions { weight: Some("w".to_owned()), ..FormatOptions::default() };
    let trained = roles(&columns, &options, None).unwrap().schema;
    let evaluated = FormatOptions { purpose: InputPurpose::Evaluation, ..FormatOptions::default() };
    let plan = roles(&columns, &evaluated, Some(&trained)).unwrap();
    assert_eq!((plan.find(Role::Weight), plan.notices.len()), (Some(0), 0));
    let plan = roles(&columns[1..], &evaluated, Some(&trained)).unwrap();
    assert_eq!(plan.find(Role::Weight), None);
    assert_eq!(
        plan.notices,
        ["t has no column 'w', the weight or group column of training: every record counts the same"]
    );
    // A setting replaces the column of training.
    let other = FormatOptions { weight: Some("x".to_owned()), ..evaluated };
    let text = refused(&columns, &other, Some(&trained));
    assert!(text.contains("1 of the 1 feature columns of training are missing: x"), "{text}");
}

#[test]
fn the_schema_has_settings_of_numbers_only_where_there_are_numbers() {
    let words = [("a", DataType::Utf8), ("label", DataType::Int8)];
    let numbers = [("a", DataType::Int8), ("label", DataType::Int8)];
    let lists = [("a", list(DataType::Float64)), ("label", DataType::Int8)];
    let both = [("a", DataType::Int8), ("b", DataType::Utf8), ("label", DataType::Int8)];
    let schema_of = |columns: &[(&str, DataType)], limit: Option<u64>, like: Option<&Schema>| {
        let key_limit = limit.map(|limit| KeyLimit { limit, setting: "dimensions" });
        let options =
            FormatOptions { keep_zeros: true, uses_fields: true, key_limit, ..FormatOptions::default() };
        let schema = roles(columns, &options, like).unwrap().schema;
        (schema.keep_zeros, schema.mark_missing, schema.fields)
    };
    assert_eq!(schema_of(&words, None, None), (false, false, true));
    assert_eq!(schema_of(&numbers, None, None), (true, true, true));
    assert_eq!(schema_of(&lists, None, None), (false, false, false));
    assert_eq!(schema_of(&both, None, None), (true, true, true));
    // When the number of features is declared, no key is left for missing numbers; a model decides for itself.
    assert_eq!(schema_of(&both, Some(9), None), (true, false, true));
    let marked = roles(&both, &FormatOptions::default(), None).unwrap().schema;
    assert_eq!(schema_of(&both, Some(9), Some(&marked)), (true, true, true));
    let schema = roles(&both, &FormatOptions::default(), None).unwrap().schema;
    assert_eq!((schema.keep_zeros, schema.fields, schema.named), (false, false, true));
    assert_eq!((schema.order, schema.label.as_deref()), (names(&["a", "b", "label"]), Some("label")));
}

#[test]
fn booleans_and_timestamps_that_training_read_as_text_from_csv_are_told() {
    let columns = |kind: DataType| [("a", kind), ("b", DataType::Boolean), ("label", DataType::Int8)];
    let options = FormatOptions::default();
    let trained = roles(&columns(DataType::Utf8), &options, None).unwrap().schema;
    let notices = |kind, delimiter: Option<u8>| {
        let trained = Schema { delimiter, ..trained.clone() };
        roles(&columns(kind), &options, Some(&trained)).unwrap().notices
    };
    for kind in [DataType::Boolean, DataType::Timestamp(arrow_schema::TimeUnit::Second, None)] {
        let told = notices(kind.clone(), Some(b','));
        assert!(
            told.len() == 1 && told[0].contains("as text: a; here they are read as 'true' or"),
            "{told:?}"
        );
        assert!(notices(kind.clone(), None).is_empty(), "{kind}: the form is the same in every table");
    }
    for kind in [DataType::Utf8, DataType::Int8, DataType::Date32] {
        assert!(notices(kind.clone(), Some(b',')).is_empty(), "{kind}");
    }
}
