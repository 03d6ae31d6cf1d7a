//! The schema of a table, the kinds of its features, and the columns that interactions multiply.

use super::kind::ArrowKind;
use super::layout::{Feature, Features, LayoutBuilder};
use crate::error::Error;
use crate::interactions::Interactions;
use crate::schema::{Column, ColumnKind, Schema};

impl LayoutBuilder<'_> {
    /// Makes the schema that the model stores. `roles` are the columns of label, weight and group.
    pub(super) fn schema(
        &self,
        features: &Features,
        roles: [Option<usize>; 4],
        like: Option<&Schema>,
    ) -> Schema {
        let columns: Vec<Column> = match features {
            Features::Table(table) => {
                table.iter().map(|f| Column { name: f.name.clone(), kind: f.kind }).collect()
            }
            Features::Lists { .. } | Features::Column(_) => Vec::new(),
        };
        let is_table = matches!(features, Features::Table(_));
        let has_numbers = columns.iter().any(|column| column.kind == ColumnKind::Numeric);
        // When the number of features is declared, no key is left for missing numbers.
        let marks = like.map_or(self.options.key_limit.is_none(), |schema| schema.mark_missing);
        let [label, weight, group, time] =
            roles.map(|column| column.map(|column| self.columns[column].name.clone()));
        Schema {
            columns,
            order: self.columns.iter().map(|leaf| leaf.name.clone()).collect(),
            label,
            weight,
            group,
            time,
            skip_columns: self.options.skip_columns.clone(),
            named: true,
            keep_zeros: self.options.keep_zeros && has_numbers,
            fields: self.options.uses_fields && is_table,
            token_order: self.options.keeps_token_order,
            mark_missing: has_numbers && marks,
            ..Schema::default()
        }
    }

    /// Finds the columns that interactions multiply, by name or by number in the order of training.
    pub(super) fn interactions(
        &self,
        features: &mut Features,
        like: Option<&Schema>,
    ) -> Result<Interactions, Error> {
        let asked = &self.options.interactions;
        let bad = |reason: String| Error::BadOption { option: "interactions", reason };
        let table = match features {
            Features::Table(table) => table,
            _ if asked.is_empty() => return Ok(Interactions::default()),
            _ => {
                return Err(bad(format!(
                    "{} has no columns to multiply, its features are in a list; remove this setting",
                    self.file
                )));
            }
        };
        let mut named = Vec::new();
        for factors in asked {
            let mut columns = Vec::new();
            for factor in factors {
                let of_training = like.filter(|schema| !schema.columns.iter().any(|c| c.name == *factor));
                let at = factor.parse::<usize>().ok();
                let name = of_training.and_then(|schema| schema.order.get(at?)).unwrap_or(factor);
                let column = self.find(name)?;
                let is_factor =
                    |feature: &&Feature| feature.column == column && feature.kind != ColumnKind::Tokens;
                let feature = table.iter().find(is_factor).ok_or_else(|| {
                    bad(format!(
                        "column '{name}' of {} is not a feature of one value: it is the label, a weight, a group, a \
                         time, tokens, or skipped",
                        self.file
                    ))
                })?;
                columns.push(feature.name.clone());
            }
            named.push(columns);
        }
        let interactions = Interactions::new(&named)?;
        for feature in table {
            feature.interaction_group = interactions.groups.iter().position(|group| *group == feature.name);
        }
        Ok(interactions)
    }

    /// Returns what a feature column gives: that of training or, without training, what its type and the settings say.
    pub(super) fn feature_kind(&self, column: usize, like: Option<ColumnKind>) -> Result<ColumnKind, Error> {
        let name = &self.columns[column].name;
        let is_among =
            |asked: &[String]| asked.iter().any(|asked| self.find(asked).is_ok_and(|at| at == column));
        let declared_text = is_among(&self.options.text_columns);
        let declared_tokens = is_among(&self.options.token_columns);
        match (&self.columns[column].kind, like) {
            (ArrowKind::TextList, None | Some(ColumnKind::Tokens)) => Ok(ColumnKind::Tokens),
            (ArrowKind::TextList, Some(_)) => Err(self.schema_error(format!(
                "column '{name}' is a list of strings here, but was none in training"
            ))),
            (ArrowKind::Text, Some(ColumnKind::Numeric)) => {
                Err(self
                    .schema_error(format!("column '{name}' is a string here, but was a number in training")))
            }
            (ArrowKind::Text, Some(ColumnKind::Tokens)) => Ok(ColumnKind::Tokens),
            (ArrowKind::Text, None) if declared_tokens => Ok(ColumnKind::Tokens),
            (_, Some(ColumnKind::Tokens)) => {
                Err(self.wrong_type(column, "tokens must be a string or a list of strings"))
            }
            (_, None) if declared_tokens => {
                Err(self.wrong_type(column, "tokens must be a string or a list of strings"))
            }
            (ArrowKind::Text, _) | (ArrowKind::Number, Some(ColumnKind::Text)) => Ok(ColumnKind::Text),
            (ArrowKind::Number, None) if declared_text => Ok(ColumnKind::Text),
            (ArrowKind::Number, _) => Ok(ColumnKind::Numeric),
            _ => Err(self.wrong_type(column, "a feature must be a number, a string or a list of strings")),
        }
    }
}
