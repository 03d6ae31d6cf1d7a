//! Files as other programs write them: header, label, quotes, missing values.

use super::tests::{classes, key, open, read, read_to_error};
use crate::format::testing::{Row, options, rows, rows_of};
use crate::input::Input;
use crate::options::FormatOptions;
use crate::{BadLinePolicy, Batch, ColumnKind, Error, FormatTable, LabelRule, Source, SourceConfig};
use std::io::Write;

fn names(source: &Source) -> Vec<&str> {
    source.schema().columns.iter().map(|column| column.name.as_str()).collect()
}

fn error_of(text: &str, options: &FormatOptions) -> String {
    open(text, options, None).err().unwrap_or_else(|| panic!("no error: {text}")).to_string()
}

fn binary() -> FormatOptions {
    FormatOptions { label_rule: LabelRule::Binary { positive: None }, ..options() }
}

#[test]
fn the_label_is_found_by_its_name_or_is_the_last_and_is_told() {
    for (text, label, told) in [
        ("x,Target,z\n1,0,2\n", "Target", "label: column 'Target', by its name"),
        ("x,z,price\n1,0,2\n", "price", "label: column 'price', the last"),
        ("1,0,2\n", "2", "label: column '2', the last"),
    ] {
        let source = open(text, &options(), None).unwrap();
        assert_eq!(
            (source.schema().label.as_deref(), source.notices()),
            (Some(label), &[told.to_owned()][..])
        );
    }
    let asked = FormatOptions { label: Some("x".into()), ..options() };
    assert!(open("x,y\n1,2\n", &asked, None).unwrap().notices().is_empty(), "nothing was guessed");
}

#[test]
fn several_columns_that_may_be_the_label_are_an_error_that_lists_them() {
    let text = "x,y,label\n1,0,2\n";
    let error = error_of(text, &options());
    assert!(error.contains("'y' and 'label'") && error.contains("--label"), "{error}");
    let skipped = FormatOptions { skip_columns: vec!["y".into()], ..options() };
    assert_eq!(open(text, &skipped, None).unwrap().schema().label.as_deref(), Some("label"));
    let weighted = FormatOptions { weight: Some("y".into()), ..options() };
    let error = error_of("x,y,z\n1,0,2\n", &weighted);
    assert!(error.contains("'y'") && error.contains("another role"), "{error}");
    let last = FormatOptions { weight: Some("z".into()), ..options() };
    assert_eq!(open("w,x,z\n1,0,2\n", &last, None).unwrap().schema().label.as_deref(), Some("x"));
}

#[test]
fn a_guess_that_is_no_label_of_classes_is_refused_with_advice() {
    let prices = |kind: &str, count: usize| {
        let rows = (0..count).map(|row| format!("{row},{}\n", kind.replace('#', &row.to_string())));
        format!("size,price\n{}", rows.collect::<String>())
    };
    for text in [prices("#.5", 3), prices("#", 150), prices("name#", 150)] {
        for options in [binary(), classes()] {
            let error = error_of(&text, &options);
            assert!(error.contains("'price'") && error.contains("--label"), "{error}");
            let asked = FormatOptions { label: Some("price".into()), ..options };
            if let Some(error) = open(&text, &asked, None).err() {
                assert!(!error.to_string().contains("chosen as the label"), "{error}");
            }
        }
    }
    assert!(open(&prices("#.5", 150), &options(), None).is_ok(), "any number is a label of a regression");
    assert!(open(&prices("#", 50), &classes(), None).is_ok());
}

#[test]
fn a_column_has_one_role() {
    let label = || FormatOptions { label: Some("y".into()), ..options() };
    for (options, words) in [
        (FormatOptions { weight: Some("y".into()), ..label() }, "weight: column 'y'"),
        (FormatOptions { group: Some("2".into()), ..label() }, "group: column 'y'"),
        (FormatOptions { skip_columns: vec!["y".into()], ..label() }, "skip_columns: column 'y'"),
        (FormatOptions { weight: Some("a".into()), group: Some("a".into()), ..label() }, "group: column 'a'"),
        (
            FormatOptions { weight: Some("a".into()), skip_columns: vec!["a".into()], ..label() },
            "skip_columns",
        ),
    ] {
        let error = error_of("a,b,y\n1,2,1\n", &options);
        assert!(error.contains(words) && error.contains("one role"), "{error}");
    }
}

