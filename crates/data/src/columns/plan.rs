//! The plan of the columns of a file: the role of each, from settings, names, types, and the trained schema.

use std::collections::BTreeSet;

use super::roles::{is_label_name, label_by_name, label_notice, refuse_duplicate_names, refuse_two_roles};
use super::{LabelFallback, NumberForm, TableDescription, ValueKind};
use crate::Error;
use crate::interactions::Interactions;
use crate::options::{FormatOptions, InputPurpose};
use crate::schema::{Column, ColumnKind, PassthroughColumn, Schema};

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
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
    /// Lists of the keys of entries.
    Indices,
    /// Lists of the values of these entries.
    Values,
    /// All entries of a record: pairs, dense vectors or vectors of Spark ML.
    Entries,
}

/// A column with its role.
#[derive(Clone, Debug)]
pub(crate) struct PlannedColumn {
    /// Name in training, if the columns are named by their positions.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// How text has its numbers.
    pub(crate) form: NumberForm,
    /// What is subtracted from each of its numbers.
    pub(crate) origin: f64,
    /// Position among the feature columns: the field of its entries.
    pub(crate) field: u32,
    /// Whether every record has a value there.
    pub(crate) is_required: bool,
    /// Position among the interaction groups.
    pub(crate) interaction_group: Option<usize>,
    pub(crate) is_passthrough: bool,
}

/// The columns of a file, in its order, and what follows from them.
#[derive(Clone, Debug)]
pub(crate) struct ColumnPlan {
    pub(crate) columns: Vec<PlannedColumn>,
    pub(crate) interactions: Interactions,
    /// The passthrough columns, in the requested order. The texts of a record are in the order of the file.
    pub(crate) passthrough: Vec<PassthroughColumn>,
    /// Whether the values of the label column are strings.
    pub(crate) label_is_text: bool,
    /// The schema that a model stores. The format adds its dialect and the names of labels.
    pub(crate) schema: Schema,
    /// Notices for the user.
    pub(crate) notices: Vec<String>,
}

impl ColumnPlan {
    /// Returns the columns that are read, ascending.
    #[cfg(feature = "arrow")]
    pub(crate) fn read_columns(&self) -> Vec<usize> {
        let is_read = |column: &PlannedColumn| column.role != Role::Skip || column.is_passthrough;
        (0..self.columns.len()).filter(|at| is_read(&self.columns[*at])).collect()
    }

    /// Returns the column of this role.
    pub(crate) fn find(&self, role: Role) -> Option<usize> {
        self.columns.iter().position(|column| column.role == role)
    }

    /// Returns the column whose lists are the entries of a record, if there is one.
    #[cfg(feature = "arrow")]
    pub(crate) fn list(&self) -> Option<usize> {
        self.find(Role::Indices).or_else(|| self.find(Role::Entries))
    }
}

/// Gives the columns of a table their roles. With a trained schema, the features are those of that schema.
pub(crate) fn plan(
    table: &TableDescription<'_>,
    options: &FormatOptions,
    trained: Option<&Schema>,
) -> Result<ColumnPlan, Error> {
    refuse_duplicate_names(table.file, table.names())?;
    let mut planner = Planner { table, options, trained, notices: Vec::new() };
    let requested = planner.requested()?;
    let mut taken = requested.taken();
    taken.extend((0..table.columns.len()).filter(|at| planner.is_no_feature(*at)));
    let unused = planner.skipped_by_default(&taken);
    taken.extend(&unused);
    let label = planner.label(&taken, &requested.tokens)?;
    planner.refuse_two_roles(label, &requested)?;
    planner.add_notices(label, &requested, &unused);
    taken.extend(label);
    let mut free: Vec<usize> = (0..table.columns.len()).filter(|at| !taken.contains(at)).collect();
    let identifiers = planner.identifiers(&free, &requested);
    free.retain(|at| !identifiers.contains(at));
    let beside = requested.keep_ids(&mut free);
    let (features, mut columns) = planner.features(&free, &requested)?;
    let attributes = [
        (label.filter(|_| options.has_label), Role::Label),
        (requested.weight, Role::Weight),
        (requested.group, Role::Group),
        (requested.time, Role::Time),
    ];
    for (at, role) in attributes.into_iter().filter_map(|(at, role)| Some((at?, role))) {
        columns[at].role = role;
    }
    let interactions = planner.interactions(&mut columns)?;
    let skipped = [unused, identifiers, beside].concat();
    let schema = planner.schema(label, &requested, &skipped, features, &columns);
    planner.add_notice_of_text_forms(&columns);
    Ok(ColumnPlan {
        passthrough: table.passthrough_columns(),
        label_is_text: label.is_some_and(|at| planner.is_text_label(at)),
        columns,
        interactions,
        schema,
        notices: planner.notices,
    })
}

