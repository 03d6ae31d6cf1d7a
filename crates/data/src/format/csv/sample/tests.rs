//! Tests of `sample.rs`.

use super::*;

#[test]
fn delimiters_are_counted_outside_quotes() {
    assert_eq!(delimiter_of(b"\"a;b;c;d\",x"), Some(b','));
    assert_eq!(delimiter_of(b"a;\"b,c,d\";e"), Some(b';'));
    assert_eq!(delimiter_of(b"a|b,c"), Some(b','), "the first among equals");
    assert_eq!(delimiter_of(b"a\tb\tc,d"), Some(b'\t'));
    assert_eq!(delimiter_of(b"a,b|c|d"), Some(b'|'));
    assert_eq!(delimiter_of(b"\"a,b\""), None);
}

#[test]
fn rows_are_alike_when_more_than_half_have_the_fields_of_the_first() {
    for (text, expected) in [
        ("a,b\n1,2\n", true),
        ("\u{feff}a,b\n\n1,2\n\n", true),
        ("a,b\n1,2\n3\n", true),
        ("a,b\n1,2\n3\n4\n", false),
        ("a,b\n1\n2\n", false),
        ("one field\nanother\n", false),
        ("", false),
        ("\"not closed,a\n1,2\n3,4\n", false),
        // The lines of these rows are not alike, but the rows are.
        ("1,\"a\nb\nc\nd\"\n2,\"e\nf\ng\nh\"\n", true),
    ] {
        assert_eq!(looks_like_rows(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn a_row_that_the_first_bytes_cut_off_is_not_compared() {
    // The last row would be the one that makes half of them unlike the first.
    let mut text = b"a,b\n1,2\n3\n".to_vec();
    text.resize(crate::input::HEAD_BYTES, b'4');
    assert!(looks_like_rows(&text));
    assert!(!looks_like_rows(&text[..crate::input::HEAD_BYTES - 1]), "the whole file");
}

#[test]
fn the_first_row_ends_behind_its_quotes() {
    assert_eq!(first_row(b" \n\n a,\"b\nc\"\nd\n"), Some(&b"a,\"b\nc\""[..]));
    assert_eq!(first_row(b"a,b"), Some(&b"a,b"[..]));
    assert_eq!(first_row(b" \n "), None);
    // A quote that is never closed is a character like others.
    assert_eq!(first_row(b"5\" pipe,1\n6,2\n"), Some(&b"5\" pipe,1"[..]));
    let far = [&b"a,\"b\n"[..], &vec![b'c'; FIRST_ROW_BYTES], b"\"\nd\n"].concat();
    assert_eq!(first_row(&far), Some(&b"a,\"b"[..]), "the quotes close too far away");
}
