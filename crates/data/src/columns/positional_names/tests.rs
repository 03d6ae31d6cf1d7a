//! Tests of `positional_names.rs`.

use crate::Source;
use crate::format::testing::{Row, options, rows_of};
use crate::input::Input;
use crate::options::{FormatOptions, InputPurpose};
use crate::{Batch, Error, FormatTable, Schema, SourceConfig};

fn open(text: &str, options: &FormatOptions, like: Option<&Schema>) -> Result<Source, Error> {
    let config =
        SourceConfig { format: Some("csv".into()), options: options.clone(), ..SourceConfig::default() };
    Source::from_inputs(
        vec![Input::memory("t.csv", text.as_bytes()).unwrap()],
        &config,
        like,
        &FormatTable::builtin(),
    )
}

fn read(source: &Source) -> (Vec<Row>, Vec<String>) {
    let mut reader = source.reader(source.splits(1).remove(0)).unwrap();
    let mut batch = Batch::default();
    reader.next_batch(100, &mut batch).unwrap();
    let rows = rows_of(&batch);
    (rows, source.notices().to_vec())
}

fn scoring(has_label: bool) -> FormatOptions {
    FormatOptions { has_label, purpose: InputPurpose::Prediction, ..options() }
}

/// Columns a, w (weight), label, b.
fn trained() -> Schema {
    let asked = FormatOptions { weight: Some("w".into()), ..options() };
    open("a,w,label,b\n2,9,1,3\n4,9,0,5\n", &asked, None).unwrap().schema().clone()
}

#[test]
fn a_file_without_header_is_read_in_the_order_of_training() {
    let schema = trained();
    for (text, has_label) in [
        ("2,7,1,3\n4,7,0,5\n", true),
        ("2,1,3\n4,0,5\n", true),
        ("2,7,1,3\n4,7,0,5\n", false),
        ("2,3\n4,5\n", false),
    ] {
        let (rows, notices) = read(&open(text, &scoring(has_label), Some(&schema)).unwrap());
        let entries: Vec<_> = rows.iter().map(|row| row.entries.clone()).collect();
        assert_eq!(entries, [[(0, 2.0), (1, 3.0)], [(0, 4.0), (1, 5.0)]], "{text}");
        assert!(notices.iter().any(|notice| notice.contains("order of training")), "{notices:?}");
        assert!(rows.iter().all(|row| row.weight == 1.0), "weights are not looked at");
    }
}

#[test]
fn a_number_of_columns_that_fits_in_no_way_or_in_several_is_refused() {
    let schema = trained();
    for (text, has_label, words) in [
        (
            "2\n4\n",
            false,
            "training had 4: a, w, label, b; its rows were cut at the delimiter of training, ','",
        ),
        ("2\t1\t3\n4\t0\t5\n", true, "if it has another one, set --delimiter"),
        ("2,1,3,4,5\n4,0,5,6,7\n", true, "it has 5 columns"),
        ("2,1,3\n4,0,5\n", false, "not clear which"),
    ] {
        let error = open(text, &scoring(has_label), Some(&schema)).err().unwrap().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_header_that_training_did_not_have_is_passed_over_with_a_notice() {
    let asked = FormatOptions { label: Some("0".into()), ..options() };
    let schema = open("1,2,3\n0,4,5\n", &asked, None).unwrap().schema().clone();
    let (rows, notices) = read(&open("y,a,b\n1,2,3\n", &scoring(true), Some(&schema)).unwrap());
    assert_eq!(rows, [Row::new(Some(1.0), &[(0, 2.0), (1, 3.0)])]);
    assert!(notices[0].contains("its header is not used"), "{notices:?}");
    let (rows, _) = read(&open("a,b\n2,3\n", &scoring(false), Some(&schema)).unwrap());
    assert_eq!(rows[0].entries, [(0, 2.0), (1, 3.0)]);
}

#[test]
fn weights_and_groups_of_training_may_be_absent_where_they_are_not_needed() {
    let schema = trained();
    let (rows, notices) = read(&open("b,label,a\n3,1,2\n", &scoring(true), Some(&schema)).unwrap());
    assert_eq!((rows[0].weight, notices.len()), (1.0, 0));
    let evaluation = FormatOptions { purpose: InputPurpose::Evaluation, ..options() };
    let (rows, notices) = read(&open("b,label,a\n3,1,2\n", &evaluation, Some(&schema)).unwrap());
    assert_eq!(rows[0].weight, 1.0);
    assert!(notices[0].contains("'w'"), "{notices:?}");
    let (rows, notices) = read(&open("b,label,a,w\n3,1,2,7\n", &evaluation, Some(&schema)).unwrap());
    assert_eq!((rows[0].weight, notices.len()), (7.0, 0), "they count when they are there");
    assert!(open("b,label,a\n3,1,2\n", &options(), Some(&schema)).is_err(), "validation needs them");
}

#[test]
fn passthrough_columns_stand_between_those_of_training() {
    let schema = trained();
    let kept = |column: &str| FormatOptions { keep_columns: vec![column.into()], ..scoring(false) };
    let source = open("7,2,3\n8,4,5\n", &kept("0"), Some(&schema)).unwrap();
    let (rows, notices) = read(&source);
    assert_eq!(rows[1].entries, [(0, 4.0), (1, 5.0)]);
    assert!(notices[0].ends_with("the order of training: a, b"), "{notices:?}");
    assert_eq!(source.passthrough_columns()[0].name, "0");
    let source = open("2,9,7,3\n4,9,8,5\n", &kept("2"), Some(&schema)).unwrap();
    assert_eq!(read(&source).0[1].entries, [(0, 4.0), (1, 5.0)], "a, w, label, b: it may be the label");
}

#[test]
fn schemas_of_older_versions_have_the_order_of_their_positions_or_of_their_features() {
    let numbered = FormatOptions { label: Some("1".into()), weight: Some("0".into()), ..options() };
    let mut schema = open("1,1,2,3\n1,0,4,5\n", &numbered, None).unwrap().schema().clone();
    let order = std::mem::take(&mut schema.order);
    assert_eq!(super::order_of(&schema), order);
    assert_eq!(order, ["0", "1", "2", "3"]);
    let (rows, _) = read(&open("2,3\n4,5\n", &scoring(false), Some(&schema)).unwrap());
    assert_eq!(rows[1].entries, [(0, 4.0), (1, 5.0)]);
    let mut schema = trained();
    schema.order.clear();
    assert_eq!(super::order_of(&schema), ["a", "b"]);
}

#[test]
fn many_columns_that_may_be_absent_are_absent_together_or_not_at_all() {
    let names: Vec<String> = (0..14).map(|at| format!("skipped{at}")).collect();
    let skipping = FormatOptions { skip_columns: names.clone(), ..options() };
    let header = format!("a,{},label", names.join(","));
    let schema =
        open(&format!("{header}\n1,{}1\n", "5,".repeat(14)), &skipping, None).unwrap().schema().clone();
    for (count, expected) in [
        (0, None),
        (14, None),
        (1, Some("not clear which")),
        (13, Some("not clear which")),
        (20, Some("training had 16")),
    ] {
        let text = format!("3,{}1\n", "5,".repeat(count));
        match (open(&text, &scoring(true), Some(&schema)), expected) {
            (Ok(source), None) => assert_eq!(read(&source).0[0].entries, [(0, 3.0)], "{count} columns"),
            (Err(error), Some(words)) => {
                assert!(error.to_string().contains(words), "{count} columns: {error}");
            }
            (found, _) => panic!("{count} columns: {:?}", found.err()),
        }
    }
}
