//! Formats with columns (dense, CSV): the role of each column, from settings, names, the first rows, or the trained
//! schema.

use super::FormatContext;
use super::csv::Dialect;
use super::missing::is_missing;
use super::roles::{label_by_name, label_notice, refuse_duplicate_names, refuse_two_roles};
use super::type_counts::TypeCounts;
use crate::Error;
use crate::error::nearest;
use crate::interactions::Interactions;
use crate::number::parse_f64;
use crate::options::{FormatOptions, InputPurpose};
use crate::schema::{Column, ColumnKind, PassthroughColumn, PassthroughKind, Schema};

/// The role of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Label,
    Weight,
    Group,
    Time,
    Skip,
    /// A numeric feature, with its key.
    Numeric(u64),
    /// A text feature; the column is the space of its names.
    Text,
    /// A text of tokens, each of which is a feature; the column is the space of their names.
    Tokens,
}

/// The columns of a file, in its order.
#[derive(Clone, Debug)]
pub(super) struct FileColumns {
    pub(super) names: Vec<String>,
    pub(super) roles: Vec<Role>,
    /// Feature columns, in the order of their keys.
    pub(super) features: Vec<Column>,
    pub(super) named: bool,
    pub(super) dialect: Dialect,
    pub(super) interactions: Interactions,
    /// The interaction group of each column.
    pub(super) interaction_groups: Vec<Option<usize>>,
    /// The passthrough columns, in the requested order.
    pub(super) passthrough: Vec<ColumnRef>,
    /// Notices for the user.
    pub(super) notices: Vec<String>,
    /// Whether missing numbers are features.
    pub(super) mark_missing: bool,
}

/// Names and types of columns, from the sample of a file.
pub(super) struct DetectedColumns {
    /// Names in the header, or positions.
    pub(super) names: Vec<String>,
    /// Types of the sampled values of each column.
    pub(super) type_counts: Vec<TypeCounts>,
    pub(super) named: bool,
    pub(super) dialect: Dialect,
    /// The label column when neither a setting nor a name determines one.
    pub(super) fallback: LabelFallback,
    /// The passthrough columns, in the requested order.
    pub(super) passthrough: Vec<ColumnRef>,
}

/// A passthrough column.
#[derive(Clone, Debug)]
pub(super) struct ColumnRef {
    pub(super) at: usize,
    pub(super) name: String,
}

/// A column by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelFallback {
    First,
    Last,
}

/// Whether a field can be a value of a numeric column.
pub(super) fn is_number(field: &[u8]) -> bool {
    is_missing(field) || parse_f64(field).is_some()
}

/// Decides the role of each column.
pub(super) fn assign_roles(
    context: &FormatContext<'_>,
    found: &DetectedColumns,
) -> Result<FileColumns, Error> {
    let file = context.files[0].name();
    refuse_duplicate_names(file, found.names.iter().map(String::as_str))?;
    let options = context.options;
    let (names, like) = (found.names.clone(), context.trained_schema);
    let mut notices = Vec::new();
    let mut asked_or_trained = |asked: &Option<String>, trained: Option<&String>| {
        requested_or_trained(context, found, asked.as_deref(), trained.map(String::as_str), &mut notices)
    };
    let weight = asked_or_trained(&options.weight, like.and_then(|schema| schema.weight.as_ref()))?;
    let group = asked_or_trained(&options.group, like.and_then(|schema| schema.group.as_ref()))?;
    let time = find(file, &names, options.time.as_deref())?;
    let mut skip = Vec::new();
    for column in &options.skip_columns {
        if like.is_some_and(|schema| schema.skip_columns.contains(column)) {
            // A column that training skipped may be absent now.
            skip.extend(names.iter().position(|name| name == column));
        } else {
            skip.extend(find(file, &names, Some(column))?);
        }
    }
    let label = if options.has_label { None } else { absent_label(context, found) };
    let tokens = find_all(file, &names, &options.token_columns)?;
    let mut roles = Roles { label, weight, group, time, skip, tokens, notices };
    if options.has_label && !names.is_empty() {
        roles.choose_label(context, found, &names)?;
    }
    roles.skip_index(context, found);
    let text = find_all(file, &names, &options.text_columns)?;
    let mut columns = roles.columns(context, found, names, &text);
    columns.find_groups(file, &options.interactions)?;
    if let Some(schema) = context.trained_schema {
        columns.conform_to(file, schema)?;
    }
    Ok(columns)
}

