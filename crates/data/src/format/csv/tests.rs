use crate::format::testing::{Row, options, rows, rows_of};
use crate::input::Input;
use crate::options::FormatOptions;
use crate::{Batch, ColumnKind, Error, FormatTable, InputPurpose, LabelRule, Schema, Source, SourceConfig};
use math::hash::named_key;

fn config(options: &FormatOptions) -> SourceConfig {
    SourceConfig { format: Some("csv".into()), options: options.clone(), ..SourceConfig::default() }
}

pub(super) fn open(text: &str, options: &FormatOptions, like: Option<&Schema>) -> Result<Source, Error> {
    let files = vec![Input::memory("t.csv", text.as_bytes()).unwrap()];
    Source::from_inputs(files, &config(options), like, &FormatTable::builtin())
}

pub(super) fn read(source: &Source) -> Result<Vec<Row>, Error> {
    let mut reader = source.reader(source.splits(1).remove(0))?;
    let mut batch = Batch::default();
    reader.next_batch(1000, &mut batch)?;
    Ok(rows_of(&batch))
}

/// Reads to the end and returns the error.
pub(super) fn read_to_error(source: &Source) -> String {
    let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
    let mut batch = Batch::default();
    loop {
        match reader.next_batch(1000, &mut batch) {
            Ok(true) => {}
            Ok(false) => panic!("no error"),
            Err(error) => return error.to_string(),
        }
    }
}

pub(super) fn classes() -> FormatOptions {
    FormatOptions { label_rule: LabelRule::Class, ..FormatOptions::default() }
}

pub(super) fn key(column: &str, value: &str) -> u64 {
    named_key(column.as_bytes(), value.as_bytes())
}

#[test]
fn a_header_gives_names_and_the_label() {
    let source = open("a,label,b\n1.5,1,3\n0,0,4\n", &options(), None).unwrap();
    let schema = source.schema();
    assert_eq!(schema.label.as_deref(), Some("label"));
    assert_eq!(schema.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        read(&source).unwrap(),
        [Row::new(Some(1.0), &[(0, 1.5), (1, 3.0)]), Row::new(Some(0.0), &[(1, 4.0)])]
    );
}

#[test]
fn a_row_with_the_names_of_id_columns_is_a_header_over_words_too() {
    let ids = |names: [&str; 2]| FormatOptions {
        id_columns: names.map(str::to_owned).to_vec(),
        uses_labels: false,
        ..options()
    };
    let text = "user,item\nann,a\nbob,b\nann,b\n";
    let source = open(text, &ids(["user", "item"]), None).unwrap();
    assert!(source.schema().named);
    assert!(!open(text, &ids(["0", "1"]), None).unwrap().schema().named);
}

#[test]
fn without_a_header_the_last_column_is_the_label() {
    let source = open("1.5;3;1\n0;4;0\n", &options(), None).unwrap();
    assert!(!source.schema().named);
    assert_eq!(read(&source).unwrap()[0], Row::new(Some(1.0), &[(0, 1.5), (1, 3.0)]));
    let chosen = FormatOptions { label: Some("0".into()), ..options() };
    assert_eq!(rows("csv", &chosen, "1.5;3;1\n").unwrap()[0], Row::new(Some(1.5), &[(0, 3.0), (1, 1.0)]));
}

#[test]
fn text_columns_are_one_hot_with_a_dictionary() {
    let source = open("city,size,y\nRome,2,1\n\" New, \"\"York\"\"\",?,0\n", &options(), None).unwrap();
    assert_eq!(source.schema().columns[0].kind, ColumnKind::Text);
    let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
    let mut batch = Batch::default();
    assert!(reader.next_batch(10, &mut batch).unwrap());
    let rows = rows_of(&batch);
    assert_eq!(rows[0].entries, [(key("city", "Rome"), 1.0), (1, 2.0)]);
    let missing = (key("size", "missing"), 1.0);
    assert_eq!(rows[1].entries, [(key("city", " New, \"York\""), 1.0), missing]);
    assert_eq!(reader.take_dictionary().get(key("city", "Rome")), Some("city=Rome"));
}

