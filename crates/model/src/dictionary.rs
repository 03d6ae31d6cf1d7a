//! `dictionary.tsv`: the names of keys. Each line has a key, a tab and a name; keys ascend. A name contains tab,
//! newline and backslash as `\t`, `\n`, `\\`.

use std::io::{BufRead, Write};

use data::{KeyNames, NameCollector};

/// Why a dictionary cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DictionaryError {
    #[error(transparent)]
    Io(std::io::Error),
    #[error("line {0} is not an entry")]
    Line(usize),
    #[error("its names take more memory than the names of a model may")]
    TooLarge,
}

/// Writes names, which ascend by their keys, below a heading line.
pub fn write<'a>(names: impl Iterator<Item = (u64, &'a str)>, out: &mut impl Write) -> std::io::Result<()> {
    out.write_all(b"key\tname\n")?;
    for (key, name) in names {
        write!(out, "{key}\t")?;
        let mut rest = name;
        while let Some(at) = rest.find(['\\', '\t', '\n']) {
            let escaped: &[u8] = match rest.as_bytes()[at] {
                b'\t' => b"\\t",
                b'\n' => b"\\n",
                _ => b"\\\\",
            };
            out.write_all(&rest.as_bytes()[..at])?;
            out.write_all(escaped)?;
            rest = &rest[at + 1..];
        }
        out.write_all(rest.as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads a dictionary; an error names the first malformed line, from 1.
pub fn read(mut input: impl BufRead) -> Result<KeyNames, DictionaryError> {
    let mut names = NameCollector::default();
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes).map_err(DictionaryError::Io)? == 0 {
            break;
        }
        if number == 1 {
            continue;
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let entry = std::str::from_utf8(line).ok().and_then(parse);
        let (key, name) = entry.ok_or(DictionaryError::Line(number))?;
        names.add(key, &name);
    }
    match names.finish() {
        (names, false) => Ok(names),
        (_, true) => Err(DictionaryError::TooLarge),
    }
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
        let names: KeyNames = [(1, "city=Rome"), (9, "a\\t\tb\nc\\"), (10, ""), (11, "x\r"), (12, "\n\n")]
            .into_iter()
            .collect();
        let mut text = Vec::new();
        write(names.iter(), &mut text).unwrap();
        assert!(text.starts_with(b"key\tname\n1\tcity=Rome\n9\ta\\\\t\\tb\\nc\\\\\n10\t\n"));
        assert_eq!(read(text.as_slice()).unwrap(), names);
    }

    #[test]
    fn a_bad_line_is_named() {
        for text in ["key\tname\n1\ta\nx\tb\n", "key\tname\n1\ta\n2\t\\q\n", "key\tname\n1\ta\n2"] {
            assert!(matches!(read(text.as_bytes()), Err(DictionaryError::Line(3))), "{text}");
        }
        assert!(matches!(read(&b"key\tname\n1\t\xff\n"[..]), Err(DictionaryError::Line(2))));
    }
}