#[test]
fn one_word_for_a_missing_value_leaves_a_column_numeric() {
    for word in ["None", "n/a", "#N/A", "<NA>", "-nan", "1.#IND", "NULL", ""] {
        let source = open(&format!("a,y\n1,1\n{word},0\n2.5,1\n"), &options(), None).unwrap();
        assert_eq!(source.schema().columns[0].kind, ColumnKind::Numeric, "{word}");
        assert_eq!(read(&source).unwrap()[1].entries, [(key("a", "missing"), 1.0)], "{word}");
        assert_eq!(source.notices().len(), 1, "the label alone: {:?}", source.notices());
    }
}

#[test]
fn the_kind_of_a_column_is_that_of_most_values_and_a_mixture_is_told() {
    let source = open("code,y\n1,1\nx,0\nz,1\n", &options(), None).unwrap();
    assert_eq!(source.schema().columns[0].kind, ColumnKind::Text);
    let told = "'code' as names (2 of the first 3 values are not numbers, for example 'x')";
    assert!(source.notices()[1].contains(told), "{:?}", source.notices());
    let source = open("code,y\n1,1\n2,0\nx,1\n", &options(), None).unwrap();
    assert_eq!(source.schema().columns[0].kind, ColumnKind::Numeric);
    assert!(
        source.notices()[1].contains("'code' as numbers (2 of the first 3 values are numbers, 'x' is not)"),
        "{:?}",
        source.notices()
    );
    let error = read_to_error(&source);
    assert!(error.contains("t.csv:4:1") && error.contains("--text-columns code"), "{error}");
}

#[test]
fn a_first_row_of_data_is_no_header() {
    for (text, named) in [
        // 'y' is a value, because the row has a number over numbers.
        ("5,y,1\n6,n,0\n7,y,1\n", false),
        // The letters occur again in the rows below, as in a table of mushrooms.
        ("p,y,n\ne,n,y\np,n,n\n", false),
        ("shape,odor,y\nx,n,p\nb,y,e\n", true),
        // Columns without names, as pandas writes them, and one with a name.
        ("0,1,label\n5.5,6,1\n7,8,0\n", true),
        (",a,y\n0,5,1\n1,6,0\n", true),
    ] {
        let options = FormatOptions { label_rule: LabelRule::Class, ..options() };
        assert_eq!(open(text, &options, None).unwrap().schema().named, named, "{text}");
    }
    let error =
        error_of("color,y\nred,y\nblue,n\n", &FormatOptions { label_rule: LabelRule::Class, ..options() });
    assert!(error.contains("'y' is the name of a label") && error.contains("--header"), "{error}");
    let error = error_of("2019,rain,2020\n1,2,3\n4,5,6\n", &options());
    assert!(error.contains("'2019' and 'rain'") && error.contains("--header"), "{error}");
}

#[test]
fn a_first_column_without_a_name_is_left_out() {
    let source = open(",a,y\n0,5,1\n1,6,0\n", &options(), None).unwrap();
    assert_eq!(names(&source), ["a"]);
    assert!(source.notices()[0].contains("no name in the header"), "{:?}", source.notices());
    let later = open("a,y\n7,1\n", &options(), Some(source.schema())).unwrap();
    assert_eq!(read(&later).unwrap(), [Row::new(Some(1.0), &[(0, 7.0)])]);
    let later = open(",y,a\n9,1,7\n", &options(), Some(source.schema())).unwrap();
    assert_eq!(read(&later).unwrap(), [Row::new(Some(1.0), &[(0, 7.0)])]);
}

const MULTI_LINE: &str = "text,size,y\n\"a\nb\",1,1\nplain,2,0\n\"c, \"\"d\"\"\r\n\n\",3,1\n";

