//! Formats with columns (dense, CSV): what each column is for, from settings, names, the first rows, or the schema of
//! training.

use super::FormatContext;
use crate::Error;
use crate::error::nearest;
use crate::number::whole_double;
use crate::options::FormatOptions;
use crate::schema::{Column, ColumnKind, Schema};

/// What a column is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Label,
    Weight,
    Group,
    Skip,
    /// A number; its key.
    Numeric(u64),
    /// A name; the column is its space.
    Text,
}

/// The columns of a file, in its order.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    pub(super) roles: Vec<Role>,
    /// Feature columns, in the order of their keys.
    pub(super) features: Vec<Column>,
    pub(super) named: bool,
    pub(super) delimiter: u8,
}

/// A file as it presents itself.
pub(super) struct Found {
    /// Names in the header, or positions.
    pub(super) names: Vec<String>,
    /// Whether each column holds numbers, as far as it was looked at.
    pub(super) numeric: Vec<bool>,
    pub(super) named: bool,
    pub(super) delimiter: u8,
    /// Which column is the label when nobody says so.
    pub(super) default_label: usize,
}

/// Whether a field stands for a missing value.
#[inline]
pub(super) fn is_missing(field: &[u8]) -> bool {
    match field.len() {
        0 => true,
        1 => field == b"?",
        2 => field == b"NA",
        3 => matches!(field, b"N/A" | b"NaN" | b"nan"),
        4 => matches!(field, b"null" | b"NULL"),
        _ => false,
    }
}

/// Whether a field could stand in a column of numbers.
pub(super) fn is_number(field: &[u8]) -> bool {
    is_missing(field) || whole_double(field).is_some()
}

/// Decides what each column is for.
pub(super) fn assign(context: &FormatContext<'_>, found: &Found) -> Result<Columns, Error> {
    let file = context.files[0].name();
    refuse_twins(file, &found.names)?;
    let options = context.options;
    let mut names = found.names.clone();
    let label = label_column(context, found, &mut names)?;
    let weight = find(file, &names, options.weight.as_deref())?;
    let group = find(file, &names, options.group.as_deref())?;
    let mut skip = Vec::new();
    for column in &options.skip_columns {
        // A column that training left out may be absent now.
        match find(file, &names, Some(column)) {
            Ok(at) => skip.extend(at),
            Err(_) if context.like.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    let mut text = vec![false; names.len()];
    for column in &options.text_columns {
        text[find(file, &names, Some(column))?.expect("a column was asked for")] = true;
    }
    let mut roles = Vec::new();
    let mut features = Vec::new();
    for at in 0..names.len() {
        let role = if Some(at) == label {
            if options.has_label { Role::Label } else { Role::Skip }
        } else if Some(at) == weight {
            Role::Weight
        } else if Some(at) == group {
            Role::Group
        } else if skip.contains(&at) {
            Role::Skip
        } else {
            let kind = if found.numeric[at] && !text[at] { ColumnKind::Numeric } else { ColumnKind::Text };
            features.push(Column { name: names[at].clone(), kind });
            match kind {
                ColumnKind::Numeric => Role::Numeric(features.len() as u64 - 1),
                ColumnKind::Text => Role::Text,
            }
        };
        roles.push(role);
    }
    let mut columns = Columns { names, roles, features, named: found.named, delimiter: found.delimiter };
    if let Some(schema) = context.like {
        columns.be_like(file, schema)?;
    }
    Ok(columns)
}

/// Where the label stands. A file without header and without label, read like one with a label, gets its names moved.
fn label_column(
    context: &FormatContext<'_>,
    found: &Found,
    names: &mut [String],
) -> Result<Option<usize>, Error> {
    let options = context.options;
    let file = context.files[0].name();
    if options.has_label {
        let asked = find(file, names, options.label.as_deref())?;
        return Ok(asked.or((!names.is_empty()).then_some(found.default_label)));
    }
    let Some(label) = context.like.and_then(|schema| schema.label.as_deref()).or(options.label.as_deref())
    else {
        return Ok(None);
    };
    if found.named {
        return Ok(find(file, names, Some(label)).ok().flatten());
    }
    let Ok(label) = label.parse::<usize>() else { return Ok(None) };
    let used = context.like.map_or(usize::MAX, |schema| used_columns(schema, options));
    if names.len() > used {
        return Ok(Some(label).filter(|label| *label < names.len()));
    }
    for (at, name) in names.iter_mut().enumerate().skip(label) {
        *name = (at + 1).to_string();
    }
    Ok(None)
}

/// Columns of a file without its label.
fn used_columns(schema: &Schema, options: &FormatOptions) -> usize {
    schema.columns.len()
        + usize::from(options.weight.is_some())
        + usize::from(options.group.is_some())
        + options.skip_columns.len()
}

/// The position of a column that is asked for by name or number.
pub(super) fn find(file: &str, names: &[String], asked: Option<&str>) -> Result<Option<usize>, Error> {
    let Some(asked) = asked else { return Ok(None) };
    // A file of blank lines has no columns, and no record that would miss one.
    if names.is_empty() {
        return Ok(None);
    }
    let by_number = || asked.parse::<usize>().ok().filter(|at| *at < names.len());
    names.iter().position(|name| name == asked).or_else(by_number).map(Some).ok_or_else(|| {
        Error::UnknownColumn {
            file: file.to_owned(),
            column: asked.to_owned(),
            nearest: nearest(asked, names.iter().map(String::as_str)),
            known: names.join(", "),
        }
    })
}

fn refuse_twins(file: &str, names: &[String]) -> Result<(), Error> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::BadFile {
            file: file.to_owned(),
            record: None,
            reason: format!("two columns are called '{}'; give each its own name", pair[0]),
        }),
    }
}

