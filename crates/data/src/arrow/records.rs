//! One record batch after another into a sink.

use std::collections::BTreeMap;

use arrow_array::ArrayRef;
use math::hash::{NAMED_KEY_BIT, named_key};

use super::column::{Texts, numbers};
use super::layout::{Features, Layout};
use super::sparse::Sparse;
use super::{Fault, finite};
use crate::error::nearest;
use crate::format::dictionary::Dictionary;
use crate::number::whole_double;
use crate::schema::{ColumnKind, Schema};
use crate::sink::Sink;

/// The record batch that was loaded last, column by column.
pub(crate) struct Records {
    label: Option<(usize, Label)>,
    weight: Option<(usize, Vec<f64>)>,
    /// Its name and its values as text.
    group: Option<(String, Texts)>,
    features: FeatureColumns,
    /// Columns that are carried along.
    kept: Vec<Texts>,
    label_names: Vec<String>,
    keep_zeros: bool,
    dictionary: Dictionary,
}

enum Label {
    Number(Vec<f64>),
    /// Numbers that are written as strings.
    Written(Texts),
    Name(Texts),
}

enum FeatureColumns {
    Table(Vec<FeatureColumn>),
    Sparse(Box<Sparse>),
}

/// A feature column of a table: its key, or its name when each value is a key of its own.
enum FeatureColumn {
    Number { key: u64, column: usize, values: Vec<f64> },
    Text { name: String, texts: Texts },
}

impl Records {
    /// Records are read as `schema` says.
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            label: None,
            weight: None,
            group: None,
            features: FeatureColumns::Table(Vec::new()),
            kept: Vec::new(),
            label_names: schema.label_names.clone(),
            keep_zeros: schema.keep_zeros,
            dictionary: Dictionary::default(),
        }
    }

    /// Takes the columns of a batch: those of [`Layout::fields`], in that order.
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
                (true, true) => Label::Written(Texts::of(array)),
                (_, false) => Label::Name(Texts::of(array)),
                (false, true) => Label::Number(all_numbers(array)),
            };
            (number, label)
        });
        self.weight = layout.weight.map(|number| (number, all_numbers(column(number))));
        self.group = layout.group.as_ref().map(|(number, name)| (name.clone(), Texts::of(column(*number))));
        self.kept = layout.kept.iter().map(|number| Texts::of(column(*number))).collect();
        self.features = match &layout.features {
            Features::Table(table) => FeatureColumns::Table(
                table
                    .iter()
                    .map(|feature| match feature.kind {
                        ColumnKind::Numeric => FeatureColumn::Number {
                            key: feature.key,
                            column: feature.column,
                            values: all_numbers(column(feature.column)),
                        },
                        ColumnKind::Text => FeatureColumn::Text {
                            name: feature.name.clone(),
                            texts: Texts::of(column(feature.column)),
                        },
                    })
                    .collect(),
            ),
            Features::Lists { indices, values } => FeatureColumns::Sparse(Box::new(Sparse::lists(
                (*indices, column(*indices)),
                values.map(|values| (values, column(values))),
            ))),
            Features::Column(number) => {
                FeatureColumns::Sparse(Box::new(Sparse::column(*number, column(*number))))
            }
        };
    }

    /// Record `r` of the batch into the sink, or what is wrong with it.
    #[inline]
    pub(crate) fn push(&mut self, r: usize, sink: &mut Sink) -> Result<(), Fault> {
        let label = self.label(r)?;
        let weight = self.weight(r)?;
        let group =
            self.group.as_ref().map(|(name, texts)| group_key(name, texts.get(r).unwrap_or_default()));
        let (keep_zeros, dictionary) = (self.keep_zeros, &mut self.dictionary);
        let pushed = match &self.features {
            FeatureColumns::Table(table) => push_table(table, r, keep_zeros, sink, dictionary),
            FeatureColumns::Sparse(sparse) => sparse.push(r, keep_zeros, sink.builder()),
        };
        if let Err(fault) = pushed {
            sink.abandon();
            return Err(fault);
        }
        for texts in &self.kept {
            sink.builder().carry(texts.get(r).unwrap_or_default());
        }
        let column = self.label.as_ref().map_or(0, |(number, _)| *number);
        sink.end_record(label, weight, group)
            .map_err(|expected| (column, expected, label.unwrap_or_default().to_string()))
    }

    /// Names of hashed keys met since the last call.
    pub(crate) fn take_dictionary(&mut self) -> BTreeMap<u64, String> {
        self.dictionary.take()
    }

    /// What the user should know.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.dictionary.notices()
    }

    fn label(&self, r: usize) -> Result<Option<f64>, Fault> {
        let Some((number, label)) = &self.label else { return Ok(None) };
        let missing = || (*number, "a label".to_owned(), "null".to_owned());
        match label {
            Label::Number(values) if values[r].is_nan() => Err(missing()),
            Label::Number(values) => Ok(Some(values[r])),
            Label::Written(texts) => {
                let text = texts.get(r).ok_or_else(missing)?;
                let value = whole_double(text).filter(|value| value.is_finite());
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

fn all_numbers(array: &ArrayRef) -> Vec<f64> {
    let mut values = Vec::with_capacity(array.len());
    numbers(array, &mut values);
    values
}

/// A whole number is its own group; anything else is hashed, as in CSV.
fn group_key(column: &str, text: &[u8]) -> u64 {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|number| *number < NAMED_KEY_BIT).unwrap_or_else(|| named_key(column.as_bytes(), text))
}

fn push_table(
    table: &[FeatureColumn],
    r: usize,
    keep_zeros: bool,
    sink: &mut Sink,
    dictionary: &mut Dictionary,
) -> Result<(), Fault> {
    let builder = sink.builder();
    for feature in table {
        match feature {
            FeatureColumn::Number { key, column, values } => {
                let value = values[r];
                if value.is_nan() || (value == 0.0 && !keep_zeros) {
                    continue;
                }
                builder.push(*key, finite(value as f32, value, *column)?);
            }
            FeatureColumn::Text { name, texts } => {
                if let Some(value) = texts.get(r) {
                    let key = named_key(name.as_bytes(), value);
                    dictionary.add(key, name.as_bytes(), b'=', value);
                    builder.push_one(key);
                }
            }
        }
    }
    Ok(())
}
