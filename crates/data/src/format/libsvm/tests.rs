//! Tests of `libsvm.rs`.

use crate::format::testing::{Row, bad, check, options, rows};

fn row(label: f64, entries: &[(u64, f32)]) -> Row {
    Row::new(Some(label), entries)
}

#[test]
fn good_lines() {
    check(
        "libsvm",
        &options(),
        &[
            ("1 1:0.5 7:2", row(1.0, &[(1, 0.5), (7, 2.0)])),
            ("-1 0:1", row(-1.0, &[(0, 1.0)])),
            ("+1", row(1.0, &[])),
            ("3.5 \t 4:-1e-3   9:1\t", row(3.5, &[(4, -1e-3), (9, 1.0)])),
            ("0 5 8 13", row(0.0, &[(5, 1.0), (8, 1.0), (13, 1.0)])),
            ("1 9:1 2:1 # 3:1", row(1.0, &[(9, 1.0), (2, 1.0)])),
            ("1 9:1 2:1#x", row(1.0, &[(9, 1.0), (2, 1.0)])),
            ("1 qid:7 2:1", row(1.0, &[(2, 1.0)])),
            ("1 3:0 4:1", row(1.0, &[(4, 1.0)])),
            ("1 9223372036854775807:1", row(1.0, &[(u64::MAX >> 1, 1.0)])),
            ("1 12345678:1 123456789012:1", row(1.0, &[(12_345_678, 1.0), (123_456_789_012, 1.0)])),
        ],
    );
}

#[test]
fn bad_lines_say_where_and_what() {
    bad(
        "libsvm",
        &options(),
        &[
            ("1 9223372036854775808:1", 3, "2^63-1"),
            ("1 99999999999999999999999:1", 3, "2^63-1"),
            ("1 3:nan", 5, "finite"),
            ("1 3:inf", 5, "finite"),
            ("1 3:1e60", 5, "finite"),
            ("nan 3:1", 1, "finite"),
            ("1,2 3:1", 1, "one label"),
            ("1,2:1,3:1", 1, "not commas"),
            ("a 3:1", 1, "label"),
            ("3:1 4:1", 1, "label"),
            ("1 3:", 5, "number"),
            ("1 3:x", 5, "number"),
            ("1 3:1x", 6, "blank"),
            ("1 3:1:1", 6, "blank"),
            ("1 3;1", 4, "':' or a blank"),
            ("1 -3:1", 3, "index"),
            ("1 x:1", 3, "index"),
            ("1 7:1 3:1 7:2", 11, "7"),
            ("1 3:1 3:1", 7, "3"),
            ("1 qid:x 3:1", 3, "qid:N"),
        ],
    );
}

#[test]
fn blank_lines_and_comments_are_no_records() {
    assert_eq!(rows("libsvm", &options(), "\n  \t\r\n# 1 2:3\n   # x\n1 2:3\r\n\n").unwrap().len(), 1);
}

#[test]
fn qid_becomes_the_group_when_asked_for() {
    let mut options = options();
    options.group = Some("qid".into());
    assert_eq!(rows("libsvm", &options, "1 qid:7 2:1").unwrap()[0].group, Some(7));
    options.group = Some("column".into());
    assert!(rows("libsvm", &options, "").is_err());
}

#[test]
fn lines_without_labels_begin_with_entries() {
    let mut options = options();
    options.has_label = false;
    assert_eq!(rows("libsvm", &options, "3:1 5:2").unwrap()[0], Row::new(None, &[(3, 1.0), (5, 2.0)]));
    bad("libsvm", &options, &[("1 3:1 5:2", 1, "--no-label")]);
}

#[test]
fn a_record_of_zeros_is_refused_with_its_line_where_directions_are_compared() {
    let mut options = options();
    options.requires_entries = true;
    bad("libsvm", &options, &[("1 3:0 4:0", 1, "directions"), ("1", 1, "a feature that is not 0")]);
    let error = rows("libsvm", &options, "1 3:1\n\n1 3:0\n").unwrap_err().to_string();
    assert!(error.contains(":3:1"), "{error}");
    assert_eq!(rows("libsvm", &options, "1 3:1\n").unwrap().len(), 1);
}

#[test]
fn zeros_are_left_out_whatever_is_asked() {
    let mut options = options();
    options.keep_zeros = true;
    assert_eq!(rows("libsvm", &options, "1 3:0 5:2").unwrap()[0], row(1.0, &[(5, 2.0)]));
}
