//! Makes records of rows: one loop for all formats with columns. A format gives the values of a row one after the other,
//! as [`Cell`]s; the loop is compiled for each kind of cell.

use math::hash::{NAMED_KEY_BIT, named_key};

use super::number_form::NumberForm;
use super::plan::{ColumnPlan, PlannedColumn, Role};
use crate::error::nearest;
use crate::format::dictionary::{Dictionary, MISSING};
use crate::format::token_features::Tokens;
use crate::interactions::{InteractionGenerator, push_products};
use crate::key_names::KeyNames;
use crate::number::parse_digits;
use crate::schema::Schema;
use crate::{BatchBuilder, LineError};

/// A value as a number of single precision.
pub(crate) enum Number {
    /// A finite number.
    Finite(f32),
    Missing,
    /// A number that is not finite, or too large for f32.
    TooLarge,
    /// Something else.
    Other,
}

/// A value of a row.
pub(crate) trait Cell {
    /// Where it stands: its byte in a line, or the number of its column.
    fn at(&self) -> usize;

    /// The value as a number, which text has in the form `form`.
    fn number(&self, form: NumberForm) -> Number;

    /// The value as a finite number of double precision.
    fn double(&self, form: NumberForm) -> Option<f64>;

    /// The value as a point in time, in seconds since 1970 if it is a date.
    fn time(&self) -> Option<f64>;

    /// The value as text without blanks around it; a null is empty.
    fn text(&self) -> &[u8];

    /// Whether the text is empty or a word for a missing value.
    fn is_missing(&self) -> bool;

    /// The text for the output; `None` where the format adds the passthrough texts of a record itself.
    fn passthrough(&self) -> Option<&[u8]> {
        Some(self.text())
    }

    /// Pushes the tokens of a text or a list of texts, whose names are in `space`.
    fn push_tokens(
        &self,
        space: &[u8],
        tokens: &mut Tokens,
        dictionary: &mut Dictionary,
        out: &mut BatchBuilder,
    ) {
        tokens.push(space, self.text(), dictionary, out);
    }

    /// Pushes all entries of the record. Only columns of lists have them.
    fn push_entries(&self, keep_zeros: bool, out: &mut BatchBuilder) -> Result<(), LineError>;

    /// Describes the value in an error.
    fn describe(&self) -> String;
}

/// The values of one row.
pub(crate) trait Row {
    type Cell<'c>: Cell
    where
        Self: 'c;

    /// Returns the next value and the number of its column; columns that are not read may be left out.
    fn next_cell(&mut self) -> Result<Option<(usize, Self::Cell<'_>)>, LineError>;
}

/// The parts of a record that are not entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attributes {
    pub(crate) label: Option<f64>,
    pub(crate) weight: f32,
    pub(crate) group: Option<u64>,
}

/// Turns rows into records.
pub(crate) struct RecordBuilder {
    label_names: Vec<String>,
    keep_zeros: bool,
    mark_missing: bool,
    /// The field of products, if entries have fields.
    product_field: Option<u32>,
    dictionary: Dictionary,
    tokens: Tokens,
    multiplier: InteractionGenerator,
}

impl RecordBuilder {
    /// Makes a builder with the settings of `schema`.
    pub(crate) fn new(plan: &ColumnPlan, schema: &Schema) -> Self {
        Self {
            label_names: schema.label_names.clone(),
            keep_zeros: schema.keep_zeros,
            mark_missing: schema.mark_missing,
            product_field: schema.fields.then_some(schema.columns.len() as u32),
            dictionary: Dictionary::default(),
            tokens: Tokens::new(schema.token_order, schema.tokenizer),
            multiplier: InteractionGenerator::new(plan.interactions.clone(), schema.keep_zeros),
        }
    }

    /// The interactions of which no record so far had a product.
    pub(crate) fn unmet_interactions(&self) -> Vec<String> {
        self.multiplier.unmet()
    }

    /// Pushes the entries of a row, its time and its passthrough texts, and returns the rest of the record. After an error
    /// the caller discards what was pushed.
    #[inline]
    pub(crate) fn push<R: Row>(
        &mut self,
        plan: &ColumnPlan,
        row: &mut R,
        out: &mut BatchBuilder,
    ) -> Result<Attributes, LineError> {
        let mut attributes = Attributes { label: None, weight: 1.0, group: None };
        self.multiplier.clear();
        while let Some((at, cell)) = row.next_cell()? {
            let Some(column) = plan.columns.get(at) else { continue };
            self.push_cell(column, &cell, &mut attributes, out)?;
            if self.product_field.is_some() {
                out.mark_field(column.field);
            }
            if column.is_passthrough
                && let Some(text) = cell.passthrough()
            {
                out.push_passthrough(text);
            }
        }
        if !self.multiplier.is_empty() {
            push_products(&self.multiplier, &mut self.dictionary, out)?;
            if let Some(field) = self.product_field {
                out.mark_field(field);
            }
        }
        Ok(attributes)
    }

