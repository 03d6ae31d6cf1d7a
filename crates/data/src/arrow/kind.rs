//! The uses that a column of an Arrow type allows.

use arrow_schema::{DataType, Field, Fields};

/// The kind of the values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArrowKind {
    Number,
    Text,
    IntegerList,
    FloatList,
    /// Lists of strings, each of which is a token.
    TextList,
    /// Lists of pairs of an integer and a number, or maps.
    PairList,
    /// A vector of Spark ML: type, size, indices, values.
    Vector,
    /// A type that cannot be read, with its description.
    Other(String),
}

impl ArrowKind {
    pub(super) fn of(kind: &DataType) -> Self {
        match kind {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Text,
            DataType::Dictionary(_, values) if Self::of(values) == Self::Text => Self::Text,
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Self::of_list(item)
            }
            DataType::Map(entries, _) if pair(entries).is_some() => Self::PairList,
            DataType::Map(..) => Self::Other("a map that is not from integers to numbers".to_owned()),
            DataType::Struct(fields) if is_vector(fields) => Self::Vector,
            DataType::Struct(_) => Self::Other("a struct".to_owned()),
            DataType::FixedSizeBinary(size) => Self::Other(format!("{size} bytes that are not a number")),
            DataType::Interval(_) => Self::Other("an interval of months, days and milliseconds".to_owned()),
            number if is_number(number) => Self::Number,
            other => Self::Other(format!("of type {other}")),
        }
    }

    fn of_list(item: &Field) -> Self {
        match item.data_type() {
            integer if integer.is_integer() => Self::IntegerList,
            number if is_number(number) => Self::FloatList,
            text if Self::of(text) == Self::Text => Self::TextList,
            DataType::Struct(_) if pair(item).is_some() => Self::PairList,
            DataType::List(_) | DataType::LargeList(_) => Self::Other("a list of lists".to_owned()),
            _ => Self::Other("a list of values that are neither numbers nor strings".to_owned()),
        }
    }

    /// Describes the kind for a message.
    pub(super) fn description(&self) -> &str {
        match self {
            Self::Number => "a number",
            Self::Text => "a string",
            Self::IntegerList => "a list of integers",
            Self::FloatList => "a list of floats",
            Self::TextList => "a list of strings",
            Self::PairList => "a list of pairs",
            Self::Vector => "a vector",
            Self::Other(what) => what,
        }
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
    let kind = |name: &str| fields.find(name).map(|(_, field)| ArrowKind::of(field.data_type()));
    fields.len() == 4
        && [kind("type"), kind("size")] == [Some(ArrowKind::Number), Some(ArrowKind::Number)]
        && kind("indices") == Some(ArrowKind::IntegerList)
        && kind("values") == Some(ArrowKind::FloatList)
}
