//! What the first row is, which column is the label, and what settings of columns are refused.

use super::tests::{classes, open, read, read_to_error};
use crate::format::testing::{Row, names, options, read_whole};
use crate::{Error, FormatOptions, FormatTable, Input, InputPurpose, LabelRule, Source, SourceConfig};

fn error_of(text: &str, options: &FormatOptions) -> String {
    open(text, options, None).err().expect("an input that is refused").to_string()
}

#[test]
fn the_first_row_is_a_header_by_what_stands_below_it() {
    let words = FormatOptions { label_rule: LabelRule::Class, ..options() };
    for (text, is_header) in [
        // Words over numbers, numbers over numbers.
        ("a,b\n1,2\n3,4\n", true),
        ("1,2\n3,4\n5,6\n", false),
        ("NA,2\n3,4\n5,6\n", false),
        ("a,NA\n3,4\n5,6\n", true),
        // The name of a label over numbers decides before a number that may be a name.
        ("y,2020\n1,4\n0,6\n", true),
        // Words over words: the name of a label, unless words of the row occur again.
        ("y,name\na,b\nc,d\n", true),
        ("x,name\na,b\nc,d\n", false),
        ("y,name\na,b\nc,name\n", false),
        ("y,name\na,y\nc,d\n", true),
        ("y,y\na,b\nc,d\n", false),
        ("y,name\ny,name\na,b\n", true),
        // One row alone.
        ("a,b\n", true),
        ("a,1\n", false),
    ] {
        let source = open(text, &words, None).unwrap();
        assert_eq!(source.schema().named, is_header, "{text:?}");
    }
    let text = error_of("a,2020\n1,4\n0,6\n", &words);
    assert!(
        text.contains("the first row of t.csv may name the columns or be a record: '2020' and 'a'"),
        "{text}"
    );
    let text = error_of("y,name\ny,b\nc,d\n", &words);
    assert!(text.contains("'y' is the name of a label, but also a value in the rows below"), "{text}");
    // The setting decides, and so does a label that it names, unless that is a number.
    let said = |header: bool| FormatOptions { header: Some(header), ..words.clone() };
    assert!(open("1,2\n3,4\n", &said(true), None).unwrap().schema().named);
    assert!(!open("a,b\n1,2\n", &said(false), None).unwrap().schema().named);
    let asked = |label: &str| FormatOptions { label: Some(label.to_owned()), ..words.clone() };
    assert!(open("x,name\na,b\nc,d\n", &asked("x"), None).unwrap().schema().named);
    assert!(!open("0,2\n3,4\n", &asked("0"), None).unwrap().schema().named);
}

#[test]
fn an_empty_last_column_is_left_out_with_and_without_a_header() {
    let features = |source: &Source| {
        source.schema().columns.iter().map(|column| column.name.clone()).collect::<Vec<String>>()
    };
    for (text, columns) in [
        ("a,b,label,\n1,2,1,\n3,4,0,\n", &["a", "b"][..]),
        ("1,2,1,\n3,4,0,\n", &["0", "1"]),
        ("label;name;\n1;x;\n0;y;\n", &["name"]),
    ] {
        let source = open(text, &options(), None).unwrap();
        assert_eq!(features(&source), columns, "{text:?}");
        let notices = source.notices();
        assert!(notices.iter().any(|notice| notice.contains("the last column has no name")), "{notices:?}");
        let labels: Vec<f64> = read(&source).unwrap().iter().map(|row| row.label).collect();
        assert_eq!(labels, [1.0, 0.0], "{text:?}");
        // The same file, and one without the last delimiters, are read with the schema of training.
        for text in [text.to_owned(), text.replace(",\n", "\n").replace(";\n", "\n")] {
            let again = open(&text, &options(), Some(source.schema())).unwrap();
            assert_eq!(read(&again).unwrap().len(), 2, "{text:?}");
        }
    }
    let source = open("a,label,\n1,2,3\n3,4,5\n", &options(), None).unwrap();
    assert_eq!(features(&source), ["a", ""], "it has values");
}

