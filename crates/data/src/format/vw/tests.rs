//! Tests of `vw.rs`.

use super::*;
use crate::format::testing::{Row, bad, options, rows};
use crate::options::FormatOptions;

/// Returns the one record of a line, with its entries sorted by key.
fn parsed(line: &str) -> Row {
    let mut row = rows("vw", &options(), line).unwrap().remove(0);
    row.entries.sort_by_key(|entry| entry.0);
    row
}

fn row(label: f64, weight: f32, entries: &[(&str, &str, f32)]) -> Row {
    let mut keys: Vec<_> = entries
        .iter()
        .map(|(space, name, value)| (named_key(space.as_bytes(), name.as_bytes()), *value))
        .collect();
    keys.sort_by_key(|entry| entry.0);
    Row { weight, ..Row::new(Some(label), &keys) }
}

#[test]
fn good_lines() {
    for (line, expected) in [
        ("1 | a b:2", row(1.0, 1.0, &[("", "a", 1.0), ("", "b", 2.0)])),
        ("-1 2.5 'tag |n x |m:0.5 x:4", row(-1.0, 2.5, &[("n", "x", 1.0), ("m", "x", 2.0)])),
        ("1 1 0.5 tag| a", row(1.0, 1.0, &[("", "a", 1.0)])),
        ("0.25 |n", row(0.25, 1.0, &[])),
        ("1 | the cat the", row(1.0, 1.0, &[("", "the", 2.0), ("", "cat", 1.0)])),
        ("1 |n a:0 b", row(1.0, 1.0, &[("n", "b", 1.0)])),
        ("1 tag|f a:2", row(1.0, 1.0, &[("f", "a", 2.0)])),
        ("1 |n :2 b :3", row(1.0, 1.0, &[("n", "0", 2.0), ("n", "b", 1.0), ("n", "1", 3.0)])),
        ("1 |n:2 a:b c:d:e", row(1.0, 1.0, &[("n", "a:b", 2.0), ("n", "c:d:e", 2.0)])),
    ] {
        assert_eq!(parsed(line), expected, "{line}");
    }
}

#[test]
fn bad_lines_say_where_and_what() {
    bad(
        "vw",
        &options(),
        &[
            ("x | a", 1, "label"),
            ("nan | a", 1, "finite"),
            ("| a", 1, "label"),
            ("1 -1 | a", 3, "at least 0 (a negative one"),
            ("1 1 1 1 | a", 7, "at most"),
            ("1 a:2 b", 3, "'|' before the features"),
            ("1 | a:1x", 7, "number"),
            ("1 | a:-x", 7, "number"),
            ("1 | a:", 7, "number"),
            ("1 | a:3e38 a:3e38", 3, "finite"),
            ("1 | a:inf", 7, "finite"),
            ("1 | :x", 6, "number"),
            ("1 |n:x a", 6, "number"),
            ("1 |n:1e30 a:1e30", 11, "finite"),
        ],
    );
}

#[test]
fn names_are_kept_and_what_is_ignored_is_said() {
    let mut parser =
        Vw { has_label: true, skip_unlabelled: false, interactions: Interactions::default(), notice: None }
            .parser();
    parser.parse(b"1 1 0 'x |city Rome", &mut BatchBuilder::new()).unwrap();
    assert_eq!(parser.take_dictionary(), [(named_key(b"city", b"Rome"), "city^Rome")].into_iter().collect());
    assert_eq!(parser.notices().len(), 2);
}

#[test]
fn lines_without_a_label_are_left_out_among_lines_that_have_one() {
    let text = "| a\n1 |n b\n'tag |n c\n-1 |n d\n";
    let labels = |options: &FormatOptions, text| {
        Ok::<_, Error>(rows("vw", options, text)?.iter().map(|row| row.label).collect::<Vec<_>>())
    };
    assert_eq!(labels(&options(), text).unwrap(), [1.0, -1.0]);
    let every = FormatOptions { purpose: InputPurpose::Prediction, ..options() };
    assert!(labels(&every, text).unwrap_err().to_string().contains("a label and a blank before '|'"));
    let none = FormatOptions { has_label: false, ..options() };
    assert_eq!(labels(&none, text).unwrap().len(), 4, "labels are not looked at");
}

#[test]
fn fields_between_bars_are_not_taken_for_it() {
    for (text, expected) in [
        ("1 tag|f a:1 b\n-1 |f c\n", Confidence::Certain),
        ("1 first|f a:1\n", Confidence::Certain),
        ("1 1 0.5 t|f a b\n0 u|f c |g d e\n", Confidence::Certain),
        ("|f a b\n|f c d\n", Confidence::Possible),
        ("|f a:1 b\n|f c d\n", Confidence::Certain),
        ("'t|f a\n", Confidence::Certain),
        ("1 |\n", Confidence::Certain),
        ("5 apples|green tea|1\n6 pears|x y|0\n", Confidence::Possible),
        ("name|kind|y\n5 apples|green tea|1\n", Confidence::None),
        ("1|2|3\n4|5|6\n", Confidence::None),
        ("|a|b\n0|1|2\n", Confidence::None),
        ("New York|big city|1\n", Confidence::None),
        ("12:30|5|1\n12:40|6|0\n", Confidence::None),
    ] {
        assert_eq!(confidence(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn blank_lines_are_no_records() {
    assert!(rows("vw", &options(), "\n  \n").unwrap().is_empty());
}
