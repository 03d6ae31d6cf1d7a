//! Which column of a file is the label, which are features.

use std::collections::BTreeSet;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::super::roles::{is_label_name, label_by_name, label_notice, refuse_two_roles};
use super::FormatOptions;
use crate::error::{Error, nearest};
use crate::schema::{Column, ColumnKind, Schema};

/// Where the parts of a record lie in one file: numbers of columns.
#[derive(Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) label: Option<usize>,
    pub(super) weight: Option<usize>,
    pub(super) group: Option<usize>,
    pub(super) features: Features,
}

/// Where the entries of a record come from.
#[derive(Debug, PartialEq)]
pub(super) enum Features {
    Table(Vec<Feature>),
    Lists { indices: usize, values: Option<usize> },
}

/// One feature column of a table.
#[derive(Debug, PartialEq)]
pub(super) struct Feature {
    pub(super) column: usize,
    pub(super) name: String,
    /// Position among the feature columns.
    pub(super) key: u64,
    pub(super) kind: ColumnKind,
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Number,
    Text,
    IntegerList,
    FloatList,
    /// Something that cannot be read, in words.
    Other(String),
}

struct Leaf {
    name: String,
    kind: Kind,
}

/// The columns of one file, while roles are given out.
struct Columns<'a> {
    file: &'a str,
    leaves: Vec<Leaf>,
    options: &'a FormatOptions,
}

/// The layout of a file, and its schema. With `like`, the features are those of that schema.
pub(super) fn of_file(
    file: &str,
    metadata: &ParquetMetaData,
    options: &FormatOptions,
    like: Option<&Schema>,
) -> Result<(Layout, Schema), Error> {
    let schema = metadata.file_metadata().schema_descr();
    let leaf = |i: usize| Leaf {
        name: schema.get_column_root(i).name().to_owned(),
        kind: kind_of(&schema.column(i), schema.get_column_root(i).is_group()),
    };
    let columns = Columns { file, leaves: (0..schema.num_columns()).map(leaf).collect(), options };
    columns.layout(like)
}

fn kind_of(column: &ColumnDescriptor, in_group: bool) -> Kind {
    use Kind::{FloatList, IntegerList, Number, Other, Text};
    if let Some(what) = unreadable(column) {
        return Other(what);
    }
    match (column.max_rep_level(), column.physical_type()) {
        (0, _) if in_group => Other("a struct".to_owned()),
        (0, Physical::BYTE_ARRAY) => Text,
        (0, _) => Number,
        (1, Physical::INT32 | Physical::INT64) if is_list(column) => IntegerList,
        (1, Physical::FLOAT | Physical::DOUBLE) if is_list(column) => FloatList,
        (1, _) if is_list(column) => Other("a list of something else than integers or floats".to_owned()),
        _ => Other("nested".to_owned()),
    }
}

/// A list has one leaf: `name.list.element` with whatever inner names, or a repeated field of the top level.
fn is_list(column: &ColumnDescriptor) -> bool {
    matches!(column.path().parts().len(), 1..=3)
}

fn unreadable(column: &ColumnDescriptor) -> Option<String> {
    let number = match column.physical_type() {
        Physical::INT96 => return Some("a timestamp".to_owned()),
        Physical::FIXED_LEN_BYTE_ARRAY => return Some("of fixed-size bytes".to_owned()),
        Physical::BYTE_ARRAY => false,
        _ => true,
    };
    let plain_number = matches!(column.logical_type_ref(), None | Some(LogicalType::Integer(_)));
    match column.converted_type() {
        ConvertedType::DECIMAL => Some("a decimal".to_owned()),
        other if number && !plain_number => Some(format!("a {other}").to_lowercase()),
        _ => None,
    }
}

