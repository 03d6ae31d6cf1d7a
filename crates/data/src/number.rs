//! Parses numbers in text, eight digits at a time.
//!
//! A word of 8 bytes is loaded little-endian, so that the first character is the lowest byte. Digits are recognized and
//! combined with a few multiplications (Lemire, "Number parsing at a gigabyte per second", 2021).

/// Eight characters '0'.
pub(crate) const ZEROS: u64 = 0x3030_3030_3030_3030;
/// The high bit of each byte.
pub(crate) const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Returns how many of the first bytes of `word` are digits, 0 to 8. `word` has been xored with [`ZEROS`].
#[inline]
fn leading_digits(word: u64) -> u32 {
    // A byte above 9 gets its high bit from the addition, or has it already. A carry changes only later bytes.
    let other = (word.wrapping_add(0x7676_7676_7676_7676) | word) & HIGH_BITS;
    other.trailing_zeros() / 8
}

/// Returns the number that 8 digits write (values 0 to 9, the first one in the lowest byte).
#[inline]
pub(crate) fn eight_digits(word: u64) -> u64 {
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// Returns the 8 bytes at `at`; `None` when there are fewer.
#[inline]
pub(crate) fn word_at(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Returns the digits at `at` as a number, and where they end. Without a digit the result is `(0, at)`; a number that
/// is too large for u64 becomes `u64::MAX`.
#[inline]
pub(crate) fn parse_digits(text: &[u8], at: usize) -> (u64, usize) {
    let Some(word) = word_at(text, at) else {
        return parse_short_digits(text, at, 0);
    };
    let word = word ^ ZEROS;
    let count = leading_digits(word);
    if count == 8 {
        return parse_long_digits(text, at + 8, eight_digits(word));
    }
    // The shifts insert leading zeros from below. There are two of them, because a shift by 64 is not allowed.
    let value = eight_digits((word << 8) << (56 - 8 * count));
    (value, at + count as usize)
}

/// Continues after 8 digits, whose value is `high`.
#[inline(never)]
fn parse_long_digits(text: &[u8], at: usize, high: u64) -> (u64, usize) {
    let Some(word) = word_at(text, at) else {
        return parse_short_digits(text, at, high);
    };
    let word = word ^ ZEROS;
    let count = leading_digits(word);
    if count == 8 {
        return parse_short_digits(text, at + 8, high * 100_000_000 + eight_digits(word));
    }
    let low = eight_digits((word << 8) << (56 - 8 * count));
    (high * 10u64.pow(count) + low, at + count as usize)
}

/// Parses digit by digit.
#[inline(never)]
fn parse_short_digits(text: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value.saturating_mul(10).saturating_add(u64::from(digit));
        at += 1;
    }
    (value, at)
}

/// Powers of ten that f32 holds exactly.
const POWERS_OF_TEN: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
/// Integers below this are exact in f32.
const EXACT_INTEGER_END: u64 = 1 << 24;

/// Returns the number at `at`, correctly rounded, and where it ends; `None` when there is none. It may be infinite or
/// NaN.
#[inline]
pub(crate) fn parse_f32_at(text: &[u8], at: usize) -> Option<(f32, usize)> {
    let negative = text.get(at) == Some(&b'-');
    let start = at + usize::from(negative);
    let (whole, end) = parse_digits(text, start);
    let (mut mantissa, mut at_end, mut decimals) = (whole, end, 0);
    if text.get(end) == Some(&b'.') {
        let (fraction, fraction_end) = parse_digits(text, end + 1);
        decimals = fraction_end - end - 1;
        at_end = fraction_end;
        if decimals >= POWERS_OF_TEN.len() {
            return parse_f32_slow(text, at);
        }
        mantissa = whole.saturating_mul(10u64.pow(decimals as u32)).saturating_add(fraction);
    }
    let simple = mantissa < EXACT_INTEGER_END && at_end > start + usize::from(decimals == 0 && at_end > end);
    if !simple || text.get(at_end).is_some_and(|byte| matches!(byte, b'e' | b'E' | b'.')) {
        return parse_f32_slow(text, at);
    }
    // Both operands are exact in f32, so the division rounds once.
    let value = mantissa as f32 / POWERS_OF_TEN[decimals];
    Some((if negative { -value } else { value }, at_end))
}

#[inline(never)]
fn parse_f32_slow(text: &[u8], at: usize) -> Option<(f32, usize)> {
    let (value, count) = fast_float2::parse_partial::<f32, _>(text.get(at..)?).ok()?;
    Some((value, at + count))
}

/// Parses the whole token as a number; returns `None` when it is not one. The number may be infinite or NaN.
#[inline]
pub(crate) fn parse_f32(token: &[u8]) -> Option<f32> {
    parse_f32_at(token, 0).filter(|(_, end)| *end == token.len()).map(|(value, _)| value)
}

/// Parses the whole token as a number of double precision.
#[inline]
pub(crate) fn parse_f64(token: &[u8]) -> Option<f64> {
    match token {
        b"0" => Some(0.0),
        b"1" | b"+1" => Some(1.0),
        b"-1" => Some(-1.0),
        _ => fast_float2::parse::<f64, _>(token).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_of_any_length_end_where_they_end() {
        for length in 0..19 {
            let text = &b"1234567890123456789"[..length];
            let expected = std::str::from_utf8(text).unwrap().parse().unwrap_or(0);
            for tail in [
                "",
                ":",
                ":1 234:5",
                " 99999999",
                "\u{e9}\u{e9}\u{e9}\u{e9}",
                "/:;<",
                "\x7f\x01\x02\x03\x04\x05",
            ] {
                let line = [text, tail.as_bytes()].concat();
                assert_eq!(parse_digits(&line, 0), (expected, length), "{}", String::from_utf8_lossy(&line));
            }
        }
        assert_eq!(parse_digits(b"99999999999999999999999999", 0).0, u64::MAX);
    }

    #[test]
    fn what_is_not_a_number_is_none() {
        for text in ["", "-", ".", "-.", "e5", "x", "--1", ":", "\u{e9}"] {
            assert_eq!(parse_f32(text.as_bytes()), None, "{text}");
        }
        for (text, value) in
            [(".5", 0.5), ("-.5", -0.5), ("5.", 5.0), ("+1", 1.0), ("1e3", 1000.0), ("-0", 0.0)]
        {
            assert_eq!(parse_f32(text.as_bytes()), Some(value), "{text}");
            assert_eq!(parse_f64(text.as_bytes()), Some(f64::from(value)), "{text}");
        }
        assert!(parse_f32(b"inf").unwrap().is_infinite());
        assert!(parse_f32(b"1e60").unwrap().is_infinite());
        assert!(parse_f32(b"nan").unwrap().is_nan());
    }

    proptest! {
        #[test]
        fn numbers_equal_those_of_the_standard_library(x in any::<f32>(), decimals in 0usize..14) {
            let (short, exact) = (format!("{:.*}", decimals, x.fract() * 1000.0), format!("{x:e}"));
            prop_assert_eq!(parse_f32(short.as_bytes()), Some(short.parse::<f32>().unwrap()));
            if x.is_finite() {
                prop_assert_eq!(parse_f32(exact.as_bytes()), Some(x));
            }
        }

        #[test]
        fn keys_equal_those_of_the_standard_library(key: u64, tail in "[ :a-z]{0,9}") {
            let text = format!("{key}{tail}");
            prop_assert_eq!(parse_digits(text.as_bytes(), 0), (key, text.len() - tail.len()));
        }
    }
}