    #[inline]
    fn push_cell(
        &mut self,
        column: &PlannedColumn,
        cell: &impl Cell,
        attributes: &mut Attributes,
        out: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        let name = &column.name;
        match column.role {
            Role::Numeric(key) => match cell.number(column.form) {
                Number::Finite(value) => {
                    let value = if column.origin == 0.0 {
                        out.note_rounding(key, value, || cell.double(column.form));
                        value
                    } else {
                        from_origin(column, cell)
                    };
                    if value != 0.0 || self.keep_zeros {
                        out.push(key, value);
                        if let Some(group) = column.interaction_group {
                            self.multiplier.add(group, key, value, || name.clone());
                        }
                    }
                }
                Number::Missing if self.mark_missing => {
                    self.push_category(name, MISSING, out);
                }
                Number::Missing => {}
                Number::TooLarge => {
                    let expected = format!("a finite number within the range of f32 in column '{name}'");
                    return Err(bad_value(cell, expected));
                }
                Number::Other => {
                    let advice = format!("train with --text-columns {name} if its values are names");
                    return Err(bad_value(cell, format!("a number in column '{name}' ({advice})")));
                }
            },
            Role::Text if cell.is_missing() && column.is_required => {
                return Err(bad_value(cell, format!("a name in column '{name}'")));
            }
            Role::Text if cell.is_missing() => {}
            Role::Text => {
                let key = self.push_category(name, cell.text(), out);
                if let Some(group) = column.interaction_group {
                    let full_name = || format!("{name}={}", String::from_utf8_lossy(cell.text()));
                    self.multiplier.add(group, key, 1.0, full_name);
                }
            }
            Role::Tokens => {
                cell.push_tokens(name.as_bytes(), &mut self.tokens, &mut self.dictionary, out);
            }
            Role::Label => attributes.label = Some(self.label(column, cell)?),
            Role::Weight => match cell.number(column.form) {
                Number::Finite(weight) if weight >= 0.0 => attributes.weight = weight,
                _ => {
                    let expected = format!("a finite weight of at least 0 in column '{name}'");
                    return Err(bad_value(cell, expected));
                }
            },
            Role::Group => attributes.group = Some(group(name, cell.text())),
            Role::Time => match cell.time() {
                Some(time) => out.set_time(time),
                None => return Err(bad_value(cell, format!("a time in column '{name}': {TIME_FORMS}"))),
            },
            Role::Entries | Role::Indices => cell.push_entries(self.keep_zeros, out)?,
            Role::Skip | Role::Values => {}
        }
        Ok(())
    }

    /// Pushes the feature of a value of a text column, and returns its key.
    #[inline]
    fn push_category(&mut self, name: &str, value: &[u8], out: &mut BatchBuilder) -> u64 {
        let key = named_key(name.as_bytes(), value);
        self.dictionary.add(key, name.as_bytes(), b'=', value);
        out.push_one(key);
        key
    }

    fn label(&self, column: &PlannedColumn, cell: &impl Cell) -> Result<f64, LineError> {
        if self.label_names.is_empty() {
            let expected = || format!("a finite number as the label (column '{}')", column.name);
            return cell.double(column.form).ok_or_else(|| bad_value(cell, expected()));
        }
        let text = String::from_utf8_lossy(cell.text());
        let class = self.label_names.binary_search_by(|known| known.as_str().cmp(&text));
        class.map(|class| class as f64).map_err(|_| {
            let known = self.label_names.iter().map(String::as_str);
            let hint =
                nearest(&text, known).map_or(String::new(), |name| format!(", did you mean '{name}'?"));
            let expected = format!("one of the {} label names of training{hint}", self.label_names.len());
            LineError::with_actual(cell.at(), expected, cell.describe())
        })
    }

    /// Takes the names of hashed keys that are new since the last call.
    pub(crate) fn take_dictionary(&mut self) -> KeyNames {
        self.dictionary.take()
    }

    /// Notices for the user.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.dictionary.notices()
    }
}

/// A number from the origin of its column on.
#[cold]
fn from_origin(column: &PlannedColumn, cell: &impl Cell) -> f32 {
    (cell.double(column.form).unwrap_or(column.origin) - column.origin) as f32
}

const TIME_FORMS: &str = "a number, or a date as in 2026-01-31, 2026-01-31 08:15:00 or 2026-01-31T08:15:00Z";

/// An integer is the group itself; any other value is hashed.
fn group(name: &str, text: &[u8]) -> u64 {
    let (number, end) = parse_digits(text, 0);
    let is_whole = end == text.len() && end > 0 && number < NAMED_KEY_BIT;
    if is_whole { number } else { named_key(name.as_bytes(), text) }
}

/// Makes the error of a value of a column. The error of a missing value says that it is one, and what reads it as a name.
#[cold]
fn bad_value(cell: &impl Cell, expected: String) -> LineError {
    let missing = match (cell.is_missing(), cell.text().is_empty()) {
        (false, _) => "",
        (true, true) => ", which counts as a missing value",
        (true, false) => {
            ", which counts as a missing value among numbers (--text-columns reads all values of a column as names)"
        }
    };
    LineError::with_actual(cell.at(), expected, format!("{}{missing}", cell.describe()))
}
