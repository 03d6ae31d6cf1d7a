//! Tests of `libffm.rs`.

use crate::format::testing::{Row, bad, check, options, rows};

fn row(label: f64, entries: &[(u32, u64, f32)]) -> Row {
    let keys: Vec<_> = entries.iter().map(|&(_, key, value)| (key, value)).collect();
    Row { fields: entries.iter().map(|e| e.0).collect(), ..Row::new(Some(label), &keys) }
}

#[test]
fn a_field_that_the_model_does_not_have_is_refused_with_its_position() {
    let options = crate::FormatOptions { field_limit: Some(3), ..options() };
    bad("libffm", &options, &[("1 0:1:1 2:3:1 3:7:1", 15, "one of the 3 fields of the model")]);
}

#[test]
fn good_lines() {
    check(
        "libffm",
        &options(),
        &[
            ("1 0:5:0.5 3:7:1", row(1.0, &[(0, 5, 0.5), (3, 7, 1.0)])),
            ("-1  2:5\t1:5:2 # x", row(-1.0, &[(2, 5, 1.0), (1, 5, 2.0)])),
            ("0", row(0.0, &[])),
            ("0 1:1:0 2:2:1", row(0.0, &[(2, 2, 1.0)])),
        ],
    );
}

#[test]
fn bad_lines_say_where_and_what() {
    bad(
        "libffm",
        &options(),
        &[
            ("1 5", 3, "field:index"),
            ("1 4294967296:5:1", 3, "2^32"),
            ("1 1:9223372036854775808:1", 3, "2^63-1"),
            ("1 1:2:nan", 7, "finite"),
            ("1 1:2:", 7, "number"),
            ("1 1:2x", 6, "':' or a blank"),
            ("1 1:2:3:4", 8, "blank"),
            ("1 1:2:1 2:3:1 1:2:5", 15, "1:2 again"),
            ("x 1:2:1", 1, "label"),
        ],
    );
}

#[test]
fn blank_lines_are_no_records() {
    assert!(rows("libffm", &options(), "\n \n# x\n").unwrap().is_empty());
}
