//! The forms in which people and programs write numbers, points in time and durations.

use serde::{Deserialize, Serialize};

use crate::number::parse_f64;
use crate::time::parse_time;

/// What the numbers of a column mean and how text has them. Columns with a type (Parquet, Arrow) have the form of the type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberForm {
    /// `1.25`, `1e3`.
    #[default]
    Plain,
    /// `true` and `false` are 1 and 0.
    Boolean,
    /// Dates and dates with a time of day, in seconds since 1970.
    Time,
    /// `08:15:00`, in seconds since midnight.
    TimeOfDay,
    /// `2 days 08:15:00` or `P2DT8H15M`, in seconds.
    Duration,
    /// `12%` is .12.
    Percent,
    /// `$1,200.50`.
    Currency,
    /// `1,200,000`.
    Thousands,
    /// `1.200,5` is 1200.5.
    DecimalComma,
}

/// All forms but the plain one, in the order in which they are tried.
pub(super) const FORMS: [NumberForm; 8] = [
    NumberForm::Boolean,
    NumberForm::Time,
    NumberForm::TimeOfDay,
    NumberForm::Duration,
    NumberForm::Percent,
    NumberForm::Currency,
    NumberForm::Thousands,
    NumberForm::DecimalComma,
];

/// Signs of currencies before or behind an amount.
const CURRENCIES: [&str; 4] = ["$", "€", "£", "¥"];

impl NumberForm {
    /// Whether numbers are written as programs write them.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::Plain
    }

    /// Whether plain numbers belong to the form, so that a column has both.
    pub(super) fn has_plain_numbers(self) -> bool {
        matches!(self, Self::Currency | Self::Thousands | Self::DecimalComma)
    }

    /// Describes a column of this form.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Plain => "numbers",
            Self::Boolean => "1 for true and 0 for false",
            Self::Time => "seconds since 1970",
            Self::TimeOfDay => "seconds since midnight",
            Self::Duration => "seconds",
            Self::Percent => "shares of 1",
            Self::Currency => "amounts",
            Self::Thousands => "numbers with commas between thousands",
            Self::DecimalComma => "numbers with a decimal comma",
        }
    }

    /// Returns the number that a text of this form stands for. Plain numbers are numbers in every form but two: a point
    /// separates thousands where the comma is the decimal mark, and beside `12%` a 12 may be a percentage or a share.
    pub(crate) fn parse(self, text: &[u8]) -> Option<f64> {
        let text = text.trim_ascii();
        if !matches!(self, Self::DecimalComma | Self::Percent)
            && let Some(number) = parse_f64(text)
        {
            return Some(number);
        }
        match self {
            Self::Plain => None,
            Self::Boolean => match text {
                b"true" | b"True" | b"TRUE" => Some(1.0),
                b"false" | b"False" | b"FALSE" => Some(0.0),
                _ => None,
            },
            Self::Time => parse_time(text),
            Self::TimeOfDay => time_of_day(text, 24),
            Self::Duration => duration(std::str::from_utf8(text).ok()?),
            Self::Percent => Some(parse_f64(text.strip_suffix(b"%")?.trim_ascii())? / 100.0),
            Self::Currency => currency(std::str::from_utf8(text).ok()?),
            Self::Thousands => grouped(text, b',', b'.'),
            Self::DecimalComma => grouped(text, b'.', b','),
        }
    }
}

/// Parses digits with a separator between groups of three, if there is one, and a decimal mark.
fn grouped(text: &[u8], separator: u8, mark: u8) -> Option<f64> {
    let (sign, digits) = match text.split_first()? {
        (b'-', rest) => (-1.0, rest),
        (b'+', rest) => (1.0, rest),
        _ => (1.0, text),
    };
    let (whole, fraction) = match digits.iter().position(|byte| *byte == mark) {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &b""[..]),
    };
    let mut groups = whole.split(|byte| *byte == separator);
    let first = groups.next()?;
    let groups: Vec<&[u8]> = groups.collect();
    let is_grouped = groups.is_empty() || (1..=3).contains(&first.len());
    let has_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let is_number = is_grouped
        && groups.iter().all(|group| group.len() == 3)
        && [&[first, fraction][..], &groups].concat().into_iter().all(has_digits)
        && !(first.is_empty() && fraction.is_empty());
    if !is_number {
        return None;
    }
    let plain = [&[first][..], &groups, &[b".", fraction]].concat().concat();
    parse_f64(plain.strip_suffix(b".").unwrap_or(&plain)).map(|number| sign * number)
}

fn currency(text: &str) -> Option<f64> {
    let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let amount =
        CURRENCIES.iter().find_map(|sign| text.strip_prefix(sign).or_else(|| text.strip_suffix(sign)))?;
    let amount = amount.trim().as_bytes();
    parse_f64(amount).or_else(|| grouped(amount, b',', b'.')).map(|number| sign * number)
}

/// Parses `08:15`, `08:15:00` or `08:15:00.5` with hours below `limit`, in seconds.
fn time_of_day(text: &[u8], limit: u32) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let parts: Vec<&str> = text.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] => (hours, minutes, "0"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    let is_plain = |part: &&&str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if parts.iter().filter(is_plain).count() != parts.len() {
        return None;
    }
    let (hours, minutes) = (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
    let seconds = seconds.parse::<f64>().ok()?;
    let is_time = hours < limit && minutes < 60 && seconds < 60.0;
    is_time.then(|| f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0 + seconds)
}

/// Parses a duration as pandas (`-1 days +02:00:00`), Python (`1 day, 2:00:00`) or ISO 8601 (`P1DT2H`) writes it, in
/// seconds.
fn duration(text: &str) -> Option<f64> {
    const DAY: f64 = 86_400.0;
    if let Some(rest) = text.strip_prefix("-P").or_else(|| text.strip_prefix('P')) {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        return iso_duration(rest).map(|seconds| sign * seconds);
    }
    let Some((days, rest)) = text.split_once(" day") else { return time_of_day(text.as_bytes(), u32::MAX) };
    let rest = rest.trim_start_matches('s').trim_start_matches(',').trim();
    let time = match rest.strip_prefix('+').unwrap_or(rest) {
        "" => 0.0,
        time => time_of_day(time.as_bytes(), 24)?,
    };
    Some(f64::from(days.parse::<i32>().ok()?) * DAY + time)
}

/// Parses what follows the `P` of a duration of ISO 8601 without years and months, whose lengths vary.
fn iso_duration(text: &str) -> Option<f64> {
    let (mut rest, mut seconds, mut is_time, mut count) = (text, 0.0, false, 0);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T').filter(|_| !is_time) {
            (rest, is_time) = (time, true);
            continue;
        }
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let unit = match (rest.get(end..=end)?, is_time) {
            ("W", false) => 604_800.0,
            ("D", false) => 86_400.0,
            ("H", true) => 3600.0,
            ("M", true) => 60.0,
            ("S", true) => 1.0,
            _ => return None,
        };
        seconds += rest[..end].parse::<f64>().ok()? * unit;
        rest = &rest[end + 1..];
        count += 1;
    }
    (count > 0).then_some(seconds)
}

#[cfg(test)]
mod tests;
