//! Gives the columns of a table their roles: label, weight, group, skip, feature.

use std::collections::BTreeSet;

use arrow_schema::DataType;

use super::kind::ArrowKind;
use crate::error::{Error, nearest};
use crate::format::roles::{
    is_label_name, label_by_name, label_notice, refuse_duplicate_names, refuse_two_roles,
};
use crate::interactions::Interactions;
use crate::options::{FormatOptions, InputPurpose};
use crate::schema::{ColumnKind, PassthroughColumn, PassthroughKind, Schema};

/// A table whose columns get roles.
pub(crate) struct ArrowTable<'a> {
    /// Its name in messages.
    pub(crate) name: &'a str,
    pub(crate) schema: &'a arrow_schema::Schema,
    /// Columns that number the rows: they are skipped unless a setting names them.
    pub(crate) row_numbers: &'a [String],
}

/// The columns of each role, by their numbers in the table.
#[derive(Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) label: Option<usize>,
    /// Whether the label is a string.
    pub(crate) label_is_text: bool,
    pub(crate) weight: Option<usize>,
    /// Number and name of the group column.
    pub(crate) group: Option<(usize, String)>,
    /// The time column, and whether its values are strings.
    pub(crate) time: Option<(usize, bool)>,
    pub(crate) features: Features,
    pub(crate) interactions: Interactions,
    /// Passthrough columns in the requested order, in which a record also has their texts.
    pub(crate) passthrough: Vec<usize>,
    pub(crate) passthrough_columns: Vec<PassthroughColumn>,
    /// Notices for the user.
    pub(crate) notices: Vec<String>,
}

/// The columns that give the entries of a record.
#[derive(Debug, PartialEq)]
pub(crate) enum Features {
    Table(Vec<Feature>),
    Lists {
        indices: usize,
        values: Option<usize>,
    },
    /// One column of pairs or vectors.
    Column(usize),
}

/// One feature column of a table.
#[derive(Debug, PartialEq)]
pub(crate) struct Feature {
    pub(super) column: usize,
    pub(super) name: String,
    /// Position among the feature columns.
    pub(super) key: u64,
    pub(super) kind: ColumnKind,
    /// Position among the interaction groups.
    pub(super) interaction_group: Option<usize>,
}

impl Layout {
    /// Returns the columns that are read, ascending.
    pub(crate) fn fields(&self) -> Vec<usize> {
        let group = self.group.as_ref().map(|(number, _)| *number);
        let time = self.time.map(|(number, _)| number);
        let mut fields: Vec<usize> = [self.label, self.weight, group, time].into_iter().flatten().collect();
        match &self.features {
            Features::Table(table) => fields.extend(table.iter().map(|feature| feature.column)),
            Features::Lists { indices, values } => fields.extend([*indices].into_iter().chain(*values)),
            Features::Column(column) => fields.push(*column),
        }
        fields.extend(&self.passthrough);
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Returns the column whose lists are the entries of a record, if there is one.
    pub(crate) fn list(&self) -> Option<usize> {
        match self.features {
            Features::Table(_) => None,
            Features::Lists { indices: column, .. } | Features::Column(column) => Some(column),
        }
    }
}

pub(super) struct ArrowColumn {
    pub(super) name: String,
    pub(super) kind: ArrowKind,
    /// Whether programs write its values in several forms of text.
    has_text_forms: bool,
    /// The kind of its values as a passthrough column.
    passthrough_kind: PassthroughKind,
}

impl ArrowColumn {
    fn new(field: &arrow_schema::Field) -> Self {
        let (name, kind) = (field.name().clone(), ArrowKind::of(field.data_type()));
        // An unsigned integer may exceed the signed 64-bit range, and a null is not an integer.
        let is_integer = field.data_type().is_signed_integer() || {
            field.data_type().is_unsigned_integer() && field.data_type().primitive_width() < Some(8)
        };
        let carried = match kind {
            ArrowKind::Number if is_integer && !field.is_nullable() => PassthroughKind::Integer,
            ArrowKind::Number if !is_integer && field.data_type().is_floating() => PassthroughKind::Real,
            _ => PassthroughKind::Text,
        };
        let has_text_forms = matches!(field.data_type(), DataType::Boolean | DataType::Timestamp(..));
        Self { name, kind, has_text_forms, passthrough_kind: carried }
    }
}

/// The columns of a table, while they get their roles.
pub(super) struct LayoutBuilder<'a> {
    pub(super) file: &'a str,
    pub(super) columns: Vec<ArrowColumn>,
    row_numbers: &'a [String],
    pub(super) options: &'a FormatOptions,
}

