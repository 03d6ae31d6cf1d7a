//! Describes the columns of a table by their Arrow types.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};

use crate::Error;
use crate::columns::{ColumnDescription, NumberForm, TableDescription, ValueKind};
use crate::options::FormatOptions;
use crate::schema::PassthroughKind;

/// Describes the columns of a table; those in `row_numbers` number the rows.
pub(crate) fn describe<'a>(
    file: &'a str,
    schema: &Schema,
    row_numbers: &[String],
    options: &FormatOptions,
) -> Result<TableDescription<'a>, Error> {
    let column = |field: &Arc<Field>| {
        let name = field.name();
        let skip_notice = row_numbers
            .contains(name)
            .then(|| format!("column '{name}' is an index that pandas wrote with the data, and is skipped"));
        ColumnDescription {
            has_text_forms: matches!(field.data_type(), DataType::Boolean | DataType::Timestamp(..)),
            passthrough_kind: passthrough_kind(field),
            skip_notice,
            form: form_of(field.data_type()),
            ..ColumnDescription::new(name.clone(), kind_of(field.data_type()))
        }
    };
    TableDescription::new(file, schema.fields().iter().map(column).collect(), options)
}

/// Returns what the numbers of a type mean.
fn form_of(kind: &DataType) -> NumberForm {
    match kind {
        DataType::Boolean => NumberForm::Boolean,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => NumberForm::Time,
        DataType::Time32(_) | DataType::Time64(_) => NumberForm::TimeOfDay,
        DataType::Duration(_) => NumberForm::Duration,
        _ => NumberForm::Plain,
    }
}

/// Returns the kind of the values of a passthrough column.
fn passthrough_kind(field: &Field) -> PassthroughKind {
    let kind = field.data_type();
    // An unsigned integer may exceed the signed 64-bit range, and a null is not an integer.
    let is_integer =
        kind.is_signed_integer() || { kind.is_unsigned_integer() && kind.primitive_width() < Some(8) };
    match kind {
        _ if is_integer && !field.is_nullable() => PassthroughKind::Integer,
        _ if kind.is_floating() => PassthroughKind::Real,
        _ => PassthroughKind::Text,
    }
}

/// Returns the kind of the values of an Arrow type.
pub(super) fn kind_of(kind: &DataType) -> ValueKind {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ValueKind::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => ValueKind::Text,
        DataType::Dictionary(_, values) if values.is_primitive() || kind_of(values) == ValueKind::Text => {
            kind_of(values)
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            kind_of_list(item)
        }
        DataType::Map(entries, _) if pair(entries).is_some() => ValueKind::PairList,
        DataType::Map(..) => ValueKind::Other("a map that is not from integers to numbers".to_owned()),
        DataType::Struct(fields) if is_vector(fields) => ValueKind::Vector,
        DataType::Struct(_) => ValueKind::Other("a struct".to_owned()),
        DataType::FixedSizeBinary(size) => ValueKind::Other(format!("{size} bytes that are not a number")),
        DataType::Interval(_) => ValueKind::Other("an interval of months, days and milliseconds".to_owned()),
        number if is_number(number) => ValueKind::Number,
        other => ValueKind::Other(format!("of type {other}")),
    }
}

fn kind_of_list(item: &Field) -> ValueKind {
    match item.data_type() {
        integer if integer.is_integer() => ValueKind::IntegerList,
        number if is_number(number) => ValueKind::FloatList,
        text if kind_of(text) == ValueKind::Text => ValueKind::TextList,
        DataType::Struct(_) if pair(item).is_some() => ValueKind::PairList,
        DataType::List(_) | DataType::LargeList(_) => ValueKind::Other("a list of lists".to_owned()),
        _ => ValueKind::Other("a list of values that are neither numbers nor strings".to_owned()),
    }
}

fn is_number(kind: &DataType) -> bool {
    kind.is_numeric() || kind.is_temporal() && !matches!(kind, DataType::Interval(_)) || {
        matches!(kind, DataType::Boolean | DataType::Null)
    }
}

/// Returns which field of a struct is the index and which the value; `None` when it is not a pair.
pub(super) fn pair(item: &Field) -> Option<(usize, usize)> {
    let DataType::Struct(fields) = item.data_type() else { return None };
    let [first, second] = &fields[..] else { return None };
    let integer = |field: &Field| field.data_type().is_integer();
    match (is_number(first.data_type()), is_number(second.data_type())) {
        (true, true) if integer(first) => Some((0, 1)),
        (true, true) if integer(second) => Some((1, 0)),
        _ => None,
    }
}

/// Whether a struct has the type of the vectors of Spark ML.
fn is_vector(fields: &Fields) -> bool {
    let kind = |name: &str| fields.find(name).map(|(_, field)| kind_of(field.data_type()));
    fields.len() == 4
        && [kind("type"), kind("size")] == [Some(ValueKind::Number), Some(ValueKind::Number)]
        && kind("indices") == Some(ValueKind::IntegerList)
        && kind("values") == Some(ValueKind::FloatList)
}