impl Columns<'_> {
    fn layout(&self, like: Option<&Schema>) -> Result<(Layout, Schema), Error> {
        let weight = self.of_training(self.options.weight.as_deref(), like)?;
        let group = self.of_training(self.options.group.as_deref(), like)?;
        let mut taken: BTreeSet<usize> = weight.into_iter().chain(group).collect();
        for name in &self.options.skip_columns {
            // A column of training that is to be skipped may be absent here.
            match self.find(name) {
                Ok(column) => drop(self.of_same_name(column).map(|c| taken.insert(c)).count()),
                Err(_) if like.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        let label = self.label(&taken, like)?;
        self.refuse_two_roles(label, weight, group)?;
        taken.extend(label);
        let features = self.features(&taken, like)?;
        let name = |column: Option<usize>| column.map(|column| self.leaves[column].name.clone());
        let schema = Schema {
            columns: match &features {
                Features::Table(table) => {
                    table.iter().map(|f| Column { name: f.name.clone(), kind: f.kind }).collect()
                }
                Features::Lists { .. } => Vec::new(),
            },
            label: name(label),
            weight: name(weight),
            group: name(group),
            skip_columns: self.options.skip_columns.clone(),
            named: true,
            keep_zeros: self.options.keep_zeros,
            ..Schema::default()
        };
        // Predicting without labels leaves the label column, if it is there, unread.
        let label = label.filter(|_| self.options.has_label);
        Ok((Layout { label, weight, group, features }, schema))
    }

    /// An error when a setting gives a column a second role.
    fn refuse_two_roles(
        &self,
        label: Option<usize>,
        weight: Option<usize>,
        group: Option<usize>,
    ) -> Result<(), Error> {
        let names: Vec<&str> = self.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
        let skipped = self.options.skip_columns.iter().filter_map(|name| self.find(name).ok());
        let roles =
            [("label", label.filter(|_| self.options.has_label)), ("weight", weight), ("group", group)];
        let roles = roles.into_iter().filter_map(|(role, column)| Some((role, column?)));
        refuse_two_roles(
            self.file,
            &names,
            &roles.chain(skipped.map(|at| ("skip_columns", at))).collect::<Vec<_>>(),
        )
    }

    /// A column by name, else by its 0-based number.
    fn find(&self, name: &str) -> Result<usize, Error> {
        let by_name = self.leaves.iter().position(|leaf| leaf.name == name);
        let by_number = || name.parse().ok().filter(|number| *number < self.leaves.len());
        by_name.or_else(by_number).ok_or_else(|| {
            let names: Vec<&str> = self.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
            Error::UnknownColumn {
                file: self.file.to_owned(),
                column: name.to_owned(),
                nearest: nearest(name, names.iter().copied()),
                known: names.join(", "),
            }
        })
    }

    /// A column by name, which may be absent where nothing but scores is wanted.
    fn of_training(&self, name: Option<&str>, like: Option<&Schema>) -> Result<Option<usize>, Error> {
        let optional = like.is_some() && !self.options.has_label;
        match name.map(|name| self.find(name)) {
            None => Ok(None),
            Some(Err(_)) if optional => Ok(None),
            Some(found) => found.map(Some),
        }
    }

    /// The leaves of the same top-level column.
    fn of_same_name(&self, column: usize) -> impl Iterator<Item = usize> {
        (0..self.leaves.len()).filter(move |&other| self.leaves[other].name == self.leaves[column].name)
    }

    fn label(&self, taken: &BTreeSet<usize>, like: Option<&Schema>) -> Result<Option<usize>, Error> {
        let of_training = || like.and_then(|schema| schema.label.as_ref());
        if let Some(name) = self.options.label.as_ref().or_else(of_training) {
            return match self.find(name) {
                Err(_) if !self.options.has_label => Ok(None),
                found => found.and_then(|column| self.check(column, "a label")).map(Some),
            };
        }
        let names: Vec<&str> = self.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
        if let Some(column) = label_by_name(self.file, &names, |column| taken.contains(&column))? {
            return self.check(column, "a label").map(Some);
        }
        if !self.options.has_label {
            return Ok(None);
        }
        let scalar = |i: &usize| matches!(self.leaves[*i].kind, Kind::Number | Kind::Text);
        let last = (0..self.leaves.len()).rev().find(|i| scalar(i) && !taken.contains(i));
        last.map_or_else(|| self.find("label"), Ok).map(Some)
    }

    /// `column`, if it is one value a record.
    fn check(&self, column: usize, role: &str) -> Result<usize, Error> {
        match &self.leaves[column].kind {
            Kind::Number | Kind::Text => Ok(column),
            other => Err(self.wrong_type(column, &format!("{role} is a number or a string"), other)),
        }
    }

    fn wrong_type(&self, column: usize, expected: &str, kind: &Kind) -> Error {
        let is = match kind {
            Kind::Number => "a number",
            Kind::Text => "a string",
            Kind::IntegerList => "a list of integers",
            Kind::FloatList => "a list of floats",
            Kind::Other(what) => what,
        };
        let name = &self.leaves[column].name;
        let reason = format!(
            "column '{name}' is {is}; {expected}; convert it to integers, floats, booleans or strings, \
             or leave it out (skip_columns)"
        );
        super::bad_file(self.file, reason)
    }

    fn features(&self, taken: &BTreeSet<usize>, like: Option<&Schema>) -> Result<Features, Error> {
        let free: Vec<usize> = (0..self.leaves.len()).filter(|i| !taken.contains(i)).collect();
        let Some(indices) = self.list(&free, &Kind::IntegerList, "indices")? else {
            return self.table(&free, like);
        };
        if let Some(column) = like.and_then(|schema| schema.columns.first()) {
            return Err(self.differs(format!(
                "column '{}' of training is not there, a list of indices is",
                column.name
            )));
        }
        let floats = self.list(&free, &Kind::FloatList, "values")?;
        let named = free.iter().copied().find(|&i| i != indices && self.leaves[i].name == "values");
        let values = floats.or(named.filter(|&i| self.leaves[i].kind == Kind::IntegerList));
        match free.iter().find(|&&i| i != indices && Some(i) != values) {
            Some(&other) => {
                let expected =
                    "a file with a list of indices has no other features: name it as weight or group";
                Err(self.wrong_type(other, expected, &self.leaves[other].kind))
            }
            None => Ok(Features::Lists { indices, values }),
        }
    }

    /// The only list of this kind, or the one of this name.
    fn list(&self, free: &[usize], kind: &Kind, name: &str) -> Result<Option<usize>, Error> {
        let lists: Vec<usize> = free.iter().copied().filter(|&i| self.leaves[i].kind == *kind).collect();
        let named = lists.iter().copied().find(|&i| self.leaves[i].name == name);
        match lists[..] {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            [first, ..] => named.map(Some).ok_or_else(|| {
                let expected = format!("of several such lists one must be named '{name}'");
                self.wrong_type(first, &expected, kind)
            }),
        }
    }

    fn table(&self, free: &[usize], like: Option<&Schema>) -> Result<Features, Error> {
        let columns: Vec<(usize, Option<ColumnKind>)> = match like {
            None => free.iter().map(|&column| (column, None)).collect(),
            Some(schema) => self.same_columns(free, schema)?,
        };
        let mut table = Vec::with_capacity(columns.len());
        for ((column, kind), key) in columns.into_iter().zip(0..) {
            let kind = self.feature_kind(column, kind)?;
            table.push(Feature { column, name: self.leaves[column].name.clone(), key, kind });
        }
        Ok(Features::Table(table))
    }

    fn feature_kind(&self, column: usize, like: Option<ColumnKind>) -> Result<ColumnKind, Error> {
        let name = &self.leaves[column].name;
        let declared_text = self.options.text_columns.contains(name);
        match (&self.leaves[column].kind, like) {
            (Kind::Text, Some(ColumnKind::Numeric)) => {
                Err(self.differs(format!("column '{name}' is a string here and was a number in training")))
            }
            (Kind::Text, _) | (Kind::Number, Some(ColumnKind::Text)) => Ok(ColumnKind::Text),
            (Kind::Number, None) if declared_text => Ok(ColumnKind::Text),
            (Kind::Number, _) => Ok(ColumnKind::Numeric),
            (other, _) => Err(self.wrong_type(column, "a feature is a number or a string", other)),
        }
    }

    /// The columns of `schema` in its order; all of them must be there, and no others.
    fn same_columns(
        &self,
        free: &[usize],
        schema: &Schema,
    ) -> Result<Vec<(usize, Option<ColumnKind>)>, Error> {
        let mut columns = Vec::with_capacity(schema.columns.len());
        for known in &schema.columns {
            let here = free.iter().copied().find(|&i| self.leaves[i].name == known.name);
            let column = here.ok_or_else(|| self.differs(format!("column '{}' is not there", known.name)))?;
            columns.push((column, Some(known.kind)));
        }
        match free.iter().find(|&&i| columns.iter().all(|(column, _)| *column != i)) {
            Some(&extra) => Err(self.differs(format!(
                "column '{}' was not there; leave it out (skip_columns)",
                self.leaves[extra].name
            ))),
            None => Ok(columns),
        }
    }

    fn differs(&self, difference: String) -> Error {
        Error::SchemaDiffers { file: self.file.to_owned(), difference }
    }
}

/// What the user is told when the label of a file was not asked for.
pub(super) fn notice_of_label(options: &FormatOptions, schema: &Schema) -> Option<String> {
    let name = schema.label.as_ref().filter(|_| options.label.is_none() && options.has_label)?;
    Some(label_notice(name, if is_label_name(name) { "by its name" } else { "the last" }))
}

/// Whether entries of a list may be null.
pub(super) fn has_optional_element(column: &ColumnDescriptor) -> bool {
    let info = column.self_type().get_basic_info();
    info.has_repetition() && info.repetition() == Repetition::OPTIONAL
}
