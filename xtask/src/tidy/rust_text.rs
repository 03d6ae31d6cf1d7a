//! Rust text without what is no code: comments, strings and character literals are blanked, so that only braces of code
//! are counted; tests at the end of a file are cut off.

/// Returns the lines of a file before its tests.
pub(super) fn before_tests(text: &str) -> &str {
    const TESTS: &str = "\n#[cfg(test)]\n";
    let is_inline = |at: &usize| {
        let line = text[at + TESTS.len()..].lines().next().unwrap_or_default();
        line.trim_start_matches("pub(crate) ").starts_with("mod ") && line.ends_with('{')
    };
    text.match_indices(TESTS).map(|(at, _)| at).find(is_inline).map_or(text, |at| &text[..=at])
}

/// Returns the code of a file without its tests. Lines do not change.
pub(super) fn product_code(text: &str) -> String {
    blank(before_tests(text))
}

/// Replaces everything but code by spaces. Lines and byte positions do not change.
pub(super) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = not_code(bytes, at);
        if end > at {
            for byte in &mut out[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            at = end;
        } else {
            at += 1;
        }
    }
    String::from_utf8(out).expect("whole characters are blanked, for literals begin and end with ASCII")
}

/// End of the comment or literal that begins at `at`, or `at` if none begins there.
fn not_code(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let after_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => at + block_comment(rest),
        [b'"', ..] => at + string(rest),
        [b'r', b'"' | b'#', ..] if !after_word => at + raw_string(rest),
        [b'b', b'r', b'"' | b'#', ..] if !after_word => at + 1 + raw_string(&rest[1..]),
        [b'\'', ..] => at + character(rest),
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of `r"..."` or `r#"..."#`; 0 if it is neither (a raw identifier).
fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = hashes + 2;
    let found = rest[body..].windows(close.len()).position(|window| window == close);
    found.map_or(rest.len(), |position| body + position + close.len())
}

/// Length of `'x'`, `'\n'` or `'\u{1f}'`; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|&b| b == b'\'');
        return close.map_or(0, |position| position + 4);
    }
    let width = match rest.get(1) {
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(0xc0..) => 2,
        _ => 1,
    };
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "a { // }\n\"}\\\"}\" r#\"}\"}\"# /* } /* } */ } */ '}' '\\'' '\\u{7d}' 'ä' b'{' }\n";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.matches('\n').count(), 2);
        assert_eq!(code.matches(['{', '}']).collect::<Vec<_>>(), ["{", "}"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(blank("fn f<'a>(x: &'a str) { r#type }"), "fn f<'a>(x: &'a str) { r#type }");
    }

    #[test]
    fn what_is_left_open_ends_with_the_file() {
        for open in ["\"abc", "/* abc", "r#\"abc\"", "// abc", "'\\"] {
            assert_eq!(blank(open).len(), open.len());
        }
    }
}