impl Columns {
    /// The schema of this file.
    pub(super) fn schema(&self, options: &FormatOptions) -> Schema {
        let name_of =
            |role: Role| self.roles.iter().position(|r| *r == role).map(|at| self.names[at].clone());
        Schema {
            columns: self.features.clone(),
            label: name_of(Role::Label),
            weight: name_of(Role::Weight),
            group: name_of(Role::Group),
            skip_columns: options.skip_columns.clone(),
            named: self.named,
            delimiter: Some(self.delimiter),
            keep_zeros: options.keep_zeros,
            ..Schema::default()
        }
    }

    /// Position of the label.
    pub(super) fn label(&self) -> Option<usize> {
        self.roles.iter().position(|role| *role == Role::Label)
    }

    /// Takes kinds and keys from the schema of training, column by column by name.
    fn be_like(&mut self, file: &str, schema: &Schema) -> Result<(), Error> {
        if self.names.is_empty() {
            return Ok(());
        }
        let differs = |difference: String| Error::SchemaDiffers { file: file.to_owned(), difference };
        let mine = |name: &str| self.features.iter().any(|column| column.name == name);
        let missing: Vec<&str> =
            schema.columns.iter().map(|column| column.name.as_str()).filter(|name| !mine(name)).collect();
        if !missing.is_empty() {
            return Err(differs(format!(
                "{} of the {} feature columns are missing: {}",
                missing.len(),
                schema.columns.len(),
                missing.join(", ")
            )));
        }
        for at in 0..self.names.len() {
            if !matches!(self.roles[at], Role::Numeric(_) | Role::Text) {
                continue;
            }
            let name = &self.names[at];
            let Some(key) = schema.columns.iter().position(|column| column.name == *name) else {
                let count = self.features.len();
                return Err(differs(format!(
                    "column '{name}' was not there ({count} feature columns here, {} then); leave it out with \
                     --skip-columns '{name}', or take it out of the file",
                    schema.columns.len()
                )));
            };
            self.roles[at] = match schema.columns[key].kind {
                ColumnKind::Numeric => Role::Numeric(key as u64),
                ColumnKind::Text => Role::Text,
            };
        }
        self.features.clone_from(&schema.columns);
        Ok(())
    }
}
