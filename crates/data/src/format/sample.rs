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
