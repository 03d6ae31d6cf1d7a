//! One row to one record.

use super::super::columns::{Columns, Role, is_missing};
use super::super::dictionary::Dictionary;
use super::super::{LineParser, Parsed};
use crate::error::nearest;
use crate::number::{whole_double, whole_float};
use crate::schema::Schema;
use crate::{BatchBuilder, LineError};
use math::hash::named_key;
use memchr::memchr;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Parser {
    columns: Arc<Columns>,
    label_names: Vec<String>,
    has_label: bool,
    keep_zeros: bool,
    dictionary: Dictionary,
}

impl Parser {
    pub(super) fn new(columns: Arc<Columns>, schema: &Schema, has_label: bool) -> Self {
        Self {
            columns,
            label_names: schema.label_names.clone(),
            has_label,
            keep_zeros: schema.keep_zeros,
            dictionary: Dictionary::default(),
        }
    }
}

/// What a row has besides entries.
struct Rest {
    label: Option<f64>,
    weight: f32,
    group: Option<u64>,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<Parsed, LineError> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let columns = Arc::clone(&self.columns);
        let mut rest = Rest { label: None, weight: 1.0, group: None };
        let mut fields = Fields::new(line, columns.delimiter);
        let mut count = 0;
        while let Some((at, field)) = fields.next_field()? {
            if let Some(role) = columns.roles.get(count) {
                self.field(role, &columns.names[count], at, &field, &mut rest, out)?;
                if columns.kept.iter().any(|kept| kept.at == count) {
                    out.carry(&field);
                }
            }
            count += 1;
        }
        if count != columns.roles.len() {
            let expected = format!("{} fields, as in the first row", columns.roles.len());
            return Err(LineError::found(line.len(), expected, format!("{count} fields")));
        }
        if self.has_label && rest.label.is_none() {
            return Err(LineError::found(0, "a label column", "none"));
        }
        Ok(Parsed::Record { label: rest.label, weight: rest.weight, group: rest.group })
    }

    fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        self.dictionary.take()
    }

    fn notices(&self) -> Vec<String> {
        self.columns.notices.iter().cloned().chain(self.dictionary.notices()).collect()
    }
}

impl Parser {
    #[inline]
    fn field(
        &mut self,
        role: &Role,
        name: &str,
        at: usize,
        field: &[u8],
        rest: &mut Rest,
        out: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        match role {
            Role::Numeric(key) => match whole_float(field) {
                Some(value) if value.is_finite() => {
                    if value != 0.0 || self.keep_zeros {
                        out.push(*key, value);
                    }
                }
                _ if is_missing(field) => {}
                found => return Err(not_a_number(name, at, field, found.is_some())),
            },
            Role::Text if is_missing(field) => {}
            Role::Text => {
                let key = named_key(name.as_bytes(), field);
                self.dictionary.add(key, name.as_bytes(), b'=', field);
                out.push_one(key);
            }
            Role::Label => rest.label = Some(self.label(name, at, field)?),
            Role::Weight => rest.weight = weight(name, at, field)?,
            Role::Group => rest.group = Some(group(name, field)),
            Role::Skip => {}
        }
        Ok(())
    }

    fn label(&self, name: &str, at: usize, field: &[u8]) -> Result<f64, LineError> {
        if self.label_names.is_empty() {
            let value = whole_double(field).filter(|value| value.is_finite());
            return value.ok_or_else(|| {
                LineError::found(at, format!("a finite number as the label (column '{name}')"), shown(field))
            });
        }
        let text = String::from_utf8_lossy(field);
        let class = self.label_names.binary_search_by(|known| known.as_str().cmp(&text));
        class.map(|class| class as f64).map_err(|_| {
            let known = self.label_names.iter().map(String::as_str);
            let hint =
                nearest(&text, known).map_or(String::new(), |name| format!(", did you mean '{name}'?"));
            let expected = format!("one of the {} label names of training{hint}", self.label_names.len());
            LineError::found(at, expected, shown(field))
        })
    }
}

fn weight(name: &str, at: usize, field: &[u8]) -> Result<f32, LineError> {
    let value = whole_float(field).filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| {
        LineError::found(at, format!("a finite weight of at least 0 in column '{name}'"), shown(field))
    })
}

