//! The columns that are features: those of a table, or the lists that have all entries of a record.

use super::plan::{PlannedColumn, Planner, Requested, Role};
use super::{NumberForm, TableDescription, ValueKind};
use crate::Error;
use crate::schema::{Column, ColumnKind};

impl Planner<'_> {
    /// Returns the feature columns of the schema, and all columns of the file with the roles of features.
    pub(super) fn features(
        &self,
        free: &[usize],
        requested: &Requested,
    ) -> Result<(Vec<Column>, Vec<PlannedColumn>), Error> {
        let table = self.table;
        let skipped = |at: usize| PlannedColumn {
            name: table.columns[at].name.clone(),
            role: Role::Skip,
            form: table.columns[at].form,
            origin: 0.0,
            field: 0,
            is_required: false,
            interaction_group: None,
            is_passthrough: table.is_passthrough(at),
        };
        let mut columns: Vec<PlannedColumn> = (0..table.columns.len()).map(skipped).collect();
        let lists = table.lists(free)?;
        if let Some(&(list, _)) = lists.first() {
            self.check_lists(free, &lists, list)?;
            for (at, role) in lists {
                columns[at].role = role;
            }
            return Ok((Vec::new(), columns));
        }
        let mut features = match self.trained {
            // A file of blank lines lacks no column.
            Some(trained) if columns.is_empty() && table.is_text => trained.columns.clone(),
            Some(trained) => self.same_columns(free, &trained.columns)?,
            None => Vec::new(),
        };
        for &at in free {
            let name = &table.columns[at].name;
            let position = features.iter().position(|feature| feature.name == *name);
            let kind = self.feature_kind(at, position.map(|position| features[position].kind), requested)?;
            let position = position.unwrap_or_else(|| {
                let (form, origin) = match kind {
                    ColumnKind::Numeric => (table.columns[at].form, table.columns[at].origin),
                    ColumnKind::Text | ColumnKind::Tokens => (NumberForm::Plain, 0.0),
                };
                let origin = if self.options.subtracts_origins { origin } else { 0.0 };
                let is_required = requested.ids.contains(&at);
                features.push(Column { name: name.clone(), kind, form, origin, is_required });
                features.len() - 1
            });
            columns[at].field = position as u32;
            columns[at].form = features[position].form;
            columns[at].origin = features[position].origin;
            columns[at].is_required = features[position].is_required;
            columns[at].role = match kind {
                ColumnKind::Numeric => Role::Numeric(position as u64),
                ColumnKind::Text => Role::Text,
                ColumnKind::Tokens => Role::Tokens,
            };
        }
        Ok((features, columns))
    }

    /// Fails when lists are not the only features, or training had columns.
    fn check_lists(&self, free: &[usize], lists: &[(usize, Role)], list: usize) -> Result<(), Error> {
        let table = self.table;
        let kind = table.columns[list].kind.description();
        if let Some(column) = self.trained.and_then(|trained| trained.columns.first()) {
            return Err(table.schema_error(format!(
                "column '{}' of training is missing, this file has {kind}",
                column.name
            )));
        }
        match free.iter().find(|at| lists.iter().all(|(list, _)| list != *at)) {
            None => Ok(()),
            Some(other) => {
                let name = &table.columns[list].name;
                let expected = format!(
                    "a file with {kind} ('{name}') has no other features: name it as weight or group"
                );
                Err(table.wrong_type(*other, &expected))
            }
        }
    }

    /// Returns the columns of training. All of them must be among the free columns, and no others.
    fn same_columns(&self, free: &[usize], trained: &[Column]) -> Result<Vec<Column>, Error> {
        let table = self.table;
        let is_here = |name: &str| free.iter().any(|at| table.columns[*at].name == name);
        let names = trained.iter().map(|column| column.name.as_str());
        let missing: Vec<&str> = names.filter(|name| !is_here(name)).collect();
        if !missing.is_empty() {
            return Err(table.schema_error(format!(
                "{} of the {} feature columns of training are missing: {}",
                missing.len(),
                trained.len(),
                missing.join(", ")
            )));
        }
        let is_known = |name: &str| trained.iter().any(|column| column.name == name);
        match free.iter().map(|at| &table.columns[*at].name).find(|name| !is_known(name)) {
            None => Ok(trained.to_vec()),
            Some(name) => Err(table.schema_error(format!(
                "column '{name}' was not in the training data ({} feature columns here, {} in training); skip it with \
                 --skip-columns '{name}', or remove it from the file",
                free.len(),
                trained.len()
            ))),
        }
    }

    /// Returns what a feature column gives: that of training or, without training, what its type and the settings say.
    fn feature_kind(
        &self,
        at: usize,
        trained: Option<ColumnKind>,
        requested: &Requested,
    ) -> Result<ColumnKind, Error> {
        let table = self.table;
        let (name, kind) = (&table.columns[at].name, &table.columns[at].kind);
        let tokens_expected = || Err(table.wrong_type(at, "tokens must be a string or a list of strings"));
        if let Some(trained) = trained.filter(|_| table.is_text) {
            return Ok(trained);
        }
        let is_tokens = trained.map_or(requested.tokens.contains(&at), |kind| kind == ColumnKind::Tokens);
        match (kind, trained) {
            (ValueKind::TextList, None | Some(ColumnKind::Tokens)) => Ok(ColumnKind::Tokens),
            (ValueKind::TextList, Some(_)) => Err(table.schema_error(format!(
                "column '{name}' is a list of strings here, but was none in training"
            ))),
            (ValueKind::Text, Some(ColumnKind::Numeric)) => {
                Err(table
                    .schema_error(format!("column '{name}' is a string here, but was a number in training")))
            }
            (ValueKind::Text, _) if is_tokens => Ok(ColumnKind::Tokens),
            (ValueKind::Number, _) if is_tokens && table.is_text => Ok(ColumnKind::Tokens),
            _ if is_tokens => tokens_expected(),
            (ValueKind::Text, _) | (ValueKind::Number, Some(ColumnKind::Text)) => Ok(ColumnKind::Text),
            (ValueKind::Number, None) if requested.text.contains(&at) => Ok(ColumnKind::Text),
            (ValueKind::Number, _) => Ok(ColumnKind::Numeric),
            _ => Err(table.wrong_type(at, "a feature must be a number, a string or a list of strings")),
        }
    }
}

