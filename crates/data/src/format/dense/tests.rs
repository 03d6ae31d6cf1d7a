//! Tests of `dense.rs`.

use crate::format::testing::{Row, bad, check, options, rows};

/// The entry of a missing number of a column.
fn missing(column: &[u8]) -> (u64, f32) {
    (math::hash::named_key(column, b"missing"), 1.0)
}

fn row(label: f64, entries: &[(u64, f32)]) -> Row {
    Row::new(Some(label), entries)
}

#[test]
fn good_lines() {
    check(
        "dense",
        &options(),
        &[
            ("1 0.5 2", row(1.0, &[(0, 0.5), (1, 2.0)])),
            ("  1   0.5\t2 ", row(1.0, &[(0, 0.5), (1, 2.0)])),
            ("-1,0.5,,NA,3", row(-1.0, &[(0, 0.5), missing(b"2"), missing(b"3"), (3, 3.0)])),
            ("0\t0.5\t\t?\t3", row(0.0, &[(0, 0.5), missing(b"2"), missing(b"3"), (3, 3.0)])),
            ("1 0 7", row(1.0, &[(1, 7.0)])),
        ],
    );
}

#[test]
fn bad_lines_say_where_and_what() {
    bad(
        "dense",
        &options(),
        &[
            ("x 1 2", 1, "label"),
            ("NA 1 2", 1, "label"),
            ("1 x 2", 3, "number in column '1'"),
            ("1,2,inf", 5, "finite"),
        ],
    );
    let error = rows("dense", &options(), "1 2 3\n\n0 1\n").unwrap_err().to_string();
    assert!(
        error.contains("bytes:3:") && error.contains("3 fields") && error.contains("2 fields"),
        "{error}"
    );
}

#[test]
fn the_label_column_can_be_chosen() {
    let mut options = options();
    options.label = Some("2".into());
    assert_eq!(rows("dense", &options, "5 6 1").unwrap()[0], row(1.0, &[(0, 5.0), (1, 6.0)]));
    options.label = Some("3".into());
    assert!(rows("dense", &options, "5 6 1").unwrap_err().to_string().contains("no column '3'"));
}

#[test]
fn zeros_are_kept_on_request() {
    let mut options = options();
    options.keep_zeros = true;
    assert_eq!(rows("dense", &options, "1 0 7").unwrap()[0], row(1.0, &[(0, 0.0), (1, 7.0)]));
}

#[test]
fn a_file_of_blank_lines_has_no_records() {
    assert!(rows("dense", &options(), " \n\r\n").unwrap().is_empty());
    assert!(rows("dense", &options(), "").unwrap().is_empty());
}

#[test]
fn lines_of_numbers_are_recognized_whatever_is_between_them() {
    for (text, expected) in [
        ("1,2\n3,4\n", true),
        ("1  2 3\n 4 5   6 \n", true),
        ("1\t2\n3\t4\n", true),
        ("1, 2\n3 ,4\n", true),
        ("1,,2\n", true),
        ("1\n2\n", false),
        ("1,a\n2,b\n", false),
        ("1 1:2\n", false),
        ("", false),
    ] {
        assert_eq!(super::recognize(text.as_bytes()), expected, "{text:?}");
    }
}