#[test]
fn blank_lines_before_a_header_are_refused_and_before_records_are_not() {
    let text = error_of("\n \na,b\n1,2\n", &options());
    assert!(text.contains("blank lines before the header"), "{text}");
    let source = open("\n1,2\n3,4\n", &options(), None).unwrap();
    assert_eq!(read_whole(&source).summary().record_count, 2);
}

#[test]
fn a_first_row_with_wrong_quotes_is_a_bad_line() {
    let text = error_of("1,\"2\n3,4\n", &FormatOptions { header: Some(false), ..options() });
    assert!(text.starts_with("t.csv:1:3: expected a closing quote"), "{text}");
}

#[test]
fn names_of_classes_need_an_input_that_is_read_twice_and_are_limited() {
    let text = |count: usize| {
        let rows = (0..count).map(|row| format!("{row},name{row}\n"));
        rows.fold("x,y\n".to_owned(), |text, row| text + &row)
    };
    let label = || FormatOptions { label: Some("y".to_owned()), ..classes() };
    assert_eq!(open(&text(4096), &label(), None).unwrap().schema().label_names.len(), 4096);
    let error = error_of(&text(4097), &label());
    assert!(error.contains("column 'y' has more than 4096 different names; is it the label?"), "{error}");

    let stream =
        Input::stream("pipe".to_owned(), Box::new(std::io::Cursor::new(b"x,y\n1,a\n2,b\n".to_vec())));
    let config = SourceConfig { format: Some("csv".into()), options: label(), ..SourceConfig::default() };
    let opened = Source::from_inputs(vec![stream.unwrap()], &config, None, &FormatTable::builtin());
    let error = opened.err().expect("names are numbered first").to_string();
    assert!(error.contains("but pipe can be read only once; write it to a file first"), "{error}");
}

#[test]
fn labels_are_collected_from_all_files_without_headers_blank_lines_and_empty_ones() {
    let files = ["y,x\nb,1\n\nNA,2\n,3\n", "y,x\na,1\n \n\"b\",2\n"];
    let files = files.map(|text| Input::memory("f", text.as_bytes()).unwrap()).to_vec();
    let config = SourceConfig { format: Some("csv".into()), options: classes(), ..SourceConfig::default() };
    let source = Source::from_inputs(files, &config, None, &FormatTable::builtin()).unwrap();
    assert_eq!(source.schema().label_names, ["NA", "a", "b"]);
}

#[test]
fn a_column_that_is_not_found_among_one_points_to_the_delimiter() {
    let asked = FormatOptions { label: Some("y".to_owned()), ..options() };
    let error = error_of("a:b:y\n1:2:1\n2:3:0\n", &asked);
    assert!(error.contains("no column 'y'") && error.contains("set --delimiter"), "{error}");
}

#[test]
fn names_that_occur_once_are_left_out_unless_they_are_asked_for() {
    let rows = (0..60).map(|row| format!("user{row},{row},{}\n", row % 2));
    let text = rows.fold("id,x,y\n".to_owned(), |text, row| text + &row);
    let columns = |options: &FormatOptions, like| {
        let source = open(&text, options, like).unwrap();
        let is_told = source.notices().iter().any(|notice| notice.contains("a name of its own in 'id'"));
        (source.schema().columns.len(), is_told, source.schema().clone())
    };
    let (count, is_told, schema) = columns(&options(), None);
    assert_eq!((count, is_told, schema.skip_columns.clone()), (1, true, names(&["id"])));
    assert_eq!(columns(&options(), Some(&schema)).0, 1);
    assert!(open("x,y\n1,0\n2,1\n", &options(), Some(&schema)).is_ok(), "it may be absent");
    let asked = FormatOptions { text_columns: names(&["id"]), ..options() };
    assert_eq!(columns(&asked, None).0, 2);
    let words = FormatOptions { token_columns: names(&["id"]), ..options() };
    assert!(!columns(&words, None).1);
}

