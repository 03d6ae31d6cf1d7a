//! Parses one row into one record.

use super::super::{LineParser, ParsedLine};
use super::fields::Fields;
use crate::columns::missing::is_missing;
use crate::columns::{Cell, ColumnPlan, Number, NumberForm, RecordBuilder, Role, Row};
use crate::key_names::KeyNames;
use crate::number::parse_f32;
use crate::quotes::Quotes;
use crate::schema::Schema;
use crate::time::parse_time;
use crate::{BatchBuilder, LineError};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct Parser {
    plan: Arc<ColumnPlan>,
    quotes: Quotes,
    header: Option<Arc<[u8]>>,
    records: RecordBuilder,
}

impl Parser {
    pub(super) fn new(
        plan: Arc<ColumnPlan>,
        quotes: Quotes,
        header: Option<Arc<[u8]>>,
        schema: &Schema,
    ) -> Self {
        let records = RecordBuilder::new(&plan, schema);
        Self { plan, quotes, header, records }
    }
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
        let mut row = TextRow { fields: Fields::new(line, self.quotes), count: 0 };
        let record = self.records.push(&self.plan, &mut row, out)?;
        let expected = self.plan.columns.len();
        if row.count != expected {
            let expected = format!("{expected} fields, as in the first row");
            return Err(LineError::with_actual(line.len(), expected, format!("{} fields", row.count)));
        }
        Ok(ParsedLine::Record { label: record.label, weight: record.weight, group: record.group })
    }

    fn label_at(&self, line: &[u8]) -> usize {
        let label = self.plan.find(Role::Label).unwrap_or(0);
        let mut fields = Fields::new(line, self.quotes);
        let mut starts = std::iter::from_fn(|| fields.next_field().ok().flatten().map(|(at, _)| at));
        starts.nth(label).unwrap_or(0)
    }

    fn take_dictionary(&mut self) -> KeyNames {
        self.records.take_dictionary()
    }

    fn unmet_interactions(&self) -> Vec<String> {
        self.records.unmet_interactions()
    }

    fn notices(&self) -> Vec<String> {
        self.records.notices()
    }
}

/// A row of text.
struct TextRow<'a> {
    fields: Fields<'a>,
    /// How many fields were read.
    count: usize,
}

impl<'a> Row for TextRow<'a> {
    type Cell<'c>
        = TextCell<'a>
    where
        Self: 'c;

    #[inline]
    fn next_cell(&mut self) -> Result<Option<(usize, TextCell<'a>)>, LineError> {
        let field = self.fields.next_field()?;
        self.count += usize::from(field.is_some());
        Ok(field.map(|(at, text)| (self.count - 1, TextCell { at, text })))
    }
}

/// A field of a row.
struct TextCell<'a> {
    at: usize,
    text: Cow<'a, [u8]>,
}

impl Cell for TextCell<'_> {
    fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn number(&self, form: NumberForm) -> Number {
        let number = match form {
            NumberForm::Plain => parse_f32(&self.text),
            form => form.parse(&self.text).map(|number| number as f32),
        };
        match number {
            Some(value) if value.is_finite() => Number::Finite(value),
            _ if self.is_missing() => Number::Missing,
            Some(_) => Number::TooLarge,
            None => Number::Other,
        }
    }

    fn double(&self, form: NumberForm) -> Option<f64> {
        form.parse(&self.text).filter(|value| value.is_finite())
    }

    fn time(&self) -> Option<f64> {
        parse_time(&self.text)
    }

    #[inline]
    fn text(&self) -> &[u8] {
        &self.text
    }

    #[inline]
    fn is_missing(&self) -> bool {
        is_missing(&self.text)
    }

    fn push_entries(&self, _keep_zeros: bool, _out: &mut BatchBuilder) -> Result<(), LineError> {
        Ok(())
    }

    fn describe(&self) -> String {
        format!("'{}'", String::from_utf8_lossy(&self.text).escape_debug())
    }
}
