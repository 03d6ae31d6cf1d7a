//! Tests of `number_form.rs`.

use super::*;

#[test]
fn each_form_reads_its_texts_and_no_others() {
    use NumberForm::{Boolean, Currency, DecimalComma, Duration, Percent, Plain, Thousands, Time, TimeOfDay};
    for (form, text, expected) in [
        (Plain, "1.25", Some(1.25)),
        (Plain, "1,25", None),
        (Boolean, "True", Some(1.0)),
        (Boolean, "false", Some(0.0)),
        (Boolean, "1", Some(1.0)),
        (Boolean, "yes", None),
        (Time, "1970-01-02", Some(86_400.0)),
        (Time, "2nd of May", None),
        (TimeOfDay, "01:01:01.5", Some(3661.5)),
        (TimeOfDay, "00:01", Some(60.0)),
        (TimeOfDay, "25:00:00", None),
        (TimeOfDay, "1:2:3:4", None),
        (TimeOfDay, "1:-2", None),
        (Duration, "2 days 00:00:01.5", Some(172_801.5)),
        (Duration, "-1 days +23:59:59", Some(-1.0)),
        (Duration, "1 day, 2:00:00", Some(93_600.0)),
        (Duration, "3 days", Some(259_200.0)),
        (Duration, "30:00:00", Some(108_000.0)),
        (Duration, "P1DT2H3M4.5S", Some(93_784.5)),
        (Duration, "-PT1S", Some(-1.0)),
        (Duration, "P1M", None),
        (Duration, "P", None),
        (Duration, "PT", None),
        (Duration, "PTÜ", None),
        (Duration, "two days", None),
        (Percent, "12%", Some(0.12)),
        (Percent, "-3.5 %", Some(-0.035)),
        (Percent, "12", None),
        (Percent, "%", None),
        (Currency, "$12", Some(12.0)),
        (Currency, "-$1,200.50", Some(-1200.5)),
        (Currency, "12 €", Some(12.0)),
        (Currency, "USD 12", None),
        (Thousands, "1,200", Some(1200.0)),
        (Thousands, "-1,234,567.5", Some(-1_234_567.5)),
        (Thousands, "1200", Some(1200.0)),
        (Thousands, "1,25", None),
        (Thousands, "1234,567", None),
        (Thousands, ",123", None),
        (Thousands, "", None),
        (DecimalComma, "1,25", Some(1.25)),
        (DecimalComma, "-1.234,5", Some(-1234.5)),
        (DecimalComma, "1.234", Some(1234.0)),
        (DecimalComma, ",5", Some(0.5)),
        (DecimalComma, "3", Some(3.0)),
        (DecimalComma, "1,2,3", None),
        (DecimalComma, "1.5", None),
        (DecimalComma, ",", None),
    ] {
        assert_eq!(form.parse(text.as_bytes()), expected, "{form:?} {text:?}");
    }
}