#[test]
fn ids_are_the_only_features_in_their_order_and_every_record_has_them() {
    let options = FormatOptions {
        id_columns: names(&["user", "item"]),
        uses_fields: true,
        label: Some("y".to_owned()),
        ..options()
    };
    let text = "y,item,age,user\n1,7,30,u1\n0,8,40,u2\n";
    let source = open(text, &options, None).unwrap();
    let schema = source.schema().clone();
    let columns: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((columns, schema.skip_columns.clone()), (vec!["user", "item"], names(&["age"])));
    let key = |column: &[u8], name: &[u8]| math::hash::named_key(column, name);
    let first = read(&source).unwrap().remove(0);
    let mut fields: Vec<(u32, u64)> =
        first.fields.iter().copied().zip(first.entries.iter().map(|entry| entry.0)).collect();
    fields.sort_unstable();
    assert_eq!(fields, [(0, key(b"user", b"u1")), (1, key(b"item", b"7"))]);
    // Also in data that are scored, which need no setting.
    let scored = FormatOptions { label: Some("y".to_owned()), ..FormatOptions::default() };
    for (options, like) in [(&options, None), (&scored, Some(&schema))] {
        let error = read_to_error(&open("y,item,user\n1,7,u1\n1,,u2\n", options, like).unwrap());
        assert!(error.contains("t.csv:3:3") && error.contains("a name in column 'item'"), "{error}");
    }
    assert!(error_of("y,user\n1,u1\n", &options).contains("no column 'item'"));
}

#[test]
fn weights_that_cannot_be_are_bad_rows() {
    let options = FormatOptions { weight: Some("w".to_owned()), ..options() };
    for (value, place) in [("-1", "t.csv:3:3"), ("inf", "t.csv:3:3"), ("", "t.csv:3:3"), ("x", "t.csv:3:3")] {
        let error = read_to_error(&open(&format!("a,w,y\n1,2,1\n1,{value},0\n"), &options, None).unwrap());
        assert!(
            error.contains(place) && error.contains("a finite weight of at least 0 in column 'w'"),
            "{error}"
        );
    }
    let rows = read(&open("a,w,y\n1,0,1\n1,2.5,0\n", &options, None).unwrap()).unwrap();
    assert_eq!(
        rows.iter().map(|row| row.weight).collect::<Vec<_>>(),
        [2.5],
        "a record of weight 0 is left out"
    );
}

#[test]
fn columns_are_copied_in_the_order_in_which_they_are_asked_for() {
    let keep = |kept: &[&str]| FormatOptions { keep_columns: names(kept), ..options() };
    let source = open("a,b,c,y\n1,x,3,1\n4,z,6,0\n", &keep(&["c", "a"]), None).unwrap();
    let copied: Vec<_> =
        source.passthrough_columns().iter().map(|column| (column.name.as_str(), column.slot)).collect();
    assert_eq!(copied, [("c", 1), ("a", 0)]);
    let text = error_of("a,b,c,y\n1,x,3,1\n", &keep(&["c", "2"]));
    assert!(text.contains("column '2' is listed twice"), "{text}");
    let text = error_of("a,b,c,y\n1,x,3,1\n", &keep(&["d"]));
    assert!(text.contains("no column 'd'"), "{text}");
    // A file without rows has no columns, and so none that is missing.
    assert!(open("\n", &keep(&["d"]), None).is_err(), "there is nothing to copy");
    let roles =
        FormatOptions { weight: Some("w".to_owned()), interactions: vec![names(&["p", "q"])], ..options() };
    assert_eq!(read_whole(&open("\n", &roles, None).unwrap()).summary().record_count, 0);
    assert!(open("\n", &FormatOptions { interactions: vec![names(&["p"])], ..options() }, None).is_err());
}

