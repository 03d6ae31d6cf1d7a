//! One row to one record.

use super::super::columns::{Columns, Role};
use super::super::dictionary::{Dictionary, MISSING};
use super::super::missing::is_missing;
use super::super::{LineParser, Parsed};
use super::fields::Fields;
use crate::error::nearest;
use crate::interactions::{Multiplier, push_products};
use crate::number::{whole_double, whole_float};
use crate::schema::Schema;
use crate::{BatchBuilder, LineError};
use math::hash::named_key;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Parser {
    columns: Arc<Columns>,
    header: Option<Arc<[u8]>>,
    label_names: Vec<String>,
    has_label: bool,
    keep_zeros: bool,
    dictionary: Dictionary,
    multiplier: Multiplier,
}

impl Parser {
    pub(super) fn new(
        columns: Arc<Columns>,
        header: Option<Arc<[u8]>>,
        schema: &Schema,
        has_label: bool,
    ) -> Self {
        let multiplier = Multiplier::new(columns.interactions.clone(), schema.keep_zeros);
        Self {
            multiplier,
            columns,
            header,
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
        if self.header.as_deref() == Some(line) {
            let expected =
                "a record; this is the header again, as in files that were put together: delete the line";
            return Err(LineError::new(0, expected));
        }
        let columns = Arc::clone(&self.columns);
        let mut rest = Rest { label: None, weight: 1.0, group: None };
        self.multiplier.clear();
        let mut fields = Fields::new(line, columns.dialect.quotes);
        let mut count = 0;
        while let Some((at, field)) = fields.next_field()? {
            if let Some(role) = columns.roles.get(count) {
                self.field(role, &columns.names[count], at, &field, &mut rest, out)?;
                if columns.kept.iter().any(|kept| kept.at == count) {
                    out.carry(&field);
                }
                if let Some(group) = columns.groups[count] {
                    self.factor(group, role, &columns.names[count], &field);
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
        if !self.multiplier.is_idle() {
            push_products(&self.multiplier, &mut self.dictionary, out)?;
        }
        Ok(Parsed::Record { label: rest.label, weight: rest.weight, group: rest.group })
    }

    fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        self.dictionary.take()
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
        rest: &mut Rest,
        out: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        match role {
            Role::Numeric(key) => match whole_float(field) {
                Some(value) if value.is_finite() => {
                    out.note_rounding(field, at, value);
                    if value != 0.0 || self.keep_zeros {
                        out.push(*key, value);
                    }
                }
                _ if is_missing(field) => {
                    if self.columns.mark_missing {
                        self.one(name, MISSING, out);
                    }
                }
                found => return Err(not_a_number(name, at, field, found.is_some())),
            },
            Role::Text if is_missing(field) => {}
            Role::Text => self.one(name, field, out),
            Role::Label => rest.label = Some(self.label(name, at, field)?),
            Role::Weight => rest.weight = weight(name, at, field)?,
            Role::Group => rest.group = Some(group(name, field)),
            Role::Skip => {}
        }
        Ok(())
    }

    /// A field of a column that is multiplied, which has been read.
    fn factor(&mut self, group: usize, role: &Role, name: &str, field: &[u8]) {
        match role {
            _ if is_missing(field) => {}
            Role::Numeric(key) => {
                if let Some(value) = whole_float(field).filter(|value| *value != 0.0 || self.keep_zeros) {
                    self.multiplier.add(group, *key, value, || name.to_owned());
                }
            }
            Role::Text => {
                let key = named_key(name.as_bytes(), field);
                let full_name = || format!("{name}={}", String::from_utf8_lossy(field));
                self.multiplier.add(group, key, 1.0, full_name);
            }
            Role::Label | Role::Weight | Role::Group | Role::Skip => {}
        }
    }

    /// The feature of a value of a column.
    #[inline]
    fn one(&mut self, name: &str, value: &[u8], out: &mut BatchBuilder) {
        let key = named_key(name.as_bytes(), value);
        self.dictionary.add(key, name.as_bytes(), b'=', value);
        out.push_one(key);
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
        format!("a number in column '{name}' (train with --text-columns {name} if its values are names)")
    };
    LineError::found(at, expected, shown(field))
}

fn shown(field: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(field).escape_debug())
}