/// Returns the layout and the schema of a table. With `like`, the features are those of that schema.
pub(crate) fn layout(
    table: &ArrowTable<'_>,
    options: &FormatOptions,
    like: Option<&Schema>,
) -> Result<(Layout, Schema), Error> {
    let leaves = table.schema.fields().iter().map(|field| ArrowColumn::new(field)).collect();
    LayoutBuilder { file: table.name, columns: leaves, row_numbers: table.row_numbers, options }.layout(like)
}

impl LayoutBuilder<'_> {
    fn layout(&self, like: Option<&Schema>) -> Result<(Layout, Schema), Error> {
        let mut notices = Vec::new();
        refuse_duplicate_names(self.file, self.columns.iter().map(|leaf| leaf.name.as_str()))?;
        let weight = self.requested_or_trained(
            self.options.weight.as_ref(),
            like.and_then(|schema| schema.weight.as_ref()),
            &mut notices,
        )?;
        let group = self.requested_or_trained(
            self.options.group.as_ref(),
            like.and_then(|schema| schema.group.as_ref()),
            &mut notices,
        )?;
        let time = self.options.time.as_ref().map(|name| self.find(name)).transpose()?;
        let kept = self.find_passthrough()?;
        self.check_types(weight, group, time)?;
        let mut taken: BTreeSet<usize> = weight.into_iter().chain(group).chain(time).collect();
        for name in self.options.text_columns.iter().chain(&self.options.token_columns) {
            self.find(name)?;
        }
        for name in &self.options.skip_columns {
            // A skipped column of training may be absent here.
            match self.find(name) {
                Ok(column) => drop(taken.insert(column)),
                Err(_) if like.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        taken.extend((0..self.columns.len()).filter(|&column| self.is_no_feature_of(like, &kept, column)));
        let row_numbers = self.row_numbers_to_skip(&taken, like);
        for &column in &row_numbers {
            let name = &self.columns[column].name;
            notices
                .push(format!("column '{name}' is an index that pandas wrote with the data, and is skipped"));
        }
        taken.extend(row_numbers);
        let label = self.label(&taken, like)?;
        self.refuse_two_roles(label, [("weight", weight), ("group", group), ("time", time)])?;
        notices.extend(label.filter(|_| like.is_none()).and_then(|label| self.notice_of_label(label)));
        taken.extend(label);
        let mut features = self.features(&taken, like)?;
        notices.extend(like.and_then(|schema| self.notice_of_text_forms(&features, schema)));
        let interactions = self.interactions(&mut features, like)?;
        let schema = self.schema(&features, [label, weight, group, time], like);
        // When the input is read without labels, its label column is not read even if it exists.
        let label = label.filter(|_| self.options.has_label);
        let label_is_text = label.is_some_and(|label| self.columns[label].kind == ArrowKind::Text);
        let group = group.map(|group| (group, self.columns[group].name.clone()));
        let carried = kept.iter().enumerate().map(|(slot, &column)| {
            let leaf = &self.columns[column];
            PassthroughColumn { name: leaf.name.clone(), slot, kind: leaf.passthrough_kind }
        });
        let carried = carried.collect();
        let layout = Layout {
            label,
            label_is_text,
            weight,
            group,
            time: time.map(|time| (time, self.columns[time].kind == ArrowKind::Text)),
            features,
            interactions,
            passthrough: kept,
            passthrough_columns: carried,
            notices,
        };
        Ok((layout, schema))
    }

    /// Fails when a column of attributes cannot have the values of its role.
    fn check_types(
        &self,
        weight: Option<usize>,
        group: Option<usize>,
        time: Option<usize>,
    ) -> Result<(), Error> {
        if let Some(weight) = weight.filter(|&weight| self.columns[weight].kind != ArrowKind::Number) {
            return Err(self.wrong_type(weight, "a weight must be a number"));
        }
        if let Some(group) = group.filter(|&group| !self.is_value(group)) {
            return Err(self.wrong_type(group, "a group must be a number or a string"));
        }
        if let Some(time) = time.filter(|&time| !self.is_value(time)) {
            return Err(self.wrong_type(time, "a time must be a number, a date or a string"));
        }
        Ok(())
    }

    fn is_value(&self, column: usize) -> bool {
        matches!(self.columns[column].kind, ArrowKind::Number | ArrowKind::Text)
    }

    /// Returns the columns that number the rows and that neither a setting nor training uses.
    fn row_numbers_to_skip(&self, taken: &BTreeSet<usize>, like: Option<&Schema>) -> Vec<usize> {
        let of_training = |name: &str| {
            like.is_some_and(|schema| {
                schema.label.as_deref() == Some(name)
                    || schema.columns.iter().any(|column| column.name == name)
            })
        };
        let label = self.options.label.as_ref().and_then(|label| self.find(label).ok());
        (0..self.columns.len())
            .filter(|column| {
                let name = &self.columns[*column].name;
                self.row_numbers.contains(name)
                    && !taken.contains(column)
                    && label != Some(*column)
                    && !of_training(name)
            })
            .collect()
    }

    /// Makes a notice about a label that the settings do not name.
    fn notice_of_label(&self, label: usize) -> Option<String> {
        let name = &self.columns[label].name;
        let is_guess = self.options.has_label && self.options.label.is_none();
        is_guess.then(|| label_notice(name, if is_label_name(name) { "by its name" } else { "the last" }))
    }

    /// Makes a notice about booleans and timestamps that training read as text from CSV, where they may have had another
    /// form.
    fn notice_of_text_forms(&self, features: &Features, schema: &Schema) -> Option<String> {
        let Features::Table(table) = features else { return None };
        let is_text = |feature: &&Feature| {
            feature.kind == ColumnKind::Text && self.columns[feature.column].has_text_forms
        };
        let names: Vec<&str> = table.iter().filter(is_text).map(|feature| feature.name.as_str()).collect();
        (schema.format == "csv" && !names.is_empty()).then(|| {
            format!(
                "{}: training read these columns as text: {}; here they are read as 'true' or '2026-01-31 08:15:00'; if \
                 training had other forms, such as 'True' or '2026-01-31', write them as strings",
                self.file,
                names.join(", ")
            )
        })
    }

    /// Fails when a setting gives a column a second role.
    fn refuse_two_roles(
        &self,
        label: Option<usize>,
        others: [(&'static str, Option<usize>); 3],
    ) -> Result<(), Error> {
        let names: Vec<&str> = self.columns.iter().map(|leaf| leaf.name.as_str()).collect();
        let skipped = self.options.skip_columns.iter().filter_map(|name| self.find(name).ok());
        let tokens = self.options.token_columns.iter().filter_map(|name| self.find(name).ok());
        let label = label.filter(|_| self.options.has_label);
        let roles = [("label", label)].into_iter().chain(others);
        let roles = roles.filter_map(|(role, column)| Some((role, column?)));
        let roles = roles.chain(skipped.map(|column| ("skip_columns", column)));
        let roles: Vec<_> = roles.chain(tokens.map(|column| ("token_columns", column))).collect();
        refuse_two_roles(self.file, &names, &roles)
    }

    /// Finds a column by name, else by its 0-based number.
    pub(super) fn find(&self, name: &str) -> Result<usize, Error> {
        let by_name = self.columns.iter().position(|leaf| leaf.name == name);
        let by_number = || name.parse().ok().filter(|number| *number < self.columns.len());
        by_name.or_else(by_number).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|leaf| leaf.name.as_str()).collect();
            Error::UnknownColumn {
                file: self.file.to_owned(),
                column: name.to_owned(),
                nearest: nearest(name, names.iter().copied()),
                known: names.join(", "),
            }
        })
    }

    /// Returns the column of weights or groups: the requested one, or that of training, which may be absent or need not
    /// be read.
    fn requested_or_trained(
        &self,
        asked: Option<&String>,
        trained: Option<&String>,
        notices: &mut Vec<String>,
    ) -> Result<Option<usize>, Error> {
        let (None, Some(trained), InputPurpose::Evaluation) = (asked, trained, self.options.purpose) else {
            return asked.map(|name| self.find(name)).transpose();
        };
        let at = self.columns.iter().position(|leaf| leaf.name == *trained);
        if at.is_none() {
            notices.push(format!(
                "{} has no column '{trained}', the weight or group column of training: every record counts the same",
                self.file
            ));
        }
        Ok(at)
    }

    /// Returns the passthrough columns, in the requested order.
    fn find_passthrough(&self) -> Result<Vec<usize>, Error> {
        let mut kept = Vec::new();
        for asked in &self.options.keep_columns {
            let column = self.find(asked)?;
            if !self.is_value(column) {
                return Err(self.wrong_type(column, "a passthrough column must be a number or a string"));
            }
            if kept.contains(&column) {
                let reason = format!("column '{asked}' is listed twice");
                return Err(Error::BadOption { option: "keep_columns", reason });
            }
            kept.push(column);
        }
        Ok(kept)
    }

    /// Whether training has this column as weight, group or time, or does not have this column and it is a passthrough
    /// column.
    fn is_no_feature_of(&self, like: Option<&Schema>, kept: &[usize], column: usize) -> bool {
        let name = &self.columns[column].name;
        like.is_some_and(|schema| {
            let is = |role: &Option<String>| role.as_ref() == Some(name);
            let known = schema.columns.iter().any(|column| column.name == *name);
            !known
                && !is(&schema.label)
                && (is(&schema.weight) || is(&schema.group) || is(&schema.time) || kept.contains(&column))
        })
    }

    fn label(&self, taken: &BTreeSet<usize>, like: Option<&Schema>) -> Result<Option<usize>, Error> {
        if !self.options.uses_labels {
            return Ok(None);
        }
        let of_training = || like.and_then(|schema| schema.label.as_ref());
        if let Some(name) = self.options.label.as_ref().or_else(of_training) {
            return match self.find(name) {
                Err(_) if !self.options.has_label => Ok(None),
                found => found.and_then(|column| self.check_label(column)).map(Some),
            };
        }
        let names: Vec<&str> = self.columns.iter().map(|leaf| leaf.name.as_str()).collect();
        if let Some(column) = label_by_name(self.file, &names, |column| taken.contains(&column))? {
            return self.check_label(column).map(Some);
        }
        if !self.options.has_label {
            return Ok(None);
        }
        let last = (0..self.columns.len()).rev().find(|i| self.is_value(*i) && !taken.contains(i));
        last.map_or_else(|| self.find("label"), Ok).map(Some)
    }

    /// Returns `column` if it has one value per record.
    fn check_label(&self, column: usize) -> Result<usize, Error> {
        if self.is_value(column) {
            return Ok(column);
        }
        Err(self.wrong_type(column, "a label must be a number or a string"))
    }

    pub(super) fn wrong_type(&self, column: usize, expected: &str) -> Error {
        let ArrowColumn { name, kind, .. } = &self.columns[column];
        let reason = format!(
            "column '{name}' is {}; {expected}; convert it to numbers or strings, or skip it (skip_columns)",
            kind.description()
        );
        Error::BadFile { file: self.file.to_owned(), record: None, reason }
    }

    fn features(&self, taken: &BTreeSet<usize>, like: Option<&Schema>) -> Result<Features, Error> {
        let free: Vec<usize> = (0..self.columns.len()).filter(|i| !taken.contains(i)).collect();
        let features = match self.list(&free, &[ArrowKind::IntegerList], "indices")? {
            Some(indices) => {
                let floats = self.list(&free, &[ArrowKind::FloatList], "values")?;
                let named = free.iter().copied().find(|&i| i != indices && self.columns[i].name == "values");
                let values = floats.or(named.filter(|&i| self.columns[i].kind == ArrowKind::IntegerList));
                Features::Lists { indices, values }
            }
            None => match self.list(
                &free,
                &[ArrowKind::FloatList, ArrowKind::PairList, ArrowKind::Vector],
                "features",
            )? {
                Some(column) => Features::Column(column),
                None => return self.table(&free, like),
            },
        };
        let (list, values) = match &features {
            Features::Lists { indices, values } => (*indices, *values),
            Features::Column(column) => (*column, None),
            Features::Table(_) => unreachable!("tables are left above"),
        };
        if let Some(column) = like.and_then(|schema| schema.columns.first()) {
            return Err(self.schema_error(format!(
                "column '{}' of training is missing, this file has {}",
                column.name,
                self.columns[list].kind.description()
            )));
        }
        match free.iter().find(|&&i| i != list && Some(i) != values) {
            Some(&other) => {
                let expected = format!(
                    "a file with {} ('{}') has no other features: name it as weight or group",
                    self.columns[list].kind.description(),
                    self.columns[list].name
                );
                Err(self.wrong_type(other, &expected))
            }
            None => Ok(features),
        }
    }

    /// Returns the only column of these kinds; of several ones, the one with this name.
    fn list(&self, free: &[usize], kinds: &[ArrowKind], name: &str) -> Result<Option<usize>, Error> {
        let lists: Vec<usize> =
            free.iter().copied().filter(|&i| kinds.contains(&self.columns[i].kind)).collect();
        let named = lists.iter().copied().find(|&i| self.columns[i].name == name);
        match lists[..] {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            [first, ..] => named.map(Some).ok_or_else(|| {
                self.wrong_type(first, &format!("of several such columns one must be named '{name}'"))
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
            table.push(Feature {
                column,
                name: self.columns[column].name.clone(),
                key,
                kind,
                interaction_group: None,
            });
        }
        Ok(Features::Table(table))
    }

    /// Returns the columns of `schema` in its order. All of them must exist, and no others.
    fn same_columns(
        &self,
        free: &[usize],
        schema: &Schema,
    ) -> Result<Vec<(usize, Option<ColumnKind>)>, Error> {
        let mut columns = Vec::with_capacity(schema.columns.len());
        for known in &schema.columns {
            let here = free.iter().copied().find(|&i| self.columns[i].name == known.name);
            let column = here.ok_or_else(|| {
                self.schema_error(format!("column '{}' of training is missing", known.name))
            })?;
            columns.push((column, Some(known.kind)));
        }
        match free.iter().find(|&&i| columns.iter().all(|(column, _)| *column != i)) {
            Some(&extra) => Err(self.schema_error(format!(
                "column '{}' was not in the training data; skip it (skip_columns)",
                self.columns[extra].name
            ))),
            None => Ok(columns),
        }
    }

    pub(super) fn schema_error(&self, difference: String) -> Error {
        Error::SchemaDiffers { file: self.file.to_owned(), difference }
    }
}
