//! Points in time that are written as text.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

use crate::number::parse_f64;

/// Forms of dates with a time of day, without a zone.
const FORMS: [&str; 4] = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];

/// Returns a finite number as it is, and a date of ISO 8601 in seconds since 1970. A date without a zone is in UTC.
pub fn parse_time(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii();
    if let Some(number) = parse_f64(text) {
        return Some(number).filter(|number| number.is_finite());
    }
    let text = std::str::from_utf8(text).ok()?;
    let at = NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .ok()
        .and_then(|day| day.and_hms_opt(0, 0, 0))
        .or_else(|| FORMS.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()))
        .map(|time| time.and_utc())
        .or_else(|| DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc()))?;
    Some(at.timestamp() as f64 + f64::from(at.timestamp_subsec_nanos()) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_themselves_and_dates_are_seconds() {
        let cases = [
            ("17.5", 17.5),
            (" -3 ", -3.0),
            ("1970-01-02", 86_400.0),
            ("1970-01-01 01:00:00.5", 3600.5),
            ("1970-01-01T01:00", 3600.0),
            ("1970-01-01T01:00:00Z", 3600.0),
            ("1970-01-01T01:00:00.25+01:00", 0.25),
            ("1969-12-31 23:59:59.5", -0.5),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_time(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in ["", "noon", "1970-13-01", "1970-01-01 25:00:00", "inf", "nan", "01/02/1970", "\u{ff}"] {
            assert_eq!(parse_time(text.as_bytes()), None, "{text}");
        }
    }
}
