//! Parses one row into one record.

use super::super::columns::{FileColumns, Role};
use super::super::dictionary::{Dictionary, MISSING};
use super::super::missing::is_missing;
use super::super::token_features::Tokens;
use super::super::{LineParser, ParsedLine};
use super::fields::Fields;
use crate::error::nearest;
use crate::interactions::{InteractionGenerator, push_products};
use crate::key_names::KeyNames;
use crate::number::{parse_f32, parse_f64};
use crate::schema::Schema;
use crate::time::parse_time;
use crate::{BatchBuilder, LineError};
use math::hash::{NAMED_KEY_BIT, named_key};
use std::sync::Arc;

pub(super) struct Parser {
    columns: Arc<FileColumns>,
    header: Option<Arc<[u8]>>,
    label_names: Vec<String>,
    has_label: bool,
    keep_zeros: bool,
    /// The field of each column of the file; empty if entries have no fields.
    field_of_column: Vec<u32>,
    dictionary: Dictionary,
    tokens: Tokens,
    multiplier: InteractionGenerator,
    /// Where the label of the last row begins.
    label_at: usize,
}

impl Parser {
    pub(super) fn new(
        columns: Arc<FileColumns>,
        header: Option<Arc<[u8]>>,
        schema: &Schema,
        has_label: bool,
    ) -> Self {
        let position = |name: &String| schema.columns.iter().position(|column| column.name == *name);
        let field_of_column = if schema.fields {
            columns.names.iter().map(|name| position(name).unwrap_or(0) as u32).collect()
        } else {
            Vec::new()
        };
        let multiplier = InteractionGenerator::new(columns.interactions.clone(), schema.keep_zeros);
        Self {
            multiplier,
            label_at: 0,
            columns,
            header,
            label_names: schema.label_names.clone(),
            has_label,
            keep_zeros: schema.keep_zeros,
            field_of_column,
            dictionary: Dictionary::default(),
            tokens: Tokens::new(schema.token_order),
        }
    }
}