impl TableDescription<'_> {
    /// Returns the columns whose lists give the entries of a record, with their roles.
    fn lists(&self, free: &[usize]) -> Result<Vec<(usize, Role)>, Error> {
        let Some(indices) = self.list(free, &[ValueKind::IntegerList], "indices")? else {
            let kinds = [ValueKind::FloatList, ValueKind::PairList, ValueKind::Vector];
            let entries = self.list(free, &kinds, "features")?;
            return Ok(entries.map(|at| (at, Role::Entries)).into_iter().collect());
        };
        let floats = self.list(free, &[ValueKind::FloatList], "values")?;
        let is_values = |at: &usize| {
            let column = &self.columns[*at];
            *at != indices && column.name == "values" && column.kind == ValueKind::IntegerList
        };
        let values = floats.or_else(|| free.iter().copied().find(is_values));
        Ok([(indices, Role::Indices)].into_iter().chain(values.map(|at| (at, Role::Values))).collect())
    }

    /// Returns the only column of these kinds; of several ones, the one with this name.
    fn list(&self, free: &[usize], kinds: &[ValueKind], name: &str) -> Result<Option<usize>, Error> {
        let lists: Vec<usize> =
            free.iter().copied().filter(|at| kinds.contains(&self.columns[*at].kind)).collect();
        let named = lists.iter().copied().find(|at| self.columns[*at].name == name);
        match lists[..] {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            [first, ..] => named.map(Some).ok_or_else(|| {
                self.wrong_type(first, &format!("of several such columns one must be named '{name}'"))
            }),
        }
    }
}
