//! Pushes the records of one record batch after another into a sink.

use std::ops::Range;

use crate::key_names::KeyNames;

use arrow_array::ArrayRef;
use math::hash::{NAMED_KEY_BIT, named_key};

use super::column::{TextColumn, numbers};
use super::kind::ArrowKind;
use super::layout::{Feature, Features, Layout};
use super::sparse::{Sparse, ranges};
use super::{Fault, finite, loses_digits};
use crate::batch::BatchBuilder;
use crate::error::nearest;
use crate::format::dictionary::{Dictionary, MISSING};
use crate::format::token_features::Tokens;
use crate::interactions::{InteractionGenerator, push_products};
use crate::number::parse_f64;
use crate::schema::{ColumnKind, Schema};
use crate::sink::Sink;
use crate::time::parse_time;

/// The record batch that was loaded last, column by column.
pub(crate) struct RecordColumns {
    label: Option<(usize, Label)>,
    weight: Option<(usize, Vec<f64>)>,
    /// Name of the group column and its values as text.
    group: Option<(String, TextColumn)>,
    time: Option<(usize, Time)>,
    features: FeatureColumns,
    /// Texts of the passthrough columns.
    passthrough: Vec<TextColumn>,
    label_names: Vec<String>,
    keep_zeros: bool,
    has_fields: bool,
    mark_missing: bool,
    dictionary: Dictionary,
    tokens: Tokens,
    /// The first batch creates it.
    multiplier: Option<InteractionGenerator>,
    /// The first number of the present record that f32 rounds, with its column.
    rounded: Option<(usize, f64)>,
}

enum Label {
    Number(Vec<f64>),
    /// Numbers that are stored as strings.
    NumberText(TextColumn),
    Name(TextColumn),
}

enum Time {
    /// Numbers, or seconds since 1970.
    Number(Vec<f64>),
    Text(TextColumn),
}

enum FeatureColumns {
    Table(Vec<FeatureColumn>),
    Sparse(Box<Sparse>),
}

/// A feature column of a table.
struct FeatureColumn {
    name: String,
    column: usize,
    /// Position among the interaction groups.
    interaction_group: Option<usize>,
    values: Values,
}

/// Numbers with the key of the column, or strings, each of which has its own key, as each of their tokens has.
enum Values {
    Numbers(u64, Vec<f64>),
    Texts(TextColumn),
    Tokens(TextColumn),
    /// The tokens of all records, and the range of each record in them.
    TokenLists(Vec<Range<usize>>, TextColumn),
}