#[test]
fn numbers_can_be_declared_names() {
    let options = FormatOptions { text_columns: vec!["zip".into()], ..options() };
    let rows = rows("csv", &options, "zip,y\n0815,1\n").unwrap();
    assert_eq!(rows[0].entries, [(key("zip", "0815"), 1.0)]);
}

#[test]
fn weight_group_and_left_out_columns_are_no_features() {
    let options = FormatOptions {
        weight: Some("w".into()),
        group: Some("g".into()),
        skip_columns: vec!["id".into()],
        ..options()
    };
    let rows = rows("csv", &options, "id,w,g,x,y\n7,2.5,12,1,1\n8,1,blue,1,0\n").unwrap();
    assert_eq!((rows[0].weight, rows[0].group), (2.5, Some(12)));
    assert_eq!(rows[1].group, Some(key("g", "blue")));
    assert_eq!(rows[0].entries, [(0, 1.0)]);
}

#[test]
fn text_labels_become_class_numbers_by_name() {
    let source = open("x,y\n1,>50K\n2,<=50K\n3,>50K\n", &classes(), None).unwrap();
    assert_eq!(source.schema().label_names, ["<=50K", ">50K"]);
    let labels: Vec<f64> = read(&source).unwrap().iter().map(|row| row.label).collect();
    assert_eq!(labels, [1.0, 0.0, 1.0]);
    let like = open("y,x\n<=50k,1\n", &classes(), Some(source.schema())).unwrap();
    let error = read(&like).unwrap_err().to_string();
    assert!(error.contains("did you mean '<=50K'"), "{error}");
    assert!(open("x,y\n1,a\n", &options(), None).is_err(), "least squares need numbers");
}

