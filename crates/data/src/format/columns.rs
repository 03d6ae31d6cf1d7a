//! Formats with columns (dense, CSV): what each column is for, from settings, names, the first rows, or the schema of
//! training.

use super::FormatContext;
use crate::Error;
use crate::error::nearest;
use crate::number::whole_double;
use crate::options::{FormatOptions, Purpose};
use crate::schema::{CarriedColumn, CarriedKind, Column, ColumnKind, Schema};

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
    /// The columns to carry into the predictions, in the order asked for.
    pub(super) kept: Vec<Kept>,
    /// What the user should know.
    pub(super) notices: Vec<String>,
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
    /// The columns to carry into the predictions, in the order asked for.
    pub(super) kept: Vec<Kept>,
}

/// A column to carry into the predictions.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) at: usize,
    pub(super) name: String,
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
    let (names, like) = (found.names.clone(), context.like);
    let mut notices = Vec::new();
    let label = label_column(context, found)?;
    let mut asked_or_trained = |asked: &Option<String>, trained: Option<&String>| {
        asked_or_trained(context, found, asked.as_deref(), trained.map(String::as_str), &mut notices)
    };
    let weight = asked_or_trained(&options.weight, like.and_then(|schema| schema.weight.as_ref()))?;
    let group = asked_or_trained(&options.group, like.and_then(|schema| schema.group.as_ref()))?;
    let mut skip = Vec::new();
    for column in &options.skip_columns {
        if like.is_some_and(|schema| schema.skip_columns.contains(column)) {
            // A column that training left out may be absent now.
            skip.extend(names.iter().position(|name| name == column));
        } else {
            skip.extend(find(file, &names, Some(column))?);
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
        } else if skip.contains(&at) || is_no_feature_of(like, found, at) {
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
    let Found { named, delimiter, .. } = *found;
    let mut columns = Columns { names, roles, features, named, delimiter, kept: found.kept.clone(), notices };
    if let Some(schema) = context.like {
        columns.be_like(file, schema)?;
    }
    Ok(columns)
}

/// Whether training knew this column as something else than a feature, or does not know it, and it is carried along.
fn is_no_feature_of(like: Option<&Schema>, found: &Found, at: usize) -> bool {
    let name = &found.names[at];
    like.is_some_and(|schema| {
        let is = |column: &Option<String>| column.as_ref() == Some(name);
        let known = schema.columns.iter().any(|column| column.name == *name);
        !known && (is(&schema.weight) || is(&schema.group) || found.kept.iter().any(|kept| kept.at == at))
    })
}

/// Where the label stands.
fn label_column(context: &FormatContext<'_>, found: &Found) -> Result<Option<usize>, Error> {
    let options = context.options;
    let file = context.files[0].name();
    if options.has_label {
        let asked = find(file, &found.names, options.label.as_deref())?;
        return Ok(asked.or((!found.names.is_empty()).then_some(found.default_label)));
    }
    // Not by number: where names are places, the file may have another column at that place.
    Ok(match context.like.and_then(|schema| schema.label.as_ref()) {
        Some(label) => found.names.iter().position(|name| name == label),
        None => find(file, &found.names, options.label.as_deref()).ok().flatten(),
    })
}

/// The column of weights or groups: the one asked for, or that of training, which may be absent or need not be read.
fn asked_or_trained(
    context: &FormatContext<'_>,
    found: &Found,
    asked: Option<&str>,
    trained: Option<&str>,
    notices: &mut Vec<String>,
) -> Result<Option<usize>, Error> {
    let file = context.files[0].name();
    let (None, Some(trained), Purpose::Evaluation) = (asked, trained, context.options.purpose) else {
        return find(file, &found.names, asked);
    };
    let at = found.names.iter().position(|name| name == trained);
    if at.is_none() && !found.names.is_empty() {
        notices.push(format!(
            "{file} has no column '{trained}', which training took for weights or groups: every record counts the same"
        ));
    }
    Ok(at)
}

/// The columns to carry into the predictions, in the order asked for.
pub(super) fn kept(context: &FormatContext<'_>, found: &Found) -> Result<Vec<Kept>, Error> {
    let file = context.files[0].name();
    let mut kept: Vec<Kept> = Vec::new();
    for asked in &context.options.keep_columns {
        let Some(at) = find(file, &found.names, Some(asked))? else { continue };
        if kept.iter().any(|column| column.at == at) {
            let reason = format!("column '{asked}' is asked for twice");
            return Err(Error::BadOption { option: "keep_columns", reason });
        }
        kept.push(Kept { at, name: found.names[at].clone() });
    }
    Ok(kept)
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
            order: self.names.clone(),
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

    /// The columns to carry along. A record has their texts in the order of the file.
    pub(super) fn carried(&self) -> Vec<CarriedColumn> {
        let slot = |at: usize| self.kept.iter().filter(|kept| kept.at < at).count();
        let column = |kept: &Kept| CarriedColumn {
            name: kept.name.clone(),
            slot: slot(kept.at),
            kind: CarriedKind::Text,
        };
        self.kept.iter().map(column).collect()
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