/// Positions of the columns that are not features.
struct Roles {
    label: Option<usize>,
    weight: Option<usize>,
    group: Option<usize>,
    time: Option<usize>,
    skip: Vec<usize>,
    /// The columns of tokens, which are features, but no guessed label.
    tokens: Vec<usize>,
    notices: Vec<String>,
}

impl Roles {
    /// Returns the label of the settings, else a guess.
    fn choose_label(
        &mut self,
        context: &FormatContext<'_>,
        found: &DetectedColumns,
        names: &[String],
    ) -> Result<(), Error> {
        let file = context.files[0].name();
        let shown: Vec<&str> = names.iter().map(String::as_str).collect();
        self.label = find(file, names, context.options.label.as_deref())?;
        let others: Vec<(&'static str, usize)> =
            [("weight", self.weight), ("group", self.group), ("time", self.time)]
                .into_iter()
                .filter_map(|(role, column)| Some((role, column?)))
                .chain(self.skip.iter().map(|column| ("skip_columns", *column)))
                .chain(self.tokens.iter().map(|column| ("token_columns", *column)))
                .collect();
        let asked: Vec<_> =
            self.label.map(|label| ("label", label)).into_iter().chain(others.clone()).collect();
        refuse_two_roles(file, &shown, &asked)?;
        if self.label.is_some() {
            return Ok(());
        }
        let is_taken = |at: usize| others.iter().any(|(_, column)| *column == at);
        let by_name = if found.named { label_by_name(file, &shown, is_taken)? } else { None };
        let (by_place, place) = match found.fallback {
            LabelFallback::First => ((0..names.len()).find(|at| !is_taken(*at)), "the first"),
            LabelFallback::Last => ((0..names.len()).rev().find(|at| !is_taken(*at)), "the last"),
        };
        self.label = by_name.or(by_place);
        if let Some(label) = self.label {
            let how = if by_name.is_some() { "by its name" } else { place };
            self.notices.push(label_notice(&names[label], how));
        }
        Ok(())
    }

    /// Skips a first column without a name: it numbers the rows.
    fn skip_index(&mut self, context: &FormatContext<'_>, found: &DetectedColumns) {
        let is_index = found.named && found.names.len() > 1 && found.names[0].is_empty();
        let taken =
            self.skip.iter().copied().chain(self.label).chain(self.weight).chain(self.group).chain(self.time);
        let wanted = context
            .trained_schema
            .is_some_and(|schema| schema.columns.iter().any(|column| column.name.is_empty()));
        if is_index && !wanted && !taken.into_iter().any(|at| at == 0) {
            self.skip.push(0);
            if context.trained_schema.is_none() {
                let notice = "the first column has no name in the header, as pandas and R write row names: it is \
                              skipped";
                self.notices.push(notice.to_owned());
            }
        }
    }

    /// Returns each column with its role.
    fn columns(
        self,
        context: &FormatContext<'_>,
        found: &DetectedColumns,
        names: Vec<String>,
        text: &[usize],
    ) -> FileColumns {
        let mut notices = self.notices;
        let mut mixed = Vec::new();
        let (mut roles, mut features) = (Vec::new(), Vec::new());
        for (at, name) in names.iter().enumerate() {
            let is_tokens = self.tokens.contains(&at);
            let is_text = text.contains(&at);
            if !is_text && !is_tokens && !self.skip.contains(&at) {
                mixed.extend(found.type_counts[at].notice(name));
            }
            roles.push(if Some(at) == self.label {
                if context.options.has_label { Role::Label } else { Role::Skip }
            } else if Some(at) == self.weight {
                Role::Weight
            } else if Some(at) == self.group {
                Role::Group
            } else if Some(at) == self.time {
                Role::Time
            } else if self.skip.contains(&at) || is_no_feature_of(context.trained_schema, found, at) {
                Role::Skip
            } else {
                let numeric = found.type_counts[at].is_numeric() && !is_text;
                let kind = match (is_tokens, numeric) {
                    (true, _) => ColumnKind::Tokens,
                    (false, true) => ColumnKind::Numeric,
                    (false, false) => ColumnKind::Text,
                };
                features.push(Column { name: name.clone(), kind });
                match kind {
                    ColumnKind::Numeric => Role::Numeric(features.len() as u64 - 1),
                    ColumnKind::Text => Role::Text,
                    ColumnKind::Tokens => Role::Tokens,
                }
            });
        }
        if context.trained_schema.is_none() {
            notices.extend(mixed_notice(&mixed));
        }
        FileColumns {
            interaction_groups: vec![None; names.len()],
            names,
            roles,
            features,
            named: found.named,
            dialect: found.dialect,
            interactions: Interactions::default(),
            // When the number of features is declared, no key is left for missing numbers.
            mark_missing: context
                .trained_schema
                .map_or(context.options.key_limit.is_none(), |schema| schema.mark_missing),
            passthrough: found.passthrough.clone(),
            notices,
        }
    }
}

/// Makes a notice about columns that have numbers and other values.
fn mixed_notice(columns: &[String]) -> Option<String> {
    /// Number of columns that the notice names.
    const SHOWN: usize = 5;
    let shown = columns.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = columns.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!columns.is_empty()).then(|| {
        format!(
            "columns with numbers and other values are read as the type of most values: {shown}{more}; \
                 --text-columns reads all values of a column as names"
        )
    })
}

