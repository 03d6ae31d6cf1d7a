//! Tests of `type_counts.rs`.

use super::*;

fn described(fields: &[&str], delimiter: u8) -> ColumnDescription {
    let mut counts = TypeCounts::default();
    for field in fields {
        counts.add(field.as_bytes());
    }
    counts.describe("c".to_owned(), delimiter)
}

#[test]
fn most_values_decide_the_type_of_a_column() {
    for (fields, is_numeric, told) in [
        (&[][..], true, None),
        (&["", "NA"], true, None),
        (&["1", "", "2.5"], true, None),
        (&["a", "b"], false, None),
        (&["1", "2", "x"], true, Some("'c' as numbers (2 of the first 3 values are numbers, 'x' is not)")),
        (
            &["1", "x", "y"],
            false,
            Some("'c' as names (2 of the first 3 values are not numbers, for example 'x')"),
        ),
        (&["1", "x"], false, Some("'c' as names (1 of the first 2 values are not numbers, for example 'x')")),
    ] {
        let found = described(fields, b',');
        assert_eq!(found.kind == ValueKind::Number, is_numeric, "{fields:?}");
        assert_eq!(found.told.as_deref(), told, "{fields:?}");
    }
}

#[test]
fn numbers_as_people_write_them_are_numbers_where_their_form_is_certain() {
    use NumberForm::{Boolean, Currency, DecimalComma, Duration, Percent, Thousands, Time, TimeOfDay};
    for (fields, delimiter, form) in [
        (&["1,25", "0,50", "3"][..], b';', Some(DecimalComma)),
        (&["1,200", "2,500", "300"], b',', Some(Thousands)),
        (&["1,200", "2,500"], b';', Some(DecimalComma)),
        (&["1,200", "2,500"], b'\t', None),
        (&["1,200", "2,500,000"], b'\t', Some(Thousands)),
        (&["1,200", "2,50"], b'\t', Some(DecimalComma)),
        (&["12%", "25%", "NA"], b',', Some(Percent)),
        (&["12%", "25"], b',', None),
        (&["$12", "$1,200.50"], b',', Some(Currency)),
        (&["True", "False"], b',', Some(Boolean)),
        (&["2026-01-31", "2026-02-01 08:15:00"], b',', Some(Time)),
        (&["08:15:00", "09:30:00"], b',', Some(TimeOfDay)),
        (&["0 days 00:00:01", "2 days"], b',', Some(Duration)),
        (&["2026-01-31", "soon"], b',', None),
        (&["5 kg", "7 kg"], b',', None),
    ] {
        let found = described(fields, delimiter);
        assert_eq!(found.kind == ValueKind::Number, form.is_some(), "{fields:?}");
        assert_eq!(found.form, form.unwrap_or_default(), "{fields:?}");
        let is_told = found.told.is_some_and(|told| told.contains(&format!("'{}'", fields[0])));
        assert_eq!(is_told, fields[1] != "soon", "{fields:?}");
    }
}

#[test]
fn digits_behind_a_zero_are_codes() {
    for (fields, is_number) in [
        (&["01220", "90210"][..], false),
        (&["0", "1"], true),
        (&["0.5", "00.5"], true),
        (&["01", "1.5"], true),
    ] {
        assert_eq!(described(fields, b',').kind == ValueKind::Number, is_number, "{fields:?}");
    }
}

#[test]
fn names_that_occur_once_are_identifiers() {
    let column = |count: u32, distinct: u32| {
        let values: Vec<String> = (0..count).map(|at| format!("user{}", at % distinct)).collect();
        described(&values.iter().map(String::as_str).collect::<Vec<_>>(), b',').is_identifier
    };
    assert!(column(IDENTIFIER_VALUES, IDENTIFIER_VALUES));
    assert!(!column(IDENTIFIER_VALUES - 1, IDENTIFIER_VALUES));
    assert!(!column(1000, 900));
}