impl RecordColumns {
    /// Makes a reader of records with the settings of `schema`.
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            label: None,
            weight: None,
            group: None,
            time: None,
            features: FeatureColumns::Table(Vec::new()),
            passthrough: Vec::new(),
            label_names: schema.label_names.clone(),
            keep_zeros: schema.keep_zeros,
            has_fields: schema.fields,
            mark_missing: schema.mark_missing,
            dictionary: Dictionary::default(),
            tokens: Tokens::new(schema.token_order),
            multiplier: None,
            rounded: None,
        }
    }

    /// Loads the columns of a batch, which are those of [`Layout::fields`] in that order.
    pub(crate) fn load(&mut self, layout: &Layout, columns: &[ArrayRef]) {
        let fields = layout.fields();
        assert_eq!(fields.len(), columns.len(), "load: one column a field");
        let column = |number: usize| {
            let at = fields.binary_search(&number).expect("the layout names its fields");
            &columns[at]
        };
        self.label = layout.label.map(|number| {
            let array = column(number);
            let label = match (layout.label_is_text, self.label_names.is_empty()) {
                (true, true) => Label::NumberText(TextColumn::of(array)),
                (_, false) => Label::Name(TextColumn::of(array)),
                (false, true) => Label::Number(all_numbers(array)),
            };
            (number, label)
        });
        self.weight = layout.weight.map(|number| (number, all_numbers(column(number))));
        self.group =
            layout.group.as_ref().map(|(number, name)| (name.clone(), TextColumn::of(column(*number))));
        self.time = layout.time.map(|(number, is_text)| {
            let array = column(number);
            let text = || Time::Text(TextColumn::of(array));
            (number, if is_text { text() } else { Time::Number(all_numbers(array)) })
        });
        self.passthrough = layout.passthrough.iter().map(|number| TextColumn::of(column(*number))).collect();
        let feature_column = |feature: &Feature| FeatureColumn {
            name: feature.name.clone(),
            column: feature.column,
            interaction_group: feature.interaction_group,
            values: match feature.kind {
                ColumnKind::Numeric => Values::Numbers(feature.key, all_numbers(column(feature.column))),
                ColumnKind::Text => Values::Texts(TextColumn::of(column(feature.column))),
                ColumnKind::Tokens => tokens(column(feature.column)),
            },
        };
        self.multiplier
            .get_or_insert_with(|| InteractionGenerator::new(layout.interactions.clone(), self.keep_zeros));
        self.features = match &layout.features {
            Features::Table(table) => FeatureColumns::Table(table.iter().map(feature_column).collect()),
            Features::Lists { indices, values } => FeatureColumns::Sparse(Box::new(Sparse::lists(
                (*indices, column(*indices)),
                values.map(|values| (values, column(values))),
            ))),
            Features::Column(number) => {
                FeatureColumns::Sparse(Box::new(Sparse::column(*number, column(*number))))
            }
        };
    }

    /// Pushes record `r` of the batch into the sink, or returns its error.
    #[inline]
    pub(crate) fn push(&mut self, r: usize, sink: &mut Sink) -> Result<(), Fault> {
        let label = self.label(r)?;
        let weight = self.weight(r)?;
        let group =
            self.group.as_ref().map(|(name, texts)| group_key(name, texts.get(r).unwrap_or_default()));
        let time = self.time(r)?;
        let pushed = match &self.features {
            FeatureColumns::Table(_) => self.push_table(r, sink.builder()),
            FeatureColumns::Sparse(sparse) => {
                if self.rounded.is_none() {
                    self.rounded = sparse.rounded_in(r);
                }
                sparse.push(r, self.keep_zeros, sink.builder())
            }
        };
        if let Err(fault) = pushed {
            sink.discard_record();
            return Err(fault);
        }
        for texts in &self.passthrough {
            sink.builder().push_passthrough(texts.get(r).unwrap_or_default());
        }
        if let Some(time) = time {
            sink.builder().set_time(time);
        }
        let column = self.label.as_ref().map_or(0, |(number, _)| *number);
        sink.end_record(label, weight, group)
            .map_err(|expected| (column, expected, label.unwrap_or_default().to_string()))
    }

    /// Takes the first number of the last record that f32 rounds, with its column.
    pub(crate) fn take_rounded(&mut self) -> Option<(usize, f64)> {
        self.rounded.take()
    }

    /// The number of the label column.
    pub(crate) fn label_column(&self) -> Option<usize> {
        self.label.as_ref().map(|(number, _)| *number)
    }

    /// Takes the names of hashed keys that are new since the last call.
    pub(crate) fn take_dictionary(&mut self) -> KeyNames {
        self.dictionary.take()
    }

    /// Notices for the user.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.dictionary.notices()
    }

    fn push_table(&mut self, r: usize, builder: &mut BatchBuilder) -> Result<(), Fault> {
        let FeatureColumns::Table(table) = &self.features else { return Ok(()) };
        let mut multiplier = self.multiplier.as_mut().filter(|multiplier| !multiplier.is_empty());
        if let Some(multiplier) = &mut multiplier {
            multiplier.clear();
        }
        for (field, FeatureColumn { name, column, interaction_group: group, values }) in (0..).zip(table) {
            let (key, value, text) = match values {
                Values::Numbers(key, values) => {
                    let value = values[r];
                    if value.is_nan() {
                        if self.mark_missing {
                            builder.push_one(text_key(name, MISSING, &mut self.dictionary));
                            if self.has_fields {
                                builder.mark_field(field);
                            }
                        }
                        continue;
                    }
                    if value == 0.0 && !self.keep_zeros {
                        continue;
                    }
                    let single = finite(value as f32, value, *column)?;
                    if loses_digits(value, single) && self.rounded.is_none() {
                        self.rounded = Some((*column, value));
                    }
                    builder.push(*key, single);
                    (*key, single, None)
                }
                Values::Texts(texts) => {
                    let Some(text) = texts.get(r) else { continue };
                    let key = text_key(name, text, &mut self.dictionary);
                    builder.push_one(key);
                    (key, 1.0, Some(text))
                }
                Values::Tokens(_) | Values::TokenLists(..) => {
                    push_tokens(values, r, name.as_bytes(), &mut self.tokens, &mut self.dictionary, builder);
                    if self.has_fields {
                        builder.mark_field(field);
                    }
                    continue;
                }
            };
            if self.has_fields {
                builder.mark_field(field);
            }
            if let (Some(multiplier), Some(group)) = (&mut multiplier, group) {
                multiplier.add(*group, key, value, || match text {
                    Some(text) => format!("{name}={}", String::from_utf8_lossy(text)),
                    None => name.clone(),
                });
            }
        }
        if let Some(multiplier) = multiplier {
            push_products(multiplier, &mut self.dictionary, builder)
                .map_err(|error| (0, error.expected.into_owned(), error.found))?;
            if self.has_fields {
                builder.mark_field(table.len() as u32);
            }
        }
        Ok(())
    }

    fn label(&self, r: usize) -> Result<Option<f64>, Fault> {
        let Some((number, label)) = &self.label else { return Ok(None) };
        let missing = || (*number, "a label".to_owned(), "null".to_owned());
        match label {
            Label::Number(values) if values[r].is_nan() => Err(missing()),
            Label::Number(values) => Ok(Some(values[r])),
            Label::NumberText(texts) => {
                let text = texts.get(r).ok_or_else(missing)?;
                let value = parse_f64(text).filter(|value| value.is_finite());
                value.map(Some).ok_or_else(|| {
                    (
                        *number,
                        "a finite number as the label".to_owned(),
                        String::from_utf8_lossy(text).into_owned(),
                    )
                })
            }
            Label::Name(texts) => {
                let name = String::from_utf8_lossy(texts.get(r).ok_or_else(missing)?);
                let class = self.label_names.binary_search_by(|known| known.as_str().cmp(&name));
                class.map(|class| Some(class as f64)).map_err(|_| {
                    let hint = nearest(&name, self.label_names.iter().map(String::as_str))
                        .map_or(String::new(), |name| format!(", did you mean '{name}'?"));
                    let count = self.label_names.len();
                    (*number, format!("one of the {count} label names of training{hint}"), name.into_owned())
                })
            }
        }
    }

    fn weight(&self, r: usize) -> Result<f32, Fault> {
        let Some((number, values)) = &self.weight else { return Ok(1.0) };
        let value = values[r] as f32;
        if value.is_finite() && value >= 0.0 {
            return Ok(value);
        }
        Err((*number, "a finite weight, 0 or more".to_owned(), values[r].to_string()))
    }
}

