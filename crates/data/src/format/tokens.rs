//! Tokens that several formats share.

use crate::number::{parse_f32_at, parse_f64};
use crate::options::FormatOptions;
use crate::{BatchBuilder, Error, LineError};

/// Returns the first position from `at` on that is not a blank or a tab.
#[inline]
pub(super) fn skip_blanks(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Returns where the token at `at` ends: at a blank, a tab or the end.
#[inline]
pub(super) fn token_end(line: &[u8], at: usize) -> usize {
    line[at..].iter().position(|byte| matches!(byte, b' ' | b'\t')).map_or(line.len(), |length| at + length)
}

/// Returns the label at `at`, and where it ends.
#[inline]
pub(super) fn label(line: &[u8], at: usize) -> Result<(f64, usize), LineError> {
    let end = token_end(line, at);
    match parse_f64(&line[at..end]) {
        Some(value) if value.is_finite() => Ok((value, end)),
        found => Err(bad_label(&line[at..end], at, found.is_some())),
    }
}

#[cold]
fn bad_label(token: &[u8], at: usize, number: bool) -> LineError {
    let expected = if number {
        "a finite label"
    } else if token.contains(&b',') && token.contains(&b':') {
        "blanks between the label and the entries, not commas"
    } else if token.contains(&b',') {
        "one label (several labels, as in 1,2, are not supported)"
    } else if token.contains(&b':') {
        "a label before the entries (or --no-label when predicting, if this file has none)"
    } else {
        "a number as the label"
    };
    LineError::new(at, expected)
}

/// Fails when a line without labels seems to have one: a first token without ':' before one with ':'.
pub(super) fn refuse_label(line: &[u8], at: usize) -> Result<(), LineError> {
    let end = token_end(line, at);
    let next = skip_blanks(line, end);
    let has_colon = |from: usize, to: usize| line[from..to].contains(&b':');
    if !has_colon(at, end) && has_colon(next, token_end(line, next)) {
        return Err(LineError::new(at, "index:value, as --no-label says that lines have no label"));
    }
    Ok(())
}

/// Returns the finite value at `at`, and where it ends: at a blank, a comment or the end.
#[inline]
pub(super) fn value(line: &[u8], at: usize) -> Result<(f32, usize), LineError> {
    match parse_f32_at(line, at) {
        Some((value, end))
            if value.is_finite() && matches!(line.get(end), None | Some(b' ' | b'\t' | b'#')) =>
        {
            Ok((value, end))
        }
        parsed => Err(bad_value(at, parsed)),
    }
}

#[cold]
fn bad_value(at: usize, parsed: Option<(f32, usize)>) -> LineError {
    match parsed {
        None => LineError::new(at, "a number"),
        Some((value, _)) if !value.is_finite() => {
            LineError::new(at, "a finite number within the range of f32")
        }
        Some((_, end)) => LineError::new(end, "a blank after the value"),
    }
}

/// Fails when a key occurs twice in the open record.
#[inline(never)]
pub(super) fn refuse_duplicates(line: &[u8], out: &mut BatchBuilder) -> Result<(), LineError> {
    let Some(key) = out.duplicate_key() else {
        return Ok(());
    };
    let at = last_entry_of(line, key);
    Err(LineError::with_actual(at, "each index at most once in a record", format!("index {key} again")))
}

/// Returns where the last token with the index `key` begins: `index`, `index:value` or `field:index:value`.
pub(crate) fn last_entry_of(line: &[u8], key: u64) -> usize {
    let name = key.to_string();
    last_token_of(line, |token| {
        let token = token.split(|byte| *byte == b'#').next().unwrap_or(token);
        let parts: Vec<&[u8]> = token.split(|byte| *byte == b':').collect();
        parts[usize::from(parts.len() == 3)] == name.as_bytes()
    })
}

/// Returns where the last token that fulfils `is` begins; 0 when there is none.
pub(super) fn last_token_of(line: &[u8], is: impl Fn(&[u8]) -> bool) -> usize {
    let (mut at, mut last) = (0, 0);
    while at < line.len() {
        let end = token_end(line, at);
        if is(&line[at..end]) {
            last = at;
        }
        at = end + 1;
    }
    last
}

/// Fails when labels are needed of a format that has none. `lines` are those of the format; `advice` says what to do.
pub(super) fn refuse_labels(lines: &str, advice: &str, options: &FormatOptions) -> Result<(), Error> {
    if options.has_label && options.uses_labels {
        let reason = format!("{lines} have no labels, which this algorithm learns from; {advice}");
        return Err(Error::BadOption { option: "format", reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{options, rows};

    #[test]
    fn dense_text_refuses_settings_of_names() {
        let columns = || vec!["x".to_owned()];
        for (option, given) in [
            ("header", FormatOptions { header: Some(true), ..options() }),
            ("text_columns", FormatOptions { text_columns: columns(), ..options() }),
            ("token_columns", FormatOptions { token_columns: columns(), ..options() }),
        ] {
            match rows("dense", &given, "1 2\n") {
                Err(Error::BadOption { option: found, reason }) => {
                    assert_eq!(found, option);
                    assert!(reason.contains("use format = csv"), "{reason}");
                }
                other => panic!("{option}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_line_that_seems_to_have_a_label_is_refused_where_there_is_none() {
        for (line, is_refused) in [
            (&b"1 2:3"[..], true),
            (b"1  2:3", true),
            (b"1:2 3:4", false),
            (b"1:2 3", false),
            (b"1 2", false),
            (b"1", false),
            (b"", false),
        ] {
            assert_eq!(refuse_label(line, 0).is_err(), is_refused, "{line:?}");
        }
    }

    #[test]
    fn the_last_entry_of_a_key_is_found_by_its_index() {
        for (line, at) in [
            (&b"1 7:1 8:2 7:3"[..], 10),
            (b"1 7:1 8:7", 2),
            (b"1 7 8", 2),
            (b"1 8:7:1 7:9:1", 2),
            (b"7:1#x", 0),
            (b"1 8 7#x", 4),
            (b"1 70:1", 0),
            (b"1\t7:1", 2),
        ] {
            assert_eq!(last_entry_of(line, 7), at, "{:?}", String::from_utf8_lossy(line));
        }
    }
}