/// A whole number is its own group; anything else is hashed.
fn group(name: &str, field: &[u8]) -> u64 {
    let (number, end) = crate::number::digits(field, 0);
    let whole = end == field.len() && end > 0 && number < 1 << 62;
    if whole { number } else { named_key(name.as_bytes(), field) }
}

#[cold]
fn not_a_number(name: &str, at: usize, field: &[u8], is_number: bool) -> LineError {
    let expected = if is_number {
        format!("a finite number within the range of f32 in column '{name}'")
    } else {
        format!("a number in column '{name}' (set text_columns = {name} if its values are names)")
    };
    LineError::found(at, expected, shown(field))
}

fn shown(field: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(field).escape_debug())
}

/// The fields of a line for looking at it: one that is badly quoted ends the row.
pub(super) fn fields_of(line: &[u8], delimiter: u8) -> Vec<Vec<u8>> {
    let mut fields = Fields::new(line, delimiter);
    let mut all = Vec::new();
    while let Ok(Some((_, field))) = fields.next_field() {
        all.push(field.into_owned());
    }
    all
}

/// All fields of a line, or where its quotes are wrong.
pub(super) fn strict_fields_of(line: &[u8], delimiter: u8) -> Result<Vec<Vec<u8>>, LineError> {
    let mut fields = Fields::new(line, delimiter);
    let mut all = Vec::new();
    while let Some((_, field)) = fields.next_field()? {
        all.push(field.into_owned());
    }
    Ok(all)
}

/// Where a field begins, and its text.
type Field<'a> = (usize, Cow<'a, [u8]>);

/// Walks along a line.
struct Fields<'a> {
    line: &'a [u8],
    delimiter: u8,
    at: usize,
    done: bool,
}

impl<'a> Fields<'a> {
    fn new(line: &'a [u8], delimiter: u8) -> Self {
        let mut fields = Self { line, delimiter, at: 0, done: false };
        if delimiter == b' ' {
            fields.skip_blanks();
        }
        fields
    }

    /// A delimiter of a blank means a run of blanks and tabs.
    fn skip_blanks(&mut self) {
        self.at = super::super::skip_blanks(self.line, self.at);
        self.done = self.at >= self.line.len();
    }

    /// The next field and where it begins; `None` at the end.
    #[inline]
    fn next_field(&mut self) -> Result<Option<Field<'a>>, LineError> {
        if self.done {
            return Ok(None);
        }
        let start = self.at;
        let rest = &self.line[start..];
        if self.delimiter == b' ' {
            let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
            self.at += end;
            self.skip_blanks();
            return Ok(Some((start, Cow::Borrowed(&rest[..end]))));
        }
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        if rest.get(blanks) == Some(&b'"') {
            return self.quoted(start + blanks).map(Some);
        }
        let end = memchr(self.delimiter, rest);
        self.done = end.is_none();
        let end = end.unwrap_or(rest.len());
        self.at += end + 1;
        Ok(Some((start, Cow::Borrowed(rest[..end].trim_ascii()))))
    }

    /// A field whose opening quote stands at `start`.
    fn quoted(&mut self, start: usize) -> Result<Field<'a>, LineError> {
        let mut text = Vec::new();
        let mut at = start + 1;
        loop {
            let Some(length) = memchr(b'"', &self.line[at..]) else {
                let expected =
                    "a closing quote on the same line (line breaks inside quotes are not supported)";
                return Err(LineError::new(start, expected));
            };
            text.extend_from_slice(&self.line[at..at + length]);
            at += length + 1;
            if self.line.get(at) != Some(&b'"') {
                break;
            }
            text.push(b'"');
            at += 1;
        }
        at = at + self.line[at..].iter().take_while(|byte| **byte == b' ').count();
        match self.line.get(at) {
            None => self.done = true,
            Some(byte) if *byte == self.delimiter => self.at = at + 1,
            Some(_) => return Err(LineError::new(at, "the delimiter or the end after a closing quote")),
        }
        Ok((start, Cow::Owned(text)))
    }
}