#[test]
fn line_breaks_inside_quotes_are_read_by_any_number_of_tasks() {
    let expected = [
        Row::new(Some(1.0), &[(key("text", "a\nb"), 1.0), (1, 1.0)]),
        Row::new(Some(0.0), &[(key("text", "plain"), 1.0), (1, 2.0)]),
        Row::new(Some(1.0), &[(key("text", "c, \"d\"\r\n\n"), 1.0), (1, 3.0)]),
    ];
    for text in [MULTI_LINE, MULTI_LINE.trim_end()] {
        let source = open(text, &options(), None).unwrap();
        for task_count in [1, 2, 5] {
            let mut all = Vec::new();
            for splits in source.splits(task_count) {
                let mut reader = source.reader(splits).unwrap();
                let mut batch = Batch::default();
                while reader.next_batch(2, &mut batch).unwrap() {
                    all.extend(rows_of(&batch));
                }
            }
            assert_eq!(all, expected, "{task_count} tasks");
        }
    }
}

#[test]
fn the_header_and_text_labels_may_have_line_breaks() {
    let source = open("\"the\ntext\",y\n\"a\nb\",\"no\nno\"\nc,yes\n", &classes(), None).unwrap();
    assert_eq!(names(&source), ["the\ntext"]);
    assert_eq!(source.schema().label_names, ["no\nno", "yes"]);
    assert_eq!(read(&source).unwrap().len(), 2);
}

#[test]
fn a_bad_record_behind_line_breaks_is_named_by_its_line() {
    let text = format!("{MULTI_LINE}\"e\nf\",x,1\n");
    let error = read_to_error(&open(&text, &options(), None).unwrap());
    assert!(error.starts_with("t.csv:9:4: expected a number in column 'size'"), "{error}");
}

#[test]
fn a_quote_that_is_not_closed_is_one_bad_line() {
    let text = format!("{MULTI_LINE}\"open,4,1\nlast,5,0\n");
    let files = vec![Input::memory("t.csv", text.as_bytes()).unwrap()];
    let config = SourceConfig {
        format: Some("csv".into()),
        bad_lines: BadLinePolicy::Skip { limit: 1 },
        ..SourceConfig::default()
    };
    let source = Source::from_inputs(files, &config, None, &FormatTable::builtin()).unwrap();
    let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
    let mut batch = Batch::default();
    reader.next_batch(10, &mut batch).unwrap();
    assert_eq!(batch.record_count(), 4);
    assert!(reader.summary().bad_lines[0].starts_with("t.csv:8:1: expected a closing quote"));
}

#[test]
fn backslashes_before_quotes_are_read_as_spark_writes_them() {
    let text = "text,y\n\"say \\\"hi\\\", \\\\ all\",1\n\"a \\\"\",0\nb\\c,1\n";
    let rows = read(&open(text, &options(), None).unwrap()).unwrap();
    let texts: Vec<u64> = rows.iter().map(|row| row.entries[0].0).collect();
    assert_eq!(texts, [key("text", "say \"hi\", \\ all"), key("text", "a \""), key("text", "b\\c")]);
    // Without such a quote a backslash is an ordinary character.
    let rows = read(&open("path,y\n\"C:\\\",1\n", &options(), None).unwrap()).unwrap();
    assert_eq!(rows[0].entries[0].0, key("path", "C:\\"));
}

#[test]
fn the_header_again_in_mid_file_is_an_error() {
    for (text, place) in
        [("a,b,y\n1,2,1\na,b,y\n3,4,0\n", "t.csv:3:1"), ("c,y\nx,no\nz,yes\nc,y\n", "t.csv:4:1")]
    {
        let source = open(text, &classes(), None).unwrap();
        assert!(!source.schema().label_names.iter().any(|name| name == "y"), "it is no label");
        let error = read_to_error(&source);
        assert!(error.starts_with(place) && error.contains("repeats the header"), "{error}");
    }
}