#[test]
fn later_inputs_find_their_columns_by_name() {
    let train = open("a,b,c,y\n1,2,x,0\n", &options(), None).unwrap();
    let schema = train.schema();
    let same = open("c,y,b,a\n5,1,20,10\n", &options(), Some(schema)).unwrap();
    assert_eq!(read(&same).unwrap()[0].entries, [(key("c", "5"), 1.0), (1, 20.0), (0, 10.0)]);
    for (text, words) in [
        ("a,b,c,d,y\n1,2,x,3,0\n", "'d' was not in the training data"),
        ("a,c,y\n1,x,0\n", "missing: b"),
        ("a,b,c\n1,2,x\n", "no column 'y'"),
    ] {
        let error = open(text, &options(), Some(schema)).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn prediction_may_do_without_the_label_column() {
    let no_label = FormatOptions { has_label: false, ..options() };
    let named = open("y,a,b\n1,2,3\n", &options(), None).unwrap();
    for text in ["a,b\n2,3\n", "b,y,a\n3,1,2\n"] {
        let mut rows = read(&open(text, &no_label, Some(named.schema())).unwrap()).unwrap();
        rows[0].entries.sort_by_key(|entry| entry.0);
        assert_eq!(rows[0], Row::new(None, &[(0, 2.0), (1, 3.0)]), "{text}");
    }
    let chosen = FormatOptions { label: Some("0".into()), ..options() };
    let unnamed = open("1,2,3\n0,2,3\n", &chosen, None).unwrap();
    for text in ["2,3\n", "1,2,3\n"] {
        let rows = read(&open(text, &no_label, Some(unnamed.schema())).unwrap()).unwrap();
        assert_eq!(rows[0], Row::new(None, &[(0, 2.0), (1, 3.0)]), "{text}");
    }
}

#[test]
fn bad_rows_say_where_and_what() {
    for (text, place, words) in [
        ("a,b,y\n1,2,1\n1,2\n", "t.csv:3:4", "expected 3 fields, as in the first row, found 2 fields"),
        ("a,b,y\n1,2,1\n1,2,3,4\n", "t.csv:3:8", "found 4 fields"),
        ("a,b,y\n1,2,1\n1,x,1\n", "t.csv:3:3", ""),
        ("a,b,y\n1,2,1\n1,\"2,1\n", "t.csv:3:3", "closing quote on the same line"),
        ("a,b,y\n1,2,1\n1,\"2\"3,1\n", "t.csv:3:6", "after a closing quote"),
        ("a,b,y\n1,2,1\n1,inf,1\n", "t.csv:3:3", "finite"),
        ("a,b,y\n1,2,1\n1,2,\n", "t.csv:3:5", "label"),
    ] {
        let mut long = text.to_owned();
        if words.is_empty() {
            // The bad value is behind the rows that decide the type of the column.
            let (header, rest) = text.split_once('\n').unwrap();
            long = format!("{header}\n{}{rest}", "1,2,1\n".repeat(1100));
        }
        let error = read_to_error(&open(&long, &options(), None).unwrap());
        if words.is_empty() {
            assert!(error.contains("t.csv:1103:3") && error.contains("--text-columns b"), "{error}");
        } else {
            assert!(error.contains(place) && error.contains(words), "{text}: {error}");
        }
    }
}

#[test]
fn twins_blank_first_lines_and_unknown_columns_are_refused() {
    for text in ["a,a,y\n1,2,3\n", "\na,b,y\n1,2,3\n"] {
        assert!(matches!(open(text, &options(), None), Err(Error::BadFile { .. })), "{text}");
    }
    let options = FormatOptions { label: Some("lable".into()), header: Some(true), ..options() };
    let error = open("a,label\n1,2\n", &options, None).err().unwrap().to_string();
    assert!(error.contains("did you mean 'label'"), "{error}");
}

#[test]
fn all_files_of_an_input_have_the_same_header() {
    let files =
        ["a,b,y\n1,2,1\n", "a,b,y\r\n3,4,0\r\n"].map(|text| Input::memory("t", text.as_bytes()).unwrap());
    let source =
        Source::from_inputs(files.to_vec(), &config(&options()), None, &FormatTable::builtin()).unwrap();
    assert_eq!(read(&source).unwrap().len(), 2);
    let files = ["a,b,y\n1,2,1\n", "b,a,y\n3,4,0\n"].map(|text| Input::memory("t", text.as_bytes()).unwrap());
    let source =
        Source::from_inputs(files.to_vec(), &config(&options()), None, &FormatTable::builtin()).unwrap();
    assert!(matches!(read(&source), Err(Error::SchemaDiffers { .. })));
}

#[test]
fn files_without_rows_have_no_records() {
    for text in ["", "\n\r\n", "a,b,y\n"] {
        assert!(rows("csv", &options(), text).unwrap().is_empty(), "{text:?}");
    }
}

#[test]
fn entries_have_the_field_of_their_column_on_request() {
    let mut options = options();
    options.uses_fields = true;
    options.interactions = vec![vec!["color".into(), "size".into()]];
    let text = "label,color,size,age\n1,red,2,7\n0,blue,,0\n1,,3,1\n";
    let fields: Vec<_> =
        rows("csv", &options, text).unwrap().into_iter().map(|row| (row.entries.len(), row.fields)).collect();
    // The age 0 and the missing color have no entries; the missing size is a feature of its own.
    assert_eq!(fields, [(4, vec![0, 1, 2, 3]), (2, vec![0, 1]), (2, vec![1, 2])]);
    options.uses_fields = false;
    assert!(rows("csv", &options, text).unwrap().iter().all(|row| row.fields.is_empty()));
}

fn entries_of(pairs: &[(&str, f32)]) -> Vec<(u64, f32)> {
    let mut entries: Vec<_> = pairs.iter().map(|(token, value)| (key("title", token), *value)).collect();
    entries.sort_by_key(|entry| entry.0);
    entries
}

#[test]
fn a_column_of_tokens_has_a_feature_for_each_distinct_one_with_its_count() {
    let options = FormatOptions { token_columns: vec!["title".into()], ..options() };
    let source = open("size,title,y\n2,to be or  to,1\n3,7 7,0\n4,,0\n", &options, None).unwrap();
    assert_eq!(source.schema().columns[1].kind, ColumnKind::Tokens);
    let rows = read(&source).unwrap();
    assert_eq!(rows[0].entries[0], (0, 2.0));
    assert_eq!(rows[0].entries[1..], entries_of(&[("to", 2.0), ("be", 1.0), ("or", 1.0)]));
    assert_eq!(rows[1].entries[1..], [(key("title", "7"), 2.0)]);
    assert_eq!(rows[2].entries, [(0, 4.0)]);
    // A later file is read with the schema alone.
    let again = open("y,title,size\n1,be be,5\n", &FormatOptions::default(), Some(source.schema())).unwrap();
    assert_eq!(read(&again).unwrap()[0].entries, [(key("title", "be"), 2.0), (0, 5.0)]);
}

#[test]
fn a_tokenizer_of_the_training_reads_later_files_and_needs_texts() {
    let tokenizer = Some(crate::Tokenizer::English);
    let options = FormatOptions { token_columns: vec!["title".into()], tokenizer, ..options() };
    let source = open("title,y\nThe Cat!,1\n", &options, None).unwrap();
    assert_eq!(read(&source).unwrap()[0].entries, [(key("title", "cat"), 1.0)]);
    let again = open("title,y\na CAT is,1\n", &FormatOptions::default(), Some(source.schema())).unwrap();
    assert_eq!(read(&again).unwrap()[0].entries, [(key("title", "cat"), 1.0)]);
    let options = FormatOptions { token_columns: Vec::new(), ..options };
    let error = open("title,y\nThe Cat!,1\n", &options, None).err().unwrap().to_string();
    assert!(error.contains("tokenizer") && error.contains("csv has no texts"), "{error}");
}

#[test]
fn tokens_keep_their_order_for_an_algorithm_that_reads_sequences() {
    let options = FormatOptions {
        token_columns: vec!["title".into()],
        keeps_token_order: true,
        uses_fields: true,
        ..options()
    };
    let rows = rows("csv", &options, "title,size,y\nto be or to,2,1\n").unwrap();
    let tokens: Vec<_> = rows[0].entries.iter().map(|entry| entry.0).collect();
    assert_eq!(tokens, [key("title", "to"), key("title", "be"), key("title", "or"), key("title", "to"), 1]);
    assert_eq!(rows[0].fields, [0, 0, 0, 0, 1]);
}

#[test]
fn times_are_numbers_or_dates_and_no_features() {
    let options = FormatOptions { time: Some("at".into()), ..options() };
    let source = open("at,x,y\n1970-01-02,1,1\n12.5,2,0\n", &options, None).unwrap();
    assert_eq!(source.schema().time.as_deref(), Some("at"));
    let rows = read(&source).unwrap();
    assert_eq!((rows[0].time, rows[1].time), (Some(86_400.0), Some(12.5)));
    assert_eq!(rows[0].entries, [(0, 1.0)]);
    let error = self::rows("csv", &options, "at,x,y\n1,1,1\nnoon,2,0\n").unwrap_err().to_string();
    assert!(
        error.contains(":3:1") && error.contains("a time in column 'at'") && error.contains("noon"),
        "{error}"
    );
    // Data to predict on are read without the times of training, whether they have them or not.
    let scoring =
        FormatOptions { purpose: InputPurpose::Prediction, has_label: false, ..FormatOptions::default() };
    for text in ["at,x\nnever,1\n", "x\n1\n"] {
        let rows = read(&open(text, &scoring, Some(source.schema())).unwrap()).unwrap();
        assert_eq!((rows[0].time, &rows[0].entries[..]), (None, &[(0, 1.0)][..]), "{text}");
    }
}

#[test]
fn a_column_has_one_role() {
    let named = |column: &str| vec![column.to_owned()];
    let cases = [
        FormatOptions { time: Some("x".into()), label: Some("x".into()), ..options() },
        FormatOptions { time: Some("x".into()), weight: Some("x".into()), ..options() },
        FormatOptions { token_columns: named("x"), label: Some("x".into()), ..options() },
        FormatOptions { token_columns: named("x"), skip_columns: named("x"), ..options() },
    ];
    for options in cases {
        let error = rows("csv", &options, "x,z,y\n1,2,1\n").unwrap_err().to_string();
        assert!(error.contains("'x'"), "{error}");
    }
    let tokens = FormatOptions { token_columns: named("title"), ..options() };
    let error = rows("csv", &tokens, "x,titel,y\n1,2,1\n").unwrap_err().to_string();
    assert!(error.contains("did you mean 'titel'") || error.contains("titel"), "{error}");
    let interactions = vec![vec!["x".to_owned(), "z".to_owned()]];
    let product = FormatOptions { token_columns: named("x"), interactions, ..options() };
    let error = rows("csv", &product, "x,z,y\n1,2,1\n").unwrap_err().to_string();
    assert!(error.contains("tokens"), "{error}");
}