/// The columns that settings name, or whose attributes training had.
pub(super) struct Requested {
    weight: Option<usize>,
    group: Option<usize>,
    time: Option<usize>,
    skip: Vec<usize>,
    pub(super) text: Vec<usize>,
    /// Columns of the names of a record's parts; they are among those of text, too.
    pub(super) ids: Vec<usize>,
    pub(super) tokens: Vec<usize>,
}

impl Requested {
    /// The columns that are no features.
    fn taken(&self) -> BTreeSet<usize> {
        let attributes = [self.weight, self.group, self.time].into_iter().flatten();
        attributes.chain(self.skip.iter().copied()).collect()
    }

    /// Leaves the columns of the names of a record's parts, if there are some, and returns the others.
    fn keep_ids(&self, free: &mut Vec<usize>) -> Vec<usize> {
        if self.ids.is_empty() {
            return Vec::new();
        }
        let beside = free.iter().copied().filter(|at| !self.ids.contains(at)).collect();
        free.clone_from(&self.ids);
        beside
    }
}

pub(super) struct Planner<'a> {
    pub(super) table: &'a TableDescription<'a>,
    pub(super) options: &'a FormatOptions,
    pub(super) trained: Option<&'a Schema>,
    notices: Vec<String>,
}

impl Planner<'_> {
    fn requested(&mut self) -> Result<Requested, Error> {
        let (table, options, trained) = (self.table, self.options, self.trained);
        let weight = self
            .asked_or_trained(options.weight.as_ref(), trained.and_then(|schema| schema.weight.as_ref()))?;
        let group =
            self.asked_or_trained(options.group.as_ref(), trained.and_then(|schema| schema.group.as_ref()))?;
        let time = self.asked(options.time.as_ref())?;
        // Each value of a text is checked when it is read: a sample does not show all of them.
        if let Some(at) = weight.filter(|at| !table.is_text && table.columns[*at].kind != ValueKind::Number) {
            return Err(table.wrong_type(at, "a weight must be a number"));
        }
        if let Some(at) = group.filter(|at| !table.is_value(*at)) {
            return Err(table.wrong_type(at, "a group must be a number or a string"));
        }
        if let Some(at) = time.filter(|at| !table.is_value(*at)) {
            return Err(table.wrong_type(at, "a time must be a number, a date or a string"));
        }
        let mut skip = Vec::new();
        for column in &options.skip_columns {
            // A column that training skipped may be absent now, and another one may be at its position.
            let skipped_in_training = trained.is_some_and(|schema| schema.skip_columns.contains(column));
            skip.extend(if skipped_in_training { table.position(column) } else { table.find(column)? });
        }
        let ids = table.find_all(&options.id_columns)?;
        let mut text = table.find_all(&options.text_columns)?;
        text.extend(&ids);
        let tokens = table.find_all(&options.token_columns)?;
        Ok(Requested { weight, group, time, skip, text, ids, tokens })
    }

    fn asked(&self, column: Option<&String>) -> Result<Option<usize>, Error> {
        column.map_or(Ok(None), |column| self.table.find(column))
    }

    /// Returns the column of weights or groups: the requested one, or that of training, which may be absent or need not
    /// be read.
    fn asked_or_trained(
        &mut self,
        asked: Option<&String>,
        trained: Option<&String>,
    ) -> Result<Option<usize>, Error> {
        let (None, Some(trained), InputPurpose::Evaluation) = (asked, trained, self.options.purpose) else {
            return self.asked(asked);
        };
        let at = self.table.position(trained);
        if at.is_none() && !self.table.columns.is_empty() {
            self.notices.push(format!(
                "{} has no column '{trained}', the weight or group column of training: every record counts the same",
                self.table.file
            ));
        }
        Ok(at)
    }

    /// Whether training has this column as weight, group or time, or does not have this column and it is a passthrough
    /// column.
    fn is_no_feature(&self, at: usize) -> bool {
        let name = &self.table.columns[at].name;
        self.trained.is_some_and(|trained| {
            let is = |role: &Option<String>| role.as_ref() == Some(name);
            let is_known = is(&trained.label) || trained.columns.iter().any(|column| column.name == *name);
            let is_attribute = is(&trained.weight) || is(&trained.group) || is(&trained.time);
            !is_known && (is_attribute || self.table.is_passthrough(at))
        })
    }

    /// Returns the columns that number the rows or are empty, and that neither a setting nor training uses.
    fn skipped_by_default(&self, taken: &BTreeSet<usize>) -> Vec<usize> {
        let of_training = |name: &str| {
            self.trained.is_some_and(|trained| {
                trained.label.as_deref() == Some(name)
                    || trained.columns.iter().any(|column| column.name == name)
            })
        };
        let label = self.asked(self.options.label.as_ref()).ok().flatten();
        let is_unused = |at: &usize| {
            let column = &self.table.columns[*at];
            column.skip_notice.is_some()
                && !taken.contains(at)
                && label != Some(*at)
                && !of_training(&column.name)
        };
        (0..self.table.columns.len()).filter(is_unused).collect()
    }

    /// Returns the columns that training leaves out because nearly every record has a name of its own there, and tells so. A
    /// column that a setting names is used, and so is one without which there would be no features.
    fn identifiers(&mut self, free: &[usize], requested: &Requested) -> Vec<usize> {
        let (columns, file) = (&self.table.columns, self.table.file);
        let is_factor =
            |name: &String| self.options.interactions.iter().flatten().any(|factor| factor == name);
        let is_identifier = |at: &usize| {
            columns[*at].is_identifier
                && ![&requested.text, &requested.tokens].iter().any(|list| list.contains(at))
                && !is_factor(&columns[*at].name)
        };
        let identifiers: Vec<usize> = free.iter().copied().filter(is_identifier).collect();
        if self.trained.is_some() || identifiers.is_empty() || identifiers.len() == free.len() {
            return Vec::new();
        }
        let names: Vec<String> = identifiers.iter().map(|at| format!("'{}'", columns[*at].name)).collect();
        self.notices.push(format!(
            "{file}: nearly every record has a name of its own in {}, from which nothing can be learned for other records: \
             left out; --text-columns NAME reads such a column as names, --token-columns NAME as words",
            names.join(", ")
        ));
        identifiers
    }

    /// Returns the label column, also where labels are not read: it is no feature then.
    fn label(&self, taken: &BTreeSet<usize>, tokens: &[usize]) -> Result<Option<usize>, Error> {
        let (table, options) = (self.table, self.options);
        if !options.uses_labels || table.columns.is_empty() && table.is_text {
            return Ok(None);
        }
        let trained = self.trained.and_then(|trained| trained.label.as_ref());
        let named = match (&options.label, trained) {
            // The name is compared, not the position: where names are positions, the file may have another column there.
            (_, Some(trained)) if !options.has_label => return Ok(table.position(trained)),
            (None, None) => None,
            (Some(name), _) | (None, Some(name)) if options.has_label => table.find(name)?,
            (Some(name), _) | (None, Some(name)) => return Ok(table.find(name).ok().flatten()),
        };
        let is_taken = |at: usize| taken.contains(&at) || tokens.contains(&at);
        let names: Vec<&str> = table.names().collect();
        let named = match named {
            None if table.named => label_by_name(table.file, &names, is_taken)?,
            named => named,
        };
        if let Some(at) = named {
            return if table.is_value(at) {
                Ok(Some(at))
            } else {
                Err(table.wrong_type(at, "a label must be a number or a string"))
            };
        }
        if !options.has_label || !options.id_columns.is_empty() {
            // What users say of items is a rating.
            return if options.has_label { table.find("rating") } else { Ok(None) };
        }
        let is_free = |at: &usize| table.is_value(*at) && !is_taken(*at);
        let by_place = match table.fallback {
            LabelFallback::First => (0..names.len()).find(is_free),
            LabelFallback::Last => (0..names.len()).rev().find(is_free),
        };
        by_place.map_or_else(|| table.find("label"), |at| Ok(Some(at)))
    }

    /// Whether the values of the label column are names or numbers as strings. In text, `true` and dates are names of
    /// classes.
    fn is_text_label(&self, at: usize) -> bool {
        let column = &self.table.columns[at];
        let is_class = !self.options.label_rule.is_real();
        column.kind == ValueKind::Text || self.table.is_text && is_class && !column.form.is_plain()
    }

    /// Fails when a setting gives a column a second role.
    fn refuse_two_roles(&self, label: Option<usize>, requested: &Requested) -> Result<(), Error> {
        let names: Vec<&str> = self.table.names().collect();
        let attributes = [
            ("label", label.filter(|_| self.options.has_label)),
            ("weight", requested.weight),
            ("group", requested.group),
            ("time", requested.time),
        ];
        let attributes = attributes.into_iter().filter_map(|(role, at)| Some((role, at?)));
        let lists = requested.skip.iter().map(|at| ("skip_columns", *at));
        let lists = lists.chain(requested.tokens.iter().map(|at| ("token_columns", *at)));
        refuse_two_roles(self.table.file, &names, &attributes.chain(lists).collect::<Vec<_>>())
    }

    /// Adds what a training should tell of its columns.
    fn add_notices(&mut self, label: Option<usize>, requested: &Requested, unused: &[usize]) {
        if self.trained.is_some() {
            return;
        }
        let columns = &self.table.columns;
        self.notices.extend(unused.iter().filter_map(|at| columns[*at].skip_notice.clone()));
        if let Some(at) = label.filter(|_| self.options.has_label && self.options.label.is_none()) {
            let how = match self.table.fallback {
                _ if self.table.named && is_label_name(&columns[at].name) => "by its name",
                LabelFallback::First => "the first",
                LabelFallback::Last => "the last",
            };
            self.notices.push(label_notice(&columns[at].name, how));
        }
        let is_read_by_type = |at: &usize| {
            let lists = [&requested.text[..], &requested.tokens, &requested.skip, unused];
            !lists.iter().any(|list| list.contains(at))
        };
        let told = (0..columns.len()).filter(is_read_by_type).filter_map(|at| columns[at].told.as_deref());
        self.notices.extend(types_notice(&told.collect::<Vec<_>>()));
    }

    /// Adds a notice about booleans and timestamps that training read as text from a text file, where they may have had
    /// another form.
    fn add_notice_of_text_forms(&mut self, columns: &[PlannedColumn]) {
        let described = columns.iter().zip(&self.table.columns);
        let is_text = |(column, described): &(&PlannedColumn, &super::ColumnDescription)| {
            column.role == Role::Text && described.has_text_forms
        };
        let names: Vec<&str> = described.filter(is_text).map(|(column, _)| column.name.as_str()).collect();
        // Only training from text has a delimiter.
        let was_text = self.trained.is_some_and(|trained| trained.delimiter.is_some());
        if was_text && !names.is_empty() {
            self.notices.push(format!(
                "{}: training read these columns as text: {}; here they are read as 'true' or '2026-01-31 08:15:00'; if \
                 training had other forms, such as 'True' or '2026-01-31', write them as strings",
                self.table.file,
                names.join(", ")
            ));
        }
    }

    /// Finds the columns that interactions multiply, by name or by number in the order of training.
    fn interactions(&self, columns: &mut [PlannedColumn]) -> Result<Interactions, Error> {
        let asked = &self.options.interactions;
        let bad = |reason: String| Error::BadOption { option: "interactions", reason };
        // The number of factors is checked even where there are no columns.
        Interactions::new(asked)?;
        let has_lists = columns.iter().any(|column| matches!(column.role, Role::Indices | Role::Entries));
        if has_lists && !asked.is_empty() {
            return Err(bad(format!(
                "{} has no columns to multiply, its features are in a list; remove this setting",
                self.table.file
            )));
        }
        let mut named = Vec::new();
        for factors in asked {
            let mut group = Vec::new();
            for factor in factors {
                let schema = self.trained.filter(|schema| !schema.columns.iter().any(|c| c.name == *factor));
                let number = factor.parse::<usize>().ok();
                let name = schema.and_then(|schema| schema.order.get(number?)).unwrap_or(factor);
                let Some(at) = self.table.find(name)? else { return Ok(Interactions::default()) };
                if !matches!(columns[at].role, Role::Numeric(_) | Role::Text) {
                    return Err(bad(format!(
                        "column '{}' of {} is not a feature of one value: it is the label, a weight, a group, a time, \
                         tokens, or skipped",
                        columns[at].name, self.table.file
                    )));
                }
                group.push(columns[at].name.clone());
            }
            named.push(group);
        }
        let interactions = Interactions::new(&named)?;
        for column in columns {
            column.interaction_group = interactions.groups.iter().position(|group| *group == column.name);
        }
        Ok(interactions)
    }

    /// Makes the schema that a model stores.
    fn schema(
        &self,
        label: Option<usize>,
        requested: &Requested,
        skipped: &[usize],
        features: Vec<Column>,
        columns: &[PlannedColumn],
    ) -> Schema {
        let (table, options) = (self.table, self.options);
        let name = |at: Option<usize>| at.map(|at| table.columns[at].name.clone());
        let has_lists = columns.iter().any(|column| matches!(column.role, Role::Indices | Role::Entries));
        let has_numbers = features.iter().any(|column| column.kind == ColumnKind::Numeric);
        // When the number of features is declared, no key is left for missing numbers.
        let marks = self.trained.map_or(options.key_limit.is_none(), |trained| trained.mark_missing);
        // A column that numbers the rows may be absent later, or be there without being known as such.
        let skipped = skipped.iter().map(|at| table.columns[*at].name.clone());
        Schema {
            columns: features,
            order: table.names().map(str::to_owned).collect(),
            label: name(label),
            weight: name(requested.weight),
            group: name(requested.group),
            time: name(requested.time),
            skip_columns: options.skip_columns.iter().cloned().chain(skipped).collect(),
            named: table.named,
            keep_zeros: options.keep_zeros && has_numbers,
            fields: options.uses_fields && !has_lists,
            token_order: options.keeps_token_order,
            tokenizer: options.tokenizer.unwrap_or_default(),
            mark_missing: has_numbers && marks,
            ..Schema::default()
        }
    }
}

