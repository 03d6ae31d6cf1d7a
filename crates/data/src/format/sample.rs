//! The first lines of a file, from which its format is recognized. One bad line among them does not hide the format;
//! its error is reported when it is parsed.

use crate::input::{BYTE_ORDER_MARK, HEAD_BYTES};

/// Number of sampled lines.
const LINES: usize = 50;

/// Returns the first lines that are complete, not blank and not a comment.
pub(crate) fn text_lines(head: &[u8]) -> Vec<&[u8]> {
    let all = head.len() < HEAD_BYTES;
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let complete = memchr::memrchr(b'\n', text).filter(|_| !all).map_or(text, |last| &text[..last]);
    let lines = complete.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && line[0] != b'#').take(LINES).collect()
}

/// Whether the first line and three quarters of all sampled lines fulfil `is`.
pub(super) fn most_lines(head: &[u8], is: impl Fn(&[u8]) -> bool) -> bool {
    let lines = text_lines(head);
    let count = lines.iter().filter(|line| is(line)).count();
    lines.first().is_some_and(|line| is(line)) && 4 * count >= 3 * lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_that_of_the_first_line_and_of_three_quarters() {
        let is_a = |line: &[u8]| line == b"a";
        for (text, expected) in [
            ("a\n", true),
            ("a\na\na\nb\n", true),
            ("a\na\nb\n", false),
            ("a\nb\nb\n", false),
            ("b\na\na\na\na\n", false),
            ("# b\n\n  a \na", true),
            ("\u{feff}a\n", true),
            ("a\na\na\na\na\nb\nb\n", false),
            ("", false),
        ] {
            assert_eq!(most_lines(text.as_bytes(), is_a), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_the_first_bytes_cut_off_is_no_sample() {
        let mut head = b"a\nb\n".to_vec();
        head.resize(HEAD_BYTES, b'c');
        assert_eq!(text_lines(&head), [b"a", b"b"]);
        assert_eq!(text_lines(&head[..HEAD_BYTES - 1]).len(), 3, "the whole file");
        assert_eq!(text_lines(&vec![b'c'; HEAD_BYTES]).len(), 1, "one line longer than the first bytes");
        assert_eq!(text_lines("a\n".repeat(60).as_bytes()).len(), LINES);
    }
}