#[test]
fn another_header_in_another_file_is_named_with_its_line() {
    let files = ["a,b,y\n1,2,1\n", "b,a,y\n3,4,0\n"].map(|text| Input::memory("t", text.as_bytes()).unwrap());
    let config = SourceConfig { format: Some("csv".into()), ..SourceConfig::default() };
    let source = Source::from_inputs(files.to_vec(), &config, None, &FormatTable::builtin()).unwrap();
    let error = read(&source).unwrap_err().to_string();
    assert!(error.starts_with("t:1: ") && error.contains("its header is 'b,a,y'"), "{error}");
}

#[test]
fn a_file_that_becomes_shorter_while_it_is_read_is_an_error() {
    for task_count in [1, 2, 3] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all("a,y\n".as_bytes()).unwrap();
        file.write_all("1,0\n2,1\n".repeat(1000).as_bytes()).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let config =
            SourceConfig { inputs: vec![path], format: Some("csv".into()), ..SourceConfig::default() };
        let source = Source::open(&config, &FormatTable::builtin()).unwrap();
        file.as_file().set_len(4 + 8 * 500 + 2).unwrap();
        let read = || {
            for splits in source.splits(task_count) {
                let mut reader = source.reader(splits)?;
                let mut batch = Batch::default();
                while reader.next_batch(100, &mut batch)? {}
            }
            Ok::<_, Error>(())
        };
        let error = read().unwrap_err();
        match &error {
            Error::FileTruncated { line, opened_bytes, ends_at, .. } => {
                assert_eq!((*opened_bytes, *ends_at), (8004, 4006));
                assert!(task_count > 1 || *line == 1002, "{error}");
            }
            Error::BadLine(_) => assert!(task_count > 1, "{error}"),
            _ => panic!("{error}"),
        }
        // A task that begins behind the new end says where that is.
        if task_count == 3 {
            let mut reader = source.reader(source.splits(3).remove(2)).unwrap();
            let error = reader.next_batch(100, &mut Batch::default()).unwrap_err();
            assert!(matches!(error, Error::FileTruncated { ends_at: 4006, .. }), "{error}");
        }
    }
}

#[test]
fn numbers_without_a_header_have_their_label_last_in_csv_and_first_in_dense() {
    assert_eq!(rows("csv", &options(), "1,2,3\n").unwrap()[0].label, 3.0);
    assert_eq!(rows("dense", &options(), "1,2,3\n").unwrap()[0].label, 1.0);
}

#[test]
fn the_schema_says_how_the_file_is_to_be_read_again() {
    let all = FormatOptions { group: Some("g".into()), skip_columns: vec!["z".into()], ..binary() };
    let source = open("g;z;x;t;label\n1;2;3;\"a\nb\";1\n2;3;4;c;0\n", &all, None).unwrap();
    let schema = source.schema();
    assert_eq!((schema.group.as_deref(), &schema.skip_columns[..]), (Some("g"), &["z".to_owned()][..]));
    assert_eq!((schema.delimiter, schema.named), (Some(b';'), true));
    assert_eq!((schema.multi_line, schema.backslash, schema.mark_missing), (true, false, true));
    let source = open("x,name,label\n1,\"a \\\" b\",1\n2,c,0\n", &binary(), None).unwrap();
    let schema = source.schema();
    assert_eq!((schema.delimiter, schema.multi_line, schema.backslash), (Some(b','), false, true));
}

#[test]
fn a_file_for_validation_may_lack_the_header() {
    let source = open("x,z,label\n5,2,1\n6,3,0\n", &binary(), None).unwrap();
    let later = open("7,1,1\n8,2,0\n", &binary(), Some(source.schema())).unwrap();
    assert_eq!(names(&later), ["x", "z"]);
    assert_eq!(later.notices().len(), 1, "{:?}", later.notices());
    let rows = [Row::new(Some(1.0), &[(0, 7.0), (1, 1.0)]), Row::new(Some(0.0), &[(0, 8.0), (1, 2.0)])];
    assert_eq!(read(&later).unwrap(), rows);
}