#[test]
fn the_label_is_skipped_where_labels_are_not_read() {
    let without = FormatOptions { has_label: false, ..options() };
    let asked = |label: &str| FormatOptions { label: Some(label.to_owned()), ..without.clone() };
    let entries = |options: &FormatOptions| read(&open("a,b,c\n1,2,3\n", options, None).unwrap()).unwrap();
    assert_eq!(entries(&without), [Row::new(None, &[(0, 1.0), (1, 2.0), (2, 3.0)])]);
    assert_eq!(entries(&asked("b")), [Row::new(None, &[(0, 1.0), (1, 3.0)])]);
    assert_eq!(entries(&asked("gone")), entries(&without), "it may be absent");
}

#[test]
fn products_are_of_columns_with_one_value() {
    for (factor, options) in [
        ("y", options()),
        ("w", FormatOptions { weight: Some("w".to_owned()), ..options() }),
        ("w", FormatOptions { group: Some("w".to_owned()), ..options() }),
        ("w", FormatOptions { time: Some("w".to_owned()), ..options() }),
        ("w", FormatOptions { skip_columns: names(&["w"]), ..options() }),
        ("w", FormatOptions { token_columns: names(&["w"]), ..options() }),
    ] {
        let options = FormatOptions { interactions: vec![names(&["a", factor])], ..options };
        let text = error_of("a,w,y\n1,2,1\n3,4,0\n", &options);
        assert!(
            text.contains(&format!("column '{factor}' of t.csv is not a feature of one value")),
            "{text}"
        );
    }
    // Missing values and zeros have no products, unless zeros are kept.
    for (keep_zeros, expected) in [(false, [true, false, false]), (true, [true, true, false])] {
        let options = FormatOptions { interactions: vec![names(&["a", "c"])], keep_zeros, ..options() };
        let rows = read(&open("a,c,y\n2,p,1\n0,p,1\n,p,0\n3,,0\n", &options, None).unwrap()).unwrap();
        let product = rows[0].entries.last().map(|entry| entry.0);
        for (row, expected) in rows[..3].iter().zip(expected) {
            let has_product = row.entries.iter().any(|entry| Some(entry.0) == product);
            assert_eq!(has_product, expected, "zeros kept: {keep_zeros}; {:?}", row.entries);
        }
    }
}

#[test]
fn a_model_refuses_columns_that_it_does_not_know_and_counts_those_that_are_missing() {
    let train = open("a,b,c,y\n1,2,x,0\n3,4,z,1\n", &options(), None).unwrap();
    let schema = train.schema();
    for (text, expected) in [
        ("a,y\n1,0\n", "2 of the 3 feature columns of training are missing: b, c"),
        (
            "a,b,c,d,y\n1,2,x,5,0\n",
            "(4 feature columns here, 3 in training); skip it with --skip-columns 'd'",
        ),
    ] {
        match open(text, &options(), Some(schema)) {
            Err(Error::SchemaDiffers { file, difference }) => {
                assert_eq!(file, "t.csv");
                assert!(difference.contains(expected), "{difference}");
            }
            _ => panic!("{text}"),
        }
    }
    let weighted = FormatOptions { weight: Some("b".to_owned()), ..options() };
    let train = open("a,b,c,y\n1,2,x,0\n3,4,z,1\n", &weighted, None).unwrap();
    let evaluated = FormatOptions { purpose: InputPurpose::Evaluation, ..options() };
    let source = open("a,c,y\n1,x,0\n", &evaluated, Some(train.schema())).unwrap();
    assert!(
        source.notices().iter().any(|notice| notice.contains("t.csv has no column 'b', the weight or group"))
    );
    let source = open("a,b,c,y\n1,7,x,0\n", &evaluated, Some(train.schema())).unwrap();
    assert_eq!(read(&source).unwrap()[0].weight, 7.0);
    assert!(source.notices().is_empty(), "{:?}", source.notices());
    assert!(open("\n", &evaluated, Some(train.schema())).unwrap().notices().is_empty(), "no row, no notice");
}
