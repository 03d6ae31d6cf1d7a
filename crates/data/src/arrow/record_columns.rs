//! Pushes the records of one record batch after another into a sink.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};

use super::column::{TextColumn, numbers};
use super::kind::kind_of;
use super::sparse::{Sparse, ranges};
use crate::batch::BatchBuilder;
use crate::columns::missing::is_missing;
use crate::columns::{Cell, ColumnPlan, Number, NumberForm, RecordBuilder, Role, Row, ValueKind};
use crate::error::LineError;
use crate::format::dictionary::Dictionary;
use crate::format::token_features::Tokens;
use crate::key_names::KeyNames;
use crate::number::{parse_f32, parse_f64};
use crate::schema::{PassthroughColumn, Schema};
use crate::sink::Sink;
use crate::time::parse_time;

/// The record batch that was loaded last, column by column.
pub(crate) struct RecordColumns {
    columns: Vec<LoadedColumn>,
    has_label_names: bool,
    label_at: usize,
    /// The passthrough columns of the first file.
    passthrough: Vec<PassthroughColumn>,
    /// The texts of these columns, in the order in which a record has them.
    texts: Vec<TextColumn>,
    records: RecordBuilder,
}

/// A column of the batch in the form that its role needs.
struct LoadedColumn {
    /// Its number in the table.
    number: usize,
    values: Values,
}

enum Values {
    /// The values are not read, or with those of another column.
    None,
    /// NaN for null.
    Numbers(Vec<f64>),
    Texts(TextColumn),
    /// The tokens of all records, and the range of each record in them.
    TokenLists(Vec<Range<usize>>, TextColumn),
    Entries(Box<Sparse>),
}

impl RecordColumns {
    /// Makes a reader of records with the settings of `schema`.
    pub(crate) fn new(plan: &ColumnPlan, schema: &Schema) -> Self {
        Self {
            columns: Vec::new(),
            has_label_names: !schema.label_names.is_empty(),
            label_at: 0,
            passthrough: plan.passthrough.clone(),
            texts: Vec::new(),
            records: RecordBuilder::new(plan, schema),
        }
    }

    /// Loads the columns of a batch, which are those of [`ColumnPlan::read_columns`] in that order.
    pub(crate) fn load(&mut self, plan: &ColumnPlan, columns: &[ArrayRef]) {
        let numbers = plan.read_columns();
        assert_eq!(numbers.len(), columns.len(), "load: one column a field");
        let column = |number: usize| numbers.binary_search(&number).ok().map(|at| (number, &columns[at]));
        let load = |(&number, array): (&usize, &ArrayRef)| {
            let planned = &plan.columns[number];
            let is_text = kind_of(array.data_type()) == ValueKind::Text;
            let values = match planned.role {
                Role::Label | Role::Time if is_text => Values::Texts(TextColumn::of(array)),
                Role::Label if self.has_label_names => Values::Texts(TextColumn::of(array)),
                Role::Label | Role::Weight | Role::Time | Role::Numeric(_) => {
                    Values::Numbers(all_numbers(array))
                }
                Role::Tokens if !is_text => {
                    let (ranges, items) = ranges(array);
                    Values::TokenLists(ranges, TextColumn::of(&items))
                }
                Role::Group | Role::Text | Role::Tokens => Values::Texts(TextColumn::of(array)),
                Role::Indices => {
                    let values = plan.find(Role::Values).and_then(column);
                    Values::Entries(Box::new(Sparse::lists((number, array), values)))
                }
                Role::Entries => Values::Entries(Box::new(Sparse::column(number, array))),
                Role::Values | Role::Skip => Values::None,
            };
            LoadedColumn { number, values }
        };
        self.label_at = plan.find(Role::Label).unwrap_or(0);
        self.columns = numbers.iter().zip(columns).map(load).collect();
        // The passthrough columns of other files are those of the first in its order.
        let mut passthrough: Vec<_> = self.passthrough.iter().collect();
        passthrough.sort_by_key(|passthrough| passthrough.slot);
        let number = |name: &str| plan.columns.iter().position(|column| column.name == name);
        let texts = passthrough.iter().map(|passthrough| number(&passthrough.name).and_then(column));
        self.texts = texts
            .map(|column| column.map_or_else(TextColumn::default, |(_, array)| TextColumn::of(array)))
            .collect();
    }