/// Whether the trained schema has this column in another role than a feature, or does not have this column and it is a
/// passthrough column.
fn is_no_feature_of(like: Option<&Schema>, found: &DetectedColumns, at: usize) -> bool {
    let name = &found.names[at];
    like.is_some_and(|schema| {
        let is = |column: &Option<String>| column.as_ref() == Some(name);
        let known = schema.columns.iter().any(|column| column.name == *name);
        let is_attribute = is(&schema.weight) || is(&schema.group) || is(&schema.time);
        !known && (is_attribute || found.passthrough.iter().any(|kept| kept.at == at))
    })
}

/// Returns the label column of data that are read without labels, so that it is skipped.
fn absent_label(context: &FormatContext<'_>, found: &DetectedColumns) -> Option<usize> {
    let file = context.files[0].name();
    // The name is compared, not the position: where names are positions, the file may have another column there.
    match context.trained_schema.and_then(|schema| schema.label.as_ref()) {
        Some(label) => found.names.iter().position(|name| name == label),
        None => find(file, &found.names, context.options.label.as_deref()).ok().flatten(),
    }
}

/// Returns the column of weights or groups: the requested one, or that of training, which may be absent or need not be
/// read.
fn requested_or_trained(
    context: &FormatContext<'_>,
    found: &DetectedColumns,
    asked: Option<&str>,
    trained: Option<&str>,
    notices: &mut Vec<String>,
) -> Result<Option<usize>, Error> {
    let file = context.files[0].name();
    let (None, Some(trained), InputPurpose::Evaluation) = (asked, trained, context.options.purpose) else {
        return find(file, &found.names, asked);
    };
    let at = found.names.iter().position(|name| name == trained);
    if at.is_none() && !found.names.is_empty() {
        notices.push(format!(
            "{file} has no column '{trained}', the weight or group column of training: every record counts the same"
        ));
    }
    Ok(at)
}

/// Returns the passthrough columns, in the requested order.
pub(super) fn find_passthrough(
    context: &FormatContext<'_>,
    found: &DetectedColumns,
) -> Result<Vec<ColumnRef>, Error> {
    let file = context.files[0].name();
    let mut kept: Vec<ColumnRef> = Vec::new();
    for asked in &context.options.keep_columns {
        let Some(at) = find(file, &found.names, Some(asked))? else { continue };
        if kept.iter().any(|column| column.at == at) {
            let reason = format!("column '{asked}' is listed twice");
            return Err(Error::BadOption { option: "keep_columns", reason });
        }
        kept.push(ColumnRef { at, name: found.names[at].clone() });
    }
    Ok(kept)
}

/// Returns the positions of the columns that are requested by name or number.
fn find_all(file: &str, names: &[String], asked: &[String]) -> Result<Vec<usize>, Error> {
    asked.iter().filter_map(|column| find(file, names, Some(column)).transpose()).collect()
}

