//! `dictionary.tsv`: the names of keys. Each line has a key, a tab and a name; keys ascend. A name contains tab,
//! newline and backslash as `\t`, `\n`, `\\`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the dictionary as text with a heading line.
pub fn to_text(names: &BTreeMap<u64, String>) -> String {
    let mut text = String::from("key\tname\n");
    for (key, name) in names {
        let name = name.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n");
        writeln!(text, "{key}\t{name}").expect("writing to a string cannot fail");
    }
    text
}

/// Parses the text of a dictionary; the error is the number of the first malformed line, from 1.
pub fn from_text(text: &str) -> Result<BTreeMap<u64, String>, usize> {
    let lines = text.lines().enumerate().skip(1);
    lines.map(|(i, line)| parse(line).ok_or(i + 1)).collect()
}

fn parse(line: &str) -> Option<(u64, String)> {
    let (key, escaped) = line.split_once('\t')?;
    let mut name = String::with_capacity(escaped.len());
    let mut characters = escaped.chars();
    while let Some(c) = characters.next() {
        name.push(match c {
            '\\' => match characters.next()? {
                't' => '\t',
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some((key.parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_any_character_come_back() {
        let names = BTreeMap::from([
            (1, "city=Rome".to_owned()),
            (9, "a\\t\tb\nc\\".to_owned()),
            (10, String::new()),
        ]);
        assert_eq!(from_text(&to_text(&names)), Ok(names));
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(from_text("key\tname\n1\ta\nx\tb\n"), Err(3));
    }
}