    /// Pushes record `r` of the batch into the sink, or returns its error.
    #[inline]
    pub(crate) fn push(&mut self, plan: &ColumnPlan, r: usize, sink: &mut Sink) -> Result<(), LineError> {
        let mut row = ArrowRow { columns: self.columns.iter(), r };
        let record = self.records.push(plan, &mut row, sink.builder());
        for texts in &self.texts {
            sink.builder().push_passthrough(texts.get(r).unwrap_or_default());
        }
        sink.end_row(record, self.label_at)
    }

    /// Takes the names of hashed keys that are new since the last call.
    pub(crate) fn take_dictionary(&mut self) -> KeyNames {
        self.records.take_dictionary()
    }

    /// The interactions of which no record so far had a product.
    pub(crate) fn unmet_interactions(&self) -> Vec<String> {
        self.records.unmet_interactions()
    }

    /// Notices for the user.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.records.notices()
    }
}

struct ArrowRow<'a> {
    columns: std::slice::Iter<'a, LoadedColumn>,
    r: usize,
}

impl<'a> Row for ArrowRow<'a> {
    type Cell<'c>
        = ArrowCell<'a>
    where
        Self: 'c;

    #[inline]
    fn next_cell(&mut self) -> Result<Option<(usize, ArrowCell<'a>)>, LineError> {
        Ok(self.columns.next().map(|column| (column.number, ArrowCell { column, r: self.r })))
    }
}

/// A value of a record batch.
struct ArrowCell<'a> {
    column: &'a LoadedColumn,
    r: usize,
}

impl Cell for ArrowCell<'_> {
    fn at(&self) -> usize {
        self.column.number
    }

    #[inline]
    fn number(&self, _form: NumberForm) -> Number {
        let single = match &self.column.values {
            Values::Numbers(values) if values[self.r].is_nan() => return Number::Missing,
            Values::Numbers(values) => values[self.r] as f32,
            _ => match parse_f32(self.text()) {
                _ if self.is_missing() => return Number::Missing,
                Some(single) => single,
                None => return Number::Other,
            },
        };
        if single.is_finite() { Number::Finite(single) } else { Number::TooLarge }
    }

    fn double(&self, _form: NumberForm) -> Option<f64> {
        match &self.column.values {
            Values::Numbers(values) => Some(values[self.r]),
            _ => parse_f64(self.text()),
        }
        .filter(|value| value.is_finite())
    }

    fn time(&self) -> Option<f64> {
        match &self.column.values {
            Values::Numbers(_) => self.double(NumberForm::Plain),
            _ => parse_time(self.text()),
        }
    }

    #[inline]
    fn text(&self) -> &[u8] {
        match &self.column.values {
            Values::Texts(texts) => texts.get(self.r).unwrap_or_default().trim_ascii(),
            _ => b"",
        }
    }

    #[inline]
    fn is_missing(&self) -> bool {
        match &self.column.values {
            Values::Numbers(values) => values[self.r].is_nan(),
            _ => is_missing(self.text()),
        }
    }

    fn passthrough(&self) -> Option<&[u8]> {
        None
    }

    fn push_tokens(
        &self,
        space: &[u8],
        tokens: &mut Tokens,
        dictionary: &mut Dictionary,
        out: &mut BatchBuilder,
    ) {
        match &self.column.values {
            Values::TokenLists(ranges, texts) => {
                let each = ranges[self.r].clone().filter_map(|item| texts.get(item));
                tokens.push_each(space, each, dictionary, out);
            }
            _ => tokens.push(space, self.text(), dictionary, out),
        }
    }

    #[inline]
    fn push_entries(&self, keep_zeros: bool, out: &mut BatchBuilder) -> Result<(), LineError> {
        match &self.column.values {
            Values::Entries(entries) => entries.push(self.r, keep_zeros, out),
            _ => Ok(()),
        }
    }

    fn describe(&self) -> String {
        match &self.column.values {
            Values::Numbers(values) if !values[self.r].is_nan() => values[self.r].to_string(),
            Values::Texts(texts) if let Some(text) = texts.get(self.r) => {
                format!("'{}'", String::from_utf8_lossy(text).escape_debug())
            }
            _ => "null".to_owned(),
        }
    }
}

fn all_numbers(array: &ArrayRef) -> Vec<f64> {
    let mut values = Vec::with_capacity(array.len());
    numbers(array, &mut values);
    values
}