impl RecordColumns {
    fn time(&self, r: usize) -> Result<Option<f64>, Fault> {
        let Some((number, time)) = &self.time else { return Ok(None) };
        let (found, text) = match time {
            Time::Number(values) => {
                (Some(values[r]).filter(|value| value.is_finite()), values[r].to_string())
            }
            Time::Text(texts) => {
                let text = texts.get(r).unwrap_or_default();
                (parse_time(text), String::from_utf8_lossy(text).into_owned())
            }
        };
        let expected = || (*number, "a time: a number, or a date as in 2026-01-31".to_owned(), text);
        found.map(Some).ok_or_else(expected)
    }
}

/// The tokens of a column of texts, or of lists of strings.
fn tokens(array: &ArrayRef) -> Values {
    match ArrowKind::of(array.data_type()) {
        ArrowKind::TextList => {
            let (ranges, items) = ranges(array);
            Values::TokenLists(ranges, TextColumn::of(&items))
        }
        _ => Values::Tokens(TextColumn::of(array)),
    }
}

/// Pushes the tokens of record `r`. A null has none.
fn push_tokens(
    values: &Values,
    r: usize,
    space: &[u8],
    tokens: &mut Tokens,
    dictionary: &mut Dictionary,
    builder: &mut BatchBuilder,
) {
    match values {
        Values::Tokens(texts) => {
            if let Some(text) = texts.get(r) {
                tokens.push(space, text, dictionary, builder);
            }
        }
        Values::TokenLists(ranges, texts) => {
            let each = ranges[r].clone().filter_map(|item| texts.get(item));
            tokens.push_each(space, each, dictionary, builder);
        }
        Values::Numbers(..) | Values::Texts(_) => {}
    }
}

fn all_numbers(array: &ArrayRef) -> Vec<f64> {
    let mut values = Vec::with_capacity(array.len());
    numbers(array, &mut values);
    values
}

/// An integer is the group itself; any other value is hashed, as in CSV.
fn group_key(column: &str, text: &[u8]) -> u64 {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|number| *number < NAMED_KEY_BIT).unwrap_or_else(|| named_key(column.as_bytes(), text))
}

/// Returns the key of a value of a text column.
fn text_key(name: &str, value: &[u8], dictionary: &mut Dictionary) -> u64 {
    let key = named_key(name.as_bytes(), value);
    dictionary.add(key, name.as_bytes(), b'=', value);
    key
}
