//! Untrusted text, made safe to store and print.

use crate::limits::WORKER_GROUP_BYTES;

/// Replaces a character that cannot be printed.
const REPLACEMENT: char = '\u{fffd}';

/// At most `limit` bytes of a text, in one line, without control characters and without characters that change the
/// direction of writing, which can make a text look like another one. A truncated text ends with `…`.
pub fn plain(text: &str, limit: usize) -> String {
    let mut plain = String::with_capacity(text.len().min(limit));
    let mark = '…';
    for character in text.chars() {
        let character = if is_printable(character) { character } else { REPLACEMENT };
        if plain.len() + character.len_utf8() > limit {
            while plain.len() + mark.len_utf8() > limit && plain.pop().is_some() {}
            plain.push(mark);
            break;
        }
        plain.push(character);
    }
    plain
}

/// The same as [`plain`], but keeps the lines.
pub fn plain_lines(text: &str, limit: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| plain(line, limit)).collect();
    let mut text = lines.join("\n");
    if text.len() > limit {
        let end = (0..=limit.saturating_sub('…'.len_utf8())).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// Whether the character affects only its own cell on a terminal.
pub fn is_printable(character: char) -> bool {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !character.is_control() && !turns && !matches!(character, '\u{2028}' | '\u{2029}')
}

/// Whether a worker group may have this name: `status` prints it within a line. No group has the empty one.
pub fn is_worker_group(name: &str) -> bool {
    name.len() <= WORKER_GROUP_BYTES && name.chars().all(is_printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(plain("lr on \u{1b}[2Ja\r\nb\u{202e}c ü", 100), "lr on �[2Ja��b�c ü");
        assert_eq!(plain_lines("a\nb\u{7}", 100), "a\nb�");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(plain("üüüü", 8), "üüüü");
        assert_eq!(plain("üüüüü", 8), "üü…");
        assert!(plain_lines(&"ü\n".repeat(100), 50).len() <= 50);
    }
}