/// Returns the position of a column that is requested by name or number.
pub(super) fn find(file: &str, names: &[String], asked: Option<&str>) -> Result<Option<usize>, Error> {
    let Some(asked) = asked else { return Ok(None) };
    // A file of blank lines has no columns, and no record that needs one.
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

impl FileColumns {
    /// Finds the columns that interactions multiply.
    fn find_groups(&mut self, file: &str, interactions: &[Vec<String>]) -> Result<(), Error> {
        Interactions::new(interactions)?;
        if self.names.is_empty() {
            return Ok(());
        }
        let mut named = Vec::new();
        for factors in interactions {
            let mut columns = Vec::new();
            for factor in factors {
                let at = find(file, &self.names, Some(factor))?.expect("a column was asked for");
                if !matches!(self.roles[at], Role::Numeric(_) | Role::Text) {
                    let reason = format!(
                        "column '{}' of {file} is not a feature of one value: it is the label, a weight, a group, a time, \
                         tokens, or skipped",
                        self.names[at]
                    );
                    return Err(Error::BadOption { option: "interactions", reason });
                }
                columns.push(self.names[at].clone());
            }
            named.push(columns);
        }
        self.interactions = Interactions::new(&named)?;
        for (group, name) in self.interactions.groups.iter().enumerate() {
            let at = self.names.iter().position(|column| column == name);
            self.interaction_groups[at.expect("it is the name of a column")] = Some(group);
        }
        Ok(())
    }

    /// Makes the schema of this file.
    pub(super) fn schema(&self, options: &FormatOptions) -> Schema {
        let name_of =
            |role: Role| self.roles.iter().position(|r| *r == role).map(|at| self.names[at].clone());
        // An index without a name that is skipped by default may be absent later.
        let is_index = self.named && self.names.first().is_some_and(String::is_empty);
        let left_out =
            is_index && self.roles[0] == Role::Skip && !options.skip_columns.contains(&String::new());
        let index = left_out.then(String::new);
        Schema {
            columns: self.features.clone(),
            order: self.names.clone(),
            label: name_of(Role::Label),
            weight: name_of(Role::Weight),
            group: name_of(Role::Group),
            time: name_of(Role::Time),
            skip_columns: options.skip_columns.iter().cloned().chain(index).collect(),
            named: self.named,
            delimiter: Some(self.dialect.quotes.delimiter),
            backslash: self.dialect.quotes.backslash,
            multi_line: self.dialect.multi_line,
            keep_zeros: options.keep_zeros && self.roles.iter().any(|role| matches!(role, Role::Numeric(_))),
            fields: options.uses_fields,
            token_order: options.keeps_token_order,
            mark_missing: self.mark_missing,
            ..Schema::default()
        }
    }

    /// Returns the passthrough columns. The texts of a record are in the order of the file.
    pub(super) fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        let slot = |at: usize| self.passthrough.iter().filter(|kept| kept.at < at).count();
        let column = |kept: &ColumnRef| PassthroughColumn {
            name: kept.name.clone(),
            slot: slot(kept.at),
            kind: PassthroughKind::Text,
        };
        self.passthrough.iter().map(column).collect()
    }

    /// Position of the label.
    pub(super) fn label(&self) -> Option<usize> {
        self.roles.iter().position(|role| *role == Role::Label)
    }

    /// Takes types and keys from the trained schema, column by column by name.
    fn conform_to(&mut self, file: &str, schema: &Schema) -> Result<(), Error> {
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
            if !matches!(self.roles[at], Role::Numeric(_) | Role::Text | Role::Tokens) {
                continue;
            }
            let name = &self.names[at];
            let Some(key) = schema.columns.iter().position(|column| column.name == *name) else {
                let count = self.features.len();
                return Err(differs(format!(
                    "column '{name}' was not in the training data ({count} feature columns here, {} in training); \
                     skip it with --skip-columns '{name}', or remove it from the file",
                    schema.columns.len()
                )));
            };
            self.roles[at] = match schema.columns[key].kind {
                ColumnKind::Numeric => Role::Numeric(key as u64),
                ColumnKind::Text => Role::Text,
                ColumnKind::Tokens => Role::Tokens,
            };
        }
        self.features.clone_from(&schema.columns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_mixed_columns_are_named_and_the_others_counted() {
        let names = |count: usize| (0..count).map(|at| format!("c{at}")).collect::<Vec<String>>();
        let told = |count: usize| mixed_notice(&names(count));
        assert_eq!(told(0), None);
        assert!(told(5).unwrap().contains("values: c0, c1, c2, c3, c4; --text-columns"));
        assert!(told(7).unwrap().contains("values: c0, c1, c2, c3, c4 and 2 more; --text-columns"));
    }
}