impl TableDescription<'_> {
    fn passthrough_columns(&self) -> Vec<PassthroughColumn> {
        let slot = |at: usize| self.passthrough.iter().filter(|(column, _)| *column < at).count();
        let column = |(at, name): &(usize, String)| PassthroughColumn {
            name: name.clone(),
            slot: slot(*at),
            kind: self.columns[*at].passthrough_kind,
        };
        self.passthrough.iter().map(column).collect()
    }
}

/// Makes a notice about columns that could be read in several ways.
fn types_notice(columns: &[&str]) -> Option<String> {
    /// Number of columns that the notice names.
    const SHOWN: usize = 5;
    let shown = columns.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let more = columns.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!columns.is_empty()).then(|| {
        format!(
            "columns that are more than plain numbers or names are read by their first values: {shown}{more}; \
                 --text-columns reads all values of a column as names"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_mixed_columns_are_named_and_the_others_counted() {
        let all: Vec<String> = (0..7).map(|at| format!("c{at}")).collect();
        let told = |count: usize| types_notice(&all.iter().map(String::as_str).collect::<Vec<_>>()[..count]);
        assert_eq!(told(0), None);
        assert!(told(5).unwrap().contains("first values: c0, c1, c2, c3, c4; --text-columns"));
        assert!(told(7).unwrap().contains("first values: c0, c1, c2, c3, c4 and 2 more; --text-columns"));
    }
}
