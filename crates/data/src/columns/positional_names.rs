//! Names for the columns of a file without names, or of one whose names training did not have: the position in the
//! order of the training data identifies a column.
//!
//! A file that is only scored may lack columns that are not features: the label with `--no-label`, weights, groups,
//! skipped columns. It has all columns or lacks all of these; when it lacks some of them, it needs a header.

use super::missing::is_missing;
use super::type_counts::{TypeCounts, is_number};
use super::{ColumnDescription, TableDescription};
use crate::Error;
use crate::options::{FormatOptions, InputPurpose};
use crate::schema::Schema;
use std::borrow::Cow;
use std::cmp::Ordering;

/// The names of as many columns as a file has.
enum NamesByCount {
    /// No set of columns that may be absent makes up the difference.
    None,
    One(Vec<String>),
    /// Several sets of columns may be absent.
    Several,
}

/// Whether the first row of a file that is read with `schema` names its columns. It does when it has names of training,
/// or when it has a word over each column of numbers: a single word may be a bad value.
pub(crate) fn is_header_like(first: &[Cow<'_, [u8]>], kinds: &[TypeCounts], schema: &Schema) -> bool {
    let named = |name: &str| first.iter().any(|field| **field == *name.as_bytes());
    let met = schema.columns.iter().filter(|column| named(&column.name)).count();
    let mut numbers = first.iter().zip(kinds).filter(|(_, kinds)| kinds.has_mostly_numbers()).peekable();
    let words = numbers.peek().is_some() && numbers.all(|(field, _)| !is_number(field) && !is_missing(field));
    words || (schema.named && 2 * met >= schema.columns.len().max(1))
}

/// Gives the columns of a table the names of training, where the file or the training data have none, and returns a notice
/// about it.
pub(crate) fn assign_names_by_position(
    table: &mut TableDescription<'_>,
    options: &FormatOptions,
    trained: Option<&Schema>,
) -> Result<Option<String>, Error> {
    let Some(schema) = trained.filter(|schema| !schema.columns.is_empty()) else { return Ok(None) };
    if (table.named && schema.named) || table.columns.is_empty() {
        return Ok(None);
    }
    let order = order_of(schema);
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let others: Vec<usize> = all.iter().copied().filter(|at| !table.is_passthrough(*at)).collect();
    // Passthrough columns that are not in the training data stand between those that are.
    let fits = [all, others].map(|places| (names_by_count(&order, schema, options, places.len()), places));
    let one = fits.iter().find_map(|(fit, places)| match fit {
        NamesByCount::One(names) => Some((names, places)),
        NamesByCount::None | NamesByCount::Several => None,
    });
    let Some((names, places)) = one else {
        let is_ambiguous = fits.iter().any(|(fit, _)| matches!(fit, NamesByCount::Several));
        return Err(table.schema_error(column_count_message(table, schema, &order, is_ambiguous)));
    };
    let header = table.named;
    let set_name = |column: &mut ColumnDescription, name: &str| name.clone_into(&mut column.name);
    table.columns.iter_mut().enumerate().for_each(|(at, column)| column.name = format!("column {at}"));
    places.iter().zip(names).for_each(|(&at, name)| set_name(&mut table.columns[at], name));
    table.named = schema.named;
    Ok((header || schema.named).then(|| {
        let why = if header { "its header is not used, since training had none" } else { "it has no header" };
        let (file, names) = (table.file, names.join(", "));
        format!("{file}: {why}; its columns are taken in the order of training: {names}")
    }))
}

/// Returns all columns of training in the order of its file.
fn order_of(schema: &Schema) -> Vec<String> {
    if !schema.order.is_empty() {
        return schema.order.clone();
    }
    // An older version wrote this schema. Without a header names are positions; with one, only the order of the
    // features is known.
    let mut order: Vec<String> = schema.columns.iter().map(|column| column.name.clone()).collect();
    if !schema.named {
        let others = [&schema.label, &schema.weight, &schema.group].into_iter().flatten();
        order.extend(others.chain(&schema.skip_columns).cloned());
        order.sort_by_key(|name| name.parse::<usize>().unwrap_or(usize::MAX));
        order.dedup();
    }
    order
}

/// Returns the names of the columns of a file that has `count` of those in `order`.
fn names_by_count(order: &[String], schema: &Schema, options: &FormatOptions, count: usize) -> NamesByCount {
    let Some(missing) = order.len().checked_sub(count) else { return NamesByCount::None };
    if missing == 0 {
        return NamesByCount::One(order.to_vec());
    }
    let present: Vec<&String> = order.iter().filter(|name| !may_be_absent(name, schema, options)).collect();
    match count.cmp(&present.len()) {
        Ordering::Less => NamesByCount::None,
        Ordering::Equal => NamesByCount::One(present.into_iter().cloned().collect()),
        Ordering::Greater => NamesByCount::Several,
    }
}

fn may_be_absent(name: &String, schema: &Schema, options: &FormatOptions) -> bool {
    let is = |column: &Option<String>| column.as_ref() == Some(name);
    let unneeded = |trained: &Option<String>, asked: &Option<String>| {
        is(trained) && asked.is_none() && options.purpose != InputPurpose::Training
    };
    (is(&schema.label) && !options.has_label)
        || unneeded(&schema.weight, &options.weight)
        || unneeded(&schema.group, &options.group)
        || schema.skip_columns.contains(name)
}

fn column_count_message(
    table: &TableDescription<'_>,
    schema: &Schema,
    order: &[String],
    is_ambiguous: bool,
) -> String {
    let (count, known) = (table.columns.len(), order.join(", "));
    let header = if schema.named { " and no header" } else { "" };
    if is_ambiguous {
        return format!(
            "it has {count} columns{header}, so it is not clear which of {known} are absent; write the names of the \
             columns into its first line"
        );
    }
    let delimiter = schema.delimiter.filter(|_| count == 1).map_or(String::new(), |delimiter| {
        let delimiter = char::from(delimiter).escape_default();
        format!("; its rows were cut at the delimiter of training, '{delimiter}': if it has another one, set --delimiter")
    });
    format!("it has {count} columns{header}, training had {}: {known}{delimiter}", order.len())
}

#[cfg(test)]
mod tests;