/// The parts of a row that are not entries.
struct RowAttributes {
    label: Option<f64>,
    weight: f32,
    group: Option<u64>,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], out: &mut BatchBuilder) -> Result<ParsedLine, LineError> {
        if line.trim_ascii().is_empty() {
            return Ok(ParsedLine::Skipped);
        }
        if self.header.as_deref() == Some(line) {
            let expected = "a record; this line repeats the header, as in concatenated files: delete it";
            return Err(LineError::new(0, expected));
        }
        let columns = Arc::clone(&self.columns);
        let mut rest = RowAttributes { label: None, weight: 1.0, group: None };
        self.multiplier.clear();
        let mut fields = Fields::new(line, columns.dialect.quotes);
        let mut count = 0;
        while let Some((at, field)) = fields.next_field()? {
            if let Some(role) = columns.roles.get(count) {
                self.field(role, &columns.names[count], at, &field, &mut rest, out)?;
                if let Some(field) = self.field_of_column.get(count) {
                    out.mark_field(*field);
                }
                if columns.passthrough.iter().any(|kept| kept.at == count) {
                    out.push_passthrough(&field);
                }
                if let Some(group) = columns.interaction_groups[count] {
                    self.factor(group, role, &columns.names[count], &field);
                }
            }
            count += 1;
        }
        if count != columns.roles.len() {
            let expected = format!("{} fields, as in the first row", columns.roles.len());
            return Err(LineError::with_found(line.len(), expected, format!("{count} fields")));
        }
        if self.has_label && rest.label.is_none() {
            return Err(LineError::with_found(0, "a label column", "none"));
        }
        if !self.multiplier.is_empty() {
            push_products(&self.multiplier, &mut self.dictionary, out)?;
            if !self.field_of_column.is_empty() {
                out.mark_field(columns.features.len() as u32);
            }
        }
        Ok(ParsedLine::Record { label: rest.label, weight: rest.weight, group: rest.group })
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.dictionary.take()
    }

    fn unmet_interactions(&self) -> Vec<String> {
        self.multiplier.unmet()
    }

    fn label_at(&self, _line: &[u8]) -> usize {
        self.label_at
    }

    fn notices(&self) -> Vec<String> {
        self.dictionary.notices()
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
        rest: &mut RowAttributes,
        out: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        match role {
            Role::Numeric(key) => match parse_f32(field) {
                Some(value) if value.is_finite() => {
                    out.note_rounding(field, at, value);
                    if value != 0.0 || self.keep_zeros {
                        out.push(*key, value);
                    }
                }
                _ if is_missing(field) => {
                    if self.columns.mark_missing {
                        self.push_category(name, MISSING, out);
                    }
                }
                found => return Err(not_a_number(name, at, field, found.is_some())),
            },
            Role::Text if is_missing(field) => {}
            Role::Text => self.push_category(name, field, out),
            Role::Tokens => {
                self.tokens.push(name.as_bytes(), field, &mut self.dictionary, out);
            }
            Role::Label => {
                rest.label = Some(self.label(name, at, field)?);
                self.label_at = at;
            }
            Role::Weight => rest.weight = weight(name, at, field)?,
            Role::Group => rest.group = Some(group(name, field)),
            Role::Time => out.set_time(time(name, at, field)?),
            Role::Skip => {}
        }
        Ok(())
    }

    /// Adds a parsed field to the factors when interactions multiply its column.
    fn factor(&mut self, group: usize, role: &Role, name: &str, field: &[u8]) {
        match role {
            _ if is_missing(field) => {}
            Role::Numeric(key) => {
                if let Some(value) = parse_f32(field).filter(|value| *value != 0.0 || self.keep_zeros) {
                    self.multiplier.add(group, *key, value, || name.to_owned());
                }
            }
            Role::Text => {
                let key = named_key(name.as_bytes(), field);
                let full_name = || format!("{name}={}", String::from_utf8_lossy(field));
                self.multiplier.add(group, key, 1.0, full_name);
            }
            Role::Tokens | Role::Label | Role::Weight | Role::Group | Role::Time | Role::Skip => {}
        }
    }

    /// Pushes the feature of a value of a text column.
    #[inline]
    fn push_category(&mut self, name: &str, value: &[u8], out: &mut BatchBuilder) {
        let key = named_key(name.as_bytes(), value);
        self.dictionary.add(key, name.as_bytes(), b'=', value);
        out.push_one(key);
    }

    fn label(&self, name: &str, at: usize, field: &[u8]) -> Result<f64, LineError> {
        if self.label_names.is_empty() {
            let value = parse_f64(field).filter(|value| value.is_finite());
            return value.ok_or_else(|| {
                LineError::with_found(
                    at,
                    format!("a finite number as the label (column '{name}')"),
                    excerpt(field),
                )
            });
        }
        let text = String::from_utf8_lossy(field);
        let class = self.label_names.binary_search_by(|known| known.as_str().cmp(&text));
        class.map(|class| class as f64).map_err(|_| {
            let known = self.label_names.iter().map(String::as_str);
            let hint =
                nearest(&text, known).map_or(String::new(), |name| format!(", did you mean '{name}'?"));
            let expected = format!("one of the {} label names of training{hint}", self.label_names.len());
            LineError::with_found(at, expected, excerpt(field))
        })
    }
}

fn weight(name: &str, at: usize, field: &[u8]) -> Result<f32, LineError> {
    let value = parse_f32(field).filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| {
        LineError::with_found(at, format!("a finite weight of at least 0 in column '{name}'"), excerpt(field))
    })
}

fn time(name: &str, at: usize, field: &[u8]) -> Result<f64, LineError> {
    parse_time(field).ok_or_else(|| {
        let expected = format!(
            "a time in column '{name}': a number, or a date as in 2026-01-31, 2026-01-31 08:15:00 or 2026-01-31T08:15:00Z"
        );
        LineError::with_found(at, expected, excerpt(field))
    })
}

/// An integer is the group itself; any other value is hashed.
fn group(name: &str, field: &[u8]) -> u64 {
    let (number, end) = crate::number::parse_digits(field, 0);
    let whole = end == field.len() && end > 0 && number < NAMED_KEY_BIT;
    if whole { number } else { named_key(name.as_bytes(), field) }
}

#[cold]
fn not_a_number(name: &str, at: usize, field: &[u8], is_number: bool) -> LineError {
    let expected = if is_number {
        format!("a finite number within the range of f32 in column '{name}'")
    } else {
        format!("a number in column '{name}' (train with --text-columns {name} if its values are names)")
    };
    LineError::with_found(at, expected, excerpt(field))
}

fn excerpt(field: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(field).escape_debug())
}
